"""Trainings that go on on other numbers of processes, and checkpoints that hold what the processes held."""

import json
import shutil

import pytest
import torch
from tests.distributed.pair import digests, run_of
from tests.distributed.test_pairs import OPTIMIZERS, ended, labelled_file, pretraining, require_alike, started

from bakeoff.errors import UserError
from bakeoff.interop.export import export
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.runs.checkpoint import list_checkpoints
from bakeoff.runs.run import Run
from bakeoff.stored_tensors import StoredTensors
from bakeoff.tasks.finetune import finetune
from bakeoff.tasks.finetune_config import FinetuneConfig
from bakeoff.tasks.kinds.classification import ClassificationConfig
from bakeoff.tensors import load_tensors
from bakeoff.trainer.checkpoint import fill_optimizer, optimizer_tensors
from bakeoff.training.pretrain import pretrain

pytestmark = pytest.mark.slow

COURSES = {"2-4-1": [(2, 3), (4, 6), (1, None)], "1-4-2": [(1, 3), (4, 6), (2, None)], "4-2": [(4, 4), (2, None)]}
"""The numbers of processes that train one after the other, each up to a step."""
SHARED = {"training.micro_batch": 1}
"""As many micro-batches as four processes can share."""
FORMS = {
    "copies": {"name": "gencnn-tiny"},
    "memory": {"name": "transformer-xl-tiny"},
    "divided": {"name": "bert-tiny", "shard": True, "training.optimizer": {"kind": "adamw", **OPTIMIZERS["adamw"]}},
    "in_parts": {
        "name": "bert-tiny",
        "shard": True,
        "in_parts": True,
        "training.optimizer": {"kind": "adamw", **OPTIMIZERS["adamw"]},
        "training.running_average": 0.5,
    },
}
"""Trainings with batch norm, or a memory, on copies; and with divided weights, in checkpoints of either form."""

HELD = {
    "bert-tiny": "adamw",
    "albert-tiny": "lamb",
    "t5-tiny": "adafactor",
    "gpt-tiny": "muon",
    "xlnet-tiny": "sgd",
    "electra-tiny": "adamw",
}
"""Families, and their optimizers, whose checkpoints are compared with what the processes hold."""


def part_of(course, form, corpus, size, until):
    """One of the parts of a training."""
    values = dict(FORMS[form])
    name, shard, in_parts = values.pop("name"), values.pop("shard", False), values.pop("in_parts", False)
    options = {"resume": True, "shard": shard and size > 1} | ({} if until is None else {"until": until})
    return {**pretraining(name, corpus, f"{course}-{form}", options, **{**SHARED, **values}), "in_parts": in_parts}


@pytest.fixture(scope="module")
def courses(corpus, tmp_path_factory):
    """The folder of all trainings; `alone-FORM` in it is by a single process."""
    folder = tmp_path_factory.mktemp("courses")
    for number in range(3):
        there = {course: parts[number] for course, parts in COURSES.items() if number < len(parts)}
        for size in (1, 2, 4):
            those = [
                part_of(course, form, corpus, size, until)
                for course, (number_of_processes, until) in there.items()
                if number_of_processes == size
                for form in FORMS
            ]
            if size == 1:
                for each in those:
                    run_of(folder, each)
            elif those:
                ended(started(folder, size, runs=those), folder)
    for form in FORMS:
        run_of(folder, part_of("alone", form, corpus, 1, None))
    return folder


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("course", COURSES)
def test_a_training_goes_on_exactly_at_its_place(course, form, courses):
    require_alike(courses / f"{course}-{form}", courses / f"alone-{form}")


@pytest.fixture(scope="module")
def held(corpus, tmp_path_factory):
    """The folder of trainings by two processes that have divided the weights, each with a checkpoint."""
    folder = tmp_path_factory.mktemp("held")
    runs = [
        {
            **pretraining(
                name,
                corpus,
                f"{name}-{form}",
                {"shard": True, "until": 2},
                **{"training.optimizer": {"kind": kind, **OPTIMIZERS[kind]}},
            ),
            "in_parts": form == "in_parts",
            "notes": True,
        }
        for name, kind in HELD.items()
        for form in ("whole", "in_parts")
    ]
    ended(started(folder, runs=runs), folder)
    return folder


@pytest.mark.parametrize("form", ["whole", "in_parts"])
@pytest.mark.parametrize("name", HELD)
def test_a_checkpoint_holds_what_the_processes_held_to_the_last_bit(name, form, held, corpus):
    """In its files, and in a plain module and its optimizer that are loaded from it."""
    out = held / f"{name}-{form}"
    expected = json.loads((held / f"{name}-{form}-held.json").read_text(encoding="utf-8"))
    (path,) = list_checkpoints(out / "checkpoints")
    kept = sorted(file.name for file in path.iterdir())
    assert ("model.safetensors" in kept) == (form == "whole")
    assert {file.rpartition(".")[2] for file in kept} == {"safetensors", "json", "sha256"}  # and no pickle
    for file, those in expected.items():
        assert digests(load_tensors(path / f"{file}.safetensors")) == those
    run = Run.open_trained(out)
    module = run.load()
    assert digests(module.state_dict()) == expected["model"]
    fresh = PretrainingModel(run.recipe, run.tokenizer.size)
    optimizer = run.recipe.training.optimizer.build(fresh, "float32")
    fill_optimizer(optimizer, path / "optimizer.safetensors")
    assert digests(optimizer_tensors(optimizer)) == expected["optimizer"]


@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
def test_torchs_reader_reads_the_same(held):
    """torch.distributed.checkpoint of one process, as another reader of the same files."""
    from torch.distributed.checkpoint import HuggingFaceStorageReader, load

    (path,) = list_checkpoints(held / "bert-tiny-in_parts" / "checkpoints")
    ours = StoredTensors(path / "model.safetensors")
    theirs = {f"model.{name}": torch.empty_like(ours[name]) for name in ours}
    load(theirs, storage_reader=HuggingFaceStorageReader(str(path)), no_dist=True)
    assert {name.removeprefix("model."): each for name, each in digests(theirs).items()} == digests(dict(ours))


def test_verbs_read_what_is_in_parts(held, tmp_path):
    whole, parts = (list_checkpoints(held / f"bert-tiny-{form}" / "checkpoints")[0] for form in ("whole", "in_parts"))
    pytest.importorskip("transformers")
    for path, out in ((whole, tmp_path / "whole"), (parts, tmp_path / "parts")):
        export(path, out, to="hf")
    assert (tmp_path / "whole/model.safetensors").read_bytes() == (tmp_path / "parts/model.safetensors").read_bytes()
    labelled_file(tmp_path / "labelled.tsv")
    task = ClassificationConfig(train=tmp_path / "labelled.tsv", text_column="text", label_column="label")
    config = FinetuneConfig(epochs=[1], least_steps=0, learning_rate=[1e-3], evaluations=1)
    made = [
        finetune(path, task, tmp_path / f"tuned-{path.parts[-3]}", config=config, device="cpu", progress=False)
        for path in (whole, parts)
    ]
    one, other = ((each.path / "model.safetensors").read_bytes() for each in made)
    assert one == other


@pytest.mark.parametrize("harm", ["lost", "cut", "flipped"])
def test_a_part_that_is_damaged_is_told_in_one_line(harm, held, corpus, tmp_path):
    shutil.copytree(held / "gpt-tiny-in_parts", tmp_path / "run")
    (path,) = list_checkpoints(tmp_path / "run" / "checkpoints")
    part = sorted(path.glob("shard-*"))[-1]
    content = bytearray(part.read_bytes())
    if harm == "lost":
        part.unlink()
    else:
        content[-1] ^= 1
        part.write_bytes(content[:-8] if harm == "cut" else content)
    with pytest.raises(UserError, match=r"this checkpoint is damaged|missing") as caught:
        pretrain(None, None, tmp_path / "run", resume=True, progress=False, device="cpu")
    assert "\n" not in str(caught.value)


def test_compiled_parts_of_divided_layers_compute_the_same(corpus, tmp_path):
    options = {"shard": True, "budget": "steps=3"}
    runs = [
        pretraining("gpt-tiny", corpus, name, options, **{"training.compile": name == "compiled"})
        for name in ("compiled", "plain")
    ]
    ended(started(tmp_path, runs=runs), tmp_path)
    require_alike(tmp_path / "compiled", tmp_path / "plain", 1e-6)
