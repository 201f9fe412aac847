"""The micro-batch that fits, by count; and the memory of a GPU, counted without one."""

import pytest
import torch
from tests.conftest import PLAIN, shrink
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from bakeoff.batching.token_batches import TokenBatch
from bakeoff.errors import UserError
from bakeoff.ops.linear_cross_entropy import MOST_SCORES
from bakeoff.recipe_files import load_recipe
from bakeoff.resources import micro_batch as sizes
from bakeoff.resources.full_batch import full_batch
from bakeoff.resources.memory_need import MemoryCount
from bakeoff.resources.micro_batch import SHARE, fitting_micro_batch, halved, rows_that_fit

CPU, GPU = torch.device("cpu"), torch.device("cuda", 0)


@pytest.fixture
def memory(monkeypatch):
    """Sets the memory of this machine and of its GPU, in bytes."""

    def set_to(limit):
        monkeypatch.setattr(sizes, "free_memory", lambda: limit)
        monkeypatch.setattr(sizes, "memory_of", lambda device: limit)

    return set_to


@pytest.mark.parametrize(
    ("batch", "fitting", "expected"), [(64, 64, None), (64, 63, 32), (64, 20, 16), (65, 64, 33), (7, 1, 1)]
)
def test_a_batch_is_cut_into_the_fewest_equal_parts_that_fit(memory, batch, fitting, expected):
    recipe = shrink("bert-tiny", **PLAIN, **{"training.batch": batch})
    memory(MemoryCount(recipe, 160, CPU).need(fitting).total / SHARE + 1)
    assert fitting_micro_batch(recipe, 160, CPU) == expected


@pytest.mark.parametrize(("processes", "fitting", "expected"), [(3, 64, 22), (4, 20, 16), (4, 30, 16), (2, 9, 8)])
def test_processes_get_as_many_parts_each(memory, processes, fitting, expected):
    recipe = shrink("bert-tiny", **PLAIN, **{"training.batch": 64})
    memory(MemoryCount(recipe, 160, CPU).need(fitting).total / SHARE + 1)
    assert fitting_micro_batch(recipe, 160, CPU, processes) == expected


def test_teachers_take_memory_for_their_weights_and_for_what_they_read(memory):
    """A wide teacher of a small student decides: it reads the rows, whatever it was trained on."""
    student = shrink("bert-tiny", **PLAIN, **{"training.batch": 64})
    wide = {"model.embedding.width": 512, "model.encoder.block.ffn.width": 8192}
    stage = {"training.curriculum": [{"until": 0.5, "length": 8}], "training.batch": {"tokens": 4000}}
    teacher = shrink("roberta-tiny", **PLAIN, **wide, **stage)
    weights = 4 * MemoryCount(teacher, 160, CPU).module.parameter_count()
    memory((MemoryCount(student, 160, CPU).need(64).total + weights) / SHARE + 1)
    assert fitting_micro_batch(student, 160, CPU) is None
    assert fitting_micro_batch(student, 160, CPU, 1, [student]) is None
    assert fitting_micro_batch(student, 160, CPU, 1, [teacher]) < 32
    assert fitting_micro_batch(student, 160, CPU, 1, [student, teacher]) < 32


@pytest.mark.parametrize("name", ["bert-tiny", "gpt-tiny", "laptop-hybrid-tiny"])
def test_reading_takes_about_what_one_layer_holds(name):
    """The most memory that a forward pass without gradients has at once, operation by operation, is the oracle."""

    class Peak(TorchDispatchMode):
        held, most = {}, 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            result = func(*args, **(kwargs or {}))
            given, made = (
                {
                    each.untyped_storage()._cdata: each.untyped_storage()
                    for each in tree_leaves(of)
                    if torch.is_tensor(each)
                }
                for of in ((args, kwargs), result)
            )
            self.held = {key: each for key, each in self.held.items() if not each[0].expired()}
            for key in made.keys() - given.keys() - self.held.keys():
                self.held[key] = StorageWeakRef(made[key]), made[key].nbytes()
            self.most = max(self.most, sum(size for _, size in self.held.values()))
            return result

    count, rows = MemoryCount(shrink(name), 160, CPU, "float32"), 16
    batch = full_batch(count.recipe, count._placed, rows, CPU)
    with count._there(), Peak() as peak, torch.no_grad():
        count._placed(batch, None, lambda head, states, labels, table: states)
    assert 1 < count.reading(rows) / peak.most < 2
    assert count.reading(2 * rows) / count.reading(rows) == pytest.approx(2, rel=0.1)


def test_batches_by_tokens_are_cut_by_tokens(memory):
    recipe = shrink("transformer-translation-tiny", **{"training.batch": {"tokens": 3200}})
    memory(MemoryCount(recipe, 160, CPU).need(30).total / SHARE + 1)
    assert fitting_micro_batch(recipe, 160, CPU) == TokenBatch(tokens=800)  # 25 rows of 32 tokens


def test_the_stage_that_needs_most_decides(memory):
    stage = {"until": 0.5, "length": 16, "batch_factor": 100}
    plain = {**PLAIN, "training.batch": 8}
    whole, staged = shrink("bert-tiny", **plain), shrink("bert-tiny", **plain, **{"training.curriculum": [stage]})
    memory(MemoryCount(whole, 160, CPU).need(20).total / SHARE + 1)
    assert fitting_micro_batch(whole, 160, CPU) is None
    assert 20 < fitting_micro_batch(staged, 160, CPU) < 50  # of 800 rows, half as long


def test_rows_that_depend_on_each_other_are_not_cut(memory):
    memory(1 << 20)
    assert fitting_micro_batch(shrink("cnn-lm-tiny"), 160, CPU) is None


def test_a_single_row_that_does_not_fit_is_refused_with_what_helps(memory):
    memory(1 << 18)
    with pytest.raises(UserError, match=r"a single row of 32 tokens takes .* GB.*activation_checkpointing=true"):
        fitting_micro_batch(shrink("bert-tiny", **PLAIN), 160, GPU)


@pytest.mark.parametrize("size", ["most", 0, -3, 2.5, [4]])
def test_a_size_of_another_kind_is_refused_in_one_line(size):
    with pytest.raises(UserError, match=r"micro_batch: give a number of rows above 0, \{tokens: N\}, or auto$"):
        shrink("bert-tiny", **{"training.micro_batch": size})


def test_halves_are_rounded_up_and_end_at_one():
    assert [halved(9), halved(2), halved(1)] == [5, 1, None]
    assert halved(TokenBatch(tokens=301)) == TokenBatch(tokens=151)


def test_what_fits_grows_with_the_gpu_and_takes_less_than_it_has():
    recipe = load_recipe("bert-base")
    fits, count = rows_that_fit(recipe, 30_522), MemoryCount(recipe, 30_522, GPU, "bfloat16")
    assert list(fits) == [16, 24, 80, 141]
    for size, rows in fits.items():
        assert count.need(rows).total <= SHARE * size * 1e9 < count.need(rows + 1).total


@pytest.mark.parametrize("name", ["bert-base", "gpt2-base"])
def test_activations_on_a_gpu_are_those_of_the_literature(name):
    """Korthikanti et al. 2022 (arXiv:2205.05198, equation 2) count s b h (34 + 5 a s / h) bytes a layer with dropout.

    The second summand is that of attention without FlashAttention, which keeps nothing of the sort. A stream in
    float32, which goes through autocast, keeps up to a half more.
    """
    recipe = load_recipe(name, {"model.dropout": 0.1})
    width, layers, length = recipe.model.stack.width, recipe.model.stack.layers, recipe.input.length
    count = MemoryCount(recipe, 100, GPU, "bfloat16")  # the vocabulary's share is small
    of_a_row = count.need(9).activations - count.need(8).activations
    assert 1.0 < of_a_row / (layers * length * width * 34) < 1.6


def test_scores_of_a_large_vocabulary_are_counted_in_chunks():
    """GPT-2's at 1,024 tokens take 6.6 GB in float32 for 32 rows, and as much for their probabilities."""
    counts = [MemoryCount(load_recipe("gpt2-base"), size, GPU, "bfloat16") for size in (50_257, 100)]
    large, small = (count.need(32).activations - count.need(16).activations for count in counts)
    assert abs(large - small) < 0.05 * (16 * 1024 * 50_257 * 4)
    of_a_chunk = 2 * 4 * MOST_SCORES  # and the gradient of the table, 154 MB
    assert counts[0].need(32).activations - counts[1].need(32).activations > of_a_chunk
