"""Contracts that every recipe keeps, whatever its parts; dropout off where no test turns it on.

Recipes that are the same once they are narrow are run once (`narrow.ALIKE`).
"""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from bakeoff.conformance.built_models import (
    CUT,
    LAYOUTS,
    ROWS,
    VOCABULARY,
    assert_close,
    built,
    embedded,
    fresh,
    gradient,
    in_mode,
    layout_of,
    length_of,
    random_ids,
    read,
)
from bakeoff.conformance.narrow import ALIKE, REGISTRY, narrow, without_dropout
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.models.context import Context
from bakeoff.models.inputs import Inputs, Source
from bakeoff.resources.costs import costs_of
from bakeoff.resources.device import Placement
from bakeoff.training.stages import make_batches
from bakeoff.training.step import optimize

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


@pytest.fixture(params=ALIKE)
def name(request):
    return request.param


@pytest.fixture
def recipe(name):
    return narrow(name)


@pytest.fixture
def corpus(recipe, corpus, parallel_corpus):
    """What the recipe can be trained on."""
    return parallel_corpus if recipe.input.parallel else corpus


@pytest.fixture
def module(name):
    yield built(name).eval()
    built(name).zero_grad()


@pytest.fixture
def length(module):
    return length_of(module)


def test_shape_and_type(recipe, module, length):
    hidden = read(module, random_ids(length))
    assert hidden.shape == (ROWS, length, recipe.model.output_width)
    assert hidden.dtype == torch.float32
    assert hidden.isfinite().all()


def test_every_parameter_gets_a_finite_gradient(recipe, module, corpus):
    batch = make_batches(recipe, module, corpus, seed=0).step(0)[0]
    sum(module(batch).values()).backward()
    for name, parameter in module.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.abs().sum() > 0, name


@pytest.mark.parametrize("name", CAUSAL)
@pytest.mark.parametrize("mode", MODES)
def test_a_causal_model_does_not_see_what_comes_after(module, length, mode):
    """Neither its states nor their gradients know of it, to the last bit, with padding and among packed documents."""
    in_mode(module, mode)
    ids = random_ids(length)
    before = (torch.arange(length) < CUT).expand(ROWS, -1)
    changed = torch.where(before, ids, random_ids(length, seed=1))
    for kind in LAYOUTS:
        layout = layout_of(kind, length)
        expected, leaf = embedded(module, lambda layout=layout: read(module, ids, **layout.options))
        found = read(module, changed, **layout.options)
        seen = before & layout.real
        assert torch.equal(found[seen], expected[seen]), kind
        assert not torch.isclose(found[~before & layout.real], expected[~before & layout.real]).all(), kind
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
        state = module.model.start(ROWS, source)
        found = []
        for chunk in ids.split([*sizes, length - sum(sizes)], dim=1):
            before = state
            hidden, state = module.model.extend(chunk, before)
            if len(sizes) == 5:
                again, _ = module.model.extend(chunk, before)  # a state is a value: going on from it does not change it
                assert torch.equal(again, hidden)
            found.append(hidden)
    assert_close(torch.cat(found, dim=1), expected)


@pytest.mark.parametrize("name", UNCOUNTED)
def test_what_counts_no_positions_goes_on_alike_wherever_it_stands(recipe, module, length):
    """Exports give such a model its state alone, and not how many tokens it has read."""
    ids, source = random_ids(length), Source(random_ids(13, 9)) if recipe.model.sequence_to_sequence else None
    with torch.no_grad():
        _, state = module.model.extend(ids[:, :12], module.model.start(ROWS, source))
        expected, _ = module.model.extend(ids[:, 12:], state)
        found, _ = module.model.extend(ids[:, 12:], state._replace(tokens=state.tokens + 5))
    assert torch.equal(found, expected)


@pytest.mark.parametrize("name", CAUSAL)
@pytest.mark.parametrize("gradients", [True, False])
def test_padding_before_a_text_is_not_remembered(recipe, module, length, gradients):
    """Prompts of unlike lengths are read at once, and gone on from as each would be alone."""
    if not module.model.stack.skips_padding:
        pytest.skip("prompts of unlike lengths are read one by one")
    ids, counts = random_ids(length), (12, 5, 1)
    real = torch.arange(12) >= 12 - torch.tensor(counts)[:, None]
    source = Source(random_ids(13, 9)) if recipe.model.sequence_to_sequence else None
    with torch.set_grad_enabled(gradients):
        first, state = module.model.extend(ids[:, :12], module.model.start(ROWS, source), real=real)
        others, _ = module.model.extend(ids[:, 12:], state)
        found = torch.cat([first, others], dim=1)
        for row, count in enumerate(counts):
            alone = None if source is None else Source(source.ids[row : row + 1])
            expected, _ = module.model.extend(ids[row : row + 1, 12 - count :], module.model.start(1, alone))
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
    ids, source, real = random_ids(length), random_ids(length, 9), torch.arange(length).expand(ROWS, -1) < length - 6
    expected, leaf = embedded(module, lambda: read(module, ids, source=Source(source, real)), source=True)
    everywhere = torch.ones(ROWS, length, dtype=torch.bool)
    by_token = gradient(expected, everywhere, leaf)
    assert (by_token[~real] == 0).all()
    assert (by_token[real] > 0).all()
    other_padding = torch.where(real, source, random_ids(length, 2))
    assert torch.equal(read(module, ids, source=Source(other_padding, real)), expected)
    other_source = torch.where(torch.arange(length) == 5, (source - 4) % (VOCABULARY - 5) + 5, source)
    difference = read(module, ids, source=Source(other_source, real)) - expected
    assert (difference.abs().sum(-1) > 1e-7).all()
    if mode == "evaluation":  # in training masks differ with the shape
        assert_close(read(module, ids, source=Source(source[:, :-6])), expected)


@pytest.mark.parametrize("mode", MODES)
def test_padding_is_not_seen(module, length, mode):
    """Whatever stands there: states and gradients are the same to the last bit."""
    in_mode(module, mode)
    ids, layout = random_ids(length), layout_of("padded", length)
    expected, leaf = embedded(module, lambda: read(module, ids, **layout.options))
    by_token = gradient(expected, layout.real, leaf)
    assert (by_token[~layout.real] == 0).all()
    assert (by_token[layout.real] > 0).any(-1).all()
    other_padding = torch.where(layout.real, ids, random_ids(length, seed=3))
    found = read(module, other_padding, **layout.options)
    assert torch.equal(found[layout.real], expected[layout.real])


def test_more_padding_changes_nothing(module, length):
    ids, more = random_ids(length), torch.zeros(ROWS, 7, dtype=torch.int64)
    real = torch.arange(length + 7).expand(ROWS, -1) < length
    expected, leaf = embedded(module, lambda: read(module, ids))
    found, padded_leaf = embedded(module, lambda: read(module, torch.cat([ids, more], dim=1), real=real))
    assert_close(found[:, :length], expected)
    upstream = torch.randn(expected.shape, generator=torch.Generator().manual_seed(6))
    (by_token,) = torch.autograd.grad(expected, leaf, upstream)
    (by_padded_token,) = torch.autograd.grad(found[:, :length], padded_leaf, upstream)
    torch.testing.assert_close(by_padded_token[:, :length], by_token, atol=2e-5, rtol=1e-4)
    assert (by_padded_token[:, length:] == 0).all()


@pytest.mark.parametrize("mode", MODES)
def test_a_packed_document_does_not_depend_on_its_neighbours(module, length, mode):
    """Whatever they are: states and gradients are the same to the last bit."""
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


def test_parameters_are_counted_as_the_model_has_them(recipe, module):
    costs = costs_of(recipe, VOCABULARY)
    assert costs.parameters == sum(parameter.numel() for parameter in module.parameters())
    assert costs.parameters == sum(costs.parts.values())


def test_saving_and_loading_keeps_the_scores(recipe, module, length, tmp_path):
    save_file(module.state_dict(), tmp_path / "model.safetensors")
    loaded = PretrainingModel(recipe, VOCABULARY).eval()
    loaded.load_state_dict(load_file(tmp_path / "model.safetensors"))
    ids = random_ids(length)
    for name in module.heads:
        before, after = (scores_of(each, name, ids) for each in (module, loaded))
        assert torch.equal(after, before)


def scores_of(module, name, ids):
    """What a head makes of the hidden states of the model, or of a generator that learns its objective."""
    generated = module.generating is not None and name == module.generating.learns
    hidden = module.hidden(name, Inputs(ids)).flatten(0, 1) if generated else module.rows(read(module, ids))
    return module.heads[name].scores(hidden, module.model.embedding.table)


def what_is_accumulated(recipe):
    """Input, objectives, and the kinds of mixers, or of blocks that have none."""
    blocks = [block for stack in recipe.model.stacks().values() for block in stack.distinct()]
    kinds = {block.mixer_config.kind for block in blocks}
    return json.dumps([recipe.model_dump(mode="json")[key] for key in ("input", "objective")]), *sorted(kinds)


@pytest.mark.parametrize("name", {what_is_accumulated(narrow(name)): name for name in ALIKE}.values())
def test_accumulation_changes_nothing(recipe, corpus):
    """One step with the batch whole, and in micro-batches with different numbers of targets."""
    recipe = without_dropout(recipe).changed({"training.clip": None})
    results = []
    for micro_batch in (8, 3):
        torch.manual_seed(0)
        cut = recipe.changed({"training.micro_batch": micro_batch})
        module = PretrainingModel(cut, corpus.tokenizer.size).train()
        if not all(stack.independent_rows for stack in module.model.stacks().values()):
            pytest.skip("the recipe declares that rows depend on each other in training")
        optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
        micro_batches = make_batches(cut, module, corpus, seed=0).step(0)
        assert len(micro_batches) == -(-8 // micro_batch)
        means = optimize(module, optimizer, micro_batches, cut, 0, 0, Placement(torch.device("cpu"), "float32"))
        results.append((means, module.state_dict()))
    (whole, weights), (cut_means, cut_weights) = results
    for name, value in whole.items():
        torch.testing.assert_close(cut_means[name], value, atol=1e-5, rtol=1e-5)
    for name, value in weights.items():
        torch.testing.assert_close(cut_weights[name], value, atol=1e-6, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The .grad attribute")  # the compiler looks at it on a factorised embedding's output
@pytest.mark.filterwarnings("ignore:.*should not be instantiated")  # the compiler does so with autograd functions
def test_compiled_equals_eager(recipe, name, corpus):
    module = fresh(name)
    batch = make_batches(recipe, module, corpus, seed=0).step(0)[0]
    expected = module(batch)
    torch.compiler.reset()  # the limit of variants is one of a process, which trains few recipes and not all
    module.model.compile_layers()
    for objective, total in module(batch).items():
        torch.testing.assert_close(total, expected[objective], atol=1e-4, rtol=1e-5)


PUBLISHED = {name: recipe.published for name, recipe in REGISTRY.items() if recipe.published}


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters_match_the_papers(name):
    counted = costs_of(REGISTRY[name], PUBLISHED[name].vocabulary).parameters
    alike = counted == pytest.approx(PUBLISHED[name].parameters, rel=0.015)
    assert alike == (not PUBLISHED[name].differs)
