"""Batches that grow, and masks that become fewer, over a training."""

import json

import numpy as np
import pytest
import torch
from tests.batching.test_batches import same
from tests.conftest import shrink
from tests.interrupting import interrupt_at
from tests.training.test_phases import ends_alike
from tests.training.test_pretrain import course as lines_of
from tests.training.test_pretrain import train

from bakeoff.batching.batches import Batches
from bakeoff.batching.order import EXAMPLES_AT_ONCE
from bakeoff.corpus.mixture import open_corpus
from bakeoff.errors import Interrupted, UserError
from bakeoff.inspection.peek import peek
from bakeoff.learner.pretraining_model import build_on_meta
from bakeoff.optimization.budget import Budget
from bakeoff.optimization.course import STEPS_AT_ONCE, Course
from bakeoff.recipe_files import load_recipe
from bakeoff.resources import enough_memory as enough
from bakeoff.resources.enough_memory import require_memory
from bakeoff.resources.memory_need import memory_need
from bakeoff.training import speed
from bakeoff.training.resolution import resolve_recipe
from bakeoff.training.stages import Stages, make_batches

STEPS = 40
GROWING = {"training.budget": {"steps": STEPS}, "training.batch": 16, "training.first_batch": 0.25}
FALLING = {"training.budget": {"steps": STEPS}, "objective.0.rate": 0.15, "objective.0.first_rate": 0.45}


def batches_of(recipe, text, seed=3):
    return make_batches(recipe, build_on_meta(recipe, text.tokenizer.size), text, seed)


def stages_of(recipe, text, seed=3):
    return Stages(recipe, build_on_meta(recipe, text.tokenizer.size), text, seed)


def published_rows(batch, share, step, steps):
    """load_datasets of ltgoslo/gpt-bert, pretraining/train_10m.py, with 1 / share for batch_reduction."""
    return int(batch * share * (1 - step / steps) + batch * (step / steps) + 0.5)


@pytest.mark.parametrize(("batch", "share", "steps"), [(32768, 0.25, 7812), (16, 0.25, 40), (3, 0.1, 7), (5, 1.0, 9)])
def test_batches_have_the_rows_of_the_published_code(batch, share, steps):
    """One at least; each begins where the one before it ends, whichever is asked for first."""
    course, asked = Course(batch, steps, share), [steps - 1, 0, 2 * STEPS_AT_ONCE, 5]
    expected = [max(1, published_rows(batch, share, step, steps)) for step in range(steps)]
    expected += [batch] * (2 * STEPS_AT_ONCE + 100 - steps)
    ends = np.concatenate([[0], np.cumsum(expected)])
    assert course.rows(np.arange(len(expected))).tolist() == expected
    for step in asked:
        assert course.bounds(step, 7).tolist() == ends[step : step + 8].tolist()
        assert Course(batch, steps, share).bounds(step, 7).tolist() == ends[step : step + 8].tolist()
    whole = sum(expected[:steps])
    assert whole == pytest.approx(batch * steps * (1 + share) / 2, rel=0.01, abs=batch)


def test_where_the_end_is_not_known_nothing_changes():
    course = Course(12, None, 0.25)
    assert course.rows(np.arange(5)).tolist() == [12] * 5
    assert course.progress(np.arange(5)) is None


@pytest.mark.parametrize(
    ("name", "micro", "mixed"),
    [
        ("gpt-tiny", None, False),
        ("gpt-bert-tiny", 3, True),
        *(
            pytest.param(*each, marks=pytest.mark.slow)
            for each in (
                ("gpt-tiny", None, True),
                ("gpt-bert-tiny", 3, False),
                ("bert-tiny", 5, False),
                ("bert-tiny", 5, True),
            )
        ),
    ],
)
def test_growing_batches_hold_the_same_rows_in_the_same_order(name, micro, mixed, corpus, mixture):
    """As batches of one size do: with the same masks, and none left out or read twice; in parts of so many rows."""
    text = open_corpus(mixture) if mixed else corpus
    recipe = shrink(name, **GROWING, **{"training.micro_batch": micro})
    found = [batches_of(recipe, text).step(step) for step in range(STEPS)]
    sizes = [published_rows(16, 0.25, step, STEPS) for step in range(STEPS)]
    assert [sum(len(part.row.ids) for part in parts) for parts in found] == sizes
    if micro:
        assert all(len(part.row.ids) == micro for parts in found for part in parts[:-1])
        assert all(0 < len(parts[-1].row.ids) <= micro for parts in found)
    one_by_one = recipe.changed({"training.first_batch": 1.0, "training.batch": 1, "training.micro_batch": None})
    plain = batches_of(one_by_one, text)
    rows = iter([plain.step(place)[0].row.ids[0].tolist() for place in range(sum(sizes))])
    for parts in found:
        for part in parts:  # within which a mixture's rows stand corpus by corpus
            expected = [next(rows) for _ in part.row.ids]
            assert sorted(part.row.ids.tolist()) == sorted(expected)
            assert mixed or part.row.ids.tolist() == expected
    one = batches_of(recipe, text)
    assert all(same(one.step(step), found[step]) for step in (39, 0, 21, 20, 1))


@pytest.mark.parametrize("mixed", [False, True])
def test_a_small_first_batch_does_not_make_more_rows_be_made_at_once(mixed, corpus, mixture, monkeypatch):
    made, exact = [], Batches.make

    def counting(self, chosen):
        made.append(len(chosen.indices))
        return exact(self, chosen)

    monkeypatch.setattr(Batches, "make", counting)
    recipe = shrink("bert-tiny", **{"training.batch": 64, "training.first_batch": 0.05})
    batches = batches_of(recipe, open_corpus(mixture) if mixed else corpus)
    for step in range(STEPS):
        batches.step(step)
    assert max(made) <= EXAMPLES_AT_ONCE


@pytest.mark.parametrize("mixed", [False, True])
def test_masks_are_of_the_share_of_their_step(mixed, corpus, mixture):
    """Token by token where each is hidden by itself: the ordinary ones times the rate, rounded, in every row."""
    recipe = shrink("roberta-tiny", **FALLING)
    batches = batches_of(recipe, open_corpus(mixture) if mixed else corpus)
    specials = torch.from_numpy(corpus.tokenizer.special_ids)
    for step in range(STEPS):
        rate = 0.45 - 0.3 * step / STEPS
        for part in batches.step(step):
            rows, labels = part.targets["mlm"]
            ids = part.row.ids.clone()
            ids.view(-1)[rows] = labels
            ordinary = (~torch.isin(ids, specials)).sum(1)
            hidden = torch.bincount(rows // ids.shape[1], minlength=len(ids))
            assert (hidden >= 1).all()
            assert (hidden - ordinary * rate).abs().max() <= 0.5 + 1e-6


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("first", [None, 0.45])
def test_held_out_text_may_have_a_rate_that_training_has_not(mixed, first, corpus, mixture):
    """Where a loss is measured, row by row, and there alone: all batches of the training stay what they are."""
    text = open_corpus(mixture) if mixed else corpus
    recipe = shrink("roberta-tiny", **{"training.budget": {"steps": STEPS}, "objective.0.rate": 0.3})
    recipe = recipe.changed({"objective.0.first_rate": first})
    own, plain = (batches_of(recipe.changed({"objective.0.held_out_rate": rate}), text) for rate in (0.15, None))
    assert all(same(own.step(step), plain.step(step)) for step in (0, 7, 39))
    for batches, rate in ((own, 0.15), (plain, 0.3)):
        for parts in (batches.fixed(40), batches.whole()):
            for part in parts:
                rows, labels = part.targets["mlm"]
                ids = part.row.ids.clone()
                ids.view(-1)[rows] = labels
                ordinary = (~torch.isin(ids, torch.from_numpy(corpus.tokenizer.special_ids))).sum(1)
                hidden = torch.bincount(rows // ids.shape[1], minlength=len(ids))
                assert torch.equal(hidden, (ordinary * rate).round().clamp(min=1).long())


@pytest.mark.parametrize("copies", [1, 10])
def test_held_out_text_is_masked_alike_whatever_sets_of_masks_training_has(copies, corpus):
    recipe = shrink("roberta-tiny", **{"training.budget": {"steps": STEPS}})
    objective = {"objective.0.masking": "static", "objective.0.copies": copies}
    fixed, anew = (batches_of(each, corpus) for each in (recipe.changed(objective), recipe))
    assert same([*fixed.whole()], [*anew.whole()])
    assert same([*fixed.fixed(40)], [*anew.fixed(40)])


@pytest.mark.parametrize("name", ["ltg-bert-xs", "gpt-bert-tiny"])
def test_runs_are_hidden_until_the_share_of_their_step_is_reached_on_average(name, corpus):
    recipe = shrink(name, **FALLING, **{"training.batch": 64})
    batches, kind = batches_of(recipe, corpus), recipe.objective[0].kind
    left = 1 - recipe.objective[0].rows_left
    for steps, middle in ((range(4), 1.5), (range(18, 22), 19.5), (range(36, 40), 37.5)):
        parts = [part for step in steps for part in batches.step(step)]
        share = sum(len(part.targets[kind][0]) for part in parts) / sum(part.tokens for part in parts)
        assert share == pytest.approx(left * (0.45 - 0.3 * middle / STEPS), rel=0.1)


def test_held_out_text_has_the_rate_of_the_end(corpus):
    falling, plain = shrink("bert-tiny", **FALLING), shrink("bert-tiny", **{"objective.0.rate": 0.15})
    found, expected = (
        make_batches(each, build_on_meta(each, corpus.tokenizer.size), corpus, 0, split="validation").fixed(16)
        for each in (falling, plain)
    )
    assert same(found, expected)


def test_peek_shows_what_training_begins_with(corpus):
    recipe = shrink("roberta-tiny", **FALLING, **{"training.first_batch": 0.5})
    begin, held_out = (peek(recipe, corpus.path, examples=8, held_out=each).drawn[0].share for each in (False, True))
    assert begin == pytest.approx(0.45, rel=0.12)
    assert held_out == pytest.approx(0.15, rel=0.25)


STAGED = {**GROWING, "input.length": 32, "training.curriculum": [{"until": 0.5, "length": 24, "batch_factor": 2}]}


def test_a_stage_has_its_own_rows(corpus):
    """And they grow over all steps, not over those of the stage."""
    stages = stages_of(shrink("bert-tiny", **STAGED), corpus)
    sizes = [sum(len(part.row.ids) for part in stages.step(step)) for step in range(STEPS)]
    assert sizes == [published_rows(32 if step < 20 else 16, 0.25, step, STEPS) for step in range(STEPS)]
    assert [stages.step(step)[0].row.ids.shape[1] for step in (0, 19, 20, 39)] == [24, 24, 32, 32]


ALL = {**STAGED, **FALLING}


@pytest.mark.parametrize("name", ["bert-tiny", pytest.param("gpt-bert-tiny", marks=pytest.mark.slow)])
def test_interrupted_and_resumed_ends_with_the_same_bits_and_counts(name, corpus, tmp_path, monkeypatch):
    recipe = shrink(name, **ALL, **{"model.dropout": 0.1, "training.micro_batch": 7})
    whole, again = ends_alike(recipe, corpus, tmp_path, monkeypatch, stops=(11, 33))
    assert lines_of(whole) == lines_of(again)
    stages = stages_of(whole.recipe, corpus, seed=0)
    tokens = [sum(part.tokens for part in stages.step(step)) for step in range(STEPS)]
    summary = json.loads((whole.path / "summary.json").read_text())
    assert summary["tokens"] == sum(tokens)
    assert summary["flops"] == sum(own * stages.flops_at(step) for step, own in enumerate(tokens))


@pytest.mark.parametrize("name", ["bert-tiny", "gpt-bert-tiny"])
def test_operations_are_those_of_the_share_of_the_step(name, corpus):
    """As a recipe that has this share from beginning to end."""
    recipe = shrink(name, **FALLING)
    stages = stages_of(recipe, corpus)
    for step in (0, 13, 39):
        rate = 0.45 - 0.3 * step / STEPS
        alone = recipe.changed({"objective.0.rate": rate, "objective.0.first_rate": None})
        expected = build_on_meta(alone, corpus.tokenizer.size).flops_per_token()
        assert stages.flops_at(step) == pytest.approx(expected, abs=2)
    middle = recipe.changed({"objective.0.rate": 0.3, "objective.0.first_rate": None})
    shown = build_on_meta(recipe, corpus.tokenizer.size).flops_per_token()
    assert shown == build_on_meta(middle, corpus.tokenizer.size).flops_per_token()


@pytest.mark.parametrize("unit", ["tokens", "flops", "epochs"])
def test_a_budget_is_what_is_spent(unit, corpus):
    recipe = shrink("bert-tiny", **ALL, **{"training.micro_batch": 7})
    amount = {"tokens": 60_000, "flops": 3 * 10**10, "epochs": 2.5}[unit]
    settled = resolve_recipe(recipe, corpus, Budget(**{unit: amount}), "cpu")
    stages, spent, tokens = stages_of(settled, corpus), 0, 0
    for step in range(settled.training.budget.steps):
        own = sum(part.tokens for part in stages.step(step))
        tokens += own
        spent += own * (stages.flops_at(step) if unit == "flops" else 1)
    expected = corpus.train_tokens * amount if unit == "epochs" else amount
    assert spent == pytest.approx(expected, rel=0.03)


def test_the_time_of_a_step_is_that_of_one_in_the_middle(corpus, monkeypatch):
    seen = []
    monkeypatch.setattr(
        speed, "stepper", lambda recipe, *_: seen.append(recipe) or (lambda index: speed.StepTime(1, 1))
    )
    (time,) = speed.step_times([shrink("bert-tiny", **ALL)], corpus, "cpu", seconds=0.0)
    assert time.seconds == pytest.approx(1.0)
    assert [each.training.batch for each in seen] == [round(32 * 0.4375), round(16 * 0.8125)]
    assert [each.objective[0].rate for each in seen] == pytest.approx([0.375, 0.225])
    assert {each.training.first_batch for each in seen} == {1.0}


def test_memory_is_that_of_the_most_masks_and_of_the_largest_stage(monkeypatch):
    plain, cpu = shrink("bert-tiny"), torch.device("cpu")
    many = memory_need(plain.changed({"objective.0.rate": 0.45}), 3000, cpu)
    assert memory_need(shrink("bert-tiny", **FALLING), 3000, cpu).activations == many.activations
    parameters = build_on_meta(plain, 300).parameter_count()
    monkeypatch.setattr(enough, "memory_of", lambda device: 8 * parameters + 10_000_000)
    staged = shrink("bert-tiny", **{"training.curriculum": [{"until": 0.5, "length": 16, "batch_factor": 1000}]})
    require_memory(plain, parameters, cpu)
    with pytest.raises(UserError, match="a batch of 8,000 rows of 16 tokens takes"):
        require_memory(staged, parameters, cpu)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        (GROWING, "training.first_batch"),
        (FALLING, "mlm's first_rate"),
        ({"training.budget": {"steps": STEPS}, "training.average": {"kind": "ema", "share": 0.2}}, "training.average"),
    ],
)
def test_another_number_of_steps_is_refused(changes, named, corpus, tmp_path, monkeypatch):
    recipe = shrink("bert-tiny", **changes)
    with monkeypatch.context() as patch:
        interrupt_at(patch, 3)
        with pytest.raises(Interrupted):
            train(recipe, corpus, tmp_path / "run")
    with pytest.raises(UserError, match=f"{named} depends on the share of all steps"):
        train(None, corpus, tmp_path / "run", resume=True, budget=Budget(steps=60))


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("bert-tiny", {"training.first_batch": 0}, "first_batch: input should be greater than 0"),
        ("bert-tiny", {"training.first_batch": 2}, "first_batch: input should be less than or equal to 1"),
        ("bert-tiny", {"training.curriculum": [{"until": 0.5, "batch_factor": 0}]}, "greater than 0"),
        ("bert-tiny", {"objective.0.first_rate": 1.0}, "first_rate: input should be less than 1"),
        ("bert-tiny", {"objective.0.masking": "static", "objective.0.first_rate": 0.3}, "static masks stay what they"),
        ("gpt-tiny", {"objective.0.first_rate": 0.3}, "unknown key 'first_rate'"),
        ("transformer-xl-tiny", {"training.first_batch": 0.5}, r"training\.first_batch: rows that continue each other"),
        (
            "transformer-xl-tiny",
            {"training.curriculum": [{"until": 0.5, "batch_factor": 2}]},
            r"training\.curriculum\.0\.batch_factor: rows that continue each other stay as many, or leave it out",
        ),
        ("transformer-translation-tiny", {"training.batch": {"tokens": 999}, "training.first_batch": 0.5}, "one size"),
    ],
)
def test_what_cannot_change_on_the_way_is_refused(name, changes, message):
    with pytest.raises(UserError, match=message):
        load_recipe(name, changes)
