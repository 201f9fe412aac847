"""The registry of objectives."""

from typing import Annotated

from bakeoff.objectives.bilm import BidirectionalLanguageModelConfig
from bakeoff.objectives.clm import CausalLanguageModelConfig
from bakeoff.objectives.denoising import DenoisingConfig
from bakeoff.objectives.deshuffling import DeshufflingConfig
from bakeoff.objectives.diffusion import DiffusionConfig
from bakeoff.objectives.mlm import MaskedLanguageModelConfig
from bakeoff.objectives.mntp import MaskedNextTokenConfig
from bakeoff.objectives.objective import ObjectiveConfig
from bakeoff.objectives.permutation import PermutationConfig
from bakeoff.objectives.prefix_clm import PrefixCausalLanguageModelConfig
from bakeoff.objectives.prefix_lm import PrefixLanguageModelConfig
from bakeoff.objectives.rtd import ReplacedTokenDetectionConfig
from bakeoff.objectives.segment_relation import NextSentenceConfig, SentenceOrderConfig, SentenceStructureConfig
from bakeoff.objectives.span_corruption import SpanCorruptionConfig
from bakeoff.objectives.translation import TranslationConfig
from bakeoff.objectives.word_structure import WordStructureConfig
from bakeoff.registry import Registry

OBJECTIVES = Registry(
    "objective",
    ObjectiveConfig,
    MaskedLanguageModelConfig,
    DiffusionConfig,
    WordStructureConfig,
    ReplacedTokenDetectionConfig,
    PermutationConfig,
    NextSentenceConfig,
    SentenceOrderConfig,
    SentenceStructureConfig,
    CausalLanguageModelConfig,
    PrefixCausalLanguageModelConfig,
    MaskedNextTokenConfig,
    BidirectionalLanguageModelConfig,
    SpanCorruptionConfig,
    DenoisingConfig,
    DeshufflingConfig,
    PrefixLanguageModelConfig,
    TranslationConfig,
)
"""The config of every objective by its name."""

AnyObjectiveConfig = Annotated[ObjectiveConfig, OBJECTIVES]
