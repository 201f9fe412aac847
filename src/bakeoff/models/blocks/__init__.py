"""Blocks: what surrounds a mixer; the registry is the union of their configs, told apart by `kind`."""

from bakeoff.models.blocks.transformer import TransformerBlockConfig

BlockConfig = TransformerBlockConfig
