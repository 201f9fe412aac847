"""Models that transformers has no class for, exported and used in processes that have no Bakeoff."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bakeoff.conformance.narrow import narrow
from bakeoff.generation.config import GenerationConfig
from bakeoff.generation.generate import never_written
from bakeoff.generation.generator import Generator
from bakeoff.interop.families.bakeoff_family import TRAINED_HEAD
from bakeoff.interop.remote_code.comparison import difference, prepare, read_back
from bakeoff.interop.remote_code.export import written
from bakeoff.interop.remote_code.pretrained import describe_pretrained
from bakeoff.interop.remote_code.source import model_source
from bakeoff.recipe_files import recipe_names
from bakeoff.runs.run import Run
from tests.untrained_runs import untrained

pytest.importorskip("transformers")

FEW = ["conv-light-encoder-tiny", "laptop-decoder-tiny", "conv-light-tiny"]
"""A mixer without state, one with a state of its own, attention, two stacks, both sides, an adaptive softmax."""


def program(jobs, folder):
    """What `remote_program.py` answers to jobs."""
    (folder / "JOBS.json").write_text(json.dumps(jobs))
    path = Path(__file__).with_name("remote_program.py")
    outside = {"HF_MODULES_CACHE": str(folder / "modules"), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, "-I", str(path), str(folder / "JOBS.json")]
    made = subprocess.run(command, env=kept | outside, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr[-3000:]
    return json.loads((folder / "ANSWERS.json").read_text())


def exported(names, corpus, folder):
    """For each recipe a run of random weights, its folder, and what is written there."""
    found = {}
    for name in names:
        (folder / name / "results").mkdir(parents=True)
        (folder / name / "out").mkdir()
        run = untrained(name, corpus, folder / name / "run")
        found[name] = run, folder / name / "out", written(run.path, folder / name / "out")
    return found


TEXTS = ["one two  three", "ab\u0301c 中文 🎉", "def f(x):\n    return x"]


def check_all(names, corpus, folder, told=()):
    """The same hidden states, scores and written texts on both sides; and ids of texts, for those that are told."""
    found = exported(names, corpus, folder)
    pairs = []
    for name, (_, out, own) in found.items():
        prepare(own, folder / name / "results")
        pairs.append((out, folder / name / "results"))
    read_back(pairs)
    for name, (_, _, own) in found.items():
        assert difference(own, folder / name / "results") < 1e-3, name
    jobs, expected, owners = [], [], []
    for name, (run, out, own) in found.items():
        auto = next((each for each in ("AutoModelForCausalLM", "AutoModelForSeq2SeqLM") if each in own.classes), None)
        if auto is None:
            continue
        prompts, mine = _texts_of(run, auto)
        jobs.append({"do": "write", "auto": auto, "folder": str(out), "prompts": prompts, "tokens": 6})
        expected.append(mine)
        owners.append(name)
    tokens = [{"do": "tokens", "folder": str(out), "texts": TEXTS} for _, out, _ in map(found.get, told)]
    answers = program(jobs + tokens, folder)
    for name, ids in zip(told, answers[len(jobs) :], strict=True):
        check_ids(found[name][0], ids, name in owners)
    for name, job, mine, answer in zip(owners, jobs, expected, answers[: len(jobs)], strict=True):
        end = Run.open(found[name][0].path).tokenizer.separator
        for own, other in zip(mine, answer["together"], strict=True):
            assert own == (other[: other.index(end)] if end in other else other), name
        assert answer["without_state"], name
        assert answer["beams_without_state"], name
        assert all(read == 1 for read in answer["read"][1:]), name
        assert job["tokens"] >= len(answer["read"])
    return found


def check_ids(run, found, generates):
    """Texts get the ids that rows have; what a decoder goes on from is begun and not ended."""
    tokenizer = run.tokenizer
    own = [ids.tolist() for ids, _ in tokenizer.encode([" ".join(text.split()) for text in TEXTS])]
    framed = ([tokenizer.opening, *ids] if generates else [tokenizer.start, *ids, tokenizer.separator] for ids in own)
    assert found == list(framed)


def _texts_of(run, auto):
    """Prompts of different lengths, and what follows each as Bakeoff writes it."""
    module, tokenizer = run.load(), run.tokenizer
    plain = [token for token in range(tokenizer.size) if token not in set(tokenizer.special_ids.tolist())]
    prompts = [[tokenizer.opening, *plain[3:9]], [tokenizer.opening, *plain[11:14]]]
    config = GenerationConfig(tokens=6, temperature=0)
    generator = Generator(module, tokenizer.separator, never_written(tokenizer))
    if auto == "AutoModelForSeq2SeqLM":
        return prompts, generator.write([[tokenizer.start]] * len(prompts), config, sources=prompts)
    return prompts, generator.write(prompts, config)


@pytest.mark.slow
def test_the_same_numbers_and_texts_without_bakeoff(corpus, tmp_path):
    found = check_all(FEW, corpus, tmp_path, told=FEW[:2])
    source = (found["conv-light-encoder-tiny"][1] / "modeling_bakeoff.py").read_text()
    assert "Attention(" not in source  # nothing that the model does not have
    assert "class LightConv" in source


@pytest.mark.slow
def test_all_recipes_give_the_same_without_bakeoff(corpus, tmp_path):
    check_all(recipe_names(), corpus, tmp_path)


CLASSES = ("BakeoffForMaskedLM", "BakeoffForCausalLM", "BakeoffForSeq2SeqLM", "BakeoffForSequenceClassification")


SOURCES = [
    "gcnn-8",
    "light-wmt",
    "albert-base with values",
    *(
        pytest.param(each, marks=pytest.mark.slow)
        for each in ("bert-base", "lstm-lm", "gencnn", "ltg-bert-base", "t5-base")
    ),
]


@pytest.mark.parametrize("name", SOURCES)
def test_the_file_needs_torch_and_transformers_alone(name):
    text = model_source(narrow(name).model, CLASSES, ["tied", "adaptive", "untied"], "A model.")
    roots = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            roots |= {each.name.split(".")[0] for each in node.names}
        elif isinstance(node, ast.ImportFrom):
            roots.add(node.module.split(".")[0])
    assert roots - set(sys.stdlib_module_names) == {"torch", "transformers"}
    assert not roots & {"ctypes", "subprocess"}  # which kernels need
    assert ("class FirstValues" in text) == name.endswith("with values")


def test_of_several_heads_the_file_holds_one_that_was_trained_until_the_end(corpus, tmp_path):
    for weights in ((0, 1), (1, 0)):
        kinds = [{"kind": kind, "weight": weight} for kind, weight in zip(("diffusion", "mlm"), weights, strict=True)]
        untrained("laptop-conv-tiny", corpus, tmp_path / f"{weights}", objective=kinds)
        described = describe_pretrained(Run.open(tmp_path / f"{weights}"))
        assert described.config[TRAINED_HEAD] == ("mlm" if weights[1] else "diffusion")
