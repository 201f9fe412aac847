import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bakeoff.corpus.store import MANIFEST, Corpus
from bakeoff.errors import UserError
from bakeoff.preparation.encoding.split_writer import id_type
from bakeoff.preparation.encoding.writer import CorpusWriter
from bakeoff.tokenizer.tokenizer import Tokenizer
from bakeoff.tokenizer.tokenizer_config import TokenizerConfig

PROVENANCE = {
    "sources": [],
    "options": {},
    "sentence_rule": "test",
    "tokenizer_sample": {},
    "originals": 3,
    "validation_unit": "documents",
    "skips": {},
    "versions": {},
}


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.train(TokenizerConfig(kind="character", size=40), ["the quick brown fox"])


def _arrays(*values):
    return [
        np.array(value, dtype=kind) for value, kind in zip(values, ("uint32", "bool", "int64", "int64"), strict=True)
    ]


def _fill(writer: CorpusWriter) -> None:
    for name in ("train", "validation"):
        writer.splits[name].append(*_arrays([5, 6, 7], [1, 0, 1], [2, 1], [0]), 9, 2)
        writer.splits[name].append(*_arrays([8], [1], [1], []), 3, 1)
        writer.splits[name].append(*_arrays([], [], [], [0]), 0, 0)
        writer.splits[name].append(*_arrays([5, 5], [0, 1], [1, 1], [1]), 4, 1)


@pytest.fixture
def corpus(tmp_path, tokenizer) -> Corpus:
    with CorpusWriter(tmp_path / "corpus", tokenizer) as writer:
        _fill(writer)
        return writer.finish(PROVENANCE)


def test_stretches_of_one_document_share_its_number(tmp_path, tokenizer):
    def flags(*values):
        return np.array(values, dtype=bool)

    with CorpusWriter(tmp_path / "corpus", tokenizer) as writer:
        _fill(writer)
        train = writer.splits["train"]  # documents 0 to 2 are there
        train.append(*_arrays([5, 6], [1, 1], [1, 1], [0, 1]), 2, 2, flags(True, False))
        train.append(*_arrays([], [], [], [0]), 0, 0, flags(False))  # a new document without any text,
        train.append(*_arrays([5], [1], [1], [0]), 1, 1, flags(True))  # whose next stretch is its first
        train.append(*_arrays([7], [1], [1], [0, 1]), 1, 1, flags(True, True))
        train.append(*_arrays([8], [1], [1], []), 1, 1, flags())
        train.append(*_arrays([], [], [], [0]), 0, 0, flags(False))  # a new document without any text,
        train.append(*_arrays([], [], [], [0]), 0, 0, flags(True))  # whose next stretch has none either,
        train.append(*_arrays([6], [1], [1], [0, 1]), 1, 1, flags(True, True))  # then one, and one that is still open
        train.append(*_arrays([7], [1], [1], [0]), 1, 1, flags(False))  # when the next document opens
        corpus = writer.finish(PROVENANCE)
    assert corpus.train.documents.tolist() == [0, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]
    assert corpus.train.originals.tolist() == [0, 1, 2, 2, 3, 4, 4, 4, 5, 6]


def test_a_corpus_without_the_options_of_later_versions_opens(corpus):
    assert Corpus.open(corpus.path).manifest.options == {}
    assert Corpus.open(corpus.path).summary()["shuffled_ngrams"] is None


def test_arrays(corpus, tokenizer):
    for split in (corpus.train, corpus.validation):
        assert split.tokens.tolist() == [5, 6, 7, 8, 5, 5]
        assert split.tokens.dtype == np.uint16
        assert split.sentences.tolist() == [0, 2, 3, 4, 5, 6]
        assert split.documents.tolist() == [0, 4, 5, 6]
        assert split.originals.tolist() == [0, 1, 2]
        assert split.starts_word(np.array([[0, 1, 2], [3, 4, 5]])).tolist() == [
            [True, False, True],
            [True, False, True],
        ]
        assert split.bytes == 16
        frequencies = np.bincount([5, 6, 7, 8, 5, 5], minlength=tokenizer.size)
        known = (frequencies + 1) / (6 + tokenizer.size)
        assert split.unigram_entropy() == pytest.approx(-(frequencies * np.log(known)).sum() / 6)
    assert corpus.tokenizer.to_string() == tokenizer.to_string()
    corpus.verify()


@given(
    st.lists(
        st.tuples(st.lists(st.lists(st.booleans(), min_size=1, max_size=9), max_size=4), st.booleans()), max_size=8
    )
)
@settings(max_examples=40, deadline=None)
def test_any_appends(tmp_path_factory, tokenizer, batches):
    sentences = [sentence for batch, _ in batches for sentence in batch]
    with CorpusWriter(tmp_path_factory.mktemp("any") / "corpus", tokenizer) as writer:
        for split in writer.splits.values():
            split.append(*_arrays([5], [1], [1], [0]), 1, 1)
            for batch, opens in batches:
                flags = [flag for sentence in batch for flag in sentence]
                split.append(
                    *_arrays([6] * len(flags), flags, list(map(len, batch)), [0] * opens), len(flags), sum(flags)
                )
        corpus = writer.finish(PROVENANCE)
    expected = [True, *(flag for sentence in sentences for flag in sentence)]
    assert corpus.train.starts_word(np.arange(len(expected))).tolist() == expected
    assert corpus.train.sentences.tolist() == np.cumsum([0, 1, *map(len, sentences)]).tolist()
    assert np.isin(corpus.train.documents, corpus.train.sentences).all()
    assert (np.diff(corpus.train.documents) > 0).all()


@pytest.mark.parametrize(("vocabulary", "bits"), [(256, 16), (40_000, 16), (65_536, 16), (65_537, 32)])
def test_tokens_take_no_more_bits_than_their_vocabulary_needs(vocabulary, bits):
    assert np.dtype(id_type(vocabulary)).itemsize == bits // 8
    assert np.iinfo(id_type(vocabulary)).max >= vocabulary - 1


def test_large_vocabularies_take_32_bits(tmp_path):
    tokenizer = Tokenizer.train(TokenizerConfig(kind="word", size=70_000), [f"w{i}" for i in range(66_000)])
    with CorpusWriter(tmp_path / "corpus", tokenizer) as writer:
        for split in writer.splits.values():
            split.append(*_arrays([65_990], [1], [1], [0]), 1, 1)
        corpus = writer.finish(PROVENANCE)
    assert corpus.train.tokens.dtype == np.uint32
    assert corpus.train.tokens.tolist() == [65_990]


def test_fingerprint_follows_the_content(corpus, tmp_path, tokenizer):
    shutil.move(corpus.path, tmp_path / "moved")
    assert Corpus.open(tmp_path / "moved").fingerprint == corpus.fingerprint
    with CorpusWriter(tmp_path / "other", tokenizer) as writer:
        _fill(writer)
        writer.splits["train"].append(*_arrays([5], [1], [1], []), 1, 1)
        other = writer.finish(PROVENANCE)
    assert other.fingerprint != corpus.fingerprint


def test_what_is_not_a_corpus(tmp_path, corpus):
    with pytest.raises(UserError, match="no such corpus"):
        Corpus.open(tmp_path / "absent")
    with pytest.raises(UserError, match="not a finished corpus"):
        Corpus.open(tmp_path)
    manifest = json.loads((corpus.path / MANIFEST).read_text())
    (corpus.path / "bakeoff.sha256").unlink()
    (corpus.path / MANIFEST).write_text(json.dumps({**manifest, "format": 99}))
    with pytest.raises(UserError, match="format 99"):
        Corpus.open(corpus.path)
    (corpus.path / MANIFEST).write_text("{")
    with pytest.raises(UserError, match=r"corpus.json: not valid JSON: .* \(line 1, column 2\)"):
        Corpus.open(corpus.path)


def test_damage_is_found(corpus):
    file = corpus.path / "train.tokens"
    data = bytearray(file.read_bytes())
    data[3] ^= 1
    file.write_bytes(data)
    with pytest.raises(UserError, match=r"train\.tokens.*damaged"):
        Corpus.open(corpus.path).verify()
    file.write_bytes(data[:-2])
    with pytest.raises(UserError, match=r"train\.tokens: holds 10 bytes instead of 12"):
        Corpus.open(corpus.path)
    file.unlink()
    with pytest.raises(UserError, match=r"train\.tokens.*missing"):
        Corpus.open(corpus.path)
    (corpus.path / "tokenizer.json").unlink()
    with pytest.raises(UserError, match=r"missing"):
        corpus.verify()


def test_an_abandoned_corpus_leaves_nothing(tmp_path, tokenizer):
    def interrupted() -> None:
        with CorpusWriter(tmp_path / "new" / "corpus", tokenizer) as writer:
            _fill(writer)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list((tmp_path / "new").iterdir()) == []


def test_a_killed_writer_leaves_no_corpus_and_its_rest_is_replaced(tmp_path, tokenizer):
    rest = tmp_path / ".corpus.unfinished"
    rest.mkdir()
    (rest / "train.tokens").write_bytes(b"half")
    assert not (tmp_path / "corpus").exists()
    with pytest.raises(UserError, match="not a finished corpus"):
        Corpus.open(rest)
    with CorpusWriter(tmp_path / "corpus", tokenizer) as writer:
        _fill(writer)
        writer.finish(PROVENANCE).verify()
    assert [path.name for path in tmp_path.iterdir()] == ["corpus"]


def test_existing_folders(tmp_path, corpus, tokenizer):
    with pytest.raises(UserError, match="--overwrite"):
        CorpusWriter(corpus.path, tokenizer)
    with CorpusWriter(corpus.path, tokenizer, overwrite=True) as writer:
        _fill(writer)
        writer.finish(PROVENANCE).verify()
    precious = tmp_path / "precious"
    precious.mkdir()
    CorpusWriter(precious, tokenizer)  # an empty folder is no loss
    (precious / "thesis.txt").write_text("x")
    for overwrite in (False, True):
        with pytest.raises(UserError, match="not a corpus"):
            CorpusWriter(precious, tokenizer, overwrite=overwrite)
    with pytest.raises(UserError, match="not a folder"):
        CorpusWriter(Path(precious / "thesis.txt"), tokenizer, overwrite=True)


def test_an_empty_part_is_refused(tmp_path, tokenizer):
    with CorpusWriter(tmp_path / "corpus", tokenizer) as writer:
        writer.splits["train"].append(*_arrays([5], [1], [1], [0]), 1, 1)
        with pytest.raises(UserError, match="too small"):
            writer.finish(PROVENANCE)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("key", "name"), [("splits", "../../other"), ("sha256", "/dev/zero"), ("sha256", "../x.json")])
def test_a_manifest_names_no_files_outside_of_its_folder(corpus, key, name):
    values = json.loads((corpus.path / "corpus.json").read_text())
    values[key][name] = next(iter(values[key].values()))
    (corpus.path / "corpus.json").write_text(json.dumps(values))
    (corpus.path / "bakeoff.sha256").unlink()
    with pytest.raises(UserError, match=rf"corpus\.json: {key}\."):
        Corpus.open(corpus.path)
