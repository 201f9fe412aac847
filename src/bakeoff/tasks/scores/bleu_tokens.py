"""The words of BLEU: which of sacrebleu's tokenizers cuts texts, chosen by the references' script or by hand."""

from collections.abc import Sequence
from typing import Literal

import regex

BleuTokens = Literal["auto", "13a", "intl", "zh", "char", "none"]
"""The tokenizer of sacrebleu's BLEU: 13a, of the WMT's script; intl, by Unicode's classes; zh, Chinese by character;
char, any text by character; none, at white space alone; auto, the one for the script of the references."""

_HAN = regex.compile(r"\p{Script=Han}")
_KANA = regex.compile(r"[\p{Script=Hiragana}\p{Script=Katakana}]")
_OTHERS = regex.compile(r"[\p{Thai}\p{Lao}\p{Tibetan}\p{Myanmar}\p{Khmer}]")  # no spaces between words either
_SPACED_WORD = regex.compile(rf"[[\p{{L}}\p{{M}}]--{_HAN.pattern}--{_KANA.pattern}--{_OTHERS.pattern}]+", regex.V1)
_JAPANESE = 0.1  # the least share of kana; Chinese has hardly any, and Japanese mostly these


def chosen_tokens(tokens: BleuTokens, references: Sequence[str]) -> BleuTokens:
    """The tokenizer for some references, never `auto`.

    Args:
        tokens: the setting of the task's config. For `auto` it is `zh` where most words of the references are Chinese,
            each ideograph one, `char` where they are Japanese or of another script without spaces, and else `13a`.
        references: the reference texts.
    """
    if tokens != "auto":
        return tokens
    han = kana = others = spaced = 0
    for text in references:
        han, kana = han + len(_HAN.findall(text)), kana + len(_KANA.findall(text))
        others += len(_OTHERS.findall(text))
        spaced += len(_SPACED_WORD.findall(text))
    if han + kana + others <= spaced:
        return "13a"
    return "zh" if han >= others and kana < _JAPANESE * (han + kana) else "char"


def signature(tokens: BleuTokens, references: Sequence[str]) -> str:
    """What has to be known to compare a BLEU with another one, as sacrebleu writes it."""
    from importlib.metadata import version

    words = chosen_tokens(tokens, references)
    return f"nrefs:1|case:mixed|eff:no|tok:{words}|smooth:exp|version:{version('sacrebleu')}"
