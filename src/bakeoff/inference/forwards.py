"""The log-probability of a text read from its beginning: each token's, given those before it."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from bakeoff.inference.token_scores import PLACES, ScoredText, TokenPredictions, TokenScores, batches, padded
from bakeoff.inference.windows import Window, windows_behind
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.models.inputs import Inputs
from bakeoff.models.model_state import chosen_rows
from bakeoff.resources.device import tokens_at_once


class Forwards:
    """Causal models, and the half of a model with two directions that reads forwards.

    A text begins behind the separator, as documents do, or where the ends of lines are tokens behind one of these. One
    that is longer than a row is read in windows; where rows of the training continued each other, in rows that continue
    each other, so that nothing is read twice. A model that has learnt to see a prefix from both sides sees what is read
    of a window before the first token that is scored so.

    Args:
        module: the model with its heads, in evaluation mode.
        predictions: its head's.
        separator: id of the token that stands before each text.
        length: tokens of a row, at most.
        continues: rows continue each other.
        stride: the most tokens that a window behind the first one adds; None: half a row.
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
        self.device = self.model.embedding.table.device

    @torch.inference_mode()
    def score(self, rows: Sequence[ScoredText]) -> list[TokenScores]:
        """Each row's scores, in the order of the rows."""
        found = [TokenScores(len(row.ids) - row.first) for row in rows]
        if self.continues:
            self._in_turn(rows, found)
        else:
            self._in_windows(rows, found)
        return found

    def _in_windows(self, rows: Sequence[ScoredText], found: Sequence[TokenScores]) -> None:
        windows = [
            (place, window)
            for place, row in enumerate(rows)
            for window in windows_behind(len(row.ids), self.length, row.first, self.stride)
        ]
        for batch in batches([window.end - window.begin for _, window in windows], self.device):
            chosen = [windows[index] for index in batch]
            # Padding stands behind the tokens, where nothing sees it.
            ids, _ = padded([self._read(rows[place], window) for place, window in chosen], self.separator, self.device)
            prefix = None
            if self.reads_prefix:
                prefix = torch.tensor([1 + w.scored - w.begin for _, w in chosen], device=self.device)
            hidden = self.model.stack(*self.model.stack_inputs(Inputs(ids, prefix=prefix)))[0]
            self._write(hidden, [(rows[place], found[place], window) for place, window in chosen])

    def _in_turn(self, rows: Sequence[ScoredText], found: Sequence[TokenScores]) -> None:
        count = max(1, tokens_at_once(self.device, PLACES) // self.length)
        order = sorted(
            (place for place, row in enumerate(rows) if len(row.ids)), key=lambda place: -len(rows[place].ids)
        )
        for first in range(0, len(order), count):
            going = order[first : first + count]
            state = self.model.start(len(going))
            begin = 0
            while going:
                windows = [self._turn(rows[place], begin) for place in going]
                parts = [self._read(rows[place], window) for place, window in zip(going, windows, strict=True)]
                ids, _ = padded(parts, self.separator, self.device)
                hidden, state = self.model.extend(ids, state, banded=False)
                owners = [(rows[place], found[place], w) for place, w in zip(going, windows, strict=True)]
                self._write(hidden, owners)
                begin += self.length
                left = [place for place in going if len(rows[place].ids) > begin]  # the first ones, being the longest
                if len(left) < len(going):
                    state = chosen_rows(state, torch.arange(len(left), device=self.device))
                going = left

    def _turn(self, row: ScoredText, begin: int) -> Window:
        """The next row of a text, of which only what is asked for is scored."""
        end = min(begin + self.length, len(row.ids))
        return Window(begin, end, min(max(begin, row.first), end), end)

    def _read(self, row: ScoredText, window: Window) -> np.ndarray:
        """What stands before each token of a window: the text moved by one, behind the separator."""
        if window.begin:
            return row.ids[window.begin - 1 : window.end - 1]
        return np.concatenate([[self.separator], row.ids[: window.end - 1]])

    def _write(self, hidden: Tensor, owners: Sequence[tuple[ScoredText, TokenScores, Window]]) -> None:
        """Score what stands behind (B, T, D) hidden states."""
        states = [hidden[place, w.scored - w.begin : w.until - w.begin] for place, (_, _, w) in enumerate(owners)]
        labels = np.concatenate([row.ids[window.scored : window.until] for row, _, window in owners])
        if len(labels):
            self.predictions.write(
                torch.cat(states),
                torch.from_numpy(labels).to(self.device),
                [(scores, w.scored - row.first, w.until - w.scored) for row, scores, w in owners],
            )
