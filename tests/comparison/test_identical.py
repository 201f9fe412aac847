"""Recipes of which no row counts otherwise in any seed, to the last bit: identical, and equivalent if that is sound."""

import numpy as np
import pytest
from synthetic_results import as_errors, make_results

from bakeoff.comparison.planning.asking import Asking
from bakeoff.comparison.planning.grid import GridFacts
from bakeoff.comparison.reporting.cautions import cautions
from bakeoff.comparison.reporting.findings import findings
from bakeoff.comparison.reporting.latex import write_latex
from bakeoff.comparison.reporting.markdown_report import write_markdown
from bakeoff.comparison.reporting.measures import ShownMetric
from bakeoff.comparison.reporting.report import write_report
from bakeoff.comparison.reporting.terminal import print_results
from bakeoff.comparison.reporting.verdict_words import verdict
from bakeoff.comparison.results import Results
from bakeoff.comparison.statistics.against_baseline import against_baseline
from bakeoff.comparison.statistics.factors import analyse_factors
from bakeoff.comparison.statistics.families import gain_pairs, trends
from bakeoff.comparison.statistics.groups import Answers, Group, moderate
from bakeoff.comparison.statistics.pairs import all_pairs, gains
from bakeoff.comparison.statistics.questions import Question, decide, unanswered


def group(rows, reach=None):
    """A recipe whose seeds have these (S, n) contributions."""
    return Group.of({seed: [(float(row.mean()), row)] for seed, row in enumerate(np.asarray(rows))}, reach=reach)


def losses(seed, seeds=3, rows=200, level=5.5, deviation=0.04):
    random = np.random.default_rng(seed)
    return (
        level
        + random.normal(0, 0.3, rows)
        + random.normal(0, deviation, (seeds, 1))
        + random.normal(0, 0.1, (seeds, rows))
    )


@pytest.mark.parametrize("margin", [None, 0.001])
def test_losses_that_are_the_same_to_the_last_bit_are_identical_with_nothing_between_them(margin):
    rows = losses(0)
    groups = {name: group(each, 0.0) for name, each in {"a": rows, "b": rows, "c": losses(1, level=6.6)}.items()}
    found = {(pair.first, pair.second): pair for pair in all_pairs(groups, True, Asking(margin=margin))}
    same = found["a", "b"]
    assert (same.verdict, same.difference, same.interval, same.p, same.real) == (
        "identical",
        0.0,
        (0.0, 0.0),
        1.0,
        False,
    )
    assert same.deciding is None
    assert same.equivalent == (margin is not None)
    assert not same.better
    assert found["a", "c"].verdict == found["b", "c"].verdict == "better"
    nearly = group(np.nextafter(rows, np.inf), 0.0)
    (pair,) = all_pairs({"a": groups["a"], "b": nearly}, True, Asking(margin=margin))
    assert pair.verdict != "identical"


def test_what_is_said_of_others_stays_as_valid():
    """An identical pair asks nothing more of the others than any pair that is not told apart."""
    rows = losses(0)
    groups = {name: group(each, 0.0) for name, each in {"a": rows, "b": rows, "c": losses(1), "d": losses(2)}.items()}
    almost = {**groups, "b": group(rows + 1e-9 * losses(3), 0.0)}
    one, other = all_pairs(groups, True), all_pairs(almost, True)
    for pair, before in zip(one, other, strict=True):
        if {pair.first, pair.second} != {"a", "b"}:
            assert pair.adjusted_p == pytest.approx(before.adjusted_p, rel=1e-3)
            assert pair.verdict == before.verdict


@pytest.mark.parametrize(
    ("rows", "margin", "equivalent"), [(2000, 0.01, True), (300, 0.05, True), (300, 0.005, False), (5, 0.3, False)]
)
def test_rows_that_are_judged_alike_are_equivalent_if_there_are_enough_of_them(rows, margin, equivalent):
    right = (np.random.default_rng(0).random((3, rows)) < 0.8).astype(float)
    (pair,) = all_pairs({"a": group(right, 1.0), "b": group(right, 1.0)}, asking=Asking(margin=margin))
    assert (pair.verdict, pair.equivalent) == ("identical", equivalent)
    low, high = pair.interval
    assert low == pytest.approx(-high)
    assert 3 / rows < high < 8 / rows  # the rule of three: other rows may differ, though none here did


@pytest.mark.parametrize(("rows", "margin"), [(40, 0.1), (100, 0.04), (400, 0.01)])
def test_unlike_recipes_that_happen_to_be_identical_are_hardly_ever_called_equivalent(rows, margin):
    """They differ by the margin in truth, on rows that all seeds share; in at most 5 % of cases nothing shows."""
    random = np.random.default_rng(rows)
    called = 0
    for _ in range(400):
        lost = random.random(rows) < margin
        right = (random.random((3, rows)) < 0.9).astype(float)
        right[:, lost] = 1.0
        (pair,) = all_pairs(
            {"a": group(right, 1.0), "b": group(np.where(lost, 0.0, right), 1.0)}, asking=Asking(margin=margin)
        )
        called += pair.equivalent
    assert called <= 0.05 * 400


@pytest.mark.parametrize("seeds", [1, 2])
def test_it_is_said_of_fewer_seeds_too_and_nothing_else_is(seeds):
    rows = losses(0, seeds)
    (pair,) = all_pairs({"a": group(rows, 0.0), "b": group(rows, 0.0)}, True, Asking(margin=0.1))
    assert (pair.verdict, pair.real, pair.p, pair.interval) == ("identical", None, None, None)
    assert not pair.equivalent


def test_of_errors_that_are_all_nothing_nothing_follows():
    """They may be so by chance, and there is no scale by which to say how far."""
    none = group(np.zeros((3, 40)))
    (pair,) = all_pairs({"a": none, "b": none}, True, Asking(margin=0.1))
    assert (pair.verdict, pair.interval, pair.real, pair.equivalent) == ("identical", None, None, False)


def test_scores_without_rows_are_not_called_identical():
    bare = Group({seed: 0.5 + seed / 10 for seed in range(3)}, ())
    (pair,) = all_pairs({"a": bare, "b": bare})
    assert pair.verdict == "undecided"
    unknown = Group(dict.fromkeys(range(3), 0.5), (Answers(np.zeros((3, 0))),))
    assert all_pairs({"a": unknown, "b": unknown})[0].verdict is None


def test_gains_baselines_trends_and_factors_know_it():
    rows, other = losses(0), losses(1, level=5.0)
    same = {name: group(rows, 0.0) for name in ("a", "b", "c", "d")}
    assert gains(same, same)["a"].verdict == "identical"
    assert trends(same, {"order": ["a", "b", "c"]}, Asking())["order"].verdict == "identical"
    assert decide([all_pairs(same, True)[0]])[0].verdict == "identical"
    steady = np.broadcast_to(rows[0], (3, 200))
    found = against_baseline({"a": group(steady, 0.0)}, "words", float(rows[0].mean()), rows[0], None, 0.0)
    assert found["a"].verdict == "identical"
    cells = {"a": ("1", "x"), "b": ("2", "x"), "c": ("1", "y"), "d": ("2", "y")}
    grid = GridFacts(
        name="g",
        factors={"n": ["1", "2"], "k": ["x", "y"]},
        cells={label: {"n": n, "k": k} for label, (n, k) in cells.items()},
    )
    groups = {**same, "c": group(other, 0.0), "d": group(other, 0.0)}
    analysis = analyse_factors(grid, groups, True)
    verdicts = {tuple(each.factors): each.difference.verdict for each in (*analysis.effects, *analysis.interactions)}
    assert verdicts == {("n",): "identical", ("k",): "better", ("n", "k"): "identical"}


def test_one_training_under_several_names_says_nothing_of_the_noise_of_others():
    """Recipes that differ in pre-training alone are one model from scratch."""
    rows = [losses(seed) for seed in range(7)]
    trained = {name: group(each) for name, each in zip("abcd", rows, strict=False)}
    one, other = group(rows[4]), group(rows[5])
    shared = {"a": one, "b": group(rows[4]), "c": group(rows[4]), "d": other}
    (alone,) = all_pairs({"a": one, "d": other})
    found = {frozenset((pair.first, pair.second)): pair for pair in all_pairs(shared)}
    for name in "abc":
        pair = found[frozenset((name, "d"))]
        assert (abs(pair.difference), pair.p) == (abs(alone.difference), alone.p)
    assert found[frozenset("ab")].verdict == "identical"
    assert moderate(shared)["b"].seed_variance == moderate({"a": one, "d": other})["a"].seed_variance
    # What both gains have in common drops out of their difference, which is that of the pre-trained ones.
    of_gains = {frozenset((each.first, each.second)): each for each in gain_pairs(trained, shared, True, Asking())}
    pairs = {frozenset((each.first, each.second)): each for each in all_pairs(trained)}
    for names in (frozenset("ab"), frozenset("ac"), frozenset("bc")):
        assert abs(of_gains[names].difference) == pytest.approx(abs(pairs[names].difference))
        assert of_gains[names].p == pytest.approx(pairs[names].p)


def test_one_training_at_both_ends_of_an_order_is_counted_as_one():
    rows = {name: losses(seed) for seed, name in enumerate("abc")}
    groups = {name: group(each) for name, each in rows.items()}
    weights = {"a": 0.5, "again": 0.5, "b": -1.0}
    question = Question("a", "b", [(weights[name], groups[name[0]]) for name in weights])
    assert unanswered(question).noise == unanswered(Question("a", "b", [(1.0, groups["a"]), (-1.0, groups["b"])])).noise


def with_identical(results, equivalence_p=None):
    """The results with the best two recipes of each task identical."""

    def changed(analysis):
        first, *others = analysis.pairs
        update = {"difference": 0.0, "interval": (0.0, 0.0), "p": 1.0, "adjusted_p": 1.0, "real": False}
        update |= {"verdict": "identical", "deciding": None, "equivalence_p": equivalence_p}
        update |= {"margin": None if equivalence_p is None else 0.01}
        spreads = {**analysis.pretrained, first.second: analysis.pretrained[first.first]}
        return analysis.model_copy(update={"pairs": [first.model_copy(update=update), *others], "pretrained": spreads})

    return results.model_copy(update={"analyses": [*map(changed, results.analyses)]})


def test_every_place_says_it(tmp_path, capsys):
    results = with_identical(make_results(names=["one", "two"], scratch=False))
    for name in ("report.html", "report.md"):
        (write_report if name.endswith("html") else write_markdown)(results, tmp_path / name)
        assert "identical in every row and seed" in (tmp_path / name).read_text("utf-8")
    write_latex(results, tmp_path / "tables.tex")
    assert "& identical" in (tmp_path / "tables.tex").read_text("utf-8")
    print_results(results, tmp_path)
    assert "identical in every row and seed" in " ".join(capsys.readouterr().out.split())
    said = findings(results)
    assert said.headline.startswith("“one” and “two” are identical in every row and seed.")
    assert "“two” is identical in every row and seed" in " ".join(said.details)
    assert Results.model_validate_json(results.model_dump_json()) == results
    first, second = results.recipes
    alike = results.model_copy(update={"recipes": [first, second.model_copy(update={"recipe": first.recipe})]})
    (told,) = (line for line in cautions(alike) if "gave the same answer to every test row" in line)
    assert told == "“one” and “two” gave the same answer to every test row with every seed."
    second = alike.recipes[1]
    other = second.model_copy(update={"recipe": {**second.recipe, "clip": 2}, "finetune": {"batch": 8}})
    changed = results.model_copy(update={"recipes": [first, other]})
    assert any("otherwise (clip and finetune) has changed nothing here." in line for line in cautions(changed))
    assert not any("same answer to every" in line for line in cautions(make_results(names=["one", "two"])))
    once = results.model_copy(
        update={"analyses": [results.analyses[0], make_results(names=["one", "two"]).analyses[1]]}
    )
    assert not any("same answer to every" in line for line in cautions(once))
    against = results.model_copy(update={"baseline": "two"})
    assert "identical in every row and seed: “one”" in " ".join(findings(against).details)


def test_equivalence_is_said_beside_it_where_it_is_shown():
    results = with_identical(as_errors(make_results(rows=50), "TREC"), equivalence_p=0.01)
    measure = ShownMetric.of(results, "SST-2")
    pair = results.analyses[0].pairs[0]
    assert verdict(measure, pair) == "identical in every row and seed; equivalent within 1.0 points"
    assert verdict(measure, pair.model_copy(update={"equivalence_p": 0.2})) == "identical in every row and seed"
