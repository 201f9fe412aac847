"""Phases of a training: objectives, masks, rows, dropout and weight decay that change on the way."""

import pytest
import torch
from tests.conftest import PLAIN, crossed, shrink
from tests.interrupting import interrupt_at
from tests.training.test_pretrain import train
from tests.untrained_runs import untrained

import bakeoff
from bakeoff.errors import Interrupted, UserError
from bakeoff.learner.pretraining_model import PretrainingModel, build_on_meta
from bakeoff.models.dropouts import with_dropout
from bakeoff.recipe_files import load_recipe, recipe_names
from bakeoff.resources.memory_need import memory_need
from bakeoff.resources.micro_batch import rows_that_fit
from bakeoff.runs.run import Run
from bakeoff.scoring.texts import scoring_objective
from bakeoff.tasks.heads.transform import pretrained_transform, transform_of
from bakeoff.tasks.language import reading_of
from bakeoff.tasks.measures.minimal_pairs import MinimalPairsConfig
from bakeoff.trainer.step import move_weights, optimize
from bakeoff.training.cooling import cool_down
from bakeoff.training.pretraining import Pretraining
from bakeoff.training.stages import Stages, make_batches
from bakeoff.training.validation import HeldOut, validate
from bakeoff.using.filling import filling_objective

STEPS = {"training.budget": {"steps": 8}}
BOTH = [{"kind": "mntp", "rate": 0.3}, {"kind": "clm", "weight": 0}]
CAUSAL_THEN_MASKED = {
    **STEPS,
    "objective": BOTH,
    "training.curriculum": [{"until": 0.5, "weights": {"mntp": 0, "clm": 1}}],
}


def stages_of(recipe, corpus):
    return Stages(recipe, build_on_meta(recipe, corpus.tokenizer.size), corpus, seed=0)


def ends_alike(recipe, corpus, folder, monkeypatch, stops=(2, 5)):
    """The run, and the same after interruptions, which has to end with its bits."""
    whole = train(recipe, corpus, folder / "whole")
    for stop in stops:
        with monkeypatch.context() as patch:
            interrupt_at(patch, stop)
            with pytest.raises(Interrupted):
                train(recipe, corpus, folder / "again", resume=True)
    again = train(recipe, corpus, folder / "again", resume=True)
    assert (whole.path / "model.safetensors").read_bytes() == (again.path / "model.safetensors").read_bytes()
    return whole, again


def test_causal_then_masked_with_one_stack_and_one_head(corpus, tmp_path, monkeypatch):
    recipe = shrink("gpt-bert-tiny", **CAUSAL_THEN_MASKED)
    stages = stages_of(recipe, corpus)
    for step in range(8):
        for part in stages.step(step):
            seen_from_both_sides = part.row.prefix is not None and bool((part.row.prefix > 0).all())
            assert seen_from_both_sides == (step >= 4)
            counts = {name: len(rows) for name, (rows, _) in part.targets.items()}
            assert (counts["mntp"] > 0, counts["clm"] > 0) == (step >= 4, step < 4)
    run, _ = ends_alike(recipe, corpus, tmp_path, monkeypatch)
    lines = [line for line in run.metrics() if line["kind"] == "train"]
    assert [set(line["losses"]) for line in lines] == [{"clm"}] * 4 + [{"mntp"}] * 4
    validation = run.summary["validation"]
    assert set(validation["losses"]) == {"mntp"}
    assert validation["loss"] == pytest.approx(validation["losses"]["mntp"])
    assert "no_number" not in validation


def test_memory_is_that_of_the_stage_that_needs_most():
    """Whichever objective the last stage trains: forwards all tokens are predicted, of masked ones a share."""
    causal, masked = ({"clm": 1.0, "mntp": 0.0}, {"clm": 0.0, "mntp": 1.0})
    objective = [{"kind": "mntp"}, {"kind": "clm"}]
    cpu = torch.device("cpu")

    def counted(first, last, size):
        parts = [{**part, "weight": last[part["kind"]]} for part in objective]
        changes = {"objective": parts, "training.curriculum": [{"until": 0.5, "weights": first}]}
        recipe = load_recipe("gpt-bert-tiny", changes)
        return memory_need(recipe, size, cpu, 8).total, rows_that_fit(recipe, size)

    either, other = counted(causal, masked, 4000), counted(masked, causal, 4000)
    assert either == other
    assert either[0] >= memory_need(load_recipe("gpt-bert-tiny", {"objective": [{"kind": "clm"}]}), 4000, cpu, 8).total


@pytest.mark.parametrize("share", [0.25, 0.5, 0.75])
def test_causal_and_masked_rows_stand_side_by_side_in_any_share(share, corpus):
    """Also in shares that change from stage to stage."""
    objective = [{"kind": "mntp", "causal": share, "weight": 1 - share}, {"kind": "clm", "weight": share}]
    stage = {"until": 0.5, "settings": {"mntp": {"causal": 1 - share, "rate": 0.5}}}
    recipe = shrink("gpt-bert-tiny", **STEPS, objective=objective, **{"training.batch": 64})
    recipe = recipe.changed({"training.curriculum": [stage]})
    stages = stages_of(recipe, corpus)
    for step, expected, rate in ((1, 1 - share, 0.5), (6, share, recipe.objective[0].rate)):
        (part,) = stages.step(step)
        causal = (part.row.prefix == 0).double().mean()
        assert causal == pytest.approx(expected, abs=0.2)
        masked = len(part.targets["mntp"][0]) / (32 * float((1 - causal) * 64))
        assert masked == pytest.approx(rate, abs=0.08)
    assert stages.flops_per_token[0] != stages.flops_per_token[1]


def test_a_stage_has_masks_of_its_own(corpus):
    changes = {"rate": 0.6, "mask": 1.0, "random": 0.0, "whole_word": True}
    recipe = shrink("bert-tiny", **STEPS, objective=[{"kind": "mlm", "rate": 0.15}])
    staged = recipe.changed({"training.curriculum": [{"until": 0.5, "settings": {"mlm": changes}}]})
    module = build_on_meta(recipe, corpus.tokenizer.size)
    other = recipe.changed({f"objective.0.{key}": value for key, value in changes.items()})
    for step in range(8):
        alone = other if step < 4 else recipe
        expected = make_batches(alone, build_on_meta(alone, corpus.tokenizer.size), corpus, 0).step(step)
        for part, usual in zip(Stages(staged, module, corpus, 0).step(step), expected, strict=True):
            assert torch.equal(part.row.ids, usual.row.ids)
            assert all(map(torch.equal, part.targets["mlm"], usual.targets["mlm"]))
            assert (part.row.ids == corpus.tokenizer.mask).sum() > 0


@pytest.mark.parametrize(
    ("name", "changes", "says"),
    [
        ("bert-tiny", {"settings": {"clm": {}}}, r"curriculum\.0\.settings: 'clm' is none of the recipe's objectives"),
        ("bert-tiny", {"settings": {"mlm": {"activation": "relu"}}}, r"settings\.mlm\.activation: it stays what it is"),
        ("bert-tiny", {"settings": {"nsp": {"weight": 2}}}, "a stage changes none of its settings"),
        ("bert-tiny", {"settings": {"mlm": {"rate": 2}}}, r"settings\.mlm: rate: input should be less than 1"),
        ("bert-tiny", {"settings": {"mlm": {"rat": 0.2}}}, "unknown key 'rat'; did you mean 'rate'"),
        ("bert-tiny", {"dropout": 1.0}, "dropout: input should be less than 1"),
        ("gpt-bert-tiny", {"weights": {"clm": 0}}, "mntp leaves rows to clm, whose weight is 0; set causal to 0"),
        ("gpt-bert-tiny", {"settings": {"mntp": {"causal": 0}}}, "mntp leaves no rows to clm"),
    ],
)
def test_what_a_stage_cannot_change_is_refused(name, changes, says):
    with pytest.raises(UserError, match=says) as error:
        load_recipe(name, {"training.curriculum": [{"until": 0.5, **changes}]})
    assert "\n" not in str(error.value)


def test_an_objective_has_to_be_left():
    with pytest.raises(UserError, match="objective: all have weight 0 after the last stage"):
        load_recipe("gpt-tiny", {"objective.0.weight": 0})


@pytest.mark.parametrize("name", ["bert-tiny", "tcn-tiny", "conv-light-encoder-tiny", "xlnet-tiny"])
def test_dropout_changes_by_stage_and_nothing_else(name, corpus):
    """In a stage of dropout p a step moves the weights as in a recipe whose dropout is p throughout."""
    recipe = shrink(name, **STEPS, **PLAIN, **{"training.batch": 4, "model.dropout": 0.3})
    staged = recipe.changed({"training.curriculum": [{"until": 0.5, "dropout": 0.0}]})

    def steps(chosen, which):
        torch.manual_seed(0)
        module = PretrainingModel(chosen, corpus.tokenizer.size).train()
        stages = Stages(chosen, module, corpus, seed=0)
        unit = Pretraining(chosen, module, stages=stages)
        for step in which:
            optimize(unit, stages.step(step), step)
        return module.state_dict()

    without = recipe.changed({"model": with_dropout(recipe.model, 0.0).model_dump(mode="json")})
    for which, alone in (((0, 1), without), ((4, 5), recipe)):
        found, expected = steps(staged, which), steps(alone, which)
        assert all(torch.equal(found[key], value) for key, value in expected.items())
    back, never = steps(staged, (0, 5)), steps(recipe, (0, 5))
    assert any(not torch.equal(back[key], value) for key, value in never.items())


COURSE = {"kind": "points", "points": [[0.25, 1.0], [0.5, 0.1], [1.0, 1.5]]}


@pytest.mark.parametrize(
    "optimizer", [{"kind": "adamw", "lr": 0.1}, {"kind": "muon", "lr": 0.1}, {"kind": "lamb", "lr": 0.1}]
)
def test_weight_decay_follows_its_course(optimizer, corpus):
    """Without a gradient a weight shrinks by the rate times the decay of the step alone."""
    settings = {"training.optimizer": {**optimizer, "weight_decay": 0.5}, "training.decay_schedule": COURSE}
    recipe = shrink("gpt-tiny", **STEPS, **settings, **{"training.schedule": {"kind": "constant", "warmup": 2}})
    torch.manual_seed(0)
    module = PretrainingModel(recipe, corpus.tokenizer.size)
    unit = Pretraining(recipe, module)
    weight = module.model.embedding.weight
    expected = weight.detach().double().clone()
    rest = recipe.training.optimizer.rest if optimizer["kind"] == "muon" else 1.0
    for step in range(8):
        for parameter in module.parameters():
            parameter.grad = torch.zeros_like(parameter)
        move_weights(unit, step)
        progress = step / 8
        factor = (
            1.0
            if progress <= 0.25
            else 1 - 3.6 * (progress - 0.25)
            if progress <= 0.5
            else 0.1 + 2.8 * (progress - 0.5)
        )
        if optimizer["kind"] != "lamb":
            expected *= 1 - 0.1 * rest * min(1.0, (step + 1) / 2) * 0.5 * factor
            torch.testing.assert_close(weight.detach().double(), expected, atol=1e-6, rtol=1e-5)
        assert unit.optimizer.param_groups[0]["weight_decay"] == pytest.approx(0.5 * factor)
        assert unit.decay_factor(step) == pytest.approx(factor)


def test_a_run_that_is_cooled_down_keeps_the_decay_that_it_has(corpus, tmp_path):
    settings = {"training.optimizer.weight_decay": 0.2, "training.decay_schedule": COURSE}
    run = train(shrink("gpt-tiny", **STEPS, **settings), corpus, tmp_path / "run", until=4)
    cool_down(run, 6)
    cooled = Run.open(run.path).recipe.training
    assert cooled.decay_schedule is None
    assert cooled.optimizer.weight_decay == pytest.approx(0.02)


def test_a_decay_without_decay_is_refused():
    with pytest.raises(UserError, match="decay_schedule: the optimizer has no weight decay"):
        load_recipe(
            "gpt-tiny", {"training.decay_schedule": COURSE, "training.optimizer": {"kind": "adafactor", "lr": 0.01}}
        )
    with pytest.raises(UserError, match=r"points: the shares 0\.5, 0\.2 do not rise"):
        load_recipe("gpt-tiny", {"training.schedule": {"kind": "points", "points": [[0.5, 1], [0.2, 1]]}})
    fitted = load_recipe("gpt-tiny", {
        "training.decay_schedule": {"kind": "linear", "warmup": 0.5}, "training.optimizer.weight_decay": 0.1
    }).fitted(40)  # fmt: skip
    assert fitted.training.decay_schedule.warmup == 20


def everything(name):
    """A recipe with all that may change over many epochs, as far as it can carry it."""
    recipe = shrink(name, **STEPS, **PLAIN, **{"training.batch": 4, "training.first_batch": 1.0})
    changes = {
        "training.optimizer.weight_decay": 0.1,
        "training.decay_schedule": COURSE,
        "training.average": {"kind": "swa", "share": 0.5, "cycles": 2},
        "training.average_last": 0,
        "training.curriculum": [{"until": 0.5, "dropout": 0.2}],
    }
    if hasattr(recipe.input, "cut_anew") and not recipe.input.continues:
        changes |= {"input.cut_anew": True, "training.batch": 64}
    static = [n for n, part in enumerate(recipe.objective) if part.versions is not None]
    return recipe.changed({**changes, **{f"objective.{n}.masking": "dynamic" for n in static}})


QUICK = ("bert-tiny", "tcn-tiny", "transformer-xl-tiny")


@pytest.mark.parametrize("name", crossed(recipe_names(), QUICK))
def test_many_epochs_with_everything_end_with_the_same_bits(name, corpus, parallel_corpus, tmp_path, monkeypatch):
    recipe = everything(name)
    text = parallel_corpus if recipe.input.parallel else corpus
    ends_alike(recipe, text, tmp_path, monkeypatch, stops=(5,))


def test_a_held_out_loss_is_that_of_what_is_trained_in_the_end(corpus):
    recipe = shrink("gpt-bert-tiny", **CAUSAL_THEN_MASKED)
    module = PretrainingModel(recipe, corpus.tokenizer.size)
    made = make_batches(recipe, module, corpus, 0, split="validation")
    batches = made.fixed(8)
    found = validate(module, HeldOut(corpus.validation, batches, made), Pretraining(recipe, module).placement)
    assert set(found["losses"]) == set(found["targets"]) == {"mntp"}
    assert found["targets"]["mntp"] == sum(len(each.targets["mntp"][0]) for each in batches)


def test_what_uses_a_run_uses_the_objectives_that_were_trained_until_the_end(tmp_path):
    """And not one that only a stage has trained."""
    in_turn = [{"kind": "diffusion", "weight": 0, "activation": "relu"}, {"kind": "mlm", "activation": "gelu"}]
    stage = {"until": 0.5, "weights": {"diffusion": 1, "mlm": 0}}
    recipe = load_recipe("roberta-tiny", {"objective": in_turn, "training.curriculum": [stage]})
    assert transform_of(recipe).activation == "gelu"
    assert pretrained_transform(["heads.mlm.norm.weight", "heads.diffusion.norm.weight"], recipe) == {
        "transform.norm.weight": "heads.mlm.norm.weight"
    }
    idle = {"objective.0.weight": 0, "training.curriculum": [{"until": 0.5, "weights": {"mlm": 1}}]}
    unscored = load_recipe("bert-tiny", idle)
    pairs = MinimalPairsConfig(test=tmp_path / "pairs.jsonl")
    assert pairs.refused(unscored) == "gives sentences no probability"
    assert MinimalPairsConfig(test=tmp_path / "pairs.jsonl", reading="pseudo").refused(unscored) is None
    assert pairs.refused(load_recipe("bert-tiny")) is None


def test_answers_are_those_of_the_objectives_that_were_trained_until_the_end(corpus, tmp_path):
    """Whatever the order of the list."""
    stage = {"until": 0.5, "weights": {"diffusion": 1, "mlm": 0}}
    in_turn = [{"kind": "diffusion", "weight": 0}, {"kind": "mlm"}]
    run = untrained("roberta-tiny", corpus, tmp_path / "run", objective=in_turn, **{"training.curriculum": [stage]})
    assert scoring_objective(run).kind == "mlm"
    assert filling_objective(run).kind == "mlm"
    for reading, changes in {"pseudo": CAUSAL_THEN_MASKED, "forwards": {}}.items():
        assert reading_of(untrained("gpt-bert-tiny", corpus, tmp_path / reading, **changes), None) == reading
    loaded, module = bakeoff.load(run.path, device="cpu"), run.load(torch.device("cpu"))
    (head,) = (each.head for each in module.objectives if each.name == "mlm")
    rows = [[5, 6, 7, 8]]
    with torch.inference_mode():
        expected = head.scores(loaded.hidden(rows)[0], module.model.embedding.weight)
    torch.testing.assert_close(loaded.logits(rows)[0], expected)


def test_a_target_in_bits_a_byte_is_about_the_objectives_that_are_trained_until_the_end():
    stop = {"training.early_stopping": {"target": 2.0, "target_unit": "bits per byte"}}
    with pytest.raises(UserError, match="target_unit: mntp does not predict every token"):
        load_recipe("gpt-bert-tiny", stop)
    stage = {"until": 0.5, "weights": {"mntp": 1}}
    load_recipe("gpt-bert-tiny", {**stop, "objective.0.weight": 0, "training.curriculum": [stage]})
