import random

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import cosine_similarity

from bakeoff.comparison.running import baselines as measured
from bakeoff.tasks.baselines.tfidf import FEATURES, counted
from bakeoff.tasks.data import TaskData
from bakeoff.tasks.kinds.classification import Classification, ClassificationConfig, LabelledText, PredictedClass
from bakeoff.tasks.kinds.regression import RatedText, Regression, RegressionConfig
from bakeoff.tasks.kinds.tagging import TaggedSentence, Tagging, TaggingConfig
from bakeoff.tasks.task import Learned

CONFIG = ClassificationConfig(train="train.tsv", text_column="text", label_column="label")


def examples(texts, labels, pairs=None):
    """Labelled texts, their labels places in the list of classes."""
    sides = zip(texts, pairs, strict=True) if pairs else [(text,) for text in texts]
    return [LabelledText(0, each, "abc"[label]) for each, label in zip(sides, labels, strict=True)]


def data_of(*parts, classes="ab", metric="accuracy"):
    return TaskData(Classification(CONFIG.model_copy(update={"metric": metric}), list(classes)), *parts, [])


def baselines(name, data):
    """The baselines of a task, without their predictions."""
    return [each.baseline for each in measured.baselines(name, data)]


def tfidf(data):
    """The one baseline that learns."""
    (found,) = [baseline for baseline in baselines("t", data) if baseline.kind == "learned"]
    return found


def simplest(data):
    return baselines("t", data)[0]


def rows(make, seed, count):
    source = random.Random(seed)
    made = [make(source) for _ in range(count)]
    return examples([row[0] for row in made], [row[-1] for row in made])


def splits(make, **options):
    return data_of(*(rows(make, seed, count) for seed, count in enumerate((200, 80, 80))), **options)


def words(source):
    label = source.randrange(2)
    filler = [source.choice(["the", "a", "one", "this", "very", "quite", "some"]) for _ in range(6)]
    return " ".join([*filler, source.choice(["good", "fine"] if label else ["bad", "poor"])]), label


def chinese(source):
    label = source.randrange(2)
    noise = "".join(chr(0x4E00 + source.randrange(2000)) for _ in range(6))
    return noise + ("很好" if label else "很差") + noise[::-1], label


def test_words_are_found():
    simple, learned = baselines("t", splits(words))
    assert (simple.kind, simple.name) == ("simplest", "most frequent class")
    assert (learned.kind, learned.name) == ("learned", "TF-IDF with logistic regression")
    assert learned.test["accuracy"] == 1
    assert learned.chosen["features"] == "word 1-2-grams"
    assert simple.test["accuracy"] < 0.7
    assert simple.test["matthews"] == 0
    assert set(simple.test) == {"accuracy", "macro_f1", "matthews"}


def test_text_without_spaces_is_read_by_character():
    found = tfidf(splits(chinese, metric="macro_f1"))
    assert found.chosen["features"] == "word 1-2-grams"  # each ideograph is a word
    assert found.test["macro_f1"] > 0.95


def test_pairs_are_compared_with_each_other():
    names = [f"name{i}" for i in range(30)]
    parts = []
    for seed, count in enumerate((600, 100, 100)):
        source = random.Random(seed)
        labels = [source.randrange(2) for _ in range(count)]
        first = [source.choice(names) for _ in labels]
        second = [a if label else source.choice(names) for a, label in zip(first, labels, strict=True)]
        parts.append(examples(first, labels, second))
    assert tfidf(data_of(*parts)).test["accuracy"] > 0.9


def noisy(source):
    """Three classes, of which the words tell three rows in four."""
    label = source.randrange(3)
    told = label if source.random() < 0.75 else source.randrange(3)
    others = [f"word{source.randrange(60)}" for _ in range(8)]
    return " ".join([*others, f"about{told}"]), label


def test_a_classifier_that_starts_from_the_one_before_ends_where_a_fresh_one_does():
    data = data_of(*(rows(noisy, seed, count) for seed, count in enumerate((600, 200, 400))), classes="abc")
    found = tfidf(data)
    vectorizer = TfidfVectorizer(sublinear_tf=True, **FEATURES[found.chosen["features"]])
    fresh = LogisticRegression(C=found.chosen["C"], max_iter=2000, tol=1e-6)
    (texts, labels), (others, expected) = (
        ([each.texts[0] for each in part], [each.label for each in part]) for part in (data.train, data.test)
    )
    fresh.fit(vectorizer.fit_transform(texts), labels)
    scored = fresh.score(vectorizer.transform(others), expected)
    assert 0.6 < found.test["accuracy"] == pytest.approx(scored, abs=2 / 400)


def test_majority_is_of_train():
    parts = [examples(["a"] * len(labels), labels) for labels in ([2, 2, 0], [0], [2, 0, 0, 1])]
    data = data_of(*parts, classes="abc")
    assert simplest(data).test["accuracy"] == 0.25


@pytest.mark.parametrize(
    ("texts", "labels"), [(["", "", ""], [0, 1, 1]), (["a b", "c d", "e"], [1, 1, 1])], ids=["no text", "one class"]
)
def test_where_nothing_can_be_learned(texts, labels):
    part = examples(texts, labels)
    found = tfidf(data_of(part, part, part))
    assert found.test["accuracy"] == pytest.approx(2 / 3 if 0 in labels else 1)


def rated(seed, count, pairs):
    """Texts whose number is how many good words they have, with noise; pairs whose number is what they share."""
    source = random.Random(seed)
    found = []
    for _ in range(count):
        first = [source.choice(["good", "bad", "old", "new", "red", "tall"]) + str(source.randrange(9)) for _ in "abcd"]
        if pairs:
            kept = source.randrange(5)
            second = first[:kept] + [f"other{source.randrange(99)}" for _ in range(4 - kept)]
            found.append(RatedText(0, (" ".join(first), " ".join(second)), float(kept)))
        else:
            value = sum(word.startswith("good") for word in first) + source.gauss(0, 0.5)
            found.append(RatedText(0, (" ".join(first),), value))
    return found


def regression_of(metric, pairs=False):
    config = RegressionConfig(train="t.tsv", text_column="t", label_column="n", metric=metric)
    parts = [rated(seed, count, pairs) for seed, count in enumerate((300, 100, 100))]
    values = [each.value for each in parts[0]]
    return TaskData(Regression(config, float(np.mean(values)), float(np.std(values))), *parts, [])


def test_numbers_have_the_baseline_of_ridge_regression_and_pairs_that_of_their_likeness():
    simple, learned = baselines("t", regression_of("mean_absolute_error", pairs=True))
    assert (simple.name, learned.name) == ("mean of train", "TF-IDF with ridge regression")
    assert simple.test["spearman"] == 0
    assert learned.test["spearman"] > 0.9
    assert learned.test["mean_absolute_error"] < 0.5 * simple.test["mean_absolute_error"]


@pytest.mark.parametrize("metric", ["spearman", "mean_absolute_error"])
def test_dev_chooses_the_settings_of_which_the_metric_is_best_whichever_way_that_is(metric):
    data = regression_of(metric)
    found = tfidf(data)
    tried = [data.task.score(data.dev, each.predict(data.dev))[metric] for each in data.task.baselines(data.train)]
    assert len({round(value, 6) for value in tried}) > 3
    assert found.dev[metric] == (min(tried) if metric == "mean_absolute_error" else max(tried))


def test_ridge_regression_is_that_of_the_normal_equations():
    data = regression_of("spearman")
    first = next(iter(data.task.baselines(data.train)))
    vectorizer = TfidfVectorizer(sublinear_tf=True, **FEATURES[first.chosen["features"]])
    rows = vectorizer.fit_transform([each.texts[0] for each in data.train]).toarray()
    values = np.array([each.value for each in data.train])
    centred = rows - rows.mean(0)
    weights = np.linalg.solve(centred.T @ centred + first.chosen["alpha"] * np.eye(rows.shape[1]), centred.T @ values)
    others = vectorizer.transform([each.texts[0] for each in data.test]).toarray()
    answers = values.mean() + (others - rows.mean(0)) @ weights
    assert first.predict(data.test) == pytest.approx(answers.tolist(), abs=1e-3)


def test_tags_have_the_baseline_of_each_words_most_frequent_tag():
    config = TaggingConfig(train="t.conll")
    part = [TaggedSentence(1, ("a", "b"), ("X", "Y")), TaggedSentence(2, ("a", "c"), ("X", "X"))]
    (only,) = baselines("t", TaskData(Tagging(config, ["X", "Y"], []), part, part, part, []))
    assert (only.name, only.test) == ("each word's most frequent tag", {"accuracy": 1.0})


def test_each_method_of_a_task_is_a_baseline_and_on_a_tie_has_its_first_settings():
    class Several(Classification):
        def baselines(self, train):
            for method, values in (("one", (5, 5)), ("other", (1, 7))):
                for number, right in enumerate(values):
                    yield Learned(method, {"n": number}, lambda part, right=right: [first_class] * right + rest[right:])

    part = examples(["a"] * 10, [0] * 10)
    first_class, rest = PredictedClass(0, np.array([1.0, 0.0])), [PredictedClass(1, np.array([0.0, 1.0]))] * 10
    found = baselines("t", TaskData(Several(CONFIG, ["a", "b"]), part, part, part, []))[1:]
    assert [(baseline.name, baseline.chosen, baseline.test["accuracy"]) for baseline in found] == [
        ("one", {"n": 0}, 0.5),
        ("other", {"n": 1}, 0.7),
    ]


def test_features_of_pairs_are_those_of_both_their_product_and_where_it_is_asked_for_the_cosine():
    pairs = rated(0, 20, pairs=True)
    with_cosine, without, alone = counted(pairs, likeness=True), counted(pairs), counted(rated(0, 20, pairs=False))
    for (name, found), (_, plain), (_, single) in zip(with_cosine, without, alone, strict=True):
        rows = found(pairs).toarray()
        firsts, seconds, products = np.split(rows[:, :-1], 3, axis=1)
        assert products == pytest.approx(firsts * seconds)
        assert rows[:, -1] == pytest.approx(np.diag(cosine_similarity(firsts, seconds)))
        assert (plain(pairs).toarray() == rows[:, :-1]).all()
        assert name in FEATURES
        assert single(rated(0, 5, pairs=False)).shape[0] == 5
