"""Trainings that learn from other runs: what they learn, what they record, how they go on, and what is refused."""

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.conftest import crossed, shrink
from tests.interrupting import interrupt_at
from tests.untrained_runs import untrained, untrained_of

from bakeoff import checksums
from bakeoff.cli import run as command_line
from bakeoff.conformance.narrow import REGISTRY
from bakeoff.errors import Interrupted, UserError
from bakeoff.interop.remote_code.settings import settings_of
from bakeoff.optimization.budget import Budget
from bakeoff.resources.device import Placement
from bakeoff.runs.checkpoint import list_checkpoints
from bakeoff.runs.run import Run
from bakeoff.tasks.evaluate import evaluate
from bakeoff.training.initial_weights import Start
from bakeoff.training.pretrain import pretrain
from bakeoff.training.pretraining import Pretraining
from bakeoff.training.stages import Stages
from bakeoff.training.teachers import Teachers

CPU = Placement(torch.device("cpu"), "float32")


def taught(name, *teachers, steps=4, **changes):
    """A recipe that learns from runs."""
    distillation = {"teachers": [str(each.path) for each in teachers], "weight": changes.pop("weight", 0.5)}
    settings = {"training.precision": "float32", "training.budget": {"steps": steps}}
    return shrink(name, **{**settings, "training.distillation": distillation, **changes})


def train(recipe, corpus, out, **options):
    return pretrain(recipe, corpus.path, out, progress=False, device="cpu", **options)


@pytest.fixture(scope="module")
def teacher(corpus, tmp_path_factory):
    """A masked run with random weights."""
    return untrained("bert-tiny", corpus, tmp_path_factory.mktemp("teachers") / "bert")


@pytest.fixture(scope="module")
def causal(corpus, tmp_path_factory):
    """A causal run with random weights."""
    return untrained("gpt-tiny", corpus, tmp_path_factory.mktemp("teachers") / "gpt")


def logarithms(model, batch):
    """What a model says of each token at each masked position, and the labels there."""

    def score(head, rows, labels, table):
        return head.log_probabilities(rows, table).double(), labels

    with torch.no_grad():
        return model.eval()(batch, score=score)[0]["mlm"]


def gradients_of(recipe, corpus, module, step=0):
    """The losses of the micro-batches of a step, and the gradients of their sum."""
    stages = Stages(recipe, module, corpus, seed=0)
    unit = Pretraining(recipe, module, CPU, stages=stages, teachers=Teachers.load(recipe, corpus, CPU.device))
    batches = unit.batches(step)
    counts = unit.counts(batches)
    module.eval()  # a batch norm reads the batch in training
    weights = unit.weights(step)
    total = sum(weights[name] * loss for each in batches for name, loss in unit.losses(each, counts).items())
    return total.item(), torch.autograd.grad(total, list(module.parameters()), allow_unused=True)


ALONE = [
    name
    for name, recipe in REGISTRY.items()
    if name.endswith("-tiny")
    and not recipe.input.continues
    and not any(part.generator_learns for part in recipe.objective)
    and any(part.token_targets for part in recipe.objective)
]
QUICK = ("bert-tiny", "gpt-tiny", "xlnet-tiny", "t5-tiny", "gpt-bert-tiny")


@pytest.mark.parametrize("name", crossed(ALONE, QUICK))
def test_a_model_that_is_its_teacher_learns_nothing_from_it(name, corpus, parallel_corpus, tmp_path):
    """Masked, causal, permuted, in two directions or with a source: the teacher reads what its student reads."""
    text = parallel_corpus if REGISTRY[name].input.parallel else corpus
    run = untrained(name, text, tmp_path / "run")
    tokens = [part.kind for part in run.recipe.objective if part.token_targets]
    others = {f"objective.{i}.weight": 0.0 for i, part in enumerate(run.recipe.objective) if part.kind not in tokens}
    alone = run.recipe.changed({**others, "training.precision": "float32"})
    distillation = {"training.distillation": {"teachers": [str(run.path)], "weight": 1.0, "temperature": 2.0}}
    loss, gradients = gradients_of(alone.changed(distillation), text, run.load())
    plain_loss, plain = gradients_of(alone, text, run.load())
    largest, plainly = (
        max(float(each.abs().max()) for each in all_ if each is not None) for all_ in (gradients, plain)
    )
    assert plain_loss > 1
    assert abs(loss) < 1e-4 * plain_loss
    assert largest < 1e-3 * plainly


@pytest.mark.parametrize("weight", [0.25, 1.0])
def test_the_loss_of_two_teachers_is_that_of_the_mean_of_their_probabilities(weight, corpus, teacher, tmp_path):
    """Computed from what each run predicts at the same positions, one position after the other, in float64."""
    second = untrained_of(teacher.recipe.changed({"model.encoder.layers": 1}), corpus, tmp_path / "second", seed=5)
    alone = {"model.dropout": 0.0, "objective.1.weight": 0.0}
    recipe = taught("bert-tiny", teacher, second, weight=weight, **alone)
    student = untrained_of(recipe, corpus, tmp_path / "student", seed=9).load()
    found, _ = gradients_of(recipe, corpus, student)
    total, count = 0.0, 0
    for batch in Stages(recipe, student, corpus, seed=0).step(0):
        means = torch.stack([logarithms(run.load(), batch)[0].exp() for run in (teacher, second)]).mean(0)
        logs, labels = logarithms(student, batch)
        for p, log_q, label in zip(means, logs, labels, strict=True):
            divergence = float((p * (p.log() - log_q)).sum())
            total += weight * divergence + (1 - weight) * -float(log_q[label])
            count += 1
    assert found == pytest.approx(total / count, rel=1e-5)


def test_a_teacher_is_recorded_and_its_weights_are_nowhere_in_the_student(corpus, teacher, tmp_path):
    before = checksums.listed(teacher.path)
    run = train(taught("bert-tiny", teacher), corpus, tmp_path / "student")
    plain = train(shrink("bert-tiny", **{"training.budget": {"steps": 4}}), corpus, tmp_path / "plain")
    assert load_file(run.path / "model.safetensors").keys() == load_file(plain.path / "model.safetensors").keys()
    (record,) = run.environment["teachers"]
    assert record == {"run": str(teacher.path), "digest": before["model.safetensors"]}
    assert str(teacher.path) in (run.path / "README.md").read_text(encoding="utf-8")
    assert "teachers" not in json.loads((plain.path / "environment.json").read_text(encoding="utf-8"))
    checksums.verify_all(teacher.path)
    assert run.summary["flops"] > 1.2 * plain.summary["flops"]


def test_teachers_change_what_is_learned_and_nothing_else_of_the_beginning(corpus, teacher, tmp_path):
    """The first weights and the held-out loss before the first step are those of a training without teachers."""
    with_it = train(taught("bert-tiny", teacher), corpus, tmp_path / "with")
    without = train(taught("bert-tiny", teacher, **{"training.distillation": None}), corpus, tmp_path / "without")
    first, last = ([next(iter(r.metrics()))["loss"], r.summary["validation"]["loss"]] for r in (with_it, without))
    assert first[0] == last[0]
    assert first[1] != last[1]


@pytest.mark.parametrize("verb", ["distill", "pretrain"])
def test_a_stopped_training_goes_on_exactly(verb, corpus, teacher, tmp_path, monkeypatch, capsys):
    recipe = taught("bert-tiny", teacher, steps=8, **{"model.dropout": 0.1})
    whole = train(recipe, corpus, tmp_path / "whole")
    with monkeypatch.context() as patch:
        interrupt_at(patch, 4)
        with pytest.raises(Interrupted):
            train(recipe, corpus, tmp_path / "run")
    (checkpoint,) = list_checkpoints(tmp_path / "run" / "checkpoints")
    assert (checkpoint / "model.safetensors").stat().st_size == (whole.path / "model.safetensors").stat().st_size
    assert command_line([verb, "--out", str(tmp_path / "run"), "--resume", "--device", "cpu"]) == 0
    run = Run.open_finished(tmp_path / "run")
    one, other = (load_file(each.path / "model.safetensors") for each in (run, whole))
    assert all(torch.equal(one[name], other[name]) for name in other)


@pytest.fixture
def stopped(corpus, teacher, tmp_path, monkeypatch):
    """A training that was stopped, its teacher a copy that a test may change."""
    copy = Run(shutil.copytree(teacher.path, tmp_path / "teacher"))
    recipe = taught("bert-tiny", copy, steps=8)
    with monkeypatch.context() as patch:
        interrupt_at(patch, 3)
        with pytest.raises(Interrupted):
            train(recipe, corpus, tmp_path / "run")
    return Run.open(tmp_path / "run")


def test_a_changed_teacher_is_refused_where_a_training_goes_on(stopped, tmp_path):
    weights = load_file(tmp_path / "teacher" / "model.safetensors")
    name = next(iter(weights))
    save_file({**weights, name: weights[name] + 1}, tmp_path / "teacher" / "model.safetensors")
    checksums.record(tmp_path / "teacher", ["model.safetensors"])
    with pytest.raises(UserError, match=r"run: begun with the teacher .*teacher, and .* has other weights"):
        pretrain(None, None, stopped.path, resume=True, progress=False, device="cpu")


def test_a_lost_teacher_ends_no_run_that_is_finished_as_it_is(stopped, tmp_path):
    shutil.rmtree(tmp_path / "teacher")
    with pytest.raises(UserError, match=r"no such run, and .* learns from it .*; give where it stands now"):
        pretrain(None, None, stopped.path, resume=True, progress=False, device="cpu")
    run = pretrain(None, None, stopped.path, finish_now=True, progress=False, device="cpu")
    assert run.summary["steps"] == 4
    assert pretrain(None, None, stopped.path, resume=True, progress=False, device="cpu").summary == run.summary


def test_a_teacher_that_stands_elsewhere_now_goes_on_teaching(stopped, corpus, tmp_path):
    moved = Run((tmp_path / "teacher").rename(tmp_path / "moved"))
    run = train(taught("bert-tiny", moved, steps=8), corpus, stopped.path, resume=True)
    assert run.summary["steps"] == 8
    with pytest.raises(UserError, match=r"begun with training.distillation.weight 0.5, not 0.75"):
        train(taught("bert-tiny", moved, steps=8, weight=0.75), corpus, stopped.path, resume=True)


@pytest.mark.parametrize(
    ("student", "teachers"),
    [
        ("bert-tiny", ["conv-light-encoder-tiny", "roberta-tiny"]),
        ("gpt-tiny", ["conv-light-lm-tiny"]),
        ("gpt-tiny", ["transformer-xl-tiny"]),
    ],
)
def test_any_architecture_teaches_any_other(student, teachers, corpus, tmp_path):
    opened = [untrained(name, corpus, tmp_path / name, **{"model.dropout": 0.0}) for name in teachers]
    run = train(taught(student, *opened), corpus, tmp_path / "student")
    assert evaluate(run.path, corpus=corpus.path, device="cpu")["loss"] > 0
    further = train(None, corpus, tmp_path / "further", start=Start(run=run.path), budget=Budget(steps=2))
    assert [each["run"] for each in further.environment["teachers"]] == [str(each.path) for each in opened]


def test_teachers_are_no_part_of_an_export(corpus, teacher, tmp_path):
    recipe = taught("laptop-conv-tiny", teacher)
    run = untrained_of(recipe, corpus, tmp_path / "student")
    written = settings_of(run.recipe, run.tokenizer, run.load().model, 32)
    assert written["recipe"] == recipe.changed({"training.distillation": None}).model_dump(mode="json")


def refused(recipe, corpus, tmp_path, match):
    with pytest.raises(UserError, match=match) as caught:
        train(recipe, corpus, tmp_path / "refused")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "refused").exists()


def test_runs_that_cannot_teach_are_refused_in_one_line(corpus, teacher, causal, other, tmp_path):
    refused(taught("bert-tiny", causal), corpus, tmp_path, r"gpt: has learned next token \(clm\), and .* masked tokens")
    refused(taught("gpt-tiny", teacher), corpus, tmp_path, r"bert: has learned masked tokens")
    short = untrained("bert-tiny", corpus, tmp_path / "short", **{"input.length": 16, "model.embedding.length": 16})
    refused(taught("bert-tiny", short), corpus, tmp_path, r"short: reads 16 tokens at most.*input.length=16")
    refused(taught("bert-tiny", Missing(tmp_path)), corpus, tmp_path, "no such run")
    by_two_names = {"training.distillation.teachers": [str(teacher.path), f"{teacher.path}/../{teacher.path.name}"]}
    refused(taught("bert-tiny", teacher, **by_two_names), corpus, tmp_path, "listed twice")
    (teacher_of_its_own := tmp_path / "unfinished").mkdir()
    for name in ("recipe.yaml", "environment.json", "tokenizer.json"):
        shutil.copy(teacher.path / name, teacher_of_its_own)
    refused(taught("bert-tiny", Run(teacher_of_its_own)), corpus, tmp_path, "has not finished")
    reading = taught("laptop-encoder-tiny", teacher, **{"objective.0.causal": 0.5})
    refused(reading, corpus, tmp_path, r"bert: has read no rows causally")


class Missing:
    def __init__(self, folder):
        self.path = folder / "missing"


def test_a_teacher_with_another_tokenizer_is_refused(corpus, tmp_path, digit_tokenizer_run):
    refused(taught("bert-tiny", digit_tokenizer_run), corpus, tmp_path, r"another tokenizer than .*--tokenizer")


@pytest.fixture(scope="module")
def digit_tokenizer_run(parallel_corpus, tmp_path_factory):
    return untrained("bert-tiny", parallel_corpus, tmp_path_factory.mktemp("digits") / "run")


@pytest.mark.parametrize(
    ("name", "word"), [("transformer-xl-tiny", "continue each other"), ("electra-tiny", "generator")]
)
def test_recipes_that_cannot_be_taught_are_refused_before_anything(name, word, teacher):
    with pytest.raises(UserError, match=word):
        taught(name, teacher)


def test_the_verb(corpus, teacher, tmp_path, capsys):
    second = untrained_of(teacher.recipe, corpus, tmp_path / "second", seed=5)
    (tmp_path / "small.yaml").write_text(shrink("bert-tiny").to_yaml(), encoding="utf-8")
    on = ["--corpus", str(corpus.path), "--device", "cpu", "--budget", "steps=2"]
    learns = ["--into", str(tmp_path / "small.yaml"), *on]
    out = tmp_path / "student"
    given = ["distill", str(teacher.path) + "/", str(second.path), *learns, "--weight", "0.7", "--temperature", "2"]
    assert command_line([*given, "--out", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["steps"] == 2
    settings = Run(out).recipe.training.distillation
    assert settings.teachers == [str(teacher.path), str(second.path)]
    assert (settings.weight, settings.temperature) == (0.7, 2.0)
    nowhere = ["--out", str(tmp_path / "no")]
    for arguments, words in [
        ([str(teacher.path), *on], "--into RECIPE"),
        (learns, "the runs that teach"),
        ([*on, "--resume", "--weight", "0.5"], "--weight"),
        ([str(teacher.path), *learns, "--set", "training.distillation.weight=1", "--weight", "0.5"], "--weight"),
        ([str(teacher.path), *learns, "--set", "training.distillation.teachers=[a]"], "RUN"),
        ([str(teacher.path), *learns, "--weight", "2"], "--weight: input should be less than or equal to 1, not 2"),
        ([str(teacher.path), str(teacher.path), *learns], "RUN: "),
    ]:
        assert command_line(["distill", *arguments, *nowhere]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert words in line
    assert not (tmp_path / "no").exists()
