"""The pseudo-log-likelihood of a text (Salazar et al. 2020): each token's log-probability, given all others."""

from collections.abc import Sequence
from typing import NamedTuple

import torch

from bakeoff.inference.both_sides import BothSides
from bakeoff.inference.token_scores import ScoredText, TokenPredictions, TokenScores, batches
from bakeoff.inference.windows import Window, windows_around
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.objectives.objective import ObjectiveConfig
from bakeoff.recipe import Recipe


class _Target(NamedTuple):
    """One token of a text, and where it stands."""

    place: int
    """The number of the text."""
    window: Window
    """The stretch of the text in which the token is read."""
    token: int
    """The token's place in the text."""
    until: int
    """The place behind the last one that is hidden with it."""


class EachAlone:
    """Models that see both sides: sum_t log p(x[t] | all but x[t]), arXiv:1910.14659, equation 3.

    A copy of the row for each token, in which it is hidden as `BothSides` says; with queries this is XLNet's objective
    with that token last in the order.

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
        self.predictions, self.whole_words, self.stride = predictions, whole_words, stride
        self.rows = BothSides(module, objective, recipe, special)

    @torch.inference_mode()
    def score(self, rows: Sequence[ScoredText]) -> list[TokenScores]:
        """Each row's scores, in the order of the rows."""
        found = [TokenScores(len(row.ids)) for row in rows]
        targets = [
            _Target(place, window, token, min(window.end, ends[token]))
            for place, row in enumerate(rows)
            for ends in [self._ends(row)]
            for window in windows_around(len(row.ids), self.rows.room, self.stride)
            for token in range(window.scored, window.until)
        ]
        lengths = [self.rows.special + each.window.end - each.window.begin for each in targets]
        for batch in batches(lengths, self.rows.device):
            chosen = [targets[index] for index in batch]
            self._score(chosen, rows, found)
        return found

    def _score(self, chosen: Sequence[_Target], rows: Sequence[ScoredText], found: Sequence[TokenScores]) -> None:
        copies = [self.rows.row(rows[each.place].ids[each.window.begin : each.window.end]) for each in chosen]
        shifts = [len(self.rows.before) - each.window.begin for each in chosen]
        states, labels = self.rows.read(
            copies,
            [shift + each.token for shift, each in zip(shifts, chosen, strict=True)],
            [shift + each.until for shift, each in zip(shifts, chosen, strict=True)],
        )
        self.predictions.write(states, labels, [(found[each.place], each.token, 1) for each in chosen])

    def _ends(self, row: ScoredText) -> list[int]:
        """For each token the place behind the last one that is hidden with it."""
        alone = list(range(1, len(row.ids) + 1))
        if not self.whole_words or row.starts is None:
            return alone
        for place in reversed(range(len(alone) - 1)):
            if not row.starts[place + 1]:
                alone[place] = alone[place + 1]
        return alone
