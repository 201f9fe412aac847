"""Tokenizers of published models, from any of the forms that their files have."""

from collections.abc import Mapping
from typing import Any

import tokenizers
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers

from bakeoff import checksums
from bakeoff.errors import UserError
from bakeoff.interop.hugging_face.added_tokens import with_added
from bakeoff.interop.hugging_face.folder import Folder
from bakeoff.interop.hugging_face.sentencepiece import unigram_of
from bakeoff.interop.hugging_face.special_roles import with_roles
from bakeoff.interop.hugging_face.tokenizer_settings import SETTINGS, TOKENIZER, TokenizerText, settled
from bakeoff.json_files import JsonError, json_value
from bakeoff.tokenizer import file as tokenizer_file
from bakeoff.tokenizer.file import guarded

MOST_FILLED = 4096
"""Most rows of a table of tokens that may lack a token; some published tables are padded to a round number of rows."""


def tokenizer_text(folder: Folder, model_type: str, config: Mapping[str, Any]) -> TokenizerText:
    """The folder's tokenizer as the text of a tokenizer.json, with remarks where its files contradict each other.

    Raises:
        UserError: the folder has no file of a tokenizer, or a damaged one.
    """
    settings = folder.json(SETTINGS)
    if (whole := folder.file(TOKENIZER)) is not None:
        text = tokenizer_file.read(whole)
        tokenizer_file.bounded(text, f"{folder.path}: its tokenizer")
        read = settled(text, settings, config)
    else:
        text = with_added(_from_vocabulary(folder, settings, model_type), folder, settings)
        read = TokenizerText(text, [])
    with tokenizer_file.quiet(), guarded(str(folder.path), "its tokenizer is damaged"):
        return with_roles(read, settings, str(config.get("model_type")))


def _from_vocabulary(folder: Folder, settings: dict[str, Any], model_type: str) -> str:
    """The tokenizer of a folder without a tokenizer.json, as the text of one, without tokens that were added."""
    for key, value in settings.items():
        if key.endswith("_file") and isinstance(value, str):
            folder.file(value)  # refuses names outside of the folder
    if (words := folder.file("vocab.txt")) is not None:
        return _wordpiece(tokenizer_file.read(words), str(words), settings)
    vocabulary, merges = folder.file("vocab.json"), folder.file("merges.txt")
    if vocabulary is not None and merges is not None:
        text, name = tokenizer_file.read(vocabulary), str(vocabulary)
        return _merges(text, tokenizer_file.read(merges), name, settings, model_type)
    if (counts := folder.file("dict.txt")) is not None:
        return _dictionary(tokenizer_file.read(counts), str(counts))
    for name in ("spiece.model", "spm.model", "sentencepiece.bpe.model", "tokenizer.model"):
        if (pieces := folder.file(name)) is not None:
            return unigram_of(checksums.read(pieces), str(pieces), settings, model_type)
    raise UserError(
        f"{folder.path}: has no tokenizer: neither {TOKENIZER} nor vocab.txt, vocab.json with merges.txt, or "
        "spiece.model"
    )


def filled_up(text: str, rows: int, where: str) -> str:
    """The text of a tokenizer.json with a special token `[unused row N]` for each of the table's rows without a token.

    Raises:
        UserError: more than MOST_FILLED rows have no token, or two tokens have one id.
    """
    with tokenizer_file.quiet(), guarded(where, "not a tokenizer.json of the tokenizers library"):
        inner = tokenizers.Tokenizer.from_str(text)
        ids = inner.get_vocab(with_added_tokens=True)
    _require_unique_ids(ids, where)
    size = max(ids.values(), default=-1) + 1
    if rows - size > MOST_FILLED:
        raise UserError(
            f"{where}: has {size:,} tokens, but by the config the model has {rows:,}: this is another model's tokenizer"
        )
    if rows > size:
        inner.add_special_tokens([f"[unused row {number}]" for number in range(size, rows)])
        text = inner.to_str(pretty=True)
    return text


def _require_unique_ids(ids: Mapping[str, int], where: str) -> None:
    """Refuse tokens that share an id: one of them could be neither read nor written.

    Raises:
        UserError: two tokens share an id.
    """
    tokens: dict[int, str] = {}
    for token, number in sorted(ids.items()):
        if (other := tokens.setdefault(number, token)) != token:
            raise UserError(
                f"{where}: the tokens {other!r:.50} and {token!r:.50} have one id, {number}; this is no tokenizer of a "
                "model, get its files again"
            )


def _wordpiece(words: str, where: str, settings: dict[str, Any]) -> str:
    """BERT's vocab.txt, one token a line."""
    tokens = words.splitlines() if "\u2028" not in words and "\x85" not in words else words.split("\n")
    tokens = [token.rstrip("\r") for token in tokens]
    while tokens and not tokens[-1]:
        tokens.pop()
    vocabulary = {token: number for number, token in enumerate(tokens)}
    unknown = _content(settings.get("unk_token"), "[UNK]")
    if unknown not in vocabulary:
        raise UserError(f"{where}: has no token {unknown}, so it is not the vocabulary of a BERT")
    lowercase = bool(settings.get("do_lower_case", True))
    accents = settings.get("strip_accents")
    with guarded(where, "not a vocabulary of WordPiece"):
        inner = tokenizers.Tokenizer(models.WordPiece(vocabulary, unk_token=unknown, max_input_chars_per_word=100))
        inner.normalizer = normalizers.BertNormalizer(
            clean_text=True,
            handle_chinese_chars=bool(settings.get("tokenize_chinese_chars", True)),
            strip_accents=accents if isinstance(accents, bool) else None,
            lowercase=lowercase,
        )
        inner.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        inner.decoder = decoders.WordPiece(prefix="##")
        inner.add_special_tokens([name for name in _specials(settings, _BERT) if name in vocabulary])
        return inner.to_str(pretty=True)


def _dictionary(lines: str, where: str) -> str:
    """The dict.txt of fairseq: a token and its count a line, after four special tokens; texts are split already."""
    tokens = ["<s>", "<pad>", "</s>", "<unk>"]
    for number, line in enumerate(lines.splitlines(), 1):
        token, _, count = line.rstrip().rpartition(" ")
        if not token or not count.isdigit():
            raise UserError(f"{where}, line {number}: a token and its count are wanted, not {line!r:.50}")
        tokens.append(token)
    if len(set(tokens)) != len(tokens):
        raise UserError(f"{where}: a token comes twice")
    with guarded(where, "not a dictionary of fairseq"):
        vocabulary = {token: number for number, token in enumerate(tokens)}
        inner = tokenizers.Tokenizer(models.WordLevel(vocabulary, "<unk>"))
        inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
        inner.add_special_tokens(tokens[:4])
        return inner.to_str(pretty=True)


_BERT = {
    "pad_token": "[PAD]",
    "unk_token": "[UNK]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "mask_token": "[MASK]",
}
_ROBERTA = {"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>", "mask_token": "<mask>"}


def _merges(vocabulary: str, merges: str, where: str, settings: dict[str, Any], model_type: str) -> str:
    """Byte-level BPE of GPT-2 and RoBERTa, or GPT's BPE of characters with `</w>` at the ends of words."""
    try:
        ids = json_value(vocabulary)
    except JsonError as error:
        raise UserError(f"{where}: not valid JSON ({error})") from None
    if not isinstance(ids, dict) or not all(isinstance(number, int) for number in ids.values()):
        raise UserError(f"{where}: ids by tokens are wanted")
    pairs: list[Any] = [
        tuple(line.split(" ")) for line in merges.split("\n") if line.strip() and not line.startswith("#version")
    ]
    if any(len(pair) != 2 for pair in pairs):
        raise UserError(f"{where}: its merges.txt has a line that is no pair of tokens")
    with guarded(where, "not a vocabulary with its merges"):
        if model_type == "openai-gpt":
            bpe = models.BPE(ids, pairs, unk_token="<unk>", end_of_word_suffix="</w>", fuse_unk=False)
            inner = tokenizers.Tokenizer(bpe)
            inner.normalizer = normalizers.BertNormalizer(lowercase=True)
            inner.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
            inner.decoder = decoders.BPEDecoder(suffix="</w>")
            special: dict[str, str] = {"unk_token": "<unk>"}
        else:
            inner = tokenizers.Tokenizer(models.BPE(ids, pairs, fuse_unk=False))
            prefix = bool(settings.get("add_prefix_space", False))
            inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix)
            inner.decoder = decoders.ByteLevel()
            special = {} if model_type == "gpt2" else _ROBERTA
            special = special or {"eos_token": "<|endoftext|>"}
        inner.add_special_tokens(
            [AddedToken(name, lstrip=name == "<mask>") for name in _specials(settings, special) if name in ids]
        )
        return inner.to_str(pretty=True)


def _specials(settings: dict[str, Any], usual: dict[str, str]) -> list[str]:
    """The special tokens without repetition."""
    return list(dict.fromkeys(_content(settings.get(role), name) for role, name in usual.items()))


def _content(token: Any, usual: str) -> str:
    """The text of a token, which tokenizer_config.json has as a string or as an object; else `usual`."""
    token = token.get("content") if isinstance(token, dict) else token
    return token if isinstance(token, str) else usual
