import json
import random
import re
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bakeoff.corpus.store import Corpus
from bakeoff.errors import UserError
from bakeoff.preparation.encoding import text_encoding
from bakeoff.preparation.planning import sampling
from bakeoff.preparation.prepare import prepare
from bakeoff.text.sentences import RULE
from bakeoff.tokenizer.tokenizer_config import TokenizerConfig

BYTES = TokenizerConfig(kind="byte_bpe", size=300)


def _words(generator: random.Random, count: int) -> str:
    words = ["房间", "很", "the", "cat", "sat", "unbelievable", "🎉", "שלום", "3.14", "café", "on", "mat"]
    return " ".join(generator.choices(words, k=count)) + "."


def _documents(count: int, seed: int = 0) -> list[str]:
    generator = random.Random(seed)
    return [
        "\n".join(f"Number {i}. {_words(generator, generator.randint(1, 12))}" for _ in range(generator.randint(1, 4)))
        for i in range(count)
    ]


def _jsonl(path: Path, documents: list[str]) -> Path:
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in documents))
    return path


def _decoded(split, tokenizer) -> list[str]:
    return [tokenizer.decode(split.tokens[a:b]) for a, b in zip(split.documents[:-1], split.documents[1:], strict=True)]


def _contents(corpus: Corpus) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(corpus.path.iterdir())}


def test_documents_come_back(tmp_path):
    documents = _documents(300)
    corpus = prepare(_jsonl(tmp_path / "a.jsonl", documents), tmp_path / "corpus", tokenizer=BYTES, validation=0.1)
    train = _decoded(corpus.train, corpus.tokenizer)
    validation = _decoded(corpus.validation, corpus.tokenizer)
    assert sorted(train + validation) == sorted(documents)
    held_out = set(validation)
    assert [text for text in documents if text in held_out] == validation
    assert 10 <= len(validation) <= 60
    summary = corpus.summary()
    assert summary["documents"] == 300
    assert summary["sentence_rule"] == corpus.manifest.sentence_rule == RULE
    assert summary["held_out_documents"] == len(validation)
    assert summary["tokens"] == len(corpus.train.tokens) + len(corpus.validation.tokens)
    assert corpus.train.bytes + corpus.validation.bytes == sum(len(text.encode()) for text in documents)
    assert corpus.manifest.validation_unit == "documents"
    assert corpus.manifest.tokenizer_sample["bytes"] <= sum(len(text.encode()) for text in documents)
    corpus.verify()
    starts = corpus.train.starts_word(np.arange(len(corpus.train.tokens)))
    assert starts[corpus.train.sentences[:-1]].all()
    # What the frequencies of the training text predict of the held-out text: never less than its own entropy.
    size = corpus.tokenizer.size
    train, held_out = (np.bincount(split.tokens, minlength=size) for split in (corpus.train, corpus.validation))
    known = (train + 1) / (train.sum() + size)
    assert corpus.validation.unigram_entropy() == pytest.approx(-(held_out * np.log(known)).sum() / held_out.sum())
    share = held_out[held_out > 0] / held_out.sum()
    assert corpus.validation.unigram_entropy() > -(share * np.log(share)).sum()


def test_copies_of_a_document_stay_together(tmp_path):
    documents = _documents(150) * 3
    corpus = prepare(_jsonl(tmp_path / "a.jsonl", documents), tmp_path / "corpus", tokenizer=BYTES, validation=0.2)
    train, validation = (set(_decoded(split, corpus.tokenizer)) for split in (corpus.train, corpus.validation))
    assert not train & validation


def test_one_file_has_a_held_out_part_with_nothing_across_the_cut(tmp_path):
    paragraphs = [f"Paragraph {i}. Its text." for i in range(500)]
    (tmp_path / "a.txt").write_text("\n\n".join(paragraphs))
    corpus = prepare(tmp_path / "a.txt", tmp_path / "corpus", tokenizer=BYTES, validation=0.05)
    assert corpus.manifest.validation_unit == "runs of paragraphs"
    train, validation = (_decoded(split, corpus.tokenizer) for split in (corpus.train, corpus.validation))
    stretches = sorted(train + validation, key=lambda text: int(text.split()[1].rstrip(".")))
    assert "\n".join(stretches).split("\n") == paragraphs
    assert len(validation) > 1
    assert 10 <= sum(text.count("\n") + 1 for text in validation) <= 60


@given(st.lists(st.text(alphabet="ab .房\n\u0301é🎉", max_size=30), min_size=1, max_size=12), st.integers(0, 3))
@settings(max_examples=15, deadline=None)
def test_any_small_text(tmp_path_factory, documents, seed):
    folder = tmp_path_factory.mktemp("small")
    file = _jsonl(folder / "a.jsonl", documents)
    try:
        corpus = prepare(file, folder / "corpus", tokenizer=BYTES, seed=seed, validation=0.3, workers=0)
    except UserError:
        assert [path.name for path in folder.iterdir()] == ["a.jsonl"]
        return
    assert len(corpus.train.tokens) > 0
    assert len(corpus.validation.tokens) > 0
    for split in (corpus.train, corpus.validation):
        assert split.documents[0] == 0
        assert split.documents[-1] == split.sentences[-1] == len(split.tokens)
        assert np.isin(split.documents, split.sentences).all()
        assert (np.diff(split.sentences) > 0).all()


@pytest.mark.parametrize("kind", ["wordpiece", pytest.param("byte_bpe", marks=pytest.mark.slow)])
def test_any_number_of_workers_gives_the_same_bytes(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(text_encoding, "_JOB", 1 << 16)
    file = _jsonl(tmp_path / "a.jsonl", _documents(2_000))
    config = TokenizerConfig(kind=kind, size=300)
    reference = _contents(prepare(file, tmp_path / "0", tokenizer=config, workers=0, tokenizer_sample=50_000))
    for workers in (1, 3):
        corpus = prepare(file, tmp_path / str(workers), tokenizer=config, workers=workers, tokenizer_sample=50_000)
        assert _contents(corpus) == reference


def test_the_seed_chooses(tmp_path):
    file = _jsonl(tmp_path / "a.jsonl", _documents(300))
    first = prepare(file, tmp_path / "0", tokenizer=BYTES, validation=0.1)
    other = prepare(file, tmp_path / "1", tokenizer=first.path / "tokenizer.json", validation=0.1, seed=1)
    assert first.tokenizer.to_string() == other.tokenizer.to_string()
    assert _decoded(first.validation, first.tokenizer) != _decoded(other.validation, other.tokenizer)
    assert other.manifest.tokenizer_sample == {}


def test_sample_is_bounded_and_spread(tmp_path):
    (tmp_path / "a.txt").write_text("first " * 50 + "\n\n" + "middle text\n\n" * 2000 + "last " * 50)
    corpus = prepare(tmp_path / "a.txt", tmp_path / "corpus", tokenizer=BYTES, tokenizer_sample=5_000)
    assert 3_000 < corpus.manifest.tokenizer_sample["bytes"] <= 5_000


def test_skips_are_reported(tmp_path):
    (tmp_path / "text").mkdir()
    _jsonl(tmp_path / "text" / "a.jsonl", [*_documents(30), "", " "])
    (tmp_path / "text" / "empty.txt").touch()
    (tmp_path / "text" / "b.pdf").touch()
    corpus = prepare(tmp_path / "text", tmp_path / "corpus", tokenizer=BYTES)
    assert corpus.summary()["skips"] == {"empty documents": 2, "empty files": 1, "files of another kind": 1}


def test_documents_without_tokens_are_skipped(tmp_path):
    documents = _documents(250)
    documents[10] = documents[20] = "\x01\x02"
    file = _jsonl(tmp_path / "a.jsonl", documents)
    corpus = prepare(file, tmp_path / "corpus", tokenizer=TokenizerConfig(kind="wordpiece", size=200))
    assert corpus.summary()["documents"] == 248
    assert corpus.summary()["skips"] == {"documents without tokens": 2}


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("one word", {}, "too small"),
        (" \n", {}, "no text"),
        ("some\n\ntext", {"validation": 0}, "validation: 0 is not a share"),
        ("some\n\ntext", {"tokenizer": "absent.json"}, "absent.json: no such tokenizer"),
        ("some\n\ntext", {"errors": "ignore"}, "prepare: errors"),
        ("some\n\ntext", {"tokenizer_sample": 0}, "tokenizer_sample"),
    ],
)
def test_bad_input_leaves_nothing(tmp_path, content, options, message):
    (tmp_path / "a.txt").write_text(content)
    with pytest.raises(UserError, match=message):
        prepare([tmp_path / "a.txt"], tmp_path / "corpus", **{"tokenizer": BYTES, **options})
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_an_existing_corpus_is_kept(tmp_path):
    file = _jsonl(tmp_path / "a.jsonl", _documents(20))
    corpus = prepare(file, tmp_path / "corpus", tokenizer=BYTES)
    before = _contents(corpus)
    with pytest.raises(UserError, match="--overwrite"):
        prepare(file, tmp_path / "corpus", tokenizer=BYTES)
    file.write_text("{")
    with pytest.raises(UserError, match="broken JSON"):
        prepare(file, tmp_path / "corpus", tokenizer=BYTES, overwrite=True)
    assert _contents(Corpus.open(tmp_path / "corpus")) == before


def test_what_is_not_of_a_corpus_is_never_replaced(tmp_path):
    file = _jsonl(tmp_path / "a.jsonl", _documents(20))
    folder = tmp_path / "texts"
    folder.mkdir()
    for content in ("[]", '{"texts": []}', '{"sha256": {}}', "{"):
        (folder / "corpus.json").write_text(content)
        (folder / "mine.txt").write_text("mine")
        with pytest.raises(UserError, match="not of a corpus, and would be lost; move it, or choose another --out"):
            prepare(file, folder, tokenizer=BYTES, overwrite=True)
        assert {path.name for path in folder.iterdir()} == {"corpus.json", "mine.txt"}
    corpus = prepare(file, tmp_path / "corpus", tokenizer=BYTES)
    (corpus.path / "notes.txt").write_text("mine")
    with pytest.raises(UserError, match=r"notes\.txt: not of a corpus"):
        prepare(file, tmp_path / "corpus", tokenizer=BYTES, overwrite=True)
    (corpus.path / "notes.txt").unlink()
    (corpus.path / "train.tokens").write_text("damaged")
    (corpus.path / ".train.words.partial").touch()
    prepare(file, tmp_path / "corpus", tokenizer=BYTES, overwrite=True).verify()
    assert not any(corpus.path.glob(".*"))


def test_progress(tmp_path, capsys):
    file = _jsonl(tmp_path / "a.jsonl", _documents(20))
    calls: list[tuple[str, int, int]] = []
    prepare(file, tmp_path / "0", tokenizer=BYTES, progress=lambda *call: calls.append(call))
    size = file.stat().st_size
    assert ("reading", size, size) in calls
    assert calls[-1] == ("encoding", size, size)
    prepare(file, tmp_path / "1", tokenizer=BYTES, progress=True)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split()[0] for line in lines] == ["reading", "training", "encoding"]


MEASURE = """
import resource, sys
from bakeoff.preparation.prepare import prepare
prepare(sys.argv[1], sys.argv[2], tokenizer_sample=2_000_000)
# Its own ru_maxrss would count what the test's process held before this program took its place.
own = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
print((own + resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss) / 1000)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_is_bounded_for_a_line_of_50_megabytes(tmp_path):
    generator = random.Random(0)
    line = _words(generator, 100_000) + " "
    with (tmp_path / "a.txt").open("w") as stream:
        for _ in range(50_000_000 // len(line.encode())):
            stream.write(line)
    command = [sys.executable, "-c", MEASURE, str(tmp_path / "a.txt"), str(tmp_path / "corpus")]
    megabytes = float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert megabytes < 500


@pytest.mark.parametrize("seed", range(5))
def test_the_share_that_is_held_out_is_the_one_asked_for(tmp_path, seed):
    """Also of some hundred documents of very different lengths; at least two of them, for pairs of two documents."""
    generator = np.random.default_rng(seed)
    sizes = np.exp(generator.normal(4, 1, 300)).astype(int) + 1  # 2 to some 1,000 words
    documents = [f"{number} " + "word " * size for number, size in enumerate(sizes)]
    file = _jsonl(tmp_path / "a.jsonl", documents)
    for share in (0.01, 0.05):
        corpus = prepare(file, tmp_path / f"corpus{share}", tokenizer=BYTES, validation=share, seed=seed)
        held_out = corpus.validation.bytes / (corpus.train.bytes + corpus.validation.bytes)
        assert held_out == pytest.approx(share, rel=0.35)
        assert corpus.manifest.validation_unit == "documents"
        assert len(corpus.validation.documents) - 1 >= 2
    # Less than two documents hold.
    corpus = prepare(file, tmp_path / "two", tokenizer=BYTES, validation=0.0001, seed=seed)
    assert len(corpus.validation.documents) - 1 == 2


NOVELS = {
    "novels": (8, 150, 6),  # documents, paragraphs of each, sentences of each of these
    "many novels": (205, 30, 6),
    "novels of one paragraph": (8, 1, 3_000),
    "one long line": (1, 1, 6_000),
}
QUICK = {
    "novels": [0.01],
    "many novels": [0.002],
    "novels of one paragraph": [0.5],
    "one long line": [0.01, 0.999],
}
"""Shares of each shape that are cut whenever tests are run; the other ones are crossings."""


@pytest.mark.parametrize(
    ("shape", "share"),
    [
        pytest.param(shape, share, marks=[pytest.mark.slow] * (share not in QUICK[shape]))
        for shape in NOVELS
        for share in (0.01, 0.002, 0.5, 0.999)
    ],
)
def test_long_documents_and_paragraphs_are_cut_where_whole_ones_cannot_give_the_share(shape, share, tmp_path):
    """Each sentence is in one part, whole and once, in its order; and no part is far from what was asked for."""
    documents, paragraphs, sentences = NOVELS[shape]
    generator, number, files = np.random.default_rng(3), 0, []
    for document in range(documents):
        text = []
        for _ in range(max(1, round(paragraphs * generator.uniform(0.3, 1.7)))):
            row = []
            for _ in range(max(1, round(sentences * generator.uniform(0.3, 1.7)))):
                row.append(f"Sentence {number} " + "of a story " * int(generator.integers(1, 8)) + "ends.")
                number += 1
            text.append(" ".join(row))
        files.append(tmp_path / f"{document:03}.txt")
        files[-1].write_text("\n\n".join(text))
    options = {"tokenizer": BYTES, "tokenizer_sample": 50_000, "workers": 0}
    corpus = prepare(files, tmp_path / "corpus", validation=share, **options)
    characters = corpus.train.bytes + corpus.validation.bytes
    for split, wanted in ((corpus.train, (1 - share) * characters), (corpus.validation, share * characters)):
        assert split.bytes > 0
        assert wanted / 1.6 < split.bytes < wanted * 1.6 or abs(split.bytes - wanted) < 1_000
    assert corpus.manifest.originals == documents
    if corpus.manifest.validation_unit != "runs of sentences":
        return
    found = []
    for split in (corpus.train, corpus.validation):
        texts = _decoded(split, corpus.tokenizer)
        assert all(text.startswith("Sentence ") and text.endswith("ends.") for text in texts)
        numbers = [int(each) for text in texts for each in re.findall(r"Sentence (\d+) ", text)]
        assert numbers == sorted(numbers)
        found += numbers
        assert len(split.originals) == len(texts)  # stretches of one document share its number
        assert len(np.unique(split.originals)) <= documents
    assert sorted(found) == list(range(number))
    assert len(np.unique(corpus.validation.originals)) >= min(documents, 2)


def test_documents_and_paragraphs_that_give_the_share_are_not_cut(tmp_path):
    """So that corpora from before there were runs of sentences have the same held-out text."""
    (tmp_path / "a.txt").write_text("\n\n".join(f"Paragraph {i}. Its text." for i in range(500)))
    _jsonl(tmp_path / "b.jsonl", [f"{i} " + "word " * (i % 50) for i in range(300)])
    for name, unit, expected in (
        ("a.txt", "runs of paragraphs", "b34bc33bee219c90"),
        ("b.jsonl", "documents", "1d5f92c0e2e927cf"),
    ):
        corpus = prepare(tmp_path / name, tmp_path / f"{name}-corpus", tokenizer=BYTES, validation=0.05, workers=0)
        assert corpus.manifest.validation_unit == unit
        text = "\0".join(_decoded(corpus.validation, corpus.tokenizer))
        assert sha256(text.encode()).hexdigest()[:16] == expected


def test_a_share_that_leaves_nothing_to_train_on_is_told_as_what_it_is(tmp_path):
    (tmp_path / "a.txt").write_text("One sentence. Another one.")
    with pytest.raises(UserError, match=r"--validation 99\.9%: all of the text is held out.*; give a smaller share"):
        prepare(tmp_path / "a.txt", tmp_path / "c", tokenizer=BYTES, validation=0.999)
    assert not (tmp_path / "c").exists()


def test_of_very_many_documents_each_is_held_out_by_itself(tmp_path, monkeypatch):
    monkeypatch.setattr(sampling, "SURVEYED_DOCUMENTS", 300)
    file = _jsonl(tmp_path / "a.jsonl", [f"Document {number} of many." for number in range(3000)])
    corpus = prepare(file, tmp_path / "corpus", tokenizer=BYTES, validation=0.1)
    assert 300 - 5 * 16.4 < len(corpus.validation.documents) - 1 < 300 + 5 * 16.4  # binomial
    corpus = prepare(file, tmp_path / "two", tokenizer=BYTES, validation=1e-9)
    assert len(corpus.validation.documents) - 1 >= 2


@pytest.mark.parametrize("kind", ["character", "whitespace", "byte_bpe"])
def test_nothing_is_unknown_where_the_vocabulary_holds_all_of_the_text(kind, tmp_path):
    """Breaks between paragraphs are characters, and sentences that end without a space cut a word."""
    paragraphs = [
        "First line here. And more.",
        "Second one.",
        "我喜欢看书。你呢？他昨天去了北京！",
        "वह घर गया।दिल्ली दूर है।",
    ]
    text = "\n\n".join(paragraphs) + "\n\n\n\n"
    (tmp_path / "text.txt").write_text(text * 12, encoding="utf-8")
    settings = TokenizerConfig(kind=kind, size=600, lowercase=False)
    corpus = prepare([tmp_path / "text.txt"], tmp_path / kind, tokenizer=settings, progress=False)
    assert not (corpus.train.tokens == corpus.tokenizer.unknown).any()
    words = corpus.tokenizer.decode(corpus.train.tokens[:].astype(np.int64).tolist()).split()
    assert set("".join(words)) == set("".join(text.split()))
    has_breaks = (
        kind != "whitespace" and corpus.tokenizer.id_of("\n" if kind == "character" else "Ċ") in corpus.train.tokens
    )
    assert has_breaks == (kind != "whitespace")
