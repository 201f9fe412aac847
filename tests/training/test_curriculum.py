"""Trainings whose rows and weights change on the way."""

import json

import pytest
import torch
from tests.conftest import shrink
from tests.training.test_phases import ends_alike
from tests.training.test_pretrain import train

from bakeoff.errors import UserError
from bakeoff.learner.pretraining_model import PretrainingModel, build_on_meta
from bakeoff.optimization.budget import Budget
from bakeoff.recipe_files import load_recipe
from bakeoff.trainer.step import optimize
from bakeoff.training import pretraining
from bakeoff.training.pretraining import Pretraining
from bakeoff.training.resolution import resolve_recipe
from bakeoff.training.stages import Stages, make_batches

STAGES = [{"until": 0.5, "length": 24, "weights": {"nsp": 0}}, {"until": 0.75, "weights": {"mlm": 0.5}}]


def staged(**changes):
    return shrink("bert-tiny", **{"training.budget": {"steps": 8}, "training.curriculum": STAGES, **changes})


def test_rows_are_those_of_the_stage(corpus):
    recipe = staged()
    module = build_on_meta(recipe, corpus.tokenizer.size)
    stages = Stages(recipe, module, corpus, seed=0)
    own = recipe.changed({"training.curriculum": []})
    short = own.changed({"input.length": 24, "objective.1.weight": 0})
    for step in range(8):
        expected = make_batches(short if step < 4 else own, module, corpus, 0).step(step)
        assert all(torch.equal(a.row.ids, b.row.ids) for a, b in zip(stages.step(step), expected, strict=True))
    assert [recipe.weights_at(step) for step in (3, 4, 5, 6)] == [
        {"mlm": 1.0, "nsp": 0.0},
        {"mlm": 0.5, "nsp": 1.0},
        {"mlm": 0.5, "nsp": 1.0},
        {"mlm": 1.0, "nsp": 1.0},
    ]


def test_an_objective_of_weight_0_is_not_trained(corpus):
    recipe = staged(**{"training.optimizer.weight_decay": 0.0})
    torch.manual_seed(0)
    module = PretrainingModel(recipe, corpus.tokenizer.size).train()
    unit = Pretraining(recipe, module)
    stages = Stages(recipe, module, corpus, seed=0)
    before = {name: parameter.clone() for name, parameter in module.heads["nsp"].named_parameters()}
    for step in range(5):
        optimize(unit, stages.step(step), step)
        kept = all(torch.equal(before[name], now) for name, now in module.heads["nsp"].named_parameters())
        assert kept == (step < 4)


QUIET = {"word_structure": 0, "sentence_structure": 0}


@pytest.mark.parametrize("weights", [QUIET, {"mlm": 0}, {"mlm": 0, "word_structure": 0}], ids=str)
def test_an_objective_of_weight_0_leaves_the_text_alone(corpus, weights):
    """No token is hidden or moved for it, and B follows A, until the stage is over; then all are as without stages."""
    recipe = shrink("structbert-tiny", **{"training.budget": {"steps": 4}, "training.optimizer.weight_decay": 0.0})
    stages_of = [{"until": 0.5, "weights": weights}]
    recipe = recipe.changed({"training.curriculum": stages_of})
    torch.manual_seed(0)
    module = PretrainingModel(recipe, corpus.tokenizer.size).train()
    unit = Pretraining(recipe, module)
    stages, own = (
        Stages(each, module, corpus, seed=0) for each in (recipe, recipe.changed({"training.curriculum": []}))
    )
    kinds = ["mlm", "word_structure", "sentence_structure"]
    for step in range(4):
        parts = stages.step(step)
        for part, usual in zip(parts, own.step(step), strict=True):
            assert list(part.targets) == kinds
            counts = {kind: len(part.targets[kind][0]) for kind in kinds}
            relations = part.targets["sentence_structure"][1]
            assert counts["sentence_structure"] == len(part.row.ids)
            if step >= 2:
                assert torch.equal(part.row.ids, usual.row.ids)
                assert min(counts.values()) > 0
                assert len(relations.unique()) == 3
                continue
            assert {kind for kind in kinds if not counts[kind]} == set(weights) - {"sentence_structure"}
            assert (relations == 0).all() == ("sentence_structure" in weights)
            text = part.row.ids.clone().view(-1)
            for kind in ("mlm", "word_structure"):
                rows, labels = part.targets[kind]
                text[rows] = labels
            moved = text != part.row.ids.view(-1)
            assert bool(moved.any()) == bool(counts["mlm"] or counts["word_structure"])
            if relations.any():
                continue
            for row in text.view(part.row.ids.shape):  # as it stands in the corpus
                first, second = (row == corpus.tokenizer.separator).nonzero()[:, 0].tolist()
                piece = torch.cat([row[1:first], row[first + 1 : second]]).tolist()
                assert corpus.tokenizer.decode(piece) in corpus.tokenizer.decode(corpus.train.tokens.tolist())
        before = {name: parameter.clone() for name, parameter in module.heads.named_parameters()}
        figures = optimize(unit, parts, step)
        assert all(torch.isfinite(figure) for figure in figures.values())
        assert list(figures) == [*kinds, "gradient_norm"]
        for name, now in module.heads.named_parameters():
            used = ["mlm", "word_structure"] if name.startswith("mlm") else ["sentence_structure"]  # they share a head
            idle = step < 2 and all(kind in weights for kind in used)
            assert torch.equal(before[name], now) == idle, name
    fixed = make_batches(recipe, module, corpus, 0, split="validation").fixed(16)
    assert all(len(part.targets[kind][0]) for part in fixed for kind in kinds)


def test_what_is_not_trained_is_neither_counted_nor_reported(corpus, tmp_path, monkeypatch):
    recipe = shrink("structbert-tiny", **{"training.budget": {"steps": 8}})
    recipe = recipe.changed({"training.curriculum": [{"until": 0.375, "weights": QUIET}]})
    stages = Stages(recipe, build_on_meta(recipe, corpus.tokenizer.size), corpus, seed=0)
    alone = recipe.changed({"training.curriculum": [], "objective": [{"kind": "mlm"}, {"kind": "sop"}]})
    assert stages.flops_per_token[0] == build_on_meta(alone, corpus.tokenizer.size).flops_per_token()
    assert stages.flops_per_token[0] < stages.flops_per_token[1]
    quiet = recipe.changed(
        {f"objective.{index}.weight": QUIET.get(kind, 1) for index, kind in enumerate(recipe.weights)}
    )
    assert build_on_meta(quiet, corpus.tokenizer.size).flops_per_token() == stages.flops_per_token[0]
    monkeypatch.setattr(pretraining, "TRAIN_LINES", 2)
    lines = train(recipe, corpus, tmp_path / "run").metrics()
    losses = {line["step"]: list(line["losses"]) for line in lines if line["kind"] == "train"}
    kinds = ["mlm", "word_structure", "sentence_structure"]
    assert losses == {3: ["mlm"], 4: kinds, 8: kinds}
    assert all(list(line["losses"]) == kinds for line in lines if line["kind"] == "validation")


def test_an_interrupted_training_ends_with_the_same_bits_and_counts(corpus, tmp_path, monkeypatch):
    recipe = staged(**{"training.budget": {"steps": 40}})
    whole, again = ends_alike(recipe, corpus, tmp_path, monkeypatch, stops=(13,))
    summaries = [json.loads((run.path / "summary.json").read_text()) for run in (whole, again)]
    assert summaries[0]["flops"] == summaries[1]["flops"]
    assert summaries[0]["validation"] == summaries[1]["validation"] | {"seconds": summaries[0]["validation"]["seconds"]}
    module = build_on_meta(recipe, corpus.tokenizer.size)
    stages = Stages(whole.recipe, module, corpus, seed=0)
    tokens = [sum(part.tokens for part in stages.step(step)) for step in range(40)]
    short, long = stages.flops_per_token[0], stages.flops_per_token[2]
    assert summaries[0]["tokens"] == sum(tokens)
    assert summaries[0]["flops"] == short * sum(tokens[:20]) + long * sum(tokens[20:])


@pytest.mark.parametrize("unit", ["tokens", "flops"])
def test_the_budget_is_that_of_all_stages_together(unit, corpus):
    recipe = staged(**{"training.budget": {"steps": 1000}})
    settled = resolve_recipe(recipe, corpus, Budget(**{unit: {"tokens": 20_000, "flops": 10**10}[unit]}), "cpu")
    stages = Stages(settled, build_on_meta(settled, corpus.tokenizer.size), corpus, seed=0)
    spent = 0
    for step in range(settled.training.budget.steps):
        tokens = sum(part.tokens for part in stages.step(step))
        spent += tokens * (1 if unit == "tokens" else stages.flops_per_token[stages.at(step)])
    assert spent == pytest.approx({"tokens": 20_000, "flops": 10**10}[unit], rel=0.05)


@pytest.mark.parametrize(
    ("stages", "message"),
    [
        ([{"until": 0.9, "length": 600}], "600 is more than input.length, 512"),
        ([{"until": 0.9}, {"until": 0.5}], "in their order"),
        ([{"until": 0.9, "weights": {"sop": 0}}], "'sop' is none of the recipe's objectives, mlm, nsp"),
        ([{"until": 0.9, "weights": {"nsp": -1}}], "weights.nsp: less than 0"),
        ([{"until": 0.9, "weights": {"nsp": 0, "mlm": 0}}], "no objective is left"),
        ([{"until": 0.5}], r"training.curriculum.0: the stage is as what follows it"),
        ([{"until": 0.2, "length": 64}, {"until": 0.9}], r"training.curriculum.1: the stage is as what follows it"),
        ([{"until": 1.0}], "until"),
        ([{"till": 0.5}], "till"),
    ],
)
def test_what_makes_no_curriculum_is_refused(stages, message):
    with pytest.raises(UserError, match=message):
        load_recipe("bert-base", {"training.curriculum": stages})


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("bert-tiny", {}, r"training\.curriculum\.1\.length: input should be greater than 5, not 4$"),
        (
            "gpt-tiny",
            {"input.context": 4},
            r"training\.curriculum\.1\.length: context: 4 of 4 tokens leave none to predict; give fewer$",
        ),
    ],
)
def test_rows_that_a_stage_makes_too_short_are_refused_with_the_recipe(name, changes, message):
    stages = [{"until": 0.2, "length": 64}, {"until": 0.5, "length": 4}]
    with pytest.raises(UserError, match=message):
        load_recipe(name, {**changes, "training.curriculum": stages})


def test_rows_that_continue_each_other_keep_their_length():
    with pytest.raises(UserError, match="keep their length"):
        load_recipe("transformer-xl-tiny", {"training.curriculum": [{"until": 0.5, "length": 64}]})
