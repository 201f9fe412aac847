"""Which held-out losses are ranked together: never a bound with a likelihood, nor texts with other separators."""

from types import SimpleNamespace

import pytest
from tests.conftest import shrink

from bakeoff.comparison.comparable import comparable_losses

TEXT = SimpleNamespace(path="corpus", held_out="held out", tokenizer="wordpiece 160")


def entry(label, name, **changes):
    recipe = shrink(name, **changes).model_dump(mode="json")
    losses = {part["kind"]: 3.0 for part in recipe["objective"]}
    point = SimpleNamespace(losses=losses, bits_per_byte=dict(losses))
    return SimpleNamespace(label=label, recipe=recipe, corpus=None, runs=[SimpleNamespace(curve=[point])])


def test_bounds_likelihoods_and_texts_with_other_separators_stand_apart():
    blocks = {"format": "blocks", "length": 32}
    recipes = [
        entry("gpt", "gpt-tiny"),
        entry("other gpt", "gpt2-tiny"),
        entry("sentences", "gpt-tiny", **{"input.separate_sentences": 1.0}),
        entry("whole sentences", "gpt-tiny", input={"format": "doc_sentences", "length": 32}),
        entry("diffusion", "roberta-tiny", objective=[{"kind": "diffusion"}], input=blocks),
        entry("masked", "roberta-tiny", objective=[{"kind": "mlm"}], input=blocks),
    ]
    panels = comparable_losses(SimpleNamespace(recipes=recipes, corpus=TEXT))
    assert {tuple(each.label for each in panel.entries): panel.unit for panel in panels} == {
        ("gpt", "other gpt"): "bits per byte",
        ("sentences",): "bits per byte",
        ("whole sentences",): "bits per byte",
        ("diffusion",): "nats per token, at most",
        ("masked",): "nats per target",
    }
    titles = {panel.entries[0].label: panel.title for panel in panels}
    assert titles["gpt"].endswith("separators before each document")
    assert titles["sentences"].endswith("separators before each sentence")
    assert "bound" in titles["diffusion"]


@pytest.mark.parametrize(
    ("name", "setting"),
    [
        *(("roberta-tiny", each) for each in ({"causal": 0.5}, {"first_rate": 0.4}, {"z_loss": 1e-4})),
        ("roberta-tiny", {"masking": "static", "copies": 2}),
        ("roberta-tiny", {"activation": "relu", "map_bias": False}),
        ("t5-tiny", {"head": "untied", "bias": True}),
        ("electra-tiny", {"activation": "relu"}),
        ("transformer-translation-tiny", {"label_smoothing": 0.0}),
    ],
)
def test_what_matters_in_training_alone_and_the_head_keep_no_losses_apart(name, setting):
    place = len(shrink(name).objective) - 1
    changes = {f"objective.{place}.{key}": value for key, value in setting.items()}
    recipes = [entry("plain", name), entry("other", name, **changes)]
    for panel in comparable_losses(SimpleNamespace(recipes=recipes, corpus=TEXT)):
        assert [each.label for each in panel.entries] == ["plain", "other"]


@pytest.mark.parametrize("setting", [{"held_out_rate": 0.4}, {"mask": 1.0, "random": 0.0}, {"whole_word": True}])
def test_what_is_predicted_keeps_losses_apart(setting):
    changes = {f"objective.0.{key}": value for key, value in setting.items()}
    recipes = [entry("plain", "roberta-tiny"), entry("other", "roberta-tiny", **changes)]
    assert len(comparable_losses(SimpleNamespace(recipes=recipes, corpus=TEXT))) == 2
