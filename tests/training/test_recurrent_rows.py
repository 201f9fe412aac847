"""Rows that continue each other: what is remembered from step to step, and where each row goes on."""

import copy

import numpy as np
import pytest
import torch
from tests.conftest import crossed, shrink, without_dropout

from bakeoff.errors import UserError
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.learner.recurrent_memory import Memory
from bakeoff.recipe_files import load_recipe, recipe_names
from bakeoff.resources.device import Placement
from bakeoff.row import Row
from bakeoff.trainer.step import optimize
from bakeoff.training.pretraining import Pretraining
from bakeoff.training.stages import make_batches

RECURRENT = [name for name in recipe_names() if load_recipe(name).input.continues]
TINY = [name for name in RECURRENT if name.endswith("-tiny")]
PLACEMENT = Placement(torch.device("cpu"), "float32")


def made(name, corpus, seed=0, **changes):
    recipe = without_dropout(shrink(name, **changes))
    torch.manual_seed(0)
    module = PretrainingModel(recipe, corpus.tokenizer.size).eval()
    return recipe, module, make_batches(recipe, module, corpus, seed)


def rows_of(parts):
    return torch.cat([part.row.ids for part in parts])


def text_of(parts):
    """The rows with what was hidden in them."""
    shown = []
    for part in parts:
        ids = part.row.ids.clone()
        rows, labels = part.targets.get("mlm", (torch.zeros(0, dtype=torch.int64),) * 2)
        ids.view(-1)[rows] = labels
        shown.append(ids)
    return torch.cat(shown)


@pytest.mark.parametrize("name", ["transformer-xl-tiny", "lstm-lm-tiny"])
@torch.no_grad()
def test_rows_read_in_turn_are_one_long_row(name, corpus):
    """Three steps with memory give what one pass over the three rows of each stream gives."""
    _, module, batches = made(name, corpus)
    parts = [batches.step(step)[0] for step in range(3)]
    memory = Memory(module.model)
    found = []
    for part in parts:
        state = memory.before(part)
        hidden, after = module.model(Row(part.row.ids), state, remembered=part.advance, banded=False)
        memory.keep(0, after)
        found.append(hidden)
    whole = module.model(Row(torch.cat([part.row.ids for part in parts], dim=1)))[0]
    torch.testing.assert_close(torch.cat(found, dim=1), whole, atol=2e-6, rtol=1e-5)
    alone = module.model(Row(parts[2].row.ids))[0]
    assert not torch.allclose(found[2], alone, atol=1e-3)


@pytest.mark.parametrize("name", crossed(RECURRENT, TINY))
def test_each_stream_goes_on_where_it_stopped(name, corpus):
    """The row of the next step begins with what follows in the text, which the row itself still shows in XLNet's."""
    recipe, _, batches = made(name, corpus, **{"training.batch": 6, "training.micro_batch": 4})
    (advance,) = {part.advance for step in range(3) for part in batches.step(step)}
    assert [len(part.row.ids) for part in batches.step(0)] == [4, 2]
    text = batches.texts[0].format.stream
    every = text.rows(np.arange(text.total)[None], text.total)[0][0].tolist()
    for step in range(20):
        now, following = text_of(batches.step(step)), text_of(batches.step(step + 1))
        for row, after in zip(now.tolist(), following.tolist(), strict=True):
            if advance < recipe.input.length:
                assert row[advance] == after[0]
                continue
            places = [p for p in range(text.total) if every[p : p + advance] == row]
            ends = [(p + advance) % (batches.texts[0].format.size * advance) for p in places]
            assert any(every[end : end + advance] == after for end in ends)


def test_an_epoch_reads_everything_once(corpus):
    _, _, batches = made("transformer-xl-tiny", corpus, **{"training.batch": 5, "input.length": 16})
    size = batches.texts[0].format.size
    streams = batches.order.streams
    steps = size // 5
    seen = np.bincount(streams.examples_of(0, steps)[0], minlength=size)
    assert seen.max() <= 2
    assert (seen == 1).sum() >= size - 2 * 5
    every = np.bincount(streams.examples_of(0, size)[0], minlength=size)
    assert (every == 5).all()  # each stream once around


def test_the_seed_says_where_the_streams_begin(corpus):
    first = [rows_of(made("transformer-xl-tiny", corpus, seed)[2].step(0)) for seed in (0, 0, 1)]
    assert torch.equal(first[0], first[1])
    assert not torch.equal(first[0], first[2])


def test_no_gradient_goes_into_the_step_before(corpus):
    recipe, module, batches = made("lstm-lm-tiny", corpus)
    unit = Pretraining(recipe, module)
    memory = unit.memory
    for step in range(2):
        optimize(unit, batches.step(step), step)
    assert memory.tensors()
    assert not any(tensor.requires_grad for tensor in memory.tensors().values())


@pytest.mark.parametrize("name", RECURRENT)
def test_the_parts_of_a_batch_do_not_matter(name, corpus):
    """The same memory, losses and gradients whatever rows go through the model at once, also after a checkpoint."""
    found = []
    for micro_batch in (8, 3):
        recipe, module, batches = made(name, corpus, **{"training.micro_batch": micro_batch})
        unit = Pretraining(recipe, module)
        for step in range(2):
            optimize(unit, batches.step(step), step)
        saved, unit.memory = unit.memory.tensors(), Memory(module.model)
        unit.memory.load(saved)
        means, again = optimize(unit, batches.step(2), 2), unit.memory
        found.append((means, again.tensors()))
    (means, tensors), (others, other_tensors) = found
    for name in means:
        torch.testing.assert_close(means[name], others[name], atol=1e-4, rtol=1e-4)
    assert tensors.keys() == other_tensors.keys() != set()
    for key, tensor in tensors.items():
        assert len(tensor) == 8
        torch.testing.assert_close(tensor, other_tensors[key], atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("name", crossed(RECURRENT, TINY))
def test_what_is_remembered_moves_to_other_parts(name, corpus):
    """Each stream takes its own with it, to whatever part, or worker, has the stream from then on."""

    def trained(module, memory, micro_batch, step):
        recipe, _, batches = made(name, corpus, **{"training.micro_batch": micro_batch})
        unit = Pretraining(recipe, module)
        unit.memory = memory
        return optimize(unit, batches.step(step), step)

    _, module, _ = made(name, corpus)
    memory = Memory(module.model)
    for step in range(2):
        trained(module, memory, 4, step)
    saved, weights = memory.tensors(), copy.deepcopy(module.state_dict())
    means = trained(module, memory, 4, 2)
    for micro_batch in (8, 2, 1):
        module.load_state_dict(weights)
        moved = Memory(module.model)
        moved.load(saved)
        others = trained(module, moved, micro_batch, 2)
        assert others.keys() == means.keys()
        for kind, mean in means.items():
            torch.testing.assert_close(others[kind], mean, atol=1e-5, rtol=1e-5)
        assert moved.tensors().keys() == memory.tensors().keys() != set()
        for key, tensor in memory.tensors().items():
            torch.testing.assert_close(moved.tensors()[key], tensor, atol=1e-5, rtol=1e-5)
        assert any(not torch.equal(moved.tensors()[key], tensor) for key, tensor in saved.items())


def test_held_out_rows_are_read_in_turn(corpus):
    recipe, _, batches = made("transformer-xl-tiny", corpus)
    parts = batches.fixed(8)
    assert [len(part.row.ids) for part in parts] == [2, 2, 2, 2]
    assert all(part.advance == recipe.input.length for part in parts)
    assert all(torch.equal(a.row.ids, b.row.ids) for a, b in zip(parts, batches.fixed(8), strict=True))


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("gpt-tiny", {"input.recurrent": True}, "set model.embedding.positions to none"),
        ("gpt-tiny", {"input.recurrent": True, "model.embedding.positions": "none"}, "relative_attention"),
        ("transformer-xl-tiny", {"model.decoder.block.mixer.memory": None}, "set their memory"),
        ("transformer-xl-tiny", {"input.isolate": True}, "set isolate to false"),
        ("transformer-xl-tiny", {"model.decoder.block.mixer": {"kind": "average"}}, "remembered without end"),
        ("xlnet-tiny", {"model.embedding.segments": 2}, "third segment"),
        ("elmo-tiny", {"input.recurrent": True, "input.isolate": False}, "starts anew"),
        ("t5-tiny", {"input.recurrent": True}, "starts anew"),
        ("conv-light-encoder-tiny", {"input.recurrent": True, "input.isolate": False}, "relative_attention"),
    ],
)
def test_what_cannot_remember_is_refused(name, changes, message):
    with pytest.raises(UserError, match=message):
        load_recipe(name, changes)


@torch.no_grad()
def test_what_is_written_does_not_depend_on_how_the_prompt_is_read(corpus):
    """With a memory shorter than the text, too: each token sees as many before it, wherever a chunk begins."""
    _, module, batches = made("transformer-xl-tiny", corpus, **{"model.decoder.block.mixer.memory": 8})
    ids = rows_of(batches.step(0))
    found = []
    for sizes in ([32], [1] * 32, [5, 20, 7]):
        state, hidden = module.model.start(len(ids)), []
        for chunk in ids.split(sizes, dim=1):
            read, state = module.model(Row(chunk), state)
            hidden.append(read)
        found.append(torch.cat(hidden, dim=1))
    for other in found[1:]:
        torch.testing.assert_close(other, found[0], atol=2e-6, rtol=1e-5)
    assert not torch.allclose(found[0], module.model(Row(ids))[0], atol=1e-3)


def test_held_out_text_may_be_shorter_than_a_batch_is_wide(corpus):
    recipe, module, _ = made("transformer-xl-tiny", corpus)
    wide = recipe.changed({"training.batch": 400})
    held_out = make_batches(wide, module, corpus, 0, split="validation")
    assert held_out.texts[0].format.size < 400
    assert sum(len(part.row.ids) for part in held_out.fixed(16)) == 16


def test_held_out_rows_do_not_depend_on_the_batch(corpus):
    rows = []
    for size in (8, 2):
        recipe, module, _ = made("xlnet-tiny", corpus, **{"training.micro_batch": size})
        rows.append(
            [part.row.ids.tolist() for part in make_batches(recipe, module, corpus, 0, split="validation").fixed(24)]
        )
    assert rows[0] == rows[1]


def test_static_masks_take_turns(corpus):
    static = [{"kind": "mlm", "masking": "static", "copies": 2, "mask": 1.0, "random": 0.0}]
    rows = {"format": "blocks", "length": 32, "isolate": False, "recurrent": True}
    _, _, batches = made("xlnet-tiny", corpus, objective=static, input=rows)
    size = batches.texts[0].format.size
    seen = {}
    for step in range(3 * size // 8 + 1):
        indices, _ = batches.order.streams.examples_of(step, 1)
        for index, row in zip(indices.tolist(), rows_of(batches.step(step)).tolist(), strict=True):
            seen.setdefault(index, set()).add(tuple(row))
    assert {len(versions) for versions in seen.values()} <= {1, 2}
    assert sum(len(versions) == 2 for versions in seen.values()) > 0.9 * size


def test_streams_that_two_directions_cannot_share_are_refused_with_the_recipe():
    with pytest.raises(UserError, match=r"training\.batch: 7 rows cannot be shared .* give an even number"):
        load_recipe("xlnet-tiny", {"training.batch": 7})
    assert load_recipe("xlnet-tiny", {"training.batch": 7, "input.backwards": False}).training.batch == 7


@pytest.mark.parametrize("name", [name for name in RECURRENT if name.endswith("-tiny")])
def test_streams_have_no_number_of_tokens(name):
    with pytest.raises(UserError, match="give their number, not tokens"):
        load_recipe(name, {"training.batch": {"tokens": 4096}, "training.micro_batch": None})


def test_more_streams_than_rows_are_refused(corpus):
    with pytest.raises(UserError, match="give a smaller batch"):
        made("transformer-xl-tiny", corpus, **{"training.batch": 5000})[2].step(0)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")  # which the compiler itself looks at
@pytest.mark.parametrize("name", [name for name in RECURRENT if name.endswith("-tiny")])
def test_compiled_layers_remember_the_same(name, corpus):
    found = []
    for compiled in (False, True):
        recipe, module, batches = made(name, corpus)
        if compiled:
            torch.compiler.reset()
            module.model.compile_layers()
        unit = Pretraining(recipe, module)
        memory = unit.memory
        for step in range(5):  # until the memory is full
            means = optimize(unit, batches.step(step), step)
        found.append((means, memory.tensors()))
    (means, tensors), (others, other_tensors) = found
    for key, mean in means.items():
        torch.testing.assert_close(mean, others[key], atol=1e-3, rtol=1e-3)
    for key, tensor in tensors.items():
        torch.testing.assert_close(tensor, other_tensors[key], atol=1e-2, rtol=1e-2)
