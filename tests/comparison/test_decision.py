"""Scores against costs: the Pareto front, and the cheapest recipe that cannot be told apart from the best."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from synthetic_results import as_errors, make_results

from bakeoff.comparison.latency import LatencyPlan
from bakeoff.comparison.reporting.decision import COSTS, cheapest, choices, decisions, front, milliseconds, on_front
from bakeoff.comparison.reporting.decision_section import decision_figures, decision_section
from bakeoff.comparison.reporting.measures import ShownMetric
from bakeoff.report.charts import axis_ends

POINTS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=12)


def dominates(one, other):
    return one != other and one[0] <= other[0] and one[1] >= other[1]


@given(POINTS)
def test_no_point_dominates_one_on_the_front_and_every_other_is_dominated_by_one_on_it(points):
    marks = front(points)
    of_front = [point for point, mark in zip(points, marks, strict=True) if mark]
    assert not [(one, other) for one in points for other in of_front if dominates(one, other)]
    for point, mark in zip(points, marks, strict=True):
        assert mark or any(dominates(other, point) for other in of_front)


@given(POINTS, st.integers(-3, 3), st.sampled_from([1, 10, 1000]))
def test_the_front_does_not_depend_on_units(points, shift, factor):
    assert front([(factor * cost, factor * value + shift) for cost, value in points]) == front(points)


@given(
    st.lists(st.floats(0, 1e6, allow_subnormal=False), min_size=1, max_size=5),
    st.sampled_from([0.0, -5.0]),
    st.sampled_from([1e6, 2e6]),
)
def test_axes_reach_all_values_and_nothing_that_a_value_could_not_be(values, lowest, highest):
    begin, end = axis_ends(values, lowest, highest)
    assert lowest <= begin <= min(values)
    assert max(values) <= end <= highest
    assert begin < end


@given(st.floats(-50, 50, allow_subnormal=False), st.floats(0.01, 100))
def test_an_axis_without_bounds_has_a_little_room_on_both_sides(low, span):
    begin, end = axis_ends([low, low + span])
    assert low - span < begin < low
    assert low + span < end < low + 2 * span


def level(results, *labels):
    """The results with no difference between the best recipe and those."""
    changed = []
    for analysis in results.analyses:
        best = ShownMetric.of(results, analysis.task).ranked(analysis)[0]
        pairs = [
            pair.model_copy(update={"real": pair.second not in labels}) if pair.first == best else pair
            for pair in analysis.pairs
        ]
        changed.append(analysis.model_copy(update={"pairs": pairs}))
    return results.model_copy(update={"analyses": changed})


@pytest.mark.parametrize("turned", [False, True])
def test_the_cheapest_is_one_that_cannot_be_told_apart_from_the_best(turned):
    results = level(make_results(tasks=("T",)), "gpt-tiny")
    results = as_errors(results, "T") if turned else results
    measure, those = ShownMetric.of(results, "T"), choices(results, results.analyses[0])
    scores = [measure.gain(each.score) for each in those]
    assert scores == sorted(scores, reverse=True)
    assert [each.label for each in those if each.level] == ["conv-light-encoder-tiny", "gpt-tiny"]
    latencies = {each.recipe: each.seconds for each in results.latencies}
    assert cheapest(measure, those, "latency").label == min(("conv-light-encoder-tiny", "gpt-tiny"), key=latencies.get)
    assert list(decisions(results)) == [
        "On “T”, gpt-tiny is the quickest of the recipes that cannot be told apart from the best: 2.5 ms a text, where "
        "conv-light-encoder-tiny needs 3 ms."
    ]
    (baseline,) = (each.label for each in those if not each.is_recipe)
    assert baseline in on_front(measure, those, "latency")  # by far the quickest


def test_the_best_one_may_be_the_cheapest():
    results = level(make_results(tasks=("T",)), "bert-mini").model_copy(update={"latency": LatencyPlan(batch=8)})
    assert list(decisions(results)) == [
        "On “T”, conv-light-encoder-tiny has the highest mean and is, of those that cannot be told apart from it, the "
        "quickest: 3 ms for 8 texts."
    ]
    assert list(decisions(level(results))) == []  # nothing to choose between


def test_where_recipes_are_compared_with_a_baseline_alone_none_is_the_cheapest_of_the_best():
    """Another may be as good as the best one, with which it was not compared."""
    results = level(make_results(tasks=("T",)), "bert-mini")
    (analysis,) = results.analyses
    pairs = [pair for pair in analysis.pairs if "bert-mini" in (pair.first, pair.second)]
    results = results.model_copy(update={"analyses": [analysis.model_copy(update={"pairs": pairs})]})
    those = choices(results, results.analyses[0])
    assert [each.level for each in those] == [None] * len(those)
    assert list(decisions(results)) == []
    best = [pair for pair in analysis.pairs if "conv-light-encoder-tiny" in (pair.first, pair.second)]
    results = results.model_copy(update={"analyses": [analysis.model_copy(update={"pairs": best})]})
    assert any(each.level for each in choices(results, results.analyses[0]))  # the baseline is the best one itself


def test_costs_that_differ_by_less_than_measurements_do_are_equal():
    points = [(640.0, 0.80), (642.0, 0.79), (600.0, 0.79)]
    assert front(points) == [True, False, True]
    latency, memory = (cost for cost in COSTS if cost.name in ("latency", "memory"))
    assert front(points, latency.less) == [True, False, True]
    assert front([(640.0, 0.80), (620.0, 0.79)]) == [True, True]
    assert front([(640.0, 0.80), (620.0, 0.79)], latency.less) == [True, False]
    assert front([(640.0, 0.80), (620.0, 0.80)], latency.less) == [True, True]
    for size, equal in ((20, False), (880, False), (920, True), (1040, True)):  # MiB against a recipe of 1,000
        assert front([(2**20 * 1000, 0.80), (2**20 * size, 0.80)], memory.less)[0] == equal
    assert front([(2**20 * 58, 0.80), (2**20 * 15, 0.79)], memory.less) == [True, False]
    assert front([(2**20 * 90, 0.80), (2**20 * 15, 0.79)], memory.less) == [True, True]


def test_with_a_margin_the_cheapest_is_one_that_is_shown_to_be_within_it():
    results = level(make_results(tasks=("T",)), "gpt-tiny", "bert-mini")
    (analysis,) = results.analyses
    verdicts = {"gpt-tiny": "equivalent", "bert-mini": "undecided", "albert-tiny": "better"}
    pairs = [
        pair.model_copy(update={"margin": 0.02, "verdict": verdicts[pair.second]})
        if pair.first == "conv-light-encoder-tiny"
        else pair
        for pair in analysis.pairs
    ]
    results = results.model_copy(update={"analyses": [analysis.model_copy(update={"pairs": pairs})]})
    those = choices(results, results.analyses[0])
    assert {each.label for each in those if each.level} == {"conv-light-encoder-tiny", "gpt-tiny"}
    assert list(decisions(results)) == [
        "On “T”, gpt-tiny is the quickest of the recipes that are within 2.0 points of the best: 2.5 ms a text, where "
        "conv-light-encoder-tiny needs 3 ms."
    ]
    assert "shown to be within the plan's margin" in decision_section(results, decision_figures(results))


def test_a_latency_that_hardly_differs_is_no_reason_to_choose():
    results = level(make_results(tasks=("T",)), "gpt-tiny")
    closer = [
        each.model_copy(update={"seconds": 0.003 - (each.recipe == "gpt-tiny") * 1e-4}) for each in results.latencies
    ]
    results = results.model_copy(update={"latencies": closer})
    assert list(decisions(results)) == []
    those = choices(results, results.analyses[0])
    assert cheapest(ShownMetric.of(results, "T"), those, "latency").label == "conv-light-encoder-tiny"  # the better one
    for seconds, label in ((0.00315, "gpt-tiny"), (0.003149, "conv-light-encoder-tiny")):
        apart = [
            each.model_copy(update={"seconds": 0.003 if each.recipe == "gpt-tiny" else seconds + 1e-6})
            for each in results.latencies
        ]
        those = choices(changed := results.model_copy(update={"latencies": apart}), results.analyses[0])
        assert cheapest(ShownMetric.of(changed, "T"), those, "latency").label == label


def test_nothing_is_called_enough_without_a_claim():
    results = make_results(seeds=2)
    assert list(decisions(results)) == []
    assert "<small>enough" not in decision_section(results, decision_figures(results))


def test_costs_that_are_unknown_have_no_chart_and_no_number(results):
    without = results.model_copy(update={"latencies": [], "baselines": []})
    assert {figure.name for figure in decision_figures(without)["TREC"]} == {
        "pareto-2-parameters",
        "pareto-2-memory",
        "pareto-2-training",
    }
    page = decision_section(without, decision_figures(without))
    assert page.count('<td class="weak">–</td>') == 2 * 4
    assert "Latency:" not in page
    assert [each.costs.keys() for each in choices(without, without.analyses[0])] == [
        {cost.name for cost in COSTS} - {"latency"}
    ] * 4


def test_of_many_tasks_each_has_one_chart():
    tasks = ("A", "B", "C", "D")
    figures = decision_figures(make_results(names=["one", "two"], tasks=tasks))
    assert {task: [figure.name for figure in those] for task, those in figures.items()} == {
        task: [f"pareto-{number}-latency"] for number, task in enumerate(tasks, 1)
    }


def test_where_there_is_nothing_to_choose_nothing_is_shown():
    alone = make_results(names=["one"], tasks=("A",)).model_copy(update={"baselines": []})
    assert decision_figures(alone) == {}
    assert decision_section(alone, {}) == ""
    assert list(decisions(alone)) == []


def test_names_in_the_section_are_text():
    results = make_results(names=["<b>one</b>", "two & three"], tasks=("<i>T</i>",))
    page = decision_section(results, decision_figures(results))
    assert "<b>one" not in page
    assert "<i>" not in page
    assert "&lt;b&gt;one&lt;/b&gt;" in page


@pytest.mark.parametrize(("seconds", "shown"), [(0.00012345, "0.123 ms"), (0.0123, "12.3 ms"), (1.5, "1,500 ms")])
def test_latencies_have_three_digits(seconds, shown):
    assert milliseconds(seconds) == shown


def test_memory_is_what_the_middle_one_of_the_trainings_took():
    """The first of a process loads what the others have, and what the process had before is no recipe's."""
    (entry,) = make_results(names=["bert-mini"], tasks=("T",)).recipes
    assert entry.memory == 900 * 2**20  # of an older version, which knew the whole process alone
    taken = zip(entry.runs, (70, 30, 31), strict=True)
    runs = [run.model_copy(update={"training_memory_bytes": each}) for run, each in taken]
    known = entry.model_copy(update={"runs": runs})
    assert (known.memory, known.model_copy(update={"runs": runs[:2]}).memory) == (31, 50)
    unknown = [run.model_copy(update={"peak_memory_bytes": None}) for run in entry.runs]
    assert entry.model_copy(update={"runs": unknown}).memory is None
