"""Finished comparisons that grow by seeds."""

import json

import pytest
from synthetic_results import make_results
from tests.comparison.test_execution import FakeEngine, folder, plan

from bakeoff.comparison.execution import compare
from bakeoff.comparison.reporting.cautions import cautions
from bakeoff.comparison.statistics.questions import Difference
from bakeoff.config import Config
from bakeoff.errors import Interrupted, UserError

__all__ = ["folder"]


def go(folder, engine, add_seeds=None, **values):
    settings = {"recipes": ["one", "two"], "seeds": 3, **values}
    return compare(
        plan(folder, **settings), folder / "out", engine=engine, add_seeds=add_seeds, report=lambda results, path: None
    )


def trained(engine):
    return sorted({seed for _, seed, *_ in engine.of("pretrain")})


def test_seeds_are_added_and_nothing_runs_twice(folder):
    first = go(folder, FakeEngine())
    assert first.looks == []
    engine = FakeEngine()
    grown = go(folder, engine, add_seeds=2)
    assert trained(engine) == [3, 4]
    assert grown.planned_seeds == grown.finished_seeds == [0, 1, 2, 3, 4]
    assert grown.looks == [3]
    assert any("added after verdicts had been seen with 3 seeds" in line for line in cautions(grown))
    again = FakeEngine()
    same = go(folder, again)  # the plan still says three seeds
    assert trained(again) == []
    assert same.finished_seeds == [0, 1, 2, 3, 4]
    assert same.analyses[0].pairs == grown.analyses[0].pairs
    once_more = go(folder, FakeEngine(), add_seeds=1)
    assert once_more.finished_seeds == [0, 1, 2, 3, 4, 5]
    assert once_more.looks == [3, 5]


def test_seeds_are_added_to_all_recipes(folder):
    go(folder, FakeEngine())
    with pytest.raises(UserError, match=r"^--add-seeds: all recipes .* over the same seeds; leave --only out$"):
        compare(plan(folder), folder / "out", engine=FakeEngine(), only=["one"], add_seeds=1)


def every_difference(node):
    """All differences of an analysis, whichever family they belong to."""
    if isinstance(node, Difference):
        yield node
    elif isinstance(node, Config):
        yield from every_difference([getattr(node, name) for name in type(node).model_fields])
    elif isinstance(node, list | dict):
        for each in node.values() if isinstance(node, dict) else node:
            yield from every_difference(each)


def test_a_second_look_costs_what_it_costs_by_hand_in_every_family(folder):
    grid = {"model.encoder.share": ["none", "all"], "model.dropout": [0.0, 0.1]}
    values = {"recipes": [{"recipe": "one", "grid": grid}]}
    go(folder, FakeEngine(), **values)
    grown = go(folder, FakeEngine(), add_seeds=2, **values)
    planned = plan(folder, seeds=5, **values)
    whole = compare(planned, folder / "out2", engine=FakeEngine(), report=lambda results, path: None)
    pairs = [*zip(every_difference(grown.analyses), every_difference(whole.analyses), strict=True)]
    (analysis,) = grown.analyses
    (factors,) = analysis.factors
    assert all([analysis.pairs, analysis.gains, analysis.against_baseline, factors.effects, factors.interactions])
    for looked, once in pairs:
        assert looked.p == pytest.approx(once.p)
        assert looked.adjusted_p == pytest.approx(min(1, 3 * once.adjusted_p))
    assert whole.looks == []


def test_more_seeds_in_the_plan_are_a_look_as_well(folder):
    go(folder, FakeEngine())
    grown = go(folder, FakeEngine(), seeds=5)
    assert grown.looks == [3]
    assert go(folder, FakeEngine(), seeds=5).looks == [3]


@pytest.mark.parametrize(("looks", "how"), [([3], "added"), ([3, 4], "added"), ([3, 5], "changed"), ([5], "changed")])
def test_seeds_are_added_only_where_there_were_fewer_at_every_look(looks, how):
    """Verdicts that were seen with as many seeds as now were those of other ones."""
    results = make_results(seeds=5, names=["bert-mini", "gpt-tiny"], tasks=("T",)).model_copy(update={"looks": looks})
    (said,) = (line for line in cautions(results) if "after verdicts had been seen" in line)
    assert said.startswith(f"Seeds were {how} after")


def test_two_seeds_were_no_verdict(folder):
    go(folder, FakeEngine(), seeds=2)
    assert go(folder, FakeEngine(), seeds=4).looks == []


def test_a_look_is_not_lost_with_fewer_seeds_in_between(folder):
    go(folder, FakeEngine())
    fewer = go(folder, FakeEngine(), seeds=2)
    assert not any("after verdicts had been seen" in line for line in cautions(fewer))  # it has no p-values
    more = go(folder, FakeEngine(), seeds=5)
    assert more.looks == [3]
    assert any("Seeds were added after verdicts had been seen with 3 seeds" in line for line in cautions(more))
    assert go(folder, FakeEngine(), seeds=5).looks == [3]


def test_the_same_seeds_are_no_second_look(folder):
    go(folder, FakeEngine())
    go(folder, FakeEngine(), seeds=2)
    assert go(folder, FakeEngine()).looks == []


@pytest.mark.parametrize(("seeds", "looks"), [([3, 4, 5], [3]), ([1, 2, 3, 4], [3]), (3, [])])
def test_other_seeds_are_a_look_as_well(seeds, looks, folder):
    go(folder, FakeEngine())
    assert go(folder, FakeEngine(), seeds=seeds).looks == looks
    changed = go(folder, FakeEngine(), seeds=seeds)
    assert changed.looks == looks
    how = "added" if len(changed.planned_seeds) > 3 else "changed"
    assert [f"Seeds were {how}" in line for line in cautions(changed) if "verdicts had" in line] == [True] * len(looks)


def test_fewer_seeds_than_were_seen_are_a_look_as_well(folder):
    go(folder, FakeEngine(), seeds=5)
    assert go(folder, FakeEngine(), seeds=4).looks == [5]
    assert go(folder, FakeEngine(), seeds=5).looks == [4]


def test_looks_of_an_older_version_are_counted(folder):
    go(folder, FakeEngine())
    go(folder, FakeEngine(), add_seeds=1)
    path = folder / "out" / "seeds.json"
    path.write_text(json.dumps({"added": [3], "looks": [3]}))
    (folder / "out" / "bakeoff.sha256").unlink()
    assert go(folder, FakeEngine()).looks == [3]


def test_after_an_interruption_the_same_seeds_go_on(folder):
    go(folder, FakeEngine())
    with pytest.raises(Interrupted):
        go(folder, FakeEngine(fail_at=3), add_seeds=2)
    engine = FakeEngine()
    grown = go(folder, engine, add_seeds=2)
    assert grown.finished_seeds == [0, 1, 2, 3, 4]
    assert grown.looks == [3]


def test_what_is_not_finished_does_not_grow(folder):
    with pytest.raises(UserError, match=r"--add-seeds: .*out is not finished; the same command without it goes on"):
        go(folder, FakeEngine(), add_seeds=2)
    assert not (folder / "out").exists()
    with pytest.raises(Interrupted):
        go(folder, FakeEngine(fail_at=4))
    with pytest.raises(UserError, match="is not finished"):
        go(folder, FakeEngine(), add_seeds=2)


@pytest.mark.parametrize("number", [0, -1])
def test_no_seeds_are_refused(number, folder):
    with pytest.raises(UserError, match=f"--add-seeds: {number} is below 1"):
        go(folder, FakeEngine(), add_seeds=number)


def test_seeds_without_end_are_refused(folder):
    for number in (10_001, 2**70):
        with pytest.raises(UserError, match=f"^--add-seeds: {number} are too many; give 10,000 at most$"):
            go(folder, FakeEngine(), add_seeds=number)
    go(folder, FakeEngine(), seeds=[2**63 - 2])
    with pytest.raises(UserError, match=r"^--add-seeds: seeds after 9223372036854775806 are beyond the whole numbers"):
        go(folder, FakeEngine(), add_seeds=2, seeds=[2**63 - 2])


def test_a_damaged_record_is_refused_by_its_name(folder):
    go(folder, FakeEngine())
    go(folder, FakeEngine(), add_seeds=1)
    path = folder / "out" / "seeds.json"
    assert json.loads(path.read_text()) == {"added": [3], "looks": [3], "seen": [[0, 1, 2]]}
    path.write_text(json.dumps({"added": "three"}))
    with pytest.raises(UserError, match=r"seeds\.json"):
        go(folder, FakeEngine())
