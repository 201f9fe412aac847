"""The prefix LM of one stack: which tokens are shown, which are predicted, and that none of these is seen before."""

import numpy as np
import pytest
import torch
from scipy import stats
from tests.conftest import shrink, without_dropout

from bakeoff.errors import UserError
from bakeoff.formats.blocks import BlocksConfig
from bakeoff.learner.pretraining_model import PretrainingModel, build_on_meta
from bakeoff.objectives.prefix_clm import PrefixCausalLanguageModelConfig
from bakeoff.randomness.draws import Draws
from bakeoff.recipe_files import load_recipe
from bakeoff.training.stages import make_batches

CHANCE = 1e-6


def drawn(corpus, rows, epoch=0):
    """All rows of an epoch with their prefixes, and (N, T) labels, -1 where nothing is predicted."""
    objective = PrefixCausalLanguageModelConfig().build(shrink("prefix-lm-tiny").model, corpus.tokenizer.size)
    format = rows.build(corpus.train, corpus.tokenizer, "documents")
    indices = np.arange(format.size)
    draws = Draws(0, np.full(len(indices), epoch), indices)
    examples = format.examples(indices, draws)
    targets = objective.targets(examples, corpus.train, corpus.tokenizer, draws)
    labels = np.full(examples.row.ids.shape, -1)
    labels.ravel()[targets.rows] = targets.labels
    return examples, labels


@pytest.mark.parametrize("isolate", [False, True])
def test_all_behind_the_prefix_is_predicted_and_nothing_of_it(corpus, isolate):
    """From the prefix's last token on, each place predicts what the row has next."""
    examples, labels = drawn(corpus, BlocksConfig(length=24, isolate=isolate))
    for ids, owner, prefix, own, following in zip(
        examples.row.ids, examples.row.documents, examples.row.prefix, labels, examples.following, strict=True
    ):
        length = int((owner > 0).sum())
        assert 1 <= prefix <= length
        assert (own[: prefix - 1] == -1).all()
        assert (own[length:] == -1).all()
        assert own[prefix - 1 : length - 1].tolist() == ids[prefix:length].tolist()
        assert own[length - 1] == following[length - 1]


def test_every_cut_is_equally_likely_and_another_one_in_every_epoch(corpus):
    prefixes = [drawn(corpus, BlocksConfig(length=12, isolate=False), epoch)[0].row.prefix[:-1] for epoch in range(3)]
    assert not np.array_equal(prefixes[0], prefixes[1])
    counts = np.bincount(np.concatenate(prefixes), minlength=13)
    assert counts[0] == 0
    assert counts.sum() > 3000
    assert stats.chisquare(counts[1:]).pvalue > CHANCE


@pytest.mark.parametrize("isolate", [False, True])
@torch.no_grad()
def test_no_prediction_depends_on_what_is_predicted(corpus, isolate):
    """Nor on anything after it: the labels of a row are changed, all at once after each place in turn."""
    recipe = without_dropout(shrink("prefix-lm-tiny", **{"input.length": 20, "input.isolate": isolate}))
    torch.manual_seed(0)
    module = PretrainingModel(recipe, corpus.tokenizer.size).eval()
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    (batch,) = make_batches(recipe, module, corpus, seed=0).step(0)
    rows, _ = batch.targets["prefix_clm"]
    example, place = rows // 20, rows % 20
    hidden = module.model(batch.row)[0]
    seen_ahead = 0
    for here in range(20):
        others = batch.row.ids.clone()
        others[:, here:] = (others[:, here:] + 1) % corpus.tokenizer.size
        moved = (module.model(batch.row._replace(ids=others))[0] - hidden).abs().amax(-1) > 1e-6
        assert not moved[example[place < here], place[place < here]].any()
        seen_ahead += int(moved[:, :here].any(1).sum())
    assert seen_ahead > 20  # within the prefixes
    # What is counted as seen ahead of a token is what the rows have on average.
    pairs = (batch.row.prefix * (batch.row.prefix - 1) / 2).double()
    assert abs(float(pairs.mean()) - module.objectives[0].pairs_ahead(20)) < 5 * float(pairs.std()) / len(pairs) ** 0.5


def test_flops_count_what_is_seen(corpus):
    """The mean number of pairs of all prefixes of a row, over each of the two layers."""
    module = PretrainingModel(shrink("prefix-lm-tiny"), corpus.tokenizer.size)
    (objective,) = module.objectives
    for length in (1, 2, 7, 32):
        expected = np.mean([n * (n - 1) / 2 for n in range(1, length + 1)])
        assert objective.pairs_ahead(length) == pytest.approx(expected)
        assert module.model.row_flops(length, ahead=10.0) - module.model.row_flops(length) == 2 * 10 * 2 * 2 * 32
    alone = 3 * (module.model.row_flops(32, ahead=objective.pairs_ahead(32)) / 32 + objective.head.flops_per_row / 2)
    assert module.flops_per_token() == pytest.approx(alone, abs=1)


@pytest.mark.parametrize(
    ("name", "changes", "reason"),
    [
        ("bert-tiny", {"objective": [{"kind": "prefix_clm"}]}, "which a model with 'encoder' can see; use 'decoder'"),
        ("t5-tiny", {"objective": [{"kind": "prefix_clm"}]}, "without anything to read; use prefix_lm"),
        ("elmo-tiny", {"objective": [{"kind": "prefix_clm"}]}, "use bilm, or set it to 1"),
        ("tcn-tiny", {"objective": [{"kind": "prefix_clm"}]}, "attention of any kind can look there"),
        ("lstm-lm-tiny", {"objective": [{"kind": "prefix_clm"}]}, "attention of any kind can look there"),
        ("prefix-lm-tiny", {"model.decoder.block.mixer.two_sided": False}, "set two_sided of its mixers to true"),
        ("prefix-lm-tiny", {"objective": [{"kind": "prefix_lm"}]}, "or use prefix_clm"),
        (
            "prefix-lm-tiny",
            {"objective": [{"kind": "prefix_clm"}, {"kind": "clm"}]},
            "shows tokens what .* stands alone",
        ),
        ("prefix-lm-tiny", {"input.context": 8}, "has no use for tokens that are only read"),
        ("transformer-xl-tiny", {"objective": [{"kind": "prefix_clm"}]}, "starts anew in every row"),
        ("prefix-lm-tiny", {"input": {"format": "segment_pair", "length": 32}}, "needs running text"),
    ],
)
def test_what_cannot_see_a_prefix_is_refused(name, changes, reason):
    with pytest.raises(UserError, match=reason):
        build_on_meta(load_recipe(name, changes), 100)


@pytest.mark.parametrize("name", ["gpt-tiny", "gpt2-tiny"])
def test_other_decoders_learn_it_too(name, corpus):
    recipe = shrink(name, objective=[{"kind": "prefix_clm"}])
    module = PretrainingModel(recipe, corpus.tokenizer.size)
    (batch,) = make_batches(recipe, module, corpus, seed=0).step(0)
    assert batch.row.prefix is not None
    assert float(module(batch)[0]["prefix_clm"].detach()) > 0
