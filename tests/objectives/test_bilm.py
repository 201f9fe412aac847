"""Targets of the bidirectional language model against a construction by hand, and that none sees what it predicts."""

import torch
from tests.conftest import shrink

from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.row import Row
from bakeoff.training.stages import make_batches

RECIPE = {"input.length": 48, "training.batch": 7, "training.micro_batch": 3}


def parts_of(corpus, **changes):
    torch.manual_seed(0)
    recipe = shrink("elmo-tiny", **RECIPE, **changes)
    module = PretrainingModel(recipe, corpus.tokenizer.size).eval()
    return module, make_batches(recipe, module, corpus, seed=0).step(0)


def test_both_neighbours_of_every_token_are_predicted(corpus):
    _, parts = parts_of(corpus)
    assert [len(part.row.ids) for part in parts] == [3, 3, 1]
    for part in parts:
        rows, labels = part.targets["bilm"]
        found = dict(zip(rows.tolist(), labels.tolist(), strict=True))
        padding_mask = part.row.ids.new_ones(part.row.ids.shape) if part.row.documents is None else part.row.documents
        expected = 0
        for b, ids in enumerate(part.row.ids.tolist()):
            for t in range(len(ids)):
                ahead, back = 2 * (b * len(ids) + t), 2 * (b * len(ids) + t) + 1
                if padding_mask[b, t] == 0:
                    continue
                if t + 1 < len(ids) and padding_mask[b, t + 1] > 0:
                    assert found[ahead] == ids[t + 1]
                expected += 1
                if t > 0 and padding_mask[b, t - 1] == padding_mask[b, t]:
                    assert found[back] == ids[t - 1]
                    expected += 1
                else:
                    assert back not in found
        assert len(found) == len(rows) == expected


def test_documents_that_are_not_kept_apart_are_one_text_to_both_directions(corpus):
    _, parts = parts_of(corpus, **{"input.isolate": False})
    assert all(part.row.documents is None for part in parts)
    assert [len(part.targets["bilm"][0]) for part in parts] == [len(part.row.ids) * (2 * 48 - 1) for part in parts]


def test_the_loss_is_that_of_two_language_models_with_one_softmax(corpus):
    module, parts = parts_of(corpus)
    part = parts[1]
    hidden = module.model(Row(part.row.ids, documents=part.row.documents))[0]
    rows, labels = part.targets["bilm"]
    total = torch.zeros(())
    for row, label in zip(rows.tolist(), labels.tolist(), strict=True):
        place, backwards = divmod(row, 2)
        half = hidden.flatten(0, 1)[place][32:] if backwards else hidden.flatten(0, 1)[place][:32]
        scores = module.heads["bilm"].output(half)
        total = total - (scores[label] - scores.logsumexp(-1))
    torch.testing.assert_close(module(part)[0]["bilm"], total, atol=1e-3, rtol=1e-5)


def test_no_direction_sees_what_it_predicts(corpus):
    module, parts = parts_of(corpus)
    part = parts[0]
    expected = module.model(Row(part.row.ids, documents=part.row.documents))[0]
    changed = part.row.ids.clone()
    changed[:, 20] = (changed[:, 20] - 5 + 1) % (corpus.tokenizer.size - 5) + 5
    found = module.model(Row(changed, documents=part.row.documents))[0]
    differs = (found - expected).abs().unflatten(-1, (2, -1)).sum((0, 3)) > 0  # (T, 2)
    assert not differs[:20, 0].any()
    assert not differs[21:, 1].any()
    assert differs[20].all()
    assert differs[21, 0]
    assert differs[19, 1]
