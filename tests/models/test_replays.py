"""Layers replayed as CUDA graphs: what they demand of a training, seen without a GPU.

A stand-in on a CPU gives what a replay gives in buffers that the next pass writes over, as graphs do.
"""

import pytest
import torch
from tests.conftest import PLAIN, shrink

from bakeoff.conformance.narrow import ALIKE, narrow
from bakeoff.conformance.test_waiting import on_meta
from bakeoff.errors import UserError
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.models import layer as layers
from bakeoff.models import stack as stacks
from bakeoff.resources.replays import require_replays, why_no_replays
from bakeoff.row import mapped
from bakeoff.trainer.loop import steps
from bakeoff.trainer.position import Position
from bakeoff.training.pretraining import Pretraining
from bakeoff.training.stages import Stages

GPU = torch.device("cuda", 0)
STEPS = 3
PARTS = {**PLAIN, "training.batch": 6, "training.micro_batch": 2, "training.precision": "float32", "model.dropout": 0.1}
"""Three micro-batches a step, so that gradients are added up."""


class Graphs:
    """A pool of memory in which calls of layers give their results, in turn, until the next pass begins."""

    def __init__(self):
        self.written, self.begun = [], 0

    def begin(self):
        self.begun += 1
        for each in self.written:
            each.fill_(torch.nan)
        self.written.clear()

    def given(self, tensor):
        self.written.append(tensor.detach().clone())
        return self.written[-1]

    def apply(self, parts, x, context, states=None):
        assert self.begun, "no pass has begun"
        weights = [each for part in parts for each in part.parameters()]
        return Replayed.apply(self, parts, context, x, *weights), (None,) * len(parts)


class Replayed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, graphs, parts, context, x, *weights):
        with torch.enable_grad():
            own = x.detach().requires_grad_()
            made = layers.apply_layer(parts, own, context)[0]
        ctx.graphs, ctx.made, ctx.inputs = graphs, made, [own, *weights]
        return graphs.given(made)

    @staticmethod
    def backward(ctx, upstream):
        found = torch.autograd.grad(ctx.made, ctx.inputs, upstream, allow_unused=True)
        return None, None, None, *(None if each is None else ctx.graphs.given(each) for each in found)


@pytest.fixture
def graphs(monkeypatch):
    pool = Graphs()
    monkeypatch.setattr(torch.compiler, "cudagraph_mark_step_begin", pool.begin)
    monkeypatch.setattr(layers, "compiled_layer", lambda replayed=False: pool.apply if replayed else layers.apply_layer)
    return pool


def trained(recipe, corpus, replayed):
    torch.manual_seed(0)
    module = PretrainingModel(recipe, corpus.tokenizer.size)
    if replayed:
        module.compile_layers(replayed=True)
    unit = Pretraining(recipe, module, stages=Stages(recipe, module, corpus, seed=0))
    losses = [{name: float(each) for name, each in taken.figures.items()} for taken in steps(unit, Position(), STEPS)]
    return losses, module.state_dict()


@pytest.mark.parametrize("name", ["gpt-tiny", "albert-tiny", "electra-tiny", "conv-light-lm-tiny"])
def test_what_a_pass_has_given_is_not_read_after_the_next_begins(name, corpus, graphs):
    """Shared layers, and a generator before the model, are one pass; three passes are added up."""
    recipe = shrink(name, **PARTS)
    losses, state = trained(recipe, corpus, replayed=True)
    assert graphs.begun == STEPS * 3
    expected, expected_state = trained(recipe, corpus, replayed=False)
    assert losses == expected
    assert all(torch.equal(state[name], each) for name, each in expected_state.items())


def test_nothing_is_replayed_without_gradients(graphs, corpus):
    recipe = shrink("gpt-tiny", **PARTS)
    module = PretrainingModel(recipe, corpus.tokenizer.size)
    module.compile_layers(replayed=True)
    unit = Pretraining(recipe, module, stages=Stages(recipe, module, corpus, seed=0))
    unit.begin()
    batch = unit.batches(0)[0]
    with torch.no_grad():
        unit.losses(batch, unit.counts([batch]))
    module.eval()
    unit.losses(batch, unit.counts([batch]))
    assert not graphs.written


FITTING = {"training.first_batch": 1.0, "training.curriculum": [], "training.compile": "graphs"}


def fits(name):
    return why_no_replays(narrow(name).changed(FITTING), GPU) is None


@pytest.mark.parametrize("name", [name for name in ALIKE if fits(name)])
def test_shapes_are_those_of_the_first_step_and_all_is_on_the_device(name, corpus, parallel_corpus, monkeypatch):
    """Of every recipe that may be replayed: the inputs of each call of a layer, over some steps, on meta tensors."""
    unit, calls = on_meta(narrow(name).changed({**FITTING, "training.compile": False}), corpus, parallel_corpus), []

    def noted(parts, x, context, states=None):
        tensors = [x, *(each for each in context if isinstance(each, torch.Tensor))]
        mapped(context.row, lambda each: tensors.append(each) or each)
        calls.append([(tuple(each.shape), each.dtype, each.device.type) for each in tensors])
        return layers.apply_layer(parts, x, context, states)

    monkeypatch.setattr(stacks, "applying", lambda *_: noted)
    unit.begin()
    seen = []
    for step in range(STEPS):
        for batch in unit.batches(step):
            calls.clear()
            unit.losses(batch, unit.counts([batch]))
            seen.append(list(calls))
    assert seen[0]
    assert all(each == seen[0] for each in seen)
    assert {device for call in seen[0] for _, _, device in call} == {"meta"}


@pytest.mark.parametrize(
    ("name", "changes", "device", "reason"),
    [
        ("gpt-tiny", {}, "cpu", "are for GPUs of CUDA, and the device is cpu"),
        ("gpt-tiny", {"training.micro_batch": "auto"}, "cuda", "give training.micro_batch a number"),
        ("gpt-tiny", {"training.activation_checkpointing": True}, "cuda", "activation_checkpointing to false"),
        ("gpt-tiny", {"training.first_batch": 0.5}, "cuda", "set training.first_batch to 1"),
        ("bert-tiny", {}, "cuda", "that needs the format blocks"),
        ("transformer-xl-tiny", {}, "cuda", "memories that grow"),
        ("transformer-translation-tiny", {}, "cuda", "many lengths"),
        ("xlnet-tiny", {}, "cuda", "many lengths"),
    ],
)
def test_what_cannot_be_replayed_is_refused_in_one_line(name, changes, device, reason):
    recipe = shrink(name, **{**changes, "training.compile": "graphs"})
    with pytest.raises(UserError, match=rf"^{name}: training\.compile=graphs: [^\n]*{reason}"):
        require_replays(recipe, torch.device(device))
    require_replays(recipe.changed({"training.compile": True}), torch.device(device))


@pytest.mark.slow
def test_torch_has_the_option(monkeypatch):
    asked = []
    compiler = torch.compile

    def noted(function, **options):
        asked.append(options)
        return compiler(function, **options)

    monkeypatch.setattr(torch, "compile", noted)
    layers.compiled_layer.cache_clear()
    assert layers.compiled_layer(True) is not layers.compiled_layer(False)
    layers.compiled_layer.cache_clear()
    assert asked == [{"options": {"triton.cudagraphs": True}}, {"options": None}]
