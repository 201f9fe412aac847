import weakref

import pytest
import torch
from tests.conftest import PLAIN, shrink
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.learner.recurrent_memory import Memory
from bakeoff.recipe_files import load_recipe
from bakeoff.resources.memory_need import memory_need
from bakeoff.training.stages import make_batches

CPU = torch.device("cpu")
ROWS = 8


def saved_bytes(module, batch):
    """What autograd says it keeps in a real pass, each piece of memory once, parameters not counted."""
    own = {parameter.untyped_storage().data_ptr() for parameter in module.parameters()}
    kept = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    state = None
    if batch.advance is not None:
        state = module.model.start(len(batch.row.ids))
        with torch.no_grad():
            for _ in range(12):  # until it is full
                state = module(batch, state)[1]
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        losses, _ = module(batch, state)
    # The loss over the vocabulary keeps its probabilities itself, where these hooks do not see them.
    nodes, seen = [loss.grad_fn for loss in losses.values()], set()
    while nodes:
        node = nodes.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        probabilities = getattr(node, "probabilities", None)
        if probabilities is not None:
            kept[probabilities.data_ptr()] = probabilities.untyped_storage().nbytes()
        nodes += [after for after, _ in node.next_functions]
    return sum(kept.values())


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("albert-tiny", 0.02),
        ("gpt-tiny", 0.02),
        ("conv-dynamic-lm-tiny", 0.02),
        pytest.param("tcn-wikitext103", 0.02, marks=pytest.mark.slow),
        ("t5-tiny", 0.02),
        ("gcnn-tiny", 0.1),  # which masks its taps where, as here, documents are packed
        ("transformer-xl-tiny", 0.05),
        ("xlnet-tiny", 0.2),  # whose real batch has a mask for each row
    ],
)
def test_activations_are_what_autograd_keeps_in_a_real_pass(name, error, corpus):
    recipe = shrink(name, **{"training.precision": "float32", "training.batch": ROWS})
    torch.manual_seed(0)
    module = PretrainingModel(recipe, corpus.tokenizer.size).train()
    (batch,) = make_batches(recipe, module, corpus, seed=0).step(0)
    need = memory_need(recipe, corpus.tokenizer.size, CPU)
    assert need.rows == ROWS
    assert need.activations == pytest.approx(saved_bytes(module, batch), rel=error)


def test_weights_and_optimizer_are_float32_and_only_activations_grow_with_the_rows():
    # In float32, or else there are copies of the weights, too.
    recipe = shrink("bert-tiny", **PLAIN, **{"training.precision": "float32"})
    few, many = (memory_need(recipe, 160, CPU, rows) for rows in (10, 30))
    assert few.weights == few.gradients == 4 * PretrainingModel(recipe, 160).parameter_count()
    assert few.optimizer == 2 * few.weights
    assert (many.weights, many.optimizer) == (few.weights, few.optimizer)
    assert many.activations == pytest.approx(3 * few.activations, rel=0.01)
    assert many.total == 4 * many.weights + many.activations


def test_batches_that_are_not_divided_count_as_many_rows_as_go_through_at_once():
    assert memory_need(load_recipe("albert-base"), 1000, CPU).rows == 32  # of the paper's 4,096
    assert memory_need(load_recipe("albert-base", {"training.micro_batch": 64}), 1000, CPU).rows == 64
    assert memory_need(shrink("bert-tiny", **{"training.batch": 4}), 160, CPU).rows == 4
    by_tokens = {"training.batch": {"tokens": 3200}, "training.micro_batch": {"tokens": 1600}}
    assert memory_need(shrink("transformer-translation-tiny", **by_tokens), 160, CPU).rows == 50


class Held(TorchDispatchMode):
    """The most bytes that tensors made in it held at once."""

    def __init__(self):
        super().__init__()
        self.alive, self.most = {}, 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        given = {t.untyped_storage().data_ptr() for t in tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)}
        for tensor in tree_leaves(result):
            if isinstance(tensor, torch.Tensor) and tensor.untyped_storage().data_ptr() not in given:
                self.alive[tensor.untyped_storage().data_ptr()] = weakref.ref(tensor), tensor.untyped_storage().nbytes()
        self.alive = {key: pair for key, pair in self.alive.items() if pair[0]() is not None}
        self.most = max(self.most, sum(size for _, size in self.alive.values()))
        return result


@pytest.mark.parametrize(
    ("optimizer", "temporaries"),
    [
        ({"kind": "lamb", "lr": 1e-3}, 2),
        ({"kind": "adamw", "lr": 1e-3, "bias_correction": False}, 2),
        ({"kind": "adamw", "lr": 1e-3}, 0),
        ({"kind": "sgd", "lr": 1e-3, "momentum": 0.9}, 0),
    ],
)
def test_what_a_step_of_the_optimizer_needs_for_a_moment_is_counted(optimizer, temporaries):
    recipe = shrink("bert-tiny", **{"training.optimizer": optimizer, "training.precision": "float32"})
    module = PretrainingModel(recipe, 160)
    for parameter in module.parameters():
        parameter.grad = torch.ones_like(parameter)
    made = recipe.training.optimizer.build(module)
    made.step()  # which makes what it keeps
    with Held() as held:
        made.step()
    few = memory_need(recipe, 160, CPU, 1)
    assert few.update == temporaries * few.weights
    assert held.most == pytest.approx(few.update, rel=0.05, abs=0.02 * few.weights)
    assert few.total == (2 + recipe.training.optimizer.moments) * few.weights + max(few.activations, few.update)


def test_what_muon_keeps_and_needs_for_a_moment_is_counted():
    wide = {"model.encoder.width": 64, "model.encoder.block.ffn.width": 256}
    optimizer = {"kind": "muon", "lr": 0.02}
    recipe = shrink("bert-tiny", **wide, **{"training.optimizer": optimizer, "training.precision": "float32"})
    module = PretrainingModel(recipe, 160)
    for parameter in module.parameters():
        parameter.grad = torch.ones_like(parameter)
    made = recipe.training.optimizer.build(module)
    made.step()
    kept = sum(value.nbytes for state in made.state.values() for value in state.values() if value.dim())
    with Held() as held:
        made.step()
    need = memory_need(recipe, 160, CPU, 1)
    assert need.optimizer == kept
    assert held.most == pytest.approx(need.update, rel=0.1)


def test_what_all_rows_of_a_batch_remember_counts_whatever_the_micro_batch(corpus):
    recipe = shrink("xlnet-tiny", **{"training.precision": "float32", "training.batch": ROWS})
    module = PretrainingModel(recipe, corpus.tokenizer.size)
    memory = Memory(module.model)
    batches = make_batches(recipe, module, corpus, seed=0)
    for step in range(12):  # until the memory is full
        parts = batches.step(step)
        for part in parts:
            memory.keep(part.number, module(part, memory.before(part))[1])
    kept = sum(tensor.nbytes for tensor in memory.tensors().values())
    for micro_batch in (ROWS, 2):
        changed = recipe.changed({"training.micro_batch": micro_batch})
        assert memory_need(changed, corpus.tokenizer.size, CPU).remembered == kept
    assert memory_need(shrink("gpt-tiny"), corpus.tokenizer.size, CPU).remembered == 0
