"""Unknown tokens and hidden characters of a corpus: counted once, and never part of bits per byte."""

import json
import random

import pytest

from bakeoff.corpus.mixture import open_corpus
from bakeoff.corpus.store import Corpus
from bakeoff.preparation.prepare import merge_shards, prepare, prepare_shard
from bakeoff.preparation.prepare_pairs import prepare_pairs
from bakeoff.tokenizer.hidden import MOST_HIDDEN
from bakeoff.tokenizer.tokenizer import Tokenizer
from bakeoff.tokenizer.tokenizer_config import TokenizerConfig

ENGLISH = "the old city lies behind the hill and the river runs below it"


@pytest.fixture(scope="module")
def english(tmp_path_factory):
    file = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    Tokenizer.train(TokenizerConfig(kind="wordpiece", size=200), [ENGLISH] * 3).save(file)
    return file


def text(documents: int, foreign: float) -> list[str]:
    draw = random.Random(documents)
    words = ENGLISH.split()
    return [
        " ".join("Жизнь" if draw.random() < foreign else draw.choice(words) for _ in range(20)) + "."
        for _ in range(documents)
    ]


def test_counts_are_those_of_the_text_however_it_was_made(tmp_path, english):
    documents = text(300, 0.2)
    (tmp_path / "a.txt").write_text("\n".join(documents))
    options = {"tokenizer": english, "document_per_line": True, "validation": 0.1}
    corpus = prepare(tmp_path / "a.txt", tmp_path / "one", workers=0, **options)
    splits = [counts.hidden for counts in corpus.manifest.splits.values()]
    words = sum(document.count("Жизнь") for document in documents)
    assert sum(split.hidden for split in splits) == 5 * words + len(documents)  # the full stop is unknown, too
    assert sum(split.hidden_bytes for split in splits) == 10 * words + len(documents)
    assert sum(split.characters for split in splits) == sum(len(each.replace(" ", "")) for each in documents)
    assert sum(split.unknown for split in splits) == words + len(documents)
    for shard in (1, 2):
        prepare_shard(tmp_path / "a.txt", tmp_path / "two", shard, 2, workers=0, **options)
    merged = merge_shards(tmp_path / "a.txt", tmp_path / "two", workers=0, **options)
    assert merged.manifest.splits == corpus.manifest.splits


def test_bytes_that_are_hidden_are_no_part_of_bits_per_byte(tmp_path, english):
    known = ENGLISH.replace(" it", " the")
    (tmp_path / "a.txt").write_text("\n".join([known] * 400 + ["Ж the"]))
    corpus = prepare(
        tmp_path / "a.txt", tmp_path / "c", tokenizer=english, document_per_line=True, validation=0.2, workers=0
    )
    split = corpus.train if corpus.train.hidden.hidden else corpus.validation
    assert split.hidden.hidden_bytes == 2
    assert split.tokens_per_byte == pytest.approx(
        (len(split.tokens) + len(split.documents) - 1) / (split.counts.bytes - 2)
    )
    assert split.no_bits_per_byte is None
    assert split.hidden_share < MOST_HIDDEN


def test_of_a_text_that_is_hidden_in_part_bits_per_byte_are_no_number(tmp_path, english):
    for name, share in (("much", 0.5), ("nothing", 0.0)):
        (tmp_path / f"{name}.txt").write_text("\n".join(text(100, share)).replace(".", ""))
        prepare(
            tmp_path / f"{name}.txt",
            tmp_path / name,
            tokenizer=english,
            document_per_line=True,
            validation=0.2,
            workers=0,
        )
    much = Corpus.open(tmp_path / "much").validation
    assert "of the characters are hidden by unknown tokens, more than 1.0 %" in much.no_bits_per_byte
    assert Corpus.open(tmp_path / "nothing").validation.no_bits_per_byte is None
    mixed = open_corpus(f"{tmp_path / 'much'}:0.5,{tmp_path / 'nothing'}:0.5").validation
    assert mixed.no_bits_per_byte is not None
    little = open_corpus(f"{tmp_path / 'much'}:0.001,{tmp_path / 'nothing'}:0.999").validation
    assert little.no_bits_per_byte is None


def test_a_corpus_from_before_the_counts_has_them_if_nothing_is_unknown(tmp_path, english):
    for name, share in (("much", 0.5), ("nothing", 0.0)):
        (tmp_path / f"{name}.txt").write_text("\n".join(text(100, share)).replace(".", ""))
        path = tmp_path / name
        prepare(tmp_path / f"{name}.txt", path, tokenizer=english, document_per_line=True, validation=0.2, workers=0)
        manifest = json.loads((path / "corpus.json").read_text())
        for counts in manifest["splits"].values():
            del counts["hidden"], counts["target_hidden"]
        (path / "corpus.json").write_text(json.dumps(manifest))
        (path / "bakeoff.sha256").unlink()
    assert Corpus.open(tmp_path / "nothing").validation.no_bits_per_byte is None
    assert "prepare it again" in Corpus.open(tmp_path / "much").validation.no_bits_per_byte
    assert Corpus.open(tmp_path / "much").summary()["hidden"] is None


def test_pairs_are_counted_as_they_are_kept(tmp_path, english):
    (tmp_path / "s").write_text("\n".join([f"the city Ж {' hill' * count}" for count in range(50)] + ["the Ж " * 200]))
    (tmp_path / "t").write_text("\n".join(["the ЖЖ hill"] * 50 + ["Ж Ж"]))
    corpus = prepare_pairs(tmp_path / "s", tmp_path / "t", tmp_path / "c", tokenizer=english, validation=0.2, workers=0)
    assert corpus.manifest.skips == {"pairs above 250 tokens": 1}
    splits = corpus.manifest.splits.values()
    assert sum(split.hidden.hidden for split in splits) == 50 * 3
    assert sum(split.target_hidden.hidden_bytes for split in splits) == 50 * 4
    assert all(split.target_hidden.unknown == split.documents for split in splits)
    assert corpus.train.hidden == corpus.manifest.splits["train"].target_hidden


def test_a_long_word_that_no_sample_held_is_kept(tmp_path):
    (tmp_path / "long.txt").write_text("\n".join([*(f"{ENGLISH} {number}" for number in range(300)), "river" * 40]))
    options = {"document_per_line": True, "validation": 0.1, "workers": 0, "tokenizer_sample": 4000}
    corpus = prepare(tmp_path / "long.txt", tmp_path / "corpus", tokenizer=TokenizerConfig(size=200), **options)
    assert sum(counts.hidden.hidden for counts in corpus.manifest.splits.values()) == 0
    assert corpus.tokenizer.hidden(["river" * 400]).hidden == 0
