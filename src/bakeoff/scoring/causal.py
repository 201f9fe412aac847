"""Log-probability of texts by causal models: each token's log-probability, given the tokens before it."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.lengths import by_length, padded
from bakeoff.models.part import ModelState, chosen_rows
from bakeoff.resources.device import tokens_at_once
from bakeoff.row import Row
from bakeoff.scoring.token_scores import POSITIONS, ScoredText, TokenPredictions, TokenScores, batches
from bakeoff.scoring.windows import Window, windows_behind


class Forwards:
    """Scores of causal models, and of the forward direction of models with two directions.

    A text begins after the separator, as documents do, or after an end-of-line token if ends of lines are tokens. A
    text longer than a row is read in windows, or, if rows of the training continued each other, in consecutive rows, so
    that nothing is read twice. For a model that reads prefixes, the tokens of a window before the first scored token
    are the prefix.

    Args:
        module: the model with its heads, in evaluation mode.
        predictions: the predictions of the head for next tokens.
        separator: id of the token before each text.
        length: the largest length of a row in tokens.
        continues: whether rows continue each other.
        stride: the largest number of tokens that a window after the first one adds; None: half a row.
    """

    def __init__(
        self,
        module: PretrainingModel,
        predictions: TokenPredictions,
        separator: int,
        length: int,
        continues: bool,
        stride: int | None = None,
    ) -> None:
        self.model, self.predictions, self.reads_prefix = module.model, predictions, module.reads_prefix
        self.separator, self.length, self.continues, self.stride = separator, length, continues, stride
        self.device = self.model.device

    @torch.inference_mode()
    def score(self, rows: Sequence[ScoredText]) -> list[TokenScores]:
        """The scores of each row's tokens from `first` on, in the order of rows."""
        found = [TokenScores(len(row.ids) - row.first) for row in rows]
        if self.continues:
            self._in_turn(rows, found)
        else:
            self._in_windows(rows, found)
        return self.predictions.joined(found)

    def _in_windows(self, rows: Sequence[ScoredText], found: Sequence[TokenScores]) -> None:
        windows = [
            (number, window)
            for number, row in enumerate(rows)
            for window in windows_behind(len(row.ids), self.length, row.first, self.stride)
        ]
        for batch in self.predictions.share(batches([each.end - each.begin for _, each in windows], self.device)):
            chosen = [windows[index] for index in batch]
            # Padding stands after the tokens, which do not attend to it.
            ids, _ = padded(
                [self._read(rows[number], window) for number, window in chosen], self.separator, self.device
            )
            prefix = None
            if self.reads_prefix:
                prefix = torch.tensor([1 + w.scored - w.begin for _, w in chosen], device=self.device)
            row = Row(ids, prefix=prefix, forwards=True)
            self._write(row, [(rows[number], found[number], window) for number, window in chosen])

    def _in_turn(self, rows: Sequence[ScoredText], found: Sequence[TokenScores]) -> None:
        count = max(1, tokens_at_once(self.device, POSITIONS) // self.length)
        lengths = np.array([len(row.ids) for row in rows], np.int64)
        order = [number for number in by_length(lengths, longest_first=True).tolist() if lengths[number]]
        for first in self.predictions.share(range(0, len(order), count)):
            going = order[first : first + count]
            state: ModelState | None = self.model.start(len(going))
            begin = 0
            while going:
                windows = [self._turn(rows[number], begin) for number in going]
                parts = [self._read(rows[number], window) for number, window in zip(going, windows, strict=True)]
                ids, _ = padded(parts, self.separator, self.device)
                owners = [(rows[number], found[number], w) for number, w in zip(going, windows, strict=True)]
                state = self._write(Row(ids), owners, state)
                assert state is not None
                begin += self.length
                left = [
                    number for number in going if len(rows[number].ids) > begin
                ]  # the first ones, being the longest
                if len(left) < len(going):
                    state = chosen_rows(state, torch.arange(len(left), device=self.device))
                going = left

    def _turn(self, row: ScoredText, begin: int) -> Window:
        """The next row of a text, as a window whose scored part begins at `row.first`."""
        end = min(begin + self.length, len(row.ids))
        return Window(begin, end, min(max(begin, row.first), end), end)

    def _read(self, row: ScoredText, window: Window) -> np.ndarray:
        """The inputs that predict the tokens of a window: the text shifted by one, after the separator."""
        if window.begin:
            return row.ids[window.begin - 1 : window.end - 1]
        return np.concatenate([[self.separator], row.ids[: window.end - 1]])

    def _write(
        self,
        row: Row[Tensor],
        owners: Sequence[tuple[ScoredText, TokenScores, Window]],
        state: ModelState | None = None,
    ) -> ModelState | None:
        """Score the tokens of a window that each of B rows predicts; the state after the rows, if one is given."""
        length = row.ids.shape[1]
        positions = [
            np.arange(w.scored - w.begin, w.until - w.begin) + number * length
            for number, (_, _, w) in enumerate(owners)
        ]
        labels = np.concatenate([text.ids[window.scored : window.until] for text, _, window in owners])
        return self.predictions.write(
            row,
            torch.from_numpy(np.concatenate(positions)).to(self.device),
            torch.from_numpy(labels).to(self.device),
            [(scores, w.scored - text.first, w.until - w.scored) for text, scores, w in owners],
            state,
        )
