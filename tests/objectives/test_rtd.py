"""Replaced-token detection: a generator of its own, its samples, and what the model is asked of them."""

from pathlib import Path
from typing import ClassVar, Literal

import pytest
import torch
from tests.conftest import gathered_of, shrink, without_dropout

from bakeoff.errors import UserError
from bakeoff.inspection.peek import peek
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.models.mixers import MIXERS
from bakeoff.models.mixers.depthwise_conv import DepthwiseConvConfig
from bakeoff.models.mixers.mixer import MixerBaseConfig
from bakeoff.objectives.rtd import ReplacedTokenDetectionConfig
from bakeoff.recipe_files import load_recipe
from bakeoff.training.initial_weights import Start
from bakeoff.training.pretrain import pretrain
from bakeoff.training.stages import make_batches


def test_samples_are_as_frequent_as_the_generator_says():
    probabilities = torch.tensor([0.1, 0.0, 0.25, 0.6, 0.05])
    count = 40_000
    words = torch.randint(2**32, (count,), generator=torch.Generator().manual_seed(0))
    words[:2] = torch.tensor([0, 2**32 - 1])  # the ends are tokens that can be drawn
    objective = ReplacedTokenDetectionConfig().build(shrink("electra-tiny").model, 5)
    places = torch.arange(count)
    drawn, labels = objective.replace(
        torch.zeros(1, count, dtype=torch.int64),
        (places, torch.full((count,), 3)),
        probabilities.log().expand(count, -1),
        (places, words),
    )
    assert drawn[0, :2].tolist() == [0, 4]
    shares = torch.bincount(drawn[0], minlength=5) / count
    assert shares[1] == 0
    assert shares.tolist() == pytest.approx(probabilities.tolist(), abs=0.01)
    assert labels.tolist() == (drawn[0] != 3).long().tolist()


def test_every_token_is_asked_about_and_none_of_the_padding(corpus):
    recipe = shrink("electra-tiny")
    module = PretrainingModel(recipe, corpus.tokenizer.size)
    padded = 0
    for part in (part for step in range(20) for part in make_batches(recipe, module, corpus, 0).step(step)):
        padding_mask = (
            torch.ones_like(part.row.ids, dtype=torch.bool) if part.row.padding_mask is None else part.row.padding_mask
        )
        assert part.targets["rtd"][0].tolist() == padding_mask.flatten().nonzero()[:, 0].tolist()
        padded += int((~padding_mask).sum())
    assert padded


class BandConfig(MixerBaseConfig):
    """A mixer with a key that belongs to the width, and one that does not."""

    kind: Literal["band"] = "band"
    channels: int = 40
    taps: int = 40
    scales_with_width: ClassVar = frozenset({"channels"})

    def build(self, context):
        return DepthwiseConvConfig(kernel=3).build(context)


def test_a_generator_has_a_share_of_what_parts_declare(monkeypatch):
    monkeypatch.setattr(MIXERS, "_configs", {**MIXERS, "band": BandConfig})
    blocks = [{"kind": "transformer", "ffn": {"width": 80}, "mixer": {"kind": "band"}}]
    model = load_recipe("electra-tiny").changed({"model.encoder.width": 120, "model.encoder.block": blocks}).model
    generator = ReplacedTokenDetectionConfig(generator=0.25).generator_model(model)
    (block,) = generator.encoder.block
    assert (generator.encoder.width, block.ffn.width) == (30, 20)
    assert (block.mixer.channels, block.mixer.taps) == (10, 40)
    assert generator.encoder.layers == model.encoder.layers


def test_the_model_reads_what_the_generator_wrote_and_the_generator_what_is_hidden(corpus):
    recipe = without_dropout(shrink("electra-tiny"))
    torch.manual_seed(0)
    module = PretrainingModel(recipe, corpus.tokenizer.size)
    (batch,) = make_batches(recipe, module, corpus, 0).step(0)
    read = {}
    for name, model in (("model", module.model), ("generator", module.generator)):
        model.register_forward_pre_hook(lambda _, given, name=name: read.update({name: given[0].ids}))
    module(batch)
    places, originals = batch.targets["mlm"]
    assert torch.equal(read["generator"], batch.row.ids)
    assert (batch.row.ids.flatten()[places] == corpus.tokenizer.mask).float().mean() > 0.6
    assert (read["model"] != corpus.tokenizer.mask).all()
    untouched = torch.ones(batch.row.ids.numel(), dtype=torch.bool).index_fill(0, places, False)
    assert torch.equal(read["model"].flatten()[untouched], batch.row.ids.flatten()[untouched])
    labels = gathered_of(module, batch)[0]["rtd"][1]
    replaced = torch.zeros(batch.row.ids.numel(), dtype=torch.bool)
    replaced[batch.targets["rtd"][0]] = labels.bool()
    assert torch.equal(replaced.nonzero()[:, 0], places[read["model"].flatten()[places] != originals])


def test_no_gradient_goes_through_what_was_drawn(corpus):
    recipe = without_dropout(shrink("electra-tiny"))
    torch.manual_seed(0)
    module = PretrainingModel(recipe, corpus.tokenizer.size)
    (batch,) = make_batches(recipe, module, corpus, 0).step(0)
    module(batch)[0]["rtd"].backward()
    assert all(parameter.grad is None for parameter in module.generator.parameters())
    assert all(parameter.grad is None for parameter in module.heads["mlm"].parameters())
    module.zero_grad()
    module(batch)[0]["mlm"].backward()
    assert all(parameter.grad is None for parameter in module.model.encoder.parameters())
    assert all(parameter.grad is not None for parameter in module.generator.parameters())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"objective": [{"kind": "rtd"}]}, "rtd replaces what mlm has hidden; add mlm"),
        ({"objective": [{"kind": "mlm"}, {"kind": "rtd"}, {"kind": "word_structure"}]}, "not word_structure"),
    ],
)
def test_what_cannot_be_trained_is_refused_in_one_line(changes, message):
    with pytest.raises(UserError, match=message) as caught:
        load_recipe("electra-tiny").changed(changes)
    assert "\n" not in str(caught.value)


def test_a_generator_that_cannot_be_built_is_named():
    recipe = load_recipe("electra-tiny", {"objective.1.generator": 0.35})
    with pytest.raises(UserError, match=r"rtd: generator: 0.35 of the model's widths and heads .*45") as caught:
        PretrainingModel(recipe.changed({"model.encoder.block.mixer.heads": 16}), 100)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["conv-light-encoder-tiny", "albert-tiny", "lstm-encoder-tiny", "laptop-hybrid-tiny"])
def test_any_encoder_can_detect_replaced_tokens(name, corpus):
    recipe = shrink(name, objective=[{"kind": "mlm"}, {"kind": "rtd"}])
    torch.manual_seed(0)
    module = PretrainingModel(recipe, corpus.tokenizer.size)
    (batch,) = make_batches(recipe, module, corpus, 0).step(0)
    sum(module(batch)[0].values()).backward()
    assert all(each.grad is not None and each.grad.isfinite().all() for each in module.parameters())
    sizes = [sum(each.numel() for each in model.stack.parameters()) for model in (module.generator, module.model)]
    assert sizes[0] < 0.3 * sizes[1]


def test_sentence_order_may_be_learnt_beside_it(corpus):
    recipe = shrink("electra-tiny", objective=[{"kind": "mlm"}, {"kind": "rtd"}, {"kind": "sop"}])
    module = PretrainingModel(recipe, corpus.tokenizer.size)
    (batch,) = make_batches(recipe, module, corpus, 0).step(0)
    assert set(module(batch)[0]) == {"mlm", "rtd", "sop"}


def test_peek_says_that_the_generator_comes_first(corpus):
    (mlm, rtd) = peek(shrink("electra-tiny"), corpus.path, examples=4).drawn
    assert mlm.share == pytest.approx(0.15, abs=0.04)
    assert (rtd.share, rtd.generator_learns, rtd.counts) == (1.0, "mlm", {})


@pytest.fixture(scope="module")
def run(corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("electra")
    return pretrain(shrink("electra-tiny"), corpus.path, folder / "run", device="cpu")


def test_a_run_goes_on_from_generator_and_model_alike(run, corpus):
    recipe = run.recipe
    torch.manual_seed(5)
    module = PretrainingModel(recipe, corpus.tokenizer.size)
    taken = Start(run=Path(run.path)).load(module, corpus)
    assert taken["fresh"] == []
    assert taken["tensors"] == taken["of"]
    assert any(name.startswith("generator.") for name in module.state_dict())


def test_held_out_losses_are_of_the_same_samples_whatever_the_seed(corpus):
    recipe = shrink("electra-tiny")
    torch.manual_seed(0)
    module = PretrainingModel(recipe, corpus.tokenizer.size).eval()
    losses = []
    for seed in (0, 1):
        torch.manual_seed(seed)
        parts = make_batches(recipe, module, corpus, seed, "validation").fixed(16)
        losses.append([module(part)[0]["rtd"].item() for part in parts])
    assert losses[0] == losses[1]
