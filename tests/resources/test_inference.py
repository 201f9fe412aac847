"""Models that are no more trained, with weights rounded, packed or laid out once, against the models as loaded."""

import numpy as np
import pytest
import torch
from tests.conftest import shrink
from tests.untrained_runs import untrained

import bakeoff
from bakeoff.errors import UserError
from bakeoff.generation.config import GenerationConfig
from bakeoff.generation.generator import Generator
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.ops.cpu.linear import multiplies_by_onednn
from bakeoff.ops.cpu.packed_linear import PackedLinear
from bakeoff.recipe_files import load_recipe, recipe_names
from bakeoff.resources.device import Placement
from bakeoff.resources.inference import for_inference
from bakeoff.row import Row, Source

VOCABULARY = 60
NAMES = [name for name in recipe_names() if name.endswith("-tiny")]
CPU = torch.device("cpu")
IDS = torch.randint(7, VOCABULARY, (3, 20), generator=torch.Generator().manual_seed(0))
THERE = torch.arange(20) < torch.tensor([[20], [11], [1]])


def build(name):
    torch.manual_seed(0)
    module = PretrainingModel(shrink(name), VOCABULARY).eval()
    for parameter in module.parameters():
        if parameter.dim() > 1:  # whose scores differ by more than rounding
            parameter.data *= 3
    return module


def states(module, precision):
    """(tokens, D) the states of rows, without those of padding."""
    source = Source(IDS, THERE) if module.model.config.sequence_to_sequence else None
    row = Row(IDS, padding_mask=None if source else THERE, source=source)
    with torch.inference_mode(), Placement(CPU, precision).autocast():
        hidden = module.model(row)[0].float()
    return hidden if source else hidden[THERE]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_weights_made_ready_once_give_the_numbers_of_weights_that_are_cast_in_every_call(name, precision):
    expected = states(build(name), precision)
    found = states(for_inference(build(name), Placement(CPU, precision)), precision)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5 if precision == "float32" else 0.06)
    if precision == "bfloat16":  # rounding, and nothing else: as far from float32 as before
        exact = states(build(name), "float32")
        assert (found - exact).norm() <= 1.3 * (expected - exact).norm() + 1e-3


@pytest.mark.skipif(not multiplies_by_onednn(), reason="oneDNN packs no bfloat16 on this processor")
@pytest.mark.parametrize("inputs", [3, 64])
@pytest.mark.parametrize("bias", [True, False])
def test_a_packed_layer_is_the_product(inputs, bias):
    torch.manual_seed(0)
    layer = torch.nn.Linear(inputs, 5, bias=bias).bfloat16().requires_grad_(False)
    packed, x = PackedLinear(layer), torch.randn(2, 7, inputs)
    with torch.inference_mode():
        found = packed(x)
    assert found.dtype == torch.bfloat16
    exact = x.bfloat16().double() @ layer.weight.double().T + (layer.bias.double() if bias else 0)
    torch.testing.assert_close(found.double(), exact, rtol=1e-2, atol=1e-2)
    leaf = x.clone().requires_grad_()  # oneDNN's product alone has no gradient
    packed(leaf).sum().backward()
    expected = layer.weight.float().sum(0).expand_as(leaf)
    torch.testing.assert_close(leaf.grad, expected, rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("name", [name for name in NAMES if load_recipe(name).model.causal])
@pytest.mark.parametrize(
    "config",
    [
        GenerationConfig(tokens=5, temperature=0),
        GenerationConfig(tokens=5, seed=3),
        GenerationConfig(tokens=5, beams=2),
    ],
)
def test_the_same_tokens_are_written_in_float32_and_as_many_in_bfloat16(name, config):
    plain = build(name)
    sources = [[20, 21, 22], [24]] if plain.model.config.sequence_to_sequence else None
    expected = Generator(plain, None).write([[7, 8, 9], [10]], config, sources)
    ready = for_inference(build(name), Placement(CPU, "float32"))
    assert Generator(ready, None).write([[7, 8, 9], [10]], config, sources) == expected
    rounded = Generator(for_inference(build(name), Placement(CPU, "bfloat16")), None, precision="bfloat16")
    assert [len(each) for each in rounded.write([[7, 8, 9], [10]], config, sources)] == [5, 5]


@pytest.fixture(scope="module")
def runs(corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    names = ("bert-tiny", "gpt2-tiny", "bart-tiny")
    return {name: untrained(name, corpus, folder / name, **{"input.length": 32}).path for name in names}


def test_a_run_is_used_in_the_precision_that_was_asked_for(runs):
    texts, masked = ["The river finds the old stone.", "river", "The old stone"], ["The [MASK] finds the stone."]
    exact, rounded = bakeoff.load(runs["bert-tiny"], "cpu"), bakeoff.load(runs["bert-tiny"], "cpu", "bfloat16")
    assert (exact.precision, rounded.precision) == ("float32", "bfloat16")
    for ask in (
        lambda run: run.embed(texts),
        lambda run: [each.probability for each in run.fill(masked, 400)[0][0]][:5],
        lambda run: run.hidden([[5, 6, 7]]).numpy(),
        lambda run: run.logits([[5, 6, 7]]).numpy(),
    ):
        one, other = np.asarray(ask(exact)), np.asarray(ask(rounded))
        assert one.dtype == other.dtype
        assert not np.array_equal(one, other)
        np.testing.assert_allclose(one, other, atol=0.03 * np.abs(one).max())
    np.testing.assert_array_equal(
        rounded.embed(texts), bakeoff.embed(runs["bert-tiny"], texts, device="cpu", precision="bfloat16")
    )


def test_what_adds_up_or_is_compared_needs_float32(runs):
    rounded = bakeoff.load(runs["bert-tiny"], "cpu", "bfloat16")
    assert "score" in bakeoff.load(runs["bert-tiny"], "cpu").capabilities - rounded.capabilities
    with pytest.raises(UserError, match=r"score: not in bfloat16; load the run with precision float32$"):
        rounded.score(["The river"])
    with pytest.raises(UserError, match=r"^precision float16: choose from auto, float32, bfloat16$"):
        bakeoff.load(runs["bert-tiny"], "cpu", "float16")
