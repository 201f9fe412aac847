"""Pre-training through its public function: exact resume, interruption, budgets, failures, what a run holds."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from functools import partial

import pytest
import torch
from safetensors.torch import load_file
from tests.conftest import crossed, sentences, shrink
from tests.interrupting import interrupt_at

from bakeoff.corpus.mixture import open_corpus
from bakeoff.errors import Interrupted, UserError
from bakeoff.inspection.peek import peek
from bakeoff.optimization.budget import Budget
from bakeoff.preparation.prepare import prepare
from bakeoff.recipe_files import load_recipe
from bakeoff.resources.costs import costs_of
from bakeoff.resources.device import resolve_precision
from bakeoff.runs import beginning
from bakeoff.runs.run import Run
from bakeoff.tokenizer.tokenizer_config import TokenizerConfig
from bakeoff.trainer import loop
from bakeoff.training import pretraining
from bakeoff.training.pretrain import pretrain
from bakeoff.training.resolution import resolve_recipe
from bakeoff.training.speed import step_times
from bakeoff.yaml_files import dump_yaml, read_yaml

RECIPES = ["bert-tiny", "albert-tiny", "gpt-tiny", "transformer-xl-tiny", "lstm-lm-tiny", "conv-light-encoder-tiny"]
QUICK = ("albert-tiny", "transformer-xl-tiny", "conv-light-encoder-tiny")
"""Recipes with LAMB, with a memory, with neither: whenever tests are run; the others are crossings."""


def train(recipe, corpus, out, **options):
    return pretrain(recipe, corpus.path, out, progress=False, device="cpu", **options)


def weights(run):
    return load_file(run.path / "model.safetensors")


def course(run):
    """The metrics without what the clock decides."""
    timed = ("seconds", "tokens_per_second")
    return [{key: value for key, value in line.items() if key not in timed} for line in run.metrics()]


@pytest.mark.parametrize("name", crossed([*RECIPES, "transformer-translation-tiny"], QUICK))
def test_interrupted_and_resumed_equals_uninterrupted_bit_for_bit(name, corpus, parallel_corpus, tmp_path, monkeypatch):
    """With a validation between the interruptions."""
    monkeypatch.setattr(pretraining, "FEWEST_STEPS_BETWEEN_VALIDATIONS", 5)
    changes = {"training.budget": {"steps": 10}, "training.micro_batch": 5, "model.dropout": 0.1}
    if name == "transformer-translation-tiny":
        corpus = parallel_corpus
        changes |= {"training.batch": {"tokens": 160}, "training.micro_batch": {"tokens": 64}}
    if name == "albert-tiny":
        changes["training.optimizer"] = {"kind": "lamb", "lr": 1e-2}
    recipe = shrink(name, **changes)
    whole = train(recipe, corpus, tmp_path / "whole", seed=3)
    with monkeypatch.context() as patch:
        interrupt_at(patch, 2)
        with pytest.raises(Interrupted, match=r"stopped at step 3; .* --resume continues"):
            train(recipe, corpus, tmp_path / "parts", seed=3)
    assert not Run.open(tmp_path / "parts").finished
    with monkeypatch.context() as patch:
        interrupt_at(patch, 6)
        with pytest.raises(Interrupted):
            train(recipe, corpus, tmp_path / "parts", seed=3, resume=True)
    parts = train(recipe, corpus, tmp_path / "parts", seed=3, resume=True)
    assert [line["step"] for line in whole.metrics() if line["kind"] == "validation"] == [0, 5, 10]
    expected = weights(whole)
    for key, value in weights(parts).items():
        assert torch.equal(value, expected[key]), key
    assert course(parts) == course(whole)
    assert parts.summary["tokens"] == whole.summary["tokens"]


OPTIMIZERS = [
    {"kind": "sgd", "lr": 0.1, "momentum": 0.9},
    {"kind": "nag", "lr": 0.1, "weight_decay": 0.1},
    {"kind": "adafactor", "lr": 0.02},
]


@pytest.mark.parametrize(
    "optimizer",
    [pytest.param(each, id=each["kind"], marks=[pytest.mark.slow] * (each["kind"] == "nag")) for each in OPTIMIZERS],
)
def test_every_optimizer_and_the_plateau_resume_bit_for_bit(optimizer, corpus, tmp_path, monkeypatch):
    """The plateau's losses come from the metrics; here none is low enough, so that every second one halves the rate."""
    monkeypatch.setattr(pretraining, "FEWEST_STEPS_BETWEEN_VALIDATIONS", 2)
    changes = {
        "training.budget": {"steps": 18},
        "training.optimizer": optimizer,
        "training.schedule": {"kind": "plateau", "warmup": 2, "patience": 1, "threshold": 0.9},
        "training.batch": 2,
        "input.length": 8,
        "model.encoder.layers": 1,
    }
    recipe = shrink("conv-light-encoder-tiny", **changes)
    whole = train(recipe, corpus, tmp_path / "whole", seed=3)
    rates = [line["learning_rate"] / optimizer["lr"] for line in whole.metrics() if line["kind"] == "train"]
    assert {1.0, 0.5, 0.25, 0.125} <= set(rates)
    for number in (6, 13):  # between two validations, and where one has just been made
        with monkeypatch.context() as patch:
            interrupt_at(patch, number)
            with pytest.raises(Interrupted):
                train(recipe, corpus, tmp_path / "parts", seed=3, resume=True)
    parts = train(recipe, corpus, tmp_path / "parts", seed=3, resume=True)
    expected = weights(whole)
    for key, value in weights(parts).items():
        assert torch.equal(value, expected[key]), key
    assert course(parts) == course(whole)


def test_another_seed_gives_other_weights_and_the_same_seed_the_same(corpus, tmp_path):
    recipe = shrink("bert-tiny")
    first, second, third = (train(recipe, corpus, tmp_path / str(i), seed=seed) for i, seed in enumerate((0, 0, 1)))
    key = "model.embedding.tokens.weight"
    assert torch.equal(weights(first)[key], weights(second)[key])
    assert not torch.equal(weights(first)[key], weights(third)[key])


def test_training_learns(corpus, tmp_path):
    recipe = shrink("conv-light-encoder-tiny", **{"training.optimizer.lr": 4e-2, "training.batch": 16})
    run = train(recipe, corpus, tmp_path / "run", budget=Budget(steps=150))
    lines = [line for line in run.metrics() if line["kind"] == "validation"]
    assert lines[-1]["losses"]["mlm"] < run.summary["unigram_entropy"] < lines[0]["losses"]["mlm"]
    assert lines[-1]["accuracy"]["mlm"] > 2 * lines[0]["accuracy"]["mlm"]


def test_a_finished_run_holds_what_the_design_promises(corpus, tmp_path):
    run = train(shrink("bert-tiny"), corpus, tmp_path / "run", seed=7)
    files = {"recipe.yaml", "tokenizer.json", "environment.json", "metrics.jsonl", "model.safetensors", "summary.json"}
    assert files | {"README.md", "bakeoff.sha256"} == {path.name for path in run.path.iterdir()}
    summary = run.summary
    assert (summary["steps"], summary["seed"]) == (12, 7)
    assert summary["corpus_fingerprint"] == corpus.fingerprint
    assert summary["flops"] == summary["tokens"] * summary["flops_per_token"]
    precision = resolve_precision("auto", torch.device("cpu"))
    assert run.environment["precision"] == run.recipe.training.precision == precision
    last = [line for line in run.metrics() if line["kind"] == "validation"][-1]
    assert summary["validation"] == last
    assert last["perplexity"].keys() == last["bits_per_byte"].keys() == {"mlm"}
    assert last["loss"] == pytest.approx(last["losses"]["mlm"] + last["losses"]["nsp"])
    module = run.load()
    assert sum(parameter.numel() for parameter in module.parameters()) == summary["parameters"]


@pytest.mark.skipif(sys.platform != "linux", reason="the system's figures")
def test_what_the_process_held_before_is_no_memory_of_a_training(corpus, tmp_path):
    """As in a comparison, whose trainings follow each other in one process."""
    alone = train(shrink("bert-tiny"), corpus, tmp_path / "alone").summary
    held = bytearray(os.urandom(1000)) * 400_000
    beside = train(shrink("bert-tiny"), corpus, tmp_path / "beside").summary
    assert beside["peak_memory_bytes"] > len(held)
    assert 0 <= beside["training_memory_bytes"] <= alone["training_memory_bytes"] + 30_000_000
    assert alone["training_memory_bytes"] < 200_000_000 < alone["peak_memory_bytes"]


def test_bits_per_byte_of_a_causal_model_are_its_compression(corpus, tmp_path):
    recipe = shrink("gpt-tiny", **{"training.validation_examples": 10_000})
    last = train(recipe, corpus, tmp_path / "run").summary["validation"]
    split = corpus.validation
    targets = len(split.tokens) + len(split.documents) - 1  # every token, and a separator for every document
    bits = last["losses"]["clm"] * targets / 0.6931471805599453
    assert last["bits_per_byte"]["clm"] == pytest.approx(bits / split.bytes)


def test_the_budget_in_minutes_becomes_steps_once_and_is_recorded(corpus, tmp_path, monkeypatch):
    """It is measured for five seconds otherwise."""
    monkeypatch.setattr("bakeoff.training.resolution.step_times", partial(step_times, seconds=0.2))
    recipe = shrink("conv-light-encoder-tiny", **{"training.compile": "auto"})
    settled = resolve_recipe(recipe, corpus, Budget(minutes=0.2), "cpu")
    steps = settled.training.budget.steps
    assert steps is not None
    assert steps > 10
    assert settled.training.compile is False
    assert settled.training.schedule.warmup == round(0.2 * steps)
    run = train(recipe, corpus, tmp_path / "run", budget=Budget(tokens=2560))
    assert run.recipe.training.budget == Budget(steps=10)
    again = train(run.recipe, corpus, tmp_path / "again")
    assert torch.equal(weights(run)["heads.mlm.bias"], weights(again)["heads.mlm.bias"])


@pytest.mark.parametrize(
    ("options", "changes", "message"),
    [
        ({"seed": 1}, {}, "begun with seed 0, not 1"),
        ({}, {"training.optimizer.lr": 5e-4}, "begun with training.optimizer.lr 0.001, not 0.0005"),
    ],
)
def test_resuming_with_other_settings_is_refused(options, changes, message, corpus, tmp_path, monkeypatch):
    recipe = shrink("bert-tiny")
    interrupt_at(monkeypatch, 4)
    with pytest.raises(Interrupted):
        train(recipe, corpus, tmp_path / "run")
    with pytest.raises(UserError, match=message):
        train(recipe.changed(changes), corpus, tmp_path / "run", resume=True, **options)


def test_an_existing_run_is_not_overwritten(corpus, tmp_path):
    recipe = shrink("bert-tiny")
    train(recipe, corpus, tmp_path / "cut", until=1)
    with pytest.raises(UserError, match="cut: holds an unfinished run already; --resume goes on with it, or"):
        train(recipe, corpus, tmp_path / "cut")
    run = train(recipe, corpus, tmp_path / "run")
    with pytest.raises(UserError, match="holds a run already"):
        train(recipe, corpus, tmp_path / "run")
    before = (run.path / "summary.json").stat().st_mtime_ns
    train(recipe, corpus, tmp_path / "run", resume=True)  # finished: nothing to do
    assert (run.path / "summary.json").stat().st_mtime_ns == before
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(UserError, match="holds something else already"):
        train(recipe, corpus, tmp_path / "other")


def test_a_loss_that_is_no_number_stops_and_keeps_the_last_good_checkpoint(corpus, tmp_path, monkeypatch):
    recipe = shrink("bert-tiny", **{"training.checkpoint_minutes": 1e-9})
    exact = loop.optimize

    def breaks(unit, parts, index):
        if index == 6:
            next(unit.module.parameters()).data.fill_(float("nan"))
        return exact(unit, parts, index)

    with monkeypatch.context() as patch:
        patch.setattr(loop, "optimize", breaks)
        with pytest.raises(
            UserError, match=r"mlm is not a finite number at step 7; .* step-00000006; try a lower"
        ) as told:
            train(recipe, corpus, tmp_path / "run")
    run = Run.open(tmp_path / "run")
    assert ("training.precision=float32" in str(told.value)) != (run.recipe.training.precision == "float32")
    assert not run.finished
    kept = sorted(run.checkpoints.iterdir())
    assert [each.name for each in kept] == ["step-00000005", "step-00000006"]  # of those that every step has saved
    newest = kept[-1]
    assert all(tensor.isfinite().all() for tensor in load_file(newest / "model.safetensors").values())
    assert train(recipe, corpus, tmp_path / "run", resume=True).summary["steps"] == 12


def test_figures_read_seldom_are_the_same_and_name_the_same_step(corpus, tmp_path, monkeypatch):
    recipe = shrink("bert-tiny", **{"training.budget": {"steps": 20}})
    often = train(recipe, corpus, tmp_path / "often")
    monkeypatch.setitem(loop.READ_EVERY, "cpu", 7)
    monkeypatch.setattr(pretraining, "TRAIN_LINES", 4)
    seldom = train(recipe, corpus, tmp_path / "seldom")
    assert torch.equal(weights(often)["heads.mlm.bias"], weights(seldom)["heads.mlm.bias"])
    first = [line["loss"] for line in often.metrics() if line["kind"] == "train"]
    second = [line["loss"] for line in seldom.metrics() if line["kind"] == "train"]
    assert second == pytest.approx([sum(first[i : i + 5]) / 5 for i in range(0, 20, 5)])
    exact = loop.optimize

    def breaks(unit, parts, index):
        if index == 11:
            next(unit.module.parameters()).data.fill_(float("nan"))
        return exact(unit, parts, index)

    monkeypatch.setattr(loop, "optimize", breaks)
    with pytest.raises(UserError, match="mlm is not a finite number at step 12;"):
        train(recipe, corpus, tmp_path / "broken")


def test_a_signal_during_validation_saves_too(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(pretraining, "FEWEST_STEPS_BETWEEN_VALIDATIONS", 6)
    recipe = shrink("bert-tiny")
    exact, calls = pretraining.validate, []

    def interrupted(*arguments):
        calls.append(1)
        if len(calls) == 2:  # the first one is at step 0
            os.kill(os.getpid(), signal.SIGTERM)
        return exact(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(pretraining, "validate", interrupted)
        with pytest.raises(Interrupted, match="stopped at step 6"):
            train(recipe, corpus, tmp_path / "run")
    assert [path.name for path in Run.open(tmp_path / "run").checkpoints.iterdir()] == ["step-00000006"]
    resumed = train(recipe, corpus, tmp_path / "run", resume=True)
    assert course(resumed) == course(train(recipe, corpus, tmp_path / "whole"))


def test_half_a_line_of_metrics_does_not_stop_a_resume(corpus, tmp_path, monkeypatch):
    recipe = shrink("bert-tiny")
    with monkeypatch.context() as patch:
        interrupt_at(patch, 4)
        with pytest.raises(Interrupted):
            train(recipe, corpus, tmp_path / "run")
    with open(tmp_path / "run" / "metrics.jsonl", "a", encoding="utf-8") as file:
        file.write('{"kind": "train", "step": 6, "los')
    resumed = train(recipe, corpus, tmp_path / "run", resume=True)
    assert course(resumed) == course(train(recipe, corpus, tmp_path / "whole"))


def test_next_sentence_prediction_refuses_one_document_and_leaves_nothing(tmp_path):
    text = "\n\n".join(f"One sentence number {i} here. And another one follows it." for i in range(400))
    (tmp_path / "one.txt").write_text(text, encoding="utf-8")
    single = prepare(tmp_path / "one.txt", tmp_path / "corpus", tokenizer=TokenizerConfig(size=120), validation=0.2)
    assert single.summary()["documents"] == 1
    with pytest.raises(UserError, match="nsp takes text from other documents"):
        train(shrink("bert-tiny"), single, tmp_path / "run")
    assert not (tmp_path / "run").exists()
    assert train(shrink("albert-tiny"), single, tmp_path / "run").finished


@pytest.mark.parametrize("part", ["model.safetensors", "optimizer.safetensors", "state.json"])
def test_a_damaged_checkpoint_is_named_and_the_one_before_can_be_used(part, corpus, tmp_path, monkeypatch):
    recipe = shrink("bert-tiny", **{"training.checkpoint_minutes": 1e-9})
    with monkeypatch.context() as patch:
        interrupt_at(patch, 8)
        with pytest.raises(Interrupted):
            train(recipe, corpus, tmp_path / "run")
    earlier, newest = sorted((tmp_path / "run" / "checkpoints").iterdir())
    content = (newest / part).read_bytes()
    (newest / part).write_bytes(content[: len(content) // 2])
    with pytest.raises(UserError, match=rf"{newest.name}: this checkpoint is damaged .*; delete it") as caught:
        train(recipe, corpus, tmp_path / "run", resume=True)
    assert "\n" not in str(caught.value)
    shutil.rmtree(newest)
    assert earlier.exists()
    assert train(recipe, corpus, tmp_path / "run", resume=True).finished


def test_a_half_written_checkpoint_is_never_read(corpus, tmp_path, monkeypatch):
    recipe = shrink("bert-tiny")
    with monkeypatch.context() as patch:
        interrupt_at(patch, 4)
        with pytest.raises(Interrupted):
            train(recipe, corpus, tmp_path / "run")
    run = Run.open(tmp_path / "run")
    half = run.checkpoints / ".step-00000009.partial"
    half.mkdir()
    (half / "model.safetensors").write_bytes(b"half")
    assert train(recipe, corpus, tmp_path / "run", resume=True).finished


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGINT,
        *(pytest.param(each, marks=pytest.mark.slow) for each in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)),
    ],
)
def test_a_signal_saves_and_leaves(number, corpus, tmp_path):
    command = [sys.executable, "-m", "bakeoff", "pretrain", "bert-tiny", "--corpus", str(corpus.path), "--out"]
    command += [str(tmp_path / "run"), "--budget", "steps=100000", "--set", "training.compile=false"]
    command += ["--set", "input.length=32", "--device", "cpu"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    metrics = tmp_path / "run" / "metrics.jsonl"
    deadline = time.monotonic() + 60
    while not metrics.exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(1)
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + number, errors
    assert "--resume continues it" in errors.splitlines()[-1]
    (checkpoint,) = (tmp_path / "run" / "checkpoints").iterdir()
    state = json.loads((checkpoint / "state.json").read_text())
    assert state["step"] > 0


def test_epochs_are_passes_over_the_corpus(corpus, mixture, tmp_path):
    """Of rows that hold all of the text once; special tokens and the marks between documents are seen, too."""
    recipe = shrink("gpt-tiny")
    run = pretrain(recipe, corpus.path, tmp_path / "run", budget=Budget(epochs=1.5), progress=False)
    assert run.summary["tokens"] == pytest.approx(1.5 * len(corpus.train.tokens), rel=0.05)
    opened = open_corpus(mixture)
    assert opened.train_tokens == sum(len(each.train.tokens) for each in opened.corpora)
    steps = resolve_recipe(recipe, opened, Budget(epochs=3), "cpu").training.budget.steps
    assert steps == resolve_recipe(recipe, opened, Budget(tokens=3 * opened.train_tokens), "cpu").training.budget.steps


def test_a_run_records_the_tokenizer_of_its_corpus(corpus, tmp_path, capsys):
    """And remarks on it where the recipe would have made another one."""
    recipe = shrink("bert-tiny", tokenizer={"kind": "unigram", "size": 30522, "lowercase": True})
    run = pretrain(recipe, corpus.path, tmp_path / "run", budget=Budget(steps=2))
    used = TokenizerConfig(kind="wordpiece", size=corpus.tokenizer.size)
    assert Run.open(run.path).recipe.tokenizer == used
    assert run.environment["recipe"]["tokenizer"] == used.model_dump()
    lines = [line for line in capsys.readouterr().err.splitlines() if "tokenizer" in line]
    assert lines == [
        f"bert-tiny: the corpus's tokenizer, wordpiece of {used.size}, cased, is used; the recipe's own, which "
        "`prepare --recipe` trains, would be unigram of 30,522, lower-cased"
    ]
    assert costs_of(load_recipe(run.path / "recipe.yaml"), used.size).parameters == run.summary["parameters"]
    # Another size is no other sort of tokenizer, and a recipe that reproduces nothing is for that of any corpus.
    for number, same in enumerate((TokenizerConfig(size=160), used, recipe.tokenizer)):
        own = recipe.with_tokenizer(same)
        own = own if number < 2 else own.changed({"paper": "our own"})
        pretrain(own, corpus.path, tmp_path / str(number), budget=Budget(steps=2))
    assert "tokenizer" not in capsys.readouterr().err


@contextmanager
def environment_of_an_older_run(recipe, corpus, path):
    """Stops a training and has the recipe in its environment.json changed into what an older version wrote."""
    with pytest.MonkeyPatch.context() as patch:
        interrupt_at(patch, 5)
        with pytest.raises(Interrupted):
            train(recipe, corpus, path)
    environment = json.loads((path / "environment.json").read_text())
    yield environment["recipe"]
    (path / "environment.json").write_text(json.dumps(environment))
    (path / "bakeoff.sha256").unlink()  # there was none then


def assert_goes_on_as_if_never_stopped(recipe, corpus, path):
    whole = weights(train(recipe, corpus, path.with_name("whole")))
    parts = weights(train(recipe, corpus, path, resume=True))
    assert whole.keys() == parts.keys()
    for name, tensor in whole.items():
        assert torch.equal(parts[name], tensor)


def test_a_run_from_before_the_corpuss_tokenizer_was_recorded_resumes(corpus, tmp_path):
    recipe, path = shrink("gpt-tiny"), tmp_path / "parts"
    with environment_of_an_older_run(recipe, corpus, path) as begun:
        begun["tokenizer"] = recipe.tokenizer.model_dump()
        (path / "recipe.yaml").write_text(Run.open(path).recipe.with_tokenizer(recipe.tokenizer).to_yaml())
    assert_goes_on_as_if_never_stopped(recipe, corpus, path)


def test_a_run_that_says_keys_which_are_no_more_is_read_and_resumes(corpus, tmp_path):
    recipe, path = shrink("gpt-tiny"), tmp_path / "parts"
    with environment_of_an_older_run(recipe, corpus, path) as begun:
        written = read_yaml(path / "recipe.yaml")
        for values in (begun, written):
            values["objective"][0]["logit_cap"] = None
        (path / "recipe.yaml").write_text(dump_yaml(written))
    assert_goes_on_as_if_never_stopped(recipe, corpus, path)
    written["objective"][0]["logit_cap"] = 30.0
    (path / "recipe.yaml").write_text(dump_yaml(written))
    with pytest.raises(UserError, match=r"recipe\.yaml: objective\.0: logit_cap: this version has it no more; leave"):
        _ = Run.open(path).recipe


def test_rows_that_leave_out_most_of_the_text_are_remarked_on(corpus, tmp_path, capsys):
    stages = [{"until": 0.5, "length": 20}]
    rows = {"format": "sentence_pair", "length": 48}
    recipe = shrink("bert-tiny", input=rows, objective=[{"kind": "mlm"}], **{"training.curriculum": stages})
    pretrain(recipe, corpus.path, tmp_path / "run", budget=Budget(steps=4))
    lines = [line for line in capsys.readouterr().err.splitlines() if "of the text" in line]
    assert len(lines) == 1
    assert "rows of 20 tokens read" in lines[0]
    assert "raise training.curriculum.0.length" in lines[0]


def test_pairs_of_documents_of_one_sentence_are_remarked_on_with_what_peek_says(tmp_path, capsys):
    texts = sentences(2000, seed=5)
    lines = [" ".join(texts[i : i + 2]) if i % 10 == 0 else texts[i] for i in range(1500)]
    (tmp_path / "short.txt").write_text("\n".join(lines), encoding="utf-8")
    config = TokenizerConfig(size=160)
    short = prepare(tmp_path / "short.txt", tmp_path / "c", tokenizer=config, document_per_line=True, workers=0)
    recipe = shrink("bert-tiny")
    pretrain(recipe, short.path, tmp_path / "run", budget=Budget(steps=2))
    lines = [line for line in capsys.readouterr().err.splitlines() if "of the text" in line]
    assert len(lines) == 1
    read = peek(recipe, short.path).packing.read
    assert read < 0.2
    assert f"rows of 32 tokens read {100 * read:.1f} % of the text: 8" in lines[0]
    assert "documents of one sentence, which make no pair; use input.format=blocks" in lines[0]


def test_a_run_that_was_begun_before_recipes_had_a_key_resumes(corpus, tmp_path):
    recipe, path = shrink("gpt-tiny"), tmp_path / "parts"
    with environment_of_an_older_run(recipe, corpus, path) as begun:
        del begun["model"]["output_dropout"], begun["training"]["average_last"]
    assert_goes_on_as_if_never_stopped(recipe, corpus, path)


@pytest.mark.parametrize("error", [RuntimeError("out of memory"), KeyboardInterrupt()])
@pytest.mark.parametrize("made", [False, True])
def test_what_fails_before_the_first_step_leaves_no_directory_behind(error, made, corpus, tmp_path, monkeypatch):
    path = tmp_path / "runs" / "one"
    if made:
        path.mkdir(parents=True)

    def fails(*arguments):
        raise error

    for place in ((loop, "optimize"), (pretraining, "validate"), (beginning, "write_atomically")):
        with monkeypatch.context() as patch:
            patch.setattr(*place, fails)
            with pytest.raises(type(error)):
                train(shrink("gpt-tiny"), corpus, path)
        assert not path.exists()


def test_what_fails_behind_a_step_stays(corpus, tmp_path, monkeypatch):
    exact = loop.optimize

    def fails(*arguments):
        if arguments[2] == 3:
            raise RuntimeError("out of memory")
        return exact(*arguments)

    monkeypatch.setattr(loop, "optimize", fails)
    with pytest.raises(RuntimeError):
        train(shrink("gpt-tiny"), corpus, tmp_path / "run")
    assert [line["step"] for line in Run.open(tmp_path / "run").metrics() if line["kind"] == "train"] == [1, 2, 3]
