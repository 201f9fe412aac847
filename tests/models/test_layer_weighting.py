"""Layers that read a learned mix of all outputs before them, against the equation written out."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from tests.conftest import shrink, without_dropout

from bakeoff.errors import UserError
from bakeoff.learner.pretraining_model import PretrainingModel, build_on_meta
from bakeoff.models.layer_map import stack_sources
from bakeoff.row import Row

VOCABULARY, LENGTH = 60, 12
NAMES = ["bert-tiny", "gpt-tiny", "albert-tiny", "conv-light-encoder-tiny", "lstm-lm-tiny", "transformer-xl-tiny"]


def built(name, weighted=True, seed=0, **changes):
    """In float64 and as it is used, of three layers."""
    recipe = shrink(name, **changes)
    sides = recipe.model.stacks()
    recipe = without_dropout(
        recipe.changed(
            {f"model.{side}.layers": 3 for side in sides} | {f"model.{side}.layer_weights": weighted for side in sides}
        )
    )
    torch.manual_seed(seed)
    return PretrainingModel(recipe, VOCABULARY).double().eval()


def ids_of(module, rows=2):
    return torch.randint(VOCABULARY, (rows, LENGTH), generator=torch.Generator().manual_seed(1))


def drawn(module):
    """The same with weights that are no longer those of the beginning."""
    for stack in module.model.stacks().values():
        for number, weights in enumerate(stack.weighting.weights):
            torch.nn.init.normal_(weights, std=0.7, generator=torch.Generator().manual_seed(number))
    return module


@pytest.mark.parametrize("name", NAMES)
def test_in_the_beginning_nothing_is_mixed(name):
    """Bit for bit what the same weights give without it."""
    mixing, plain = built(name), built(name, weighted=False)
    assert not any("weighting" in key for key, _ in plain.named_parameters())
    own = {key: value for key, value in mixing.state_dict().items() if ".weighting." not in key}
    plain.load_state_dict(own)
    ids = ids_of(mixing)
    assert torch.equal(mixing.model(Row(ids))[0], plain.model(Row(ids))[0])
    assert not torch.equal(drawn(mixing).model(Row(ids))[0], plain.model(Row(ids))[0])


@torch.no_grad()
@pytest.mark.parametrize("name", NAMES)
def test_each_part_reads_the_mix_of_all_outputs_before_it(name, monkeypatch):
    """Number by number: x_i = sum_j a_ij y_j, with y_0 what comes into the stack and y_j what part j gives."""
    module = drawn(built(name))
    stack, seen = module.model.stack, []
    for layer in stack.layers:
        for part in dict.fromkeys(layer):
            exact = part.forward

            def records(x, context, state=None, exact=exact):
                out, after = exact(x, context, state)
                seen.append((x.numpy().copy(), out.numpy().copy()))
                return out, after

            monkeypatch.setattr(part, "forward", records)
        if stack.config.share == "all":
            break
    found = module.model(Row(ids_of(module)))[0]
    weights = [each.double().numpy() for each in stack.weighting.weights]
    assert len(seen) == len(weights) == sum(len(layer) for layer in stack.layers)
    given, reads = [seen[0][0]], seen[0][0]
    for (x, out), own in zip(seen, weights, strict=True):
        np.testing.assert_allclose(x, reads, atol=1e-12)
        given.append(out)
        assert own.shape == (1, len(given))
        reads = np.zeros_like(out)
        for place in np.ndindex(out.shape):
            reads[place] = sum(own[0, j] * given[j][place] for j in range(len(given)))
    np.testing.assert_allclose(found.numpy(), stack.norm(torch.from_numpy(reads)).numpy(), atol=1e-12)


def test_gradients_are_those_of_the_equation():
    """Of every weight and of the stack's input: a mix and its parts as one sum of matrix products."""
    stack = drawn(built("bert-tiny")).model.encoder
    outputs = [torch.randn(2, 5, 8, dtype=torch.float64, requires_grad=True) for _ in range(4)]
    weights, upstream = stack.weighting.weights[2], torch.randn(2, 5, 8, dtype=torch.float64)
    found = torch.autograd.grad(stack.weighting(outputs), [weights, *outputs], upstream)
    expected = torch.stack([(upstream * output).sum() for output in outputs])[None]
    torch.testing.assert_close(found[0], expected)
    for weight, gradient in zip(weights[0], found[1:], strict=True):
        torch.testing.assert_close(gradient, weight * upstream)


@torch.no_grad()
@pytest.mark.parametrize("name", ["gpt-tiny", "lstm-lm-tiny"])
def test_a_text_in_chunks_gives_what_it_gives_at_once(name):
    module = drawn(built(name))
    ids = ids_of(module)
    state, found = module.model.start(2), []
    for chunk in ids.split([1, 4, 2, 5], dim=1):
        hidden, state = module.model(Row(chunk), state)
        found.append(hidden)
    torch.testing.assert_close(torch.cat(found, dim=1), module.model(Row(ids))[0])


@torch.no_grad()
def test_what_is_inspected_is_what_is_computed():
    module = drawn(built("bert-tiny"))
    stack, ids = module.model.encoder, ids_of(module)
    x, context = module.model.stack_inputs(Row(ids))
    steps, _ = stack.steps(x, context)
    assert torch.equal(stack.norm(steps[-1][-1]), module.model(Row(ids))[0])
    assert all(torch.equal(before[-1], after[0]) for before, after in pairwise(steps))


def test_both_stacks_of_a_sequence_to_sequence_model_mix_their_own():
    module = built("t5-tiny")
    sizes = {
        side: [weights.shape[1] for weights in stack.weighting.weights] for side, stack in module.model.stacks().items()
    }
    assert sizes == {"encoder": list(range(2, 8)), "decoder": list(range(2, 11))}


def test_states_of_different_widths_are_refused():
    recipe = shrink("gcnn-tiny")
    blocks = recipe.model.decoder.layer_blocks()
    width, changed = recipe.model.decoder.width, False
    for layer, block in enumerate(blocks):
        changed = changed or block.output_width(width, layer) != width
    if not changed:
        recipe = recipe.changed({"model.decoder.width": width + 2})
    with pytest.raises(UserError, match=r"layer_weights: layer \d makes states \d+ wide of \d+, which cannot be mixed"):
        build_on_meta(recipe.changed({"model.decoder.layer_weights": True}), VOCABULARY)


def test_a_deeper_stack_does_not_start_from_a_shallower_one():
    shallow, deep = (
        build_on_meta(shrink("bert-tiny", **{"model.encoder.layers": n, "model.encoder.layer_weights": True}), 50)
        for n in (2, 4)
    )
    with pytest.raises(
        UserError, match="layer_weights: each layer of the encoder mixes the outputs of all layers before it"
    ):
        stack_sources(shallow.model.encoder, deep.model.encoder, "encoder", "repeat")
    plain = build_on_meta(shrink("bert-tiny", **{"model.encoder.layers": 4}), 50)
    names = stack_sources(shallow.model.encoder, plain.model.encoder, "encoder", "repeat")
    assert names.keys() == plain.model.encoder.state_dict().keys()
    same = stack_sources(deep.model.encoder, deep.model.encoder, "encoder")
    assert all(name == source for name, source in same.items())
