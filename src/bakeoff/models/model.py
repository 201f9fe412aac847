"""A model: ids to hidden states. It knows nothing of losses and declares what it can do."""

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from bakeoff.config import Config
from bakeoff.models.context import Context, Place
from bakeoff.models.embedding import EmbeddingConfig
from bakeoff.models.mixers.attention import AttentionConfig
from bakeoff.models.stack import StackConfig

INITIAL_STANDARD_DEVIATION = 0.02
"""Of all linear maps and tables, as in GPT and BERT; larger tables make denormals and slow starts."""


class ModelConfig(Config):
    """The tree of a model's configs."""

    embedding: EmbeddingConfig = EmbeddingConfig()
    """Tables of tokens, positions and segments."""
    encoder: StackConfig | None = None
    """The layers of a bidirectional model."""
    decoder: StackConfig | None = None
    """The layers of a causal model."""
    dropout: float = Field(default=0.1, ge=0, lt=1)
    """Dropout of embeddings, of every sublayer's output, and of attention weights unless the mixer says otherwise."""
    norm_epsilon: float = Field(default=1e-12, gt=0)
    """Epsilon of the layer norms."""

    @model_validator(mode="after")
    def _one_stack(self) -> "ModelConfig":
        if (self.encoder is None) == (self.decoder is None):
            raise ValueError("give one of 'encoder' (a bidirectional model) and 'decoder' (a causal model)")
        return self

    @property
    def causal(self) -> bool:
        """No position sees a later one."""
        return self.decoder is not None

    @property
    def stack(self) -> StackConfig:
        """The encoder or the decoder, whichever there is."""
        stack = self.encoder or self.decoder
        assert stack is not None
        return stack

    @property
    def longest_input(self) -> int | None:
        """How many positions the model can tell apart; None where there is no table of them."""
        return self.embedding.length if self.embedding.positions == "learned" else None

    def build(self, vocabulary: int) -> "Model":
        """The model for a vocabulary of that size, with fresh weights from torch's global generator."""
        return Model(self, vocabulary)


class Model(nn.Module):
    """Embedding and stack; B batch, T length, D width."""

    def __init__(self, config: ModelConfig, vocabulary: int) -> None:
        super().__init__()
        self.config = config
        stack = config.stack
        place = Place(stack.width, config.causal, config.dropout, config.norm_epsilon)
        self.embedding = config.embedding.build(vocabulary, place)
        self.stack = stack.build(place)
        self._attends = any(isinstance(block.mixer, AttentionConfig) for block in stack.layer_blocks())
        initialise(self)

    def forward(
        self,
        ids: Tensor,
        segments: Tensor | None = None,
        real: Tensor | None = None,
        documents: Tensor | None = None,
    ) -> Tensor:
        """Hidden states of the last layer.

        Args:
            ids: (B, T) token ids.
            segments: (B, T) segment ids; None is segment 0 everywhere.
            real: (B, T) True for tokens, False for padding; None where there is no padding.
            documents: (B, T) document of each token, 0 for padding, where a row holds several documents, which then
                do not see each other; `real` is not needed with it.

        Returns:
            (B, T, D); what stands at padding is meaningless.
        """
        mask = self._attention_mask(real, documents) if self._attends else None
        return self.stack(self.embedding(ids, segments), Context(real if documents is None else None, documents, mask))

    def _attention_mask(self, real: Tensor | None, documents: Tensor | None) -> Tensor | None:
        """(B, 1, T or 1, T), or None. Padding always has a key to attend to, so that no softmax is over nothing."""
        if documents is not None:
            mask = documents[:, :, None] == documents[:, None, :]
        elif real is not None:
            mask = real[:, None, :]
        else:
            return None
        if self.config.causal:
            length = mask.shape[-1]
            square = torch.ones(length, length, dtype=torch.bool, device=mask.device)
            mask = (mask & square.tril()) | torch.eye(length, dtype=torch.bool, device=mask.device)
        return mask[:, None]

    def flops_per_token(self, length: int) -> int:
        """Floating-point operations of one token's forward pass in a row of `length` tokens."""
        return self.embedding.flops_per_token(length) + self.stack.flops_per_token(length)


def initialise(module: nn.Module) -> None:
    """Linear maps and tables from a truncated normal distribution, biases zero (Devlin et al. 2019)."""
    for part in module.modules():
        if isinstance(part, nn.Linear | nn.Embedding):
            deviation = INITIAL_STANDARD_DEVIATION
            nn.init.trunc_normal_(part.weight, std=deviation, a=-2 * deviation, b=2 * deviation)
            if isinstance(part, nn.Linear) and part.bias is not None:
                nn.init.zeros_(part.bias)
