import numpy as np
import pytest
from scipy import stats

from bakeoff.comparison.statistics.groups import Answers, Group, moderate
from bakeoff.comparison.statistics.noise import CAUTION
from bakeoff.comparison.statistics.pairs import all_pairs, describe, difference, gains


def answers(random, seeds, examples, *, between_seeds, skill=1.0, shared=None, own=0.3, fleeting=0.3):
    """Right or wrong of one recipe (seeds, examples), from a probit model with its share of difficulty in common.

    Scaled so that recipes with other variances have the same chance to be right: the null hypothesis is exact.
    """
    shared = np.zeros(examples) if shared is None else shared
    latent = shared + random.normal(0, own, examples) + random.normal(0, fleeting, (seeds, examples))
    latent = latent + random.normal(0, between_seeds, (seeds, 1))
    return (latent / np.sqrt(1 + own**2 + fleeting**2 + between_seeds**2) + skill > 0).astype(float)


def group(right, clusters=None):
    return Group.of({seed: [(row.mean(), row)] for seed, row in enumerate(right)}, clusters)


def false_claims(seeds, examples, spreads, repeats, skills=None):
    """How often a table of recipes that are all equal (but for skills) holds a claim on the first pair and at all."""
    random = np.random.default_rng([seeds, examples])
    any_claim = wins = 0
    for _ in range(repeats):
        shared = random.normal(0, 1, examples)
        found = all_pairs(
            {
                str(i): group(
                    answers(random, seeds, examples, between_seeds=s, shared=shared, skill=skills[i] if skills else 1.0)
                )
                for i, s in enumerate(spreads)
            }
        )
        any_claim += any(item.real for item in found)
        wins += any(item.real for item in found if {item.first, item.second} == {"0", "1"})
    return any_claim / repeats, wins / repeats


SPREADS = [(0.0,) * 4, (0.05,) * 4, (0.2,) * 4, (0.1, 0.2)]
"""Deviations between the seeds of each recipe of a table."""
QUICK = [(3, 200, (0.0,) * 4), (3, 200, (0.2,) * 4), (5, 1000, (0.1, 0.2))]


@pytest.mark.parametrize(
    ("seeds", "examples", "spreads"),
    [
        pytest.param(*each, marks=[pytest.mark.slow] * (each not in QUICK))
        for each in ((*both, spreads) for both in ((3, 200), (5, 1000), (3, 1000), (5, 200)) for spreads in SPREADS)
    ],
)
def test_false_claims_stay_below_the_level(seeds, examples, spreads):
    repeats = 400
    rate, _ = false_claims(seeds, examples, spreads, repeats)
    # The one-sided 99.9 % point of the binomial at the nominal level: 34 of 400.
    assert rate * repeats <= stats.binom.ppf(0.999, repeats, 0.05)


@pytest.mark.filterwarnings("ignore:Precision loss:RuntimeWarning")  # seeds that happen to agree
def test_seeds_alone_would_claim_too_much():
    """Why the test set is in it: recipes that differ in which examples they get right, hardly from seed to seed."""
    random = np.random.default_rng(0)
    naive = ours = 0
    for _ in range(200):
        a, b = (answers(random, 3, 300, between_seeds=0.0, own=0.9, fleeting=0.1) for _ in range(2))
        naive += stats.ttest_ind(a.mean(1), b.mean(1), equal_var=False).pvalue < 0.05
        ours += difference("a", group(a), "b", group(b)).p < 0.05
    assert naive > 60
    assert ours <= stats.binom.ppf(0.999, 200, 0.05)


def test_power():
    """Five points between one of four recipes and the others, 900 test examples, a seed deviation of one point."""
    skills = (1.2, 1.0, 1.0, 1.0)
    few = false_claims(3, 900, (0.04,) * 4, 100, skills)[1]
    more = false_claims(5, 900, (0.04,) * 4, 100, skills)[1]
    assert few > 0.4
    assert more > 0.85


def test_interval_covers_the_truth():
    random = np.random.default_rng(3)
    truth = stats.norm.cdf(1.0)
    repeats = 300
    inside = 0
    for _ in range(repeats):
        found = describe(group(answers(random, 3, 400, between_seeds=0.1, shared=random.normal(0, 1, 400)))).interval
        inside += found[0] <= truth <= found[1]
    assert inside >= stats.binom.ppf(0.001, repeats, 0.95)


@pytest.mark.parametrize("seeds", [1, 2])
def test_no_claim_below_three_seeds(seeds):
    a, b = group(np.ones((seeds, 500))), group(np.zeros((seeds, 500)))
    for item in [*all_pairs({"a": a, "b": b}), *gains({"a": a}, {"a": b}).values()]:
        assert item.difference == 1
        assert item.real is item.p is item.interval is item.adjusted_p is None
    assert describe(a).interval is None
    assert (describe(a).deviation is None) == (seeds == 1)


def test_no_claim_from_a_single_example():
    """Its noise cannot be estimated."""
    a, b = group(np.ones((3, 1))), group(np.zeros((3, 1)))
    assert describe(a).interval is None
    assert difference("a", a, "b", b).interval is difference("a", a, "b", b).p is None
    assert describe(group(np.ones((3, 2)))).interval[0] < 0


def test_no_claim_where_the_noise_of_the_examples_is_not_known():
    none = (Answers(np.zeros((3, 0))),)
    a, b = (Group({seed: value + seed / 100 for seed in range(3)}, none) for value in (0.9, 0.1))
    for item in [*all_pairs({"a": a, "b": b}), *gains({"a": a}, {"a": b}).values()]:
        assert item.difference == pytest.approx(0.8)
        assert item.real is item.p is item.interval is None
    assert describe(a).interval is None
    assert describe(a).deviation == pytest.approx(0.01)


def test_of_two_errors_the_smaller_one_is_the_better():
    groups = {name: group(np.full((3, 50), value)) for name, value in {"a": 0.5, "b": 0.2, "c": 0.9}.items()}
    found = all_pairs(groups, lower_is_better=True)
    assert [(item.first, item.second) for item in found] == [("b", "a"), ("b", "c"), ("a", "c")]
    assert found[0].difference == pytest.approx(-0.3)
    assert [(item.first, item.second) for item in all_pairs(groups)] == [("c", "a"), ("c", "b"), ("a", "b")]


def test_the_formula_by_hand():
    """Two recipes, so that nothing is moderated; the noise of seeds and rows is counted in loops."""
    rows = {
        "a": [[1.0, 1, 1, 0, 1, 1], [1, 1, 1, 1, 0.5, 1], [1, 0, 1, 1, 1, 0.25]],
        "b": [[0.0, 1, 0, 0, 1, 0], [0, 1, 0, 1, 0.5, 0], [0, 0, 0.5, 1, 0, 0]],
    }
    a, b = (
        Group.of({seed: [(np.mean(row), np.array(row))] for seed, row in enumerate(rows[r])}, reach=1.0) for r in "ab"
    )
    found = difference("a", a, "b", b)
    apart = [[x - y for x, y in zip(*pair, strict=True)] for pair in zip(rows["a"], rows["b"], strict=True)]
    means = [np.mean(row) for row in apart]
    of_rows = [np.mean([row[i] for row in apart]) for i in range(6)]
    d = np.mean(means)
    anew = sum((apart[s][i] - means[s] - of_rows[i] + d) ** 2 for s in range(3) for i in range(6)) / (2 * 5) / (3 * 6)
    shares = []
    for side in "ab":
        seeds = [np.mean(row) for row in rows[side]]
        columns = [np.mean([row[i] for row in rows[side]]) for i in range(6)]
        rest = [(rows[side][s][i] - seeds[s] - columns[i] + np.mean(seeds)) ** 2 for s in range(3) for i in range(6)]
        shares.append(max(np.var(seeds, ddof=1), sum(rest) / (2 * 5) / 6) / 3)
    over_seeds = max(sum(shares), anew)
    test = np.var(of_rows, ddof=1) / 6 + 4 / 6**2  # of two recipes with 3 seeds what is drawn anew stays in it
    freedom = min((over_seeds + test) ** 2 / (over_seeds**2 / 2 + test**2 / 5), 5)
    error = np.sqrt(over_seeds + test)
    assert found.difference == pytest.approx(d)
    assert found.p == pytest.approx(CAUTION * 2 * stats.t.sf(d / error, freedom))
    assert found.interval[0] == pytest.approx(d - stats.t.isf(0.025 / CAUTION, freedom) * error)
    assert found.relative == pytest.approx(d / np.mean(rows["b"]))


def test_identical_and_opposite_answers():
    same = np.ones((3, 50))
    assert difference("a", group(same), "b", group(same)).p == 1
    assert 0 < difference("a", group(same), "b", group(0 * same)).p < 1e-9


def test_finetunings_of_one_seed_count_once():
    random = np.random.default_rng(0)
    rows = (random.random((3, 2, 40)) > 0.3).astype(float)
    nested = Group.of({seed: [(row.mean(), row) for row in pair] for seed, pair in enumerate(rows)})
    assert list(nested.scores.values()) == pytest.approx(rows.mean((1, 2)).tolist())
    assert describe(nested).deviation == pytest.approx(np.std(rows.mean((1, 2)), ddof=1))
    # The same fine-tuning three times over is no more evidence than once.
    tripled = Group.of({seed: [(row[0].mean(), row[0])] * 3 for seed, row in enumerate(rows)})
    once = group(rows[:, 0])
    assert difference("a", tripled, "b", nested).p == pytest.approx(difference("a", once, "b", nested).p)


def test_correction_can_take_a_claim_away():
    random = np.random.default_rng(5)
    rows = {str(i): group(answers(random, 3, 300, between_seeds=0.05, skill=1 + 0.1 * (i == 0))) for i in range(6)}
    found = all_pairs(rows)
    assert len(found) == 15
    assert all(item.adjusted_p >= item.p for item in found)
    two = moderate(rows)
    assert all_pairs({label: two[label] for label in (found[0].first, found[0].second)})[0].real == (found[0].p < 0.05)


def test_a_seed_counts_once_however_many_fine_tunings_it_has():
    """Scores and contributions are averaged in the same way, so that the mean of the one is that of the other."""
    random = np.random.default_rng(0)
    runs = {}
    for seed, count in enumerate((1, 4, 2)):
        rows = [random.integers(0, 2, 12).astype(float) for _ in range(count)]
        runs[seed] = [(row.mean(), row) for row in rows]
    found = Group.of(runs)
    assert found.mean == pytest.approx(np.mean([np.mean([score for score, _ in nested]) for nested in runs.values()]))
    assert found.answers[0].mean.mean() == pytest.approx(found.mean)
    alone = [Group.of({seed: nested}).answers[0].mean for seed, nested in runs.items()]
    assert found.answers[0].mean == pytest.approx(np.mean(alone, axis=0))


@pytest.mark.parametrize(("few", "many"), [(2, 5), (3, 5), (3, 9)])
def test_the_recipe_with_fewer_seeds_decides_whichever_is_named_first(few, many):
    random = np.random.default_rng(1)
    a, b = (group(random.integers(0, 2, (count, 40)).astype(float)) for count in (few, many))
    one, other = difference("a", a, "b", b), difference("b", b, "a", a)
    assert one.p == other.p
    assert one.difference == -other.difference
    if few < 3:
        assert one.p is one.interval is other.interval is None
        return
    assert one.interval == pytest.approx([-each for each in other.interval[::-1]])
    more = difference("a", group(random.integers(0, 2, (many, 40)).astype(float)), "b", b)
    assert one.interval[1] - one.interval[0] > 1.1 * (more.interval[1] - more.interval[0])


@pytest.mark.parametrize("rows", range(2, 40))
def test_always_right_against_always_wrong_is_as_sure_as_the_sign_test(rows):
    """Seeds and rows that all agree are no certainty; the exact test of signs is the oracle."""
    found = difference("a", group(np.ones((3, rows))), "b", group(np.zeros((3, rows))))
    exact = stats.binomtest(rows, rows).pvalue
    assert (found.p < 0.05) == (exact < 0.05)
    assert found.p > exact**4
    assert (found.interval[0] > 0) == (found.p < 0.05)


@pytest.mark.parametrize("rows", [5, 30, 300, 3000])
@pytest.mark.parametrize("right", [False, True])
def test_the_interval_of_what_never_or_always_happened_is_no_point(rows, right):
    """0 of 300 does not say that it never happens; the exact interval of Clopper and Pearson is the oracle."""
    runs = {seed: [(float(right), np.full(rows, float(right)))] for seed in range(3)}
    low, high = describe(Group.of(runs, reach=1.0)).interval
    exact = stats.binomtest(rows * right, rows).proportion_ci(method="exact")
    reached = 1 - low if right else high
    assert reached >= (1 - exact.low if right else exact.high) * 0.99
    assert rows < 30 or reached < 1.5 * (1 - exact.low if right else exact.high)


def test_errors_without_bounds_have_the_scale_of_the_largest():
    a, b = (Group.of({seed: [(value, np.full(20, value))] for seed in range(3)}) for value in (3.0, 1.0))
    found = difference("a", a, "b", b)
    assert found.interval[0] < 2 < found.interval[1]
    halved = [Group.of({s: [(v / 2, np.full(20, v / 2))] for s in range(3)}) for v in (3.0, 1.0)]
    assert difference("a", halved[0], "b", halved[1]).p == pytest.approx(found.p)
    none = Group.of({seed: [(0.0, np.zeros(20))] for seed in range(3)})  # no error at all has no scale
    assert difference("a", none, "b", none).interval is describe(none).interval is None


def test_rows_that_repeat_each_other_say_no_more_than_one():
    random = np.random.default_rng(0)
    once = [random.integers(0, 2, (3, 60)).astype(float) for _ in range(2)]
    many = [np.repeat(right, 7, axis=1) for right in once]
    clusters = np.repeat(np.arange(60), 7)
    alone = difference("a", group(once[0]), "b", group(once[1]))
    together = difference("a", group(many[0], clusters), "b", group(many[1], clusters))
    assert together.p == pytest.approx(alone.p)
    assert together.interval == pytest.approx(alone.interval)
    assert describe(group(many[0], clusters)).interval == pytest.approx(describe(group(once[0])).interval)
    blind = difference("a", group(many[0]), "b", group(many[1]))
    assert np.ptp(blind.interval) < np.ptp(alone.interval)


def test_clusters_of_one_row_each_are_independent_rows():
    random = np.random.default_rng(1)
    a, b = (random.integers(0, 2, (3, 50)).astype(float) for _ in range(2))
    numbers = random.permutation(50)
    alone, together = (
        difference("a", group(a), "b", group(b)),
        difference("a", group(a, numbers), "b", group(b, numbers)),
    )
    assert together.p == pytest.approx(alone.p)
    assert together.interval == pytest.approx(alone.interval)


def test_a_single_cluster_allows_no_claim():
    a, b = (group(np.full((3, 50), value), np.zeros(50, int)) for value in (1.0, 0.0))
    found = difference("a", a, "b", b)
    assert found.difference == 1
    assert found.p is found.interval is describe(a).interval is None


@pytest.mark.parametrize("clusters", [2, 5])
def test_eight_equal_recipes_on_few_clusters_are_told_apart_in_hardly_any_table(clusters):
    """Of 28 pairs one has a small variance between clusters by chance; that alone makes no difference real."""
    random = np.random.default_rng(0)
    of = np.repeat(np.arange(clusters), 60)
    claimed = 0
    for _ in range(30):
        own = random.normal(0, 0.3, (8, 1, clusters))[..., of]
        answers = random.normal(size=(8, 3, len(of))) + random.normal(size=len(of)) + own > -0.7
        groups = {str(number): group(right.astype(float), of) for number, right in enumerate(answers)}
        claimed += any(pair.real for pair in all_pairs(groups))
    assert claimed <= 3


def test_a_few_large_clusters_say_less_than_as_many_equal_ones():
    random = np.random.default_rng(2)
    sizes = {"equal": [20] * 10, "unequal": [110] + [10] * 9}
    width = {}
    for name, of in sizes.items():
        clusters = np.repeat(np.arange(10), of)
        widths = []
        for _ in range(40):
            own = random.normal(0, 1, 10)[clusters]
            rows = (own + random.normal(0, 1, (3, 200)) > 0).astype(float)
            low, high = describe(group(rows, clusters)).interval
            widths.append(high - low)
        width[name] = np.mean(widths)
    assert width["unequal"] > 1.2 * width["equal"]


@pytest.mark.parametrize("sizes", [(25,) * 20, (60,) * 8, (1,) * 100 + (40,) * 10])
def test_questions_of_an_article_are_not_independent(sizes):
    """Two equal recipes, each better on articles of its own: claims without and with the clusters."""
    random, repeats, seeds = np.random.default_rng(3), 150, 9
    clusters, rows = np.repeat(np.arange(len(sizes)), sizes), sum(sizes)
    blind = told = 0
    for _ in range(repeats):
        shared = random.normal(0, 1, rows)
        pair = [
            answers(
                random,
                seeds,
                rows,
                between_seeds=0.05,
                fleeting=1.1,
                own=0.1,
                shared=shared + random.normal(0, 0.4, len(sizes))[clusters],
            )
            for _ in range(2)
        ]
        blind += difference("a", group(pair[0]), "b", group(pair[1])).p < 0.05
        told += difference("a", group(pair[0], clusters), "b", group(pair[1], clusters)).p < 0.05
    assert told <= stats.binom.ppf(0.999, repeats, 0.05)
    assert blind > 2 * told + 10
