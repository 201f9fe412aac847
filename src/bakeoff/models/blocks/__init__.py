"""The registry of blocks: the norms, residual connections and networks around a mixer."""

from typing import Annotated

from bakeoff.models.blocks.block import BlockBaseConfig
from bakeoff.models.blocks.cnn import CnnBlockConfig
from bakeoff.models.blocks.gated_cnn import GatedCnnBlockConfig
from bakeoff.models.blocks.gen_cnn import GenCnnBlockConfig
from bakeoff.models.blocks.plain import PlainBlockConfig
from bakeoff.models.blocks.tcn import TcnBlockConfig
from bakeoff.models.blocks.transformer import TransformerBlockConfig
from bakeoff.registry import Registry

BLOCKS = Registry(
    "block",
    BlockBaseConfig,
    TransformerBlockConfig,
    PlainBlockConfig,
    GatedCnnBlockConfig,
    TcnBlockConfig,
    CnnBlockConfig,
    GenCnnBlockConfig,
    default="transformer",
)
"""The config of every block by its name."""

BlockConfig = Annotated[BlockBaseConfig, BLOCKS]
