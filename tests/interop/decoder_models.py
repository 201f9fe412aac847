"""Random models of transformers with a decoder, of odd sizes, with a tokenizer each, as they are published."""

from pathlib import Path

import tokenizers
import torch
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

TEXT = (
    "The quick brown fox jumps over the lazy dog, again and again. Language models read text and write it down.\n"
    "def add(left: int, right: int) -> int:\n    return left + right\n"
)
PAGE = [
    "The quick brown fox isn't lazy; it costs $12.50!",
    "语言模型读取文本。",
    "تقرأ نماذج اللغة النصوص",
    "🎉 a family 👩‍🚀 of emoji",
    "for i in range(10):\n    print(i ** 2)",
]
"""English, Chinese, Arabic, emoji and code."""


def byte_bpe(specials: list[str], size: int) -> tokenizers.Tokenizer:
    """GPT-2's and BART's kind."""
    inner = tokenizers.Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=specials, initial_alphabet=alphabet)
    inner.train_from_iterator([TEXT, *PAGE], trainer)
    return inner


def char_bpe(size: int) -> tokenizers.Tokenizer:
    """GPT's kind."""
    inner = tokenizers.Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
    inner.normalizer = normalizers.BertNormalizer(lowercase=True)
    inner.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    inner.decoder = decoders.BPEDecoder(suffix="</w>")
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=["<unk>"], end_of_word_suffix="</w>")
    inner.train_from_iterator([TEXT], trainer)
    return inner


def unigram(specials: list[str], size: int, behind: list[str]) -> tokenizers.Tokenizer:
    """XLNet's and T5's kind; some special tokens stand after all others."""
    inner = tokenizers.Tokenizer(models.Unigram())
    inner.normalizer = normalizers.NFKC()
    inner.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")
    inner.decoder = decoders.Metaspace(replacement="▁", prepend_scheme="always")
    trainer = trainers.UnigramTrainer(vocab_size=size, special_tokens=specials, unk_token="<unk>")
    inner.train_from_iterator([TEXT, *PAGE], trainer)
    inner.add_special_tokens(behind)
    return inner


def saved(folder: Path, model: torch.nn.Module, inner: tokenizers.Tokenizer) -> Path:
    """Far from its gentle start, norms and biases too, in a folder as transformers writes it."""
    generator = torch.Generator().manual_seed(3)
    for name, tensor in model.named_parameters():
        near = 1.0 if tensor.dim() == 1 and "bias" not in name else 0.0
        tensor.data = torch.randn(tensor.shape, generator=generator) * 0.1 + near
    for name, buffer in model.named_buffers():
        if name == "final_logits_bias":
            buffer.copy_(torch.randn(buffer.shape, generator=generator))
    model.save_pretrained(folder)
    inner.save(str(folder / "tokenizer.json"))
    return folder
