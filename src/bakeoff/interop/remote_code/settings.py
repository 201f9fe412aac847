"""The config.json, task heads aside, and the generation_config.json of an export with code."""

from typing import Any

from bakeoff.generation.generate import never_written
from bakeoff.interop.families.bakeoff_family import RECIPE
from bakeoff.models.model import Model
from bakeoff.objectives.heads import AdaptiveTokenHead, Head, TokenHead, UntiedTokenHead
from bakeoff.recipe import Recipe
from bakeoff.tokenizer.tokenizer import Tokenizer


def settings_of(recipe: Recipe, tokenizer: Tokenizer, model: Model, longest: int) -> dict[str, Any]:
    """Keys of config.json for any model of a recipe; `longest` is the length of rows without a limit of the model."""
    config = recipe.model
    start = "none" if config.encoder is None else "last" if recipe.input.start_last else "first"
    mixers = config.mixers
    values: dict[str, Any] = {
        "architecture": config.model_dump(mode="json"),
        RECIPE: without_teachers(recipe).model_dump(mode="json"),
        "vocab_size": model.vocabulary,
        "uses_segments": config.embedding.segments >= 2 or any(mixer.reads_segments for mixer in mixers),
        "start_token": start,
        "both_sides": recipe.reads_both_sides,
        "reads_prefix": recipe.reads_prefix,
        "hidden_size": config.output_width,
        "num_hidden_layers": sum(stack.layers for stack in config.stacks().values()),
        "max_position_embeddings": config.longest_input or longest,
        "is_encoder_decoder": config.sequence_to_sequence,
        "pad_token_id": tokenizer.pad,
        "cls_token_id": tokenizer.start,
        "sep_token_id": tokenizer.separator,
        "eos_token_id": tokenizer.separator,
        "bos_token_id": tokenizer.opening,
        "tie_word_embeddings": False,
    }
    if (heads := mixers[0].head_count) is not None:
        values["num_attention_heads"] = heads
    if config.sequence_to_sequence:
        values["decoder_start_token_id"] = tokenizer.start
    return values


def without_teachers(recipe: Recipe) -> Recipe:
    """The recipe without the runs that it learned from, which are folders of the model's author."""
    return recipe if recipe.training.distillation is None else recipe.changed({"training.distillation": None})


def head_settings(head: Head, model: Model) -> dict[str, Any] | None:
    """The kind and the arguments of a head that predicts tokens; None: the head is a plugin's."""
    if type(head) is TokenHead:
        norm, embedding_width = head.norm, model.embedding.weight.shape[1]
        transform: dict[str, Any] | None = None
        if norm is not None and head.transform is not None:
            transform = {
                "activation": head.activation,
                "norm_epsilon": norm.eps,
                "norm_affine": norm.elementwise_affine,
                "norm_bias": not norm.elementwise_affine or norm.bias is not None,
                "map_bias": head.transform.bias is not None,
            }
        return {
            "kind": "tied",
            "width": embedding_width if head.transform is None else head.transform.in_features,
            "embedding_width": embedding_width,
            "transform": transform,
            "bias": head.bias is not None,
        }
    if type(head) is UntiedTokenHead:
        return {"kind": "untied", "width": head.output.in_features, "bias": head.output.bias is not None}
    if type(head) is AdaptiveTokenHead:
        inner = head.softmax
        cutoffs = list(inner.cutoffs[:-1])
        return {
            "kind": "adaptive",
            "width": inner.in_features,
            "cutoffs": cutoffs,
            "bias": inner.head.bias is not None,
        }
    return None


def generation_of(tokenizer: Tokenizer, banned: list[int] | None = None) -> dict[str, Any]:
    """Keys of generation_config.json; `banned` are further ids that are never written."""
    return {
        "pad_token_id": tokenizer.pad,
        "eos_token_id": tokenizer.separator,
        "bos_token_id": tokenizer.opening,
        "decoder_start_token_id": tokenizer.start,
        "suppress_tokens": [*never_written(tokenizer), *(banned or [])],
    }
