"""Scores of texts by a run: the log-probability of each text, in the order of the file."""

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bakeoff.distributed.processes import ALONE, Processes
from bakeoff.errors import UserError
from bakeoff.generation.generate import never_written
from bakeoff.generation.prompts import encoded
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.objectives.objective import ObjectiveConfig
from bakeoff.reading.aligned import clean
from bakeoff.reading.text_files import TextFile, Texts, read_ahead
from bakeoff.resources.device import resolve_device
from bakeoff.runs.run import Run
from bakeoff.scoring.causal import Forwards
from bakeoff.scoring.methods import WordStarts, require_reading
from bakeoff.scoring.options import Reading
from bakeoff.scoring.pseudo_log_likelihood import EachAlone
from bakeoff.scoring.sequence_to_sequence import OfTargets
from bakeoff.scoring.surprisals import Surprisal, surprisals
from bakeoff.scoring.token_scores import ScoredText, Scorer, TokenPredictions, TokenScores
from bakeoff.text.words import words_before
from bakeoff.tokenizer.hidden import HiddenText
from bakeoff.tokenizer.stretches import Per, require_per

TEXTS_AT_ONCE = 4096
"""Largest number of texts that are read ahead, so that texts of similar length share a batch."""


class TextScore(NamedTuple):
    """The score of a text, of its last word, or of the target of a pair."""

    text: str
    """The text, word or target that was scored."""
    log_probability: float | None
    """The log-probability in nats; 0 if there is nothing to score, and None, no number, if every token is unknown."""
    tokens: int
    """Number of scored tokens; the end of a target is one of them."""
    unknown: int
    """Number of unknown tokens among them."""
    hidden: HiddenText
    """Counts of unknown tokens of the text, word or target, and of the characters that they hide."""
    likeliest: bool | None
    """Whether every token of a last word is the likeliest, so that greedy generation writes it; None: no last word."""
    parts: tuple[Surprisal, ...] | None = None
    """The surprisals of the text's words or tokens, in their order; None: they were not asked for."""


class TextScores:
    """The scores of texts, in their order; memory does not grow with their number.

    Texts are read as corpora are: in NFC, with single spaces. A file is read whole before any text is scored, so that
    its mistakes are told at once; a pipe and standard input are not.

    Args:
        run: a finished pre-trained run.
        file: a file of texts, or texts in memory; sources with targets for a sequence-to-sequence model.
        last_word: score only the last word of each text, given the words before it.
        device: auto, cpu, cuda or mps.
        stride: for texts longer than a row, the largest number of tokens that are scored in each window but the first;
            None: half a row.
        module: the run's model if it is loaded already; None: load it to the device.
        per: word or token: give each score the surprisals of the text's words or tokens, too.
        reading: the way in which texts are read; None: that of the first objective that gives texts a probability.
        processes: those that score the texts together; the first one reads them, and all get all scores.

    Raises:
        UserError: the run cannot score texts, or not in this way, or the file has a mistake.
    """

    def __init__(
        self,
        run: Run,
        file: Texts,
        last_word: bool = False,
        device: str = "auto",
        stride: int | None = None,
        module: PretrainingModel | None = None,
        per: Per | None = None,
        reading: Reading | None = None,
        processes: Processes = ALONE,
    ) -> None:
        self.processes = processes
        objective = scoring_objective(run) if reading is None else require_reading(run, reading)[reading]
        if per is not None:
            require_per(per)
        if last_word and per:
            raise UserError("--per gives all words of a text, --last-word the last one; leave one of them out")
        if last_word and objective.scoring != "forwards":
            raise UserError(
                f"{run.path}: trained on {objective.kind}; --last-word needs a model that reads a text from its "
                "beginning, trained on clm, prefix_clm or bilm"
            )
        self.run, self.file, self.last_word, self.per, self.objective = run, file, last_word, per, objective
        self.measure: Literal["log_probability", "pseudo_log_likelihood"] = (
            "log_probability" if objective.scoring in ("forwards", "target") else "pseudo_log_likelihood"
        )
        self.pairs = objective.scoring == "target"
        if stride is not None:
            _require_stride(run, objective, stride)
        self.tokenizer = run.tokenizer
        self._words = WordStarts(self.tokenizer) if reading == "pseudo_words" else None
        self.where = file.name if isinstance(file, TextFile) else "texts"
        if not isinstance(file, TextFile) or not file.once:
            if isinstance(file, TextFile):
                processes.once(file.count)
            if self.pairs:
                for _ in self._parts():
                    pass
        self._scorer = scorer_of(
            run, objective, last_word, device, reading == "pseudo_words", stride, module, processes
        )

    def __iter__(self) -> Iterator[TextScore]:
        """Score one text after the other.

        Raises:
            UserError: the file, changed meanwhile or read from a pipe, has a mistake.
        """
        for given, rows in self._parts():
            texts = [each[-1] for each in given]
            tokens = [] if self.per is None else self.tokenizer.encode_placed(texts, self.pairs)
            for number, (text, row, scores) in enumerate(zip(texts, rows, self._scorer.score(rows), strict=True)):
                found = self._score(clean(text), row, scores)
                if self.per is not None:
                    values, unknown = scores.log_probabilities, self.tokenizer.unknown
                    found = found._replace(parts=surprisals(text, tokens[number], values, self.per, unknown))
                yield found

    def _parts(self) -> Iterator[tuple[list[tuple[str, ...]], list[ScoredText]]]:
        """Texts as given, and their rows, a bounded number at once; pairs beyond the model's positions are refused."""
        longest = self.run.recipe.model.longest_input if self.pairs else None
        before = len(self.objective.prompt(self.tokenizer)) - 1 if self.pairs else 0
        done = 0
        for part in self.processes.read_once(read_ahead(self.file, TEXTS_AT_ONCE)):
            texts = [tuple(map(clean, each)) for each in part]
            rows = self._rows(texts)
            for number, row in enumerate(rows, done + 1):
                length = max(before + len(row.ids), 0 if row.source is None else len(row.source))
                if longest is not None and length > longest:
                    raise UserError(
                        f"{self.where}: pair {number:,} has {length:,} tokens; the model has {longest:,} positions"
                    )
            done += len(rows)
            yield part, rows

    def _rows(self, texts: Sequence[tuple[str, ...]]) -> list[ScoredText]:
        if self.pairs:
            own = self.tokenizer.encode_targets([target for _, target in texts])
            ends = np.split(own.ids.astype(np.int64), np.cumsum(own.lengths)[:-1])
            sources = [np.array(encoded(source, self.tokenizer, self.run), np.int64) for source, _ in texts]
            separator = self.tokenizer.separator
            return [ScoredText(np.append(ids, separator), 0, source) for ids, source in zip(ends, sources, strict=True)]
        rows = self.tokenizer.encode([text for (text,) in texts])
        if (words := self._words) is not None:
            return [ScoredText(ids, 0, starts=words.starts(ids, starts)) for ids, starts in rows]
        end = self.tokenizer.end_of_line if self.objective.scoring == "forwards" else None
        if end is not None and not self.last_word:  # a text is a line, whose end is a token
            return [ScoredText(np.append(ids, end) if len(ids) else ids, 0) for ids, _ in rows]
        return [ScoredText(ids, _last_start(starts) if self.last_word else 0) for ids, starts in rows]

    def _score(self, text: str, row: ScoredText, scores: TokenScores) -> TextScore:
        ids = row.ids[row.first :]
        likeliest = None
        if self.last_word and len(ids):
            text = text[_last_start(np.diff(words_before(text)) > 0) :].strip()
            likeliest = bool(scores.likeliest.all())
        hidden = self.tokenizer.encode_targets([text]).hidden
        total = None if 0 < hidden.unknown == len(ids) else float(scores.log_probabilities.sum())
        return TextScore(text, total, len(ids), hidden.unknown, hidden, likeliest)


def scoring_objective(run: Run) -> ObjectiveConfig:
    """The first objective of a run that gives texts a probability, of those trained until the end if there is one.

    Raises:
        UserError: no objective of the run does.
    """
    objectives: list[ObjectiveConfig] = list(run.recipe.trained_first)
    found = next((each for each in objectives if each.scoring is not None), None)
    if found is None:
        raise UserError(
            f"{run.path}: trained on {', '.join(each.kind for each in objectives)}, which gives texts no probability; "
            "scoring needs clm, prefix_clm, bilm, mlm, permutation, denoising, deshuffling, prefix_lm or translation"
        )
    return found


def _require_stride(run: Run, objective: ObjectiveConfig, stride: int) -> None:
    """Check a stride.

    Raises:
        UserError: the run reads no text in windows, or the stride exceeds a row.
    """
    if objective.scoring == "target":
        raise UserError(f"{run.path}: --stride: pairs are read whole; leave it out")
    if objective.scoring == "forwards" and run.recipe.input.continues:
        raise UserError(f"{run.path}: --stride: this run reads a text once, row by row, with a memory; leave it out")
    room = run.recipe.input.length - (0 if objective.scoring == "forwards" else 2)  # [CLS] and [SEP]
    if not 1 <= stride <= room:
        raise UserError(f"{run.path}: --stride {stride}: a row has {room} tokens of a text; give 1 to {room}")


def scorer_of(
    run: Run,
    objective: ObjectiveConfig,
    last_word: bool,
    device: str,
    whole_words: bool = False,
    stride: int | None = None,
    module: PretrainingModel | None = None,
    processes: Processes = ALONE,
) -> Scorer:
    """The scorer of a run for one of its objectives.

    Args:
        run: the run.
        objective: one of the run's objectives.
        last_word: find also whether each token is the likeliest; for causal models.
        device: auto, cpu, cuda or mps.
        whole_words: hide the later tokens of a token's word, too; for bidirectional models.
        stride: for texts longer than a row, the largest number of tokens that are scored in each window but the first;
            None: half a row.
        module: the run's model if it is loaded already; None: load it to the device.
        processes: those that score the same texts together.
    """
    module = module or run.load(resolve_device(device))
    tokenizer, recipe = run.tokenizer, run.recipe
    predictions = TokenPredictions(module, objective.kind, never_written(tokenizer) if last_word else None, processes)
    if objective.scoring == "forwards":
        return Forwards(module, predictions, tokenizer.opening, recipe.input.length, recipe.input.continues, stride)
    if objective.scoring == "target":
        return OfTargets(module, predictions, objective.prompt(tokenizer))
    special = tokenizer.start, tokenizer.separator, tokenizer.mask
    return EachAlone(module, predictions, objective, recipe, special, whole_words, stride)


def _last_start(starts: NDArray[np.bool_]) -> int:
    """The index of the last True; 0 if there is none."""
    return int(np.flatnonzero(starts)[-1]) if starts.any() else 0
