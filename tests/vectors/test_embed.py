"""Vectors of texts against transformers' BERT, and against one text alone in a row of its own in float64."""

import json
import os
import threading

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.conftest import sentences
from tests.untrained_runs import untrained

import bakeoff
from bakeoff.cli import run as command
from bakeoff.errors import UserError
from bakeoff.row import Row, Source
from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.vectors import embed as embedding
from bakeoff.vectors.embedder import Embedder
from bakeoff.vectors.options import VectorConfig

TEXTS = ["The river finds the old stone.", "", "river", "stone  and\triver ", *sentences(6, seed=4), "river " * 30]
NAMES = ["bert-tiny", "gpt2-tiny", "xlnet-tiny", "elmo-tiny", "gpt-bert-tiny", "bart-tiny", "conv-light-encoder-tiny"]


@pytest.fixture(scope="module")
def runs(corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    return {name: untrained(name, corpus, folder / name, **{"input.length": 64}) for name in NAMES}


@pytest.fixture(scope="module")
def bert(runs):
    return runs["bert-tiny"]


def states_of(run, text):
    """(T, D) float64, from a row without padding."""
    module, tokenizer = run.load().double().model, run.tokenizer
    ids = [int(each) for each in tokenizer.encode([" ".join(text.split())])[0][0]]
    start, separator = tokenizer.start, tokenizer.separator
    recipe = run.recipe
    with torch.no_grad():
        if recipe.model.sequence_to_sequence:
            return module.encode(Source(torch.tensor([[*ids, separator]])))[0][0]
        if recipe.model.encoder is None:
            row = [separator, *ids]
            prefix = torch.tensor([len(row)]) if recipe.reads_both_sides else None
            return module(Row(torch.tensor([row]), prefix=prefix))[0][0]
        if recipe.input.start_last:
            row = [*ids, separator, start]
            return module(Row(torch.tensor([row]), torch.tensor([[0] * (len(row) - 1) + [2]])))[0][0]
        return module(Row(torch.tensor([[start, *ids, separator]])))[0][0]


@pytest.mark.parametrize("name", NAMES)
def test_vectors_are_pooled_states_of_rows_of_their_own(name, runs):
    run = runs[name]
    expected = [states_of(run, text) for text in TEXTS]
    pools = {"mean": lambda s: s.mean(0), "max": lambda s: s.amax(0), "last": lambda s: s[-1]}
    if name in ("bert-tiny", "conv-light-encoder-tiny"):
        pools["cls"] = lambda s: s[0]
    if name == "xlnet-tiny":
        pools["cls"] = lambda s: s[-1]
    for pooling, pool in pools.items():
        found = bakeoff.embed(run.path, TEXTS, pooling=pooling, device="cpu")
        assert found.dtype == np.float32
        wanted = torch.stack([pool(states) for states in expected]).numpy()
        scale = np.abs(wanted).max()
        np.testing.assert_allclose(found, wanted, atol=2e-5 * scale)
    if "cls" not in pools:
        with pytest.raises(UserError, match=r"have no \[CLS\]; pool by mean, max or last"):
            bakeoff.embed(run.path, TEXTS, pooling="cls")


def copy_to_bert(run):
    """transformers' BertModel with the weights of a run."""
    transformers = pytest.importorskip("transformers")
    model = run.load().model
    table, positions, segments = (getattr(model.embedding, n).weight for n in ("tokens", "positions", "segments"))
    _, second = model.stack.layers[0]
    config = transformers.BertConfig(
        vocab_size=len(table),
        hidden_size=table.shape[1],
        num_hidden_layers=len(model.stack.layers),
        num_attention_heads=run.recipe.model.encoder.block.mixer.heads,
        intermediate_size=len(second.function.input.weight),
        max_position_embeddings=len(positions),
        type_vocab_size=len(segments),
    )
    bert = transformers.BertModel(config, add_pooling_layer=False).eval()

    def load(module, weight, bias):
        module.weight.data, module.bias.data = weight.data.clone(), bias.data.clone()

    own = bert.embeddings
    for target, source in zip(
        (own.word_embeddings, own.position_embeddings, own.token_type_embeddings),
        (table, positions, segments),
        strict=True,
    ):
        target.weight.data = source.data.clone()
    load(own.LayerNorm, model.embedding.norm.weight, model.embedding.norm.bias)
    for layer, (mixer, network) in zip(bert.encoder.layer, model.stack.layers, strict=True):
        joint, attention = mixer.function.query_key_value, layer.attention
        parts = zip(joint.weight.chunk(3), joint.bias.chunk(3), strict=True)
        for target, (weight, bias) in zip(
            (attention.self.query, attention.self.key, attention.self.value), parts, strict=True
        ):
            load(target, weight, bias)
        for target, source in (
            (attention.output.dense, mixer.function.output),
            (attention.output.LayerNorm, mixer.norm),
            (layer.intermediate.dense, network.function.input),
            (layer.output.dense, network.function.output),
            (layer.output.LayerNorm, network.norm),
        ):
            load(target, source.weight, source.bias)
    return bert


def test_the_same_as_mean_pooling_of_transformers_bert(bert):
    theirs, tokenizer = copy_to_bert(bert), bert.tokenizer
    rows = [
        [tokenizer.start, *map(int, ids), tokenizer.separator] for ids, _ in tokenizer.encode(TEXTS[:3] + TEXTS[4:])
    ]
    texts = TEXTS[:3] + TEXTS[4:]
    width = max(map(len, rows))
    ids = torch.tensor([row + [tokenizer.pad] * (width - len(row)) for row in rows])
    mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in rows])
    with torch.no_grad():
        states = theirs(ids, attention_mask=mask, output_hidden_states=True).hidden_states
    pooled = [(each * mask[..., None]).sum(1) / mask.sum(1, keepdim=True) for each in states]
    for layers, expected in (
        ((-1,), pooled[-1]),
        ((2,), pooled[2]),
        ((0,), pooled[0]),
        ((1,), pooled[1]),
        ((1, -1), (pooled[1] + pooled[-1]) / 2),
        ((-3, 1, 2, 2), sum(pooled) / 3),
    ):
        found = bakeoff.embed(bert.path, texts, layers=layers, device="cpu")
        np.testing.assert_allclose(found, expected.numpy(), atol=2e-5)


def test_a_vector_does_not_depend_on_its_neighbours(bert, monkeypatch):
    together = bakeoff.embed(bert.path, TEXTS, device="cpu")
    for text, vector in zip(TEXTS, together, strict=True):
        np.testing.assert_allclose(bakeoff.embed(bert.path, [text], device="cpu")[0], vector, atol=1e-5)
    monkeypatch.setattr(embedding, "TEXTS_AT_ONCE", 3)
    doubled = bakeoff.embed(bert.path, [*reversed(TEXTS), "e\u0301 ", *TEXTS, "\u00e9"], device="cpu")
    np.testing.assert_allclose(doubled[-1 - len(TEXTS) : -1], together, atol=1e-5)
    assert (doubled[: len(TEXTS)][::-1] == doubled[-1 - len(TEXTS) : -1]).all()
    assert (doubled[len(TEXTS)] == doubled[-1]).all()
    assert bakeoff.embed(bert.path, [], device="cpu").shape == (0, bert.recipe.model.encoder.width)


def test_layers_of_both_directions_stand_side_by_side(runs):
    width = runs["elmo-tiny"].recipe.model.stack.output_width
    found = bakeoff.embed(runs["elmo-tiny"].path, TEXTS, layers=(1, 2), device="cpu")
    assert found.shape == (len(TEXTS), 2 * width)


@pytest.mark.parametrize("name", ["gpt2-tiny", "xlnet-tiny"])
def test_the_last_of_several_layers_is_behind_its_norm(name, runs):
    """As it is alone: gpt2-tiny has a norm after its layers that no layer owns."""
    first, last, both = (
        bakeoff.embed(runs[name].path, TEXTS, layers=each, device="cpu") for each in ((1,), (-1,), (1, -1))
    )
    np.testing.assert_allclose(both, (first + last) / 2, atol=2e-5 * np.abs(both).max())
    assert np.abs(first - last).max() > 1e-2


@pytest.mark.parametrize("name", NAMES)
def test_all_layers_at_once_are_as_each_is_alone(name, runs):
    found = Embedder(runs[name].path, VectorConfig(), "cpu").of_each_layer(TEXTS)
    for layer, vectors in enumerate(found):
        alone = bakeoff.embed(runs[name].path, TEXTS, layers=(layer,), device="cpu")
        np.testing.assert_allclose(vectors, alone, atol=2e-5 * np.abs(alone).max())
    last = bakeoff.embed(runs[name].path, TEXTS, device="cpu")
    np.testing.assert_allclose(found[-1], last, atol=2e-5 * np.abs(last).max())


def test_long_texts_are_cut(bert, capsys):
    embedder = Embedder(bert.path, VectorConfig(length=12), "cpu")
    long = "river " * 11
    vectors, cut = embedding.vectors_of(embedder, [long, "river " * 10, "river", long])
    assert cut == 2
    assert (vectors[0] == vectors[3]).all()
    np.testing.assert_allclose(vectors[0], vectors[1], atol=1e-5)
    status = command(["embed", str(bert.path), long, "river", " ", "--length", "12", "--device", "cpu"])
    captured = capsys.readouterr()
    assert status == 0
    printed = np.array([json.loads(line) for line in captured.out.splitlines()], np.float32)
    np.testing.assert_allclose(printed[:2], vectors[[0, 2]], atol=1e-5)
    assert captured.err.splitlines() == [
        "1 of 3 texts blank: the vector of a row without words",
        "1 of 3 texts cut to 12 tokens; see --length",
    ]


def test_the_vectors_of_a_file_stand_in_an_array_that_appears_whole(bert, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(embedding, "TEXTS_AT_ONCE", 4)
    path, out = tmp_path / "texts.jsonl", tmp_path / "vectors.npy"
    path.write_text("".join(json.dumps({"body": text}) + "\n" for text in TEXTS), encoding="utf-8")
    arguments = ["embed", str(bert.path), "--texts", str(path), "--text-column", "body", "--out", str(out)]
    assert command([*arguments, "--layers", "1,-1", "--device", "cpu"]) == 0
    found = np.load(out, mmap_mode="r")
    assert isinstance(found, np.memmap)
    expected = bakeoff.embed(bert.path, TEXTS, layers=[1, -1], device="cpu")
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert f"{out}: {len(TEXTS)} vectors of {expected.shape[1]} numbers" in capsys.readouterr().err
    assert command(arguments) == 2
    assert "vectors.npy: is there already; choose another --out" in capsys.readouterr().err
    out.unlink()

    def interrupted(embedder, texts):
        raise KeyboardInterrupt

    monkeypatch.setattr(embedding, "vectors_of", interrupted)
    assert command(arguments) == 130
    assert os.listdir(tmp_path) == ["texts.jsonl"]


def test_a_pipe_is_read_once(bert, tmp_path):
    pipe, out = tmp_path / "pipe", tmp_path / "vectors.npy"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=("river\n\nthe stone\n",))
    writer.start()
    assert command(["embed", str(bert.path), "--texts", str(pipe), "--device", "cpu", "--out", str(out)]) == 0
    writer.join()
    expected = bakeoff.embed(bert.path, ["river", "", "the stone"], device="cpu")
    np.testing.assert_allclose(np.load(out), expected, atol=1e-5)


def test_a_fine_tuned_run_gives_the_states_below_its_head(corpus, runs, tmp_path):
    rows = "".join(f"{text}\t{number % 2}\n" for number, text in enumerate(sentences(20, seed=6)))
    (tmp_path / "rows.tsv").write_text("text\tlabel\n" + rows, encoding="utf-8")
    task = bakeoff.ClassificationConfig(train=tmp_path / "rows.tsv", text_column="text", label_column="label")
    config = bakeoff.FinetuneConfig(epochs=1, least_steps=0, length=24)
    out = tmp_path / "run"
    bakeoff.finetune(runs["bert-tiny"].path, task, out, config=config, device="cpu", progress=False)
    head = FinetunedRun.open(out).load()
    tokenizer = runs["bert-tiny"].tokenizer
    (ids, _), *_ = tokenizer.encode(["river " * 30])
    row = torch.tensor([[tokenizer.start, *map(int, ids[:22]), tokenizer.separator]])
    with torch.no_grad():
        expected = head.model(Row(row))[0][0].mean(0).numpy()
    np.testing.assert_allclose(bakeoff.embed(out, ["river " * 30], device="cpu")[0], expected, atol=1e-5)
    before = bakeoff.embed(runs["bert-tiny"].path, ["river " * 30], device="cpu", length=24)[0]
    assert np.abs(before - expected).max() > 1e-4


def test_what_is_refused(bert, tmp_path, capsys, corpus):
    def refused(message, *arguments):
        assert command(["embed", *map(str, arguments), "--device", "cpu"]) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert message in captured.err
        assert captured.err.count("\n") == 1

    refused("layer 3: the model has 2; 0 is the input of the first", bert.path, "river", "--layers", "3")
    refused("layer -4: the model has 2", bert.path, "river", "--layers", "-4")
    refused("--layers 1;2: give whole numbers, with commas between them", bert.path, "river", "--layers", "1;2")
    refused("length: 1025 is more than the", bert.path, "river", "--length", "1025")
    refused("length: 0 is too short", bert.path, "river", "--length", "0")
    refused("v.npz: answers are written to a .npy", bert.path, "river", "--out", tmp_path / "v.npz")
    refused("none: no such folder", bert.path, "river", "--out", tmp_path / "none" / "v.npy")
    refused("no such run", tmp_path / "none", "river")
    (tmp_path / "empty.txt").touch()
    refused("the file holds no texts", bert.path, "--texts", tmp_path / "empty.txt", "--out", tmp_path / "v.npy")
    assert not (tmp_path / "v.npy").exists()
    run = untrained("bert-tiny", corpus, tmp_path / "damaged")
    tensors = load_file(run.path / "model.safetensors")
    save_file({name: tensor * float("nan") for name, tensor in tensors.items()}, run.path / "model.safetensors")
    (run.path / "bakeoff.sha256").unlink()
    refused("a vector has numbers that are not finite", run.path, "river")
