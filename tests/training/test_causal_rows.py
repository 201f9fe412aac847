"""Encoders that read some rows causally: nothing ahead is seen, weights are kept, phases are exact."""

import math

import pytest
import torch
from tests.conftest import crossed, shrink, without_dropout
from tests.training.test_phases import STEPS, ends_alike, stages_of

from bakeoff.errors import UserError
from bakeoff.inspection.peek import peek
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.recipe_files import load_recipe, recipe_names
from bakeoff.row import Row
from bakeoff.trainer.step import add_gradients
from bakeoff.training.pretraining import Pretraining
from bakeoff.training.stages import make_batches

MLM = {"objective": [{"kind": "mlm", "rate": 0.3}], "input": {"format": "blocks", "length": 32}}
MASKED = [
    name
    for name in recipe_names()
    if any(part.kind == "mlm" for part in load_recipe(name).objective) and not load_recipe(name).input.continues
]
QUICK = (
    "bert-tiny",
    "laptop-hybrid-tiny",
    "conv-dynamic-encoder-tiny",
    "ltg-bert-xs",
    "modernbert-base",
    "albert-tiny",
)
ABLE = [name for name in MASKED if load_recipe(name).model.looking_ahead is None]


def built(name, corpus, **changes):
    recipe = without_dropout(shrink(name, **{**MLM, "training.batch": 24, "training.micro_batch": None, **changes}))
    torch.manual_seed(0)
    module = PretrainingModel(recipe, corpus.tokenizer.size).eval()
    for parameter in module.parameters():  # also of branches that begin at zero
        parameter.data += 0.02 * torch.randn_like(parameter)
    return recipe, module


def test_convolutions_and_attention_can_hide_what_is_ahead_and_recurrent_layers_cannot():
    assert {"bert-tiny", "laptop-hybrid-tiny", "laptop-conv-tiny", "ltg-bert-small", "albert-tiny"} <= set(ABLE)
    assert {"lstm-encoder-tiny", "tcn-encoder-tiny"} <= set(MASKED) - set(ABLE)


@pytest.mark.parametrize("name", crossed(ABLE, QUICK))
def test_no_token_sees_a_later_one(name, corpus):
    """With padding and several documents in a row; read from both sides, tokens do see what is ahead."""
    _, module = built(name, corpus)
    ids = torch.randint(10, 100, (3, 12), generator=torch.Generator().manual_seed(0))
    documents = torch.tensor([[1] * 12, [1] * 5 + [2] * 7, [1] * 8 + [0] * 4])
    for row in (Row(ids), Row(ids, documents=documents), Row(ids, padding_mask=documents > 0)):
        for behind in (True, False):
            states = [
                module.model(row._replace(ids=changed, behind=behind))[0]
                for changed in (ids, torch.cat([ids[:, :7], 109 - ids[:, 7:]], dim=1))
            ]
            before = [each[:2, :7] for each in states]
            torch.testing.assert_close(*before, atol=1e-5, rtol=1e-4) if behind else None
            if not behind and name != "none-encoder-tiny":
                assert (before[0][0] - before[1][0]).abs().max() > 1e-6
            assert (states[0][:, 7] - states[1][:, 7]).abs().max() > 1e-6


NORMALISED = ("conv-light-encoder-tiny", "conv-dynamic-encoder-tiny")
ONE_LAYER = ["bert-tiny", "laptop-encoder-tiny", "conv-dense-encoder-tiny", "conv-depthwise-encoder-tiny", *NORMALISED]


@pytest.mark.parametrize("name", ONE_LAYER)
def test_a_layer_that_reads_causally_is_the_centred_one_with_nothing_ahead(name, corpus):
    """A token's state is that of the last token of the text up to it, where kernels are not normalised."""
    changes = {"model.encoder.layers": 1}
    if name in NORMALISED:
        changes["model.encoder.block.mixer.normaliser"] = "none"
    if name == "laptop-encoder-tiny":  # the convolution in front of its feed-forward network alone
        changes["model.encoder.block.mixer"] = {"kind": "none"}
    _, module = built(name, corpus, **changes)
    ids = torch.randint(10, 100, (2, 9), generator=torch.Generator().manual_seed(0))
    behind = module.model(Row(ids, behind=True))[0]
    for length in (1, 4, 9):
        alone = module.model(Row(ids[:, :length]))[0]
        torch.testing.assert_close(behind[:, length - 1], alone[:, -1], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("name", crossed(ABLE, QUICK[:3]))
def test_rows_of_both_kinds_stand_side_by_side(name, corpus):
    """Each row is read as it is by itself, and counts alike, whatever the micro-batches."""
    recipe, module = built(name, corpus, **{"objective.0.causal": 0.5})
    (whole,) = make_batches(recipe, module, corpus, 0).step(0)
    assert whole.apart is not None
    both, causal = whole.apart
    assert sorted([*both.tolist(), *causal.tolist()]) == list(range(24))
    rows, labels = whole.targets["mlm"]
    length = whole.row.ids.shape[1]
    for row in causal.tolist():
        here = rows // length == row
        places = rows[here] % length
        assert torch.equal(whole.row.ids[row][places + 1], labels[here])
        assert corpus.tokenizer.mask not in whole.row.ids[row].tolist()
    for row in both.tolist():
        here = rows // length == row
        assert int(here.sum()) <= 0.5 * length
    total = 0.0
    with torch.no_grad():
        for row in range(24):
            alone = {
                field: value[row : row + 1] if isinstance(value, torch.Tensor) else value
                for field, value in whole.row._replace(causal=None, spans=None)._asdict().items()
            }
            hidden = module.model(Row(**alone)._replace(behind=row in causal.tolist()))[0]
            here = rows // length == row
            head = module.objectives[0].head
            predicted = head.log_probabilities(hidden[0][rows[here] % length], module.model.embedding.weight)
            total -= float(predicted.gather(1, labels[here][:, None]).mean())
        expected = total / 24
    for micro_batch in (24, 7):
        cut = recipe.changed({"training.micro_batch": micro_batch})
        unit = Pretraining(cut, module)
        found = add_gradients(unit, make_batches(cut, module, corpus, 0).step(0), 0)["mlm"]
        assert float(found) == pytest.approx(expected, rel=1e-4)


def test_the_squared_normaliser_counts_in_rows_of_both_kinds(corpus):
    losses = []
    for z_loss in (0.0, 0.1):
        recipe, module = built("bert-tiny", corpus, **{"objective.0.causal": 0.5, "objective.0.z_loss": z_loss})
        batches = make_batches(recipe, module, corpus, 0).step(0)
        losses.append(float(add_gradients(Pretraining(recipe, module), batches, 0)["mlm"]))
    assert losses[1] - losses[0] == pytest.approx(0.1 * math.log(corpus.tokenizer.size) ** 2, rel=0.1)


@pytest.mark.parametrize(
    "name", crossed(["bert-tiny", "laptop-hybrid-tiny", "conv-dynamic-encoder-tiny"], ["laptop-hybrid-tiny"])
)
def test_causal_then_masked_keeps_the_weights(name, corpus, tmp_path, monkeypatch):
    """The whole phase is causal, the next one is masked as without phases, and a stop in either changes nothing."""
    stage = {"until": 0.5, "settings": {"mlm": {"causal": 1.0}}}
    recipe = shrink(name, **MLM, **STEPS, **{"training.curriculum": [stage]})
    stages, plain = stages_of(recipe, corpus), stages_of(recipe.changed({"training.curriculum": []}), corpus)
    for step in range(8):
        for part, usual in zip(stages.step(step), plain.step(step), strict=True):
            assert part.row.behind == (step < 4)
            if step >= 4:
                assert torch.equal(part.row.ids, usual.row.ids)
                assert all(map(torch.equal, part.targets["mlm"], usual.targets["mlm"]))
    run, _ = ends_alike(recipe, corpus, tmp_path, monkeypatch)
    assert set(run.summary["validation"]["losses"]) == {"mlm"}


def test_held_out_rows_are_read_from_both_sides(corpus):
    recipe, module = built("bert-tiny", corpus, **{"objective.0.causal": 0.5})
    plain = recipe.changed({"objective.0.causal": 0.0})
    held_out = [make_batches(each, module, corpus, 0, split="validation").fixed(9) for each in (recipe, plain)]
    for part, usual in zip(*held_out, strict=True):
        assert torch.equal(part.row.ids, usual.row.ids)
        assert part.apart is None
        assert not part.row.behind
        assert not part.weights


def test_peek_says_how_each_row_is_read(corpus):
    found = peek(shrink("bert-tiny", **MLM, **{"objective.0.causal": 0.5}), corpus.path, examples=12)
    assert {row.both_sides for row in found.rows} == {True, False}


@pytest.mark.parametrize(
    ("name", "changes", "says"),
    [
        ("lstm-encoder-tiny", {}, "objective: causal: lstm always looks ahead"),
        ("tcn-encoder-tiny", {}, "objective: causal: tcn always looks ahead"),
        ("bert-tiny", {}, "rows that are read causally are for mlm alone, without nsp"),
        ("gpt-tiny", {"objective": [{"kind": "mlm", "causal": 0.5}]}, "mlm predicts from both sides"),
    ],
)
def test_what_cannot_read_causally_is_refused(name, changes, says):
    for asked in (
        {"objective.0.causal": 0.5},
        {"training.curriculum": [{"until": 0.5, "settings": {"mlm": {"causal": 1}}}]},
    ):
        with pytest.raises(UserError, match=says) as error:
            load_recipe(name, changes or asked)
        assert "\n" not in str(error.value)
