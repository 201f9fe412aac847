"""The loss on held-out text: what it is made of, against the sums of a training's own losses over the same rows."""

import math

import pytest
import torch
from tests.conftest import shrink, without_dropout
from tests.untrained_runs import untrained

from bakeoff.errors import UserError
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.resources.device import Placement
from bakeoff.runs.run import Run
from bakeoff.tasks.evaluate import evaluate
from bakeoff.tasks.measures.held_out_text import IN_SHARES, HeldOutTextConfig
from bakeoff.tasks.measures.measure import Measurement
from bakeoff.training.stages import make_batches
from bakeoff.training.validation import HeldOut, validate


@pytest.mark.parametrize(
    ("name", "objectives"),
    [
        ("electra-tiny", None),  # detection weighs 50
        ("bert-tiny", [{"kind": "mlm", "weight": 0.25}, {"kind": "nsp", "weight": 3.0}]),
        ("gpt-tiny", None),
    ],
)
def test_it_is_the_weighted_sum_of_the_objectives_means(name, objectives, corpus):
    recipe = without_dropout(shrink(name, **({"objective": objectives} if objectives else {})))
    torch.manual_seed(0)
    module = PretrainingModel(recipe, corpus.tokenizer.size)
    made = make_batches(recipe, module, corpus, seed=0, split="validation")
    batches = made.fixed(7)
    found = validate(module, HeldOut(corpus.validation, batches, made), Placement(torch.device("cpu"), "float32"))
    assert module.training
    with torch.no_grad():
        parts = list(batches)
        sums = [module(batch)[0] for batch in parts]
    weights = {part.kind: part.weight for part in recipe.objective}
    counts = {kind: sum(len(batch.targets[kind][0]) for batch in parts) for kind in weights}
    means = {kind: sum(float(each[kind]) for each in sums) / counts[kind] for kind in weights}
    assert found["targets"] == counts
    assert found["losses"] == pytest.approx(means, rel=1e-5)
    assert found["loss"] == pytest.approx(sum(weights[kind] * mean for kind, mean in means.items()), rel=1e-5)
    held_out = corpus.validation
    per_byte = (len(held_out.tokens) + len(held_out.documents) - 1) / held_out.bytes  # ends are tokens, too
    for kind, value in found["bits_per_byte"].items():
        assert value == pytest.approx(means[kind] / math.log(2) * per_byte, rel=1e-5)
        assert math.log(found["perplexity"][kind]) == pytest.approx(means[kind], rel=1e-5)


@pytest.mark.parametrize("name", ["gpt-tiny", "albert-tiny"])
def test_each_corpus_of_a_mixture_counts_by_its_share_however_few_rows_it_has(name, corpus, other, tmp_path):
    """Both have fewer rows than a sample of 512 asks of them; losses are means over targets, in shares of rows."""
    run = untrained(name, corpus, tmp_path / "run", **{"training.validation_examples": 512})
    single = [evaluate(run.path, corpus=each.path, device="cpu") for each in (corpus, other)]
    assert single[0]["examples"] != single[1]["examples"]
    for shares in ((0.75, 0.25), (0.25, 0.75), (0.9999, 0.0001)):
        mixture = ",".join(f"{each.path}:{share}" for each, share in zip((corpus, other), shares, strict=True))
        found = evaluate(run.path, corpus=mixture, device="cpu")
        if shares[1] < 0.001:
            one = evaluate(run.path, corpus=other.path, examples=1, device="cpu")
            single = [single[0], one]
        assert found["examples"] == sum(each["examples"] for each in single)
        measured = HeldOutTextConfig(rows=512).measure(Run.open_trained(run.path), mixture, "cpu")
        for objective, loss in found["losses"].items():
            per_row = [share / each["examples"] for share, each in zip(shares, single, strict=True)]
            targets = [weight * each["targets"][objective] for weight, each in zip(per_row, single, strict=True)]
            for figure, of_mixture in (("losses", loss), ("accuracy", found["accuracy"][objective])):
                values = [count * each[figure][objective] for count, each in zip(targets, single, strict=True)]
                assert of_mixture == pytest.approx(sum(values) / sum(targets), rel=1e-5)
            assert found["targets"][objective] == sum(each["targets"][objective] for each in single)
            assert measured.scores[f"loss:{objective}"] == pytest.approx(loss, rel=1e-5)
    facts = [measured.facts, {key: of for key, of in measured.facts.items() if key != IN_SHARES}]
    both = [Measurement(f"{number}", measured.scores, measured.lines, each) for number, each in enumerate(facts)]
    with pytest.raises(UserError, match="an older version, which did not count corpora by their shares, has measured"):
        HeldOutTextConfig().panels(both, {each.label: run.recipe.model_dump() for each in both}, mixture)
