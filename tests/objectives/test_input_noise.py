"""Causal models whose input is noisy in training: what is hidden, what is predicted still, and what stays clean."""

import numpy as np
import pytest
import torch
from tests.conftest import crossed, shrink
from tests.training.test_phases import ends_alike

from bakeoff.errors import UserError
from bakeoff.learner.pretraining_model import PretrainingModel, build_on_meta
from bakeoff.recipe_files import load_recipe, recipe_names
from bakeoff.runs.run import Run
from bakeoff.training.pretrain import pretrain
from bakeoff.training.resolution import resolve_recipe
from bakeoff.training.stages import make_batches

CAUSAL = [name for name in recipe_names() if load_recipe(name).objective[0].kind == "clm"]


def pairs_of(parts):
    """The ids that are read at each target, and the label."""
    for part in parts:
        rows, labels = part.targets["clm"]
        yield from zip(part.row.ids.flatten()[rows].tolist(), labels.tolist(), strict=True)


def batches_of(corpus, name="gpt-tiny", split="train", **changes):
    recipe = shrink(name, **{"training.batch": 32}, **changes)
    return make_batches(recipe, build_on_meta(recipe, corpus.tokenizer.size), corpus, 3, split=split)


@pytest.mark.parametrize("share", [0.1, 0.4])
def test_hidden_tokens_are_masked_and_all_are_predicted(share, corpus):
    clean, noisy = batches_of(corpus), batches_of(corpus, **{"objective.0.noise": share})
    hidden = total = 0
    for step in range(6):
        expected, found = list(pairs_of(clean.step(step))), list(pairs_of(noisy.step(step)))
        assert [label for _, label in found] == [label for _, label in expected]
        changed = [(a, b) for (a, _), (b, _) in zip(expected, found, strict=True) if a != b]
        assert {b for _, b in changed} == {corpus.tokenizer.mask}
        assert corpus.tokenizer.separator not in {a for a, _ in changed}
        hidden, total = hidden + len(changed), total + sum(a != corpus.tokenizer.separator for a, _ in expected)
    assert hidden / total == pytest.approx(share, abs=5 * np.sqrt(share * (1 - share) / total))


@pytest.mark.parametrize("share", [0.1, 0.4])
def test_skipped_tokens_leave_the_rest_in_order(share, corpus):
    """Each token that stays predicts what followed it in the text, hidden or not."""
    clean = batches_of(corpus)
    noisy = batches_of(corpus, **{"objective.0.noise": share, "objective.0.noise_by": "skip"})
    kept = total = 0
    for step in range(6):
        (whole,), (short,) = clean.step(step), noisy.step(step)
        length = whole.row.ids.shape[1]
        expected = [[] for _ in whole.row.ids]
        for row, label in zip(*whole.targets["clm"], strict=True):
            expected[row // length].append((int(whole.row.ids.flatten()[row]), int(label)))
        found = [[] for _ in short.row.ids]
        for row, label in zip(*short.targets["clm"], strict=True):
            found[row // length].append((int(short.row.ids.flatten()[row]), int(label)))
        for long, part in zip(expected, found, strict=True):
            left = iter(long)
            assert all(pair in left for pair in part)  # a subsequence
            kept, total = kept + len(part), total + len(long)
        assert short.tokens == sum(map(len, found))
    assert kept / total == pytest.approx(1 - share, abs=0.05)
    assert noisy.tokens_per_step == pytest.approx(clean.tokens_per_step * (1 - share))


def test_other_tokens_are_hidden_in_every_epoch_and_none_in_held_out_text(corpus):
    noisy = batches_of(corpus, **{"objective.0.noise": 0.3})
    epoch = -(-noisy.rows_an_epoch // 32)
    assert list(pairs_of(noisy.step(0))) != list(pairs_of(noisy.step(epoch)))
    held_out = [
        list(pairs_of(batches_of(corpus, split="validation", **{"objective.0.noise": noise}).fixed(9)))
        for noise in (0.0, 0.3)
    ]
    assert held_out[0] == held_out[1]


def test_rows_seen_from_both_sides_have_no_noise(corpus):
    recipe = shrink("gpt-bert-tiny", **{"objective.1.noise": 0.5, "objective.0.causal": 0.5, "training.batch": 32})
    plain = recipe.changed({"objective.1.noise": 0.0})
    made = [
        make_batches(each, build_on_meta(each, corpus.tokenizer.size), corpus, 3).step(0)[0] for each in (recipe, plain)
    ]
    both = made[0].row.prefix > 0
    assert torch.equal(made[0].row.ids[both], made[1].row.ids[both])
    assert not torch.equal(made[0].row.ids[~both], made[1].row.ids[~both])


@pytest.mark.parametrize("by", ["mask", "skip"])
@pytest.mark.parametrize("name", crossed(CAUSAL, ("gpt-tiny", "gcnn-tiny", "lstm-lm-tiny", "transformer-xl-tiny")))
def test_every_causal_recipe_learns_with_noise(name, by, corpus):
    noise = {"objective.0.noise": 0.3, "objective.0.noise_by": by}
    if by == "skip" and load_recipe(name).input.continues:
        with pytest.raises(UserError, match="rows that continue each other keep their length; set it to mask"):
            shrink(name, **noise)
        return
    recipe = shrink(name, **noise)
    torch.manual_seed(0)
    module = PretrainingModel(recipe, corpus.tokenizer.size).train()
    for batch in make_batches(recipe, module, corpus, 0).step(0):
        losses = module(batch)[0]
        sum(losses.values()).backward()
        assert all(torch.isfinite(loss) for loss in losses.values())


def test_noise_that_ends_with_a_stage_is_resumed_with_the_same_bits(corpus, tmp_path, monkeypatch):
    stage = {"until": 0.5, "settings": {"clm": {"noise": 0.2, "noise_by": "skip"}}}
    recipe = shrink("gpt-tiny", **{"training.budget": {"steps": 8}, "training.curriculum": [stage]})
    ends_alike(recipe, corpus, tmp_path, monkeypatch)


def test_a_pass_is_one_over_the_text_whatever_is_taken_out_of_the_rows(corpus, tmp_path):
    skipping = {"objective.0.noise": 0.4, "objective.0.noise_by": "skip"}
    stage = {"until": 0.5, "settings": {"clm": {"noise": 0.1}}}
    plain = shrink("gpt-tiny", **{"training.budget": {"epochs": 3}, "training.batch": 4})
    plain = plain.changed({"training.optimizer": {"kind": "adamw", "lr": 1e-3, "weight_decay": {"passes": 2}}})
    staged = plain.changed({**skipping, "training.curriculum": [stage]})
    fitted = [resolve_recipe(each, corpus, device="cpu").training for each in (plain, plain.changed(skipping), staged)]
    assert fitted[0].budget.steps == fitted[1].budget.steps
    assert fitted[0].optimizer.weight_decay == pytest.approx(fitted[1].optimizer.weight_decay, rel=1e-3)
    assert fitted[2].budget.steps == pytest.approx(fitted[0].budget.steps, abs=1)
    kept = plain.changed({**skipping, "training.save_at": {"epochs": [1, 2]}})
    run = pretrain(kept, corpus.path, tmp_path / "run", device="cpu", progress=False)
    found = [Run.open(each).summary["steps"] for each in sorted(run.saved.iterdir())]
    assert found == pytest.approx([fitted[0].budget.steps / 3, fitted[0].budget.steps * 2 / 3], rel=0.03)


def test_rows_that_continue_each_other_skip_nothing_in_a_stage_either():
    noisy, skipping = {"noise": 0.1}, {"noise": 0.1, "noise_by": "skip"}
    load_recipe("transformer-xl-tiny", {"training.curriculum": [{"until": 0.5, "settings": {"clm": noisy}}]})
    with pytest.raises(UserError, match="rows that continue each other keep their length; set it to mask"):
        load_recipe("transformer-xl-tiny", {"training.curriculum": [{"until": 0.5, "settings": {"clm": skipping}}]})


def test_a_form_of_noise_without_noise_is_refused_unless_a_stage_has_some():
    form = {"objective.0.noise_by": "skip"}
    with pytest.raises(UserError, match="noise_by: skip is the form of tokens that noise hides, and noise is 0"):
        load_recipe("gpt-tiny", form)
    load_recipe("gpt-tiny", {**form, "training.curriculum": [{"until": 0.5, "settings": {"clm": {"noise": 0.1}}}]})
