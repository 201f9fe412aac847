"""The transformer's block: a mixer and a feed-forward network, each with a residual connection and a norm."""

from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator
from torch import Tensor, nn
from typing_extensions import override

from bakeoff.errors import UserError
from bakeoff.models.blocks.block import BlockBaseConfig
from bakeoff.models.blocks.feed_forward import FeedForwardConfig
from bakeoff.models.context import BuildContext, Context
from bakeoff.models.mixers import MixerConfig
from bakeoff.models.mixers.cross_attention import CrossAttentionConfig
from bakeoff.models.packing import at_positions
from bakeoff.models.part import Part, State, Wrapper, apply_part
from bakeoff.ops.dropout import dropout
from bakeoff.ops.linear import adds_within_products
from bakeoff.ops.norm import norm_beside, norm_of_sum, residual

Norm = Literal["post", "pre", "branch"]


class Sublayer(Wrapper):
    """A function with its residual connection, dropout and norm; layers share it as one part.

    post: norm(x + f(x)), the Transformer and BERT; pre: x + f(norm(x)), GPT-2; branch: x + norm(f(x)), printed in
    Tay et al. 2021 (arXiv:2105.03322). Without the residual connection x is not added.
    """

    def __init__(
        self,
        function: Part,
        norm: Norm,
        context: BuildContext,
        normed: bool = True,
        rate: float | None = None,
        residual: bool = True,
    ) -> None:
        """The sublayer; `normed` False leaves out the norm, and `rate` is the dropout, None for the model's."""
        super().__init__(function)
        self.residual = residual
        self.norm = context.norm() if normed else nn.Identity()
        self.placement = norm
        self.dropout = context.dropout if rate is None else rate

    def forward(self, x: Tensor, context: Context, state: State = None) -> tuple[Tensor, State]:
        """(B, T, D) to (B, T, D); the state is that of the function."""
        given = x
        if self.placement == "pre":
            x, given = norm_beside(x, self.norm)
            if self._adds_within(x, context):
                return apply_part(self.function, given, context._replace(beside=x), state)
        elif self.residual and self.placement == "post":
            x = residual(x)
        y, state = apply_part(self.function, given, context, state)
        if self.residual and context.wanted is not None:
            x = at_positions(x, context.wanted, context.packing)
        if self.residual and self.placement == "post":
            return norm_of_sum(x, y, self.dropout, self.training, self.norm), state
        y = dropout(y, self.dropout, self.training)
        if not self.residual:
            return y if self.placement == "pre" else self.norm(y), state
        return x + (self.norm(y) if self.placement == "branch" else y), state

    def _adds_within(self, x: Tensor, context: Context) -> bool:
        """Whether the function itself adds x to its output, all of it as it is."""
        dropped = self.training and self.dropout > 0.0
        all_of_it = context.wanted is None and context.packing is None and not self.function._forward_hooks
        return self.residual and self.function.adds and not dropped and all_of_it and adds_within_products(x)

    @property
    def chooses(self) -> bool:  # type: ignore[override]
        """Whether the function computes the states at `context.wanted` alone."""
        return self.function.chooses

    def given(self, x: Tensor) -> Tensor:
        """x, or its norm where that stands before the function."""
        return self.norm(x) if self.placement == "pre" else x


class TransformerBlockConfig(BlockBaseConfig):
    """A block of mixer, attention to a source where there is one, and feed-forward network.

    Each of the three is a part that layers can share, with its norm.
    """

    kind: Literal["transformer"] = "transformer"
    """The block's name."""
    norm: Norm = "post"
    """The position of the norm: after the sum (post), before the function (pre), on its output (branch)."""
    residual: bool = True
    """The input of mixer and feed-forward network is added to their output. Attention to a source always has its
    residual connection: without it a decoder would see next to nothing of its tokens."""
    mixer: MixerConfig
    """The mixer of tokens."""
    mixer_norm: bool = True
    """The mixer has a norm; false: it reads the block's input as it is, as in ModernBERT's first layer, which follows
    the norm of the embedding. Only with `norm: pre`.
    """
    mixer_dropout: float | None = Field(default=None, ge=0, lt=1)
    """Dropout of the mixer's output; the model's dropout where absent."""
    cross: CrossAttentionConfig | None = None
    """Attention to the encoder's output; for decoders of a model that has an encoder."""
    ffn: FeedForwardConfig
    """The feed-forward network."""

    hides_ahead: ClassVar[bool] = True

    @model_validator(mode="after")
    def _one_stream_of_the_rows_own_tokens(self) -> Self:
        if self.ffn.convolution is not None and self.mixer.two_streams:
            raise ValueError(
                f"ffn.convolution: {self.mixer.kind} reads a second stream or the rows before, which nothing else may "
                "mix; leave it out, or use a mixer of kind attention"
            )
        return self

    @model_validator(mode="after")
    def _no_norm_but_before(self) -> Self:
        if not self.mixer_norm and self.norm != "pre":
            raise ValueError(f"mixer_norm: nothing else norms what norm: {self.norm} adds up; set norm to pre")
        return self

    @property
    @override
    def scales_branches(self) -> bool:
        return self.residual

    @property
    def needs_final_norm(self) -> bool:
        """Whether the norms are inside the branches, so that nothing has normalised the output of the last layer."""
        return self.norm == "pre"

    @property
    @override
    def cross_config(self) -> CrossAttentionConfig | None:
        return self.cross

    @property
    @override
    def mixer_config(self) -> MixerConfig:
        return self.mixer

    def build(self, context: BuildContext) -> dict[str, Part]:
        """The parts of one layer in the order in which they are applied.

        Raises:
            UserError: the block attends to a source that does not exist, or there is a source and it does not attend.
        """
        mixer = self.mixer.build(context)
        parts: dict[str, Part] = {
            "mixer": Sublayer(mixer, self.norm, context, self.mixer_norm, self.mixer_dropout, self.residual),
        }
        if (context.source is None) != (self.cross is None):
            raise UserError(
                "decoder.block.cross: a decoder after an encoder needs it, such as {heads: 8}"
                if context.source is not None
                else "block.cross: there is no encoder to attend to; give both encoder and decoder, or drop the key"
            )
        if self.cross is not None:
            parts["cross"] = Sublayer(self.cross.build(context), self.norm, context)
        parts["ffn"] = Sublayer(self.ffn.build(context), self.norm, context, residual=self.residual)
        return parts
