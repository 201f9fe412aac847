import threading

import pytest
import torch
from tests.conftest import shrink

from bakeoff.batching.batches import prefetch
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.training.stages import make_batches


def batches(corpus, name="bert-tiny", seed=0, **changes):
    recipe = shrink(name, **changes)
    return make_batches(recipe, PretrainingModel(recipe, corpus.tokenizer.size), corpus, seed)


def tensors(batch):
    """All tensors of a batch by their names, None for those that it lacks."""
    return {
        **{
            name: getattr(batch.row, name)
            for name in ("ids", "segments", "padding_mask", "documents", "backwards", "prefix")
        },
        "source": batch.row.source and batch.row.source.ids,
        "source's real": batch.row.source and batch.row.source.padding_mask,
        "positions": batch.row.queries and batch.row.queries.positions,
        "visible": batch.row.queries and batch.row.queries.visible,
        **{f"{name}'s rows": rows for name, (rows, _) in batch.targets.items()},
        **{f"{name}'s labels": labels for name, (_, labels) in batch.targets.items()},
    }


def equal(first, second):
    """Whether two tensors, either of which may be None, hold the same numbers."""
    return first is second if first is None or second is None else torch.equal(first, second)


def same(first, second):
    """Whether two lists of parts hold the same numbers."""
    if len(first) != len(second):
        return False
    for a, b in zip(first, second, strict=True):
        one, other = tensors(a), tensors(b)
        if (a.tokens, a.advance, one.keys()) != (b.tokens, b.advance, other.keys()):
            return False
        if not all(equal(one[name], other[name]) for name in one):
            return False
    return True


NAMES = ["bert-tiny", "albert-tiny", "gpt-tiny", "conv-light-encoder-tiny"]


@pytest.mark.parametrize("name", NAMES)
def test_a_batch_is_a_function_of_seed_and_step_alone(corpus, name):
    one, other = batches(corpus, name), batches(corpus, name)
    forwards = [one.step(step) for step in range(70)]  # crosses chunks and epochs
    assert same(other.step(63), forwards[63])  # without having made those before it
    assert same(other.step(2), forwards[2])
    assert not same(batches(corpus, name, seed=1).step(2), forwards[2])
    assert not same(forwards[3], forwards[2])


@pytest.mark.parametrize("name", NAMES)
def test_micro_batches_are_the_batch_in_parts(corpus, name):
    whole = batches(corpus, name).step(5)[0]
    parts = batches(corpus, name, **{"training.micro_batch": 3}).step(5)
    assert [len(part.row.ids) for part in parts] == [3, 3, 2]
    assert torch.equal(torch.cat([part.row.ids for part in parts]), whole.row.ids)
    length = whole.row.ids.shape[1]
    for objective, (rows, labels) in whole.targets.items():
        shifted = [part.targets[objective][0] + 3 * i * length for i, part in enumerate(parts)]
        assert torch.equal(torch.cat(shifted), rows)
        assert torch.equal(torch.cat([part.targets[objective][1] for part in parts]), labels)
    assert sum(part.tokens for part in parts) == whole.tokens


def test_the_batch_size_does_not_change_what_an_example_is(corpus):
    """Steps of 8 rows and steps of 4 see the same rows in the same order."""
    large = [batches(corpus).step(step)[0].row.ids for step in range(3)]
    small = [batches(corpus, **{"training.batch": 4}).step(step)[0].row.ids for step in range(6)]
    assert torch.equal(torch.cat(large), torch.cat(small))


def test_fixed_batches_do_not_depend_on_the_seed(corpus):
    assert same(batches(corpus, seed=0).fixed(20), batches(corpus, seed=5).fixed(20))
    assert sum(len(part.row.ids) for part in batches(corpus).fixed(20)) == 20


def test_results_made_ahead_come_in_order_and_errors_reach_the_loop():
    assert list(prefetch(lambda step: step * step, 3, 8)) == [9, 16, 25, 36, 49]

    def fails(step):
        if step == 2:
            raise ValueError("at two")
        return step

    seen = []
    with pytest.raises(ValueError, match="at two"):
        seen.extend(prefetch(fails, 0, 5))
    assert threading.active_count() == 1 or not any(t.name == "batches" for t in threading.enumerate())


def test_leaving_the_loop_early_stops_the_thread():
    for item in prefetch(lambda step: step, 0, 10**9):
        if item == 5:
            break
    assert not any(thread.name == "batches" for thread in threading.enumerate())


@pytest.mark.parametrize("name", ["bert-tiny", "albert-tiny", "conv-light-encoder-tiny"])
def test_static_masking_repeats_an_example_whole(corpus, name):
    """In another epoch a row comes at another place of the order, but it is the same row with the same masks."""
    made = batches(corpus, name, **{"objective.0.masking": "static"})
    epochs = made.texts[0].format.size // 8 + 1
    rows = [row for step in range(2 * epochs) for row in made.step(step)[0].row.ids.tolist()]
    first, second = rows[: made.texts[0].format.size], rows[made.texts[0].format.size : 2 * made.texts[0].format.size]
    assert first != second
    assert sorted(first) == sorted(second)
