"""A corpus that is made on a Ray cluster of two machines, here of two groups of processes."""

import json
import subprocess
import sys
import warnings

import pytest

from bakeoff.errors import UserError
from bakeoff.preparation.prepare import prepare
from bakeoff.preparation.ray_cluster import prepare_on_ray
from bakeoff.tokenizer.tokenizer_config import TokenizerConfig

BYTES = TokenizerConfig(kind="byte_bpe", size=300)


def contents(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    file = tmp_path_factory.mktemp("text") / "a.jsonl"
    texts = [f"Document {i % 3000} of many. " + "It goes on 房间. " * 60 for i in range(5000)]
    file.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return file


def test_a_missing_library_is_named(tmp_path, file, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UserError, match=r"--ray needs Ray, which is not installed; run pip install 'ray>="):
        prepare_on_ray(file, tmp_path / "corpus", "local", tokenizer=BYTES)


@pytest.fixture(scope="module")
def cluster():
    pytest.importorskip("ray", reason='needs ray: pip install -e ".[ray]"')
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from ray.cluster_utils import Cluster

        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
        cluster.add_node(num_cpus=1)
    yield cluster
    cluster.shutdown()


def bakeoff(*arguments, folder):
    """In a process of its own, so that warnings of Ray's are no failures here."""
    command = [sys.executable, "-m", "bakeoff", "prepare", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=200)


@pytest.mark.slow
def test_the_same_corpus_on_two_machines(tmp_path, file, cluster):
    options = ["--tokenizer", "byte_bpe", "--vocabulary", "300", "--deduplicate", "--json"]
    (tmp_path / "b.jsonl").write_bytes(file.read_bytes())
    whole = prepare(tmp_path / "b.jsonl", tmp_path / "whole", tokenizer=BYTES, deduplicate=True)
    out = bakeoff("b.jsonl", "--out", "corpus", "--ray", cluster.address, *options, folder=tmp_path)
    assert out.returncode == 0, out.stderr
    assert "shards on 2 cores" in out.stderr
    assert json.loads(out.stdout)["fingerprint"] == whole.fingerprint
    made, expected = contents(tmp_path / "corpus"), contents(whole.path)
    assert made.keys() == expected.keys()
    described = {"corpus.json", "bakeoff.sha256"}  # whose sources and versions differ, and the checksum of it
    assert all(made[name] == expected[name] for name in made.keys() - described)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b.jsonl", "corpus", "whole"]


@pytest.mark.slow
def test_a_mistake_in_the_text_is_one_line(tmp_path, file, cluster):
    (tmp_path / "tokenizer.json").write_text(prepare(file, tmp_path / "0", tokenizer=BYTES).tokenizer.to_string())
    for i in range(64):
        (tmp_path / f"{i:02}.jsonl").write_text(json.dumps({"text": "Some text."}) + "\n{" * (i == 63))
    files = sorted(path.name for path in tmp_path.glob("*.jsonl"))
    out = bakeoff(
        *files, "--out", "corpus", "--ray", cluster.address, "--tokenizer", "./tokenizer.json", folder=tmp_path
    )
    assert out.returncode == 2
    assert len(out.stderr.strip().splitlines()[-1:]) == 1
    assert "63.jsonl:2: broken JSON" in out.stderr
    assert not (tmp_path / "corpus").exists()


@pytest.mark.slow
def test_no_cluster(tmp_path, file):
    pytest.importorskip("ray", reason='needs ray: pip install -e ".[ray]"')
    with pytest.raises(UserError, match="--ray here: expected local, auto or HOST:PORT"):
        prepare_on_ray(file, tmp_path / "corpus", "here", tokenizer=BYTES)
    out = bakeoff(file, "--out", "corpus", "--ray", "127.0.0.1:9", folder=tmp_path)
    assert out.returncode == 2
    assert "no cluster answers" in out.stderr.splitlines()[-1]
