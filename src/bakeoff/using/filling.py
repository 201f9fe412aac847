"""Prediction of the tokens at the masks of a text. Shapes: N masks, D width, V vocabulary, T tokens."""

from collections.abc import Sequence
from functools import partial
from numbers import Integral
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bakeoff.batching.batch import Batch
from bakeoff.display.wording import listed
from bakeoff.errors import UserError
from bakeoff.generation.prompts import MASK
from bakeoff.generation.text_around_masks import encoded_around
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.lengths import padded
from bakeoff.objectives.heads import Head
from bakeoff.objectives.objective import ObjectiveConfig
from bakeoff.objectives.registry import OBJECTIVES
from bakeoff.reading.aligned import clean
from bakeoff.resources.device import Placement, ProductPrecision
from bakeoff.row import Row
from bakeoff.runs.run import Run
from bakeoff.scoring.bidirectional import BothSides
from bakeoff.scoring.token_scores import batches
from bakeoff.tokenizer.tokenizer import Tokenizer

SCORES = 1 << 24
"""Largest number of scores held at once: 64 MB in float32."""


class TokenCandidate(NamedTuple):
    """A candidate for a mask."""

    token: str
    """The text of the token alone, without white space around it; of a token that is white space, that."""
    id: int
    """The id of the token."""
    probability: float
    """The probability among all tokens of the vocabulary, special tokens included."""


Filled = list[list[TokenCandidate]]
"""The most probable tokens of each mask of a text, in the order of masks, the most probable token first."""


def filling_objective(run: Run) -> ObjectiveConfig | None:
    """The objective by which a run fills masks: one that predicts hidden tokens, else a causal one; None: neither."""
    objectives: list[ObjectiveConfig] = list(run.recipe.trained_first)
    hidden = [each for each in objectives if _hides(each)]
    forwards = [each for each in objectives if each.scoring == "forwards"]
    return next(iter(hidden + forwards), None)


def _hides(objective: ObjectiveConfig | type[ObjectiveConfig]) -> bool:
    return objective.scoring in ("masked", "query") or objective.from_before


class _Row(NamedTuple):
    """The row of a text with masks."""

    ids: NDArray[np.int64]
    """(T,) tokens of the row, special ones included."""
    positions: list[int]
    """The positions of its masks."""


class Filler:
    """Prediction of the tokens at [MASK]; each mask of a text is predicted independently, with all masks hidden.

    A bidirectional model fills masks anywhere. A causal model predicts the token after a text, so that the only mask
    stands at the text's end. Of a text longer than a row, the tokens around its masks are read.

    Args:
        run: a pre-trained run.
        module: the run's model with its heads, in evaluation mode.
        precision: float32 or bfloat16, the precision of products.

    Raises:
        UserError: no objective of the run fills masks.
    """

    def __init__(self, run: Run, module: PretrainingModel, precision: ProductPrecision = "float32") -> None:
        objective = filling_objective(run)
        if objective is None:
            able = [kind for kind, config in OBJECTIVES.items() if _hides(config) or config.scoring == "forwards"]
            trained = ", ".join(each.kind for each in run.recipe.objective)
            hint = "; `generate` writes what belongs there" if module.writing else f"; that needs {listed(able, 'or')}"
            raise UserError(f"{run.path}: trained on {trained}, which gives the tokens at a mask no probability{hint}")
        self._run, self._module, self._tokenizer = run, module, run.tokenizer
        self._objective, self._device = objective.kind, module.model.device
        self._placement = Placement(self._device, precision)
        self._shown_not = torch.from_numpy(run.tokenizer.special_ids).to(self._device)
        tokenizer = run.tokenizer
        special = tokenizer.start, tokenizer.separator, tokenizer.mask
        self._both = BothSides(module, objective, run.recipe, special) if _hides(objective) else None
        self._length = run.recipe.input.length

    @torch.inference_mode()
    def fill(self, texts: Sequence[str], k: int, done: int = 0) -> list[Filled]:
        """The k most probable tokens for each mask of each text, independent of the other texts.

        Args:
            texts: the texts.
            k: number of tokens for each mask.
            done: number of texts before these, for the numbers of texts in errors.

        Raises:
            UserError: a text has no mask, masks further apart than a row is long, or a mask that the model cannot
                fill; or k is below 1.
        """
        whole = isinstance(k, Integral) and not isinstance(k, bool)
        if not whole or k < 1:
            number = f"{k} tokens for a mask" if whole else f"{k!r} is no whole number"
            raise UserError(f"k: {number}; give 1 or more")
        rows = [self._row(number, text) for number, text in enumerate(texts, done + 1)]
        filled: list[Filled] = [[] for _ in rows]
        for chosen in batches([len(row.ids) for row in rows], self._device):
            row, positions = self._read([rows[index] for index in chosen])
            batch, best = Batch(row, {self._objective: (positions, positions)}), partial(self._candidates, k)
            with self._placement.autocast():
                candidates = self._module(batch, score=best)[0][self._objective]
            owners = [index for index in chosen for _ in rows[index].positions]
            for owner, candidate in zip(owners, candidates, strict=True):
                filled[owner].append(candidate)
        return filled

    def _read(self, rows: Sequence[_Row]) -> tuple[Row[Tensor], Tensor]:
        """Rows of tokens, and the (N,) positions of the states that predict their masks."""
        if self._both is None:
            ids, _ = padded([row.ids for row in rows], self._tokenizer.pad, self._device)
            ends = [number * ids.shape[1] + len(row.ids) - 1 for number, row in enumerate(rows)]
            return Row(ids, forwards=True), torch.tensor(ends, device=self._device)
        firsts = [position for row in rows for position in row.positions]
        owners = [number for number, row in enumerate(rows) for _ in row.positions]
        row, positions, _ = self._both.read(
            [row.ids for row in rows], firsts, [position + 1 for position in firsts], owners
        )
        return row, positions

    def _candidates(self, k: int, head: Head, rows: Tensor, _: Tensor, table: Tensor) -> list[list[TokenCandidate]]:
        """The candidates of each row."""
        candidates = []
        for part in rows.split(max(1, SCORES // len(table))):
            scores = head.log_probabilities(part, table)
            scores = scores.index_fill(1, self._shown_not, float("-inf"))[:, : self._tokenizer.size]
            best, tokens = scores.topk(min(k, self._tokenizer.size - len(self._shown_not)), dim=-1)
            for ids, probabilities in zip(tokens.tolist(), best.exp().tolist(), strict=True):
                named = zip(ids, probabilities, strict=True)
                candidates.append([TokenCandidate(self._alone(i), i, share) for i, share in named])
        return candidates

    def _alone(self, token: int) -> str:
        text = self._tokenizer.decode([token])
        return text.strip() or text or " "  # a word's beginning alone is read as nothing

    def _row(self, number: int, text: str) -> _Row:
        parts = masked_parts(text, self._tokenizer)
        if len(parts) < 2:
            raise UserError(f"text {number:,} ('{text[:30]}'): has no {MASK}; put it where a token is missing")
        if self._both is None:
            if len(parts) > 2 or parts[1].strip():
                raise UserError(
                    f"{self._run.path}: reads forwards, and predicts what follows a text: text {number} "
                    f"('{text[:30]}') must have one {MASK}, at its end"
                )
            ids = self._tokenizer.encode(parts[:1])[0][0][-(self._length - 1) :]
            return _Row(np.concatenate([[self._tokenizer.opening], ids]).astype(np.int64), [0])
        encoded = encoded_around(parts, self._tokenizer)
        positions = (np.cumsum([len(ids) + 1 for ids in encoded[:-1]]) - 1).tolist()
        parted = [ids for part in encoded for ids in (part, [self._tokenizer.mask])][:-1]
        ids = np.concatenate(parted).astype(np.int64)
        room = self._both.room
        if positions[-1] - positions[0] >= room:
            raise UserError(
                f"text {number}: its {MASK} are {positions[-1] - positions[0] + 1:,} tokens apart; a row has {room}"
            )
        begin = min(max(0, (positions[0] + positions[-1] + 1) // 2 - room // 2), max(0, len(ids) - room))
        shift = len(self._both.before) - begin
        return _Row(self._both.row(ids[begin : begin + room]), [position + shift for position in positions])


def masked_parts(text: str, tokenizer: Tokenizer) -> list[str]:
    """The texts between the masks of a text, in the form of a corpus: in NFC, with single spaces.

    White space before a mask is dropped, because it begins the masked word's token. The tokenizer's name of the
    mask counts as a mask, too.
    """
    name = tokenizer.decode([tokenizer.mask], skip_special=False).strip()
    parts = clean(text.replace(name, MASK) if name else text).split(MASK)
    return [*(part.rstrip() for part in parts[:-1]), parts[-1]]
