"""Where memory is short on one of several processes, micro-batches become smaller on all of them."""

import pytest
from tests.conftest import shrink, without_dropout
from tests.distributed.pair import run_of
from tests.distributed.test_pairs import PLAIN, ended, pretraining, require_alike, started

from bakeoff.runs.run import Run

SHORT = [
    ("bert-tiny", "pass", 0),
    ("bert-tiny", "pass", 5),
    ("transformer-xl-tiny", "pass", 4),
    ("bert-tiny", "move", 0),
    ("gpt-tiny", "move", 3),
]
"""Recipes, and where and from which time on one of two processes runs out of memory."""


def asked(name, corpus, out, place, number, size="auto", **options):
    """A training; where some steps are taken in larger micro-batches, it drops nothing out."""
    recipe = shrink(name, **{**PLAIN, "training.micro_batch": size})
    recipe = without_dropout(recipe) if place == "pass" and number else recipe
    planned = {**pretraining(name, corpus, out, options), "recipe": recipe.model_dump(mode="json")}
    return {**planned, "short": [place, number]} if size == "auto" else planned


@pytest.fixture(scope="module")
def runs(corpus, tmp_path_factory):
    """The folder of trainings by two processes; `alone` in it has them by one, in the smaller micro-batches."""
    folder = tmp_path_factory.mktemp("short")
    outs = [f"{name}-{index}" for index, (name, *_) in enumerate(SHORT)]
    processes = started(
        folder, runs=[asked(name, corpus, out, *short) for (name, *short), out in zip(SHORT, outs, strict=True)]
    )
    (folder / "alone").mkdir()
    for (name, *short), out in zip(SHORT, outs, strict=True):
        run_of(folder / "alone", asked(name, corpus, out, *short, size=1))
    ended(processes, folder)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(("number", "name"), [(number, each[0]) for number, each in enumerate(SHORT)])
def test_memory_that_is_short_on_one_makes_micro_batches_smaller_on_all(number, name, runs):
    ours, alone = (place / f"{name}-{number}" for place in (runs, runs / "alone"))
    require_alike(ours, alone)
    (change,) = Run(ours).environment["micro_batches"]
    assert change["micro_batch"] == 1
    assert (change["from_step"] > 0) == (SHORT[number][1:] in [("pass", 5), ("pass", 4)])


@pytest.mark.slow
def test_where_others_wait_all_end_and_go_on_from_the_checkpoint(corpus, tmp_path):
    """Of weights that are divided each process gathers its part in the middle of a pass of another."""
    place = "pass", 3
    short = asked("bert-tiny", corpus, "short", *place, shard=True)
    processes = started(tmp_path, runs=[short])
    complaints = [process.communicate(timeout=100)[1] for process in processes]
    assert sorted(process.returncode for process in processes) == [1, 2]
    (line,) = [line for text in complaints for line in text.splitlines() if "ran out of memory" in line]
    assert "micro-batches of 1 row in place of 2 rows from step 0 on; others wait for this process" in line
    run_of(tmp_path, {**asked("bert-tiny", corpus, "short", *place, resume=True), "short": ["pass", 1000]})
    run_of(tmp_path, asked("bert-tiny", corpus, "small", *place, size=1))
    require_alike(tmp_path / "short", tmp_path / "small")
