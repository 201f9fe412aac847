"""A model.onnx in place of a fine-tuned run's model, so that its task scores both in the same way."""

from typing import Any

import numpy as np
import torch
from torch import Tensor
from typing_extensions import override

from bakeoff.row import Row
from bakeoff.tasks.heads.heads import HeadedModel


class OnnxHead(HeadedModel):
    """Logits of a batch by onnxruntime: (B, K) of rows, or (B, T, K) of tokens.

    Args:
        session: an onnxruntime session.
    """

    def __init__(self, session: Any) -> None:
        torch.nn.Module.__init__(self)  # it has no model of its own
        self.session = session
        self.names = {each.name for each in session.get_inputs()}

    @override
    def forward(self, batch: Row[Tensor]) -> Tensor:
        """The logits, float32."""
        ids = batch.ids.numpy()
        padding_mask = np.ones_like(ids) if batch.padding_mask is None else batch.padding_mask.numpy().astype(np.int64)
        segments = np.zeros_like(ids) if batch.segments is None else batch.segments.numpy()
        feeds = {"input_ids": ids, "attention_mask": padding_mask, "token_type_ids": segments}
        logits = self.session.run(["logits"], {name: feeds[name] for name in self.names})
        return torch.from_numpy(logits[0])
