"""Common parts of the families with an encoder and a decoder."""

from typing_extensions import override

from bakeoff.interop.config_reader import ConfigReader
from bakeoff.interop.families.family import Family
from bakeoff.interop.families.task_heads import NotSaid
from bakeoff.models.blocks.transformer import TransformerBlockConfig
from bakeoff.objectives.sequence_to_sequence import SequenceToSequenceBaseConfig
from bakeoff.recipe import Recipe
from bakeoff.tokenizer.tokenizer import Tokenizer


def both_blocks(recipe: Recipe) -> tuple[TransformerBlockConfig, TransformerBlockConfig]:
    """The block that all layers of the encoder have, and the block that all layers of the decoder have.

    Raises:
        NotSaid: encoder or decoder is missing, their widths differ, or their layers differ, share weights or are no
            transformer blocks.
    """
    encoder, decoder = recipe.model.encoder, recipe.model.decoder
    if encoder is None or decoder is None:
        raise NotSaid("it has not both an encoder and a decoder")
    blocks = []
    for stack in (encoder, decoder):
        if len(stack.distinct()) != 1 or stack.share != "none":
            raise NotSaid("its layers differ, or share parts")
        (block,) = stack.distinct()
        if not isinstance(block, TransformerBlockConfig):
            raise NotSaid(f"its blocks are of kind {block.kind}")
        blocks.append(block)
    if blocks[1].cross is None or encoder.width != decoder.width:
        raise NotSaid("encoder and decoder are not equally wide")
    return blocks[0], blocks[1]


def writing_of(recipe: Recipe) -> SequenceToSequenceBaseConfig:
    """The first objective of a recipe, by which the model learned to write targets.

    Raises:
        NotSaid: it is not a sequence-to-sequence objective.
    """
    (objective, *_) = recipe.objective
    if not isinstance(objective, SequenceToSequenceBaseConfig):
        raise NotSaid(f"it has learnt {objective.kind}")
    return objective


def begins(config: ConfigReader, usual: list[str]) -> list[str]:
    """Roles of the tokens that the decoder reads before a target, by the config's ids; `usual` if it names none."""
    start = config.values.get("decoder_start_token_id")
    for role, key in (("separator", "eos_token_id"), ("start", "bos_token_id"), ("pad", "pad_token_id")):
        if isinstance(start, int) and start == config.values.get(key):
            return usual if role == usual[0] else [role]
    return usual


class SequenceToSequenceFamily(Family):
    """A family with a decoder, which begins with tokens that config.json names."""

    @override
    def tokens(self, recipe: Recipe, tokenizer: Tokenizer) -> dict[str, int]:
        prompt = writing_of(recipe).prompt(tokenizer)
        forced = {"forced_bos_token_id": prompt[1]} if len(prompt) > 1 else {}
        return {
            "bos_token_id": tokenizer.start,
            "eos_token_id": tokenizer.separator,
            "decoder_start_token_id": prompt[0],
            **forced,
        }
