"""Pseudo-log-likelihood of texts (Salazar et al. 2020): each token's log-probability, given all other tokens."""

from collections.abc import Sequence
from typing import NamedTuple

import torch

from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.objectives.objective import ObjectiveConfig
from bakeoff.recipe import Recipe
from bakeoff.scoring.bidirectional import BothSides
from bakeoff.scoring.token_scores import ScoredText, TokenPredictions, TokenScores, batches
from bakeoff.scoring.windows import Window, windows_around


class _Target(NamedTuple):
    """A token to be scored."""

    number: int
    """The index of the text."""
    window: Window
    """The window of the text in which the token is scored."""
    token: int
    """The position of the token in the text."""
    until: int
    """The end of the span that is hidden with the token, exclusive."""


class EachAlone:
    """Scores of bidirectional models: sum_t log p(x[t] | all tokens but x[t]), arXiv:1910.14659, equation 3.

    Each token is hidden in a copy of the row, see `BothSides`; with queries this is XLNet's objective with the token
    last in the order.

    Pieces of a word predict each other well, so that words of several pieces are overrated. With `whole_words` the
    pieces after the token in its word are hidden as well, as in PLL-word-l2r (Kauf and Ivanova 2023,
    arXiv:2305.10588): sum_t log p(x[t] | all tokens but x[t] and the later tokens of its word).

    Args:
        module: the model with its heads, in evaluation mode.
        predictions: the predictions of the objective's head.
        objective: the objective whose head predicts.
        recipe: the run's recipe.
        special: ids of [CLS], [SEP] and [MASK].
        whole_words: hide the later tokens of a token's word, too; rows without starts of words are unaffected.
        stride: tokens from one window to the next in a text longer than a row; None: half a row.
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
        """The scores of each row's tokens from `first` on, in the order of rows."""
        found = [TokenScores(len(row.ids) - row.first) for row in rows]
        targets = [
            _Target(number, window, token, min(window.end, ends[token]))
            for number, row in enumerate(rows)
            for ends in [self._ends(row)]
            for window in windows_around(len(row.ids), self.rows.room, self.stride)
            for token in range(max(window.scored, row.first), window.until)
        ]
        lengths = [self.rows.special + each.window.end - each.window.begin for each in targets]
        for batch in self.predictions.share(batches(lengths, self.rows.device)):
            chosen = [targets[index] for index in batch]
            self._score(chosen, rows, found)
        return self.predictions.joined(found)

    def _score(self, chosen: Sequence[_Target], rows: Sequence[ScoredText], found: Sequence[TokenScores]) -> None:
        copies = [self.rows.row(rows[each.number].ids[each.window.begin : each.window.end]) for each in chosen]
        shifts = [len(self.rows.before) - each.window.begin for each in chosen]
        hidden = self.rows.read(
            copies,
            [shift + each.token for shift, each in zip(shifts, chosen, strict=True)],
            [shift + each.until for shift, each in zip(shifts, chosen, strict=True)],
        )
        owners = [(found[each.number], each.token - rows[each.number].first, 1) for each in chosen]
        self.predictions.write(*hidden, owners)

    def _ends(self, row: ScoredText) -> list[int]:
        """The end, exclusive, of the span that is hidden with each token."""
        alone = list(range(1, len(row.ids) + 1))
        if not self.whole_words or row.starts is None:
            return alone
        for number in reversed(range(len(alone) - 1)):
            if not row.starts[number + 1]:
                alone[number] = alone[number + 1]
        return alone
