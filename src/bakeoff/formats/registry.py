"""The registry of input formats."""

from typing import Annotated

from bakeoff.formats.blocks import BlocksConfig
from bakeoff.formats.continued_pair import ContinuedPairConfig
from bakeoff.formats.input_config import InputBaseConfig
from bakeoff.formats.packed_sentences import DocSentencesConfig, FullSentencesConfig
from bakeoff.formats.pairs import SegmentPairConfig, SentencePairConfig
from bakeoff.formats.parallel import ParallelConfig
from bakeoff.registry import Registry

FORMATS = Registry(
    "format",
    InputBaseConfig,
    BlocksConfig,
    FullSentencesConfig,
    DocSentencesConfig,
    SegmentPairConfig,
    SentencePairConfig,
    ContinuedPairConfig,
    ParallelConfig,
    tag="format",
)
"""The config of every format of rows by its name."""

InputConfig = Annotated[InputBaseConfig, FORMATS]
