"""Every figure of a fine-tuning's results, from its steps, evaluations on dev and lines of test, counted here."""

from collections import Counter

import numpy as np
import pytest
from keyword_task import labelled, write_tsv
from safetensors.torch import load_file
from sklearn.metrics import accuracy_score, f1_score, precision_recall_fscore_support

from bakeoff.cli.shared.finetuned import print_result
from bakeoff.tasks.finetune import finetune
from bakeoff.tasks.finetune_config import FinetuneConfig
from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.tasks.kinds.classification import ClassificationConfig
from bakeoff.tasks.kinds.question_answering import QuestionAnswering, QuestionAnsweringConfig
from bakeoff.tasks.model_card import model_card
from bakeoff.trainer import loop
from bakeoff.trainer import step as steps_of

STEPS = 4  # of an epoch
RATES = [2e-3, 1e-6]
CONFIG = FinetuneConfig(
    learning_rate=RATES, epochs=[3, 2], batch=32, evaluations=5, patience=2, weight_decay=0.3, layer_decay=1.0
)


@pytest.fixture(scope="module")
def made(recipe, corpus, tmp_path_factory):
    """A fine-tuning from scratch of which every step is written down: its result, and the losses of each training."""
    folder, steps = tmp_path_factory.mktemp("figures"), []
    parts = {"train": labelled(100, 1), "dev": labelled(31, 2)[:-1] + labelled(9, 4)[::3], "test": labelled(47, 3)[2:]}
    paths = {name: write_tsv(folder / f"{name}.tsv", rows) for name, rows in parts.items()}
    task = ClassificationConfig(**paths, text_column="text", label_column="label", positive="tool", metric="macro_f1")
    optimize, seed, seeds = loop.optimize, steps_of.seed_torch, list[int]()

    def watched(unit, micro_batches, step):
        decays = {group["weight_decay"] for group in unit.optimizer.param_groups}
        means = optimize(unit, micro_batches, step)
        steps.append((step, float(means["task"]), decays, seeds[-1]))
        return means

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "optimize", watched)
        patch.setattr(steps_of, "seed_torch", lambda own, device: seeds.append(own) or seed(own, device))
        # In bfloat16 the looks at dev are rounded, and the results, which are float32, may have other classes.
        recipe = recipe.changed({"training.precision": "float32"})
        result = finetune(recipe, task, folder / "run", config=CONFIG, tokenizer=corpus, device="cpu", progress=False)
    return result, steps, FinetunedRun.open(folder / "run"), parts


def test_looks_at_dev_say_where_they_are_and_the_mean_loss_since_the_one_before(made):
    _, steps, run, _ = made
    evaluations = run.metrics()
    begun, trained = 0, []  # the steps of each training
    for place, (step, _, decays, _) in enumerate(steps):
        assert decays == {0.0, 0.3}
        if step == 0 and place:
            trained.append(steps[begun:place])
            begun = place
    trained.append(steps[begun:])
    assert [(rate, epochs) for epochs in (3, 2) for rate in RATES] == list(
        dict.fromkeys((evaluation["learning_rate"], evaluation["epochs"]) for evaluation in evaluations)
    )
    for (rate, epochs), own in zip([(rate, epochs) for epochs in (3, 2) for rate in RATES], trained, strict=True):
        some = [
            evaluation
            for evaluation in evaluations
            if (evaluation["learning_rate"], evaluation["epochs"]) == (rate, epochs)
        ]
        due = [round(epochs * STEPS * share / 5) for share in range(1, 6)]
        assert [evaluation["step"] for evaluation in some] == due[: len(some)]
        assert {evaluation["steps"] for evaluation in some} == {epochs * STEPS}
        for before, evaluation in zip([0, *due], some, strict=False):
            assert evaluation["epoch"] == round(evaluation["step"] / STEPS, 3)
            losses = [loss for step, loss, *_ in own if before <= step < evaluation["step"]]
            assert evaluation["train_loss"] == pytest.approx(np.mean(losses))
        assert len(own) == some[-1]["step"]


def test_every_step_draws_its_dropout_anew(made):
    """And every training as the others do."""
    seeds = {(step, seed) for step, *_, seed in made[1]}
    assert len({seed for _, seed in seeds}) == len(seeds) == 1 + max(step for step, _ in seeds)


def test_the_best_look_of_all_trainings_is_the_result(made):
    result, _, run, _ = made
    evaluations = run.metrics()
    best = max(evaluations, key=lambda evaluation: (evaluation["macro_f1"], -evaluation["loss"]))
    own = [
        evaluation
        for evaluation in evaluations
        if (evaluation["learning_rate"], evaluation["epochs"]) == (best["learning_rate"], best["epochs"])
    ]
    assert (result.learning_rate, result.planned_epochs) == (best["learning_rate"], best["epochs"])
    assert result.best_epoch == round(best["step"] / STEPS, 3)
    assert result.epochs == round(own[-1]["step"] / STEPS, 3)
    assert result.scores["dev"]["macro_f1"] == pytest.approx(best["macro_f1"], abs=1e-6)
    assert len(result.trials) == 4
    assert result.seconds == pytest.approx(sum(each.seconds for each in result.trials), abs=0.01)
    for trial in result.trials:
        own = [
            evaluation
            for evaluation in evaluations
            if (evaluation["learning_rate"], evaluation["epochs"]) == (trial.learning_rate, trial.epochs)
        ]
        assert trial.score == max(evaluation["macro_f1"] for evaluation in own)
        assert trial.seconds >= own[-1]["seconds"] > 0
    weights = load_file(run.path / "model.safetensors")
    assert result.total_tensors == len(weights)


def test_scores_of_test_are_those_of_its_lines(made):
    result, _, run, parts = made
    lines = run.predictions()
    assert [line["label"] for line in lines] == [row["label"] for row in parts["test"]]
    true, found = ([line[side] for line in lines] for side in ("label", "prediction"))
    assert result.rows == {name: len(rows) for name, rows in parts.items()}
    scores = result.scores["test"]
    assert scores["accuracy"] == pytest.approx(accuracy_score(true, found), abs=1e-6)
    assert scores["macro_f1"] == pytest.approx(f1_score(true, found, average="macro", zero_division=0), abs=1e-6)
    each = precision_recall_fscore_support(true, found, labels=result.classes, zero_division=0)
    for place, name in enumerate(result.classes):
        own = result.labels[name]
        expected = [column[place] for column in each]
        assert [own.precision, own.recall, own.f1, own.count] == pytest.approx(expected, abs=1e-6)
    own = result.labels["tool"]
    assert [scores[name] for name in ("precision", "recall", "f1")] == [own.precision, own.recall, own.f1]
    counts = Counter(row["label"] for row in parts["train"])
    most = max(sorted(counts), key=lambda name: counts[name])
    assert result.simplest["accuracy"] == pytest.approx(true.count(most) / len(true), abs=1e-6)


def test_the_card_has_the_figures_of_the_results(made):
    result, _, run, parts = made
    card = (run.path / "README.md").read_text()
    for split in ("dev", "test"):
        values = " | ".join(f"{value:.4f}" for value in result.scores[split].values())
        assert f"| {split} | {len(parts[split])} | {values} |" in card
    assert f"the macro_f1 of most frequent class is {result.simplest['macro_f1']:.4f}" in card
    assert f"best at epoch {result.best_epoch:g} of {result.epochs:g}, learning rate {result.learning_rate:g}" in card
    assert "the best of 4 trainings" in card
    assert f"0 of {result.total_tensors} from pre-training; {result.parameters:,} parameters" in card
    assert "| classes | 3: fruit, place, tool |" in card


def test_the_terminal_says_which_of_several_settings_dev_chose(made, tmp_path, capsys):
    result, *_ = made
    print_result(result, tmp_path, json=False)
    printed = " ".join(capsys.readouterr().out.split())
    chosen = f"learning rate {result.learning_rate:g} and {result.planned_epochs} epoch"
    assert chosen in printed
    assert "the best of 4 trainings" in printed
    one = result.model_copy(update={"trials": [each.model_copy(update={"epochs": 2}) for each in result.trials]})
    print_result(one, tmp_path, json=False)
    assert f"learning rate {result.learning_rate:g}, the best of 4" in " ".join(capsys.readouterr().out.split())


def test_what_dev_settles_is_settled_by_dev(recipe, corpus, tmp_path, monkeypatch):
    """Not by test, whose scores would be too good."""
    rows = ["question\tcontext\tanswer", *(f"apple\tbaran plum dosel\t{'plum' * (n % 2)}" for n in range(24))]
    for name, count in (("train", 25), ("dev", 9), ("test", 7)):
        (tmp_path / f"{name}.tsv").write_text("\n".join(rows[:count]) + "\n")
    task = QuestionAnsweringConfig(**{name: tmp_path / f"{name}.tsv" for name in ("train", "dev", "test")})
    seen, resolve = [], QuestionAnswering.resolve
    monkeypatch.setattr(
        QuestionAnswering, "resolve", lambda own, some, found: seen.append(len(some)) or resolve(own, some, found)
    )
    config = FinetuneConfig(learning_rate=[1e-3], epochs=1, least_steps=0, evaluations=1)
    finetune(recipe, task, tmp_path / "run", config=config, tokenizer=corpus, device="cpu", progress=False)
    assert {*seen} == {8}


@pytest.mark.parametrize(("sides", "given"), [(1, '"TEXT"'), (2, '"TEXT" --pair "TEXT"')])
def test_the_card_asks_for_as_many_texts_as_the_run_reads(made, sides, given):
    result, _, run, _ = made
    task = run.task.model_copy(update={"pair_column": "pair" if sides == 2 else None})
    card = model_card(task, run.config, result, run.environment)
    assert f"bakeoff predict {run.path} {given}\n" in card
    assert f"| input | {' and '.join(['text', 'pair'][:sides])}, at most 32 tokens, pooling cls |" in card
