"""Official validation and test splits: files that are held out as they are."""

import json
from itertools import pairwise

import numpy as np
import pytest

from bakeoff.corpus.mixture import Mixture
from bakeoff.corpus.store import Corpus
from bakeoff.errors import UserError
from bakeoff.preparation.encoding import pool
from bakeoff.preparation.prepare import merge_shards, prepare, prepare_shard
from bakeoff.preparation.prepare_pairs import prepare_pairs
from bakeoff.tokenizer.tokenizer_config import TokenizerConfig

BYTES = TokenizerConfig(kind="byte_bpe", size=300)
WORDS = TokenizerConfig(kind="whitespace", size=2000)
TRAIN = [f"Text {i} is one to learn from. It goes on, {i % 7} times." for i in range(250)]
VALID = [
    "Held out first.",
    "Short.",
    "Short.",
    "Text 3 is one to learn from. It goes on, 3 times.",
    "Last, with zyzzyva.",
]
TEST = [f"Test {i} of some. With an end." for i in range(30)]


def _write(folder, name, documents):
    file = folder / name
    file.write_text("".join(json.dumps({"text": text}) + "\n" for text in documents))
    return file


@pytest.fixture
def files(tmp_path):
    parts = {"train": TRAIN, "valid": VALID, "test": TEST}
    return {name: _write(tmp_path, f"{name}.jsonl", documents) for name, documents in parts.items()}


def _decoded(corpus, split):
    bounds = np.asarray(split.documents)
    return [corpus.tokenizer.decode(split.tokens[a:b]) for a, b in pairwise(bounds)]


def _same(first, second):
    assert first.fingerprint == second.fingerprint
    assert first.manifest.model_dump(exclude={"options"}) == second.manifest.model_dump(exclude={"options"})


@pytest.mark.parametrize("options", [{}, {"deduplicate": True, "minimum_characters": 10}, {"workers": 2}])
def test_held_out_files_are_whole_and_in_order(files, tmp_path, options):
    corpus = prepare(
        files["train"], tmp_path / "c", tokenizer=BYTES, validation=files["valid"], test=[files["test"]], **options
    )
    assert _decoded(corpus, corpus.train) == TRAIN
    assert _decoded(corpus, corpus.validation) == VALID
    assert _decoded(corpus, corpus.split("test")) == TEST
    assert [source.split for source in corpus.manifest.sources] == [None, "validation", "test"]
    assert corpus.manifest.validation_unit == "documents"
    assert corpus.manifest.originals == len(TRAIN) + len(VALID) + len(TEST)
    assert corpus.summary()["test_tokens"] == len(corpus.split("test").tokens)
    corpus.verify()
    Corpus.open(corpus.path).verify()


def test_few_documents_are_no_runs_of_paragraphs(tmp_path):
    (tmp_path / "a.txt").write_text("\n\n".join(f"Paragraph {i}." for i in range(300)))
    (tmp_path / "b.txt").write_text("Held out.\n\nAll of it.")
    corpus = prepare(tmp_path / "a.txt", tmp_path / "c", tokenizer=BYTES, validation=tmp_path / "b.txt")
    assert len(corpus.train.originals) == len(corpus.validation.originals) == 1
    assert _decoded(corpus, corpus.validation) == ["Held out.\nAll of it."]
    with_share = prepare(tmp_path / "a.txt", tmp_path / "d", tokenizer=BYTES, validation=0.2, test=tmp_path / "b.txt")
    assert with_share.manifest.validation_unit == "runs of paragraphs"
    assert with_share.manifest.originals == 2
    plain = prepare(tmp_path / "a.txt", tmp_path / "e", tokenizer=BYTES, validation=0.2)
    assert with_share.validation.tokens.tobytes() == plain.validation.tokens.tobytes()
    assert with_share.train.tokens.tobytes() == plain.train.tokens.tobytes()


def test_the_tokenizer_does_not_see_held_out_words(files, tmp_path):
    corpus = prepare(files["train"], tmp_path / "c", tokenizer=WORDS, validation=files["valid"], test=files["test"])
    assert corpus.tokenizer.unknown not in corpus.train.tokens
    assert _decoded(corpus, corpus.validation)[-1] == ""  # of words that the text lacks
    bare = prepare(files["train"], tmp_path / "d", tokenizer=WORDS, validation=0.1)
    assert (corpus.path / "tokenizer.json").read_text() == (bare.path / "tokenizer.json").read_text()


@pytest.mark.parametrize("shuffle", [None, 1])
def test_parts_and_merging_give_the_same(files, tmp_path, shuffle):
    options = {"tokenizer": BYTES, "validation": [files["valid"]], "test": [files["test"]], "shuffle_ngrams": shuffle}
    whole = prepare(files["train"], tmp_path / "whole", **options)
    for part in (2, 1, 3):
        prepare_shard(files["train"], tmp_path / "merged", part, 3, **options)
    _same(whole, merge_shards(files["train"], tmp_path / "merged", **options))
    text = _decoded(whole, whole.split("test"))
    assert (text == TEST) is (shuffle is None)
    assert [sorted(one.split()) for one in text] == [sorted(one.split()) for one in TEST]


def test_parts_of_few_documents_where_validation_is_given(files, tmp_path):
    few = _write(tmp_path, "few.jsonl", TRAIN[:7])
    whole = prepare(few, tmp_path / "whole", tokenizer=BYTES, validation=files["valid"])
    for part in (1, 2):
        prepare_shard(few, tmp_path / "merged", part, 2, tokenizer=BYTES, validation=files["valid"])
    _same(whole, merge_shards(few, tmp_path / "merged", tokenizer=BYTES, validation=files["valid"]))


@pytest.mark.parametrize("killed_at", range(3))
def test_the_same_command_goes_on_behind_a_kill(files, tmp_path, monkeypatch, killed_at):
    options = {"tokenizer": BYTES, "validation": files["valid"], "test": files["test"], "workers": 0}
    whole = prepare(files["train"], tmp_path / "whole", **options)
    encode, calls = pool.encode_jobs, []

    def dies(*arguments):
        calls.append(1)
        for encoded in encode(*arguments):
            yield encoded
            if len(calls) > killed_at:
                raise pool.WorkerDied("killed")

    for module in ("shards", "given_splits"):
        monkeypatch.setattr(f"bakeoff.preparation.{module}.encode_jobs", dies)
    with pytest.raises(pool.WorkerDied):
        prepare(files["train"], tmp_path / "again", **options)
    assert len(calls) == killed_at + 1
    monkeypatch.undo()
    notes = []
    _same(whole, prepare(files["train"], tmp_path / "again", **options, progress=lambda *seen: notes.append(seen[0])))
    assert ("reading" in notes, "encoding" in notes) == (False, killed_at == 0)


def test_another_role_of_a_file_starts_anew(files, tmp_path, monkeypatch, capsys):
    with monkeypatch.context() as patched:
        patched.setattr(
            "bakeoff.preparation.shards.encode_jobs", lambda *_: (_ for _ in ()).throw(pool.WorkerDied("x"))
        )
        with pytest.raises(pool.WorkerDied):
            prepare([files["train"], files["valid"]], tmp_path / "c", tokenizer=BYTES, validation=files["test"])
    prepare(files["train"], tmp_path / "c", tokenizer=BYTES, validation=[files["valid"], files["test"]], progress=True)
    assert "starting anew" in capsys.readouterr().err


def test_what_is_refused(files, tmp_path):
    (tmp_path / "empty.jsonl").write_text("")
    (tmp_path / "blank.txt").write_text(" \n\n")
    (tmp_path / "folder").mkdir()
    train, valid = files["train"], files["valid"]
    for message, options in (
        ("missing.txt: no such file", {"validation": tmp_path / "missing.txt"}),
        ("folder: a folder without text", {"test": tmp_path / "folder"}),
        ("empty.jsonl: there is no text here", {"validation": [valid, tmp_path / "empty.jsonl"]}),
        ("blank.txt: there is no text here", {"test": tmp_path / "blank.txt"}),
        (
            "train.jsonl: given as text and as --validation",
            {"validation": [str(tmp_path / "folder" / ".." / "train.jsonl")]},
        ),
        ("valid.jsonl: given as --validation and as --test", {"validation": valid, "test": tmp_path / "*d.jsonl"}),
        ("no text was given", {"test": []}),
    ):
        with pytest.raises(UserError, match=message):
            prepare(train, tmp_path / "c", tokenizer=BYTES, **options)
        assert not (tmp_path / "c").exists()
        assert not (tmp_path / ".c.unfinished").exists()
    plain = prepare(train, tmp_path / "c", tokenizer=BYTES)
    assert set(plain.manifest.splits) == {"train", "validation"}
    assert plain.summary()["test_tokens"] is None
    for corpus in (plain, Mixture([plain], [1], "mixed")):
        with pytest.raises(UserError, match="c: has no split 'test'; prepare the text again with --test FILES"):
            corpus.split("test")


def test_pairs_with_official_parts(tmp_path):
    texts = {"train": 40, "valid": 5, "test": 4}
    for name, count in texts.items():
        lines = [f"{name} {i} " + "long " * (30 * (i == 2)) for i in range(count)]
        (tmp_path / f"{name}.de").write_text("".join(f"{line}\n" for line in lines))
        (tmp_path / f"{name}.en").write_text("".join(f"the {line}\n" for line in lines))

    def made(out, **options):
        return prepare_pairs(
            tmp_path / "train.de", tmp_path / "train.en", tmp_path / out, tokenizer=BYTES, longest_pair=20, **options
        )

    both = {f"{part}_{side}": tmp_path / f"{name}.{end}" for part, name in (("validation", "valid"), ("test", "test"))
            for side, end in (("source", "de"), ("target", "en"))}  # fmt: skip
    corpus = made("c", **both)
    assert [split.counts.documents for split in (corpus.train, corpus.validation, corpus.split("test"))] == [39, 5, 4]
    sides = [
        corpus.tokenizer.decode(part)
        for part in np.split(corpus.split("test").tokens, corpus.split("test").sentences[1:-1])
    ]
    assert [" ".join(text.split()) for text in sides[:2]] == ["test 0", "the test 0"]
    assert sides[5].count("long") == 30
    _same(corpus, made("d", **both, workers=2))
    assert made("e", test_source=both["test_source"], test_target=both["test_target"]).validation.counts.documents == 1
    with pytest.raises(UserError, match="1 file of sources"):
        made("f", test_source=both["test_source"])
    with pytest.raises(UserError, match=r"train.de: given as pairs and as --test"):
        made("f", test_source=tmp_path / "train.de", test_target=tmp_path / "train.en")
    (tmp_path / "nothing").write_text("\n" * 4)
    with pytest.raises(UserError, match="nothing: there is no pair here to hold out"):
        made("f", validation_source=tmp_path / "nothing", validation_target=tmp_path / "test.en")
