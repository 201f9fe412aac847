"""Questions over gains, orders and tasks, against weighted sums that are made by hand."""

import numpy as np
import pytest
from scipy import stats
from synthetic_results import make_results

from bakeoff.comparison.facts import TaskFacts
from bakeoff.comparison.planning.asking import Asking
from bakeoff.comparison.reporting import family_findings
from bakeoff.comparison.reporting.family_findings import family_sentences, of_task
from bakeoff.comparison.statistics.families import TaskGroups, gain_pairs, interactions, over_tasks, trends
from bakeoff.comparison.statistics.groups import Group, moderate, weighted
from bakeoff.comparison.statistics.pairs import all_pairs

ROWS, SEEDS = 400, 4


def recipes(random, skills, *, rows=ROWS, seeds=SEEDS, reach=1.0):
    """Groups of right and wrong answers; rows are as hard for all."""
    hard = random.normal(size=rows)
    made = {}
    for label, skill in skills.items():
        right = hard + random.normal(0, 0.7, (seeds, rows)) + random.normal(0, 0.03, (seeds, 1)) < skill
        runs = {seed: [(each.mean(), each.astype(float))] for seed, each in enumerate(right)}
        made[label] = Group.of(runs, None, reach)
    return made


def task(name, unit="%", lower=False):
    return TaskFacts(
        name=name,
        metric="m",
        metric_title="metric",
        unit=unit,
        lower_is_better=lower,
        classes=2,
        rows={"test": ROWS},
        files={},
    )


def test_who_gains_more_from_pre_training():
    random = np.random.default_rng(0)
    scratch = recipes(random, {"a": 0.0, "b": 0.0, "c": 0.0})
    trained = recipes(random, {"a": 1.0, "b": 0.3, "c": 0.3})
    found = gain_pairs(trained, scratch, False, Asking())
    gain = {label: trained[label].mean - scratch[label].mean for label in "abc"}
    assert {(each.first, each.second) for each in found if each.real} == {("a", "b"), ("a", "c")}
    for each in found:
        assert each.difference == pytest.approx(gain[each.first] - gain[each.second])
        assert each.difference >= 0
    against = gain_pairs(trained, scratch, False, Asking(baseline="c"))
    assert (against[0].first, against[0].second) == ("a", "c")
    assert len(against) == 2


def test_recipes_from_scratch_have_verdicts_of_their_own(monkeypatch):
    """Pre-training may hide what random weights show, and the other way round."""
    random = np.random.default_rng(6)
    trained = recipes(random, {"a": 1.0, "b": 1.0, "c": 1.0})
    scratch = recipes(random, {"a": 0.0, "b": 0.8, "c": 0.0})
    tasks = [TaskGroups(task(name), trained, scratch) for name in ("one", "other")]
    found = over_tasks(tasks, {}, Asking())
    assert not any(each.real for each in found.pairs)
    assert {(each.first, each.second) for each in found.scratch_pairs if each.real} == {("b", "a"), ("b", "c")}
    for each in found.scratch_pairs:
        assert each.difference == pytest.approx(scratch[each.first].mean - scratch[each.second].mean)
    results = make_results(names=["a", "b", "c"])
    (first, *others) = results.analyses
    first = first.model_copy(update={"scratch_pairs": found.scratch_pairs})
    whole = results.model_copy(update={"analyses": [first, *others], "over_tasks": found})
    told = [each for each in family_sentences(whole) if each.startswith("From scratch, ")]
    size = 100 * (scratch["b"].mean - scratch["a"].mean)
    assert any(f"“b” is ahead of “a” on SST-2 by {size:.1f} points, beyond the noise" in each for each in told)
    assert sum("“b” is ahead of" in each for each in told) == len(told) == 4
    monkeypatch.setattr(family_findings, "MOST", 1)
    assert "From scratch, 1 more difference on SST-2 exceeds the noise." in [*family_sentences(whole)]
    monkeypatch.setattr(family_findings, "MOST", 0)
    assert "From scratch, 2 more differences on SST-2 exceed the noise." in [*family_sentences(whole)]
    assert "Difference of recipes from scratch" in "".join(of_task(results, first))
    one_model = all_pairs(dict.fromkeys("abc", scratch["a"]))
    assert {each.verdict for each in one_model} == {"identical"}
    first = first.model_copy(update={"scratch_pairs": one_model})
    assert "Difference of recipes from scratch" not in "".join(of_task(results, first))


def test_a_steady_rise_is_seen_where_no_neighbours_differ():
    skills = dict(zip("abcde", np.linspace(0, 0.45, 5), strict=True))
    groups = recipes(np.random.default_rng(1), skills, rows=600)
    (trend,) = trends(groups, {"width": "abcde"}, Asking()).values()
    slope = np.polyfit(range(5), [groups[label].mean for label in "abcde"], 1)[0]
    assert trend.difference == pytest.approx(4 * slope)
    assert (trend.first, trend.second) == ("e", "a")
    assert trend.real
    neighbours = {("b", "a"), ("c", "b"), ("d", "c"), ("e", "d")}
    assert not any(each.real for each in all_pairs(groups) if (each.first, each.second) in neighbours)
    back = trends(groups, {"width": "edcba"}, Asking())["width"]
    assert back.difference == pytest.approx(-trend.difference)
    assert back.p == pytest.approx(trend.p)
    assert trends({label: groups[label] for label in "ab"}, {"width": "abcde"}, Asking()) == {}


def test_all_tasks_together_are_the_mean_seed_by_seed():
    random = np.random.default_rng(2)
    one, other = (recipes(random, {"a": 0.6, "b": 0.4, "c": 0.2}) for _ in range(2))
    errors = recipes(random, {"a": 0.1, "b": 0.2, "c": 0.3}, reach=None)
    tasks = [
        TaskGroups(task("one"), one, {}),
        TaskGroups(task("other"), other, {}),
        TaskGroups(task("errors", "", True), errors, {}),
    ]
    found = over_tasks(tasks, {"order": "abc"}, Asking())
    for label in "abc":
        expected = {seed: (one[label].scores[seed] + other[label].scores[seed]) / 2 for seed in range(SEEDS)}
        assert found.pretrained[label].seeds == pytest.approx(expected)
    alone = [all_pairs(each)[0] for each in (one, other)]
    width = [each.interval[1] - each.interval[0] for each in alone]
    assert found.pairs[0].interval[1] - found.pairs[0].interval[0] < min(width)
    assert found.trends["order"].real
    assert over_tasks(tasks[:1], {}, Asking()) is None
    assert over_tasks(tasks[1:], {}, Asking()) is None


def answered(rows, texts, clusters=None):
    """Two recipes' groups, from right or wrong of each seed and row."""
    return {
        label: Group.of({seed: [(row.mean(), row)] for seed, row in enumerate(right)}, clusters, 1.0, texts)
        for label, right in rows.items()
    }


def over_both(one, other):
    """The first pair over two tasks."""
    return over_tasks([TaskGroups(task("one"), one, {}), TaskGroups(task("other"), other, {})], {}, Asking()).pairs[0]


@pytest.mark.parametrize("clustered", [False, True])
def test_a_task_twice_says_as_much_as_once(clustered):
    """Two columns of labels of one table have the same test rows: other rows would change both alike."""
    random = np.random.default_rng(11)
    rows = {label: (random.random((5, 60)) < share).astype(float) for label, share in (("a", 0.7), ("b", 0.5))}
    texts, order = range(60), random.permutation(60)
    clusters = np.arange(60) // 3 if clustered else None
    one = answered(rows, texts, clusters)
    (alone,) = all_pairs(one)
    again = answered({a: b[:, order] for a, b in rows.items()}, order.tolist(), clusters[order] if clustered else None)
    for other in (one, again):
        both = over_both(one, other)
        assert both.difference == pytest.approx(alone.difference)
        assert both.interval == pytest.approx(alone.interval, rel=0.02 if clustered else 1e-6)
        assert both.p == pytest.approx(alone.p, rel=0.1 if clustered else 1e-6)
    apart = over_both(one, answered(rows, range(60, 120), clusters))
    assert apart.interval[0] > alone.interval[0] + 0.01


def test_tasks_that_share_some_texts_lie_between():
    random = np.random.default_rng(12)
    fixed = {label: random.random(400) < share for label, share in (("a", 0.7), ("b", 0.5))}

    def of(first):
        """The answers to 200 of the 400 texts, of which each seed draws one in ten anew."""
        anew = random.random((5, 200)) < 0.1
        rows = {label: np.where(anew, anew, right[first : first + 200]).astype(float) for label, right in fixed.items()}
        return answered(rows, range(first, first + 200))

    widths = []
    for shared in (200, 100, 0):
        both = over_both(of(0), of(200 - shared))
        widths.append(both.interval[1] - both.interval[0])
    same, half, none = widths
    assert same > half + 0.01 > none + 0.02


def test_a_recipe_that_is_worse_on_one_of_two_tasks_that_share_texts_is_no_less_sure():
    """A constant that all of its rows lose says nothing of how unlike rows are."""
    random = np.random.default_rng(15)
    one, other = ({label: random.random((5, 60)) for label in "ab"} for _ in range(2))
    widths = []
    for lost in (0.0, 0.4):
        worse = {"a": other["a"] - lost, "b": other["b"]}
        interval = over_both(answered(one, range(60)), answered(worse, range(30, 90))).interval
        widths.append(interval[1] - interval[0])
    assert widths[0] == pytest.approx(widths[1])


def test_scores_of_tasks_that_share_texts_are_their_mean_whatever_their_sizes():
    random = np.random.default_rng(13)
    sizes = {"one": 90, "other": 30}
    groups = [
        answered({label: (random.random((4, size)) < 0.6).astype(float) for label in "ab"}, range(size))
        for size in sizes.values()
    ]
    pooled = weighted([(0.5, groups[0]["a"]), (0.5, groups[1]["a"])])
    (answers,) = pooled.answers
    assert answers.by_seed.mean(1) == pytest.approx(list(pooled.scores.values()))
    assert answers.clusters.max() + 1 == 90
    assert np.bincount(answers.clusters).tolist() == [2] * 30 + [1] * 60
    assert answers.reach == pytest.approx(2.0)  # a row of the other task moves the mean as two of this one


def test_equal_recipes_on_two_columns_of_one_table_are_rarely_told_apart():
    """Each has its rows that it gets right, in both columns alike, and draws one in twenty anew in each seed."""
    random, claims = np.random.default_rng(14), 0
    for _ in range(150):
        fixed = {label: random.random(200) < 0.6 for label in "ab"}
        one, other = (
            answered(
                {
                    label: np.where(random.random((3, 200)) < 0.05, random.random((3, 200)) < 0.6, right).astype(float)
                    for label, right in fixed.items()
                },
                range(200),
            )
            for _ in range(2)
        )
        claims += over_both(one, other).real
    assert claims <= 12  # of 150; 7.5 are expected, and were 20 with the rows of each taken for others


def test_less_of_an_error_in_percent_is_more_over_all_tasks_and_between_two():
    random = np.random.default_rng(7)
    score, error = (recipes(random, skills) for skills in ({"a": 1.0, "b": 0.0}, {"a": 0.0, "b": 1.0}))
    tasks = [TaskGroups(task("score"), score, {}), TaskGroups(task("error", lower=True), error, {})]
    (pair,) = over_tasks(tasks, {}, Asking()).pairs
    apart = [g["a"].mean - g["b"].mean for g in (score, error)]
    assert (pair.first, pair.second, pair.real) == ("a", "b", True)
    assert pair.difference == pytest.approx((apart[0] - apart[1]) / 2)
    (between,) = interactions(tasks, Asking())
    sign = 1 if between.first == "a" else -1
    assert between.difference == pytest.approx(sign * (apart[0] + apart[1]))
    assert not between.real  # ahead on both tasks alike


def test_a_recipe_that_is_good_on_one_task_alone():
    random = np.random.default_rng(3)
    one = recipes(random, {"a": 1.0, "b": 0.0, "c": 0.0})
    other = recipes(random, {"a": 0.0, "b": 0.0, "c": 0.0})
    found = interactions([TaskGroups(task("one"), one, {}), TaskGroups(task("other"), other, {})], Asking())
    assert {(each.first, each.second) for each in found if each.real} == {("a", "b"), ("a", "c")}
    assert {(each.task, each.other) for each in found} == {("one", "other")}
    first = found[0]
    apart = [g[first.first].mean - g[first.second].mean for g in (one, other)]
    assert first.difference == pytest.approx(apart[0] - apart[1])


def test_a_task_that_is_there_twice_changes_nothing_but_rows():
    """The mean over a task and itself is the task, whose rows then count twice, as those of two tasks would."""
    groups = recipes(np.random.default_rng(4), {"a": 0.6, "b": 0.4})
    twice = over_tasks([TaskGroups(task("one"), groups, {}), TaskGroups(task("two"), groups, {})], {}, Asking())
    (alone,) = all_pairs(groups)
    assert twice.pairs[0].difference == pytest.approx(alone.difference)
    assert twice.pairs[0].p <= alone.p


@pytest.mark.parametrize(
    "family", ["gains", "interactions", *(pytest.param(each, marks=pytest.mark.slow) for each in ("over", "trend"))]
)
def test_no_family_claims_too_much(family):
    random, repeats, said = np.random.default_rng(5), 120, 0
    for _ in range(repeats):
        tasks = [
            TaskGroups(
                task(str(number)),
                *(moderate(recipes(random, dict.fromkeys("abc", 0.3), rows=150, seeds=3)) for _ in range(2)),
            )
            for number in range(2)
        ]
        if family == "gains":
            found = gain_pairs(tasks[0].pretrained, tasks[0].scratch, False, Asking())
        elif family == "interactions":
            found = interactions(tasks, Asking())
        else:
            over = over_tasks(tasks, {"order": "abc"}, Asking())
            found = over.pairs if family == "over" else over.trends.values()
        said += any(each.real for each in found)
    assert said <= stats.binom.ppf(0.999, repeats, 0.05)
