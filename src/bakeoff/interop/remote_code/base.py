"""The config and the model without heads, as classes of transformers; rows may have padding on either side."""

from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn
from transformers import PreTrainedConfig, PreTrainedModel
from transformers.modeling_outputs import BaseModelOutput

from bakeoff.models.model import Model, ModelConfig
from bakeoff.row import Row, Source
from bakeoff.tasks.heads.layer_reading import LayerReading, layer_states


class BakeoffConfig(PreTrainedConfig):  # type: ignore[misc]
    """The architecture of a model of Bakeoff, and how it reads texts."""

    model_type = "bakeoff"

    def __init__(
        self,
        architecture: dict[str, Any] | None = None,
        vocab_size: int = 0,
        uses_segments: bool = False,
        start_token: str = "first",
        both_sides: bool = False,
        reads_prefix: bool = False,
        language_head: dict[str, Any] | None = None,
        from_before: bool = False,
        task_head: dict[str, Any] | None = None,
        **others: Any,
    ) -> None:
        """A config with these settings.

        Args:
            architecture: the recipe's `model`, complete.
            vocab_size: V, rows of the table of tokens.
            uses_segments: whether `token_type_ids` are read.
            start_token: position of [CLS] in a row: first, last or none.
            both_sides: whether a decoder attends to the whole text in both directions.
            reads_prefix: whether the tokens of a prompt attend to each other in both directions.
            language_head: kind and arguments of the head that predicts tokens; None: there is none.
            from_before: whether a masked token is predicted at the position before it.
            task_head: pooling, layers, pooler, transform, dropout and prompt of the task head.
            others: settings of every model of transformers.
        """
        self.architecture = architecture or {}
        self.vocab_size = vocab_size
        self.uses_segments = uses_segments
        self.start_token = start_token
        self.both_sides = both_sides
        self.reads_prefix = reads_prefix
        self.language_head = language_head
        self.from_before = from_before
        self.task_head = task_head or {}
        super().__init__(**others)


class Rows(NamedTuple):
    """Rows as the model reads them, with padding after the tokens."""

    ids: Tensor
    """(B, T) token ids."""
    segments: Tensor | None
    """(B, T) segment ids; None: not given."""
    padding_mask: Tensor | None
    """(B, T) padding mask, True for tokens; None: there is no padding."""
    order: Tensor | None
    """(B, T) original position of each token; None: unchanged."""

    def restored(self, hidden: Tensor) -> Tensor:
        """(B, T, D) states, put back to the original positions."""
        if self.order is None:
            return hidden
        index = self.order.argsort(1)[..., None].expand(-1, -1, hidden.shape[-1])
        return hidden.gather(1, index)


def arranged(ids: Tensor, mask: Tensor | None, segments: Tensor | None = None) -> Rows:
    """(B, T) rows with their padding, mask 0 at any position, moved after the tokens."""
    if mask is None or bool(mask.all()):
        return Rows(ids, segments, None, None)
    padding_mask = mask.bool()
    if bool((padding_mask[:, :-1] | ~padding_mask[:, 1:]).all()):
        return Rows(ids, segments, padding_mask, None)
    order = (~padding_mask).long().argsort(dim=1, stable=True)
    segments = None if segments is None else segments.gather(1, order)
    return Rows(ids.gather(1, order), segments, padding_mask.gather(1, order), order)


class BakeoffPreTrainedModel(PreTrainedModel):  # type: ignore[misc]
    """Base of all classes of the model."""

    config_class = BakeoffConfig
    base_model_prefix = "model"
    main_input_name = "input_ids"
    _keys_to_ignore_on_load_unexpected = (r"^language\.",)

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        """Initialise a task head as pre-training initialises linear layers."""
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.trunc_normal_(module.weight, std=0.02, a=-0.04, b=0.04)
            if isinstance(module, nn.Linear) and module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, LayerReading) and module.weights is not None and module.gamma is not None:
            nn.init.zeros_(module.weights)
            nn.init.ones_(module.gamma)

    def get_input_embeddings(self) -> nn.Module:
        """The embedding of tokens."""
        return cast(nn.Module, self.core.embedding.tokens)

    def set_input_embeddings(self, table: nn.Module) -> None:
        """Replace the embedding of tokens."""
        self.core.embedding.tokens = table  # type: ignore[assignment]

    @property
    def core(self) -> Model:
        """Bakeoff's model without heads."""
        return cast(Model, self.model.network)


class BakeoffModel(BakeoffPreTrainedModel):
    """The model without heads: token ids to hidden states. Shapes: B batch, T length, D width."""

    def __init__(self, config: BakeoffConfig) -> None:
        super().__init__(config)
        self.both_sides = config.both_sides
        self.network = Model(ModelConfig.model_validate(config.architecture), config.vocab_size)
        self.post_init()

    @property
    def core(self) -> Model:
        """Bakeoff's model without heads."""
        return self.network

    def inputs(self, rows: Rows) -> Row[Tensor]:
        """The rows as the network reads them.

        Raises:
            ValueError: rows are longer than the model's positions.
        """
        longest = self.network.config.longest_input
        if longest is not None and rows.ids.shape[1] > longest:
            raise ValueError(f"rows of {rows.ids.shape[1]} tokens, and the model has {longest} positions; cut them")
        source, prefix = None, None
        if self.network.config.sequence_to_sequence:
            # Encoder and decoder both read the text (Lewis et al. 2020, section 3.1); sources begin without [CLS].
            source = Source(rows.ids[:, 1:], None if rows.padding_mask is None else rows.padding_mask[:, 1:])
        if self.both_sides:
            prefix = (
                torch.full_like(rows.ids[:, 0], rows.ids.shape[1])
                if rows.padding_mask is None
                else rows.padding_mask.sum(1)
            )
        segments = rows.segments if self.config.uses_segments else None
        return Row(rows.ids, segments, rows.padding_mask, source=source, prefix=prefix)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
        **_: Any,
    ) -> BaseModelOutput | tuple[Tensor, ...]:
        """(B, T) ids, mask (0 at padding, on either side) and segments to (B, T, D) hidden states."""
        rows = arranged(input_ids, attention_mask, token_type_ids)
        states = None
        if output_hidden_states:
            states = tuple(rows.restored(state) for state in layer_states(self.network, self.inputs(rows)))
        hidden = rows.restored(self.network(self.inputs(rows))[0]) if states is None else states[-1]
        output = BaseModelOutput(last_hidden_state=hidden, hidden_states=states)
        return output if return_dict is not False else cast(tuple[Tensor, ...], output.to_tuple())
