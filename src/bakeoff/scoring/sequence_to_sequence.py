"""Log-probability of targets, given their sources."""

from collections.abc import Sequence

import numpy as np
import torch

from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.lengths import padded
from bakeoff.row import Row, Source
from bakeoff.scoring.token_scores import ScoredText, TokenPredictions, TokenScores, batches


class OfTargets:
    """Scores of sequence-to-sequence models; the end of a target is one of its tokens.

    Args:
        module: the model with its heads, in evaluation mode.
        predictions: the predictions of the head for next tokens.
        prompt: ids of the tokens that the decoder begins with.
    """

    def __init__(self, module: PretrainingModel, predictions: TokenPredictions, prompt: Sequence[int]) -> None:
        self.predictions, self.prompt = predictions, list(prompt)
        self.device = module.model.device

    @torch.inference_mode()
    def score(self, rows: Sequence[ScoredText]) -> list[TokenScores]:
        """The scores of each row's target tokens, in the order of rows."""
        found = [TokenScores(len(row.ids)) for row in rows]
        sources = [np.zeros(0, np.int64) if row.source is None else row.source for row in rows]
        longer = [max(len(row.ids), len(source)) for row, source in zip(rows, sources, strict=True)]
        for batch in self.predictions.share(batches(longer, self.device)):
            fill, first = self.prompt[0], len(self.prompt) - 1
            read, padding_mask = padded([sources[number] for number in batch], fill, self.device)
            targets = [rows[number].ids for number in batch]
            ids, _ = padded([np.concatenate([self.prompt, ids[:-1]]) for ids in targets], fill, self.device)
            positions = [
                np.arange(first, first + len(target)) + index * ids.shape[1] for index, target in enumerate(targets)
            ]
            self.predictions.write(
                Row(ids, source=Source(read, padding_mask)),
                torch.from_numpy(np.concatenate(positions)).to(self.device),
                torch.from_numpy(np.concatenate(targets)).to(self.device),
                [(found[number], 0, len(rows[number].ids)) for number in batch],
            )
        return self.predictions.joined(found)
