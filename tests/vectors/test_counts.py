"""What is counted beside vectors and similarities, over all parts of a file and both texts of a pair."""

import numpy as np
import pytest
from tests.untrained_runs import untrained

import bakeoff
from bakeoff.reading.text_files import in_memory
from bakeoff.vectors import embed as embedding
from bakeoff.vectors.embed import embed_file, embedded, vectors_of
from bakeoff.vectors.embedder import Embedder
from bakeoff.vectors.options import VectorConfig
from bakeoff.vectors.similarity import Cosines

TEXTS = ["river " * 30, "", "The \u2603 river", "  ", "river " * 20, "\u2603\u2603 stone", "old", "river  " * 30, ""]


@pytest.fixture(scope="module")
def run(corpus, tmp_path_factory):
    return untrained("bert-tiny", corpus, tmp_path_factory.mktemp("runs") / "bert", **{"input.length": 16})


@pytest.mark.parametrize("most", [1, 2, 4, 100])
def test_a_file_has_the_counts_of_all_its_texts(most, run, tmp_path, monkeypatch):
    monkeypatch.setattr(embedding, "TEXTS_AT_ONCE", most)
    embedder = Embedder(run, VectorConfig(), "cpu")
    found = embed_file(embedder, in_memory(TEXTS), tmp_path / "vectors.npy")
    assert (found.texts, found.blank, found.truncated) == (len(TEXTS), 3, 3)
    expected = run.tokenizer.hidden([" ".join(text.split()) for text in TEXTS])
    assert found.hidden.model_dump(exclude={"example"}) == expected.model_dump(exclude={"example"})
    assert expected.hidden == 3
    vectors = np.load(tmp_path / "vectors.npy")
    assert vectors.shape == (len(TEXTS), found.width)
    np.testing.assert_allclose(vectors, bakeoff.embed(run.path, TEXTS, device="cpu"), atol=1e-5)
    whole, cut = vectors_of(embedder, TEXTS)
    assert cut == 3
    np.testing.assert_allclose(whole, vectors, atol=1e-5)
    assert [text for part in embedded(embedder, in_memory(TEXTS)) for text in part.texts] == TEXTS


def test_similarity_counts_both_texts_of_a_pair(run, tmp_path):
    rows = [
        ("old", "river", 1),
        ("", " ", 2),
        ("river " * 30, "\u2603 stone", 3),
        ("a", "stone " * 30, 4),
        ("", "old", 5),
    ]
    path = tmp_path / "pairs.tsv"
    path.write_text("a\tb\tscore\n" + "".join(f"{a}\t{b}\t{score}\n" for a, b, score in rows), encoding="utf-8")
    options = {"text_column": "a", "pair_column": "b", "label_column": "score", "device": "cpu"}
    found = bakeoff.similarity(run.path, path, **options, least_score=3)
    assert (found["rows"], found["blank"], found["truncated"]) == (5, 3, 2)
    assert "1 of" in found["hidden"]
    assert "\u2603" in found["hidden"]
    assert found["scores"]["queries"] == 3  # a score that is the least one counts
    assert list(found["scores"]["recall"]) == ["1", "5", "10"]
    cosines = [_cosine(*bakeoff.embed(run.path, [a, b], device="cpu")) for a, b, _ in rows]
    assert found["cosines"] == pytest.approx(cosines, abs=1e-5)


def _cosine(a, b):
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def test_cosines_know_no_length():
    vectors = np.array([[0.003, 0.004], [6, 8], [0.8, -0.6], [0, 0]], np.float32)
    cosines = Cosines(list("abcd"), vectors)
    assert cosines.of_pairs("aaad", "abca").tolist() == pytest.approx([1, 1, 0, 0], abs=1e-6)
    (every,) = cosines.of_all("ab", "abcd")
    np.testing.assert_allclose(every, [[1, 1, 0, 0]] * 2, atol=1e-6)


def test_a_word_without_tokens_of_its_own_has_no_vector(run):
    words, vectors = bakeoff.load(run, device="cpu").embed_words(["(\u200b) old"])[0]
    assert [word[:3] for word in words] == [("\u200b", 1, 2), ("old", 4, 7)]
    assert words[0].tokens == 0
    assert not vectors[0].any()
    assert vectors[1].any()
