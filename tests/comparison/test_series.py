"""Curves over labels and budgets: crossings, and from where pre-training gains."""

import numpy as np
import pytest
from report_pages import HOSTILE, charts_of, page_of
from synthetic_results import make_results

from bakeoff.comparison.planning.asking import Asking
from bakeoff.comparison.planning.plan import Plan
from bakeoff.comparison.reporting.findings import findings
from bakeoff.comparison.reporting.series_sentences import series_sentences
from bakeoff.comparison.results import Results
from bakeoff.comparison.statistics.groups import Group
from bakeoff.comparison.statistics.noise import LEVEL
from bakeoff.comparison.statistics.pairs import all_pairs, describe, gains
from bakeoff.comparison.statistics.questions import decide
from bakeoff.comparison.statistics.series import SeriesPoint, series
from bakeoff.errors import UserError

ROWS, SEEDS = 1500, 5


def group(probability, random, hardness):
    right = [((hardness < probability) ^ (random.random(ROWS) < 0.02)).astype(float) for _ in range(SEEDS)]
    return Group.of({seed: [(float(each.mean()), each)] for seed, each in enumerate(right)}, None, 1.0)


def point(at, pretrained, scratch=None, seed=0, turned=False):
    """A point at which recipes reach these shares of right answers, or of mistakes if `turned`."""
    random = np.random.default_rng([seed, int(at)])
    hardness = random.random(ROWS)
    made = [
        {label: group(1 - share if turned else share, random, hardness) for label, share in (shares or {}).items()}
        for shares in (pretrained, scratch)
    ]
    spreads = [{label: describe(each) for label, each in those.items()} for those in made]
    differences = {"pairs": all_pairs(made[0], turned), "gains": gains(*made)}
    return SeriesPoint(
        at=at, name=f"{at} rows", task=f"TREC, {at} rows", pretrained=spreads[0], scratch=spreads[1], **differences
    )


def test_where_no_budget_is_shown_to_pay_the_sentence_does_not_begin_with_one():
    points = []
    for at, gained in ((10, -0.02), (100, 0.02)):
        made = point(at, {"a": 0.7 + gained}, {"a": 0.7})
        unsure = {"difference": gained, "interval": (gained - 0.05, gained + 0.05), "p": 0.3}
        gain = made.gains["a"].model_copy(update=unsure)
        points.append(made.model_copy(update={"gains": {"a": gain}}))
    made = series("TREC", "budget", points, False)
    (even,) = made.break_even
    assert even.estimate is not None
    assert even.interval[1] is None
    (said,) = series_sentences(make_results(), made)
    assert said.startswith("On TREC, it has not been shown that pre-training of “a” gains with any of these budgets")
    assert "by the means alone it gains above" in said


def test_recipes_that_never_gain_from_pre_training_are_named_in_one_sentence():
    made = [point(at, {"a": 0.7, "b": 0.7}, {"a": 0.7, "b": 0.7}) for at in (10, 100)]
    results = make_results(tasks=("TREC, 10 rows", "TREC, 100 rows"))
    said = [each for each in series_sentences(results, series("TREC", "rows", made, False)) if "no gain" in each]
    assert said == [
        "On TREC, no gain of “a” and “b” from pre-training could be shown with any number of rows, all of them tested "
        "together."
    ]


def test_a_gain_that_only_its_own_point_shows_is_said_to_be_lost_by_the_correction_for_all():
    """The section on gains shows it by the correction of that point, and would be contradicted."""
    points = []
    for at, gained, p in ((10, 0.0, 0.9), (30, 0.01, 0.5), (100, 0.05, 0.03)):
        made = point(at, {"a": 0.7 + gained}, {"a": 0.7})
        seen = {"difference": gained, "interval": (gained - 0.04, gained + 0.04), "p": p}
        points.append(made.model_copy(update={"gains": {"a": made.gains["a"].model_copy(update=seen)}}))
    made = series("TREC", "budget", points, False)
    assert not any(each.gains["a"].real for each in made.points)
    (said,) = series_sentences(make_results(), made)
    assert said.endswith("no gain exceeds the noise after the correction for all of these budgets.")


def test_what_would_decide_a_point_is_said_for_the_correction_of_all_points():
    points = [point(at, {"a": 0.7, "b": 0.7}) for at in (10, 100, 1000)]
    made = series("TREC", "rows", points, False)
    for alone, together in zip(points, made.points, strict=True):
        (one,), (other,) = alone.pairs, together.pairs
        assert one.verdict == other.verdict == "undecided"
        assert other.deciding.detectable == pytest.approx(other.noise.quantile(LEVEL / 3))
        assert other.deciding.detectable > one.deciding.detectable


def test_what_was_decided_at_its_point_alone_may_be_undecided_among_all_and_says_what_would_decide_it():
    clear, *others = (point(at, {"a": 0.7, "b": 0.7}) for at in (10, 100, 1000))
    (pair,) = clear.pairs
    value = pair.noise.quantile(0.03)
    (alone,) = decide([pair.model_copy(update={"difference": value, "p": pair.noise.p(value)})])
    assert (alone.verdict, alone.deciding) == ("better", None)
    first = series("TREC", "rows", [clear.model_copy(update={"pairs": [alone]}), *others], False).points[0].pairs[0]
    assert first.verdict == "undecided"
    assert first.deciding.target == pytest.approx(value)
    assert first.deciding.detectable > value


def test_two_are_equivalent_at_a_point_after_the_correction_for_all_points():
    made = {}
    for at in (10, 100, 1000):
        random = np.random.default_rng(at)
        hardness = random.random(ROWS)
        groups = {label: group(share, random, hardness) for label, share in (("a", 0.7), ("b", 0.7))}
        made[at] = (
            {label: describe(each) for label, each in groups.items()},
            all_pairs(groups, asking=Asking(margin=0.02)),
        )
    points = [
        SeriesPoint(at=at, name=f"{at} rows", task="TREC", pretrained=spreads, pairs=pairs)
        for at, (spreads, pairs) in made.items()
    ]
    together = [each.pairs[0] for each in series("TREC", "rows", points, False).points]
    alone = [pairs[0].equivalence_p for _, pairs in made.values()]
    by_size = sorted(range(3), key=lambda k: alone[k])
    expected = np.maximum.accumulate([min(1.0, (3 - place) * alone[k]) for place, k in enumerate(by_size)])
    assert [together[k].equivalence_p for k in by_size] == pytest.approx(expected)
    assert all((each.verdict == "equivalent") == (each.equivalence_p < LEVEL) for each in together)


@pytest.mark.parametrize("turned", [False, True])
def test_two_recipes_cross_where_each_is_ahead_beyond_the_noise(turned):
    shares = {10: (0.6, 0.5), 100: (0.7, 0.7), 1000: (0.75, 0.85), 3000: (0.8, 0.9)}
    points = [point(at, {"a": a, "b": b}, turned=turned) for at, (a, b) in reversed(shares.items())]
    made = series("TREC", "rows", points, turned)
    assert [each.at for each in made.points] == [*shares]
    (crossing,) = made.crossings
    assert (crossing.first, crossing.second, crossing.after, crossing.before) == ("a", "b", 10, 1000)
    assert [[(pair.first, pair.second) for pair in each.pairs] for each in made.points] == [[("a", "b")]] * 4
    assert made.break_even == []
    none = [point(at, {"a": 0.7, "b": 0.6}) for at in (10, 100)]
    assert series("TREC", "rows", none, False).crossings == []


def test_all_points_are_one_family():
    points = [point(at, {"a": 0.7, "b": 0.65}) for at in (10, 100, 1000)]
    alone = [pair for each in points for pair in each.pairs]
    together = [pair for each in series("TREC", "rows", points, False).points for pair in each.pairs]
    assert all(many.adjusted_p >= one.adjusted_p for one, many in zip(alone, together, strict=True))
    assert min(many.adjusted_p / one.p for one, many in zip(alone, together, strict=True) if one.p) >= 1
    assert max(many.adjusted_p / one.p for one, many in zip(alone, together, strict=True)) == pytest.approx(3)


@pytest.mark.parametrize("turned", [False, True])
def test_pre_training_pays_from_a_place_with_its_interval(turned):
    shares = {10: 0.5, 100: 0.55, 1000: 0.65, 10_000: 0.8}
    points = [point(at, {"a": share}, {"a": 0.6}, turned=turned) for at, share in shares.items()]
    (even,) = series("TREC", "budget", points, turned).break_even
    assert even.recipe == "a"
    assert even.real_from == 1000
    assert 200 < even.estimate < 500  # halfway between 100 and 1,000 on the logarithm
    low, high = even.interval
    assert 100 < low < even.estimate < high < 1000
    (always,) = series("TREC", "budget", points[2:], turned).break_even
    assert (always.estimate, always.interval[0]) == (1000, None)
    (never,) = series("TREC", "budget", points[:2], turned).break_even
    assert (never.real_from, never.estimate, never.interval[1]) == (None, None, None)


def curve_results(names=None):
    results = make_results(names=names, tasks=("TREC, 100 rows", "TREC, all rows"), rows=400)
    points = [SeriesPoint.of(at, f"{at} rows", each) for at, each in zip((100, 2000), results.analyses, strict=True)]
    return results.model_copy(update={"series": [series(names[2] if names else "TREC", "rows", points, False)]})


def test_sentences_and_a_chart_of_a_curve(tmp_path):
    details = findings(curve_results()).details
    assert "On TREC, from 100 rows to 2000 rows, no lead changes to another recipe beyond the noise." in details
    assert any(each.startswith("On TREC, pre-training gains for conv-light-encoder-tiny, beyond") for each in details)
    hostile = curve_results(HOSTILE)
    hostile.write_json(tmp_path / "results.json")
    assert Results.read(tmp_path / "results.json") == hostile
    page = page_of(hostile, tmp_path)
    assert "How scores grow with labels" in page.text
    assert page.tags.count("script") == 3
    assert "rows-1" in charts_of(page)
    assert (tmp_path / "figures/rows-1.svg").is_file()


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "tasks.0.train_rows: a number of rows at least is wanted"),
        ([100, 0], "tasks.0.train_rows: a number of rows is wanted, or `all`, not 0"),
        ([100, "most"], "tasks.0.train_rows: a number of rows is wanted, or `all`, not 'most'"),
        ([5, 5], "tasks.0.train_rows: 5 stands there twice"),
    ],
)
def test_what_is_no_number_of_rows(rows, message):
    task = {"name": "TREC", "train": "a.tsv", "text_column": "text", "label_column": "label", "train_rows": rows}
    with pytest.raises(UserError) as error:
        Plan.parse({"corpus": "corpus", "budget": "steps=5", "tasks": [task], "recipes": ["gpt-tiny"]}, "plan.yaml")
    assert message in str(error.value)
