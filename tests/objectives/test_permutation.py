"""Factorisation orders against a construction by hand, one example at a time."""

import numpy as np
import pytest
import torch
from tests.conftest import shrink

from bakeoff.errors import UserError
from bakeoff.formats.pairs import SegmentPairConfig
from bakeoff.learner.pretraining_model import PretrainingModel, build_on_meta
from bakeoff.objectives.permutation import PermutationConfig
from bakeoff.randomness.draws import Draws
from bakeoff.recipe_files import load_recipe
from bakeoff.row import Row
from bakeoff.training.stages import make_batches


def drawn(corpus, epoch=0, **options):
    objective = PermutationConfig(**options).build(shrink("xlnet-tiny").model, corpus.tokenizer.size)
    pairs = SegmentPairConfig(length=40).build(corpus.train, corpus.tokenizer, "ends", None)
    indices = np.arange(pairs.size)
    draws = Draws(0, np.full(len(indices), epoch), indices)
    examples = pairs.examples(indices, draws)
    before = examples.row.ids.copy()
    targets = objective.targets(examples, corpus.train, corpus.tokenizer, draws)
    assert np.array_equal(examples.row.ids, before)  # nothing is replaced
    return examples, targets


@pytest.mark.parametrize("ngram", [1, 5])
def test_each_row_sees_what_comes_before_it_in_the_order(corpus, ngram):
    examples, targets = drawn(corpus, ngram=ngram)
    length, rows = examples.row.ids.shape[1], examples.row.queries.visible.shape[1]
    owner, place = np.divmod(targets.rows, rows)
    for example in range(len(examples.row.ids)):
        own = place[owner == example] - length  # this row's queries
        assert own.tolist() == list(range(len(own)))
        order = examples.row.queries.positions[example, own].tolist()
        assert len(set(order)) == len(order)
        assert targets.labels[owner == example].tolist() == examples.row.ids[example, order].tolist()
        assert (examples.sources[example, order] >= 0).all()  # never a special token
        for step, position in enumerate(order):
            seen = set(range(length)) - set(order) | set(order[:step])
            assert set(np.flatnonzero(examples.row.queries.visible[example, length + step])) == seen
            assert set(np.flatnonzero(examples.row.queries.visible[example, position])) == seen
        for position in set(range(length)) - set(order):
            assert set(np.flatnonzero(examples.row.queries.visible[example, position])) == set(range(length)) - set(
                order
            )


def test_a_target_does_not_know_itself_or_what_follows(corpus):
    """Changing a target, or one after it in the order, changes nothing of its prediction, in any layer."""
    recipe = shrink("xlnet-tiny", **{"model.encoder.layers": 3, "input": {"format": "segment_pair", "length": 40}})
    torch.manual_seed(0)
    module = PretrainingModel(recipe, corpus.tokenizer.size).eval()
    batch = make_batches(recipe, module, corpus, seed=0).step(0)[0]
    length = batch.row.ids.shape[1]
    counts = torch.bincount(batch.targets["permutation"][0] // (length + batch.row.queries.positions.shape[1]))
    expected = module.model(batch.row)[0][:, length:]
    step = int(counts.min()) // 2
    changed = batch.row.ids.clone()
    for row in range(len(changed)):
        behind = batch.row.queries.positions[row, step : counts[row]]
        changed[row, behind] = (changed[row, behind] + 7) % (corpus.tokenizer.size - 10) + 10
    found = module.model(Row(changed, batch.row.segments, batch.row.padding_mask, queries=batch.row.queries))[0][
        :, length:
    ]
    torch.testing.assert_close(found[:, : step + 1], expected[:, : step + 1], atol=1e-6, rtol=1e-5)
    assert not torch.allclose(found[:, step + 1], expected[:, step + 1])


def test_a_target_does_not_know_other_documents_or_padding(corpus):
    """Where a row holds several documents, the order goes over all of them, but nobody sees another one's."""
    changes = {"input": {"format": "blocks", "length": 40, "isolate": True}}
    recipe = shrink("xlnet-tiny", **{"model.encoder.layers": 3, **changes})
    torch.manual_seed(0)
    module = PretrainingModel(recipe, corpus.tokenizer.size).eval()
    batch = next(
        part
        for step in range(100)
        for part in make_batches(recipe, module, corpus, 0).step(step)[:1]
        if part.row.documents is not None and (part.row.documents == 0).any()
    )
    documents, queries = batch.row.documents, batch.row.queries
    expected = module.model(Row(batch.row.ids, batch.row.segments, None, documents, queries=queries))[0]
    row = int((documents == 0).any(1).nonzero()[0])
    beside = documents.gather(1, queries.positions) * queries.visible[:, documents.shape[1] :].any(-1)
    owners = torch.cat([documents, beside], dim=1)[row]  # 0 for queries that are there to fill the row, too
    for other in documents[row].unique().tolist():
        changed = batch.row.ids.clone()
        changed[row, documents[row] == other] = 5
        found = module.model(Row(changed, batch.row.segments, None, documents, queries=queries))[0]
        apart = (owners != other) & (owners > 0)
        torch.testing.assert_close(found[row, apart], expected[row, apart], atol=1e-6, rtol=1e-5)
    assert (owners[documents.shape[1] :] > 0).any()


@pytest.mark.parametrize("kinds", [["permutation", "mlm", "sop"], ["sop", "mlm", "permutation"]])
def test_other_objectives_beside_it_have_the_rows_that_they_mean(corpus, kinds):
    rows = {"format": "segment_pair", "length": 40}
    recipe = shrink("xlnet-tiny", objective=[{"kind": kind} for kind in kinds], input=rows)
    module = build_on_meta(recipe, corpus.tokenizer.size)
    batches = make_batches(recipe, module, corpus, seed=0)
    batch = batches.step(0)[0]
    alone = recipe.changed({"objective": [{"kind": "sop"}]})
    text = make_batches(alone, build_on_meta(alone, corpus.tokenizer.size), corpus, seed=0).step(0)[0].row.ids
    length = 40 + batch.row.queries.positions.shape[1]
    rows, labels = batch.targets["sop"]
    assert rows.tolist() == [length * row for row in range(len(text))]
    rows, labels = batch.targets["mlm"]
    assert (rows % length < 40).all()
    assert torch.equal(text[rows // length, rows % length], labels)
    assert (batch.row.ids[rows // length, rows % length] == corpus.tokenizer.mask).float().mean() > 0.6
    rows, labels = batch.targets["permutation"]
    assert (rows % length >= 40).all()
    positions = batch.row.queries.positions[rows // length, rows % length - 40]
    assert torch.equal(text[rows // length, positions], labels)


@pytest.mark.parametrize(
    ("name", "changes", "reason"),
    [
        ("bert-tiny", {"objective": [{"kind": "permutation"}]}, "relative_attention can, no other"),
        ("conv-light-encoder-tiny", {"objective": [{"kind": "permutation"}]}, "relative_attention can, no other"),
        ("xlnet-tiny", {"model.embedding.positions": "learned"}, "set positions to none"),
    ],
)
def test_what_makes_no_sense_is_refused(name, changes, reason):
    with pytest.raises(UserError, match=reason):
        build_on_meta(load_recipe(name, changes), 100)
