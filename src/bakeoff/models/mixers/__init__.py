"""The registry of token mixers, each of which has a file here."""

from typing import Annotated

from bakeoff.models.mixers.attention import AttentionConfig
from bakeoff.models.mixers.average import AverageConfig
from bakeoff.models.mixers.conv import ConvConfig
from bakeoff.models.mixers.depthwise_conv import DepthwiseConvConfig
from bakeoff.models.mixers.disentangled_attention import DisentangledAttentionConfig
from bakeoff.models.mixers.dynamic_conv import DynamicConvConfig
from bakeoff.models.mixers.gru import GruConfig
from bakeoff.models.mixers.light_conv import LightConvConfig
from bakeoff.models.mixers.lstm import LstmConfig
from bakeoff.models.mixers.mixer import MixerBaseConfig
from bakeoff.models.mixers.none import NoMixingConfig
from bakeoff.models.mixers.relative_attention import RelativeAttentionConfig
from bakeoff.registry import Registry

MIXERS = Registry(
    "mixer",
    MixerBaseConfig,
    AttentionConfig,
    RelativeAttentionConfig,
    DisentangledAttentionConfig,
    ConvConfig,
    DepthwiseConvConfig,
    LightConvConfig,
    DynamicConvConfig,
    LstmConfig,
    GruConfig,
    AverageConfig,
    NoMixingConfig,
)
"""The config of every mixer by its name."""

MixerConfig = Annotated[MixerBaseConfig, MIXERS]
