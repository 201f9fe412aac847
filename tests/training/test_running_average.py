"""Runs whose weights are a running mean of those that are trained."""

import math

import pytest
import torch
from safetensors.torch import load_file
from tests.conftest import crossed, shrink
from tests.interrupting import interrupt_at
from tests.training.test_averaging import course_of_weights
from tests.training.test_phases import ends_alike
from tests.training.test_pretrain import course as lines_of
from tests.training.test_pretrain import train

import bakeoff
from bakeoff.errors import Interrupted, UserError
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.learner.running_average import RunningAverage
from bakeoff.optimization.averages import ExponentialAverageConfig, StochasticAverageConfig
from bakeoff.recipe_files import load_recipe
from bakeoff.resources.memory_need import memory_need
from bakeoff.runs.run import Run
from bakeoff.tasks.finetune_config import FinetuneConfig
from bakeoff.training import pretraining

STEPS, SHARE = 20, 0.2
AVERAGED = {"training.budget": {"steps": STEPS}, "training.running_average": SHARE, "training.optimizer.lr": 0.01}


def weights(path):
    return load_file(path / "model.safetensors")


def naive(behind, first, steps):
    """a <- d a + (1 - d) w after each step, with d = 1 - 1 / (share * steps), in float64."""
    decay = 1 - 1 / (SHARE * STEPS)
    average = {name: tensor.double() for name, tensor in first.items() if tensor.is_floating_point()}
    for step in range(1, steps + 1):
        average = {name: decay * each + (1 - decay) * behind[step][name].double() for name, each in average.items()}
    return average


def first_weights(recipe, corpus, seed=0):
    torch.manual_seed(seed)
    return PretrainingModel(recipe, corpus.tokenizer.size).state_dict()


@pytest.mark.parametrize(  # the last has a batch norm
    "name", crossed(["gpt-tiny", "albert-tiny", "cnn-lm-tiny"], ["cnn-lm-tiny"])
)
def test_the_runs_weights_are_the_mean_of_those_behind_each_step(name, corpus, tmp_path, monkeypatch):
    recipe = shrink(name, **AVERAGED)
    behind = course_of_weights(monkeypatch)
    run = train(recipe, corpus, tmp_path / "run")
    found, expected = weights(run.path), naive(behind, first_weights(recipe, corpus), STEPS)
    assert found.keys() == behind[STEPS].keys()
    for key, tensor in found.items():
        if key in expected:
            torch.testing.assert_close(tensor.double(), expected[key], atol=2e-6, rtol=1e-5)
        else:
            assert torch.equal(tensor, behind[STEPS][key])
    plain = train(recipe.changed({"training.running_average": 0.0}), corpus, tmp_path / "plain")
    assert all(torch.equal(tensor, behind[STEPS][key]) for key, tensor in weights(plain.path).items())
    table = "model.embedding.tokens.weight"
    assert (found[table] - behind[STEPS][table]).abs().max() > 1e-3
    losses = [[line["loss"] for line in each.metrics() if line["kind"] == "train"] for each in (run, plain)]
    assert losses[0] == losses[1]  # what is trained does not know of it


def test_held_out_losses_are_those_of_the_mean(corpus, tmp_path):
    run = train(shrink("bert-tiny", **AVERAGED), corpus, tmp_path / "run")
    measured = bakeoff.evaluate(run.path, corpus=corpus.path, examples=16, device="cpu")  # as validations
    assert measured["losses"] == pytest.approx(run.summary["validation"]["losses"])
    plain = train(shrink("bert-tiny", **AVERAGED | {"training.running_average": 0.0}), corpus, tmp_path / "plain")
    assert plain.summary["validation"]["loss"] != run.summary["validation"]["loss"]


@pytest.mark.parametrize("name", crossed(["gpt-tiny", "transformer-xl-tiny", "cnn-lm-tiny"], ["cnn-lm-tiny"]))
def test_interrupted_and_resumed_ends_with_the_same_bits(name, corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(pretraining, "FEWEST_STEPS_BETWEEN_VALIDATIONS", 10)
    recipe = shrink(name, **AVERAGED, **{"training.validations": 3})
    with monkeypatch.context() as patch:
        behind = course_of_weights(patch)
        whole = train(recipe, corpus, tmp_path / "whole")
    for stop in (7, 14):
        with monkeypatch.context() as patch:
            interrupt_at(patch, stop)
            with pytest.raises(Interrupted):
                train(recipe, corpus, tmp_path / "again", resume=True)
        begun = Run.open(tmp_path / "again")
        expected = naive(behind, first_weights(recipe, corpus), stop + 1)
        for key, tensor in load_file(begun.weights_file()).items():  # as a stopped run is read
            if key in expected:
                torch.testing.assert_close(tensor.double(), expected[key], atol=2e-6, rtol=1e-5)
    again = train(recipe, corpus, tmp_path / "again", resume=True)
    assert (whole.path / "model.safetensors").read_bytes() == (again.path / "model.safetensors").read_bytes()
    assert lines_of(whole) == lines_of(again)


def test_a_run_that_is_ended_early_has_the_mean_so_far(corpus, tmp_path, monkeypatch):
    recipe = shrink("gpt-tiny", **AVERAGED)
    with monkeypatch.context() as patch:
        behind = course_of_weights(patch)
        train(recipe, corpus, tmp_path / "run", until=15)
    run = train(None, corpus, tmp_path / "run", finish_now=True)
    expected = naive(behind, first_weights(recipe, corpus), 15)
    for key, tensor in weights(run.path).items():
        torch.testing.assert_close(tensor.double(), expected[key], atol=2e-6, rtol=1e-5)


def test_a_mean_of_less_than_a_step_is_the_weights():
    module = torch.nn.Linear(3, 2)
    average = RunningAverage(module)
    torch.nn.init.ones_(module.weight)
    average.update(ExponentialAverageConfig(share=0.03).rate(1, 10))
    assert torch.equal(average.tensors["weight"], module.weight)


def test_what_a_checkpoint_lacks_is_damage(corpus, tmp_path):
    recipe = shrink("gpt-tiny", **AVERAGED)
    run = train(recipe, corpus, tmp_path / "run", until=5)
    (checkpoint,) = run.checkpoints.glob("step-*")
    (checkpoint / "trained.safetensors").unlink()
    with pytest.raises(UserError, match=r"trained\.safetensors|this checkpoint is damaged"):
        train(None, corpus, tmp_path / "run", resume=True)


def test_it_takes_memory_and_stands_alone():
    plain, averaged = (
        memory_need(shrink("gpt-tiny", **changes), 300, torch.device("cpu")) for changes in ({}, AVERAGED)
    )
    assert averaged.total - plain.total == plain.weights
    with pytest.raises(UserError, match="average_last: average is a mean of the weights already"):
        load_recipe("gpt-tiny", {"training.average_last": 3, "training.average": "ema"})
    with pytest.raises(UserError, match=r"average.share: input should be less than 1, not 1\.0"):
        load_recipe("gpt-tiny", {"training.average": {"kind": "ema", "share": 1.0}})
    with pytest.raises(UserError, match="there is no 'mean'"):
        load_recipe("gpt-tiny", {"training.average": "mean"})


def test_the_older_key_says_the_same(tmp_path):
    """In files, which may extend each other whatever their age, on the command line and in fine-tunings."""
    ema = load_recipe("gpt-tiny", {"training.average": {"kind": "ema", "share": 0.2}})
    assert load_recipe("gpt-tiny", {"training.running_average": 0.2}) == ema
    assert load_recipe("gpt-bert-small", {"training.running_average": 0.0}).training.average is None
    (tmp_path / "old.yaml").write_text("extends: gpt-tiny\ntraining: {running_average: 0.2}\n", encoding="utf-8")
    assert load_recipe(str(tmp_path / "old.yaml")).training == ema.training
    (tmp_path / "off.yaml").write_text("extends: gpt-bert-small\ntraining: {running_average: 0.0}\n", encoding="utf-8")
    assert load_recipe(str(tmp_path / "off.yaml")).training.average is None
    (tmp_path / "new.yaml").write_text("extends: off.yaml\ntraining: {average: swa}\n", encoding="utf-8")
    assert load_recipe(str(tmp_path / "new.yaml")).training.average == StochasticAverageConfig()
    assert FinetuneConfig(running_average=0.2).average == ema.training.average
    assert FinetuneConfig(running_average=0).average is None


SWA = {**AVERAGED, "training.average": {"kind": "swa", "share": 0.5, "cycles": 3, "low": 0.2}}
SWA.pop("training.running_average")


@pytest.mark.parametrize("name", ["gpt-tiny", "albert-tiny", "cnn-lm-tiny"])
def test_the_mean_of_cycles_is_that_of_the_weights_at_their_ends(name, corpus, tmp_path, monkeypatch):
    recipe = shrink(name, **SWA)
    behind = course_of_weights(monkeypatch)
    run = train(recipe, corpus, tmp_path / "run")
    ends = [13, 17, 20]  # thirds of the last ten of twenty steps
    for key, tensor in weights(run.path).items():
        if tensor.is_floating_point():
            expected = sum(behind[step][key].double() for step in ends) / 3
            torch.testing.assert_close(tensor.double(), expected, atol=2e-6, rtol=1e-5)
    schedule, whole = run.recipe.training.schedule, run.recipe.training.optimizer.rate
    rates = {line["step"] - 1: line["learning_rate"] / whole for line in run.metrics() if line["kind"] == "train"}
    for step, rate in rates.items():
        if step < 10:
            assert rate == pytest.approx(schedule.factor(step, STEPS))
            continue
        begin, end = next((low, high) for low, high in ((10, 13), (13, 17), (17, 20)) if step < high)
        wave = (1 + math.cos(math.pi * (step - begin) / (end - begin - 1))) / 2
        assert rate == pytest.approx(schedule.factor(10, STEPS) * (0.2 + 0.8 * wave))
    assert len(rates) == STEPS


@pytest.mark.parametrize("steps", [1, 2, 3, 7, 100])
@pytest.mark.parametrize("cycles", [1, 4, 50])
@pytest.mark.parametrize("share", [0.01, 0.5, 1.0])
def test_cycles_fit_any_training(steps, cycles, share):
    average = StochasticAverageConfig(share=share, cycles=cycles)
    mean, seen = 0.0, []
    for step in range(1, steps + 1):
        rate = average.rate(step, steps)
        mean += rate * (step - mean)
        seen += [step] if rate > 0 and step in average.ends(steps)[1:] else []
        assert 0 <= average.factor(step - 1, steps, lambda at: 1.0) <= 1
    assert seen[-1] == steps
    assert mean == pytest.approx(sum(seen) / len(seen))


def test_cycles_that_are_interrupted_end_with_the_same_bits(corpus, tmp_path, monkeypatch):
    ends_alike(shrink("bert-tiny", **SWA), corpus, tmp_path, monkeypatch, stops=(6, 14))


RISES = [
    ("laptop-encoder-tiny", {}),
    ("bert-tiny", {"training.budget": {"steps": 100}, "training.schedule.warmup": 20}),
]


@pytest.mark.parametrize(("name", "changes"), RISES)
def test_cycles_do_not_begin_in_the_warm_up_whose_low_rate_they_would_keep(name, changes):
    average = {"training.average": {"kind": "swa", "share": 1.0}}
    with pytest.raises(UserError, match=r"which with 1 is in the warm-up; give 0\.\d+ or less"):
        load_recipe(name, {**changes, **average})
    rise = load_recipe(name, changes).training.schedule.rise_share(100)
    average["training.average"]["share"] = 1 - rise
    recipe = load_recipe(name, {**changes, **average})
    for steps in (100, 313, 1001):  # of which the warm-up is a share, rounded
        fitted = recipe.fitted(steps).training
        begin = StochasticAverageConfig(share=1 - rise).ends(steps)[0]
        assert fitted.schedule.factor(begin, steps) > 0.9


def test_nor_do_those_of_a_fine_tuning():
    with pytest.raises(UserError, match=r"average\.share: cycles keep .* is in the warm-up; give 0\.7 or less"):
        FinetuneConfig.parse({"warmup": 0.3, "average": {"kind": "swa", "share": 0.8}}, "options")
    FinetuneConfig.parse({"warmup": 0.3, "average": {"kind": "swa", "share": 0.7}}, "options")
    FinetuneConfig.parse({"warmup": 0.0, "average": {"kind": "swa", "share": 1.0}}, "options")


@pytest.mark.parametrize("share", [-1, 1, "much", True])
def test_an_older_key_with_a_wrong_value_is_refused_by_its_name(share):
    with pytest.raises(UserError, match=f"running_average: give a share of the steps, .*, not {share!r}"):
        load_recipe("bert-tiny", {"training.running_average": share})
