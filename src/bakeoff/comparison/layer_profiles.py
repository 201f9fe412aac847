"""What the layers of each recipe's model do, as far as a comparison shows it, and how alike they are."""

from pydantic import Field

from bakeoff.config import Config


class KernelProfile(Config):
    """The kernels of one convolution: where their weight lies."""

    kind: str
    """The class of the convolution, such as LightConv."""
    offsets: list[int]
    """The positions of the K taps relative to the output's position."""
    shares: list[float]
    """(K,) the share of the absolute weight of all kernels that each tap has."""
    mean_distance: float
    """The mean distance of a tap from the output in tokens, weighted by absolute weights."""


class LayerProfile(Config):
    """One layer: how far it moves the hidden states, and its kernels."""

    stack: str
    """The name of the stack: encoder, decoder or backward_decoder."""
    layer: int
    """The number of the layer, from 1 on."""
    l2_distance: float | None
    """Mean Euclidean distance between a token's states before and after the layer; None: their widths differ."""
    cosine_similarity: float | None
    """Mean cosine of the angle between these states; None: their widths differ."""
    kernels: list[KernelProfile] = Field(default=[])
    """Its convolutions."""


class LayerSimilarity(Config):
    """How alike the layers of two recipes' pre-trained models are, of the first seed, on sentences of held-out text."""

    first: str
    """The label of one recipe."""
    second: str
    """The label of the other one."""
    values: list[list[float]]
    """Debiased linear CKA of each layer of the first with each layer of the second, the input of the first layer before
    all; empty: a model gives texts no vectors."""
    trained: tuple[str, str]
    """Digests of the settings of both pre-trainings."""


class RecipeLayers(Config):
    """The layers of one recipe's pre-trained model, of its first seed, on held-out text."""

    recipe: str
    """The recipe's label."""
    layers: list[LayerProfile]
    """The layers, with those of the encoder first."""
    trained: str
    """Digest of the settings of the pre-training whose model was measured."""
