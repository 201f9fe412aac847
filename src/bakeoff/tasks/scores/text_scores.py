"""Scores of written texts: BLEU and chrF as in sacrebleu, ROUGE, and exact match; all as fractions.

Texts are compared in NFC, as a model reads and writes them.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Literal
from unicodedata import normalize

import numpy as np
import regex
from numpy.typing import NDArray

from bakeoff.text.segmentation import CLUSTER, IDEOGRAPHS, WORD

CHRF_ORDER = 6
"""The size of the longest n-grams of characters in chrF."""

_WORD = regex.compile(rf"(?=[{IDEOGRAPHS}]){CLUSTER}|{WORD}", regex.V1)


BleuTokens = Literal["auto", "13a", "intl", "zh", "char", "none"]
"""The tokenizer of sacrebleu's BLEU: 13a, of the WMT's script; intl, by Unicode's classes; zh, Chinese by character;
char, any text by character; none, at white space alone; auto, the one for the script of the references."""


def text_scores(references: Sequence[str], texts: Sequence[str], tokens: BleuTokens = "auto") -> dict[str, float]:
    """BLEU, chrF, ROUGE and exact match of written texts.

    Args:
        references: (N,) the reference texts.
        texts: (N,) the written texts.
        tokens: the tokenizer of BLEU; auto: by the script of the references.

    Returns:
        bleu of the whole corpus (Papineni et al. 2002; Post 2018, arXiv:1804.08771: sacrebleu's, with the signature
        that `bleu_tokens.signature` gives), chrf of the whole corpus (Popovic 2015: characters to 6, beta 2),
        rouge_1, rouge_2 and rouge_l, means of F1 over the texts (Lin 2004), and exact, the share of texts that equal
        their reference.
    """
    # Imported here, so that code that scores no texts does without it.
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF

    references, texts = _composed(references), _composed(texts)
    bleu = BLEU(tokenize=chosen_tokens(tokens, references), force=True)
    scores = {
        "bleu": bleu.corpus_score(texts, [references]).score / 100,
        "chrf": CHRF().corpus_score(texts, [references]).score / 100,
        **rouge(references, texts),
        "exact": float(np.mean(exact(references, texts))),
    }
    return {name: round(float(value), 7) for name, value in scores.items()}


def exact(references: Sequence[str], texts: Sequence[str]) -> NDArray[np.float64]:
    """(N,) 1 for each text that equals its reference, else 0."""
    pairs = zip(_composed(references), _composed(texts), strict=True)
    return np.array([text == right for right, text in pairs], np.float64)


def bleu_sums(
    references: Sequence[str], texts: Sequence[str], tokens: BleuTokens = "auto"
) -> tuple[NDArray[np.float64], Callable[[NDArray[np.float64]], NDArray[np.float64]]]:
    """(N, 10) contributions of the texts to the sums of BLEU, and the function from (..., 10) sums to BLEU.

    The sums are the words of the texts, the words of the references, and for each size of n-grams from 1 to 4 the
    number of right ones, then the number of all. BLEU is a fraction.
    """
    from sacrebleu.metrics.bleu import BLEU

    # The effective order leaves the counts as they are.
    scorer = BLEU(tokenize=chosen_tokens(tokens, references), effective_order=True)
    pairs = zip(_composed(references), _composed(texts), strict=True)
    counted = [scorer.sentence_score(text, [right]) for right, text in pairs]
    rows = np.array([[each.sys_len, each.ref_len, *each.counts, *each.totals] for each in counted], np.float64)

    def value(sums: NDArray[np.float64]) -> NDArray[np.float64]:
        scores = []
        for each in sums.reshape(-1, 10).astype(int).tolist():
            score = BLEU.compute_bleu(each[2:6], each[6:], each[0], each[1], smooth_method="exp")
            scores.append(score.score / 100)
        return np.array(scores).reshape(sums.shape[:-1])

    return rows.reshape(-1, 10), value


def chrf_sums(
    references: Sequence[str], texts: Sequence[str]
) -> tuple[NDArray[np.float64], Callable[[NDArray[np.float64]], NDArray[np.float64]]]:
    """(N, 18) contributions of the texts to the sums of chrF, and the function from (..., 18) sums to chrF.

    The sums are the numbers of n-grams of 1 to 6 characters in the texts, in the references, and in both. White space
    is no character, and a text's n-grams of a size for which its reference is too short are not counted (sacrebleu
    2.6). chrF is a fraction.
    """
    counts = np.zeros((len(texts), 3, CHRF_ORDER))
    for row, (reference, text) in enumerate(zip(_composed(references), _composed(texts), strict=True)):
        right, written = ("".join(each.split()) for each in (reference, text))
        for size in range(1, CHRF_ORDER + 1):
            wanted, given = (_ngrams(each, size) for each in (right, written))
            counts[row, :, size - 1] = given.total() if wanted else 0, wanted.total(), (wanted & given).total()

    def value(sums: NDArray[np.float64]) -> NDArray[np.float64]:
        given, wanted, common = np.moveaxis(sums.reshape(*sums.shape[:-1], 3, CHRF_ORDER), -2, 0)
        counted = (given > 0) & (wanted > 0)
        sizes = np.maximum(1, counted.sum(-1))
        # The means over the sizes of n-grams that both sides have, and then F with beta 2.
        precision = np.where(counted, common / np.maximum(1, given), 0.0).sum(-1) / sizes
        recall = np.where(counted, common / np.maximum(1, wanted), 0.0).sum(-1) / sizes
        below = 4 * precision + recall
        return np.asarray(np.where(below > 0, 5 * precision * recall / np.where(below > 0, below, 1), 0.0))

    return counts.reshape(-1, 3 * CHRF_ORDER), value


def rouge(references: Sequence[str], texts: Sequence[str]) -> dict[str, float]:
    """The means over texts of the F1 of single words, of pairs of words, and of the longest common subsequence.

    Words are those of `bakeoff.text.segmentation` in lower case, cut at underscores; an ideograph is a word, and so is
    each sign among ideographs. In English these are the words of Google's rouge_score without its stemmer; rouge_score
    drops letters that are not ASCII.
    """
    sums = {"rouge_1": 0.0, "rouge_2": 0.0, "rouge_l": 0.0}
    for reference, text in zip(references, texts, strict=True):
        right, written = (_words(each) for each in (reference, text))
        for size in (1, 2):
            both = _ngrams(right, size) & _ngrams(written, size)
            lengths = max(0, len(right) - size + 1), max(0, len(written) - size + 1)
            sums[f"rouge_{size}"] += _f1(both.total(), *lengths)
        sums["rouge_l"] += _f1(longest_common(right, written), len(right), len(written))
    return {name: total / max(1, len(references)) for name, total in sums.items()}


def _words(text: str) -> list[str]:
    """The words of a text for ROUGE."""
    words: list[str] = _WORD.findall(normalize("NFC", text.lower().replace("_", " ")))
    return words


def _composed(texts: Sequence[str]) -> list[str]:
    """Texts in NFC."""
    return [normalize("NFC", text) for text in texts]


def _ngrams(words: Sequence[str], size: int) -> Counter[tuple[str, ...]]:
    """The n-grams of a text's words, with their counts."""
    return Counter(zip(*(words[begin:] for begin in range(size)), strict=False))


def _f1(common: int, right: int, written: int) -> float:
    """2 P R / (P + R) = 2 common / (right + written)."""
    return 2 * common / (right + written) if common else 0.0


def longest_common(first: Sequence[str], second: Sequence[str]) -> int:
    """The length of the longest common subsequence; each row of the table is the bits of a number (Hyyro 2004)."""
    masks: dict[str, int] = {}
    for index, word in enumerate(first):
        masks[word] = masks.get(word, 0) | 1 << index
    every = (1 << len(first)) - 1
    row = every
    for word in second:
        same = row & masks.get(word, 0)
        row = ((row + same) | (row - same)) & every
    return len(first) - row.bit_count()


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
