import gzip
import json
import shutil
from collections import Counter

import numpy as np
import pytest
import zstandard

import bakeoff
from bakeoff.corpus.store import Corpus
from bakeoff.errors import UserError
from bakeoff.tokenizer.tokenizer import Tokenizer, TwoVocabularies
from bakeoff.tokenizer.tokenizer_config import TokenizerConfig

WORDS = ["zéro", "one", "two", "three", "four", "fünf", "six", "seven", "eight", "nine"]
DIGITS = "०123456789"
WORD = TokenizerConfig(kind="word", size=64)


@pytest.fixture(scope="module")
def pairs():
    """Numbers, and their digits in words from the last one; some come twice."""
    generator = np.random.default_rng(0)
    rows = [generator.integers(10, size=generator.integers(1, 12)) for _ in range(400)]
    return [(" ".join(DIGITS[i] for i in row), " ".join(WORDS[i] for i in row[::-1])) for row in rows]


@pytest.fixture
def files(pairs, tmp_path):
    for name, side in (("a.de", 0), ("a.en", 1)):
        (tmp_path / name).write_text("".join(pair[side] + "\n" for pair in pairs), encoding="utf-8")
    return tmp_path


def made(folder, source="a.de", target="a.en", out="corpus", **options):
    options = {"tokenizer": WORD, "workers": 0, "validation": 0.1} | options
    return bakeoff.prepare_pairs(folder / source, folder / target, folder / out, **options)


def read(corpus):
    """All pairs as text, those of each part in their order."""
    found = {}
    for name in ("train", "validation"):
        split = getattr(corpus, name)
        texts = [
            corpus.tokenizer.decode(split.tokens[low:high])
            for low, high in zip(split.sentences[:-1], split.sentences[1:], strict=True)
        ]
        assert split.documents.tolist() == split.sentences[::2].tolist()
        found[name] = list(zip(texts[::2], texts[1::2], strict=True))
    return found


@pytest.mark.parametrize("separate", [False, True])
def test_pairs_come_back_and_those_with_the_same_source_stay_together(files, pairs, separate):
    corpus = made(files, separate_vocabularies=separate)
    corpus.verify()
    assert corpus.pairs
    found = read(corpus)
    assert Counter(found["train"] + found["validation"]) == Counter(pairs)
    train, held_out = ({source for source, _ in found[name]} for name in ("train", "validation"))
    assert not train & held_out
    assert 10 < len(found["validation"]) < 90
    summary = corpus.summary()
    assert summary["documents"] == 400
    assert summary["held_out_documents"] == len(found["validation"])
    assert summary["target_tokens"] * 2 == summary["tokens"]


def test_tokens_of_targets_are_counted_where_sources_have_others(tmp_path):
    (tmp_path / "a.de").write_text("".join(f"a{i} b c d\n" for i in range(50)), encoding="utf-8")
    (tmp_path / "a.en").write_text("x y\n" * 50, encoding="utf-8")
    corpus = made(tmp_path, validation=0.2)
    for name, counts in corpus.manifest.splits.items():
        pairs = len(getattr(corpus, name).documents) - 1
        assert (counts.target_tokens, counts.tokens) == (2 * pairs, 6 * pairs)
    known = (len(corpus.train.documents) - 1 + 1) / (2 * (len(corpus.train.documents) - 1) + corpus.manifest.vocabulary)
    assert corpus.validation.unigram_entropy() == pytest.approx(-np.log(known))  # of x and y, alike


def test_two_vocabularies_are_one_behind_the_other(files):
    corpus = made(files, separate_vocabularies=True)
    tokenizer = corpus.tokenizer
    assert isinstance(tokenizer, TwoVocabularies)
    assert tokenizer.size == corpus.manifest.vocabulary == 30  # ten digits, ten words, five special tokens each
    sentences = np.split(np.asarray(corpus.train.tokens), corpus.train.sentences[1:-1])
    assert max(map(max, sentences[::2])) < tokenizer.target_ids.start <= min(map(min, sentences[1::2]))
    again = Tokenizer.from_string(tokenizer.to_string())
    assert again.to_string() == tokenizer.to_string()
    assert tokenizer.decode([*sentences[0], tokenizer.separator, *sentences[1]], skip_special=False).count("[SEP]") == 1
    other = made(files, out="other", tokenizer=corpus.path / "tokenizer.json")
    assert other.fingerprint == corpus.fingerprint


def test_any_number_of_workers_and_any_form_of_file_give_the_same_corpus(files, pairs):
    expected = made(files).fingerprint
    assert made(files, out="workers", workers=2).fingerprint == expected
    (files / "a.de.gz").write_bytes(gzip.compress((files / "a.de").read_bytes()))
    (files / "a.en.txt.zst").write_bytes(zstandard.compress((files / "a.en").read_bytes()))
    assert made(files, "a.de.gz", "a.en.txt.zst", out="compressed").fingerprint == expected
    (files / "a.tsv").write_text("de\ten\n" + "".join(f"{s}\t{t}\n" for s, t in pairs), encoding="utf-8")
    fields = {"source_field": "de", "target_field": "en"}
    assert made(files, "a.tsv", "a.tsv", out="tsv", **fields).fingerprint == expected
    (files / "a.jsonl").write_text("".join(json.dumps({"de": s, "en": t}) + "\n" for s, t in pairs), encoding="utf-8")
    assert made(files, "a.jsonl", "a.en", out="mixed", **fields).fingerprint == expected
    halves = [(files / name).read_text(encoding="utf-8").splitlines(keepends=True) for name in ("a.de", "a.en")]
    for name, lines in zip(("de", "en"), halves, strict=True):
        (files / f"1.{name}").write_text("".join(lines[:150]), encoding="utf-8")
        (files / f"2.{name}").write_text("".join(lines[150:]), encoding="utf-8")
    several = ([files / f"{i}.{name}" for i in (1, 2)] for name in ("de", "en"))
    corpus = bakeoff.prepare_pairs(*several, files / "several", tokenizer=WORD, workers=0, validation=0.1)
    assert corpus.fingerprint == expected


def test_what_is_left_out_is_counted_once_by_its_first_reason(tmp_path):
    sources = "".join(f"a{i} b c d\n\na{i} b c d e f\na{i}\na{i} b\n" for i in range(20))
    (tmp_path / "a.de").write_text(sources, encoding="utf-8")
    (tmp_path / "a.en").write_text("w x y z\nx\nx\nx y z\nx y\n" * 20, encoding="utf-8")
    corpus = made(tmp_path, longest_pair=5, ratio=2, validation=0.5)
    assert corpus.manifest.skips == {
        "pairs above 5 tokens": 20,
        "pairs with an empty side": 20,
        "pairs with one side above 2 times the other": 20,
    }
    assert corpus.summary()["documents"] == 40


def test_bits_per_byte_are_of_the_targets(files, pairs):
    corpus = made(files)
    texts = read(corpus)
    targets = [target for _, target in texts["validation"]]
    words = sum(len(target.split()) for target in targets)
    for name, split in (("train", corpus.train), ("validation", corpus.validation)):
        assert split.bytes == sum(len((source + target).encode()) for source, target in texts[name])
    assert corpus.validation.tokens_per_byte == (words + len(targets)) / len("".join(targets).encode())
    train = Counter(word for _, target in texts["train"] for word in target.split())
    known = {word: (train[word] + 1) / (train.total() + corpus.manifest.vocabulary) for word in WORDS}
    entropy = -sum(np.log(known[word]) for target in targets for word in target.split()) / words
    assert corpus.validation.unigram_entropy() == pytest.approx(entropy)


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        (b"a\n", {}, r"a\.de has 400 lines, but .*bad\.en 1 lines; each must be the translation"),
        (b"a\n\xff\n", {}, r"bad\.en:2: not valid UTF-8"),
        (b"a\n", {"ratio": 0.5}, "ratio: input should be greater than or equal to 1"),
        (b"a\n", {"longest_pair": 0}, "longest_pair: input should be greater than 0"),
        (b"a\n", {"target": "a.de"}, r"a\.de: given as its own translation"),
        (b"a\n", {"target": "none.en"}, r"none\.en: no such file"),
        (b"a\n", {"target": "."}, "a folder; give a file"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(files, content, options, message):
    (files / "bad.en").write_bytes(content)
    before = sorted(files.iterdir())
    with pytest.raises(UserError, match=message):
        made(files, **{"target": "bad.en", **options})
    assert sorted(files.iterdir()) == before


def test_an_interrupted_preparation_leaves_nothing(files):
    def interrupt(phase, done, total):
        if phase == "encoding":
            raise KeyboardInterrupt

    before = sorted(files.iterdir())
    with pytest.raises(KeyboardInterrupt):
        made(files, progress=interrupt)
    assert sorted(files.iterdir()) == before


def test_a_damaged_part_is_named(files):
    corpus = made(files)
    shutil.copy(corpus.path / "validation.words", corpus.path / "train.words")
    with pytest.raises(UserError, match=r"train\.words"):
        Corpus.open(corpus.path).verify()
