"""Rows of bidirectional models, and the states from which these predict hidden tokens.

Shapes: B rows, T length, D width, N predicted tokens.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.lengths import padded
from bakeoff.objectives.objective import ObjectiveConfig
from bakeoff.recipe import Recipe
from bakeoff.row import Queries, Row


class BothSides:
    """Prediction of hidden tokens; [MASK] hides a token, or in models with a second stream the attention mask does.

    Rows are [CLS] A [SEP], or A [SEP] [CLS] where [CLS] is last, as in fine-tuning. Objectives that predict a token at
    the position before it read [SEP] A, as their documents are.

    Args:
        module: the model with its heads, in evaluation mode.
        objective: the objective whose head predicts.
        recipe: the run's recipe.
        special: ids of [CLS], [SEP] and [MASK].

    Attributes:
        room: the largest number of a text's tokens in a row.
        before: ids of the special tokens before a text.
        special: the number of special tokens in a row.
    """

    def __init__(
        self, module: PretrainingModel, objective: ObjectiveConfig, recipe: Recipe, special: tuple[int, int, int]
    ) -> None:
        self.queries, self.from_before = objective.scoring == "query", objective.from_before
        start, separator, self.mask = special
        self.start_last = recipe.input.start_last and not self.from_before
        self.before = [] if self.start_last else [start]
        self._behind = [separator, start] if self.start_last else [separator]
        if self.from_before:
            self.before, self._behind = [separator], []
        self.special = len(self.before) + len(self._behind)
        self.room = recipe.input.length - self.special
        self.device = module.model.device

    def row(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """The row of (T,) tokens of a text."""
        return np.concatenate([self.before, ids, self._behind]).astype(np.int64)

    def read(
        self,
        rows: Sequence[NDArray[np.int64]],
        firsts: Sequence[int],
        untils: Sequence[int],
        owners: Sequence[int] | None = None,
    ) -> tuple[Row[Tensor], Tensor, Tensor]:
        """The rows with N tokens hidden, the positions of the states that predict these, and the tokens.

        Args:
            rows: B rows.
            firsts: (N,) position of each hidden token in its row.
            untils: (N,) end of the span that is hidden together with the token, exclusive; only the token is predicted.
            owners: (N,) row of each hidden token, in rising order; None: one token in each row. All hidden tokens of a
                row are hidden at once.

        Returns:
            The rows, of whose hidden states those that predict are wanted alone; the (N,) positions of each token's
            among these; and (N,) the tokens.
        """
        ids, padding_mask = padded(rows, self.mask, self.device)
        length = ids.shape[1]
        own = torch.arange(len(rows), device=self.device) if owners is None else self._tensor(owners)
        positions, ends = self._tensor(firsts), self._tensor(untils)
        labels = ids[own, positions]
        every = torch.arange(length, device=self.device)
        spans = (every >= positions[:, None]) & (every < ends[:, None])  # (N, T)
        unseen = spans if owners is None else torch.zeros_like(ids).index_add_(0, own, spans.long()) > 0  # (B, T)
        if not self.queries:
            ids[unseen] = self.mask
        counts = torch.bincount(own, minlength=len(rows))
        asked = torch.arange(len(own), device=self.device) - (counts.cumsum(0) - counts)[own]  # (N,) within its row
        most = int(counts.max())
        wanted = torch.zeros(len(rows), most, dtype=torch.int64, device=self.device)
        if self.from_before:
            wanted[own, asked] = positions - 1
            # Padding stands after the prefix, which does not attend to it.
            row = Row(ids, prefix=self._tensor([len(row) for row in rows]), wanted=wanted)
        else:
            wanted[own, asked] = positions
            row = Row(ids, self._segments(rows, length), padding_mask, wanted=wanted)
        if self.queries:
            queries = Queries(wanted, (~unseen)[:, None].expand(-1, length + most, -1))
            behind = torch.arange(length, length + most, device=self.device).expand(len(rows), -1)
            row = row._replace(queries=queries, wanted=behind)
        return row, own * most + asked, labels

    def _segments(self, rows: Sequence[NDArray[np.int64]], length: int) -> Tensor | None:
        """(B, T) segments in which a last [CLS] has its own segment, 2; None: rows begin with [CLS]."""
        if not self.start_last:
            return None
        segments = torch.zeros(len(rows), length, dtype=torch.int64)
        segments[torch.arange(len(rows)), torch.tensor([len(row) - 1 for row in rows])] = 2
        return segments.to(self.device)

    def _tensor(self, numbers: Sequence[int]) -> Tensor:
        return torch.tensor(numbers, dtype=torch.int64, device=self.device)
