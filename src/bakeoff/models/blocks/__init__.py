"""Blocks: what surrounds a mixer; the registry is the union of their configs, told apart by `kind`."""

from typing import Annotated

from pydantic import Field

from bakeoff.models.blocks.cnn import CnnBlockConfig
from bakeoff.models.blocks.gen_cnn import GenCnnBlockConfig
from bakeoff.models.blocks.transformer import TransformerBlockConfig

BlockConfig = Annotated[TransformerBlockConfig | CnnBlockConfig | GenCnnBlockConfig, Field(discriminator="kind")]
