"""Every legal pair of a model and an objective trains; every other one is refused, with the table's reason."""

import itertools
import math
from pathlib import Path

import pytest
import torch
from pydantic import TypeAdapter

from bakeoff.errors import UserError
from bakeoff.formats.registry import FORMATS, InputConfig
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.models.blocks import BLOCKS as REGISTERED_BLOCKS
from bakeoff.models.mixers import MIXERS as REGISTERED_MIXERS
from bakeoff.models.model import ModelConfig
from bakeoff.objectives.legality import TRAITS, legality_table, refusal
from bakeoff.objectives.registry import OBJECTIVES
from bakeoff.recipe import Recipe
from bakeoff.trainer.step import optimize
from bakeoff.training.pretraining import Pretraining
from bakeoff.training.stages import make_batches

MIXERS = {
    "attention": {"heads": 2, "positions": "rotary"},
    "relative_attention": {"heads": 2},
    "disentangled_attention": {"heads": 2},
    "conv": {"kernel": 3},
    "depthwise_conv": {"kernel": 3},
    "light_conv": {"kernel": 3, "heads": 2},
    "dynamic_conv": {"kernel": 3, "heads": 2},
    "lstm": {},
    "gru": {},
    "average": {},
    "none": {},
}
WINDOW = {"window": 5, "time_flow": [8]}
BLOCKS = {
    **{f"transformer {kind}": {"mixer": {"kind": kind, **own}, "ffn": {"width": 48}} for kind, own in MIXERS.items()},
    **{f"plain {kind}": {"kind": "plain", "mixer": {"kind": kind, **own}} for kind, own in MIXERS.items()},
    "tcn": {"kind": "tcn", "kernel": 3},
    "gated_cnn": {"kind": "gated_cnn", "convolutions": [{"kernel": 3, "width": 32}]},
    "cnn": {"kind": "cnn", "window": 5, "kernels": [3], "keep": 1},
    "gen_cnn": {"kind": "gen_cnn", "width": 32, "alpha": {**WINDOW, "time_arrow": [8]}, "beta": WINDOW},
}
CAUSAL_ONLY = {"cnn", "gen_cnn"}
FAMILIES = ("encoder", "decoder", "decoder with directions: 2", "encoder and decoder")
MODELS = [
    (family, block)
    for family, block in itertools.product(FAMILIES, BLOCKS)
    if not (family.startswith("encoder") and block in CAUSAL_ONLY)
    and not (family == "encoder and decoder" and not block.startswith("transformer"))
]
SAMPLE = [
    *((family, block, kind) for family, block in MODELS for kind in ("mlm", "clm", "bilm", "span_corruption")),
    *itertools.product(FAMILIES, ["transformer relative_attention"], OBJECTIVES),
]


def values_of(family, block, kind):
    """A recipe for an objective, on rows that suit it, as it is written."""
    stack = {"width": 32, "layers": 2, "block": BLOCKS[block]}
    model = {"embedding": {"positions": "none"}}
    if "encoder" in family:
        model["encoder"] = stack
    if "decoder" in family:
        crossed = {**BLOCKS[block], "cross": {"heads": 2}} if family == "encoder and decoder" else BLOCKS[block]
        model["decoder"] = {**stack, "block": crossed}
    if "2" in family:
        model["directions"] = 2
    pairs = kind in ("nsp", "sop", "sentence_structure")
    rows = {"format": "segment_pair"} if pairs else {"format": "blocks", "isolate": False}
    if kind == "translation":
        rows = {"format": "parallel"}
    learnt = OBJECTIVES[kind].generator_learns
    others = [{"kind": learnt}] if learnt is not None and legal(family, block, kind) else []
    return {
        "name": "crossed",
        "model": model,
        "input": {**rows, "length": 24},
        "objective": [{"kind": kind}, *others],
        "training": {
            "batch": 4,
            "optimizer": {"kind": "adamw", "lr": 1e-3},
            "schedule": {"kind": "constant"},
            "budget": {"steps": 3},
        },
    }


def recipe(family, block, kind):
    return Recipe.parse(values_of(family, block, kind), "crossed")


def traits(family, block):
    able = set() if "relative_attention" in block else {"mixers without a second stream"}
    blind = set() if "attention" in block else {"mixers that do not attend"}
    return {family, "segment_pair", "blocks"} | able | blind


def legal(family, block, kind):
    return not (OBJECTIVES[kind].refused.keys() & (traits(family, block) - {"segment_pair", "blocks"}))


@pytest.fixture
def corpus(request, corpus, parallel_corpus):
    """What the objective can be trained on."""
    kind = request.node.callspec.params["kind"] if hasattr(request.node, "callspec") else ""
    return parallel_corpus if kind == "translation" else corpus


def trains(family, block, kind, corpus):
    crossed = recipe(family, block, kind)
    torch.manual_seed(0)
    module = PretrainingModel(crossed, corpus.tokenizer.size).train()
    before = [parameter.detach().clone() for parameter in module.parameters()]
    batches = make_batches(crossed, module, corpus, seed=0)
    unit = Pretraining(crossed, module)
    for step in range(3):
        means = optimize(unit, batches.step(step), step)
        assert all(math.isfinite(float(mean)) for mean in means.values())
        assert float(means["gradient_norm"]) > 0
    assert any(not torch.equal(old, new) for old, new in zip(before, module.parameters(), strict=True))


@pytest.mark.parametrize(("family", "block", "kind"), [case for case in dict.fromkeys(SAMPLE) if legal(*case)])
def test_legal_pairs_train(family, block, kind, corpus):
    trains(family, block, kind, corpus)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "block", "kind"),
    [(*model, kind) for model in MODELS for kind in OBJECTIVES if legal(*model, kind) and (*model, kind) not in SAMPLE],
)
def test_all_legal_pairs_train(family, block, kind, corpus):
    trains(family, block, kind, corpus)


@pytest.mark.parametrize(("family", "block"), MODELS)
def test_all_others_are_refused_with_the_reason(family, block):
    refused = [kind for kind in OBJECTIVES if not legal(family, block, kind)]
    assert refused
    for kind in refused:
        values = values_of(family, block, kind)
        rows = TypeAdapter(InputConfig).validate_python(values["input"])
        with pytest.raises(UserError) as caught:
            Recipe.parse(values, "crossed")
        reason = refusal(OBJECTIVES[kind](), ModelConfig.model_validate(values["model"]), rows)
        assert reason in [OBJECTIVES[kind].refused.get(trait) for trait in traits(family, block)]
        assert str(caught.value) == f"crossed: {reason}"


def test_these_are_all_mixers_blocks_and_objectives():
    assert MIXERS.keys() == REGISTERED_MIXERS.keys()
    assert {block.get("kind", "transformer") for block in BLOCKS.values()} == REGISTERED_BLOCKS.keys()
    assert FORMATS.keys() <= set(TRAITS)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"format": "segment_pair", "length": 24}, "clm needs running text, but input.format is segment_pair; use"),
        ({"format": "blocks", "length": 24, "context": 24}, "context: 24 of 24 tokens leave none to predict"),
        ({"format": "sentence_pair", "length": 24}, "clm needs running text, but input.format is sentence_pair; use"),
        ({"format": "parallel", "length": 24}, "clm needs a text, but input.format is parallel; use translation, or"),
    ],
)
def test_rows_that_do_not_suit_are_refused(changes, reason):
    values = recipe("decoder", "tcn", "clm").model_dump(mode="json")
    with pytest.raises(UserError, match=reason):
        Recipe.parse({**values, "input": changes}, "rows")


def test_tokens_that_are_only_read_are_for_causal_models():
    values = recipe("encoder", "tcn", "mlm").model_dump(mode="json")
    values["input"]["context"] = 4
    with pytest.raises(UserError, match=r"mlm has no use for tokens that are only read; set input\.context to 0"):
        Recipe.parse(values, "rows")


def test_the_documentation_has_this_table():
    text = (Path(__file__).parents[2] / "docs" / "recipes.md").read_text(encoding="utf-8")
    assert legality_table(OBJECTIVES) in text
    assert {trait for config in OBJECTIVES.values() for trait in config.refused} <= set(TRAITS)
