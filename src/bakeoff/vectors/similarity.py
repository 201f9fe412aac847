"""Similarity without training: vectors of a run against scores of similarity, and for retrieval.

Shapes: N pairs, C texts of a part, P partners, D width.
"""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bakeoff.errors import UserError
from bakeoff.reading.aligned import clean
from bakeoff.tasks.reading.tables import Table, read_table
from bakeoff.vectors.baselines import OF_CHARACTERS, Comparer, Together, baselines
from bakeoff.vectors.embed import vectors_of
from bakeoff.vectors.embedder import Embedder
from bakeoff.vectors.options import SimilarityOptions
from bakeoff.vectors.retrieval import retrieve, rows_at_once
from bakeoff.vectors.whitening import whitening


def similarity(run: str | Path, data: str | Path, *, device: str = "auto", **options: Any) -> dict[str, Any]:
    """Compare the two texts of each row of a file by the cosine of their vectors, and by their words alone.

    With a column of scores, correlations between cosines and scores are measured, Spearman's as in STS (Cer et al.
    2017, arXiv:1708.00055). For rows of a text and its partner, retrieval is measured: the rank of the partner among
    all second texts of the file, see `retrieval.retrieve`.

    Args:
        run: a pre-trained or a fine-tuned run; it is not trained further.
        data: a .csv, .tsv or .jsonl, plain, .gz or .zst.
        device: auto, cpu, cuda or mps.
        options: fields of `SimilarityOptions`: text_column and pair_column, which are required, label_column,
            least_score, at, whiten and errors; pooling, layers and length as for `embed`.

    Returns:
        The options run, data, pooling, layers, whiten; width (D); rows; blank (number of texts without words);
        truncated (number of different texts that were cut); hidden (a sentence on their unknown tokens, or None);
        cosines, one for each row; scores of the run, baselines, the scores of each baseline without a model, and
        together, those of the mean of the run's cosine and that of TF-IDF of characters. Scores have spearman and
        pearson if there is a column of unequal scores (0 if all cosines are equal), and for retrieval recall by k, mrr,
        and the numbers of queries and partners.

    Raises:
        UserError: an option or the file has a mistake, all scores are equal, or `embed` would refuse the run.
    """
    asked = SimilarityOptions.parse(options, "similarity")
    table = read_table(Path(data), asked.text_column, asked.pair_column, asked.label_column, asked.errors)
    assert table.pairs is not None
    scores = None if table.labels is None else np.array(list(_numbers(table, Path(data), asked.label_column)))
    if scores is not None and np.ptp(scores) == 0 and asked.least_score is None:
        raise UserError(
            f"{data}: column '{asked.label_column}' has the one score {scores[0]:g}, with which nothing correlates; "
            "leave --label-column out to measure retrieval"
        )
    partners = partners_of(table, scores, asked.least_score, Path(data))
    embedder = Embedder(run, asked, device)
    texts = list(dict.fromkeys([*table.texts, *table.pairs]))
    vectors, truncated = vectors_of(embedder, texts)
    cosines = Cosines(texts, whitened(vectors, str(data)) if asked.whiten else vectors)
    counted = baselines(texts)

    def measured(comparer: Comparer) -> dict[str, Any]:
        return _measured(comparer, table, scores, partners, asked.at)

    return {
        "run": str(run),
        "data": str(data),
        "pooling": embedder.pooling,
        "layers": list(embedder.taught.layers),
        "whiten": asked.whiten,
        "width": embedder.width,
        "rows": len(table.texts),
        "blank": sum(not text.strip() for text in (*table.texts, *table.pairs)),
        "truncated": truncated,
        "hidden": str(embedder.format.tokenizer.hidden([clean(text) for text in texts])) or None,
        "scores": measured(cosines),
        "baselines": {name: measured(each) for name, each in counted.items()},
        "together": measured(Together(cosines, counted[OF_CHARACTERS])),
        "cosines": cosines.of_pairs(table.texts, table.pairs).tolist(),
    }


def partners_of(
    table: Table, scores: NDArray[np.float64] | None, least_score: float | None, path: Path
) -> list[tuple[str, str]]:
    """The pairs for retrieval; empty if retrieval is not measured.

    Raises:
        UserError: no row reaches the least score.
    """
    assert table.pairs is not None
    pairs = list(zip(table.texts, table.pairs, strict=True))
    if scores is None:
        return pairs
    if least_score is None:
        return []
    kept = [pair for pair, score in zip(pairs, scores, strict=True) if score >= least_score]
    if not kept:
        raise UserError(f"{path}: no row has a score of {least_score:g} or more; the highest is {scores.max():g}")
    return kept


def _numbers(table: Table, path: Path, column: str | None) -> Iterator[float]:
    """The scores of a file's rows.

    Raises:
        UserError: a score is not a finite number.
    """
    for line, label in zip(table.lines, table.labels or [], strict=True):
        try:
            value = float(label)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise UserError(f"{path}:{line}: '{label}' is no number (column '{column}'); similarity has scores")
        yield value


class Cosines:
    """Similarity by the cosine of vectors; 0 if a vector is zero.

    Args:
        texts: N texts.
        vectors: (N, D) vectors of the texts.
    """

    def __init__(self, texts: Sequence[str], vectors: NDArray[np.float32]) -> None:
        lengths = np.sqrt(np.einsum("nd,nd->n", vectors, vectors, dtype=np.float64))
        self._directions = (vectors / np.where(lengths > 0, lengths, 1)[:, None]).astype(np.float32)
        self._indices = {text: index for index, text in enumerate(texts)}

    def _of(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self._directions[[self._indices[text] for text in texts]]

    def of_pairs(self, firsts: Sequence[str], seconds: Sequence[str]) -> NDArray[np.float64]:
        """(N,) cosine of each pair."""
        cosines: NDArray[np.float64] = np.einsum("nd,nd->n", self._of(firsts), self._of(seconds), dtype=np.float64)
        return cosines

    def of_all(self, texts: Sequence[str], partners: Sequence[str]) -> Iterator[NDArray[np.floating]]:
        """(C, P) similarities of texts with all partners, part by part in the order of texts."""
        others = self._of(partners).T
        count = rows_at_once(len(partners))
        for first in range(0, len(texts), count):
            yield self._of(texts[first : first + count]) @ others


def whitened(vectors: NDArray[np.float32], where: str) -> NDArray[np.float32]:
    """(N, D) whitened vectors, see `whitening`.

    Args:
        vectors: (N, D) vectors of different texts.
        where: the file's name, for errors.

    Raises:
        UserError: there are only D texts or fewer, whose whitened vectors would all have the same distance.
    """
    count, width = vectors.shape
    if count <= width:
        raise UserError(
            f"{where}: {count:,} different texts; whitening vectors of {width} numbers needs more than {width}"
        )
    mean, matrix = whitening(vectors)
    turned: NDArray[np.float32] = ((vectors - mean) @ matrix).astype(np.float32)
    return turned


def _measured(
    comparer: Comparer,
    table: Table,
    scores: NDArray[np.float64] | None,
    partners: Sequence[tuple[str, str]],
    at: Sequence[int],
) -> dict[str, Any]:
    """The figures of one comparer."""
    figures: dict[str, Any] = {}
    assert table.pairs is not None
    if scores is not None and np.ptp(scores) > 0:
        figures |= correlations(scores, comparer.of_pairs(table.texts, table.pairs))
    if partners:
        ranks = retrieve(partners, comparer.of_all, at)
        recall = {str(k): share for k, share in ranks.recall.items()}
        figures |= {"recall": recall, "mrr": ranks.reciprocal_rank, "queries": ranks.texts, "partners": ranks.among}
    return figures


def correlations(scores: NDArray[np.float64], similarities: NDArray[np.floating]) -> dict[str, float]:
    """Spearman's and Pearson's correlation between (N,) scores and similarities; 0 if either side is constant."""
    from scipy import stats

    if len(scores) < 2 or np.ptp(scores) == 0 or np.ptp(similarities) == 0:
        return {"spearman": 0.0, "pearson": 0.0}
    ranked, linear = stats.spearmanr(scores, similarities), stats.pearsonr(scores, similarities)
    return {"spearman": float(ranked.statistic), "pearson": float(linear.statistic)}
