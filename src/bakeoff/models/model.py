"""A model: from ids to hidden states. It knows nothing of losses, and declares its abilities."""

import math
from dataclasses import replace
from typing import cast

import torch
from torch import Tensor, nn

from bakeoff.models.attention_needs import document_bounds, source_bounds
from bakeoff.models.context import BuildContext, Context
from bakeoff.models.embedding import Embedding
from bakeoff.models.initialisation import adapt_to_depth, initialise
from bakeoff.models.masks import attended_keys, attention_mask, gaps_mask, inside_prefix, memory_mask
from bakeoff.models.model_config import ModelBaseConfig
from bakeoff.models.part import ModelState
from bakeoff.models.stack import Stack
from bakeoff.ops.dropout import dropout
from bakeoff.row import Queries, Row, Source, turned


class Model(nn.Module):
    """Embedding and stacks; B batch, T length, U length of the source, D width."""

    def __init__(self, config: ModelBaseConfig, vocabulary: int | None) -> None:
        super().__init__()
        self.config = config
        first = config.encoder or config.stack
        context = BuildContext(
            width=first.width,
            causal=config.encoder is None,
            dropout=config.dropout,
            output_dropout=config.output_dropout,
            norm_kind=config.norm,
            norm_epsilon=config.norm_epsilon,
            norm_affine=config.norm_affine,
            norm_bias=config.norm_bias,
            bias=config.bias,
        )
        self.embedding = config.embedding.build(vocabulary, context)
        self.encoder = None if config.encoder is None else config.encoder.build(context)
        self.decoder: Stack | None = None
        self.target_embedding: Embedding | None = None
        if config.decoder is not None:
            if config.encoder is not None:
                context = replace(context, width=config.decoder.width, causal=True, source=config.encoder.output_width)
                self.target_embedding = config.embedding.build(None, context)
            self.decoder = config.decoder.build(context)
        self.backward_decoder = self.config.stack.build(context) if config.directions == 2 else None
        blocks = (block for stack in config.stacks().values() for block in stack.layer_blocks())
        self._attends = any(block.mixer_config.attends for block in blocks)
        self.query: nn.Parameter | None = None
        self.dropout = config.dropout
        if config.two_streams:
            # g, what the second stream starts from; XLNet's code leaves it to TensorFlow's default for (1, 1, D).
            bound = math.sqrt(6 / (1 + config.stack.width))
            self.query = nn.Parameter(nn.init.uniform_(torch.empty(config.stack.width), -bound, bound))
        initialise(self, config.initial)
        adapt_to_depth(self.stacks().values(), config.initial, config.scaled_residuals)

    @property
    def stack(self) -> Stack:
        """The stack that gives the model's hidden states: the decoder where there is one."""
        stack = self.decoder or self.encoder
        assert stack is not None
        return stack

    def stacks(self) -> dict[str, Stack]:
        """The encoder, the decoder and the decoder that reads backwards, as far as the model has them."""
        stacks = {"encoder": self.encoder, "decoder": self.decoder, "backward_decoder": self.backward_decoder}
        return {name: stack for name, stack in stacks.items() if stack is not None}

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        return next(self.parameters()).device

    @property
    def vocabulary(self) -> int:
        """V, the number of tokens."""
        return self.embedding.vocabulary

    def compile_layers(self, replayed: bool = False) -> None:
        """Compile the layers; those of the same structure share the code. `replayed`: in training, as CUDA graphs."""
        for stack in self.stacks().values():
            stack.compiled, stack.replayed = True, replayed

    def recompute_layers(self) -> None:
        """Keep the inputs of layers alone for the backward pass, which applies the layers anew."""
        for stack in self.stacks().values():
            stack.recomputed = True

    @property
    def independent_rows(self) -> bool:
        """Whether no row of a batch changes what becomes of another."""
        return all(stack.independent_rows for stack in self.stacks().values())

    def forward(
        self, row: Row[Tensor], state: ModelState | None = None, *, remembered: int | None = None, banded: bool = True
    ) -> tuple[Tensor, ModelState | None]:
        """Hidden states of the last layer, for rows by themselves or as the next tokens of texts.

        Args:
            row: rows of tokens; after a state any number of tokens that follow those which the state remembers.
            state: the state from `start` or the last call, for a causal model of one direction or an encoder with a
                memory; it stays unchanged, unless it was made with `room`. A source and a prefix belong to a text's
                first chunk, and so does padding, which stands before a row's first token then. None: nothing is
                remembered.
            remembered: number of first tokens that go into the new state; None: all. For `relative_attention`. In an
                encoder these tokens do not see the others, which are read once more.
            banded: each token sees as many tokens before it as the memory holds; else, as in training, the whole memory
                and all earlier tokens of the chunk. For causal `relative_attention`.

        Returns:
            (B, T, D), or (B, T + N, D) with a second stream, or (B, T, 2 D) with two directions: the hidden states
            that have read the token and all before it, then those that have read it and all after it. States at padding
            are meaningless. With M wanted positions (B, M, D), or (B, M, 2 D).
            And the state after the remembered tokens, if one was given. If banded, a causal model gives the same
            hidden states for any chunks.
        """
        if state is not None:
            return self._extend(row, state, remembered, banded)
        x, context = self.stack_inputs(row)
        hidden: Tensor = self.stack(x, context)[0]
        if self.backward_decoder is None or row.forwards:
            return hidden, None
        backward = self.backward_decoder(*self.reversed_inputs(x, row))[0]
        return torch.cat([hidden, backward.flip(1) if row.wanted is None else backward], dim=-1), None

    def stack_inputs(self, row: Row[Tensor]) -> tuple[Tensor, Context]:
        """The input of the last stack, and its context."""
        encoded, mask = (None, None) if row.source is None else self.encode(row.source)
        x = self._embed(row) if row.vectors is None else self.embedding.projection(row.vectors)
        to_source = source_bounds(self.stack, row)
        context = self._context(row)._replace(source=encoded, source_mask=mask, source_bounds=to_source)
        return (x, context) if row.queries is None else self._with_queries(x, context, row.queries)

    def reversed_inputs(self, x: Tensor, row: Row[Tensor]) -> tuple[Tensor, Context]:
        """The input of the backward decoder, from x, (B, T, D), the input of the forward decoder.

        It is reversed after the embedding, so that a token keeps its absolute position.
        """
        return x.flip(1), self._context(turned(row))

    def _context(self, row: Row[Tensor]) -> Context:
        """The context of rows that stand by themselves."""
        alone = row if row.documents is None else row._replace(padding_mask=None)
        bounds = document_bounds(self.stack, row)
        if bounds is not None:
            return Context(alone, bounds=bounds)
        shown = None if row.prefix is None else inside_prefix(row.ids, row.prefix)
        mask = self._mask(row.padding_mask, row.documents, self.decoder is not None or row.behind, shown)
        return Context(alone, mask, wanted=row.wanted)

    def _with_queries(self, x: Tensor, context: Context, queries: Queries[Tensor]) -> tuple[Tensor, Context]:
        """The input and context with the rows of the second stream after those of the tokens."""
        assert self.query is not None
        rows, length = x.shape[:2]
        count = queries.positions.shape[1]
        start = dropout(self.query.expand(rows, count, -1), self.dropout, self.training)
        itself = torch.eye(length, dtype=torch.bool, device=x.device)
        of_tokens, of_queries = queries.visible[:, :length] | itself, queries.visible[:, length:]
        if context.attention_mask is not None:
            allowed = context.attention_mask[:, 0].expand(rows, length, length)
            of_tokens = of_tokens & (allowed | itself)  # so that padding has something to attend to
            of_queries = of_queries & allowed.gather(1, queries.positions[..., None].expand(-1, -1, length))
        mask = torch.cat([of_tokens, of_queries], dim=1)
        token_positions = torch.arange(length, device=x.device).expand(rows, -1)
        row = context.row
        if row.segments is not None:
            both = torch.cat([row.segments, row.segments.gather(1, queries.positions)], dim=1)
            row = row._replace(segments=both)
        return torch.cat([x, start], dim=1), context._replace(
            row=row, attention_mask=mask[:, None], positions=torch.cat([token_positions, queries.positions], dim=1)
        )

    def encode(self, source: Source[Tensor]) -> tuple[Tensor, Tensor | None]:
        """The encoder's (B, U, D) output, and its (B, 1, 1, U) padding mask, None where there is no padding."""
        assert self.encoder is not None
        mask = None if source.padding_mask is None else attended_keys(source.padding_mask)[:, None]
        return self.encoder(*self.source_inputs(source))[0], mask

    def source_inputs(self, source: Source[Tensor]) -> tuple[Tensor, Context]:
        """The input of the encoder of a sequence-to-sequence model, and its context."""
        row = Row(source.ids, padding_mask=source.padding_mask)
        bounds = document_bounds(self.stacks()["encoder"], row)
        mask = None if bounds is not None else self._mask(source.padding_mask, None, False)
        return self.embedding(row), Context(row, mask, bounds=bounds)

    def start(self, rows: int, room: int = 0) -> ModelState:
        """The state before the first token of `rows` rows, from which `forward` continues.

        Args:
            rows: B.
            room: the expected number of tokens of a text, whose keys and values then are not copied for each token:
                `forward` may overwrite the state, and a text continues from its last one alone. 0: it may not.
        """
        parameter = next(self.parameters())
        like = torch.empty(0, dtype=parameter.dtype, device=parameter.device)  # plain, also where weights are sharded
        return ModelState(0, self.stack.start(rows, like), room=room)

    def _extend(
        self, row: Row[Tensor], state: ModelState, remembered: int | None, banded: bool
    ) -> tuple[Tensor, ModelState]:
        """`forward` after a state."""
        if row.source is not None:
            assert state.tokens == 0, "a source is read before the first token"
            encoded, mask = self.encode(row.source)
            state = state._replace(source=encoded, source_mask=mask)
        if row.padding_mask is not None:
            assert state.tokens == 0, "padding stands before the first token"
            state = state._replace(gaps=(~row.padding_mask).sum(1))
        x = self._embed(row, state.tokens, state.gaps)
        context = Context(
            row,
            self._mask_of_chunk(row, state, remembered),
            start=state.tokens,
            gaps=state.gaps,
            room=state.room,
            source=state.source,
            source_mask=state.source_mask,
            remembered=remembered,
            banded=banded,
        )
        if row.queries is not None:
            x, context = self._with_queries(x, context, row.queries)
        x, layers = self.stack(x, context, state.layers)
        length = row.ids.shape[1]
        read = length if remembered is None else min(remembered, length)
        return x, state._replace(tokens=state.tokens + read, layers=layers)

    def _embed(self, row: Row[Tensor], start: int = 0, gaps: Tensor | None = None) -> Tensor:
        if self.target_embedding is not None:
            return cast(Tensor, self.target_embedding(row, start, self.embedding.weight, gaps))
        return cast(Tensor, self.embedding(row, start, gaps=gaps))

    def _mask_of_chunk(self, row: Row[Tensor], state: ModelState, remembered: int | None) -> Tensor | None:
        """(B or 1, 1, T, T) the mask of a chunk's tokens, or None; with gaps (B, 1, T, S) over all S tokens so far."""
        length = row.ids.shape[1]
        if row.prefix is not None:
            assert state.tokens == 0, "a prefix is read in one go"
            ends = row.prefix if state.gaps is None else row.prefix + state.gaps
            return self._mask(row.padding_mask, None, True, inside_prefix(row.ids, ends))
        if row.padding_mask is not None:
            return self._mask(row.padding_mask, None, True)
        if state.gaps is not None:
            return gaps_mask(state.gaps, state.tokens, length) if self._attends else None
        if self.decoder is not None or remembered is None or remembered >= length:
            return None
        return memory_mask(length, remembered, row.ids.device)

    def _mask(
        self, padding_mask: Tensor | None, documents: Tensor | None, causal: bool, shown: Tensor | None = None
    ) -> Tensor | None:
        """The mask that `attention_mask` makes; None where nothing attends."""
        return attention_mask(padding_mask, documents, causal, shown) if self._attends else None

    def row_flops(self, length: int, source_length: int = 0, queries: float = 0.0, ahead: float = 0.0) -> int:
        """Floating-point operations of a row's forward pass.

        Args:
            length: its number of tokens.
            source_length: number of tokens of its source, where the model has an encoder and a decoder.
            queries: mean number of rows of a second stream.
            ahead: mean number of pairs of a token and a later one that it sees within a prefix.
        """
        embedding = self.target_embedding or self.embedding
        layers = self.config.directions * self.stack.flops_per_token(length, source_length)
        total = length * (embedding.flops_per_token(length) + layers)
        if self.encoder is not None and self.decoder is not None:
            once = self.embedding.flops_per_token(source_length) + self.decoder.flops_per_source_token()
            total += source_length * (once + self.encoder.flops_per_token(source_length))
        total += round(ahead * self.stack.flops_per_pair()) if ahead else 0
        return total + (round(queries * self.stack.flops_per_query(length)) if queries else 0)

    def reach(self) -> tuple[float, float]:
        """The largest numbers of tokens to the left and to the right on which a hidden state depends."""
        left, right = self.stack.reach()
        return (left, left) if self.config.directions == 2 else (left, right)


class ModelConfig(ModelBaseConfig):
    """The tree of a model's configs, which can build the model."""

    def build(self, vocabulary: int | None) -> Model:
        """The model for a vocabulary of that size, with fresh weights from torch's global generator.

        With None the model has no table of tokens, and reads vectors from the embedding of another model.
        """
        return Model(self, vocabulary)
