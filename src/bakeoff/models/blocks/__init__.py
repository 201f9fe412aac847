"""Blocks: what surrounds a mixer; the registry is the union of their configs, told apart by `kind`."""

from typing import Annotated

from pydantic import Field

from bakeoff.models.blocks.cnn import CnnBlockConfig
from bakeoff.models.blocks.gated_cnn import GatedCnnBlockConfig
from bakeoff.models.blocks.gen_cnn import GenCnnBlockConfig
from bakeoff.models.blocks.plain import PlainBlockConfig
from bakeoff.models.blocks.tcn import TcnBlockConfig
from bakeoff.models.blocks.transformer import TransformerBlockConfig

BlockConfig = Annotated[
    TransformerBlockConfig
    | PlainBlockConfig
    | GatedCnnBlockConfig
    | TcnBlockConfig
    | CnnBlockConfig
    | GenCnnBlockConfig,
    Field(discriminator="kind"),
]
