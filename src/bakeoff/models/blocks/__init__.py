"""Blocks: what surrounds a mixer; the registry is the union of their configs, told apart by `kind`."""

from typing import Annotated

from pydantic import Field

from bakeoff.models.blocks.plain import PlainBlockConfig
from bakeoff.models.blocks.transformer import TransformerBlockConfig

BlockConfig = Annotated[TransformerBlockConfig | PlainBlockConfig, Field(discriminator="kind")]
