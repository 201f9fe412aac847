"""The pseudo-log-likelihood of a text (Salazar et al. 2020): each token's log-probability, given all others."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bakeoff.inference.token_scores import ScoredText, TokenPredictions, TokenScores, batches, padded
from bakeoff.inference.windows import Window, windows_around
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.models.inputs import Inputs, Queries
from bakeoff.objectives.objective import ObjectiveConfig
from bakeoff.recipe import Recipe


class _Target(NamedTuple):
    """One token of a text, and where it stands."""

    place: int
    """The text's."""
    window: Window
    token: int
    """The token's place in the text."""
    until: int
    """The place behind the last one that is hidden with it."""


class EachAlone:
    """Models that see both sides: sum_t log p(x[t] | all but x[t]), arXiv:1910.14659, equation 3.

    A copy of the row for each token, in which [MASK] stands for it or, where the model has a second stream, no other
    token sees it and a query asks for it: XLNet's objective with that token last in the order. Rows are [CLS] A [SEP],
    or A [SEP] [CLS] where [CLS] is last, as in fine-tuning; where what is hidden is predicted at the place before it,
    [SEP] A, as that objective's documents are.

    The pieces of a word give each other away, so that words of several pieces are overrated; with `whole_words` the
    pieces of the token's word behind it are hidden, too, as in PLL-word-l2r (Kauf and Ivanova 2023, arXiv:2305.10588):
    sum_t log p(x[t] | all but x[t] and what follows it in its word).

    Args:
        module: the model with its heads, in evaluation mode.
        predictions: its head's.
        objective: the objective that predicts.
        recipe: its recipe.
        special: ids of [CLS], [SEP] and [MASK].
        whole_words: hide what follows a token in its word; rows without word starts are as without.
        stride: tokens from one window of a text that is longer than a row to the next; None: half a row.
    """

    def __init__(
        self,
        module: PretrainingModel,
        predictions: TokenPredictions,
        objective: ObjectiveConfig,
        recipe: Recipe,
        special: tuple[int, int, int],
        whole_words: bool = False,
        stride: int | None = None,
    ) -> None:
        self.module, self.predictions, self.objective = module, predictions, objective.kind
        self.queries, self.from_before = objective.scoring == "query", objective.from_before
        self.whole_words, self.stride = whole_words, stride
        start, separator, self.mask = special
        self.start_last = recipe.input.start_last and not self.from_before
        self.before = [] if self.start_last else [start]
        self.behind = [separator, start] if self.start_last else [separator]
        if self.from_before:
            self.before, self.behind = [separator], []
        self.room = recipe.input.length - len(self.before) - len(self.behind)
        self.device = module.model.embedding.table.device

    @torch.inference_mode()
    def score(self, rows: Sequence[ScoredText]) -> list[TokenScores]:
        """Each row's scores, in the order of the rows."""
        found = [TokenScores(len(row.ids)) for row in rows]
        targets = [
            _Target(place, window, token, min(window.end, ends[token]))
            for place, row in enumerate(rows)
            for ends in [self._ends(row)]
            for window in windows_around(len(row.ids), self.room, self.stride)
            for token in range(window.scored, window.until)
        ]
        special = len(self.before) + len(self.behind)
        for batch in batches([special + target.window.end - target.window.begin for target in targets]):
            chosen = [targets[index] for index in batch]
            self._score(chosen, rows, found)
        return found

    def _score(self, chosen: Sequence[_Target], rows: Sequence[ScoredText], found: Sequence[TokenScores]) -> None:
        copies = [self._row(rows[target.place], target.window) for target in chosen]
        ids, real = padded(copies, self.mask, self.device)
        count, length = ids.shape
        own = torch.arange(count, device=self.device)
        shift = torch.tensor([len(self.before) - target.window.begin for target in chosen], device=self.device)
        firsts = shift + torch.tensor([target.token for target in chosen], device=self.device)
        untils = shift + torch.tensor([target.until for target in chosen], device=self.device)
        labels = ids[own, firsts]
        every = torch.arange(length, device=self.device)
        unseen = (every >= firsts[:, None]) & (every < untils[:, None])  # (B, T)
        queries = None
        if self.queries:
            queries = Queries(firsts[:, None], (~unseen)[:, None].expand(-1, length + 1, -1))
        else:
            ids[unseen] = self.mask
        if self.from_before:
            # Padding stands behind the prefix, where nothing of it sees it.
            prefix = torch.tensor([len(copy) for copy in copies], device=self.device)
            states = self.module.hidden(self.objective, Inputs(ids, prefix=prefix))[own, firsts - 1]
        else:
            segments = self._segments(copies, length)
            hidden = self.module.hidden(self.objective, Inputs(ids, segments, real, queries=queries))
            states = hidden[:, length] if self.queries else hidden[own, firsts]
        self.predictions.write(states, labels, [(found[target.place], target.token, 1) for target in chosen])

    def _ends(self, row: ScoredText) -> list[int]:
        """For each token the place behind the last one that is hidden with it."""
        alone = list(range(1, len(row.ids) + 1))
        if not self.whole_words or row.starts is None:
            return alone
        for place in reversed(range(len(alone) - 1)):
            if not row.starts[place + 1]:
                alone[place] = alone[place + 1]
        return alone

    def _row(self, row: ScoredText, window: Window) -> NDArray[np.int64]:
        return np.concatenate([self.before, row.ids[window.begin : window.end], self.behind]).astype(np.int64)

    def _segments(self, copies: Sequence[NDArray[np.int64]], length: int) -> Tensor | None:
        """(B, T) segments: [CLS] has one of its own where it is last."""
        if not self.start_last:
            return None
        segments = torch.zeros(len(copies), length, dtype=torch.int64)
        segments[torch.arange(len(copies)), torch.tensor([len(copy) - 1 for copy in copies])] = 2
        return segments.to(self.device)
