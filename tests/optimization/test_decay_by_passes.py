"""Weight decay that follows the passes over a text."""

import itertools
import shutil

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import shrink
from tests.optimization.refusing import check_refusal

from bakeoff.optimization.budget import Budget
from bakeoff.recipe import Recipe
from bakeoff.recipe_files import load_recipe
from bakeoff.runs.run import Run
from bakeoff.training.initial_weights import Start
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


def memory(run, passes):
    """Tokens of the texts whose passes a run's weights remember."""
    optimizer, summary = run.recipe.training.optimizer, run.summary
    return summary["tokens"] / summary["steps"] / (optimizer.lr * optimizer.weight_decay) / passes


@pytest.fixture(scope="module")
def further(corpus, tmp_path_factory):
    """A function that trains two steps on a corpus, from runs or from chance."""
    folder, numbers = tmp_path_factory.mktemp("further"), itertools.count()
    recipe = shrink("laptop-encoder-tiny").changed({**FORMS["adamw"], DECAY: {"passes": 300.0}})

    def train(path, run=None, **options):
        options = {"budget": Budget(steps=2), "progress": False, "device": "cpu", "resume": True} | options
        start = None if run is None else Start(run=run.path)
        out = options.pop("out", folder / str(next(numbers)))
        return pretrain(options.pop("recipe", recipe), path, out, start=start, **options)

    return train


@pytest.fixture(scope="module")
def first(further, corpus):
    return further(corpus.path)


def test_further_training_remembers_the_texts_of_its_start_too(corpus, other, mixture, further, first):
    """A small text does not decay what a large one has taught; a text that is read again counts once."""
    texts = {corpus.fingerprint: corpus.train_tokens, other.fingerprint: other.train_tokens}
    assert first.environment["texts"] == {corpus.fingerprint: corpus.train_tokens}
    assert memory(first, 300) == pytest.approx(corpus.train_tokens, rel=0.01)
    again = further(corpus.path, first)
    assert memory(again, 300) == pytest.approx(corpus.train_tokens, rel=0.01)
    second = further(other.path, first)
    third = further(corpus.path, second)
    both = further(mixture, first)
    for run in (second, third, both):
        assert memory(run, 300) == pytest.approx(sum(texts.values()), rel=0.05), run.path
        assert run.environment["texts"] == texts


def test_a_training_that_is_gone_on_with_remembers_the_texts_of_its_start(corpus, other, further, first, tmp_path):
    out = tmp_path / "run"
    further(other.path, first, out=out, until=1)
    longer = further(other.path, first, out=out, budget=Budget(steps=4))
    assert memory(longer, 300) == pytest.approx(corpus.train_tokens + other.train_tokens, rel=0.05)
    assert set(longer.environment["texts"]) == {corpus.fingerprint, other.fingerprint}


def test_the_text_of_an_older_start_is_read_from_its_decay(corpus, other, further, first, tmp_path):
    """Runs from before the texts were recorded; a decay that is a number says nothing of a text."""
    constant = further(corpus.path, recipe=first.recipe.changed({DECAY: 0.01}))
    for run, tokens in ((first, corpus.train_tokens), (constant, 0)):
        old = Run(shutil.copytree(run.path, tmp_path / run.path.name))
        old.replace_environment({key: value for key, value in old.environment.items() if key != "texts"})
        named = Recipe.parse(first.environment["recipe"], "the recipe")
        assert memory(further(other.path, old, recipe=named), 300) == pytest.approx(
            tokens + other.train_tokens, rel=0.05
        )


def test_encoder_and_decoder_bring_their_texts(corpus, other, first, further):
    decoder = further(other.path, recipe=shrink("laptop-decoder-tiny").changed(FORMS["adamw"]))
    texts = {corpus.fingerprint: corpus.train_tokens, other.fingerprint: other.train_tokens}
    assert Start(encoder=first.path, decoder=decoder.path).texts() == texts
    assert Start(encoder=first.path).texts() == first.environment["texts"]


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
