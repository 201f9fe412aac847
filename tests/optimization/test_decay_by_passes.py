"""Weight decay that follows the passes over a text."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import shrink
from tests.optimization.refusing import check_refusal

from bakeoff.optimization.budget import Budget
from bakeoff.recipe import Recipe
from bakeoff.recipe_files import load_recipe
from bakeoff.training.pretrain import pretrain
from bakeoff.training.resolution import resolve_recipe
from bakeoff.tuning.ranges import DECAY, RATE, parse_ranges

LAPTOP = load_recipe("laptop-encoder-tiny")
FORMS = {"muon": {RATE: {"rate": 0.02, "steps": 10}}, "adamw": {"training.optimizer": {"kind": "adamw", "lr": 1e-3}}}


@given(passes=st.floats(0.01, 100), steps=st.integers(1, 10**6), steps_a_pass=st.floats(1, 10**6))
def test_the_weights_remember_so_many_passes_whatever_the_rate(passes, steps, steps_a_pass):
    for changes in FORMS.values():
        recipe = LAPTOP.changed({**changes, DECAY: {"passes": passes}})
        fitted = recipe.fitted(steps, steps_a_pass=steps_a_pass).training.optimizer
        assert 1 / (fitted.lr * fitted.weight_decay) == pytest.approx(max(25, passes * steps_a_pass))
        again = recipe.fitted(steps, steps_a_pass=steps_a_pass)
        assert again.fitted(2 * steps, steps_a_pass=7.0).training.optimizer.weight_decay == fitted.weight_decay
        assert recipe.fitted(steps).training.optimizer == recipe.fitted(steps, steps_a_pass=steps).training.optimizer
        assert Recipe.parse(recipe.model_dump(mode="json"), "the same") == recipe


@pytest.mark.parametrize("form", FORMS)
def test_a_text_that_is_read_more_often_is_decayed_more(form, corpus):
    """At one rate it depends on the text alone; at a rate that falls with the length it rises with the passes."""
    recipe = shrink("laptop-encoder-tiny").changed({**FORMS[form], DECAY: {"passes": 200.0}})
    fitted = [resolve_recipe(recipe, corpus, Budget(epochs=number), "cpu").training for number in (100, 400, 1600)]
    steps_a_pass = fitted[-1].budget.steps / 1600
    for each in fitted:
        memory = 1 / (each.optimizer.lr * each.optimizer.weight_decay)
        assert memory == pytest.approx(200 * steps_a_pass, rel=0.01)
    decays = [each.optimizer.weight_decay for each in fitted]
    assert decays == sorted(decays)
    assert (decays[-1] > decays[0]) == (form == "muon")


def test_weights_without_a_gradient_fade_as_the_rule_says(corpus, tmp_path):
    """The share of a matrix that is left after the training is the product of 1 - lr decay over its steps."""
    changes = {
        RATE: 0.02,
        DECAY: {"passes": 1e-6},
        "training.schedule": {"kind": "constant"},
        "objective": [{"kind": "mlm", "weight": 1e-30}],  # no gradient to speak of
        "training.clip": None,
    }
    recipe = shrink("laptop-encoder-tiny").changed({**changes, **FORMS["adamw"], "training.optimizer.lr": 0.02})
    recipe = recipe.changed({"training.optimizer.epsilon": 1.0, DECAY: {"passes": 1e-6}})
    options = {"progress": False, "device": "cpu", "budget": Budget(steps=30)}
    one, other = (
        pretrain(recipe.changed({DECAY: decay}), corpus.path, tmp_path / str(number), **options)
        for number, decay in enumerate(({"passes": 1e-6}, 0.0))
    )
    for name, weight in one.load().named_parameters():
        share = 0.96**30 if weight.dim() >= 2 else 1.0
        assert torch.allclose(weight, share * dict(other.load().named_parameters())[name], atol=1e-4), name


@pytest.mark.parametrize("name", ["albert-base", "gcnn-14", "cnn-lm"])
def test_other_optimizers_have_a_number(name):
    message = r"\.weight_decay: this optimizer's does not follow the passes over a text"
    check_refusal(name, f"{DECAY}={{passes: 2}}", message)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("-1", "weight_decay: input should be greater than or equal to 0, not -1"),
        ("abc", "weight_decay: input should be a valid number"),
        ("{passes: 0}", "weight_decay.passes: input should be greater than 0"),
        ("{pases: 2}", "weight_decay.pases: unknown key|weight_decay: unknown key 'pases'; did you mean 'passes'"),
        ("{}", "weight_decay.passes: this key is required"),
    ],
)
def test_what_is_wrong_is_said_once(value, message):
    check_refusal("laptop-conv-tiny", f"{DECAY}={value}", f"[.:] ?({message})")


def test_another_optimizer_has_its_usual_decay_again():
    changed = load_recipe("laptop-encoder-tiny", ["training.optimizer.kind=sgd", f"{RATE}=0.1"]).training.optimizer
    assert (changed.kind, changed.weight_decay) == ("sgd", 0.0)
    kept = load_recipe("laptop-encoder-tiny", ["training.optimizer.kind=adamw", f"{RATE}=0.1"]).training.optimizer
    assert kept.weight_decay == LAPTOP.training.optimizer.weight_decay


def test_a_search_of_numbers_takes_the_place_of_the_rule():
    found = next(each for each in parse_ranges([f"{DECAY}=0.001..0.1"], LAPTOP, trials=5) if each.key == DECAY)
    assert (found.low, found.high, found.has_own) == (0.001, 0.1, False)
