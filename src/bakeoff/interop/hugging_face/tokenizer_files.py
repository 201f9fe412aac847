"""The tokenizer of a run in the files that transformers' AutoTokenizer reads."""

import json
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer as Inner
from tokenizers.processors import TemplateProcessing

from bakeoff.interop.hugging_face.folder import to_text
from bakeoff.recipe import Recipe
from bakeoff.tokenizer.tokenizer import Tokenizer

ROLES = {
    "pad": "pad_token",
    "unknown": "unk_token",
    "start": "cls_token",
    "separator": "sep_token",
    "mask": "mask_token",
}
"""Our special tokens, and transformers' names of them."""


def write_tokenizer(tokenizer: Tokenizer, recipe: Recipe, folder: Path, rows: int | None = None) -> None:
    """Write tokenizer.json, tokenizer_config.json and special_tokens_map.json.

    A text comes out of AutoTokenizer as rows of the run's fine-tuning have it: `[CLS] A [SEP] B [SEP]` before an
    encoder, `[SEP] A` before a decoder, `A [SEP] [CLS]` where `[CLS]` is last.

    Args:
        tokenizer: the run's.
        recipe: the run's.
        folder: to write to.
        rows: special tokens with ids from here on are left out, and what has their roles with them: they are not in
            the model's table.
    """
    state: dict[str, Any] = json.loads(tokenizer.to_string())
    kept = [token for token in state["added_tokens"] if rows is None or token["id"] < rows]
    state["added_tokens"] = kept
    inner = Inner.from_str(json.dumps(state))
    roles = {}
    for role, name in ROLES.items():
        number = getattr(tokenizer, role)
        if number is not None and (rows is None or number < rows):
            roles[name] = str(inner.id_to_token(number))
    inner.post_processor = _frame(tokenizer, recipe, inner) if _has(roles, recipe) else None
    inner.save(str(folder / "tokenizer.json"))
    longest = recipe.model.longest_input
    forwards = recipe.model.encoder is None
    settings: dict[str, Any] = {
        **roles,
        "tokenizer_class": "PreTrainedTokenizerFast",
        "clean_up_tokenization_spaces": False,
        "model_input_names": ["input_ids", *(["token_type_ids"] if _segments(recipe) else []), "attention_mask"],
        "padding_side": "right",
    }
    if forwards and "sep_token" in roles:
        settings |= {"bos_token": roles["sep_token"], "eos_token": roles["sep_token"]}
    if longest is not None:
        settings["model_max_length"] = longest
    (folder / "tokenizer_config.json").write_text(to_text(settings), encoding="utf-8")
    special = {key: value for key, value in settings.items() if key.endswith("_token")}
    (folder / "special_tokens_map.json").write_text(to_text(special), encoding="utf-8")


def with_marks(tokenizer: Tokenizer, recipe: Recipe) -> Tokenizer:
    """The tokenizer with a token for each of an objective's marks behind its own, named as T5 names them."""
    if not recipe.extra_tokens:
        return tokenizer
    inner = Inner.from_str(tokenizer.to_string())
    inner.add_special_tokens([f"<extra_id_{number}>" for number in range(recipe.extra_tokens)])
    return Tokenizer.from_string(inner.to_str())


def token_ids(tokenizer: Tokenizer, rows: int) -> dict[str, int]:
    """Keys of config.json that name special tokens."""
    names = {"pad_token_id": tokenizer.pad, "cls_token_id": tokenizer.start, "sep_token_id": tokenizer.separator}
    return {key: number for key, number in names.items() if number < rows}


def _segments(recipe: Recipe) -> bool:
    return recipe.model.embedding.segments >= 2


def _has(roles: dict[str, str], recipe: Recipe) -> bool:
    return "sep_token" in roles and (recipe.model.encoder is None or "cls_token" in roles)


def _frame(tokenizer: Tokenizer, recipe: Recipe, inner: Inner) -> TemplateProcessing:
    """The rows of fine-tuning, as `bakeoff.tasks.rows.inputs.InputFormat` has them."""
    start, separator = str(inner.id_to_token(tokenizer.start)), str(inner.id_to_token(tokenizer.separator))
    used = [(start, tokenizer.start), (separator, tokenizer.separator)]
    if recipe.model.encoder is None:
        return TemplateProcessing(f"{separator} $A", f"{separator} $A {separator} $B:1", used[1:])
    if recipe.input.start_last:
        return TemplateProcessing(f"$A {separator} {start}:2", f"$A {separator} $B:1 {separator}:1 {start}:2", used)
    return TemplateProcessing(f"{start} $A {separator}", f"{start} $A {separator} $B:1 {separator}:1", used)
