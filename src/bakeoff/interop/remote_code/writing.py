"""Models that generate text, with a state of the tokens read.

Shapes: B batch, T length, S length with the tokens before, U length of a source, D width, V vocabulary.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import GenerationMixin
from transformers.modeling_outputs import BaseModelOutput, CausalLMOutputWithPast, Seq2SeqLMOutput

from bakeoff.interop.remote_code.base import BakeoffConfig, arranged
from bakeoff.interop.remote_code.language import LanguageModel
from bakeoff.interop.remote_code.text_state import TextState
from bakeoff.models.model import Model
from bakeoff.models.part import ModelState
from bakeoff.row import Source


class Writing(LanguageModel, GenerationMixin):  # type: ignore[misc]
    """Base of models that generate text."""

    _is_stateful = True

    @classmethod
    def _supports_default_dynamic_cache(cls) -> bool:
        return False  # `TextState` is the cache

    def _prepare_cache_for_generation(self, generation_config: Any, model_kwargs: dict[str, Any], *args: Any) -> None:
        if generation_config.use_cache is not False and model_kwargs.get("past_key_values") is None:
            model_kwargs["past_key_values"] = TextState()
        longest = self.core.config.longest_input
        if longest is not None:  # the last token is not read again
            generation_config.max_length = min(generation_config.max_length, longest + 1)

    def _loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        """() mean cross-entropy of (B, T, V) logits with (B, T) labels, -100 at positions without a target."""
        return F.cross_entropy(logits.flatten(0, 1).float(), labels.flatten())


class BakeoffForCausalLM(Writing):
    """Causal language modelling."""

    def __init__(self, config: BakeoffConfig) -> None:
        super().__init__(config)
        self.model.both_sides = False

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        past_key_values: TextState | None = None,
        labels: Tensor | None = None,
        use_cache: bool | None = None,
        logits_to_keep: int | Tensor = 0,
        output_hidden_states: bool | None = None,
        **_: Any,
    ) -> CausalLMOutputWithPast:
        """(B, T) ids to (B, T, V) logits of the next tokens.

        Args:
            input_ids: the tokens, without those that `past_key_values` has read.
            attention_mask: (B, S) 0 at padding, on either side; the last T columns belong to `input_ids`.
            past_key_values: the state after the tokens read; it is updated.
            labels: (B, T) the ids again, -100 at positions without a target.
            use_cache: begin a state if there is none.
            logits_to_keep: number of last positions, or indices of positions, whose logits are returned; 0: all.
            output_hidden_states: return the states of all layers; ignored with a state.
        """
        mask = None if attention_mask is None else attention_mask[:, -input_ids.shape[1] :]
        rows, states = arranged(input_ids, mask), None
        if past_key_values is None and use_cache and not self.training and labels is None:
            past_key_values = TextState()
        if past_key_values is None:
            output = self.model(input_ids, mask, output_hidden_states=output_hidden_states, return_dict=True)
            hidden, states = output.last_hidden_state, output.hidden_states
        else:
            if not past_key_values.groups:
                start = self.core.start(len(input_ids))
                past_key_values.groups = [(torch.arange(len(input_ids), device=input_ids.device), start)]
            hidden = past_key_values.read(self.core, rows, self.config.reads_prefix)
        kept = slice(-logits_to_keep, None) if isinstance(logits_to_keep, int) else logits_to_keep
        logits = self.scores(hidden[:, kept] if logits_to_keep != 0 else hidden)
        loss = None
        if labels is not None:
            following = labels[:, 1:] if mask is None else labels[:, 1:].masked_fill(mask[:, 1:] == 0, -100)
            loss = self._loss(logits[:, :-1], following)
        return CausalLMOutputWithPast(loss=loss, logits=logits, past_key_values=past_key_values, hidden_states=states)

    def prepare_inputs_for_generation(
        self,
        input_ids: Tensor,
        past_key_values: TextState | None = None,
        attention_mask: Tensor | None = None,
        **_: Any,
    ) -> dict[str, Any]:
        """The inputs of the next step: the tokens that have not been read yet, and the state."""
        read = 0 if past_key_values is None else past_key_values.columns
        inputs = {"past_key_values": past_key_values, "attention_mask": attention_mask, "use_cache": False}
        return {"input_ids": input_ids[:, read:], "logits_to_keep": 1, **inputs}


class SourceEncoder(nn.Module):
    """The encoder of a sequence-to-sequence model; it owns no weights."""

    main_input_name = "input_ids"

    def __init__(self, model: Model) -> None:
        super().__init__()
        self._network = (model,)  # a tuple hides it from nn.Module

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None, **_: Any) -> BaseModelOutput:
        """(B, U) ids to (B, U, D) outputs of the encoder."""
        rows = arranged(input_ids, attention_mask)
        encoded, _mask = self._network[0].encode(Source(rows.ids, rows.padding_mask))
        return BaseModelOutput(last_hidden_state=rows.restored(encoded))


class BakeoffForSeq2SeqLM(Writing):
    """Generation of a target for a source."""

    def get_encoder(self, modality: str | None = None) -> nn.Module:
        """The encoder as a module of its own, as transformers calls it once for each source."""
        return SourceEncoder(self.core)

    def prepare_decoder_input_ids_from_labels(self, labels: Tensor) -> Tensor:
        """(B, T) inputs of the decoder for (B, T) labels: the start token, then all labels but the last."""
        start = labels.new_full((len(labels), 1), self.config.decoder_start_token_id)
        return torch.cat([start, labels[:, :-1].masked_fill(labels[:, :-1] == -100, self.config.pad_token_id)], dim=1)

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        decoder_attention_mask: Tensor | None = None,
        encoder_outputs: Any = None,
        past_key_values: TextState | None = None,
        labels: Tensor | None = None,
        **_: Any,
    ) -> Seq2SeqLMOutput:
        """(B, U) ids of the source and (B, T) ids of the target's beginning to (B, T, V) logits.

        Raises:
            ValueError: neither `decoder_input_ids` nor `labels` are given.
        """
        if decoder_input_ids is None:
            if labels is None:
                raise ValueError("give decoder_input_ids, or labels")
            decoder_input_ids = self.prepare_decoder_input_ids_from_labels(labels)
        state = past_key_values or TextState()
        if not state.groups:
            if encoder_outputs is None:
                encoder_outputs = self.get_encoder()(input_ids, attention_mask)
            encoded = encoder_outputs[0]
            mask = None
            if attention_mask is not None and not bool(attention_mask.all()):
                mask = attention_mask.bool()[:, None, None]
            count = len(decoder_input_ids)
            layers = self.core.stack.start(count, self.core.embedding.weight)
            start = ModelState(0, layers, encoded, mask)
            state.groups = [(torch.arange(count, device=encoded.device), start)]
        seen = decoder_attention_mask
        seen = None if seen is None else seen[:, -decoder_input_ids.shape[1] :]
        logits = self.scores(state.read(self.core, arranged(decoder_input_ids, seen), False))
        loss = None if labels is None else self._loss(logits, labels)
        return Seq2SeqLMOutput(loss=loss, logits=logits, past_key_values=past_key_values)

    def prepare_inputs_for_generation(
        self,
        input_ids: Tensor,
        past_key_values: TextState | None = None,
        attention_mask: Tensor | None = None,
        encoder_outputs: Any = None,
        **_: Any,
    ) -> dict[str, Any]:
        """The inputs of the next step: the target's tokens that have not been read yet, and the state."""
        read = 0 if past_key_values is None else past_key_values.columns
        inputs = {"past_key_values": past_key_values, "attention_mask": attention_mask}
        return {"decoder_input_ids": input_ids[:, read:], "encoder_outputs": encoder_outputs, **inputs}
