"""Data sets that `datasets` streams; here from folders in the forms that the Hub has them in."""

import json
import sys

import pytest

from bakeoff.errors import UserError
from bakeoff.preparation.prepare import merge_shards, prepare, prepare_shard
from bakeoff.tokenizer.tokenizer_config import TokenizerConfig

BYTES = TokenizerConfig(kind="byte_bpe", size=300)


def test_a_missing_library_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(UserError, match=r"hub:a/b: data sets of the Hub need .*pip install .* 'datasets>="):
        prepare("hub:a/b", tmp_path / "corpus", tokenizer=BYTES)


@pytest.mark.parametrize("name", ["hub:", "hub:a@", "hub:a:b:c", "hub:a@b@c"])
def test_a_broken_name(tmp_path, name):
    with pytest.raises(UserError, match="expected hub:OWNER/NAME"):
        prepare(name, tmp_path / "corpus", tokenizer=BYTES)


@pytest.fixture(scope="module")
def datasets():
    return pytest.importorskip("datasets", reason='needs datasets: pip install -e ".[hub]"')


@pytest.fixture(params=["jsonl", "parquet"])
def folder(request, tmp_path, datasets):
    """A data set of three files of `train` and one of `test`."""
    (tmp_path / "set").mkdir()
    for name, count in (("train-0", 200), ("train-1", 150), ("train-2", 70), ("test-0", 9)):
        rows = {"id": list(range(count)), "body": [f"Document {i} of {name}.\nIt ends 房间。" for i in range(count)]}
        rows["body"][5] = ""
        table = datasets.Dataset.from_dict(rows)
        path = str(tmp_path / "set" / f"{name}.{request.param}")
        table.to_parquet(path) if request.param == "parquet" else table.to_json(path)
    return tmp_path / "set"


def tokens(corpus):
    return {
        path.name: path.read_bytes()
        for path in corpus.path.iterdir()
        if path.name not in ("corpus.json", "bakeoff.sha256")
    }


@pytest.mark.slow  # the quick tests leave it out without `datasets` anyway
def test_a_stream_gives_the_corpus_of_its_files(tmp_path, folder):
    options = {"tokenizer": BYTES, "field": "body"}
    files = sorted(folder.glob("train-*"))
    expected = prepare(files, tmp_path / "files", **options)
    name = f"hub:{folder}"
    corpus = prepare(name, tmp_path / "stream", **options)
    assert tokens(corpus) == tokens(expected)
    assert corpus.summary()["skips"] == {"empty documents": 3}
    sources = corpus.manifest.sources
    assert [source.path for source in sources] == [f"{name}#{i}" for i in (1, 2, 3)]
    assert [source.bytes for source in sources] == [file.stat().st_size for file in files]
    assert len({source.revision for source in sources} - {None}) == 1
    for part in (3, 1, 4, 2):
        prepare_shard(name, tmp_path / "parts", part, 4, **options)
    assert tokens(merge_shards(name, tmp_path / "parts", **options)) == tokens(expected)


def test_a_split_beside_files(tmp_path, folder):
    other = tmp_path / "other.jsonl"
    other.write_text("".join(json.dumps({"body": f"Another {i}."}) + "\n" for i in range(300)))
    corpus = prepare([other, f"hub:{folder}:default@test"], tmp_path / "corpus", tokenizer=BYTES, field="body")
    assert corpus.summary()["documents"] == 308


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("hub:{folder}@tests", r"no split 'tests' \(splits here: train, test\)"),
        ("hub:{folder}:other", r"BuilderConfig 'other' not found. Available: \['default'\]"),
        ("hub:{folder}", "no column 'text' .*columns here: id, body"),
    ],
)
def test_what_is_not_there(tmp_path, folder, name, message):
    with pytest.raises(UserError, match=message):
        prepare(name.format(folder=folder), tmp_path / "corpus", tokenizer=BYTES)
    assert not (tmp_path / "corpus").exists()
    assert not (tmp_path / ".corpus.unfinished").exists()


def test_no_network_and_no_such_data_set(tmp_path, datasets, monkeypatch):
    """A port at which nobody listens stands for the Hub, as the variable HF_ENDPOINT lets a user choose it."""
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(UserError, match=r"hub:a/b: cannot be read .*is the name right, and the network there"):
        prepare("hub:a/b", tmp_path / "corpus", tokenizer=BYTES)
