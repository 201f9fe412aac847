"""Main effects and interactions of grids, against worlds of which both are known."""

import itertools

import numpy as np
import pytest
from synthetic_results import make_results

from bakeoff.comparison.planning.asking import Asking
from bakeoff.comparison.planning.grid import GridFacts
from bakeoff.comparison.reporting.factor_sentences import factor_sentences
from bakeoff.comparison.reporting.measures import ShownMetric
from bakeoff.comparison.statistics.factors import analyse_factors
from bakeoff.comparison.statistics.groups import Answers, Group
from bakeoff.comparison.statistics.pairs import all_pairs, difference
from bakeoff.comparison.task_analysis import Analysis

FACTORS = {"share": ["none", "all"], "width": ["64", "128", "256"]}
ROWS, SEEDS = 400, 4


def grid(factors):
    cells = [dict(zip(factors, levels, strict=True)) for levels in itertools.product(*factors.values())]
    return GridFacts(name="grid", factors=factors, cells={" ".join(cell.values()): cell for cell in cells})


def groups(facts, probability, seed=0, without=()):
    """Right and wrong answers of every cell; rows are as hard for all of them."""
    random = np.random.default_rng(seed)
    hardness = random.random(ROWS)
    made = {}
    for label, levels in facts.cells.items():
        right = {number: (hardness < probability(levels)) ^ (random.random(ROWS) < 0.05) for number in range(SEEDS)}
        runs = {number: [(float(each.mean()), each.astype(float))] for number, each in right.items()}
        made[label] = Group.of(runs, None, 1.0)
    return {label: group for label, group in made.items() if label not in without}


def test_a_factor_of_two_levels_alone_is_the_difference_of_two_recipes():
    facts = grid({"share": ["none", "all"]})
    both = groups(facts, lambda levels: 0.8 if levels["share"] == "none" else 0.6)
    analysis = analyse_factors(facts, both)
    (effect,) = analysis.effects
    plain = difference("none", both["none"], "all", both["all"])
    assert (effect.difference.first, effect.difference.second) == ("share none", "share all")
    for name in ("difference", "relative"):
        assert getattr(effect.difference, name) == pytest.approx(getattr(plain, name))
    assert effect.difference.interval == pytest.approx(plain.interval)
    assert effect.difference.real
    assert analysis.interactions == []
    assert analysis.levels == {"share": {label: pytest.approx(group.mean) for label, group in both.items()}}


def test_effects_that_add_up_are_main_effects_without_interactions():
    facts = grid(FACTORS)
    width = {"64": 0.0, "128": 0.1, "256": 0.2}
    analysis = analyse_factors(facts, groups(facts, lambda x: 0.4 + 0.3 * (x["share"] == "none") + width[x["width"]]))
    assert [each.factors for each in analysis.effects] == [["share"], *[["width"]] * 3]
    assert [each.difference.second for each in analysis.effects[1:]] == ["width 128", "width 64", "width 64"]
    for effect, planted in zip(analysis.effects, (0.3, 0.1, 0.2, 0.1), strict=True):
        assert effect.difference.difference == pytest.approx(0.9 * planted, abs=0.03)
        assert effect.difference.real
    assert len(analysis.interactions) == 3
    assert not any(each.difference.real for each in analysis.interactions)


def test_an_effect_at_one_level_of_another_factor_is_an_interaction():
    facts = grid(FACTORS)
    scores = groups(facts, lambda levels: 0.5 + 0.4 * (levels == {"share": "none", "width": "256"}))
    analysis = analyse_factors(facts, scores)
    real = [each.difference for each in analysis.interactions if each.difference.real]
    assert {(each.first, each.second) for each in real} == {
        ("share none − all at width 64", "at width 256"),
        ("share none − all at width 128", "at width 256"),
    }
    means = {label: group.mean for label, group in scores.items()}
    planted = means["none 64"] - means["all 64"] - (means["none 256"] - means["all 256"])
    assert real[0].difference == pytest.approx(planted)


def test_a_missing_cell_mixes_no_other_factor_into_a_difference():
    facts = grid(FACTORS)

    def by_width(levels):
        return {"64": 0.3, "128": 0.6, "256": 0.9}[levels["width"]]

    analysis = analyse_factors(facts, groups(facts, by_width, without=("none 256",)))
    share = next(each for each in analysis.effects if each.factors == ["share"])
    assert abs(share.difference.difference) < 0.03
    assert not share.difference.real
    assert abs(analysis.levels["share"]["none"] - analysis.levels["share"]["all"]) < 0.03
    assert len(analysis.interactions) == 1
    alone = analyse_factors(facts, groups(facts, by_width, without=("none 64", "none 128", "none 256")))
    assert {each.factors[0] for each in alone.effects} == {"width"}
    assert alone.levels["share"] == {}
    said = [
        *factor_sentences(ShownMetric(make_results().tasks[0]), Analysis(task="mood", pretrained={}, factors=[alone]))
    ]
    assert not any("between the levels of" in each for each in said)  # those of the width differ
    assert any("no two levels of “share” can be compared: too few of the recipes" in each for each in said)


def test_what_is_less_than_all_seeds_and_lower_is_better():
    facts = grid(FACTORS)
    scores = groups(facts, lambda levels: 0.8 if levels["share"] == "none" else 0.6)
    errors = analyse_factors(facts, scores, lower_is_better=True)
    assert errors.effects[0].difference.second == "share none"
    two = {
        label: Group({0: 0.5, 1: 0.6}, (Answers(group.answers[0].by_seed[:2], None, 1.0),))
        for label, group in scores.items()
    }
    assert all(each.difference.real is None for each in analyse_factors(facts, two).effects)


def test_with_a_margin_levels_and_interactions_are_equivalent_as_recipes_are():
    alone, margin = grid({"share": ["none", "all"]}), Asking(margin=0.1)
    both = groups(alone, lambda levels: 0.7)
    (effect,) = analyse_factors(alone, both, asking=margin).effects
    (pair,) = all_pairs(both, asking=margin)
    assert effect.difference.verdict == pair.verdict == "equivalent"
    assert effect.difference.equivalence_p == pytest.approx(pair.equivalence_p)
    facts = grid({**FACTORS, "norm": ["pre", "post"]})
    # A difference that is real and within the margin, one beyond it, and one of which neither is known.
    scores = groups(facts, lambda x: 0.4 + 0.05 * (x["share"] == "none") + 0.3 * (x["width"] == "64"))
    analysis = analyse_factors(facts, scores, asking=margin)
    verdicts = {}
    for each in analysis.effects:
        verdicts.setdefault(each.factors[0], set()).add(each.difference.verdict)
    assert verdicts == {"share": {"equivalent"}, "width": {"better", "equivalent"}, "norm": {"equivalent"}}
    assert {tuple(each.factors) for each in analysis.interactions} == {
        ("share", "width"),
        ("share", "norm"),
        ("width", "norm"),
    }
    assert {each.difference.verdict for each in analysis.interactions} == {"equivalent"}
    measure = ShownMetric(make_results().tasks[0])
    said = [*factor_sentences(measure, Analysis(task="mood", pretrained={}, factors=[analysis]))]
    assert sum("“width 64” is " in each and "beyond the noise" in each for each in said) == 2
    assert "On “mood”, the levels of “share” are equivalent: their means differ by less than 10.0 points." in said
    assert "On “mood”, what “share” does depends on “width” by less than 10.0 points." in said
    assert not any("“share none” is " in each for each in said)


THREE = {**FACTORS, "norm": ["pre", "post"]}


def test_an_effect_that_two_other_factors_make_together_is_an_interaction_of_three():
    facts = grid(THREE)
    planted = {"share": "none", "width": "256", "norm": "post"}
    scores = groups(facts, lambda levels: 0.5 + 0.4 * (levels == planted))
    analysis = analyse_factors(facts, scores)
    assert len(analysis.triples) == 3
    assert {tuple(each.factors) for each in analysis.triples} == {("share", "width", "norm")}
    found = {(each.difference.first, each.difference.second): each.difference for each in analysis.triples}
    assert {ends for ends, each in found.items() if each.real} == {
        ("share none − all at width 64 less that at 256, at norm pre", "at norm post"),
        ("share none − all at width 128 less that at 256, at norm pre", "at norm post"),
    }
    means = {label: group.mean for label, group in scores.items()}

    def by_norm(norm):
        narrow, wide = (means[f"none {width} {norm}"] - means[f"all {width} {norm}"] for width in ("64", "256"))
        return narrow - wide

    assert [*found.values()][1].difference == pytest.approx(by_norm("pre") - by_norm("post"))
    measure = ShownMetric(make_results().tasks[0])
    said = [*factor_sentences(measure, Analysis(task="mood", pretrained={}, factors=[analysis]))]
    assert any(
        "what “share” does depends on “width” and “norm” together: share none − all at width 64 less that at 256, at "
        "norm pre is "
        in each
        and "points more than at norm post, beyond the noise (95 % interval" in each
        for each in said
    )


def test_interactions_of_two_that_are_the_same_everywhere_are_none_of_three():
    facts = grid(THREE)

    def probability(levels):
        return 0.3 + 0.3 * (levels["share"] == "none" and levels["width"] == "256") + 0.2 * (levels["norm"] == "pre")

    analysis = analyse_factors(facts, groups(facts, probability), asking=Asking(margin=0.15))
    assert any(each.difference.better for each in analysis.interactions)
    assert {each.difference.verdict for each in analysis.triples} == {"equivalent"}
    measure = ShownMetric(make_results().tasks[0])
    said = [*factor_sentences(measure, Analysis(task="mood", pretrained={}, factors=[analysis]))]
    assert (
        "On “mood”, what “share” does depends on “width” and “norm” together by less than 15.0 points beyond what it "
        "does on each."
    ) in said


def test_families_are_corrected_by_themselves():
    """Each has Holm's factors for its own number of questions."""
    facts = grid(THREE)
    analysis = analyse_factors(facts, groups(facts, lambda levels: 0.5 + 0.05 * (levels["share"] == "none")))
    for family, count in ((analysis.effects, 5), (analysis.interactions, 7), (analysis.triples, 3)):
        assert len(family) == count
        smallest = min(family, key=lambda each: each.difference.p).difference
        assert smallest.adjusted_p == pytest.approx(min(1.0, count * smallest.p))


def test_of_three_factors_a_missing_cell_leaves_out_what_needs_it():
    facts = grid(THREE)
    analysis = analyse_factors(facts, groups(facts, lambda levels: 0.6, without=("none 64 pre",)))
    (only,) = analysis.triples
    assert only.difference.first == "share none − all at width 128 less that at 256, at norm pre"
    assert analyse_factors(grid(FACTORS), groups(grid(FACTORS), lambda levels: 0.6)).triples == []


@pytest.mark.parametrize("lower_is_better", [False, True])
def test_the_interval_of_a_better_level_is_above_zero(lower_is_better):
    facts = grid(FACTORS)
    analysis = analyse_factors(
        facts, groups(facts, lambda levels: 0.8 if levels["share"] == "none" else 0.5), lower_is_better
    )
    task = make_results().tasks[0].model_copy(update={"lower_is_better": lower_is_better})
    said = [*factor_sentences(ShownMetric(task), Analysis(task="mood", pretrained={}, factors=[analysis]))]
    (better,) = (each for each in said if " better than “share " in each)
    assert f"“share {'all' if lower_is_better else 'none'}” is " in better
    assert "(95 % interval +" in better
