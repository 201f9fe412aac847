"""Contracts on the inputs of an output: tokens on both sides, padding, the source, packed neighbours, a state.

Dropout is off. Recipes that are the same once they are narrow are run once (`narrow.ALIKE`).
"""

import pytest
import torch

from bakeoff.conformance.built_models import (
    CUT,
    LAYOUTS,
    ROWS,
    VOCABULARY,
    assert_close,
    embedded,
    fresh,
    gradient,
    in_mode,
    layout_of,
    random_ids,
    read,
)
from bakeoff.conformance.narrow import ALIKE, EVERY_CHOICE, narrow
from bakeoff.models.context import Context
from bakeoff.row import Row, Source

CAUSAL = [name for name in ALIKE if narrow(name).model.causal]
SEQUENCE_TO_SEQUENCE = [name for name in CAUSAL if narrow(name).model.sequence_to_sequence]
BIDIRECTIONAL = [name for name in ALIKE if name not in CAUSAL]

UNCOUNTED = [
    name
    for name in CAUSAL
    if (model := narrow(name).model).embedding.positions == "none"
    and not any(mixer.counts_positions for mixer in model.mixers)
]

MODES = ["evaluation", "training"]


def in_each_mode(names):
    """Names and modes as parameters of a test; in training recipes of every choice alone, unless crossings are run."""
    return [
        pytest.param(name, mode, marks=[pytest.mark.slow] * (mode == "training" and name not in EVERY_CHOICE))
        for name in names
        for mode in MODES
    ]


@pytest.mark.parametrize(("name", "mode"), in_each_mode(CAUSAL))
def test_a_causal_model_does_not_see_what_comes_after(module, length, mode):
    """States and their gradients do not depend on later tokens, to the last bit, with padding and packed documents."""
    in_mode(module, mode)
    ids = random_ids(length)
    before = (torch.arange(length) < CUT).expand(ROWS, -1)
    changed = torch.where(before, ids, random_ids(length, seed=1))
    for kind in LAYOUTS:
        layout = layout_of(kind, length)
        expected, leaf = embedded(module, lambda layout=layout: read(module, ids, **layout.options))
        found = read(module, changed, **layout.options)
        seen = before & layout.padding_mask
        assert torch.equal(found[seen], expected[seen]), kind
        assert not torch.isclose(found[~before & layout.padding_mask], expected[~before & layout.padding_mask]).all(), (
            kind
        )
        by_token = gradient(expected, seen, leaf)
        assert (by_token[~before] == 0).all(), kind
        assert (by_token[seen] > 0).any(), kind


@pytest.mark.parametrize("name", BIDIRECTIONAL)
def test_a_bidirectional_model_sees_both_sides(module):
    ids = random_ids(24)
    for others, reach in zip((slice(0, 12), slice(13, None)), module.model.reach(), strict=True):
        changed = ids.clone()
        changed[:, others] = (changed[:, others] - 5 + 1) % (VOCABULARY - 5) + 5
        unseen = torch.allclose(read(module, changed)[:, 12], read(module, ids)[:, 12])
        assert unseen == (reach == 0)  # a model that mixes nothing says so


@pytest.mark.parametrize("name", CAUSAL)
@pytest.mark.parametrize("sizes", [[1] * 10, [5, 1, 2, 12, 3], [23]], ids=["ones", "mixed", "late"])
def test_chunks_give_what_the_whole_gives(recipe, module, length, sizes):
    ids = random_ids(length)
    source = Source(random_ids(13, 9)) if recipe.model.sequence_to_sequence else None
    with torch.no_grad():
        expected = read(module, ids)
        state = module.model.start(ROWS)
        found = []
        for chunk in ids.split([*sizes, length - sum(sizes)], dim=1):
            before, row = state, Row(chunk, source=None if state.tokens else source)
            hidden, state = module.model(row, before)
            if len(sizes) == 5:
                again, _ = module.model(row, before)  # a state is a value: going on from it does not change it
                assert torch.equal(again, hidden)
            found.append(hidden)
    assert_close(torch.cat(found, dim=1), expected)


@pytest.mark.parametrize("name", UNCOUNTED)
def test_what_counts_no_positions_goes_on_alike_wherever_it_stands(recipe, module, length):
    """Exports give such a model its state alone, without the number of tokens read."""
    ids, source = random_ids(length), Source(random_ids(13, 9)) if recipe.model.sequence_to_sequence else None
    with torch.no_grad():
        _, state = module.model(Row(ids[:, :12], source=source), module.model.start(ROWS))
        expected, _ = module.model(Row(ids[:, 12:]), state)
        found, _ = module.model(Row(ids[:, 12:]), state._replace(tokens=state.tokens + 5))
    assert torch.equal(found, expected)


@pytest.mark.parametrize("name", CAUSAL)
@pytest.mark.parametrize("gradients", [True, False])
def test_padding_before_a_text_is_not_remembered(recipe, module, length, gradients):
    """Prompts of different lengths are read and continued in one batch as each would be alone."""
    if not module.model.stack.skips_padding:
        pytest.skip("prompts of unlike lengths are read one by one")
    ids, counts = random_ids(length), (12, 5, 1)
    padding_mask = torch.arange(12) >= 12 - torch.tensor(counts)[:, None]
    source = Source(random_ids(13, 9)) if recipe.model.sequence_to_sequence else None
    with torch.set_grad_enabled(gradients):
        first, state = module.model(
            Row(ids[:, :12], padding_mask=padding_mask, source=source), module.model.start(ROWS)
        )
        others, _ = module.model(Row(ids[:, 12:]), state)
        found = torch.cat([first, others], dim=1)
        for row, count in enumerate(counts):
            alone = None if source is None else Source(source.ids[row : row + 1])
            expected, _ = module.model(Row(ids[row : row + 1, 12 - count :], source=alone), module.model.start(1))
            torch.testing.assert_close(found[row : row + 1, 12 - count :], expected, atol=1e-5, rtol=1e-4)


def test_an_output_depends_on_as_much_as_is_declared(recipe, name):
    stack = fresh(name).model.stack.double()  # a recurrent network forgets, down to nothing in float32
    left, right = stack.reach()
    before, behind = (60 if side == float("inf") else int(side) for side in (left, right))
    length, place = before + behind + 5, before + 2
    torch.manual_seed(1)
    width, dtype = recipe.model.stack.width, torch.float64
    x = torch.randn(1, length, width, dtype=dtype, requires_grad=True)
    source = torch.randn(1, 5, width, dtype=dtype) if recipe.model.sequence_to_sequence else None
    y, _ = stack(x, Context(source=source))
    (y[0, place] * torch.randn_like(y[0, place])).sum().backward()
    seen = x.grad[0].abs().sum(-1).nonzero()[:, 0]
    assert place - seen.min() == min(left, place)
    assert seen.max() - place == min(right, length - 1 - place)


@pytest.mark.parametrize("name", SEQUENCE_TO_SEQUENCE)
@pytest.mark.parametrize("mode", MODES)
def test_every_output_depends_on_the_source_but_not_on_its_padding(module, length, mode):
    in_mode(module, mode)
    ids, source, padding_mask = (
        random_ids(length),
        random_ids(length, 9),
        torch.arange(length).expand(ROWS, -1) < length - 6,
    )
    expected, leaf = embedded(module, lambda: read(module, ids, source=Source(source, padding_mask)), source=True)
    everywhere = torch.ones(ROWS, length, dtype=torch.bool)
    by_token = gradient(expected, everywhere, leaf)
    assert (by_token[~padding_mask] == 0).all()
    assert (by_token[padding_mask] > 0).all()
    other_padding = torch.where(padding_mask, source, random_ids(length, 2))
    assert torch.equal(read(module, ids, source=Source(other_padding, padding_mask)), expected)
    other_source = torch.where(torch.arange(length) == 5, (source - 4) % (VOCABULARY - 5) + 5, source)
    difference = read(module, ids, source=Source(other_source, padding_mask)) - expected
    assert (difference.abs().sum(-1) > 1e-7).all()
    if mode == "evaluation":  # in training masks differ with the shape
        assert_close(read(module, ids, source=Source(source[:, :-6])), expected)


@pytest.mark.parametrize(("name", "mode"), in_each_mode(ALIKE))
def test_padding_is_not_seen(module, length, mode):
    """States and gradients are the same to the last bit, whatever stands at padding."""
    in_mode(module, mode)
    ids, layout = random_ids(length), layout_of("padded", length)
    expected, leaf = embedded(module, lambda: read(module, ids, **layout.options))
    by_token = gradient(expected, layout.padding_mask, leaf)
    assert (by_token[~layout.padding_mask] == 0).all()
    assert (by_token[layout.padding_mask] > 0).any(-1).all()
    other_padding = torch.where(layout.padding_mask, ids, random_ids(length, seed=3))
    found = read(module, other_padding, **layout.options)
    assert torch.equal(found[layout.padding_mask], expected[layout.padding_mask])


def test_more_padding_changes_nothing(module, length):
    ids, more = random_ids(length), torch.zeros(ROWS, 7, dtype=torch.int64)
    padding_mask = torch.arange(length + 7).expand(ROWS, -1) < length
    expected, leaf = embedded(module, lambda: read(module, ids))
    found, padded_leaf = embedded(
        module, lambda: read(module, torch.cat([ids, more], dim=1), padding_mask=padding_mask)
    )
    assert_close(found[:, :length], expected)
    upstream = torch.randn(expected.shape, generator=torch.Generator().manual_seed(6))
    (by_token,) = torch.autograd.grad(expected, leaf, upstream)
    (by_padded_token,) = torch.autograd.grad(found[:, :length], padded_leaf, upstream)
    torch.testing.assert_close(by_padded_token[:, :length], by_token, atol=2e-5, rtol=1e-4)
    assert (by_padded_token[:, length:] == 0).all()


@pytest.mark.parametrize(("name", "mode"), in_each_mode(ALIKE))
def test_a_packed_document_does_not_depend_on_its_neighbours(module, length, mode):
    """States and gradients are the same to the last bit, whatever the neighbours are."""
    in_mode(module, mode)
    ids, layout = random_ids(length), layout_of("packed", length)
    own = layout.documents == 2
    expected, leaf = embedded(module, lambda: read(module, ids, **layout.options))
    by_token = gradient(expected, own, leaf)
    assert (by_token[~own] == 0).all()
    assert (by_token[own] > 0).any()
    found = read(module, torch.where(own, ids, random_ids(length, seed=2)), **layout.options)
    assert torch.equal(found[own], expected[own])


def test_a_packed_document_is_what_it_is_alone(module, length):
    ids, layout = random_ids(length), layout_of("packed", length)
    expected, leaf = embedded(module, lambda: read(module, ids[:, :9]))
    found, packed_leaf = embedded(module, lambda: read(module, ids, **layout.options))
    assert_close(found[:, :9], expected)
    upstream = torch.randn(expected.shape, generator=torch.Generator().manual_seed(6))
    (alone,) = torch.autograd.grad(expected, leaf, upstream)
    (packed,) = torch.autograd.grad(found[:, :9], packed_leaf, upstream)
    size = max(1.0, float(alone.abs().max()))  # T5's scores are not scaled, and its gradients not of size 1
    torch.testing.assert_close(packed[:, :9], alone, atol=2e-5 * size, rtol=1e-4)
