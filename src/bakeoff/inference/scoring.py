"""Scoring texts with a run: the log-probability of each, in the order of their file."""

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bakeoff.corpus.words import words_before
from bakeoff.errors import UserError
from bakeoff.inference.each_alone import EachAlone
from bakeoff.inference.forwards import Forwards
from bakeoff.inference.generate import encoded, never_written
from bakeoff.inference.targets import OfTargets
from bakeoff.inference.text_files import TextFile
from bakeoff.inference.token_scores import Predictions, Row, Scorer, TokenScores
from bakeoff.objectives.objective import ObjectiveConfig
from bakeoff.training.device import resolve_device
from bakeoff.training.run import Run

TEXTS_AT_ONCE, CHARACTERS_AT_ONCE = 4096, 1 << 20
"""What is read ahead, so that texts of similar length go through the model together."""


class TextScore(NamedTuple):
    """What a run says of a text, of its last word, or of the target of a pair."""

    text: str
    """What was scored."""
    log_probability: float
    """In nats; 0 where there is nothing to score."""
    tokens: int
    """How many tokens it has; the end of a target is one of them."""
    unknown: int
    """How many of them stand for what the vocabulary lacks."""
    likeliest: bool | None
    """Of a last word: each of its tokens is the likeliest, so that reading greedily writes it. None: no last word."""


class TextScores:
    """The scores of a file's texts, one for each, in the file's order; what is held does not grow with their number.

    Args:
        run: a finished pre-trained run.
        file: the texts; sources with their targets for a sequence-to-sequence model.
        last_word: score the last word of each text alone, given what stands before it.
        device: auto, cpu, cuda or mps.

    Raises:
        UserError: the run cannot score, or not in this way, or there is a mistake in the file.
    """

    def __init__(self, run: Run, file: TextFile, last_word: bool = False, device: str = "auto") -> None:
        objective = scoring_objective(run)
        if last_word and objective.scoring != "forwards":
            raise UserError(
                f"{run.path}: trained on {objective.kind}; --last-word needs a model that reads a text from its "
                "beginning, trained on clm, prefix_clm or bilm"
            )
        self.run, self.file, self.last_word = run, file, last_word
        self.measure: Literal["log_probability", "pseudo_log_likelihood"] = (
            "pseudo_log_likelihood" if objective.scoring in ("masked", "query") else "log_probability"
        )
        self.pairs = objective.scoring == "target"
        self.tokenizer = run.tokenizer
        self.count = file.count()
        self._require_positions()
        self._scorer = scorer_of(run, objective, last_word, device)

    def __iter__(self) -> Iterator[TextScore]:
        """Each text's score.

        Raises:
            UserError: the file has changed meanwhile, and has a mistake now.
        """
        for texts in _read_ahead(self.file):
            rows = self._rows(texts)
            for both, row, scores in zip(texts, rows, self._scorer.score(rows), strict=True):
                yield self._score(both[-1], row, scores)

    def _rows(self, texts: Sequence[tuple[str, ...]]) -> list[Row]:
        if self.pairs:
            targets, _, counts = self.tokenizer.encode_targets([target for _, target in texts])
            ends = np.split(targets.astype(np.int64), np.cumsum(counts)[:-1])
            sources = [np.array(encoded(source, self.tokenizer, self.run), np.int64) for source, _ in texts]
            separator = self.tokenizer.separator
            return [Row(np.append(ids, separator), 0, source) for ids, source in zip(ends, sources, strict=True)]
        rows = self.tokenizer.encode([text for (text,) in texts])
        end = self.tokenizer.end_of_line
        if end is not None and not self.last_word:  # a text is a line, and its end a token
            return [Row(np.append(ids, end) if len(ids) else ids, 0) for ids, _ in rows]
        return [Row(ids, _last_start(starts) if self.last_word else 0) for ids, starts in rows]

    def _score(self, text: str, row: Row, scores: TokenScores) -> TextScore:
        ids = row.ids[row.first :]
        unknown = 0 if self.tokenizer.unknown is None else int((ids == self.tokenizer.unknown).sum())
        likeliest = None
        if self.last_word and len(ids):
            text = text[_last_start(np.diff(words_before(text)) > 0) :].strip()
            likeliest = bool(scores.likeliest.all())
        return TextScore(text, float(scores.log_probabilities.sum()), len(ids), unknown, likeliest)

    def _require_positions(self) -> None:
        """Refuse pairs that the model has no positions for: they cannot be cut in windows."""
        longest = self.run.recipe.model.longest_input
        if not self.pairs or longest is None:
            return
        number = 0
        for texts in _read_ahead(self.file):
            for row in self._rows(texts):
                number += 1
                length = max(len(row.ids), 0 if row.source is None else len(row.source))
                if length > longest:
                    raise UserError(
                        f"{self.file.path}: pair {number:,} has {length:,} tokens; the model has {longest:,} positions"
                    )


def scoring_objective(run: Run) -> ObjectiveConfig:
    """The objective by which a run scores texts.

    Raises:
        UserError: none of its objectives says how likely a text is.
    """
    objectives: list[ObjectiveConfig] = list(run.recipe.objective)
    found = next((each for each in objectives if each.scoring is not None), None)
    if found is None:
        raise UserError(
            f"{run.path}: trained on {', '.join(each.kind for each in objectives)}, which gives texts no probability; "
            "scoring needs clm, prefix_clm, bilm, mlm, permutation, denoising, deshuffling, prefix_lm or translation"
        )
    return found


def scorer_of(run: Run, objective: ObjectiveConfig, last_word: bool, device: str) -> Scorer:
    """The way in which a run scores by that objective; of last words it also finds out whether they are likeliest."""
    module = run.load(resolve_device(device))
    tokenizer, recipe = run.tokenizer, run.recipe
    head = next(each.head for each in module.objectives if each.name == objective.kind)
    predictions = Predictions(module, head, never_written(tokenizer) if last_word else None)
    if objective.scoring == "forwards":
        before = tokenizer.separator if tokenizer.end_of_line is None else tokenizer.end_of_line
        return Forwards(module, predictions, before, recipe.input.length, recipe.input.continues)
    if objective.scoring == "target":
        return OfTargets(module, predictions, tokenizer.start)
    special = tokenizer.start, tokenizer.separator, tokenizer.mask
    return EachAlone(module, predictions, recipe, special, queries=objective.scoring == "query")


def _last_start(starts: NDArray[np.bool_]) -> int:
    """Where the last word starts; 0 where there is none."""
    return int(np.flatnonzero(starts)[-1]) if starts.any() else 0


def _read_ahead(file: TextFile) -> Iterator[list[tuple[str, ...]]]:
    """The texts of a file, a bounded number at once."""
    texts: list[tuple[str, ...]] = []
    characters = 0
    for each in file:
        texts.append(each)
        characters += sum(map(len, each))
        if len(texts) >= TEXTS_AT_ONCE or characters >= CHARACTERS_AT_ONCE:
            yield texts
            texts, characters = [], 0
    if texts:
        yield texts
