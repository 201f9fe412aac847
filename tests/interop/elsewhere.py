"""Models of transformers with random weights, saved as they are published, each with a tokenizer."""

import json
from pathlib import Path

import tokenizers
import torch
from tokenizers import decoders, models, normalizers, pre_tokenizers

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmnopqrstuvwxyz.,", *"中文字かな"]
WORDS += [f"##{letter}" for letter in "abcdefghijklmnopqrstuvwxyz"] + ["the", "model", "##ing", "reads"]

ODD = ["one\nriver", "  a  stone\t", "cafe\u0301", " ", "[SEP] green [PAD]", "a [MASK] window"]
"""Texts that are not read letter by letter here: of white space, decomposed, with names of special tokens."""


def write_wordpiece(folder: Path) -> int:
    """A vocab.txt alone, as BERT's first files were."""
    (folder / "vocab.txt").write_text("\n".join(WORDS) + "\n", encoding="utf-8")
    return len(WORDS)


def write_byte_bpe(folder: Path) -> int:
    """vocab.json and merges.txt, RoBERTa's special tokens first and its mask last."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokens = ["<s>", "<pad>", "</s>", "<unk>", *letters, "th", "the", "Ġthe", "<mask>"]
    (folder / "vocab.json").write_text(json.dumps({token: number for number, token in enumerate(tokens)}))
    (folder / "merges.txt").write_text("#version: 0.2\nt h\nth e\nĠ the\n", encoding="utf-8")
    return len(tokens)


def write_unigram(folder: Path) -> int:
    """A tokenizer.json of unigrams with ALBERT's special tokens."""
    pieces = [(piece, 0.0) for piece in ("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]")]
    pieces += [
        (piece, -float(number)) for number, piece in enumerate(["▁", "▁the", *"abcdefghijklmnopqrstuvwxyz.,"], 1)
    ]
    inner = tokenizers.Tokenizer(models.Unigram(pieces, 1, False))
    inner.normalizer = normalizers.Lowercase()
    inner.pre_tokenizer = pre_tokenizers.Metaspace()
    inner.decoder = decoders.Metaspace()
    inner.add_special_tokens([piece for piece, _ in pieces[:5]])
    inner.save(str(folder / "tokenizer.json"))
    return len(pieces)


def randomise(module: torch.nn.Module) -> None:
    """Weights far from their gentle start, so that nothing can hide."""
    generator = torch.Generator().manual_seed(3)
    for parameter in module.parameters():
        parameter.data = torch.randn(parameter.shape, generator=generator) * 0.3 + (parameter.dim() == 1)
