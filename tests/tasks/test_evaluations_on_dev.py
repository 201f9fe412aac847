"""The rows of each step, which evaluation on dev is the best one, and when the last one is."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from bakeoff.tasks.finetune import finetune
from bakeoff.tasks.finetune_config import FinetuneConfig
from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.tasks.fitting.fitting import Fitting
from bakeoff.tasks.fitting.trial import DevEvaluation
from bakeoff.tasks.kinds.classification import Classification, ClassificationConfig
from bakeoff.tasks.kinds.regression import Regression, RegressionConfig
from bakeoff.tasks.kinds.sequence_to_sequence import SequenceToSequence, SequenceToSequenceConfig
from bakeoff.trainer import loop

COLUMNS = {"train": Path("none"), "text_column": "text", "label_column": "label"}
TASKS = {
    "accuracy": Classification(ClassificationConfig(**COLUMNS), ["a", "b"]),
    "spearman": Regression(RegressionConfig(**COLUMNS), 0.0, 1.0),
    "mean_absolute_error": Regression(RegressionConfig(**COLUMNS, metric="mean_absolute_error"), 0.0, 1.0),
    "loss": SequenceToSequence(SequenceToSequenceConfig(**COLUMNS, metric="loss")),
}
LESS = ("mean_absolute_error", "loss")


@pytest.mark.parametrize("metric", TASKS)
def test_the_metric_decides_by_its_direction_and_then_the_lower_loss(metric):
    worse, better = (0.8, 0.3) if metric in LESS else (0.3, 0.8)
    task = TASKS[metric]
    assert task.metric == metric

    def rank(value, loss):
        return DevEvaluation(1, {metric: value}, loss).rank(task)

    assert rank(better, 9.0) > rank(worse, 0.1)
    assert rank(better, 0.1) > rank(better, 0.2)
    perfect = 0.0 if metric in LESS else 1.0
    assert [DevEvaluation(1, {metric: each}, 0.5).perfect(task) for each in (perfect, 1.0 - perfect)] == [True, False]


@pytest.mark.parametrize("patience", [1, 3])
def test_the_last_look_is_the_first_with_so_many_behind_the_best(patience, recipe, corpus, task, tmp_path):
    config = FinetuneConfig(learning_rate=[1e-9], epochs=4, least_steps=0, evaluations=60, patience=patience)
    finetune(recipe, task, tmp_path / "out", config=config, tokenizer=corpus, device="cpu", progress=False)
    ranks = [
        (evaluation["accuracy"], -evaluation["loss"]) for evaluation in FinetunedRun.open(tmp_path / "out").metrics()
    ]
    since = [count - ranks[: count + 1].index(max(ranks[: count + 1])) for count in range(len(ranks))]
    assert since[-1] == patience > max(since[:-1])


def test_the_weights_are_those_of_the_best_look_of_all_trainings(recipe, corpus, task, tmp_path, monkeypatch):
    """Neither those of the last training nor those of the last evaluation."""
    steps = []

    def moved(unit, *_):
        """A step after which every class is equally probable if it is the second of all, and none if it is not."""
        steps.append(len(steps))
        output = unit.head.output
        for parameter in output.parameters():
            parameter.data.zero_()
        output.bias.data[0] = abs(steps[-1] - 1)
        return {"task": torch.ones(())}

    monkeypatch.setattr(loop, "optimize", moved)
    config = FinetuneConfig(learning_rate=[1e-3, 1e-4], epochs=3, batch=240, least_steps=0, evaluations=3)
    result = finetune(recipe, task, tmp_path / "out", config=config, tokenizer=corpus, device="cpu", progress=False)
    assert len(steps) == 6
    assert (result.learning_rate, result.best_epoch) == (1e-3, 2)
    assert not load_file(tmp_path / "out/model.safetensors")["output.bias"].any()


def test_every_epoch_has_every_row_once_and_an_order_of_its_own(recipe, corpus, task, tmp_path, monkeypatch):
    steps, optimize = [], loop.optimize

    def watched(unit, parts, step):
        steps.append(parts[0].chosen.tolist())
        return optimize(unit, parts, step)

    monkeypatch.setattr(loop, "optimize", watched)
    config = FinetuneConfig(learning_rate=[1e-3], epochs=3, batch=60, least_steps=0, evaluations=1)
    finetune(recipe, task, tmp_path / "out", config=config, tokenizer=corpus, device="cpu", progress=False)
    assert len(steps) == 12
    epochs = [steps[begin : begin + 4] for begin in (0, 4, 8)]
    assert all(sorted(row for rows in epoch for row in rows) == list(range(240)) for epoch in epochs)
    assert len({tuple(sorted(map(tuple, map(sorted, epoch)))) for epoch in epochs}) == 3


@pytest.mark.parametrize(
    ("evaluations", "chosen"),
    [
        ([(0.5, 0.1), (0.9, 2.0), (0.7, 0.2)], 1),  # not the lowest loss, nor the last training
        ([(0.5, 0.3), (0.5, 0.1), (0.5, 0.2)], 1),
        ([(0.5, 0.3), (0.5, 0.3), (0.4, 0.1)], 0),
    ],
)
def test_of_all_trainings_the_metric_chooses_and_then_the_loss(
    evaluations, chosen, recipe, corpus, task, tmp_path, monkeypatch
):
    given = iter(evaluations)

    def evaluated(self, step):
        score, loss = next(given)
        return DevEvaluation(step, {"accuracy": score, "macro_f1": 1 - score}, loss)

    monkeypatch.setattr(Fitting, "_evaluate_dev", evaluated)
    rates = [1e-3, 2e-3, 3e-3]
    config = FinetuneConfig(learning_rate=rates, epochs=1, batch=240, least_steps=0, evaluations=1)
    result = finetune(recipe, task, tmp_path / "out", config=config, tokenizer=corpus, device="cpu", progress=False)
    assert result.learning_rate == rates[chosen]
    assert [(each.learning_rate, each.score) for each in result.trials] == [
        (rate, score) for rate, (score, _) in zip(rates, evaluations, strict=True)
    ]


@pytest.mark.parametrize(("scores", "evaluations"), [([0.5, 1.0, 1.0, 1.0, 1.0], 4), ([0.5, 0.6, 0.7, 0.8, 0.9], 5)])
def test_after_a_perfect_score_lower_losses_do_not_put_off_the_end(
    scores, evaluations, recipe, corpus, task, tmp_path, monkeypatch
):
    given = iter([(score, 1.0 / place) for place, score in enumerate(scores, 1)])

    def evaluated(self, step):
        score, loss = next(given)
        return DevEvaluation(step, {"accuracy": score, "macro_f1": score}, loss)

    monkeypatch.setattr(Fitting, "_evaluate_dev", evaluated)
    config = FinetuneConfig(learning_rate=[1e-3], epochs=5, batch=240, least_steps=0, evaluations=5, patience=2)
    result = finetune(recipe, task, tmp_path / "out", config=config, tokenizer=corpus, device="cpu", progress=False)
    assert result.epochs == evaluations
    assert result.best_epoch == evaluations
