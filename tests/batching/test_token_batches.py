from itertools import chain, pairwise

import numpy as np
import pytest
import torch
from tests.batching.test_batches import same
from tests.conftest import shrink

from bakeoff.batching.token_batches import TokenOrder, cut_by_tokens
from bakeoff.errors import UserError
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.recipe_files import load_recipe
from bakeoff.training.stages import make_batches

TOKENS = 160


def batches(corpus, name="transformer-translation-tiny", seed=0, **changes):
    recipe = shrink(name, **{"training.batch": {"tokens": TOKENS}, **changes})
    torch.manual_seed(0)
    return make_batches(recipe, PretrainingModel(recipe, corpus.tokenizer.size), corpus, seed)


def numbers(order, epoch):
    """The examples of all batches of an epoch."""
    steps = range(epoch * order.batches, (epoch + 1) * order.batches)
    found = [order.examples_of(step) for step in steps]
    assert {each for _, each in found} == {epoch}
    return [examples.tolist() for examples, _ in found]


@pytest.mark.parametrize(("size", "sides"), [(1, 1), (700, 1), (5000, 2)])
def test_every_example_comes_once_an_epoch_among_its_like(size, sides):
    generator = np.random.default_rng(size)
    lengths = generator.geometric(0.05, size=(size, sides)).clip(2, 100)
    order = TokenOrder(lengths, 400, 400, seed=3)
    first, second = numbers(order, 0), numbers(order, 1)
    for epoch in (first, second):
        assert sorted(chain.from_iterable(epoch)) == list(range(size))
        for batch in epoch:
            assert len(batch) * lengths[batch].max() <= 400
    if size > 1:
        assert [len(batch) for batch in first] != sorted(len(batch) for batch in first)
        assert set(map(frozenset, first)) != set(map(frozenset, second))
        assert first != numbers(TokenOrder(lengths, 400, 400, seed=4), 0)
    assert numbers(TokenOrder(lengths, 400, 400, seed=3), 1) == second


def test_batches_are_as_full_as_can_be():
    generator = np.random.default_rng(0)
    lengths = np.sort(generator.integers(1, 50, size=400))
    cuts = cut_by_tokens(lengths, 300)
    assert cuts[0] == 0
    assert cuts[-1] == 400
    for low, high in pairwise(cuts):
        assert (high - low) * lengths[high - 1] <= 300
        assert high == 400 or (high + 1 - low) * lengths[high] > 300  # one more would not fit
    assert cut_by_tokens(np.array([5, 9, 9]), 4) == [0, 1, 2, 3]


def test_most_places_hold_tokens():
    generator = np.random.default_rng(1)
    target = generator.gamma(2.5, 11, size=20_000).astype(np.int64).clip(2, 250)
    source = (target * generator.normal(1, 0.2, size=20_000)).astype(np.int64).clip(2, 250)
    lengths = np.stack([target, source], 1)

    def share(batches):
        """Of the places of batches, those that hold tokens."""
        places = sum(lengths[batch].max(0).sum() * len(batch) for batch in batches)
        return sum(lengths[batch].sum() for batch in batches) / places

    assert share(numbers(TokenOrder(lengths, 4096, 4096, seed=0), 0)) > 0.9
    assert share(np.split(np.arange(20_000), 200)) < 0.4  # in batches of so many rows


def test_a_batch_is_a_function_of_seed_and_step_alone(parallel_corpus):
    one, other = batches(parallel_corpus), batches(parallel_corpus)
    forwards = [one.step(step) for step in range(2 * one.order.batches + 1)]
    assert same(other.step(len(forwards) - 1), forwards[-1])
    assert same(other.step(2), forwards[2])
    assert not same(batches(parallel_corpus, seed=1).step(2), forwards[2])
    tokens = [sum(part.tokens for part in parts) for parts in forwards[: one.order.batches]]
    assert np.mean(tokens) == pytest.approx(one.tokens_per_step)
    assert sum(tokens) == len(parallel_corpus.train.tokens) + 2 * len(parallel_corpus.train.documents) - 2


def test_parts_are_the_batch_cut_where_so_many_tokens_are_full(parallel_corpus):
    def pairs(parts):
        """Sources and targets without padding."""
        found = []
        for part in parts:
            for sources, targets in zip(part.row.source.ids.tolist(), part.row.ids.tolist(), strict=True):
                found.append(([i for i in sources if i], [i for i in targets if i]))
        return found

    whole = batches(parallel_corpus)
    parts = batches(parallel_corpus, **{"training.micro_batch": {"tokens": 60}})
    for step in range(6):
        cut = parts.step(step)
        assert all(max(part.row.ids.numel(), part.row.source.ids.numel()) <= 60 for part in cut)
        assert pairs(cut) == pairs(whole.step(step))
        (one,) = whole.step(step)
        assert max(one.row.ids.numel(), one.row.source.ids.numel()) <= TOKENS
        labels = torch.cat([part.targets["translation"][1] for part in cut])
        assert torch.equal(labels, one.targets["translation"][1])
    fixed = whole.fixed(20)
    assert sum(len(part.row.ids) for part in fixed) == 20
    assert all(max(part.row.ids.numel(), part.row.source.ids.numel()) <= TOKENS for part in fixed)


@pytest.mark.parametrize("rows", [{"format": "doc_sentences"}, {"format": "sentence_pair"}])
def test_other_rows_of_unequal_lengths(corpus, rows):
    changes = {"input": {**rows, "length": 48}, "objective": [{"kind": "mlm"}]}
    made = batches(corpus, "roberta-tiny", **changes, **{"training.micro_batch": {"tokens": 64}})
    total = 0
    for step in range(made.order.batches):
        parts = made.step(step)
        assert sum(part.row.ids.numel() for part in parts) <= TOKENS
        total += sum(len(part.row.ids) for part in parts)
        assert all(len(part.targets["mlm"][0]) > 0 for part in parts)
    assert total == made.texts[0].format.size


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("gpt-tiny", {"training.batch": {"tokens": 4096}}, "rows of blocks are all as long as input.length"),
        ("bert-tiny", {"training.batch": {"tokens": 4096}}, "nsp changes the lengths of rows"),
        ("transformer-base-wmt", {"training.batch": {"tokens": 100}}, "100 are fewer than one row may have, 256"),
        ("transformer-base-wmt", {"training.batch": {"tokens": 0}}, "training.batch.tokens: input should be greater"),
        ("transformer-base-wmt", {"training.batch": {"token": 9}}, "unknown key 'token'; did you mean 'tokens'"),
        ("transformer-base-wmt", {"training.micro_batch": 8}, "give it in rows where 'batch' is"),
    ],
)
def test_what_cannot_be_counted_is_one_line(name, changes, message):
    with pytest.raises(UserError, match=message):
        load_recipe(name, changes)


def test_the_rows_that_never_change_are_spread_evenly_over_many_parts(parallel_corpus):
    found = batches(parallel_corpus)
    made = list(found.order.spread(60))
    assert len(made) > 3
    indices = np.concatenate([each.indices for each in made])
    for each in made:
        assert each.epochs.tolist() == [0] * len(each.indices)
        assert each.micro_batches == [(0, len(each.indices))]
    assert len(set(indices.tolist())) == 60
    assert np.diff(np.sort(indices)).max() <= -(-found.texts[0].format.size // 60)
