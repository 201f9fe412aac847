"""The registry of input formats: the union of their configs, told apart by `format`."""

from typing import Annotated

from pydantic import Field

from bakeoff.formats.blocks import BlocksConfig
from bakeoff.formats.continued_pair import ContinuedPairConfig
from bakeoff.formats.packed_sentences import DocSentencesConfig, FullSentencesConfig
from bakeoff.formats.pairs import SegmentPairConfig, SentencePairConfig
from bakeoff.formats.parallel import ParallelConfig

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
