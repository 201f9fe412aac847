"""What tokenizer_config.json says against tokenizer.json: transformers follows the one in some things, else the other.

Its classes for a family (`BertTokenizer`, `RobertaTokenizer`, ...) build the steps before the model of tokens anew from
tokenizer_config.json, with defaults for absent keys; its class for any tokenizer (`PreTrainedTokenizerFast`) follows
tokenizer.json.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from bakeoff.json_files import json_value

TOKENIZER = "tokenizer.json"
SETTINGS = "tokenizer_config.json"
BERT, BYTES, PIECES = "BertTokenizer", "GPT2Tokenizer", "AlbertTokenizer"
"""Of each group of classes that build their steps in one way, one class."""
CLASSES = {
    "bert": BERT,
    "distilbert": BERT,
    "electra": BERT,
    "roberta": BYTES,
    "bart": BYTES,
    "gpt2": BYTES,
    "albert": PIECES,
}
"""The group by `model_type`, where no file names a class; the other families have no such settings."""
GROUPS = {
    **dict.fromkeys(("BertTokenizer", "DistilBertTokenizer", "ElectraTokenizer"), BERT),
    **dict.fromkeys(("GPT2Tokenizer", "RobertaTokenizer", "BartTokenizer", "LongformerTokenizer"), BYTES),
    "AlbertTokenizer": PIECES,
}
"""The group by the name of a class, without the ending `Fast`."""


class TokenizerText(NamedTuple):
    """A tokenizer as the text of a tokenizer.json."""

    text: str
    remarks: list[str]
    """What the user has to know of it."""


def settled(text: str, settings: Mapping[str, Any], config: Mapping[str, Any]) -> TokenizerText:
    """A tokenizer.json as transformers reads it beside a tokenizer_config.json.

    Args:
        text: the text of the tokenizer.json.
        settings: the content of tokenizer_config.json; empty: there is no such file.
        config: the content of config.json.
    """
    state = json_value(text, any_number=True)
    group = _group(settings, config)
    if not isinstance(state, dict) or group not in _BY_GROUP:
        return TokenizerText(text, [])
    remarks = list(_BY_GROUP[group](state, settings))
    return TokenizerText(json.dumps(state, ensure_ascii=False) if remarks else text, remarks)


def _group(settings: Mapping[str, Any], config: Mapping[str, Any]) -> str | None:
    said = settings.get("tokenizer_class") or config.get("tokenizer_class")
    if config.get("model_type") == "modernbert":
        return None  # for which transformers takes no class by its name
    if isinstance(said, str):
        return GROUPS.get(said.removesuffix("Fast"))
    return CLASSES.get(str(config.get("model_type")))


def _bert(state: dict[str, Any], settings: Mapping[str, Any]) -> Iterator[str]:
    """Bring BERT's normalizer in line: lower case, accents, spaces around Chinese characters."""
    normalizer = state.get("normalizer")
    if not isinstance(normalizer, dict) or normalizer.get("type") != "BertNormalizer":
        yield _other_steps("normalizer", BERT, "BertNormalizer")
        return
    lowercase = bool(settings.get("do_lower_case", True))
    accents = settings.get("strip_accents")
    wanted = {
        "do_lower_case": ("lowercase", lowercase, normalizer.get("lowercase", True)),
        "strip_accents": (
            "strip_accents",
            lowercase if accents is None else bool(accents),
            _either(normalizer.get("strip_accents"), normalizer.get("lowercase", True)),
        ),
        "tokenize_chinese_chars": (
            "handle_chinese_chars",
            bool(settings.get("tokenize_chinese_chars", True)),
            normalizer.get("handle_chinese_chars", True),
        ),
    }
    for key, (name, value, there) in wanted.items():
        if value != there:
            yield _against(key, settings, value, f"normalizer.{name}", there)
    normalizer.update({name: value for name, value, _ in wanted.values()})


def _bytes(state: dict[str, Any], settings: Mapping[str, Any]) -> Iterator[str]:
    """Bring a byte-level BPE in line: whether a space is put before a text."""
    step = state.get("pre_tokenizer")
    if not isinstance(step, dict) or step.get("type") != "ByteLevel" or state.get("normalizer") is not None:
        part = "pre_tokenizer" if state.get("normalizer") is None else "normalizer"
        yield _other_steps(part, BYTES, "ByteLevel alone")
        return
    wanted = bool(settings.get("add_prefix_space", False))
    there = bool(step.get("add_prefix_space", True))
    if wanted != there:
        yield _against("add_prefix_space", settings, wanted, "pre_tokenizer.add_prefix_space", there)
        step["add_prefix_space"] = wanted


def _pieces(state: dict[str, Any], settings: Mapping[str, Any]) -> Iterator[str]:
    """Say where ALBERT's steps contradict the settings: versions of transformers differ in what they follow."""
    kinds = {step.get("type") for step in _steps(state.get("normalizer"))}
    for key, default, there in (
        ("do_lower_case", True, "Lowercase" in kinds),
        ("keep_accents", False, "StripAccents" not in kinds),
    ):
        if (value := bool(settings.get(key, default))) != there:
            yield (
                f"tokenizer.json has {key} {_word(there)} and tokenizer_config.json {_said(key, settings)} "
                f"{_word(value)}: the run follows tokenizer.json, as transformers 4 does and 5 does not"
            )


_BY_GROUP: dict[str, Callable[[dict[str, Any], Mapping[str, Any]], Iterator[str]]] = {
    BERT: _bert,
    BYTES: _bytes,
    PIECES: _pieces,
}


def _steps(node: Any) -> Iterator[dict[str, Any]]:
    """The steps of a normalizer, of nested ones too."""
    if isinstance(node, dict):
        yield node
        for inner in node.get("normalizers") or []:
            yield from _steps(inner)


def _either(value: Any, otherwise: Any) -> Any:
    return otherwise if value is None else value


def _word(value: Any) -> str:
    return json.dumps(bool(value))


def _said(key: str, settings: Mapping[str, Any]) -> str:
    return "says" if key in settings else "by default"


def _against(key: str, settings: Mapping[str, Any], value: bool, part: str, there: Any) -> str:
    return (
        f"tokenizer.json has {part} {_word(there)} and tokenizer_config.json {_said(key, settings)} {key} "
        f"{_word(value)}: the run follows the latter, as transformers does"
    )


def _other_steps(part: str, group: str, theirs: str) -> str:
    return (
        f"its {part} in tokenizer.json, which the run follows, is another than {theirs}, which transformers 5 puts "
        f"there for {group} and its like: ids may differ from those of transformers"
    )
