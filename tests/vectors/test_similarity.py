"""Correlations and retrieval of a file's texts against scipy, and against a naive count."""

import json

import numpy as np
import pytest
from scipy import stats
from sklearn.feature_extraction.text import TfidfVectorizer
from tests.conftest import sentences
from tests.untrained_runs import untrained

import bakeoff
from bakeoff.cli import run as command
from bakeoff.errors import UserError
from bakeoff.vectors import retrieval
from bakeoff.vectors.baselines import baselines
from bakeoff.vectors.similarity import Cosines, correlations, whitened

FIRSTS = sentences(40, seed=21)
SECONDS = [
    f"{' '.join(first.split()[:3])} {other}" for first, other in zip(FIRSTS, sentences(40, seed=22), strict=True)
]
SCORES = np.random.default_rng(0).integers(0, 11, 40) / 2
COLUMNS = {"text_column": "sentence1", "pair_column": "sentence2"}


@pytest.fixture(scope="module")
def run(corpus, tmp_path_factory):
    return untrained("bert-tiny", corpus, tmp_path_factory.mktemp("runs") / "bert", **{"input.length": 64})


@pytest.fixture
def file(tmp_path):
    lines = ["\t".join(map(str, cells)) for cells in zip(SCORES, FIRSTS, SECONDS, strict=True)]
    path = tmp_path / "sts.tsv"
    path.write_text("\n".join(["score\tsentence1\tsentence2", *lines]) + "\n", encoding="utf-8")
    return path


def naive_cosines(vectors, others):
    lengths = np.linalg.norm(vectors, axis=1)[:, None] * np.linalg.norm(others, axis=1)
    return vectors.astype(np.float64) @ others.T.astype(np.float64) / lengths


def naive_found(similarities, k):
    """recall@k and MRR, where all texts differ and nothing ties."""
    ranks = np.array([1 + (row > row[place]).sum() for place, row in enumerate(similarities)])
    return (ranks <= k).mean(), (1 / ranks).mean()


def naive_baselines():
    texts = [*FIRSTS, *SECONDS]
    tfidf = {
        "tf-idf of words": TfidfVectorizer(sublinear_tf=True, token_pattern=r"\w+"),
        "tf-idf of characters": TfidfVectorizer(sublinear_tf=True, analyzer="char", ngram_range=(1, 3)),
    }
    found = {}
    for name, vectorizer in tfidf.items():
        vectorizer.fit(dict.fromkeys(texts))
        found[name] = vectorizer.transform(FIRSTS).toarray() @ vectorizer.transform(SECONDS).toarray().T
    words = [[set(text.lower().replace(".", " ").split()) for text in side] for side in (FIRSTS, SECONDS)]
    found["word overlap"] = np.array([[len(a & b) / len(a | b) for b in words[1]] for a in words[0]])
    return found


def test_scores_are_correlated_and_partners_sought(run, file, monkeypatch):
    monkeypatch.setattr(retrieval, "SIMILARITIES", 300)  # some texts at once
    found = bakeoff.similarity(
        run.path, file, **COLUMNS, label_column="score", least_score=-1, at=[1, 3], pooling="max", device="cpu"
    )
    vectors = [bakeoff.embed(run.path, side, pooling="max", device="cpu") for side in (FIRSTS, SECONDS)]
    expected = {"cosine": naive_cosines(*vectors), **naive_baselines()}
    np.testing.assert_allclose(found["cosines"], np.diag(expected["cosine"]), atol=1e-5)
    assert list(found["baselines"]) == list(expected)[1:]
    expected["together"] = (expected["cosine"] + expected["tf-idf of characters"]) / 2
    scores = {"cosine": found["scores"], **found["baselines"], "together": found["together"]}
    for name, own in scores.items():
        diagonal = np.diag(expected[name])
        assert own["spearman"] == pytest.approx(stats.spearmanr(SCORES, diagonal).statistic, abs=2e-3), name
        assert own["pearson"] == pytest.approx(stats.pearsonr(SCORES, diagonal).statistic, abs=1e-4), name
        assert (own["queries"], own["partners"]) == (40, 40)
        if name != "word overlap":  # which ties
            shares = [naive_found(expected[name], k) for k in (1, 3)]
            np.testing.assert_allclose([own["recall"]["1"], own["recall"]["3"]], [share for share, _ in shares])
            assert own["mrr"] == pytest.approx(shares[0][1], abs=2e-3), name
    assert (found["rows"], found["truncated"], found["width"]) == (40, 0, vectors[0].shape[1])


def test_overlap_of_words_is_that_of_their_sets():
    comparer = baselines([*FIRSTS, *SECONDS])["word overlap"]
    np.testing.assert_allclose(
        np.concatenate(list(comparer.of_all(FIRSTS, SECONDS))), naive_baselines()["word overlap"]
    )
    for nothing in baselines(["", "..."]).values():
        assert np.isfinite(nothing.of_pairs(["", "..."], ["", ""])).all()
    none = baselines(["", "\u3002"])["word overlap"]
    assert (none.of_pairs([""], ["\u3002"]) == 0).all()
    assert (next(none.of_all([""], ["", "\u3002"])) == 0).all()


def test_without_scores_every_second_text_is_sought(run, file):
    found = bakeoff.similarity(run.path, file, **COLUMNS, device="cpu")
    assert set(found["scores"]) == {"recall", "mrr", "queries", "partners"}
    with_scores = bakeoff.similarity(run.path, file, **COLUMNS, label_column="score", device="cpu")
    assert set(with_scores["scores"]) == {"spearman", "pearson"}
    some = bakeoff.similarity(run.path, file, **COLUMNS, label_column="score", least_score=4, device="cpu")
    assert some["scores"]["queries"] == (SCORES >= 4).sum()


def test_whitened_vectors_have_no_correlations():
    generator = np.random.default_rng(3)
    vectors = (generator.normal(size=(200, 8)) @ generator.normal(size=(8, 8)) + 5).astype(np.float32)
    found = whitened(vectors, "file")
    np.testing.assert_allclose(np.cov(found.T), np.eye(8), atol=1e-3)
    np.testing.assert_allclose(found.mean(0), 0, atol=1e-4)
    # Distances are Mahalanobis's.
    inverse = np.linalg.inv(np.cov(vectors.T.astype(np.float64)))
    apart = vectors[0].astype(np.float64) - vectors[1]
    assert np.sum((found[0] - found[1]) ** 2) == pytest.approx(apart @ inverse @ apart, rel=1e-3)
    flat = np.concatenate([vectors, vectors[:, :1], np.full((200, 1), 7, np.float32)], axis=1)
    again = whitened(flat, "file")
    assert np.isfinite(again).all()
    texts = [str(place) for place in range(200)]
    cosines = [Cosines(texts, each).of_pairs(texts[:100], texts[100:]) for each in (found, again)]
    np.testing.assert_allclose(*cosines, atol=2e-3)
    with pytest.raises(UserError, match="file: 8 different texts; whitening vectors of 8 numbers needs more than 8"):
        whitened(vectors[:8], "file")


def test_nothing_that_varies_has_no_correlation():
    assert correlations(np.array([1.0, 1.0, 1.0]), np.array([1.0, 2.0, 3.0])) == {"spearman": 0, "pearson": 0}
    assert correlations(np.array([1.0]), np.array([1.0])) == {"spearman": 0, "pearson": 0}
    vectors = np.array([[0, 0], [3, 4]], np.float32)
    assert Cosines(["a", "b"], vectors).of_pairs(["a", "b"], ["b", "b"]).tolist() == pytest.approx([0, 1])


def test_the_table_and_json_of_the_command_line(run, file, capsys):
    arguments = ["similarity", str(run.path), "--data", str(file), "--text-column", "sentence1"]
    arguments += ["--pair-column", "sentence2", "--label-column", "score", "--whiten", "--device", "cpu"]
    assert command(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[0] for line in lines] == [
        "rows",
        "cosine, whitened",
        "tf-idf of words",
        "tf-idf of characters",
        "word overlap",
        "cosine with tf-idf of characters",
    ]
    assert command([*arguments, "--json", "--least-score", "3", "--at", "2", "--layers", "1,-1"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert len(found["cosines"]) == 40
    assert found["layers"] == [1, -1]
    assert found["whiten"] is True
    assert list(found["scores"]["recall"]) == ["2"]


def test_what_is_refused(run, file, tmp_path, capsys):
    def refused(message, *arguments, data=file):
        given = ["similarity", str(run.path), "--data", str(data), "--text-column", "sentence1", "--device", "cpu"]
        assert command([*given, "--pair-column", "sentence2", *arguments]) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert message in captured.err
        assert captured.err.count("\n") == 1

    refused("--least-score is a number, and needs --label-column", "--least-score", "4")
    refused("no row has a score of 9 or more; the highest is", "--least-score", "9", "--label-column", "score")
    refused("--at: recall is measured at numbers from 1 on", "--at", "0,1")
    refused("sts.tsv:1: no column 'scores'; did you mean 'score'?", "--label-column", "scores")
    refused("text, pair and label must be different columns, not sentence1", "--label-column", "sentence1")
    advice = "; the first row has to name the columns\n"  # there is no --option here
    refused(f"(columns here: score, sentence1, sentence2){advice}", "--label-column", "zebra")
    other = tmp_path / "semicolons.csv"
    other.write_text("score;sentence1;sentence2\n1;a;b\n", encoding="utf-8")
    refused("if its cells stand between semicolons, write it with commas\n", data=other)
    other.rename(tmp_path / "sts.txt")
    refused("each plain, .gz or .zst; if its cells stand between tabs, call it .tsv\n", data=tmp_path / "sts.txt")
    refused("no such file", data=tmp_path / "none.tsv")
    refused("labelled data is read from .csv, .tsv or .jsonl", data=run.path / "recipe.yaml")
    bad = tmp_path / "bad.tsv"
    bad.write_text("score\tsentence1\tsentence2\n1\ta\tb\nhigh\ta\tb\n", encoding="utf-8")
    refused(
        "bad.tsv:3: 'high' is no number (column 'score'); similarity has scores", "--label-column", "score", data=bad
    )
    refused("bad.tsv: 2 different texts; whitening vectors of 32 numbers needs more than 32", "--whiten", data=bad)


@pytest.mark.parametrize("scores", [[2.5] * 40, [0.0] * 40])
def test_one_score_for_all_rows_is_refused_but_where_retrieval_is_measured(scores, run, tmp_path):
    lines = ["\t".join(map(str, cells)) for cells in zip(scores, FIRSTS, SECONDS, strict=True)]
    path = tmp_path / "sts.tsv"
    path.write_text("\n".join(["score\tsentence1\tsentence2", *lines]) + "\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"column 'score' has the one score .*; leave --label-column out"):
        bakeoff.similarity(run.path, path, label_column="score", device="cpu", **COLUMNS)
    found = bakeoff.similarity(run.path, path, label_column="score", least_score=0, device="cpu", **COLUMNS)
    assert found["scores"].keys() == {"recall", "mrr", "queries", "partners"}
