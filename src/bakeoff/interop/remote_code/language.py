"""Models with a head that predicts tokens, and the class for masked language modelling."""

from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers.modeling_outputs import MaskedLMOutput

from bakeoff.interop.remote_code.base import BakeoffConfig, BakeoffModel, BakeoffPreTrainedModel, arranged
from bakeoff.objectives.heads import AdaptiveTokenHead, Head, HeadTransform, TokenHead, UntiedTokenHead

LANGUAGE_HEADS = {"tied": TokenHead, "untied": UntiedTokenHead, "adaptive": AdaptiveTokenHead}
"""Heads that predict tokens, by kind."""


class LanguageModel(BakeoffPreTrainedModel):
    """A model with a head that predicts tokens; a tied head uses the embedding's table."""

    _keys_to_ignore_on_load_unexpected = ()  # type: ignore[assignment]

    def __init__(self, config: BakeoffConfig) -> None:
        super().__init__(config)
        self.model = BakeoffModel(config)
        settings = dict(cast(dict[str, Any], config.language_head))
        kind = settings.pop("kind")
        if settings.get("transform") is not None:
            settings["transform"] = HeadTransform(**settings["transform"])
        self.language: Head = LANGUAGE_HEADS[kind](vocabulary=config.vocab_size, **settings)
        self.post_init()

    def scores(self, hidden: Tensor) -> Tensor:
        """(B, T, D) hidden states to (B, T, V) logits."""
        rows = self.language.scores(hidden.flatten(0, 1), self.core.embedding.weight)
        return rows.unflatten(0, hidden.shape[:2])  # type: ignore[no-any-return]

    def resize_token_embeddings(self, new_num_tokens: int | None = None, *args: Any, **kwargs: Any) -> nn.Module:
        """Change the number of tokens of a model with a tied head; biases of new tokens are 0.

        Raises:
            NotImplementedError: the head has a table of its own.
        """
        if self.config.language_head["kind"] != "tied" and new_num_tokens not in (None, self.config.vocab_size):
            raise NotImplementedError("this model's head has a table of its own, which cannot be resized")
        table = super().resize_token_embeddings(new_num_tokens, *args, **kwargs)
        bias = getattr(self.language, "bias", None)
        if bias is not None:
            longer = F.pad(bias.data, (0, self.config.vocab_size - len(bias)))
            self.language.bias = nn.Parameter(longer)
        return cast(nn.Module, table)


class BakeoffForMaskedLM(LanguageModel):
    """Masked language modelling."""

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        labels: Tensor | None = None,
        output_hidden_states: bool | None = None,
        **_: Any,
    ) -> MaskedLMOutput:
        """(B, T) ids to (B, T, V) logits; labels (B, T) are -100 at positions without a target."""
        rows = arranged(input_ids, attention_mask, token_type_ids)
        output = self.model(rows.ids, rows.padding_mask, rows.segments, output_hidden_states, return_dict=True)
        logits = self.scores(output.last_hidden_state)
        if self.config.from_before:  # the logits of a token stand at the position before it
            logits = torch.cat([logits[:, :1], logits[:, :-1]], dim=1)
        logits = rows.restored(logits)
        states = output.hidden_states
        states = None if states is None else tuple(rows.restored(each) for each in states)
        loss = None if labels is None else F.cross_entropy(logits.flatten(0, 1).float(), labels.flatten())
        return MaskedLMOutput(loss=loss, logits=logits, hidden_states=states)
