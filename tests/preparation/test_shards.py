"""A corpus that is made in shards is the one that is made in one go."""

import json
import multiprocessing
import random
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bakeoff.corpus.store import Corpus
from bakeoff.errors import UserError
from bakeoff.preparation import merging
from bakeoff.preparation.encoding import text_encoding
from bakeoff.preparation.planning import sampling
from bakeoff.preparation.prepare import merge_shards, prepare, prepare_shard
from bakeoff.tokenizer.tokenizer import Tokenizer
from bakeoff.tokenizer.tokenizer_config import TokenizerConfig

BYTES = TokenizerConfig(kind="byte_bpe", size=300)


def contents(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}


def jsonl(path, documents):
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in documents))
    return path


def in_shards(texts, out, shards, order=None, **options):
    numbers = list(range(1, shards + 1))
    (order or random.Random(shards)).shuffle(numbers)
    for shard in numbers:
        prepare_shard(texts, out, shard, shards, **options)
    return merge_shards(texts, out, **options)


SENTENCES = st.lists(
    st.sampled_from(["The river ran. ", "房间很大。", "🎉", "שלום עולם. ", "x", "\n", "\n\n", "\x01", "  ", "Ends! "]),
    max_size=6,
).map("".join)
LONG = st.sampled_from([900, 4_000, 33_000]).map(lambda size: "Some words 房. " * (size // 14))

MIXTURES = given(
    documents=st.lists(st.one_of(SENTENCES, SENTENCES, SENTENCES, LONG), min_size=1, max_size=40),
    repeats=st.integers(6, 9),
    files=st.integers(1, 4),
    shards=st.integers(1, 6),
    options=st.fixed_dictionaries(
        {
            "deduplicate": st.booleans(),
            "minimum_characters": st.sampled_from([0, 0, 5]),
            "shuffle_ngrams": st.sampled_from([None, None, 1, 2]),
            "validation": st.sampled_from([0.05, 0.3]),
            "seed": st.integers(0, 3),
        }
    ),
    trained=st.booleans(),
    randomness=st.randoms(use_true_random=False),
)


@MIXTURES
@settings(max_examples=4, deadline=None)
def test_any_shards_give_the_same_bytes(
    tmp_path_factory, tokenizer_file, documents, repeats, files, shards, options, trained, randomness
):
    check_shards(tmp_path_factory, tokenizer_file, documents, repeats, files, shards, options, trained, randomness)


@pytest.mark.slow
@MIXTURES
@settings(max_examples=60, deadline=None)
def test_any_shards_of_many_texts_give_the_same_bytes(
    tmp_path_factory, tokenizer_file, documents, repeats, files, shards, options, trained, randomness
):
    check_shards(tmp_path_factory, tokenizer_file, documents, repeats, files, shards, options, trained, randomness)


@patch.object(text_encoding, "_JOB", 1_000)
@patch.object(merging, "_SENTENCES", 7)
def check_shards(tmp_path_factory, tokenizer_file, documents, repeats, files, shards, options, trained, randomness):
    """Empty documents and files, copies in several shards, documents longer than a job, more shards than text."""
    folder = tmp_path_factory.mktemp("shards")
    short = [f"Document {i} of many. 房间 {i}." for i in range(210)]
    every = documents * repeats + short[: randomness.randint(0, 210)]
    randomness.shuffle(every)
    texts = [jsonl(folder / f"{i}.jsonl", every[i::files]) for i in range(files)]
    options = {**options, "tokenizer": BYTES if trained else tokenizer_file, "workers": 0}
    try:
        whole = prepare(texts, folder / "whole", **options)
    except UserError:
        return
    if whole.manifest.validation_unit != "documents" and whole.manifest.originals < 200:
        with pytest.raises(UserError, match="fewer than the 200 that are needed"):
            in_shards(texts, folder / "shards", shards + 1, **options)
    else:
        corpus = in_shards(texts, folder / "shards", shards + 1, randomness, **options)
        assert contents(corpus.path) == contents(whole.path)
    assert not (folder / ".shards.unfinished").exists()


@pytest.mark.slow
@pytest.mark.parametrize("trained", [True, False])
def test_shards_of_long_documents_that_are_cut_give_the_same_bytes(tmp_path, tokenizer_file, trained):
    """Two documents are twice the share: runs of sentences are held out, in whichever shard they lie."""
    texts = []
    for number in range(210):
        text = " ".join(f"Document {number} has sentence {i}. 房间 {i}。" for i in range(80))
        texts.append(jsonl(tmp_path / f"{number:03}.jsonl", [text]))
    options = {"tokenizer": BYTES if trained else tokenizer_file, "validation": 0.004, "workers": 0}
    for own in ({}, {"shuffle_ngrams": 1}):
        whole = prepare(texts, tmp_path / "whole", overwrite=True, **options, **own)
        assert whole.manifest.validation_unit == "runs of sentences"
        assert whole.validation.bytes / (whole.train.bytes + whole.validation.bytes) == pytest.approx(0.004, rel=0.2)
        with patch.object(text_encoding, "_JOB", 1_000), patch.object(merging, "_SENTENCES", 7):
            corpus = in_shards(texts, tmp_path / f"shards{len(own)}", 3, **options, **own)
        assert contents(corpus.path) == contents(whole.path)


@pytest.fixture(scope="module")
def tokenizer_file(tmp_path_factory):
    file = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    Tokenizer.train(TokenizerConfig(kind="wordpiece", size=120), ["The river ran. 房间很大。 שלום עולם"] * 3).save(file)
    return file


@pytest.mark.parametrize("kind", ["txt", "csv", "tsv", "parquet", "arrow", "gz"])
def test_shards_of_every_format(tmp_path, kind):
    texts = [
        f"Document {i}, of many. It ends." + "\n" * (i % 7 == 0 and kind not in ("txt", "tsv")) for i in range(900)
    ]
    texts[100] = texts[101] = ""
    file = tmp_path / f"a.{kind}"
    options = {}
    if kind == "txt":
        file.write_text("\n".join(texts))
        options = {"document_per_line": True}
    elif kind == "csv":
        file.write_text("id,text\n" + "".join(f'{i},"{text}"\n' for i, text in enumerate(texts)))
    elif kind == "tsv":
        file.write_text("id\ttext\n" + "".join(f"{i}\t{text}\n" for i, text in enumerate(texts)))
    elif kind == "gz":
        import gzip

        file = tmp_path / "a.jsonl.gz"
        file.write_bytes(gzip.compress(jsonl(tmp_path / "b", texts).read_bytes()))
    else:
        pyarrow = pytest.importorskip("pyarrow", reason='needs pyarrow: pip install -e ".[hub]"')
        from pyarrow import parquet

        table = pyarrow.table({"text": texts})
        if kind == "parquet":
            parquet.write_table(table, file, row_group_size=100)
        else:
            with pyarrow.ipc.new_stream(str(file), table.schema) as writer:
                writer.write_table(table, max_chunksize=64)
    options |= {"tokenizer": BYTES, "workers": 0, "validation": 0.1}
    whole = prepare(file, tmp_path / "whole", **options)
    assert contents(in_shards(file, tmp_path / "shards", 5, **options).path) == contents(whole.path)


def test_shards_are_balanced(tmp_path):
    file = jsonl(tmp_path / "a.jsonl", [f"Document {i} of many. It ends here." for i in range(4000)])
    made = [prepare_shard(file, tmp_path / "corpus", shard, 8, tokenizer=BYTES, workers=0) for shard in range(1, 9)]
    assert sum(shard["documents"] for shard in made) == 4000
    assert max(shard["tokens"] for shard in made) < 1.1 * min(shard["tokens"] for shard in made)


def test_a_tokenizer_and_many_files_need_no_reading_of_the_whole(tmp_path, tokenizer_file, monkeypatch):
    monkeypatch.setattr(sampling, "SURVEYED_DOCUMENTS", 300)
    texts = [jsonl(tmp_path / f"{i:02}.jsonl", [f"Document {i} {j} of many." for j in range(50)]) for i in range(24)]
    calls = []
    options = {"tokenizer": tokenizer_file, "workers": 0}
    prepare_shard(texts, tmp_path / "shards", 2, 3, progress=lambda *call: calls.append(call), **options)
    total = sum(text.stat().st_size for text in texts)
    assert max(done for phase, done, _ in calls if phase == "reading") < total / 2
    whole = prepare(texts, tmp_path / "whole", **options)
    assert contents(in_shards(texts, tmp_path / "shards", 3, **options).path) == contents(whole.path)


@pytest.fixture
def file(tmp_path):
    return jsonl(tmp_path / "a.jsonl", [f"Document {i} of many. It ends here." for i in range(400)])


def test_a_missing_shard_is_named(tmp_path, file):
    out = tmp_path / "corpus"
    with pytest.raises(UserError, match="no shards to merge"):
        merge_shards(file, out, tokenizer=BYTES)
    for shard in (1, 4):
        prepare_shard(file, out, shard, 5, tokenizer=BYTES)
    with pytest.raises(UserError, match="--shard 2/5, 3/5, 5/5 not made yet"):
        merge_shards(file, out, tokenizer=BYTES)
    assert not out.exists()
    with pytest.raises(UserError, match="no such shard"):
        prepare_shard(file, out, 6, 5, tokenizer=BYTES)
    with pytest.raises(UserError, match="in 5 shards, not in 6 shards"):
        prepare_shard(file, out, 1, 6, tokenizer=BYTES)
    with pytest.raises(UserError, match="in 5 shards; give --shard or --merge"):
        prepare(file, out, tokenizer=BYTES)


def test_a_damaged_shard_is_missing(tmp_path, file):
    for shard in (1, 2):
        prepare_shard(file, tmp_path / "corpus", shard, 2, tokenizer=BYTES)
    (tmp_path / ".corpus.unfinished" / "part-00002-of-00002" / "train.tokens").write_bytes(b"")
    with pytest.raises(UserError, match="--shard 2/2 not made yet"):
        merge_shards(file, tmp_path / "corpus", tokenizer=BYTES)
    prepare_shard(file, tmp_path / "corpus", 2, 2, tokenizer=BYTES)
    whole = prepare(file, tmp_path / "whole", tokenizer=BYTES)
    assert contents(merge_shards(file, tmp_path / "corpus", tokenizer=BYTES).path) == contents(whole.path)


def test_shards_of_another_text_or_other_options_are_refused(tmp_path, file):
    out = tmp_path / "corpus"
    prepare_shard(file, out, 1, 2, tokenizer=BYTES)
    for options in ({"seed": 1}, {"tokenizer": TokenizerConfig(size=301, kind="byte_bpe")}, {"tokenizer_sample": 50}):
        with pytest.raises(UserError, match=f"begun with {next(iter(options))}"):
            prepare_shard(file, out, 2, 2, **{"tokenizer": BYTES, **options})
    with pytest.raises(UserError, match="another input files"):
        prepare_shard([file, jsonl(tmp_path / "b.jsonl", ["one"])], out, 2, 2, tokenizer=BYTES)
    prepare_shard(file, out, 2, 2, tokenizer=BYTES)
    jsonl(file, ["changed"] * 300)
    for make in (
        lambda: prepare_shard(file, out, 2, 2, tokenizer=BYTES),
        lambda: merge_shards(file, out, tokenizer=BYTES),
    ):
        with pytest.raises(UserError, match=r"another .*a\.jsonl"):
            make()


def test_all_may_be_started_again(tmp_path, file):
    out = tmp_path / "corpus"
    corpus = in_shards(file, out, 3, tokenizer=BYTES)
    before = contents(out)
    assert prepare_shard(file, out, 2, 3, tokenizer=BYTES)["merged"]
    assert merge_shards(file, out, tokenizer=BYTES).fingerprint == corpus.fingerprint
    assert contents(out) == before
    with pytest.raises(UserError, match="a corpus exists here already"):
        prepare_shard(file, out, 2, 3, tokenizer=BYTES, seed=1)
    other = in_shards(file, out, 3, tokenizer=BYTES, seed=1, overwrite=True)
    assert other.fingerprint != corpus.fingerprint


def make(file, out, shard, shards, answers):
    try:
        answers.put(prepare_shard(file, out, shard, shards, tokenizer=BYTES, workers=0)["shard"])
    except UserError as error:
        answers.put(str(error))


def test_jobs_may_start_together(tmp_path, file):
    """One of them plans, the others wait for it; of two that make the same shard one may be refused."""
    out = tmp_path / "corpus"
    context = multiprocessing.get_context("fork" if "fork" in multiprocessing.get_all_start_methods() else "spawn")
    answers = context.Queue()
    jobs = [context.Process(target=make, args=(file, out, shard, 2, answers)) for shard in (1, 2, 1, 2)]
    for job in jobs:
        job.start()
    said = sorted(answers.get(timeout=60) for _ in jobs)
    for job in jobs:
        job.join()
    assert {"1/2", "2/2"} <= set(said)
    assert all(answer in ("1/2", "2/2") or "another process is writing here" in answer for answer in said)
    whole = prepare(file, tmp_path / "whole", tokenizer=BYTES)
    assert contents(merge_shards(file, out, tokenizer=BYTES).path) == contents(whole.path)
    Corpus.open(out).verify()
