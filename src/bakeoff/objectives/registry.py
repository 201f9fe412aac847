"""The registry of objectives and input formats: the unions of their configs, told apart by `kind` and `format`."""

from collections.abc import Mapping
from typing import Annotated, get_args

from pydantic import Field

from bakeoff.objectives.bilm import BidirectionalLanguageModelConfig
from bakeoff.objectives.blocks import BlocksConfig
from bakeoff.objectives.clm import CausalLanguageModelConfig
from bakeoff.objectives.continued_pair import ContinuedPairConfig
from bakeoff.objectives.denoising import DenoisingConfig
from bakeoff.objectives.deshuffling import DeshufflingConfig
from bakeoff.objectives.mlm import MaskedLanguageModelConfig
from bakeoff.objectives.mntp import MaskedNextTokenConfig
from bakeoff.objectives.objective import ObjectiveConfig
from bakeoff.objectives.packed_sentences import DocSentencesConfig, FullSentencesConfig
from bakeoff.objectives.pairs import SegmentPairConfig, SentencePairConfig
from bakeoff.objectives.parallel import ParallelConfig
from bakeoff.objectives.permutation import PermutationConfig
from bakeoff.objectives.prefix_clm import PrefixCausalLanguageModelConfig
from bakeoff.objectives.prefix_lm import PrefixLanguageModelConfig
from bakeoff.objectives.segment_relation import NextSentenceConfig, SentenceOrderConfig, SentenceStructureConfig
from bakeoff.objectives.span_corruption import SpanCorruptionConfig
from bakeoff.objectives.translation import TranslationConfig
from bakeoff.objectives.word_structure import WordStructureConfig

InputConfig = Annotated[
    BlocksConfig
    | FullSentencesConfig
    | DocSentencesConfig
    | SegmentPairConfig
    | SentencePairConfig
    | ContinuedPairConfig
    | ParallelConfig,
    Field(discriminator="format"),
]
AnyObjectiveConfig = Annotated[
    MaskedLanguageModelConfig
    | WordStructureConfig
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
