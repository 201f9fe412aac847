"""Options of `prepare` as its function takes them: shares, sizes, shards and tokenizers."""

from pathlib import Path
from typing import Any

from bakeoff.errors import UserError


def parse_shard(text: str) -> tuple[int, int]:
    """The shard and the number of shards of `3/16`."""
    shard, _, shards = text.partition("/")
    if not (shard.isdecimal() and shards.isdecimal() and 1 <= int(shard) <= int(shards)):
        raise UserError(f"--shard {text}: expected the number of a shard and how many there are, such as 3/16")
    return int(shard), int(shards)


def parse_validation(texts: list[str]) -> float | list[str]:
    """The share of the validation text, from `1%` or `0.01`, or else the names of its files."""
    shares = [share for share in map(_share, texts) if share is not None]
    if not shares:
        return texts
    if len(texts) > 1:
        raise UserError(f"--validation {', '.join(texts)}: give one share, or files alone")
    if not 0 < shares[0] < 1:
        raise UserError(f"--validation {texts[0]}: expected a share between 0 and 1, such as 1% or 0.01, or a file")
    return shares[0]


def _share(text: str) -> float | None:
    try:
        return float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        return None


def parse_size(text: str) -> int:
    """The number of bytes of `50MB`, `500kB` or a plain number."""
    factors = {"GB": 10**9, "MB": 10**6, "KB": 10**3, "B": 1, "": 1}
    upper = text.strip().upper()
    unit = next(unit for unit in factors if upper.endswith(unit))
    try:
        size = int(float(upper.removesuffix(unit)) * factors[unit])
    except (ValueError, OverflowError):
        size = 0
    if size < 1:
        raise UserError(f"--tokenizer-sample {text}: expected a size such as 50MB")
    return size


def parse_tokenizer(
    kind: str | None, recipe: str | None, vocabulary: int | None, lowercase: bool | None, end_of_line: bool | None
) -> Any:
    """The settings of a tokenizer to train, or the path of an existing tokenizer."""
    from bakeoff.tokenizer.tokenizer_config import TokenizerConfig

    settings = {"kind": kind, "size": vocabulary, "lowercase": lowercase, "end_of_line": end_of_line}
    if kind is not None and (kind.endswith(".json") or "/" in kind):
        if recipe is not None or any(settings[name] is not None for name in ("size", "lowercase", "end_of_line")):
            raise UserError(
                "--tokenizer FILE is taken as it is: leave out --recipe, --vocabulary, --lowercase and --end-of-line"
            )
        return Path(kind)
    values: dict[str, Any] = {}
    if recipe is not None:
        from bakeoff.recipe_files import load_recipe

        values = load_recipe(recipe).tokenizer.model_dump()
    return TokenizerConfig.parse(
        values | {name: value for name, value in settings.items() if value is not None}, "--tokenizer"
    )
