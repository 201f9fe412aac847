"""A disk without space: what is told, what is kept, and that nothing is lost once there is more.

The system's limit of a file's size stands for the disk: beyond it a write fails as on a full one.
"""

import signal
from contextlib import contextmanager

import pytest
import torch
from safetensors.torch import load_file

from bakeoff.corpus.store import Corpus
from bakeoff.full_disk import DiskFull
from bakeoff.preparation.prepare import merge_shards, prepare, prepare_shard
from bakeoff.runs.run import Run
from bakeoff.tasks.finetune import finetune
from bakeoff.tasks.finetune_config import FinetuneConfig
from bakeoff.tasks.kinds.classification import ClassificationConfig
from bakeoff.tokenizer.tokenizer_config import TokenizerConfig
from bakeoff.training.pretrain import pretrain
from tests.conftest import shrink

resource = pytest.importorskip("resource")


@contextmanager
def space(size):
    """No file can grow beyond so many bytes; None: as before."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (before[1] if size is None else size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def made(text_folder, out, **options):
    options = {"tokenizer": TokenizerConfig(size=160), "document_per_line": True, "validation": 0.1, **options}
    return prepare([text_folder], out, workers=0, **options)


def test_prepare_goes_on_where_there_was_no_space(corpus, text_folder, tmp_path):
    out = tmp_path / "corpus"
    with space(20_000), pytest.raises(DiskFull) as told:
        made(text_folder, out)
    work = tmp_path / ".corpus.unfinished"
    assert str(told.value).startswith(f"{work}: cannot be written: File too large; what is encoded is kept: with more")
    assert work.is_dir()
    assert not out.exists()
    assert made(text_folder, out).fingerprint == corpus.fingerprint
    assert not work.exists()


def test_prepare_keeps_nothing_of_a_text_that_was_not_read_to_its_end(text_folder, tmp_path):
    with space(100), pytest.raises(DiskFull, match="nothing was kept, for the text was not read to its end"):
        made(text_folder, tmp_path / "corpus")
    assert list(tmp_path.iterdir()) == []


def test_parts_go_on_where_there_was_no_space(corpus, text_folder, tmp_path):
    out, options = tmp_path / "corpus", {"tokenizer": TokenizerConfig(size=160), "validation": 0.1}
    options |= {"document_per_line": True, "workers": 0}

    def part(number):
        prepare_shard([text_folder], out, number, 2, **options)

    part(1)
    with space(10_000), pytest.raises(DiskFull, match=r"part-00002-of-00002.*: cannot be written: .* is kept"):
        part(2)
    part(2)
    with space(20_000), pytest.raises(DiskFull, match="all shards are kept: with more space the same command merges"):
        merge_shards([text_folder], out, **{key: value for key, value in options.items() if key != "workers"})
    merge_shards([text_folder], out, **{key: value for key, value in options.items() if key != "workers"})
    assert Corpus.open(out).train_tokens == corpus.train_tokens


def test_pretraining_goes_on_from_its_last_checkpoint(corpus, tmp_path):
    recipe, path = shrink("gpt-tiny", **{"training.checkpoint_minutes": 1e-9}), tmp_path / "run"
    whole = pretrain(recipe, corpus.path, tmp_path / "whole", device="cpu", progress=False)
    limits = []

    def fill_up(position):
        if position.step == 3 and not limits:
            limits.append(space(2_000))
            limits[0].__enter__()

    try:
        with pytest.raises(DiskFull) as told:
            pretrain(recipe, corpus.path, path, device="cpu", progress=False, watch=fill_up)
    finally:
        limits[0].__exit__(None, None, None)
    message = str(told.value)
    assert message.startswith(f"{path}/checkpoints/")
    assert "cannot be written: File too large; the checkpoint of step 2 is kept: with more space, continue" in message
    assert f"bakeoff pretrain --out {path} --resume" in message
    resumed = pretrain(None, None, path, resume=True, device="cpu", progress=False)
    tensors = load_file(resumed.path / "model.safetensors")
    for name, tensor in load_file(whole.path / "model.safetensors").items():
        assert torch.equal(tensors[name], tensor)


@pytest.mark.parametrize(("size", "kept"), [(500, "nothing was kept"), (50_000, "no checkpoint was kept")])
def test_pretraining_without_space_from_the_start(size, kept, corpus, tmp_path):
    recipe, path = shrink("gpt-tiny", **{"training.checkpoint_minutes": 1e-9}), tmp_path / "run"
    with space(size), pytest.raises(DiskFull, match=f"{path}.*: cannot be written: File too large; {kept}"):
        pretrain(recipe, corpus.path, path, device="cpu", progress=False)
    if path.exists():
        assert Run.open(path).metrics()  # of steps that were made
        assert pretrain(None, None, path, resume=True, device="cpu", progress=False).finished


def test_finetuning_keeps_nothing(corpus, tmp_path):
    rows = "text\tlabel\n" + "".join(f"word {number}\t{number % 2}\n" for number in range(40))
    (tmp_path / "rows.tsv").write_text(rows)
    task = ClassificationConfig(train=tmp_path / "rows.tsv", text_column="text", label_column="label")
    quick = FinetuneConfig(epochs=1, least_steps=0, learning_rate=[1e-3])
    options = {"config": quick, "tokenizer": corpus.path, "device": "cpu", "progress": False}
    with space(50_000), pytest.raises(DiskFull, match=r"cannot be written: .*; nothing of this fine-tuning was kept"):
        finetune(shrink("gpt-tiny"), task, tmp_path / "tuned", **options)
    assert [path.name for path in tmp_path.iterdir()] == ["rows.tsv"]
