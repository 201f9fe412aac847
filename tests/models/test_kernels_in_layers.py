"""Layers that learn in bfloat16 on a CPU have, with kernels, the loss and gradients that they have without them."""

import pytest
import torch
from tests.conftest import shrink

from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.machine.compiler import Compiled
from bakeoff.models.context import Context
from bakeoff.ops import linear as products
from bakeoff.ops import norm as norms
from bakeoff.ops.cpu import compiled_kernels
from bakeoff.ops.cpu.linear import multiplies_by_onednn
from bakeoff.resources.device import autocast
from bakeoff.training.stages import make_batches

pytestmark = pytest.mark.skipif(compiled_kernels.kernels().library is None, reason=compiled_kernels.kernels().origin)
CPU = torch.device("cpu")
CASES = {
    "after the sum": ("bert-tiny", {}),
    "before the function": ("laptop-encoder-tiny", {}),
    "on the branch": ("bert-tiny", {"model.encoder.block.norm": "branch"}),
    "no residual": ("bert-tiny", {"model.encoder.block.residual": False}),
    "convolution": ("laptop-conv-tiny", {}),
    "narrower tokens": ("albert-tiny", {}),
    "causal": ("laptop-decoder-tiny", {}),
    "gates of attention": ("laptop-encoder-tiny", {"model.encoder.block.mixer.gate": "gelu"}),
}


def loss_and_gradients(corpus, name, changes, precision):
    recipe = shrink(name, **{"model.dropout": 0.0, **changes})
    torch.manual_seed(0)
    module = PretrainingModel(recipe, corpus.tokenizer.size).train()
    with torch.no_grad():
        for parameter in module.parameters():  # no branch may be zero
            parameter.add_(torch.randn_like(parameter), alpha=0.05)
    (batch,) = make_batches(recipe, module, corpus, seed=0).step(0)
    with autocast(CPU, precision):
        losses, _ = module(batch)
    loss = sum(losses.values()) / 3  # as of a mean
    loss.backward()
    return float(loss.detach()), torch.cat([p.grad.flatten() for p in module.parameters() if p.grad is not None])


@pytest.mark.parametrize("case", CASES)
def test_losses_and_gradients_are_those_without_kernels(corpus, case, monkeypatch):
    exact_loss, exact = loss_and_gradients(corpus, *CASES[case], "float32")
    by_kernels, gradient = loss_and_gradients(corpus, *CASES[case], "bfloat16")
    monkeypatch.setattr(compiled_kernels, "kernels", lambda: Compiled(None, "left out"))
    by_torch, other = loss_and_gradients(corpus, *CASES[case], "bfloat16")
    noise = float((other - exact).norm())
    assert abs(by_kernels - exact_loss) < 3 * abs(by_torch - exact_loss) + 2e-3 * exact_loss
    assert float((gradient - exact).norm()) < 1.3 * noise + 2e-3 * float(exact.norm())


@pytest.mark.parametrize(
    ("case", "second", "within"), [("after the sum", True, False), ("before the function", False, True)]
)
def test_residual_connections_are_summed_by_kernels(corpus, case, second, within, monkeypatch):
    """And not by torch: the gradients of two ways after a norm, and states and the output of a function."""
    seen = set()

    def residual(x, then=norms.residual):
        if then(x) is not x:
            seen.add("second")
        return then(x)

    def forward(layer, x, beside=None, then=products.linear):
        if beside is not None:
            seen.add("within")
        return then(x, layer.weight, layer.bias, beside)

    monkeypatch.setattr("bakeoff.models.blocks.transformer.residual", residual)
    monkeypatch.setattr("bakeoff.models.linear.Linear.forward", forward)
    loss_and_gradients(corpus, *CASES[case], "bfloat16")
    assert ("second" in seen, "within" in seen) == (second, within and multiplies_by_onednn())


def test_dropout_of_a_function_that_could_add_states_itself_is_kept(corpus):
    """Losses of two seeds differ where there is dropout, and where there is none they are one."""
    case, losses = CASES["before the function"], {}
    for rate in (0.0, 0.3):
        found = []
        for seed in (1, 2):
            recipe = shrink(case[0], **{"model.dropout": rate, "model.encoder.block.mixer.dropout": 0.0})
            torch.manual_seed(0)
            module = PretrainingModel(recipe, corpus.tokenizer.size).train()
            module.model.embedding.dropout = module.model.encoder.dropout = 0.0
            with torch.no_grad():
                for parameter in module.parameters():
                    parameter.add_(torch.randn_like(parameter), alpha=0.05)
            (batch,) = make_batches(recipe, module, corpus, seed=0).step(0)
            torch.manual_seed(seed)
            with autocast(CPU, "bfloat16"):
                found.append(float(sum(module(batch)[0].values()).detach()))
        losses[rate] = found
    assert losses[0.0][0] == losses[0.0][1]
    assert losses[0.3][0] != losses[0.3][1]


@pytest.mark.parametrize("how", ["subclass", "hook"])
def test_what_others_do_to_the_output_of_a_function_is_not_done_to_the_residual(corpus, how):
    """Functions whose output becomes zero leave the states as they are."""
    recipe = shrink("laptop-encoder-tiny", **{"model.dropout": 0.0})
    torch.manual_seed(0)
    module = PretrainingModel(recipe, corpus.tokenizer.size).train()
    for sublayer in (each for layer in module.model.encoder.layers for each in layer):
        function = sublayer.function
        if how == "hook":
            function.register_forward_hook(lambda part, given, made: (0 * made[0], made[1]))
        else:
            kind = type(function)

            def forward(self, x, context, state=None, kind=kind):
                made, after = kind.forward(self, x, context, state)
                return 0 * made, after

            function.__class__ = type("Other", (kind,), {"forward": forward})
    x = torch.randn(2, 8, recipe.model.encoder.width).bfloat16()
    with autocast(CPU, "bfloat16"):
        states = module.model.encoder.outputs(x, Context())
    assert all(torch.equal(each, x) for each in states)
