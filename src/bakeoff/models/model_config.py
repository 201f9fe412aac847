"""The config of a model: its embedding, its encoder or decoder, and the common settings of all layers."""

from typing import Literal, Self

from pydantic import Field, model_validator

from bakeoff.config import Config
from bakeoff.models.context import NormKind
from bakeoff.models.embedding import EmbeddingConfig
from bakeoff.models.initialisation import InitialWeightsConfig
from bakeoff.models.mixers.mixer import MixerBaseConfig
from bakeoff.models.stack import StackConfig


class ModelBaseConfig(Config):
    """All settings from which a model is built, and properties that follow from them alone."""

    embedding: EmbeddingConfig = EmbeddingConfig()
    """Tables of tokens, positions and segments; encoder and decoder share only the table of tokens."""
    encoder: StackConfig | None = None
    """The layers of a bidirectional model."""
    decoder: StackConfig | None = None
    """The layers of a causal model; with an encoder the model is sequence-to-sequence."""
    directions: Literal[1, 2] = 1
    """Number of reading directions; with 2 a second decoder of the same shape reads each document from its end, and the
    hidden states of both stand side by side (ELMo: Peters et al. 2018, arXiv:1802.05365, section 3.1).
    """
    dropout: float = Field(default=0.1, ge=0, lt=1)
    """Dropout of embeddings, of every sublayer's output, and of attention weights unless the mixer says otherwise."""
    output_dropout: float = Field(default=0.0, ge=0, lt=1)
    """Dropout of the output of the last layer of encoder and decoder, as in Transformer-XL, XLNet and T5."""
    norm: NormKind = "layer"
    """The kind of norms: layer norms, or root-mean-square norms without mean and bias (T5)."""
    norm_epsilon: float = Field(default=1e-12, gt=0)
    """Epsilon of the norms."""
    norm_affine: bool = True
    """Norms have a scale and a shift; false: they have neither, unless a part says otherwise (LTG-BERT)."""
    norm_bias: bool = True
    """Layer norms with a scale have a shift, too; false: the scale alone (ModernBERT)."""
    bias: bool = True
    """Linear layers have biases; T5's do not."""
    second_stream: bool = True
    """An encoder whose mixers can attend over two streams has a learned first state of the second stream; false where
    nothing is predicted through it.
    """
    initial: InitialWeightsConfig = InitialWeightsConfig()
    """The initial weights of linear layers."""
    scaled_residuals: bool = False
    """The last linear layer of every residual branch starts smaller by the root of the number of branches (GPT-2)."""

    @model_validator(mode="after")
    def _some_stack(self) -> Self:
        if self.encoder is None and self.decoder is None:
            raise ValueError("give 'encoder' (a bidirectional model), 'decoder' (a causal one), or both")
        if self.directions == 2 and (self.decoder is None or self.encoder is not None):
            raise ValueError("directions: 2 is for a model with 'decoder' alone, which then reads from both ends")
        if not self.norm_bias and (self.norm != "layer" or not self.norm_affine):
            others = f"norm: {self.norm}" if self.norm != "layer" else "norm_affine: false"
            raise ValueError(f"norm_bias: norms have no shift with {others}; leave it out")
        blocks = [block for stack in self.stacks().values() for block in stack.distinct()]
        for key, wanted in (
            ("scaled_residuals", self.scaled_residuals),
            ("initial.zero_branches", self.initial.zero_branches),
            ("initial.scaled_ffn", self.initial.scaled_ffn),
        ):
            without = [block for block in blocks if not block.scales_branches]
            if wanted and without:
                kind = without[0].kind
                which = "without residual connections" if kind == "transformer" else f"of kind {kind}"
                raise ValueError(f"{key}: blocks {which} do not have it; leave it out")
        return self

    def stacks(self) -> dict[str, StackConfig]:
        """The encoder and the decoder, as far as the model has them."""
        stacks = {"encoder": self.encoder, "decoder": self.decoder}
        return {name: stack for name, stack in stacks.items() if stack is not None}

    @property
    def causal(self) -> bool:
        """No position sees a later one."""
        return self.decoder is not None and self.directions == 1

    @property
    def sequence_to_sequence(self) -> bool:
        """A decoder attends to the output of an encoder."""
        return self.encoder is not None and self.decoder is not None

    @property
    def stack(self) -> StackConfig:
        """The stack that gives the model's hidden states: the decoder where there is one."""
        stack = self.decoder or self.encoder
        assert stack is not None
        return stack

    @property
    def output_width(self) -> int:
        """The width of the hidden states, all directions together."""
        return self.directions * self.stack.output_width

    @property
    def two_streams(self) -> bool:
        """Every mixer can attend over a second stream of queries, which do not see the tokens at their positions."""
        able = all(mixer.two_streams for mixer in self.mixers)
        return able and self.second_stream and self.decoder is None

    @property
    def attends(self) -> bool:
        """Every mixer of the last stack attends, so that it sees all tokens that the mask shows."""
        return all(mixer.attends for mixer in self.mixers)

    @property
    def looking_ahead(self) -> str | None:
        """The kind of a part of the last stack that cannot read rows whose tokens see no later ones; None: all can."""
        for block in self.stack.distinct():
            for part in (block, block.mixer_config):
                if not part.hides_ahead:
                    return part.kind
        return None

    @property
    def mixers(self) -> list[MixerBaseConfig]:
        """The configs of the mixers in the last stack, each different one once."""
        return [block.mixer_config for block in self.stack.distinct()]

    @property
    def embedding_width(self) -> int:
        """E, the width of the token table."""
        return self.embedding.width or (self.encoder or self.stack).width

    @property
    def longest_input(self) -> int | None:
        """The number of positions that the model can tell apart; None where it has no table of positions."""
        return self.embedding.length if self.embedding.positions == "learned" else None
