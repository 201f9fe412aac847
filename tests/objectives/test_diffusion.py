"""Masked diffusion: rates, weights, and the bound against sums by hand in float64."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import crossed, shrink
from tests.training.test_pretrain import train

import bakeoff
from bakeoff.cli.shared.printing import losses_text
from bakeoff.corpus.mixture import open_corpus
from bakeoff.errors import UserError
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.objectives.diffusion import Diffusion, DiffusionConfig
from bakeoff.randomness.draws import Draws
from bakeoff.recipe_files import load_recipe, recipe_names
from bakeoff.trainer.step import add_gradients
from bakeoff.training.pretraining import Pretraining
from bakeoff.training.stages import make_batches

DIFFUSION = {"objective": [{"kind": "diffusion"}], "input": {"format": "blocks", "length": 32}}
ENCODERS = [
    name
    for name in recipe_names()
    if any(part.kind == "mlm" for part in load_recipe(name).objective) and not load_recipe(name).input.continues
]


def built(name, corpus, **changes):
    recipe = shrink(name, **DIFFUSION, **{"training.batch": 32, "training.micro_batch": None}, **changes)
    torch.manual_seed(0)
    return recipe, PretrainingModel(recipe, corpus.tokenizer.size)


def test_every_token_of_a_row_is_hidden_with_the_probability_that_its_weight_says(corpus):
    recipe, module = built("roberta-tiny", corpus)
    batches = make_batches(recipe, module, corpus, 0)
    plain = make_batches(recipe.changed({"objective": [{"kind": "mlm"}]}), module, corpus, 0)
    shares, rates = [], []
    for step in range(40):
        (part,) = batches.step(step)
        rows, labels = part.targets["diffusion"]
        ids, mask = part.row.ids.flatten(), corpus.tokenizer.mask
        assert bool((ids[rows] == mask).all())  # neither kept nor random
        assert int((ids == mask).sum()) == len(rows)
        owners = rows // part.row.ids.shape[1]
        for row in owners.unique():
            weights = part.weights["diffusion"][owners == row]
            assert len(weights.unique()) == 1
            rates.append(1 / float(weights[0]))
            shares.append(int((owners == row).sum()) / int(part.counted_rows["diffusion"][row]))
        assert labels.dtype == torch.int64
    rates, shares = np.array(rates), np.array(shares)
    counts = np.histogram(rates, 9, (0.1, 1))[0]  # rows of lower rates may have nothing hidden
    assert counts.min() > 0.7 * counts.mean()
    assert abs((shares - rates).mean()) < 0.01
    assert np.abs(shares - rates).std() < 0.1
    assert plain.rows_an_epoch == batches.rows_an_epoch


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**31), st.integers(0, 50), st.integers(2, 500))
def test_rates_lie_evenly_in_any_run_of_rows(seed, epoch, rows):
    objective = Diffusion(DiffusionConfig(smallest=0.01), shrink("bert-tiny").model, 100)
    rates = np.sort(objective.rates(Draws(seed, np.full(rows, epoch), np.arange(7, 7 + rows))))
    assert 0.01 <= rates[0] <= rates[-1] <= 1
    even = 0.01 + 0.99 * (np.arange(rows) + 0.5) / rows
    assert np.abs(rates - even).max() < 4 * math.log(rows + 2) / rows


@pytest.mark.parametrize("micro_batch", [32, 5])
def test_the_loss_is_the_bound_by_hand(corpus, micro_batch):
    """sum over rows of (1/t) times the cross-entropies, over the number of all tokens, in float64, token by token."""
    recipe, module = built("roberta-tiny", corpus)
    recipe = recipe.changed({"training.micro_batch": micro_batch})
    module.eval()
    unit = Pretraining(recipe, module)
    parts = make_batches(recipe, module, corpus, 0).step(2)
    total, tokens = 0.0, 0
    for part in parts:
        hidden, _ = module.model(part.row)
        for row, (ids, states) in enumerate(zip(part.row.ids, hidden, strict=True)):
            rows, labels = part.targets["diffusion"]
            here = torch.div(rows, part.row.ids.shape[1], rounding_mode="floor") == row
            for position, label, weight in zip(rows[here], labels[here], part.weights["diffusion"][here], strict=True):
                scores = (
                    module.objectives[0]
                    .head.scores(states[position % len(ids)][None], module.model.embedding.weight)[0]
                    .detach()
                    .double()
                )
                total += float(weight) * float(torch.logsumexp(scores, 0) - scores[label])
        special = torch.isin(part.row.ids, torch.from_numpy(corpus.tokenizer.special_ids.astype(np.int64)))
        masked = part.row.ids == corpus.tokenizer.mask
        unknown = part.row.ids == corpus.tokenizer.unknown
        tokens += int((~special | masked).sum() - (unknown & ~special).sum())
    means = add_gradients(unit, parts, 2)
    assert float(means["diffusion"]) == pytest.approx(total / tokens, rel=1e-5)
    assert sum(part.count("diffusion") for part in parts) == tokens


def test_the_gradient_is_that_of_the_weighted_sum(corpus, monkeypatch):
    """Also where the scores are made in chunks."""
    recipe, module = built("roberta-tiny", corpus)
    module.eval()
    parts = make_batches(recipe, module, corpus, 0).step(0)

    def gradients():
        module.zero_grad()
        add_gradients(Pretraining(recipe, module), parts, 0)
        return {name: each.grad.clone() for name, each in module.named_parameters() if each.grad is not None}

    whole = gradients()
    monkeypatch.setattr("bakeoff.ops.linear_cross_entropy.MOST_SCORES", 7 * corpus.tokenizer.size)
    for name, gradient in gradients().items():
        torch.testing.assert_close(gradient, whole[name], atol=1e-6, rtol=1e-4)


def test_an_even_model_has_the_loss_of_even_chances(corpus):
    """Whatever is hidden: log V nats a token, in expectation over what is hidden."""
    recipe, module = built("roberta-tiny", corpus)
    for parameter in module.parameters():
        torch.nn.init.zeros_(parameter)
    batches = make_batches(recipe, module, corpus, 0)
    unit = Pretraining(recipe, module)
    losses = [float(add_gradients(unit, batches.step(step), step)["diffusion"]) for step in range(60)]
    assert np.mean(losses) == pytest.approx(math.log(corpus.tokenizer.size), rel=0.05)


def test_held_out_losses_are_said_to_be_bounds(corpus, tmp_path):
    recipe, _ = built("bert-tiny", corpus, **{"training.budget": {"steps": 2}})
    run = train(recipe, corpus, tmp_path / "run")
    found = bakeoff.evaluate(run.path, corpus=corpus.path, device="cpu")
    split = corpus.validation
    per_byte = found["losses"]["diffusion"] / math.log(2) * len(split.tokens) / split.bytes
    assert found["bits_per_byte"]["diffusion"] == pytest.approx(per_byte)
    assert 0 <= found["accuracy"]["diffusion"] <= 1
    assert found["at_most"] == ["diffusion"]
    assert "| diffusion | at most " in (run.path / "README.md").read_text(encoding="utf-8")
    (line,) = losses_text(found).values()
    assert line.startswith("loss at most ")
    assert "bits per byte at most" in line
    again = bakeoff.evaluate(run.path, corpus=corpus.path, device="cpu")
    assert again["losses"] == found["losses"]


def test_mixtures_weigh_targets_alike(mixture):
    text = open_corpus(mixture)
    recipe, module = built("roberta-tiny", text.corpora[0])
    for part in make_batches(recipe, module, text, 0).step(3):
        rows, _ = part.targets["diffusion"]
        owners = rows // part.row.ids.shape[1]
        assert len(part.weights["diffusion"]) == len(rows)
        assert len(part.counted_rows["diffusion"]) == len(part.row.ids)
        for row in owners.unique():
            assert len(part.weights["diffusion"][owners == row].unique()) == 1


@pytest.mark.parametrize(
    "name", crossed(ENCODERS, ("bert-tiny", "electra-tiny", "conv-light-encoder-tiny", "lstm-encoder-tiny"))
)
def test_every_encoder_learns_it(name, corpus):
    recipe, module = built(name, corpus)
    unit = Pretraining(recipe, module.train())
    means = add_gradients(unit, make_batches(recipe, module, corpus, 0).step(0), 0)
    assert math.isfinite(float(means["diffusion"]))
    assert any(float(each.grad.abs().max()) > 0 for each in module.parameters() if each.grad is not None)


def test_what_does_not_fit_a_bound_is_refused():
    with pytest.raises(UserError, match="the loss of diffusion is a bound, to which nothing can be added"):
        load_recipe("roberta-tiny", {"objective": [{"kind": "diffusion", "z_loss": 1e-4}]})
    with pytest.raises(UserError, match="diffusion predicts from both sides"):
        load_recipe("gpt-tiny", {"objective": [{"kind": "diffusion"}]})


def test_a_bound_is_one_of_the_text_as_it_is_so_that_no_other_objective_may_change_it_in_the_same_steps():
    both = {**DIFFUSION, "objective": [{"kind": "mlm"}, {"kind": "diffusion"}]}
    with pytest.raises(UserError, match="objective: diffusion is a bound for the text as it is, which mlm changes"):
        load_recipe("roberta-tiny", both)
    in_turn = {**both, "objective.1.weight": 0}
    stage = {"until": 0.5, "weights": {"diffusion": 1}}
    with pytest.raises(UserError, match=r"curriculum\.0\.weights: diffusion is a bound .* which mlm changes"):
        load_recipe("roberta-tiny", {**in_turn, "training.curriculum": [stage]})
    stage["weights"]["mlm"] = 0
    load_recipe("roberta-tiny", {**in_turn, "training.curriculum": [stage]})
