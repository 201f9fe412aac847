"""Whole trainings of vectors: every kind of model, exact after an interruption, and a run that the other verbs open."""

import json
import shutil
from itertools import product

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tests.conftest import sentences
from tests.interrupting import interrupt_at
from tests.untrained_runs import untrained

import bakeoff
from bakeoff.cli import run as command
from bakeoff.contrastive import contrast as module_of_contrast
from bakeoff.contrastive import speed
from bakeoff.contrastive.config import ContrastConfig
from bakeoff.contrastive.opened import Opened
from bakeoff.contrastive.setting import Setting
from bakeoff.contrastive.texts import texts_of
from bakeoff.contrastive.unit import CONTRAST, Contrast
from bakeoff.errors import Interrupted, UserError
from bakeoff.optimization.budget import Budget
from bakeoff.resources.device import Placement
from bakeoff.row import Row
from bakeoff.runs.run import Run
from bakeoff.tasks.rows.inputs import InputFormat
from bakeoff.trainer.step import NORM, add_gradients, optimize
from bakeoff.vectors.embedder import Embedder
from bakeoff.vectors.options import VectorConfig
from bakeoff.yaml_files import parse_value

FAMILIES = [
    *("bert-tiny", "gpt2-tiny", "conv-light-encoder-tiny", "laptop-hybrid-tiny", "xlnet-tiny", "gpt-bert-tiny"),
    *("bart-tiny", "elmo-tiny"),
]
TEXTS = [" ".join(pair) for pair in zip(sentences(60, seed=1), sentences(60, seed=2), strict=True)]
QUICK = {"budget": Budget(steps=4), "batch": 6, "evaluations": 2, "span": 16}
CPU = Placement(torch.device("cpu"), "float32")


@pytest.fixture(scope="module")
def runs(corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    plain = {"input.length": 32, "training.precision": "float32"}
    return {name: untrained(name, corpus, folder / name, **plain) for name in FAMILIES}


@pytest.fixture(scope="module")
def bert(runs):
    return runs["bert-tiny"]


@pytest.fixture(scope="module")
def taught(bert, tmp_path_factory):
    return teach(bert, tmp_path_factory.mktemp("taught") / "run", dropout=0.1)


def teach(run, out, resume=False, texts=TEXTS, **settings):
    config = ContrastConfig(**{**QUICK, **settings})
    return bakeoff.contrast(run, out, texts=texts, config=config, device="cpu", resume=resume, progress=False)


def unit_of(run, **settings):
    """What is trained, without a folder."""
    recipe, config = module_of_contrast._resolved(run, ContrastConfig(**{**QUICK, **settings}))
    format = InputFormat(run.tokenizer, recipe, config.length)
    read = texts_of([(text,) for text in TEXTS], "TEXTS", format, 0)
    setting = Setting(config, format, read, 4, 0, CPU, recipe.reads_both_sides, "test")
    return Contrast(Opened(run, recipe, setting).module(), setting)


@pytest.mark.parametrize("name", FAMILIES)
def test_the_vectors_that_learn_are_those_of_embed(name, runs):
    unit = unit_of(runs[name], rare=0)
    unit.module.eval()
    texts = ["The river finds the old stone.", "river", *TEXTS[:3]]
    ids = unit.setting.format.ids(texts)
    rows = [[each] for each in ids]
    same = torch.eye(1, dtype=torch.bool)
    with torch.no_grad():
        found = [unit.vectors(unit._micro_batch([row, row], same, np.arange(1), 0).row)[0].numpy() for row in rows]
    wanted = bakeoff.embed(runs[name].path, texts, device="cpu")
    np.testing.assert_allclose(np.stack(found), wanted, atol=2e-5 * np.abs(wanted).max())
    assert unit.width == wanted.shape[1]


@pytest.mark.parametrize("name", FAMILIES)
def test_every_kind_of_model_learns_to_tell_texts_apart(name, runs, tmp_path):
    many = [" ".join(pair) for pair in zip(sentences(300, seed=3), sentences(300, seed=4), strict=True)]
    made = teach(runs[name], tmp_path / "run", texts=many, budget=Budget(steps=30), learning_rate=3e-3, batch=16)
    before, *_, after = (line for line in made.metrics() if line["kind"] == "validation")
    assert after["loss"] < before["loss"]
    assert made.finished
    assert made.summary["validation"]["loss"] == after["loss"]
    assert bakeoff.embed(made.path, TEXTS[:2], device="cpu").shape == (2, unit_of(runs[name]).width)


@pytest.mark.parametrize("name", ["bert-tiny", "gpt2-tiny", "laptop-hybrid-tiny"])
def test_micro_batches_have_the_gradient_of_the_whole_batch(name, runs):
    gradients = []
    for size in (None, 4, 1):
        unit = unit_of(runs[name], micro_batch=size, batch=6)
        unit.begin()
        loss = add_gradients(unit, unit.batches(1), 1)[CONTRAST]
        named = unit.module.named_parameters()
        gradients.append((float(loss), {key: each.grad for key, each in named if each.grad is not None}))
    (loss, whole), *others = gradients
    scale = max(float(each.abs().max()) for each in whole.values())
    for other, cut in others:
        assert other == pytest.approx(loss, rel=1e-5)
        assert cut.keys() == whole.keys()
        for key, each in cut.items():
            torch.testing.assert_close(each, whole[key], atol=2e-5 * scale, rtol=0)


def test_dropout_is_the_same_in_both_passes_of_a_batch_that_is_cut(bert):
    unit = unit_of(bert, micro_batch=2, dropout=0.3, views="whole", deletion=0.0)
    unit.begin()
    seen, exact = [], unit.vectors

    def noted(row: Row):
        seen.append(exact(row))
        return seen[-1]

    unit.vectors = noted
    optimize(unit, unit.batches(0), 0)
    assert len(seen) == 6
    for first, second in zip(seen[:3], seen[3:], strict=True):
        torch.testing.assert_close(first, second.detach(), atol=1e-6, rtol=0)
        assert not torch.allclose(first[:2], first[2:], atol=1e-2)  # two views of the same words


def test_dropout_of_the_training_is_not_that_of_the_run(bert, taught):
    assert taught.recipe == bert.recipe
    assert taught.environment["vectors"]["dropout"] == 0.1
    assert unit_of(bert, dropout=0.25).module.model.dropout == 0.25


@pytest.mark.parametrize("settings", [{"dropout": 0.1}, {"micro_batch": 4}, {"average": {"kind": "ema", "share": 0.5}}])
def test_an_interrupted_training_ends_with_the_same_bits(settings, bert, tmp_path, monkeypatch):
    whole = teach(bert, tmp_path / "whole", **settings)
    with monkeypatch.context() as patch:
        interrupt_at(patch, 1)
        with pytest.raises(Interrupted, match=r"stopped at step 2; the same command with --resume goes on"):
            teach(bert, tmp_path / "cut", **settings)
    assert not (tmp_path / "cut").exists()
    with pytest.raises(UserError, match=r"cut: this run has not finished; its command goes on with --resume"):
        bakeoff.embed(tmp_path / "cut", ["a river"])
    with pytest.raises(UserError, match=r"begun with setting of the training\.batch 6, not 5; choose another --out"):
        teach(bert, tmp_path / "cut", resume=True, **settings, batch=5)
    with pytest.raises(UserError, match="begun with another texts"):
        teach(bert, tmp_path / "cut", resume=True, texts=TEXTS[1:], **settings)
    again = teach(bert, tmp_path / "cut", resume=True, **settings)
    assert (again.path / "model.safetensors").read_bytes() == (whole.path / "model.safetensors").read_bytes()
    figures = [[line for line in run.metrics() if line["kind"] == "validation"] for run in (whole, again)]
    for line in (each for lines in figures for each in lines):
        del line["seconds"]
    assert figures[0] == figures[1]
    assert teach(bert, tmp_path / "cut", resume=True, **settings).path == again.path
    with pytest.raises(UserError, match=r"what is there is finished: choose another --out"):
        teach(bert, tmp_path / "cut", resume=True, **settings, temperature=0.1)


def test_another_seed_is_another_training_and_the_same_seed_the_same(bert, taught, tmp_path):
    again = teach(bert, tmp_path / "again", dropout=0.1)
    weights = [load_file(run.path / "model.safetensors") for run in (taught, again)]
    assert all(torch.equal(weights[1][name], each) for name, each in weights[0].items())
    other = bakeoff.contrast(
        bert, tmp_path / "other", texts=TEXTS, config=ContrastConfig(**QUICK, dropout=0.1), seed=1, device="cpu"
    )
    assert not torch.equal(
        load_file(other.path / "model.safetensors")["model.embedding.tokens.weight"],
        weights[0]["model.embedding.tokens.weight"],
    )


def test_heads_stay_as_they_were(bert, taught):
    before, after = (load_file(run.path / "model.safetensors") for run in (bert, taught))
    heads = [name for name in before if name.startswith("heads.")]
    assert heads
    assert all(torch.equal(before[name], after[name]) for name in heads)


def test_the_pooling_that_was_taught_is_that_of_embed(bert, tmp_path, capsys):
    made = teach(bert, tmp_path / "run", pooling="max")
    wanted = bakeoff.embed(made.path, TEXTS[:3], pooling="max", device="cpu")
    np.testing.assert_array_equal(bakeoff.embed(made.path, TEXTS[:3], device="cpu"), wanted)
    np.testing.assert_array_equal(bakeoff.load(made.path, device="cpu").embed(TEXTS[:3]), wanted)
    assert Embedder(made.path, VectorConfig(), "cpu").pooling == "max"
    assert np.abs(bakeoff.embed(made.path, TEXTS[:3], pooling="mean", device="cpu") - wanted).max() > 1e-2
    assert command(["embed", str(made.path), "river stone", "--per", "word", "--device", "cpu"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_views_that_nothing_makes_unlike_are_refused(bert, tmp_path):
    for run, settings in ((bert, {}), (bert, {"dropout": 0.0})):
        with pytest.raises(UserError, match=r"views: whole: the two views of a text are one and the same, .* dropout"):
            teach(run, tmp_path / "run", views="whole", **settings)
    assert teach(bert, tmp_path / "run", views="whole", dropout=0.1).metrics()


def test_exports_of_states_say_that_what_was_taught_stays(taught, bert, tmp_path):
    pytest.importorskip("transformers")
    remarks = [bakeoff.export(run.path, tmp_path / name).remarks for run, name in ((taught, "taught"), (bert, "plain"))]
    said = [any("`--to sentence-transformers` writes it" in each for each in some) for some in remarks]
    assert said == [True, False]


def test_layers_that_are_named_are_read_whatever_was_taught(bert, tmp_path, capsys):
    made = teach(bert, tmp_path / "run", pooling="max", layers=(0,), whiten=False)
    last = bakeoff.embed(made.path, TEXTS[:3], pooling="mean", device="cpu")
    np.testing.assert_array_equal(bakeoff.embed(made.path, TEXTS[:3], layers=[-1], device="cpu"), last)
    np.testing.assert_array_equal(bakeoff.load(made.path, device="cpu").embed(TEXTS[:3], layers=[-1]), last)
    assert command(["embed", str(made.path), TEXTS[0], "--layers", "-1", "--device", "cpu"]) == 0
    np.testing.assert_allclose(json.loads(capsys.readouterr().out), last[0], rtol=1e-5)
    (tmp_path / "pairs.tsv").write_text("one\tother\nriver stone\tthe river\na hill\tthe hills\n", encoding="utf-8")
    columns = {"text_column": "one", "pair_column": "other"}
    found = bakeoff.similarity(made.path, tmp_path / "pairs.tsv", device="cpu", **columns)
    assert (found["pooling"], found["layers"]) == ("max", [0])


def test_a_run_is_tuned_measured_and_exported(taught, bert, corpus, tmp_path):
    rows = "".join(f"{text}\t{number % 2}\n" for number, text in enumerate(sentences(20, seed=6)))
    (tmp_path / "rows.tsv").write_text("text\tlabel\n" + rows, encoding="utf-8")
    task = bakeoff.ClassificationConfig(train=tmp_path / "rows.tsv", text_column="text", label_column="label")
    config = bakeoff.FinetuneConfig(epochs=1, least_steps=0)
    result = bakeoff.finetune(taught.path, task, tmp_path / "tuned", config=config, device="cpu", progress=False)
    assert result.transferred_tensors > 0
    assert np.isfinite(bakeoff.evaluate(taught.path, corpus=corpus.path, device="cpu")["losses"]["mlm"])
    (entry,) = bakeoff.list_runs([taught.path])
    assert (entry.state, entry.step, entry.steps) == ("finished", 4, 4)
    assert entry.loss == taught.summary["validation"]["loss"]
    more = bakeoff.contrast(taught, tmp_path / "more", corpus=corpus.path, config=ContrastConfig(**QUICK), device="cpu")
    assert more.environment["corpus"] == {"path": str(corpus.path), "fingerprint": corpus.fingerprint}
    assert str(taught.path) in more.environment["origin"]


def test_vectors_of_several_layers_are_exported_nowhere_as_those_of_the_last(bert, tmp_path):
    made = teach(bert, tmp_path / "run", layers=(0, -1), whiten=False, rare=0.0, budget=Budget(steps=2))
    for to, library in (("gguf", "gguf"), ("sentence-transformers", "transformers")):
        pytest.importorskip(library)
        with pytest.raises(UserError, match=r"run: its vectors are of the layers 0,-1; .* reads the last alone"):
            bakeoff.export(made.path, tmp_path / "out", to=to)


def test_budgets_become_steps(bert, tmp_path, monkeypatch):
    unit = unit_of(bert)
    tokens = np.mean([sum(batch.tokens for batch in unit.batches(step)) for step in range(3)])
    assert teach(bert, tmp_path / "a", budget=Budget(tokens=round(3 * tokens))).summary["steps"] == 3
    monkeypatch.setattr(speed, "_seconds", lambda unit: 10.0)
    assert teach(bert, tmp_path / "b", budget=Budget(minutes=0.5)).summary["steps"] == 3
    with pytest.raises(UserError, match="words of texts are not counted"):
        teach(bert, tmp_path / "c", budget=Budget(words=10))


def test_blank_and_repeated_texts_are_left_out(bert):
    format = InputFormat(bert.tokenizer, bert.recipe, 32)
    texts = ["river stone", " ", "river  stone", "the old river", "", "stone", "the stone"]
    read = texts_of([(text,) for text in texts], "F", format, 0)
    assert read.notes == ["2 of 7 texts blank: left out", "1 of 7 texts repeat others: each is read once"]
    assert (read.train.count, read.held_out.count) == (2, 2)
    held = {part[index].tobytes() for part in (read.train, read.held_out) for index in range(2)}
    assert held == {ids.tobytes() for ids in format.ids(["river stone", "the old river", "stone", "the stone"])}


def test_a_twentieth_of_the_texts_is_held_out_and_no_more_than_are_compared_at_once(bert):
    format = InputFormat(bert.tokenizer, bert.recipe, 32)
    words = ["river", "stone", "old", "the", "house", "green", "is", "new"]
    different = [f"{a} {b} {c} {d} {e}" for a, b, c, d, e in product(words, repeat=5)]
    for count, held_out in ((100, 5), (2000, 100), (20_000, 512)):
        read = texts_of([(text,) for text in different[:count]], "F", format, 0)
        assert (read.train.count, read.held_out.count) == (count - held_out, held_out)


def test_what_the_tokenizer_does_not_know_is_said_and_texts_of_it_alone_are_refused(bert):
    format = InputFormat(bert.tokenizer, bert.recipe, 32)
    known = ["river stone", "the old river", "stone", "the stone"]
    (note,) = texts_of([(text,) for text in [*known, "river ไทย"]], "F", format, 0).notes
    assert "1 of 10 tokens (10.0 %) are unknown and hide 3 of 42 characters (7.1 %), such as 'ไทย'" in note
    unknown = ["ไทย", "ไทย ไทย", "ไทย ไทย ไทย", "ไทย ไทย ไทย ไทย"]
    with pytest.raises(UserError, match=r"F: 10 of 10 tokens .* unknown and hide .*; give a run whose tokenizer knows"):
        texts_of([(text,) for text in unknown], "F", format, 0)


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("layers", "1,-1", (1, -1)),
        ("layers", "-1", (-1,)),
        ("layers", "[0, -1]", (0, -1)),
        ("crop", "0.1,0.5", (0.1, 0.5)),
    ],
)
def test_several_numbers_are_given_as_embed_takes_them(key, text, value):
    config = ContrastConfig.parse({key: parse_value(text, key)}, "--option")
    assert getattr(config, key) == value
    with pytest.raises(UserError, match=f"^--option: {key}"):
        ContrastConfig.parse({key: "1,a"}, "--option")


def test_few_texts_fewer_than_a_batch_are_learned_from_and_it_is_said(bert, tmp_path, capsys):
    (tmp_path / "texts.txt").write_text("river\nstone\nthe old river\na\n")
    given = ["contrast", str(bert.path), "--texts", str(tmp_path / "texts.txt"), "--budget", "steps=2"]
    for batch, cut in ((64, True), (2, False)):
        out = str(tmp_path / f"run-{batch}")
        assert command([*given, "--out", out, "--option", f"batch={batch}", "--device", "cpu", "--json"]) == 0
        captured = capsys.readouterr()
        assert np.isfinite(json.loads(captured.out)["validation"]["loss"])
        assert ("a batch has 2 texts in place of 64: there are no more to learn from" in captured.err) == cut


def refused(capsys, message, *arguments):
    status = command(["contrast", *map(str, arguments), "--device", "cpu"])
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""
    assert status == 2


def test_what_is_refused(bert, runs, taught, corpus, tmp_path, capsys):
    out = tmp_path / "out"
    file = tmp_path / "texts.txt"
    file.write_text("one\none\n\none\n", encoding="utf-8")
    to = ["--out", out]
    refused(
        capsys, "texts.txt: 1 different text with words; telling texts apart needs 4", bert.path, "--texts", file, *to
    )
    file.write_text("", encoding="utf-8")
    refused(capsys, "texts.txt: 0 different texts with words", bert.path, "--texts", file, *to)
    file.write_text("\n".join(TEXTS), encoding="utf-8")
    refused(capsys, "give the texts to learn from: a file of texts", bert.path, *to)
    refused(capsys, "its lines are the texts", bert.path, "--texts", file, "--text-column", "a", *to)
    refused(capsys, "--text-column names a column", bert.path, "--corpus", corpus.path, "--text-column", "a", *to)
    refused(capsys, "no such run", tmp_path / "none", "--texts", file, *to)
    refused(capsys, "unknown key 'rate'", bert.path, "--texts", file, *to, "--option", "rate=1")
    refused(capsys, "no [CLS]; pool by", runs["gpt2-tiny"].path, "--texts", file, *to, "--option", "pooling=cls")
    refused(capsys, "length: 5000 is more than", bert.path, "--texts", file, *to, "--option", "length=5000")
    refused(capsys, "holds a run already; choose another --out", bert.path, "--texts", file, "--out", taught.path)
    assert not out.exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["texts.txt"]


def test_the_command_says_what_was_learned(bert, tmp_path, capsys):
    lines = "".join(json.dumps({"body": text}) + "\n" for text in TEXTS)
    (tmp_path / "texts.jsonl").write_text(lines, encoding="utf-8")
    words = ["contrast", bert.path, "--texts", tmp_path / "texts.jsonl", "--text-column", "body"]
    words += ["--out", tmp_path / "run", "--budget", "steps=2", "--option", "batch=8", "--device", "cpu"]
    assert command(list(map(str, words))) == 0
    printed = capsys.readouterr()
    rows = dict(line.split("  ", 1) for line in printed.out.splitlines())
    assert rows["trained"].strip().startswith("2 steps, ")
    assert "the weighted mean of the last layer's states" in rows["vectors"]
    assert {"held-out before", "held-out after"} <= rows.keys()
    run = Run(tmp_path / "run")
    assert run.environment["corpus"]["path"] == str(tmp_path / "texts.jsonl")
    card = (run.path / "README.md").read_text(encoding="utf-8")
    assert "taught without labels: the mean" in card
    shutil.rmtree(run.path)
    given = ["--option", "views=whole", "--option", "deletion=0.1", "--json"]
    assert command([*map(str, words), *given]) == 0
    assert json.loads(capsys.readouterr().out)["steps"] == 2
    shutil.rmtree(run.path)
    assert command([*map(str, words), "--option", "layers=0,-1"]) == 0
    assert "the weighted mean of the states of layers 0 and -1" in capsys.readouterr().out
    card = (run.path / "README.md").read_text(encoding="utf-8")
    assert "taught without labels: the mean of the states of layers 0 and -1 |" in card


def test_a_loss_that_is_no_number_ends_the_training(bert, tmp_path):
    unit = unit_of(bert)
    with pytest.raises(UserError, match=r"is not a finite number at step 1; try a lower learning_rate"):
        unit.require_finite({CONTRAST: float("nan"), NORM: 0.0}, 1)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("whiten", [True, False])
def test_too_few_texts_for_whitening_are_noted(whiten, bert, tmp_path, capsys):
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS[:20]), encoding="utf-8")
    given = ["contrast", str(bert.path), "--texts", str(tmp_path / "texts.txt"), "--out", str(tmp_path / "run")]
    options = ["--option", f"whiten={str(whiten).lower()}", "--budget", "steps=1", "--device", "cpu"]
    assert command([*given, *options]) == 0
    noted = "vectors are not whitened: there are 18 texts, and vectors of 32 numbers need" in capsys.readouterr().err
    assert noted == whiten


def test_vectors_are_weighted_and_whitened_as_the_settings_say(bert, tmp_path):
    """Of the texts that were learned from: no number is correlated with another, and all vary alike."""
    many = [f"{one} {other}" for one, other in zip(sentences(150, seed=3), sentences(150, seed=4), strict=True)]
    made = teach(bert, tmp_path / "run", texts=many, budget=Budget(steps=2), learning_rate=1e-5)
    plain, vectors = (bakeoff.embed(made.path, many, pooling=each, device="cpu") for each in ("mean", None))
    unit = unit_of(bert)
    format = unit.setting.format
    read = texts_of([(text,) for text in many], "", format, 0)
    train = {read.train[index].tobytes() for index in range(read.train.count)}
    learned = np.array([ids.tobytes() in train for ids in format.ids(many)])
    covariance = np.cov(vectors[learned].T.astype(np.float64))
    vary = np.diag(covariance) > 1e-6
    np.testing.assert_allclose(covariance[vary][:, vary], np.eye(vary.sum()), atol=0.02)
    assert vary.sum() > 16
    assert np.abs(np.cov(plain.T) - np.eye(plain.shape[1])).max() > 0.1
    kept = np.concatenate([ids for ids in format.ids(many) if ids.tobytes() in train])
    shares = np.bincount(kept, minlength=bert.tokenizer.size) / len(kept)
    weights = load_file(made.path / "vectors.safetensors")["token_weights"].numpy()
    words = np.flatnonzero(shares)
    np.testing.assert_allclose(weights[words], 1e-3 / (1e-3 + shares[words]), rtol=1e-5)
    row = format.framed(format.ids(many[:1])).ids[0]
    states = bakeoff.load(made.path, device="cpu").hidden([row.tolist()])[0].numpy()
    row = weights[row]
    layer = load_file(made.path / "vectors.safetensors")
    mean = (states * row[:, None]).sum(0) / row.sum()
    np.testing.assert_allclose(vectors[0], layer["weight"].numpy() @ mean + layer["bias"].numpy(), atol=1e-3)
    beside, alone = (
        bakeoff.embed(made.path, texts, device="cpu")[-1] for texts in ([many[0], "A river."], ["A river."])
    )
    np.testing.assert_allclose(beside, alone, atol=1e-4)  # padding has no weight
