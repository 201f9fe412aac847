"""Weights of tokens against the integral, summed up at many points of the way from padding to the text."""

import math

import numpy as np
import pytest
import torch
from tests.untrained_runs import untrained

import bakeoff
from bakeoff.errors import UserError
from bakeoff.tasks.finetune_config import FinetuneConfig
from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.tasks.kinds.classification import ClassificationConfig
from bakeoff.tasks.kinds.regression import RegressionConfig
from bakeoff.tasks.rows.batches import collate
from bakeoff.using.attribution import weights_of_tokens

POINTS = 60
ROWS = ["river stone\tthe old\t0", "old stone\tstone\t1", "the river finds\tthe\t2", "the stone finds\triver\t1"] * 4
QUICK = {"learning_rate": [1e-3], "epochs": [1], "least_steps": 0}


def finetuned(name, corpus, folder, pairs, kind=ClassificationConfig, **settings):
    (folder / "rows.tsv").write_text("\n".join(["one\tother\tlabel", *ROWS]) + "\n")
    given = {
        "train": folder / "rows.tsv",
        "dev": folder / "rows.tsv",
        "test": folder / "rows.tsv",
        "text_column": "one",
        "label_column": "label",
    }
    task = kind(**given, **({"pair_column": "other"} if pairs else {}))
    run = untrained(name, corpus, folder / "pretrained", **{"input.length": 24})
    config = FinetuneConfig(**QUICK, **settings)
    bakeoff.finetune(run.path, task, folder / "run", config=config, device="cpu", progress=False)
    return FinetunedRun.open(folder / "run")


def integrated(head, batch, of_text, pad, label):
    """(W, T) by the midpoint rule; the probabilities of the class with and without the text."""
    model, calls, replaced = head.model, [], []

    def hook(part, given, vectors):
        calls.append((given[0].ids, vectors))
        return replaced[len(calls) - 1] if replaced else vectors

    handles = [
        part.register_forward_hook(hook) for part in {model.embedding, model.target_embedding or model.embedding}
    ]

    def log_probability(ids):
        calls.clear()
        return head(batch._replace(ids=ids)).softmax(-1).mean(0)[label].log()

    with torch.no_grad():
        rows = torch.where(of_text, pad, batch.ids), batch.ids
        ends = [(float(log_probability(ids).exp()), list(calls)) for ids in rows]
    (without, zeros), (probability, ones) = ends
    total = torch.zeros(batch.ids.shape)
    for point in range(POINTS):
        share = (point + 0.5) / POINTS
        replaced[:] = [
            (zero + share * (one - zero)).requires_grad_() for (_, zero), (_, one) in zip(zeros, ones, strict=True)
        ]
        gradients = torch.autograd.grad(log_probability(batch.ids), list(replaced))
        for (ids, one), (_, zero), gradient in zip(ones, zeros, gradients, strict=True):
            width = ids.shape[1]
            first = next(k for k in range(3) if torch.equal(batch.ids[:, k : k + width], ids))  # its part of the row
            total[:, first : first + width] += ((one - zero) * gradient).sum(-1) / POINTS
    for handle in handles:
        handle.remove()
    return total, probability, without


@pytest.mark.parametrize(
    ("name", "pairs", "settings"),
    [
        ("bert-tiny", False, {}),
        ("bert-tiny", True, {}),
        ("bert-tiny", False, {"truncate": "windows"}),
        ("gpt2-tiny", False, {}),
        ("xlnet-tiny", True, {}),
        ("bart-tiny", False, {}),
    ],
)
def test_weights_are_the_integrals_of_their_tokens(name, pairs, settings, corpus, tmp_path):
    run = finetuned(name, corpus, tmp_path, pairs, **settings)
    head = run.load()
    for parameter in head.output.parameters():
        parameter.data *= 4  # so that classes differ
    texts = ("The old  stone finds " + "the river " * (20 if settings else 2), "stone, old" if pairs else None)
    found = weights_of_tokens(run, head, *texts)
    format = run.format()
    rows = format.placed(*texts)
    batch = collate(rows.encoded, np.arange(len(rows.encoded.ids)), format)
    assert (len(batch.ids) > 1) == bool(settings)
    of_text = torch.zeros_like(batch.ids, dtype=torch.bool)
    for window, places in enumerate(rows.positions):
        of_text[window, [place for place, _, _ in places]] = True
    label = run.learned.classes.index(found.label)
    expected, probability, without = integrated(head, batch, of_text, format.pad, label)
    assert (found.probability, found.baseline) == (
        pytest.approx(probability, abs=1e-5),
        pytest.approx(without, abs=1e-5),
    )
    with torch.no_grad():
        assert label == int(head(batch).softmax(-1).mean(0).argmax())
    wanted = [np.zeros(len(side.ids)) for side in rows.sides]
    for window, places in enumerate(rows.positions):
        for place, side, token in places:
            wanted[side][token] += float(expected[window, place])
    weights = np.array([each.weight for each in found.weights])
    scale = np.abs(weights).max()
    assert scale > 1e-4
    assert weights == pytest.approx(np.concatenate(wanted), abs=0.02 * scale)
    assert math.fsum(weights) == pytest.approx(math.log(probability / without), abs=2e-3 * max(1, scale))
    assert [each.side for each in found.weights] == [n for n, side in enumerate(rows.sides) for _ in side.ids]
    assert all(each.token == texts[each.side][each.begin : each.end] for each in found.weights)
    for number in range(1 + pairs):
        pieces = [each.token for each in found.weights if each.side == number]
        assert "".join(pieces) == "".join(texts[number].split())


def test_a_run_that_predicts_no_class_has_no_weights(corpus, tmp_path):
    loaded = bakeoff.load(finetuned("bert-tiny", corpus, tmp_path, False, RegressionConfig).path, device="cpu")
    assert loaded.capabilities == {"embed", "hidden", "predict"}
    with pytest.raises(UserError, match="weights of tokens are those for a class, and regression predicts none"):
        loaded.weights_of_tokens("river")
