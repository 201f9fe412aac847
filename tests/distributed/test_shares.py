"""What each of several processes makes of a batch: together exactly the batch that a single process makes."""

import pytest
import torch
from tests.conftest import shrink

from bakeoff.batching.widths import NONE, widened, widths_of
from bakeoff.corpus.mixture import open_corpus
from bakeoff.distributed.processes import Processes
from bakeoff.learner.pretraining_model import build_on_meta
from bakeoff.recipe_files import recipe_names
from bakeoff.row import mapped
from bakeoff.training.stages import make_batches

TINY = [name for name in recipe_names() if name.endswith("-tiny")]
BY_TOKENS = {"training.batch": {"tokens": 192}, "training.micro_batch": {"tokens": 40}}
BY_ROWS = {"training.batch": 10, "training.micro_batch": 2}


def shared_by(size, recipe, module, corpus):
    return [make_batches(recipe, module, corpus, seed=3, processes=Processes(rank, size)) for rank in range(size)]


def together(parts, pad, directions):
    """The micro-batches of all processes, padded to the widest."""
    wide = tuple(map(max, zip(*(widths_of(part) for part in parts), strict=True)))
    return [widened(batch, wide, pad, directions) for part in parts for batch in part]


def require_equal(made, whole):
    assert [batch.number for batch in made] == [batch.number for batch in whole] == list(range(len(whole)))
    for mine, expected in zip(made, whole, strict=True):
        assert (mine.tokens, mine.advance, mine.first_row) == (expected.tokens, expected.advance, expected.first_row)
        signals = []
        mapped(expected.row, signals.append)
        there = []
        mapped(mine.row, there.append)
        assert len(signals) == len(there)
        for before, after in zip(signals, there, strict=True):
            assert torch.equal(before, after)
        for name, (rows, labels) in expected.targets.items():
            assert torch.equal(mine.targets[name][0], rows)
            assert torch.equal(mine.targets[name][1], labels)


@pytest.mark.parametrize("size", [pytest.param(2, marks=pytest.mark.slow), 3])
@pytest.mark.parametrize("name", TINY)
def test_processes_make_the_batch_of_one(name, size, corpus, parallel_corpus):
    recipe = shrink(name, **BY_ROWS)
    require_whole(recipe, size, parallel_corpus if recipe.input.parallel else corpus)


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize(
    ("name", "input"),
    [("transformer-translation-tiny", "parallel"), ("bert-tiny", "doc_sentences")],
)
def test_also_in_batches_by_tokens(name, input, size, corpus, parallel_corpus):
    objective = [shrink(name).objective[0].model_dump(mode="json")]
    recipe = shrink(name, **BY_TOKENS, objective=objective, input={"format": input, "length": 32})
    require_whole(recipe, size, parallel_corpus if recipe.input.parallel else corpus)


def test_also_of_a_mixture(mixture):
    require_whole(shrink("bert-tiny", **BY_ROWS), 3, open_corpus(mixture))


def require_whole(recipe, size, text):
    module = build_on_meta(recipe, text.tokenizer.size)
    alone = make_batches(recipe, module, text, seed=3)
    several = shared_by(size, recipe, module, text)
    uneven = set()
    for step in (0, 1, 40):
        whole, parts = alone.step(step), [batches.step(step) for batches in several]
        uneven |= {len(part) for part in parts}
        before = [sum(len(batch.row.ids) for batch in whole[:place]) for place in range(len(whole))]
        assert [batch.first_row for batch in whole] == before
        require_equal(together(parts, text.tokenizer.pad, recipe.model.directions), whole)
    assert len(uneven) > 1 or len(whole) % size == 0


def test_no_rows_have_no_widths():
    assert widths_of([]) == NONE
