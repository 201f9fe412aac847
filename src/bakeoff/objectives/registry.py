"""The registry of objectives and input formats: the unions of their configs, told apart by `kind` and `format`."""

from typing import Annotated

from pydantic import Field

from bakeoff.objectives.bilm import BidirectionalLanguageModelConfig
from bakeoff.objectives.blocks import BlocksConfig
from bakeoff.objectives.clm import CausalLanguageModelConfig
from bakeoff.objectives.continued_pair import ContinuedPairConfig
from bakeoff.objectives.denoising import DenoisingConfig
from bakeoff.objectives.deshuffling import DeshufflingConfig
from bakeoff.objectives.mlm import MaskedLanguageModelConfig
from bakeoff.objectives.mntp import MaskedNextTokenConfig
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
    | CausalLanguageModelConfig
    | PrefixCausalLanguageModelConfig
    | MaskedNextTokenConfig
    | BidirectionalLanguageModelConfig
    | NextSentenceConfig
    | SentenceOrderConfig
    | SentenceStructureConfig
    | WordStructureConfig
    | SpanCorruptionConfig
    | DenoisingConfig
    | DeshufflingConfig
    | PrefixLanguageModelConfig
    | TranslationConfig
    | PermutationConfig,
    Field(discriminator="kind"),
]
