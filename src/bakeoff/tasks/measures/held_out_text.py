"""Held-out text as a measure: losses of a run on it, bits per byte and perplexity a word, row by row.

Runs read the same text in rows of their own: of other lengths, or of other tokens. They are compared stretch by stretch
of the text, each stretch the same share of it for all: a row that crosses the border of two stretches counts in each by
its share. Stretches of one document belong together, for another held-out text would have other documents.
"""

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor
from typing_extensions import override

from bakeoff.batching.batch import Batch
from bakeoff.batching.batches import Batches
from bakeoff.corpus.mixture import Mixture, open_corpus
from bakeoff.corpus.split import Split
from bakeoff.corpus.store import Corpus
from bakeoff.corpus.trigram import trigram_bits
from bakeoff.display.wording import listed, quoted
from bakeoff.errors import UserError
from bakeoff.models.part import ModelState
from bakeoff.objectives.heads import Head, Score, token_losses
from bakeoff.objectives.held_out import held_out_settings, what_differs
from bakeoff.objectives.objective import ObjectiveConfig, Sharing
from bakeoff.objectives.registry import OBJECTIVES
from bakeoff.ops.linear_cross_entropy import rows_at_once
from bakeoff.recipe import Recipe
from bakeoff.resources.device import Placement, resolve_device
from bakeoff.runs.run import Run
from bakeoff.tasks.measures.expected import UntrainedRun, seconds_of_rows
from bakeoff.tasks.measures.measure import Anchor, MeasureConfig, Measured, Measurement, Panel
from bakeoff.tasks.scores.jackknife import Vector, of_ratios
from bakeoff.tasks.task_config import Metric
from bakeoff.tokenizer.identity import identity_of
from bakeoff.tokenizer.tokenizer import Tokenizer
from bakeoff.training.stages import make_batches

STRETCHES = 200
"""The most stretches of the text that are told apart."""

BITS, WORDS, LOSS = "bits_per_byte", "word_perplexity", "loss"
"""The metrics; in `Measured.scores` the name of the objective follows, after a colon."""

IN_SHARES = "in_shares"
"""The fact that each corpus of a mixture has counted by its share, as it did not in older versions."""

_SUMS = ("values", "targets")
"""The keys of a row."""

SHOWN = {
    BITS: Metric("bits per byte", ""),
    WORDS: Metric("perplexity a word", "", lowest=1.0),
    LOSS: Metric("loss, nats", ""),
}
"""The metrics as they are shown."""


class HeldOutTextConfig(MeasureConfig):
    """The held-out text of the plan's corpus: losses, and bits per byte and perplexity a word of causal models."""

    kind: Literal["held_out_text"] = "held_out_text"
    """Held-out text, without labels."""
    rows: int = Field(default=4096, gt=1)
    """The most rows of the text that are read, spread evenly over it."""

    in_words: ClassVar[str] = "held-out text"
    in_points: ClassVar[bool] = False
    reads_text: ClassVar[bool] = True

    @override
    def measure(self, run: Run, text: str | None, device: str) -> Measured:
        assert text is not None
        corpus = open_corpus(text)
        run.require_tokenizer_of(corpus)
        split, on = corpus.split("validation"), resolve_device(device)
        module = run.load(on)
        batches = make_batches(run.recipe, module, corpus, seed=0, split="validation")
        whole = batches.rows_an_epoch <= self.rows and not isinstance(corpus, Mixture)
        directions = run.recipe.model.directions
        # Reported numbers are computed in float32, to depend on the machine as little as possible.
        read = batches.whole() if whole else batches.fixed(self.rows)
        rows = row_sums(module, read, Placement(on, "float32"), directions, partial(per_target, token_losses))
        nats, targets = ({name: sum(row[key].get(name, 0) for row in rows) for name in module.weights} for key in _SUMS)
        losses = {name: nats[name] / targets[name] for name in nats if targets[name]}
        factors = _factors(split, batches, module.predicts_tokens, targets if whole else None)
        if any(isinstance(each, Sharing) for each in module.objectives):  # whose rows are read in several ways
            factors = {name: {key: of[key] for key in of if key != WORDS} for name, of in factors.items()}
        scores = {f"{LOSS}:{name}": loss for name, loss in losses.items()}
        for name, of_name in factors.items():
            if name in losses:
                scores |= {f"{metric}:{name}": _value(metric, losses[name], of_name[metric]) for metric in of_name}
        facts = {"tokenizer": mark_of(run.tokenizer), "vocabulary": str(run.tokenizer.config), "factors": factors}
        of_mixture = {IN_SHARES: True} if isinstance(corpus, Mixture) else {}
        return Measured(scores, rows, {**facts, **of_mixture, "rows": len(rows), "of_rows": batches.rows_an_epoch})

    @override
    def expected_seconds(self, recipe: Recipe, tokenizer: Tokenizer, text: str | None, device: str) -> float:
        assert text is not None
        on, run = resolve_device(device), UntrainedRun(recipe, tokenizer)
        module = run.load(on)
        batches = make_batches(run.recipe, module, open_corpus(text), seed=0, split="validation")
        placement, losses = Placement(on, "float32"), partial(per_target, token_losses)
        return seconds_of_rows(
            lambda count: row_sums(module, batches.fixed(count), placement, run.recipe.model.directions, losses),
            min(self.rows, batches.rows_an_epoch),
        )

    @override
    def panels(self, measurements: Sequence[Measurement], recipes: Mapping[str, Any], text: str) -> list[Panel]:
        if isinstance(open_corpus(text), Mixture) and len({IN_SHARES in each.facts for each in measurements}) > 1:
            why = "an older version, which did not count corpora by their shares, has measured some recipes"
            raise UserError(f"{text}: {why}; compare into another folder")
        groups: dict[tuple[str, str], list[Measurement]] = {}
        for each in measurements:
            for name in dict.fromkeys(key.partition(":")[2] for key in each.scores):
                settings = held_out_settings(recipes[each.label], name)
                groups.setdefault((name, json.dumps(settings)), []).append(each)
        made = []
        for (name, own), those in groups.items():
            metrics = _metrics(name, those)
            all_settings = [json.loads(each) for objective, each in groups if objective == name]
            title = ", ".join([title_of(OBJECTIVES[name]), *what_differs(json.loads(own), all_settings)])
            able = [each for each in those if f"{metrics[0]}:{name}" in each.scores]
            lost = dict.fromkeys(quoted(each.label) for each in those if each not in able)
            why = "much of the text is unknown to its tokenizer, so that its losses compare with no other's"
            notes = [f"{listed([*lost])} left out: {why}"] if lost else []
            shown = [metric for metric in metrics if able and all(f"{metric}:{name}" in each.scores for each in able)]
            of_title = [_panel(able, title, name, metric, text) for metric in shown]
            made += [panel._replace(notes=notes if panel is of_title[0] else ()) for panel in of_title]
        return sorted(made, key=lambda panel: [*OBJECTIVES].index(panel.metric.partition(":")[2]))


@torch.no_grad()
def row_sums(
    module: Any, batches: Iterable[Batch], placement: Placement, directions: int, score: Score
) -> list[dict[str, dict[str, float]]]:
    """For each row the sum of a score over its targets, `values`, and their number, `targets`, of each objective.

    Both are multiplied by the number of rows that a row of a mixture counts for.

    Args:
        module: the model with its heads.
        batches: the rows.
        placement: the device and the precision.
        directions: the number of directions that the model reads in.
        score: makes the (N,) scores of N targets.
    """
    module.eval()
    state: ModelState | None = None
    found: list[dict[str, dict[str, float]]] = []
    for batch in batches:
        moved, count = batch.to(placement.device), len(batch.row.ids)
        if batch.advance is not None and state is None:
            state = module.model.start(count)
        with placement.autocast():
            measured, state = module(moved, state, score)
        queries = batch.row.queries
        length = (batch.row.ids if queries is None else queries.visible).shape[1] * directions
        sums, counts = {}, {}
        for name, losses in measured.items():
            owners = batch.targets[name][0].cpu().numpy() // length
            sums[name] = np.bincount(owners, losses.double().cpu().numpy(), count)
            counts[name] = batch.counted_rows.get(name, np.bincount(owners, minlength=count))
        found += [
            {
                "values": {name: batch.counted * float(values[row]) for name, values in sums.items()},
                "targets": {name: batch.counted * int(values[row]) for name, values in counts.items()},
            }
            for row in range(count)
        ]
    return found


def per_target(
    score: Score, head: Head, rows: Tensor, labels: Tensor, table: Tensor, weights: Tensor | None = None
) -> Tensor:
    """(N,) a score of each target, times its weight where it has one, of as many at once as fit memory."""
    size = rows_at_once(len(table))
    pairs = zip(rows.split(size), labels.split(size), strict=True)
    parts: list[Tensor] = [score(head, some, right, table) for some, right in pairs]
    scores = torch.cat(parts) if parts else rows.new_zeros(0)
    return scores if weights is None else scores * weights


def _factors(
    split: Any, batches: Batches, predicts_tokens: Mapping[str, bool], targets: Mapping[str, float] | None
) -> dict[str, dict[str, float]]:
    """What turns the mean loss of each objective into bits per byte, and into the loss of a word, by metric.

    Args:
        split: the held-out text.
        batches: its rows.
        predicts_tokens: whether each objective predicts tokens.
        targets: the number of targets of each objective in the whole text; None: a part of it was read.
    """
    factors: dict[str, dict[str, float]] = {}
    for name in (name for name, of_tokens in predicts_tokens.items() if of_tokens and not split.all_unknown):
        of_name = factors[name] = {}
        if split.no_bits_per_byte is None:
            of_name[BITS] = batches.targets_per_byte(name) / math.log(2)
        if OBJECTIVES[name].whole_text and isinstance(split, Split) and split.counts.words:
            tokens = len(split.tokens) + batches.separators[0]
            of_name[WORDS] = (tokens if targets is None else targets[name]) / split.counts.words
    return factors


def _value(metric: str, loss: float, factor: float) -> float:
    return math.exp(min(loss * factor, 700.0)) if metric == WORDS else loss * factor


def _panel(those: Sequence[Measurement], title: str, name: str, metric: str, text: str) -> Panel:
    """The comparison of some recipes by a metric of an objective."""
    count = min(STRETCHES, *(len(each.lines) for each in those))
    rows: dict[str, list[Vector]] = {}
    for each in those:
        nats, targets = (stretched([line[key].get(name, 0) for line in each.lines], count) for key in _SUMS)
        losses = of_ratios(nats, targets)
        factor = each.facts["factors"].get(name, {}).get(metric, 1.0)
        if metric == WORDS:
            value = each.scores[f"{metric}:{name}"]
            losses = value * (1 + factor * (losses - each.scores[f"{LOSS}:{name}"]))  # the tangent at the mean
        else:
            losses = losses * factor
        rows.setdefault(each.label, []).append(losses)
    clusters = documents_of(text, count)
    files = {"held-out text": text}
    anchors = _anchors(those, name, metric, text)
    return Panel(title, f"{metric}:{name}", SHOWN[metric], True, tuple(rows), rows, clusters, 0.0, anchors, files)


def _anchors(those: Sequence[Measurement], name: str, metric: str, text: str) -> list[Anchor]:
    """What models that count the training text reach: single tokens, or three of them where each is predicted."""
    corpus, objective = open_corpus(text), OBJECTIVES[name]
    if metric == BITS and objective.whole_text and isinstance(corpus, Corpus):
        bits = trigram_bits(corpus)
        return [] if bits is None else [Anchor("counts of three tokens (Kneser-Ney)", bits, counts=True)]
    alike = all(each.facts["tokenizer"] == mark_of(corpus.tokenizer) for each in those)
    if metric == LOSS and objective.bounded_by_frequencies and not objective.bounds and alike:
        return [Anchor("counts of single tokens", corpus.validation.unigram_entropy(), counts=True)]
    return []


def _metrics(name: str, those: Sequence[Measurement]) -> list[str]:
    """The metrics by which measurements of an objective compare, the first one before all."""
    objective, alike = OBJECTIVES[name], len({each.facts["tokenizer"] for each in those}) == 1
    if objective.whole_text:
        return [LOSS, WORDS] if alike and f"{BITS}:{name}" not in those[0].scores else [BITS, WORDS]
    # Losses of tokens of several tokenizers do not compare.
    return [BITS] if objective.classes is None and not alike else [LOSS]


def title_of(objective: ObjectiveConfig | type[ObjectiveConfig]) -> str:
    """An objective's title as it stands within a line."""
    return objective.title[:1].lower() + objective.title[1:]


def mark_of(tokenizer: Tokenizer) -> str:
    """What tells a tokenizer from others."""
    return hashlib.sha256(identity_of(tokenizer).encode()).hexdigest()[:16]


def stretched(values: Sequence[float], count: int) -> Vector:
    """(count,) sums over equal stretches of rows; one that crosses a border counts on each side by its share."""
    before = np.concatenate([[0.0], np.cumsum(np.asarray(values, np.float64))])
    borders = np.linspace(0, len(values), count + 1)
    return np.diff(np.interp(borders, np.arange(len(values) + 1), before))


def documents_of(text: str, count: int) -> list[int]:
    """The number of the document in the middle of each stretch of a held-out text; empty: each has its own."""
    corpus = open_corpus(text)
    if isinstance(corpus, Mixture):
        return []
    split = corpus.split("validation")
    middles = (np.arange(count) + 0.5) / count * len(split.tokens)
    of_stretch: NDArray[np.int64] = np.searchsorted(split.documents, middles, side="right") - 1
    numbers = split.originals[of_stretch]
    _, codes = np.unique(numbers, return_inverse=True)
    found: list[int] = codes.tolist()
    return found if 1 < len({*found}) < count else []
