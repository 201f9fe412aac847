"""Two processes train as one does, to rounding: every family, dropout included, in one pair of processes."""

import json
import os
import socket
import subprocess
import sys

import pytest
import torch
from safetensors.torch import load_file
from tests.conftest import crossed, sentences, shrink
from tests.distributed.pair import run_of
from tests.untrained_runs import untrained

from bakeoff.recipe_files import recipe_names
from bakeoff.runs.run import Run
from bakeoff.tasks.evaluate import evaluate

TINY = [name for name in recipe_names() if name.endswith("-tiny")]
QUICK = (
    "bert-tiny",
    "gencnn-tiny",
    "gpt-bert-tiny",
    "lstm-lm-tiny",
    "t5-tiny",
    "transformer-translation-tiny",
    "transformer-xl-tiny",
    "xlnet-tiny",
)
"""Recipes of which each has something of its own to share: sums of a batch norm, memories, sources, generators."""
PLAIN = {
    "training.optimizer": {"kind": "sgd", "lr": 0.05},
    "training.schedule": {"kind": "constant"},
    "training.batch": 6,
    "training.micro_batch": 2,
    "training.precision": "float32",
}


def environments(size):
    """The variables by which torchrun's processes find each other, for each of them."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    found = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(size), "OMP_NUM_THREADS": "1"}
    return [os.environ | found | {"RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(size)]


OPTIMIZERS = {
    "adamw": {"lr": 1e-3, "epsilon": 1e-3},
    "lamb": {"lr": 1e-2, "epsilon": 1e-3},
    "sgd": {"lr": 0.05, "momentum": 0.9},
    "nag": {"lr": 0.05},
    "adafactor": {"lr": 1e-2},
    "muon": {"lr": 0.01, "epsilon": 1e-3},
}
"""Epsilons that are large enough for tiny gradients not to turn rounding into steps."""
BUDGET = {"budget": "steps=8"}
WHOLE = {
    "average": {"average_last": 2},
    "kept": {"save_at": ["shares=0.5"], "early_stopping": {"patience": 5, "keep_best": True}},
    "running": {},
}
"""Options of whole pre-trainings with what is written beside them."""
REJOINED = ["transformer-xl-tiny", "xlnet-tiny", "gencnn-tiny"]
"""Recipes with a memory or batch norm, which go on on another number of processes."""


DIVIDED = [
    ("bert-tiny", "adamw", 0.0),
    ("albert-tiny", "lamb", 0.5),
    ("t5-tiny", "sgd", 0.0),
    ("gpt-tiny", "muon", 0.0),
    ("laptop-encoder-tiny", "adafactor", 0.0),
]
"""Recipes, their optimizers and shares of a running average, whose weights are divided among the processes."""


def pretraining(name, corpus, out, options=None, **changes):
    recipe = shrink(name, **{**PLAIN, **changes})
    values = {"recipe": recipe.model_dump(mode="json"), "corpus": str(corpus.path), "out": out}
    return {**values, "options": {**BUDGET, **(options or {})}}


def planned(corpus, folder):
    """The whole trainings, by the names of their folders."""
    labelled_file(folder / "labelled.tsv")
    task = {"train": str(folder / "labelled.tsv"), "text_column": "text", "label_column": "label"}
    config = {"epochs": [1], "least_steps": 0, "micro_batch": 8, "learning_rate": [1e-3], "evaluations": 3}
    divided = [
        (
            (name, corpus),
            {"training.optimizer": {"kind": kind, **OPTIMIZERS[kind]}, "training.running_average": average},
        )
        for name, kind, average in DIVIDED
    ]
    finetuning = {"recipe": shrink("bert-tiny").model_dump(mode="json"), "task": task, "config": config}
    (folder / "pairs.tsv").write_text("source\ttarget\n" + "a red house\ta blue one\nthe x\tof y\n" * 12, "utf-8")
    splits = dict.fromkeys(("train", "dev", "test"), str(folder / "pairs.tsv"))
    writes = {"kind": "sequence_to_sequence", **splits, "metric": "chrf", "longest": 8}
    writing = {**finetuning, "recipe": shrink("t5-tiny").model_dump(mode="json"), "task": writes}
    return [
        *(
            pretraining("bert-tiny", corpus, f"of-{kind}", **{"training.optimizer": {"kind": kind, **values}})
            for kind, values in OPTIMIZERS.items()
        ),
        *(pretraining("gpt-tiny", corpus, name, options) for name, options in WHOLE.items() if name != "running"),
        pretraining("gpt-tiny", corpus, "running", **{"training.running_average": 0.5}),
        *(pretraining(name, corpus, f"two-{name}", {"until": 4}) for name in REJOINED),
        *(pretraining(*each, f"shards-{each[0]}", {"shard": True}, **changes) for each, changes in divided),
        *(
            pretraining(*each, f"divided-{each[0]}", {"shard": True, "until": 4}, **changes)
            for each, changes in divided
        ),
        vectors(corpus, folder),
        {**finetuning, "out": "finetuned", "options": {"tokenizer": str(corpus.path)}},
        {**finetuning, "out": "divided", "options": {"tokenizer": str(corpus.path), "shard": True}},
        {**writing, "out": "writing", "options": {"tokenizer": str(corpus.path)}},
        {**writing, "out": "writing-divided", "options": {"tokenizer": str(corpus.path), "shard": True}},
    ]


def vectors(corpus, folder):
    """The vectors of a run, taught in micro-batches, of which each process has some."""
    source = untrained("bert-tiny", corpus, folder / "to-be-taught", **{"training.precision": "float32"})
    texts = [f"{one} {other}" for one, other in zip(sentences(40, seed=1), sentences(40, seed=2), strict=True)]
    config = {"budget": {"steps": 4}, "batch": 7, "micro_batch": 2, "dropout": 0.1, "evaluations": 2}
    return {"source": str(source.path), "views_of": texts, "config": config, "out": "vectors", "options": {}}


SCORED = ["of-sgd", "one-transformer-xl-tiny", "shards-gpt-tiny"]
"""Runs that score texts around each token, and forwards with a memory and in windows."""


def texts_to_score(folder):
    """Texts of many lengths, and minimal pairs of them."""
    texts = [" ".join(["the red house of x"] * count) for count in (1, 9, 3, 40, 2, 17, 1, 5)]
    (folder / "texts.txt").write_text("\n".join([*texts, ""]), encoding="utf-8")
    lines = [f"{text} is\tof {text}\n" for text in texts]
    (folder / "minimal.tsv").write_text("sentence_good\tsentence_bad\n" + "".join(lines), encoding="utf-8")
    return {"texts": str(folder / "texts.txt")}, {"minimal_pairs": str(folder / "minimal.tsv")}


def labelled_file(path):
    rows = [
        f"{word} of the {other}\t{label}" for word, label in (("red", "a"), ("blue", "b")) for other in "xyzuvw" * 8
    ]
    path.write_text("text\tlabel\n" + "\n".join(rows) + "\n", encoding="utf-8")


def started(folder, size=2, **plan):
    """Processes that carry out a plan."""
    plan = {"steps": {}, "shards": False, "runs": [], "evaluations": [], **plan}
    (folder / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    command = [sys.executable, "-m", "tests.distributed.pair", str(folder)]
    return [subprocess.Popen(command, env=each, stderr=subprocess.PIPE, text=True) for each in environments(size)]


def ended(processes, folder):
    """What all have found, which is the same."""
    complaints = [process.communicate(timeout=200)[1] for process in processes]
    assert not any(process.returncode for process in processes), "\n".join(complaints)
    results = [json.loads((folder / f"{rank}.json").read_text(encoding="utf-8")) for rank in range(len(processes))]
    assert all(each == results[0] for each in results)
    return results[0]


TAUGHT = "bert-tiny with a teacher"


def steps_of(names, corpus, parallel_corpus, folder):
    """Recipes, each with its corpus, and one that learns from another run."""
    teacher = untrained("bert-tiny", corpus, folder / "teacher")
    taught = shrink("bert-tiny", **PLAIN, **{"training.distillation": {"teachers": [str(teacher.path)]}})
    steps = {TAUGHT: (taught.model_dump(mode="json"), str(corpus.path))}
    for name in names:
        recipe = shrink(name, **PLAIN)
        text = parallel_corpus if recipe.input.parallel else corpus
        steps[name] = recipe.model_dump(mode="json"), str(text.path)
    return steps


@pytest.fixture(scope="module")
def pair(request, corpus, parallel_corpus, tmp_path_factory):
    """What two processes have found of each recipe of which a test is run, by its name."""
    folder = tmp_path_factory.mktemp("pair")
    tests = [each for each in request.session.items if each.path == request.path and "pair" in each.fixturenames]
    asked = {test.callspec.params["name"] for test in tests}
    names = [name for name in TINY if name in asked]
    return ended(started(folder, steps=steps_of(names, corpus, parallel_corpus, folder)), folder)["steps"]


@pytest.fixture(scope="module")
def sharing_pair(corpus, parallel_corpus, tmp_path_factory):
    """The same of two processes that divide the weights, one of which has fewer micro-batches."""
    folder = tmp_path_factory.mktemp("sharing")
    return ended(started(folder, steps=steps_of(TINY, corpus, parallel_corpus, folder), shards=True), folder)["steps"]


@pytest.fixture(scope="module")
def runs(corpus, tmp_path_factory):
    """The folder of whole trainings by two processes, and what they have evaluated.

    `alone` in it has the same runs by a single process, which also does the second half of those that go on.
    """
    folder = tmp_path_factory.mktemp("runs")
    asked = planned(corpus, folder)
    resumed = [pretraining(name, corpus, f"one-{name}", {"resume": True}) for name in REJOINED]
    for name in REJOINED:
        run_of(folder, pretraining(name, corpus, f"one-{name}", {"until": 4}))
    evaluations = [("of-sgd", {"corpus": str(corpus.path)}), ("finetuned", {"data": str(folder / "labelled.tsv")})]
    evaluations += [(name, options) for name in SCORED for options in texts_to_score(folder)]
    processes = started(folder, runs=[*asked, *resumed], evaluations=evaluations)
    (folder / "alone").mkdir()
    for each in asked:
        whole = {name: value for name, value in each["options"].items() if name not in ("until", "shard")}
        run_of(folder / "alone", {**each, "options": whole})
    results = ended(processes, folder)
    for each in asked:
        if each["options"].pop("shard", False) and each["options"].pop("until", None):  # the rest by a single process
            run_of(folder, {**each, "options": {**each["options"], "resume": True}})
    for name in REJOINED:
        run_of(folder, pretraining(name, corpus, f"two-{name}", {"resume": True}))
    return {**results, "folder": folder, "asked": evaluations}


def require_alike(one, other, tolerance=2e-5):
    """The weights of two runs, and the lines of their metrics."""
    weights, others = (load_file(run / "model.safetensors") for run in (one, other))
    assert weights.keys() == others.keys()
    for name, weight in weights.items():
        torch.testing.assert_close(weight, others[name], atol=tolerance, rtol=1e-4)
    lines, other_lines = (read_lines(run / "metrics.jsonl") for run in (one, other))
    assert [[line[key] for key in ("kind", "step")] for line in lines] == [
        [line[key] for key in ("kind", "step")] for line in other_lines
    ]
    for line, other_line in zip(lines, other_lines, strict=True):
        assert line.get("tokens") == other_line.get("tokens")
        assert line["loss"] == pytest.approx(other_line["loss"], rel=1e-4)


def read_lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("name", crossed([*TINY, TAUGHT], (*QUICK, TAUGHT)))
def test_two_processes_train_as_one(name, pair):
    require_as_one(pair[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", [*TINY, TAUGHT])
def test_processes_that_divide_the_weights_train_as_one(name, sharing_pair):
    require_as_one(sharing_pair[name])


def require_as_one(result):
    assert result["tokens"][0] == result["tokens"][1]
    assert not result["missing"]
    assert result["loss"] < 2e-6
    assert max(result["gradient"].values()) < 1e-5
    assert max(result["state"].values()) < 1e-5


@pytest.mark.slow
@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_with_every_optimizer(kind, runs):
    tolerance = 2e-4 if kind == "adafactor" else 2e-5  # which divides gradients by their size, however small
    ours, alone = (folder / f"of-{kind}" for folder in (runs["folder"], runs["folder"] / "alone"))
    require_alike(ours, alone, tolerance)
    assert [Run(run).environment["processes"] for run in (ours, alone)] == [2, 1]


@pytest.mark.slow
@pytest.mark.parametrize("name", WHOLE)
def test_what_is_written_beside_a_training_is_the_same(name, runs):
    ours, alone = runs["folder"], runs["folder"] / "alone"
    require_alike(ours / name, alone / name)
    if name == "average":
        require_alike(ours / "average-average-2", alone / "average-average-2")
    if name == "kept":
        (saved,) = (ours / name / "saved").iterdir()
        require_alike(saved, alone / name / "saved" / saved.name)


@pytest.mark.slow
@pytest.mark.parametrize("name", REJOINED)
@pytest.mark.parametrize("first", ["one", "two"])
def test_a_training_goes_on_on_another_number_of_processes(first, name, runs):
    require_alike(runs["folder"] / f"{first}-{name}", runs["folder"] / "alone" / f"two-{name}")


@pytest.mark.slow
def test_fine_tuning_and_evaluation_are_those_of_one(runs):
    ours, alone = runs["folder"], runs["folder"] / "alone"
    require_alike(ours / "finetuned", alone / "finetuned", 2e-4)
    require_alike(ours / "divided", alone / "finetuned", 2e-4)
    (corpus, labels, *_), (text, data, *_) = runs["evaluations"], [options for _, options in runs["asked"]]
    assert corpus["losses"] == pytest.approx(evaluate(ours / "of-sgd", device="cpu", **text)["losses"], rel=1e-6)
    assert labels["loss"] == pytest.approx(evaluate(ours / "finetuned", device="cpu", **data)["loss"], rel=1e-6)


@pytest.mark.slow
def test_vectors_are_taught_as_by_one(runs):
    ours, alone = (folder / "vectors" for folder in (runs["folder"], runs["folder"] / "alone"))
    require_alike(ours, alone, 2e-4)
    assert [Run(run).environment["processes"] for run in (ours, alone)] == [2, 1]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "kind", "_"), DIVIDED)
@pytest.mark.parametrize("place", ["shards", "divided"])
def test_divided_weights_are_written_whole(place, name, kind, _, runs):
    """Also where one process goes on from the checkpoint of several that have divided them."""
    tolerance = 5e-4 if kind == "adafactor" else 5e-5
    require_alike(runs["folder"] / f"{place}-{name}", runs["folder"] / "alone" / f"shards-{name}", tolerance)


@pytest.mark.slow
def test_texts_and_pairs_are_scored_as_by_one_to_the_last_bit(runs):
    """The batches are those of one process, and each is read by one of several."""
    for (run, options), found in list(zip(runs["asked"], runs["evaluations"], strict=True))[2:]:
        assert found == evaluate(runs["folder"] / run, device="cpu", **options)


@pytest.mark.slow
@pytest.mark.parametrize("out", ["writing", "writing-divided"])
def test_texts_are_written_as_by_one(out, runs):
    ours, alone = runs["folder"] / out, runs["folder"] / "alone" / "writing"
    require_alike(ours, alone, 2e-4)
    one, other = (read_lines(run / "predictions.jsonl") for run in (ours, alone))
    assert [line["prediction"] for line in one] == [line["prediction"] for line in other]
    assert [line["loss"] for line in one] == pytest.approx([line["loss"] for line in other], rel=1e-3)
