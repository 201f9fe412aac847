"""Contracts that every recipe of the registry keeps, whatever its parts (dropout off; shrunk to width 32)."""

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.conftest import shrink, without_dropout

from bakeoff.models.context import Context
from bakeoff.models.inputs import Source
from bakeoff.recipe import load_recipe, recipe_names
from bakeoff.training.costs import costs_of
from bakeoff.training.loop import optimize
from bakeoff.training.pretraining_model import PretrainingModel
from bakeoff.training.stages import make_batches

VOCABULARY = 160
LENGTH = 24


CAUSAL = [name for name in recipe_names() if load_recipe(name).model.causal]
SEQUENCE_TO_SEQUENCE = [name for name in CAUSAL if load_recipe(name).model.sequence_to_sequence]
BIDIRECTIONAL = [name for name in recipe_names() if name not in CAUSAL]


@pytest.fixture(params=recipe_names())
def recipe(request):
    return shrink(request.param)


@pytest.fixture
def corpus(recipe, corpus, parallel_corpus):
    """What the recipe can be trained on."""
    return parallel_corpus if recipe.input.parallel else corpus


@pytest.fixture
def module(recipe):
    torch.manual_seed(0)
    return PretrainingModel(recipe, VOCABULARY).eval()


def random_ids(rows=3, length=LENGTH, seed=0):
    return torch.randint(5, VOCABULARY, (rows, length), generator=torch.Generator().manual_seed(seed))


def read(module, ids, source_seed=9, **options):
    """The hidden states; a model with an encoder reads something before."""
    if module.model.config.sequence_to_sequence:
        options.setdefault("source", Source(random_ids(len(ids), 13, source_seed)))
    return module.model(ids, **options)


def assert_equal(found, expected):
    torch.testing.assert_close(found, expected, atol=2e-6, rtol=1e-5)


def test_shape_and_type(recipe, module):
    hidden = read(module, random_ids())
    assert hidden.shape == (3, LENGTH, recipe.model.output_width)
    assert hidden.dtype == torch.float32
    assert hidden.isfinite().all()


def test_every_parameter_gets_a_finite_gradient(recipe, module, corpus):
    batch = make_batches(recipe, module, corpus, seed=0).step(0)[0]
    sum(module(batch).values()).backward()
    for name, parameter in module.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.abs().sum() > 0, name


@pytest.mark.parametrize("recipe", [shrink(name) for name in CAUSAL], ids=CAUSAL)
def test_a_causal_model_does_not_see_what_comes_after(recipe, module):
    ids = random_ids()
    changed = ids.clone()
    changed[:, 15:] = random_ids(seed=1)[:, 15:]
    assert_equal(read(module, changed)[:, :15], read(module, ids)[:, :15])
    assert not torch.allclose(read(module, changed)[:, 15:], read(module, ids)[:, 15:])


@pytest.mark.parametrize("recipe", [shrink(name) for name in BIDIRECTIONAL], ids=BIDIRECTIONAL)
def test_a_bidirectional_model_sees_both_sides(recipe, module):
    ids = random_ids()
    for others, reach in zip((slice(0, 12), slice(13, None)), module.model.reach(), strict=True):
        changed = ids.clone()
        changed[:, others] = (changed[:, others] - 5 + 1) % (VOCABULARY - 5) + 5
        unseen = torch.allclose(read(module, changed)[:, 12], read(module, ids)[:, 12])
        assert unseen == (reach == 0)  # a model that mixes nothing says so


@pytest.mark.parametrize("recipe", [shrink(name) for name in CAUSAL], ids=CAUSAL)
@pytest.mark.parametrize("sizes", [[1] * LENGTH, [5, 1, 2, 13, 3], [LENGTH - 1, 1]], ids=["ones", "mixed", "last"])
def test_chunks_give_what_the_whole_gives(recipe, module, sizes):
    ids = random_ids()
    expected = read(module, ids)
    source = Source(random_ids(3, 13, 9)) if recipe.model.sequence_to_sequence else None
    state = module.model.start(3, source)
    found = []
    for chunk in ids.split(sizes, dim=1):
        before = state
        hidden, state = module.model.extend(chunk, before)
        again, _ = module.model.extend(chunk, before)  # a state is a value: going on from it does not change it
        assert torch.equal(again, hidden)
        found.append(hidden)
    assert_equal(torch.cat(found, dim=1), expected)


def test_an_output_depends_on_as_much_as_is_declared(recipe, module):
    stack = module.model.stack.double()  # what a recurrent network has left of 300 steps underflows in single precision
    left, right = stack.reach()
    length = int(min(left, 300) + min(right, 300)) + 5
    place = int(min(left, 300)) + 2
    torch.manual_seed(1)
    width, dtype = recipe.model.stack.width, torch.float64
    x = torch.randn(1, length, width, dtype=dtype, requires_grad=True)
    source = torch.randn(1, 5, width, dtype=dtype) if recipe.model.sequence_to_sequence else None
    y, _ = stack(x, Context(source=source))
    (y[0, place] * torch.randn_like(y[0, place])).sum().backward()
    seen = x.grad[0].abs().sum(-1).nonzero()[:, 0]
    assert place - seen.min() == min(left, place)
    assert seen.max() - place == min(right, length - 1 - place)


@pytest.mark.parametrize("recipe", [shrink(name) for name in SEQUENCE_TO_SEQUENCE], ids=SEQUENCE_TO_SEQUENCE)
def test_every_output_depends_on_the_source_but_not_on_its_padding(recipe, module):
    ids, source = random_ids(), random_ids(3, 13, 9)
    expected = read(module, ids)
    changed = source.clone()
    changed[:, 5] = (changed[:, 5] - 4) % (VOCABULARY - 5) + 5
    difference = read(module, ids, source=Source(changed)) - expected
    assert (difference.abs().sum(-1) > 1e-7).all()
    padded = torch.cat([source, random_ids(3, 4, 2)], dim=1)
    real = torch.arange(17).expand(3, -1) < 13
    assert_equal(read(module, ids, source=Source(padded, real)), expected)


def test_more_padding_changes_nothing(module):
    ids = random_ids()
    expected = read(module, ids)
    padded = torch.cat([ids, torch.zeros(3, 7, dtype=torch.int64)], dim=1)
    real = torch.arange(LENGTH + 7).expand(3, -1) < LENGTH
    assert_equal(read(module, padded, real=real)[:, :LENGTH], expected)
    other_padding = torch.cat([ids, random_ids(length=7, seed=3)], dim=1)
    assert_equal(read(module, other_padding, real=real)[:, :LENGTH], expected)


def test_a_packed_document_does_not_depend_on_its_neighbours(module):
    documents = torch.tensor([1] * 9 + [2] * 10 + [3] * 3 + [0] * 2).expand(3, -1)
    ids, others = random_ids(), random_ids(seed=2)
    mixed = torch.where(documents == 2, ids, others)
    inside = slice(9, 19)
    assert_equal(read(module, mixed, documents=documents)[:, inside], read(module, ids, documents=documents)[:, inside])
    first = read(module, ids[:, :9])
    assert_equal(read(module, ids, documents=documents)[:, :9], first)


def test_parameters_are_counted_as_the_model_has_them(recipe, module):
    costs = costs_of(recipe, VOCABULARY)
    assert costs.parameters == sum(parameter.numel() for parameter in module.parameters())
    assert costs.parameters == sum(costs.parts.values())


def test_saving_and_loading_keeps_the_scores(recipe, module, tmp_path):
    save_file(module.state_dict(), tmp_path / "model.safetensors")
    loaded = PretrainingModel(recipe, VOCABULARY).eval()
    loaded.load_state_dict(load_file(tmp_path / "model.safetensors"))
    ids = random_ids()
    table = loaded.model.embedding.table
    for name, head in module.heads.items():
        rows = module.rows(read(module, ids))
        expected = head.scores(rows, module.model.embedding.table)
        assert torch.equal(loaded.heads[name].scores(loaded.rows(read(loaded, ids)), table), expected)


def test_accumulation_changes_nothing(recipe, corpus):
    """One step with the batch whole, and in parts with different numbers of targets."""
    recipe = without_dropout(recipe).changed({"training.clip": None})
    results = []
    for micro_batch in (8, 3):
        torch.manual_seed(0)
        cut = recipe.changed({"training.micro_batch": micro_batch})
        module = PretrainingModel(cut, corpus.tokenizer.size).train()
        if not all(stack.independent_rows for stack in module.model.stacks().values()):
            pytest.skip("the recipe declares that rows depend on each other in training")
        optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
        parts = make_batches(cut, module, corpus, seed=0).step(0)
        assert len(parts) == -(-8 // micro_batch)
        means = optimize(module, optimizer, parts, cut, 0, 0, torch.device("cpu"), "float32")
        results.append((means, module.state_dict()))
    (whole, weights), (cut_means, cut_weights) = results
    for name, value in whole.items():
        torch.testing.assert_close(cut_means[name], value, atol=1e-5, rtol=1e-5)
    for name, value in weights.items():
        torch.testing.assert_close(cut_weights[name], value, atol=1e-6, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The .grad attribute")  # the compiler looks at it on a factorised embedding's output
@pytest.mark.filterwarnings("ignore:.*should not be instantiated")  # the compiler does so with autograd functions
def test_compiled_equals_eager(recipe, module, corpus):
    batch = make_batches(recipe, module, corpus, seed=0).step(0)[0]
    expected = module(batch)
    torch.compiler.reset()  # the limit of variants is one of a process, which trains few recipes and not all
    module.model.compile_layers()
    for name, total in module(batch).items():
        torch.testing.assert_close(total, expected[name], atol=1e-4, rtol=1e-5)


PUBLISHED = {name: load_recipe(name).published for name in recipe_names() if load_recipe(name).published}


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters_match_the_papers(name):
    counted = costs_of(load_recipe(name), PUBLISHED[name].vocabulary).parameters
    alike = counted == pytest.approx(PUBLISHED[name].parameters, rel=0.015)
    assert alike == (not PUBLISHED[name].differs)
