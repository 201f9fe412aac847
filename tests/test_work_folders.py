"""Work folders that are links, as an unpacked archive may hold them: refused, and what they lead to stays as it is."""

import os
from unittest.mock import patch

import pytest

from bakeoff.cli import run as bakeoff
from bakeoff.comparison.execution import compare
from bakeoff.corpus import row_index as row_indexes
from bakeoff.corpus.row_index import row_index
from bakeoff.corpus.store import Corpus
from bakeoff.durable import beside, own_folder, remove, write_atomically
from bakeoff.errors import UserError
from bakeoff.inspection.inspect import inspect
from bakeoff.preparation.prepare import merge_shards, prepare, prepare_shard
from bakeoff.preparation.prepare_pairs import prepare_pairs
from bakeoff.tokenizer.tokenizer_config import TokenizerConfig
from bakeoff.training.pretrain import pretrain
from tests.comparison.test_execution import FakeEngine, plan
from tests.conftest import shrink

pytestmark = pytest.mark.skipif(os.name != "posix", reason="links without rights of their own")
RECIPE = shrink("bert-tiny", **{"training.budget": {"steps": 2}})
BYTES = TokenizerConfig(kind="byte_bpe", size=300)


@pytest.fixture
def precious(tmp_path):
    """A folder of somebody else, and a check that nothing in it has changed."""
    folder = tmp_path / "precious"
    (folder / "step-00000001").mkdir(parents=True)
    for name in ("letter.txt", "loss-1.svg", "step-00000001/model.safetensors", "plan.json"):
        (folder / name).write_text("dear", encoding="utf-8")
    before = sorted(folder.rglob("*"))
    yield folder
    assert sorted(folder.rglob("*")) == before
    assert all(path.read_text(encoding="utf-8") == "dear" for path in before if path.is_file())


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("".join(f"Line {i} of the river.\n\n" for i in range(60)), encoding="utf-8")
    return path


def link(place, target):
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(target)
    return place


def refused(place):
    return pytest.raises(UserError, match=f"{place}.*: a link")


def test_prepare_refuses_a_link_in_the_place_of_its_work_folder(tmp_path, text, precious, capfd):
    with refused(link(tmp_path / ".mine.unfinished", precious)):
        prepare(text, tmp_path / "mine", tokenizer=BYTES)
    assert bakeoff(["prepare", str(text), "--out", str(tmp_path / "mine")]) == 2
    assert capfd.readouterr().err.count("\n") == 1
    assert not (tmp_path / "mine").exists()


def test_so_do_its_parts_and_pairs(tmp_path, text, precious):
    place, other = link(tmp_path / ".mine.unfinished", precious), tmp_path / "other.txt"
    other.write_bytes(text.read_bytes())
    with refused(place):
        prepare_shard(text, tmp_path / "mine", 1, 2, tokenizer=BYTES)
    with refused(place):
        merge_shards(text, tmp_path / "mine", tokenizer=BYTES)
    with refused(place):
        prepare_pairs(text, other, tmp_path / "mine", tokenizer=BYTES)


@pytest.mark.parametrize("name", ["plan.json", "part-1-of-1", "left_out.npy", "some/deep/thing"])
def test_a_link_within_a_work_folder_is_refused_too(tmp_path, text, precious, name):
    link(tmp_path / ".mine.unfinished" / name, precious / "letter.txt")
    with refused(tmp_path / ".mine.unfinished" / name):
        prepare(text, tmp_path / "mine", tokenizer=BYTES)


def test_a_corpus_is_not_moved_to_where_a_link_is(tmp_path, text, precious):
    prepare(text, tmp_path / "mine", tokenizer=BYTES)
    with refused(link(tmp_path / ".mine.replaced", precious)):
        prepare(text, tmp_path / "mine", tokenizer=BYTES, overwrite=True)
    Corpus.open(tmp_path / "mine").verify()


def test_an_index_is_not_written_through_a_link(tmp_path, text, precious):
    corpus = prepare(text, tmp_path / "mine", tokenizer=BYTES)
    place = link(tmp_path / "mine" / "indexes", precious)
    with patch.object(row_indexes, "KEPT_FROM", 1), refused(place):
        row_index(corpus.train, "key", lambda sentences, documents: (documents, documents))


@pytest.mark.parametrize("name", ["checkpoints", "snapshots", "metrics.jsonl", "checkpoints/.step-00000002.partial"])
def test_a_run_with_links_is_not_resumed(tmp_path, corpus, precious, name):
    run = pretrain(RECIPE, corpus.path, tmp_path / "run", progress=False)
    for file in ("summary.json", "bakeoff.sha256"):
        (run.path / file).unlink()
    (run.path / name).unlink(missing_ok=True)
    place = link(run.path / name, precious / "letter.txt" if name == "metrics.jsonl" else precious)
    # What stands in another file is none of this run's lines.
    with pytest.raises(UserError, match=r"metrics\.jsonl: ") if name == "metrics.jsonl" else refused(place):
        pretrain(
            RECIPE,
            corpus.path,
            tmp_path / "run",
            resume=True,
            progress=False,
        )


def test_a_finetuning_refuses_a_link_in_the_place_of_its_work_folder(tmp_path, precious):
    from bakeoff.tasks.unfinished_run import resumable

    with refused(link(tmp_path / ".tuned.unfinished", precious)), resumable(tmp_path / "tuned", {}):
        pass


@pytest.mark.parametrize(
    "place",
    ["runs", "runs/one", "runs/one/seed-0/pretrain", "runs/two/seed-1/mood", "figures", "baselines", "imported/x"],
)
def test_a_comparison_refuses_links_below_its_folder(tmp_path, precious, place):
    (tmp_path / "corpus").mkdir()
    for name in ("train", "dev", "test"):
        (tmp_path / f"{name}.tsv").write_text(name)
    out, engine = tmp_path / "out", FakeEngine()
    link(out, tmp_path / "disk").readlink().mkdir()
    with refused(link(out / place, precious)):
        compare(plan(tmp_path, seeds=2), out, engine=engine)
    assert engine.calls == []


def test_what_an_inspection_writes_into_a_run_goes_through_no_link(tmp_path, corpus, precious):
    run = pretrain(RECIPE, corpus.path, tmp_path / "run", progress=False)
    with refused(link(run.path / "inspect", precious)):
        inspect(run.path)


def test_a_user_may_name_a_folder_by_a_link(tmp_path, corpus):
    (tmp_path / "disk").mkdir()
    out = link(tmp_path / "run", tmp_path / "disk")
    assert pretrain(RECIPE, corpus.path, out, progress=False).finished
    assert own_folder(out / "a" / "b", out) == out / "a" / "b"


def test_a_file_is_written_beside_and_not_through_a_link(tmp_path, precious):
    link(tmp_path / ".results.json.partial", precious / "letter.txt")
    write_atomically(tmp_path / "results.json", "{}")
    assert (tmp_path / "results.json").read_text() == "{}"
    assert not (tmp_path / "results.json").is_symlink()
    link(tmp_path / ".model.partial", precious / "letter.txt")
    assert not os.path.lexists(beside(tmp_path / "model"))


def test_what_is_removed_is_no_link(tmp_path, precious):
    with refused(link(tmp_path / "work", precious)):
        remove(tmp_path / "work")
    remove(tmp_path / "nothing")
