"""Blocks: what surrounds a mixer; the registry is the union of their configs, told apart by `kind`."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Discriminator, Tag

from bakeoff.models.blocks.cnn import CnnBlockConfig
from bakeoff.models.blocks.gated_cnn import GatedCnnBlockConfig
from bakeoff.models.blocks.gen_cnn import GenCnnBlockConfig
from bakeoff.models.blocks.plain import PlainBlockConfig
from bakeoff.models.blocks.tcn import TcnBlockConfig
from bakeoff.models.blocks.transformer import TransformerBlockConfig


def _kind(value: Any) -> str:
    """The kind of a block that is given; a block without one is a transformer's."""
    kind = value.get("kind", "transformer") if isinstance(value, Mapping) else getattr(value, "kind", "transformer")
    return str(kind)


BlockConfig = Annotated[
    Annotated[TransformerBlockConfig, Tag("transformer")]
    | Annotated[PlainBlockConfig, Tag("plain")]
    | Annotated[GatedCnnBlockConfig, Tag("gated_cnn")]
    | Annotated[TcnBlockConfig, Tag("tcn")]
    | Annotated[CnnBlockConfig, Tag("cnn")]
    | Annotated[GenCnnBlockConfig, Tag("gen_cnn")],
    Discriminator(_kind),
]
