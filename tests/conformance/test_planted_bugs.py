"""The conformance suite is worth nothing if it cannot fail: each planted bug makes its contract fail."""

import pytest
import torch
from tests.models.parity import replace_everywhere

from bakeoff.conformance import test_what_is_seen as contracts
from bakeoff.conformance.built_models import length_of
from bakeoff.models import neighbour_convolution, part
from bakeoff.models.blocks import convolution, transformer
from bakeoff.models.mixers import attention, light_conv, short_convolution
from bakeoff.models.mixers.attention import Attention
from bakeoff.models.model import Model
from bakeoff.ops.dropout import dropout
from bakeoff.row import Row


def built(name):
    """A model that may be broken, and how long the contracts' rows are for it."""
    module = contracts.fresh(name)
    return module, length_of(module)


def fails(contract, *arguments):
    with pytest.raises(AssertionError):
        contract(*arguments)


def without_documents(exact):
    return lambda *tensors, documents, **options: exact(*tensors, documents=None, **options)


def test_a_leak_between_documents_is_found(monkeypatch):
    monkeypatch.setattr(Model, "_mask", lambda self, *told, **options: None)
    module, length = built("bert-base")
    fails(contracts.test_a_packed_document_does_not_depend_on_its_neighbours, module, length, "evaluation")
    fails(contracts.test_a_packed_document_is_what_it_is_alone, module, length)


@pytest.mark.parametrize(
    ("module", "operation", "name"),
    [
        (short_convolution, "short_convolution", "conv-light-encoder-tiny"),
        (short_convolution, "short_convolution", "conv-dilated-lm"),
        (neighbour_convolution, "short_convolution", "bert-base with options"),
        (neighbour_convolution, "short_convolution", "gpt2-base with options"),
        (convolution, "convolution", "gcnn-14"),
        (convolution, "convolution", "tcn-ptb"),
    ],
)
def test_a_leak_through_a_convolution_is_found(monkeypatch, module, operation, name):
    monkeypatch.setattr(module, operation, without_documents(getattr(module, operation)))
    model, length = built(name)
    fails(contracts.test_a_packed_document_does_not_depend_on_its_neighbours, model, length, "evaluation")


def test_a_tap_into_the_future_is_found():
    module, length = built("gpt-base")
    for layer in module.model.stack.parts["mixer"]:
        layer.function.causal = False
    fails(contracts.test_a_causal_model_does_not_see_what_comes_after, module, length, "evaluation")


@pytest.mark.parametrize(
    ("name", "deep"),
    [
        ("tcn-wikitext103", lambda stack: stack.layers[-1][0].convolutions[1]),  # dilation 16
        ("conv-dilated-lm", lambda stack: stack.layers[-1][0].function),  # kernel 31, dilation 2
        ("conv-light-lm", lambda stack: stack.layers[-1][0].function),  # kernel 63
        ("gcnn-14", lambda stack: stack.layers[-1][0].convolutions[0]),
    ],
)
@pytest.mark.parametrize("mode", contracts.MODES)
def test_a_tap_into_the_future_of_the_deepest_layer_is_found(name, deep, mode):
    module, length = built(name)
    deep(module.model.stack).causal = False
    fails(contracts.test_a_causal_model_does_not_see_what_comes_after, module, length, mode)


def test_a_leak_far_ahead_alone_is_found():
    """One tap that is as far in the future as the kernel is long, in one layer."""
    module, length = built("conv-dilated-lm")
    last = module.model.stack.layers[-1][0].function
    far = (last.kernel - 1) * last.dilation
    assert far == 60
    exact = last.convolve

    def leaks(x, *others):
        y = exact(x, *others)
        return torch.cat([y[:, :-far] + 0.01 * x[:, far:], y[:, -far:]], dim=1)

    last.convolve = leaks
    fails(contracts.test_a_causal_model_does_not_see_what_comes_after, module, length, "evaluation")


def test_masks_of_dropout_that_depend_on_the_future_are_found(monkeypatch):
    def seeded_by_the_row(x, rate, training):
        if not training or rate == 0.0:
            return x
        generator = torch.Generator().manual_seed(int(x.detach().double().sum() * 1e9) % (1 << 40))
        return x * (torch.rand(x.shape, generator=generator) >= rate) / (1 - rate)

    replace_everywhere(monkeypatch, dropout, seeded_by_the_row)
    for name in ("gpt-base", "gencnn"):
        module, length = built(name)
        contracts.test_a_causal_model_does_not_see_what_comes_after(module, length, "evaluation")
        fails(contracts.test_a_causal_model_does_not_see_what_comes_after, module, length, "training")
    module, length = built("bert-base")
    fails(contracts.test_a_packed_document_does_not_depend_on_its_neighbours, module, length, "training")
    fails(contracts.test_padding_is_not_seen, module, length, "training")


def test_a_mask_that_is_left_out_in_training_alone_is_found(monkeypatch):
    exact = attention.attention

    def careless(*tensors, mask=None, dropout=0.0, **options):
        return exact(*tensors, mask=None if dropout else mask, dropout=dropout, **options)

    replace_everywhere(monkeypatch, exact, careless)
    for name, contract in (
        ("gpt-base", contracts.test_a_packed_document_does_not_depend_on_its_neighbours),
        ("bert-base", contracts.test_padding_is_not_seen),
        ("t5-base", contracts.test_every_output_depends_on_the_source_but_not_on_its_padding),
    ):
        module, length = built(name)
        contract(module, length, "evaluation")
        fails(contract, module, length, "training")


@pytest.mark.parametrize("name", ["gpt-base", "conv-light-lm"])
def test_a_gradient_from_the_future_is_found(monkeypatch, name):
    """The states are right to the last bit."""

    exact = transformer.Sublayer.forward

    def leaks(self, x, *others):
        mean = x.mean(1, keepdim=True)
        return exact(self, x + (mean - mean.detach()), *others)

    module, length = built(name)
    ids = contracts.random_ids(length)
    expected = contracts.read(module, ids)
    monkeypatch.setattr(transformer.Sublayer, "forward", leaks)
    assert torch.equal(contracts.read(module, ids), expected)
    fails(contracts.test_a_causal_model_does_not_see_what_comes_after, module, length, "evaluation")
    fails(contracts.test_a_packed_document_does_not_depend_on_its_neighbours, module, length, "evaluation")
    fails(contracts.test_padding_is_not_seen, module, length, "evaluation")


def test_rounding_that_depends_on_the_future_is_found(monkeypatch):
    """A leak too small for a tolerance: the mean of the whole row, added and taken away again."""
    exact = Attention.forward

    def rounded(self, x, context, state=None):
        mean = x.mean(1, keepdim=True)
        return exact(self, (x + mean) - mean, context, state)

    monkeypatch.setattr(Attention, "forward", rounded)
    module, length = built("gpt-base")
    fails(contracts.test_a_causal_model_does_not_see_what_comes_after, module, length, "evaluation")


def test_padding_that_is_seen_is_found(monkeypatch):
    exact = Model.forward
    monkeypatch.setattr(Model, "forward", lambda self, row, state=None: exact(self, Row(row.ids, row.segments), state))
    for name in ("bert-base", "conv-light-encoder-tiny", "tcn-encoder-tiny"):
        module, length = built(name)
        fails(contracts.test_padding_is_not_seen, module, length, "evaluation")
        fails(contracts.test_more_padding_changes_nothing, module, length)


def test_padding_that_is_seen_by_one_deep_layer_is_found(monkeypatch):
    module, length = built("conv-dilated-encoder-base")
    last = module.model.stack.layers[-1][0].function
    exact = last.convolved
    last.convolved = lambda x, context: exact(x, context._replace(row=context.row._replace(padding_mask=None)))
    fails(contracts.test_padding_is_not_seen, module, length, "evaluation")
    fails(contracts.test_more_padding_changes_nothing, module, length)


def test_padding_that_is_seen_by_a_convolution_of_neighbours_is_found(monkeypatch):
    exact = neighbour_convolution.NeighbourConvolution.forward
    monkeypatch.setattr(
        neighbour_convolution.NeighbourConvolution,
        "forward",
        lambda self, x, context, left: exact(
            self, x, context._replace(row=context.row._replace(padding_mask=None)), left
        ),
    )
    module, length = built("bert-base with options")
    fails(contracts.test_padding_is_not_seen, module, length, "evaluation")
    fails(contracts.test_more_padding_changes_nothing, module, length)


def test_a_state_that_forgets_the_oldest_token_is_found(monkeypatch):
    exact = part.last_inputs

    def forgets(left, x):
        state = exact(left, x)
        return None if state is None else torch.cat([torch.zeros_like(state[:, :1]), state[:, 1:]], dim=1)

    replace_everywhere(monkeypatch, exact, forgets)
    for name in ("conv-dilated-lm", "tcn-ptb", "cnn-lm", "gpt2-base with options"):
        module, length = built(name)
        fails(contracts.test_chunks_give_what_the_whole_gives, contracts.narrow(name), module, length, [5, 1, 2, 12, 3])


def test_a_kernel_that_is_cut_short_is_found(monkeypatch):
    monkeypatch.setattr(light_conv.LightConv, "weight", lambda self, x, read: self.taps.softmax(-1)[:, -7:])
    with pytest.raises(AssertionError):
        contracts.test_an_output_depends_on_as_much_as_is_declared(contracts.narrow("conv-light-lm"), "conv-light-lm")
