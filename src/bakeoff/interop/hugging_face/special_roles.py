"""Which special tokens begin, end and mask the rows of a published model, by its settings and not by their names."""

from collections.abc import Iterator, Mapping
from typing import Any

import tokenizers
from tokenizers import processors

from bakeoff.display.wording import counted
from bakeoff.interop.families.t5 import MARKS
from bakeoff.interop.hugging_face.tokenizer_settings import TOKENIZER, TokenizerText
from bakeoff.json_files import json_value
from bakeoff.tokenizer.special_tokens import NAMES, tokens_by_role

BRACKETS, ANGLES = ("[CLS]", "[SEP]"), ("<s>", "</s>")
USUAL = {
    **dict.fromkeys(("bert", "distilbert", "electra", "albert", "modernbert"), BRACKETS),
    **dict.fromkeys(("roberta", "xlm-roberta", "bart"), ANGLES),
    "xlnet": ("<cls>", "<sep>"),
}
"""The tokens around texts by `model_type`, where the settings name none."""
ENDS = ("gpt2", "openai-gpt", "t5")
"""Families whose separator is the token `eos_token`."""
REMARKED = {"mask": "mask_token", "unknown": "unk_token"}
"""Keys of the roles that cannot be chosen where a vocabulary has tokens of several names for them."""

UNWRITTEN = (MARKS.partition("{}")[0], "[unused", "<eop>", "<eod>")
"""Beginnings of the names of special tokens that no text is meant to name: T5's marks, rows kept free, XLNet's ends."""


def with_roles(read: TokenizerText, settings: Mapping[str, Any], model_type: str) -> TokenizerText:
    """The tokenizer with the tokens around texts that transformers takes, and remarks on what cannot be so.

    Args:
        read: a tokenizer that the tokenizers library reads.
        settings: the content of tokenizer_config.json.
        model_type: that of config.json.
    """
    inner = tokenizers.Tokenizer.from_str(read.text)
    state = json_value(read.text, any_number=True)
    there = tokens_by_role(inner, state)
    start, separator = USUAL.get(model_type, (None, None))
    end = _name(settings.get("eos_token")) if model_type in ENDS else None
    said = {
        "start": _name(settings.get("cls_token")) or start,
        "separator": _name(settings.get("sep_token")) or separator or end,
        **{role: _name(settings.get(key)) for role, key in REMARKED.items()},
    }
    wanted = {role: name for role, name in said.items() if name and inner.token_to_id(name) is not None}
    around = {role: wanted[role] for role in ("start", "separator") if wanted.get(role) in NAMES[role]}
    text = read.text
    if any(there[role] != name for role, name in around.items()):
        first, last = around.get("start", there["start"]), around.get("separator", there["separator"])
        pieces = [name for name in (first, "$A", last) if name == "$A" or inner.token_to_id(str(name)) is not None]
        names = {str(name) for name in pieces if name != "$A"}
        inner.post_processor = processors.TemplateProcessing(
            single=pieces, pair=[*pieces, "$B"], special_tokens=[(name, inner.token_to_id(name)) for name in names]
        )
        text = inner.to_str(pretty=True)
    others = _other_roles(wanted, there | around, inner)
    return TokenizerText(text, [*read.remarks, *others, *_unread(state, settings, inner)])


def _other_roles(
    wanted: Mapping[str, str], there: Mapping[str, str | None], inner: tokenizers.Tokenizer
) -> Iterator[str]:
    keys = {"start": "cls_token", "separator": "sep_token", **REMARKED}
    for role, name in wanted.items():
        if role == "unknown" and isinstance(inner.model, tokenizers.models.BPE):
            continue  # a BPE of bytes knows every text
        if there[role] != name:
            yield (
                f"tokenizer_config.json names {name!r} as its {keys[role]}, and the run takes {there[role]!r} for it: "
                f"leave one of {', '.join(NAMES[role])} alone in the files if the model has learned with {name!r}"
            )


def _unread(state: Mapping[str, Any], settings: Mapping[str, Any], inner: tokenizers.Tokenizer) -> list[str]:
    """A remark on special tokens beyond those of rows, which texts cannot name here, and can in transformers."""
    added = {token["content"]: token["special"] for token in state.get("added_tokens") or []}
    listed = [*_listed(settings.get("additional_special_tokens")), *_listed(settings.get("extra_special_tokens"))]
    names = [name for name, special in added.items() if special]
    names += [name for name in listed if name not in added and inner.token_to_id(name) is not None]
    roles = {name for names in NAMES.values() for name in names}
    roles |= {name for key, token in settings.items() if key.endswith("_token") and (name := _name(token))}
    names = [name for name in names if name not in roles and not name.startswith(UNWRITTEN)]
    if not names:
        return []
    shown = ", ".join(f"{name!r:.32}" for name in names[:3]) + (", ..." if len(names) > 3 else "")
    return [
        f"{counted(len(names), 'special token')} of its tokenizer ({shown}): a text that names one has it as text "
        'here, and as a token in transformers; where its texts need them, give them "special": false among the '
        f"added_tokens of its {TOKENIZER} and import it again"
    ]


def _listed(value: Any) -> list[str]:
    values = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    return [name for each in values if (name := _name(each))]


def _name(token: Any) -> str | None:
    token = token.get("content") if isinstance(token, dict) else token
    return token if isinstance(token, str) and token else None
