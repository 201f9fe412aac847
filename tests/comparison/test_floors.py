import random

import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from bakeoff.comparison.running.floors import FEATURES, floors, majority, tfidf
from bakeoff.tasks.data import TaskData
from bakeoff.tasks.kinds.classification import Classification, ClassificationConfig, LabelledText

CONFIG = ClassificationConfig(train="train.tsv", text_column="text", label_column="label")


def examples(texts, labels, pairs=None):
    """Labelled texts, their labels places in the list of classes."""
    sides = zip(texts, pairs, strict=True) if pairs else [(text,) for text in texts]
    return [LabelledText(0, each, "abc"[label]) for each, label in zip(sides, labels, strict=True)]


def data_of(*parts, classes="ab"):
    return TaskData(Classification(CONFIG, list(classes)), *parts, [])


def rows(make, seed, count):
    source = random.Random(seed)
    made = [make(source) for _ in range(count)]
    return examples([row[0] for row in made], [row[-1] for row in made])


def splits(make):
    return data_of(*(rows(make, seed, count) for seed, count in enumerate((200, 80, 80))))


def words(source):
    label = source.randrange(2)
    filler = [source.choice(["the", "a", "one", "this", "very", "quite", "some"]) for _ in range(6)]
    return " ".join([*filler, source.choice(["good", "fine"] if label else ["bad", "poor"])]), label


def chinese(source):
    label = source.randrange(2)
    noise = "".join(chr(0x4E00 + source.randrange(2000)) for _ in range(6))
    return noise + ("很好" if label else "很差") + noise[::-1], label


def test_words_are_found():
    found = {floor.kind: floor for floor in floors("t", splits(words), "accuracy")}
    assert found["tfidf_logistic_regression"].test["accuracy"] == 1
    assert found["tfidf_logistic_regression"].chosen["features"] == "word 1-2-grams"
    assert found["majority"].test["accuracy"] < 0.7
    assert found["majority"].test["matthews"] == 0
    assert set(found["majority"].test) == {"accuracy", "macro_f1", "matthews"}


def test_text_without_spaces_is_read_by_character():
    found = tfidf("t", splits(chinese), "macro_f1")
    assert found.chosen["features"] == "character 1-3-grams"
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
    assert tfidf("t", data_of(*parts), "accuracy").test["accuracy"] > 0.9


def noisy(source):
    """Three classes, of which the words tell three rows in four."""
    label = source.randrange(3)
    told = label if source.random() < 0.75 else source.randrange(3)
    others = [f"word{source.randrange(60)}" for _ in range(8)]
    return " ".join([*others, f"about{told}"]), label


def test_a_classifier_that_starts_from_the_one_before_ends_where_a_fresh_one_does():
    data = data_of(*(rows(noisy, seed, count) for seed, count in enumerate((600, 200, 400))), classes="abc")
    found = tfidf("t", data, "accuracy")
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
    assert majority("t", data).test["accuracy"] == 0.25
    assert majority("t", data).chosen == {"class": 2}


@pytest.mark.parametrize(
    ("texts", "labels"), [(["", "", ""], [0, 1, 1]), (["a b", "c d", "e"], [1, 1, 1])], ids=["no text", "one class"]
)
def test_where_nothing_can_be_learned(texts, labels):
    part = examples(texts, labels)
    found = tfidf("t", data_of(part, part, part), "accuracy")
    assert found.kind == "tfidf_logistic_regression"
    assert found.test["accuracy"] == pytest.approx(2 / 3 if 0 in labels else 1)
