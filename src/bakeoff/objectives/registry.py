"""The registry of objectives: the union of their configs, told apart by `kind`."""

from collections.abc import Mapping
from typing import Annotated, get_args

from pydantic import Field

from bakeoff.objectives.bilm import BidirectionalLanguageModelConfig
from bakeoff.objectives.clm import CausalLanguageModelConfig
from bakeoff.objectives.denoising import DenoisingConfig
from bakeoff.objectives.deshuffling import DeshufflingConfig
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

AnyObjectiveConfig = Annotated[
    MaskedLanguageModelConfig
    | WordStructureConfig
    | ReplacedTokenDetectionConfig
    | PermutationConfig
    | NextSentenceConfig
    | SentenceOrderConfig
    | SentenceStructureConfig
    | CausalLanguageModelConfig
    | PrefixCausalLanguageModelConfig
    | MaskedNextTokenConfig
    | BidirectionalLanguageModelConfig
    | SpanCorruptionConfig
    | DenoisingConfig
    | DeshufflingConfig
    | PrefixLanguageModelConfig
    | TranslationConfig,
    Field(discriminator="kind"),
]

OBJECTIVES: Mapping[str, type[ObjectiveConfig]] = {
    config.model_fields["kind"].default: config for config in get_args(get_args(AnyObjectiveConfig)[0])
}
"""The config of every objective by its name."""
