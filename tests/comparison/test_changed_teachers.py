"""Searches and comparisons of recipes that learn from other runs."""

import shutil

import pytest
import yaml
from tests.conftest import shrink
from tests.untrained_runs import untrained, untrained_of

from bakeoff.comparison.execution import compare
from bakeoff.comparison.planning.plan import Plan
from bakeoff.comparison.running.engine import Engine
from bakeoff.comparison.running.opened import Opened
from bakeoff.errors import UserError
from bakeoff.json_files import read_json
from bakeoff.optimization.budget import Budget
from bakeoff.tuning.tune import tune


@pytest.fixture
def folder(tmp_path, corpus):
    """A recipe that learns from a run, and the plan of a comparison with it."""
    teacher = untrained("bert-tiny", corpus, tmp_path / "teacher").path
    settings = {"training.distillation": {"teachers": [str(teacher)]}, "training.precision": "float32"}
    (tmp_path / "taught.yaml").write_text(shrink("bert-tiny", **settings).to_yaml())
    plan = {"corpus": str(corpus.path), "budget": "steps=1", "seeds": 1, "device": "cpu", "recipes": ["taught.yaml"]}
    (tmp_path / "plan.yaml").write_text(yaml.safe_dump(plan))
    return tmp_path


def change_teacher(folder, corpus):
    shutil.rmtree(folder / "teacher")
    untrained_of(shrink("bert-tiny"), corpus, folder / "teacher", seed=1)


def test_a_comparison_does_not_go_on_with_a_teacher_that_has_changed(folder, corpus):
    def go(**options):
        return compare(folder / "plan.yaml", folder / "out", jobs=1, report=lambda results, path: None, **options)

    go()
    settings = folder / "out/runs/taught/seed-0/pretrain.settings.json"
    assert list(read_json(settings)["teacher"]) == [str(folder / "teacher")]
    change_teacher(folder, corpus)
    with pytest.raises(UserError, match=r"pretrain: begun with another teacher\..*teacher; restore the plan"):
        go(add_seeds=1)


def test_a_teacher_is_among_what_other_machines_have_to_see(folder):
    opened = Opened(Plan.read(folder / "plan.yaml"), folder / "out", None, Engine(), None, lambda line: None)
    assert folder / "teacher" in opened.read()


@pytest.mark.slow
def test_a_search_does_not_go_on_with_a_teacher_that_has_changed(folder, corpus):
    def go():
        options = {"trials": 1, "budget": Budget(steps=1), "jobs": 1, "device": "cpu"}
        return tune(folder / "taught.yaml", corpus.path, folder / "out", **options)

    first = go()
    assert go() == first
    change_teacher(folder, corpus)
    with pytest.raises(UserError, match=r"out: begun with another teacher\..*teacher; give the same again"):
        go()
