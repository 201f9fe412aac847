"""Masked next-token prediction: what is hidden where, which rows are whose, and what either loss is made of."""

import numpy as np
import pytest
import torch
from scipy import stats
from tests.conftest import shrink, without_dropout

from bakeoff.errors import UserError
from bakeoff.formats.blocks import BlocksConfig
from bakeoff.learner.pretraining_model import PretrainingModel, build_on_meta
from bakeoff.objectives.mntp import MaskedNextTokenConfig
from bakeoff.randomness.draws import Draws
from bakeoff.recipe_files import load_recipe
from bakeoff.trainer.step import optimize
from bakeoff.training.pretraining import Pretraining
from bakeoff.training.stages import make_batches

CHANCE = 1e-6
MNTP, CLM = {"kind": "mntp", "causal": 0.5, "weight": 0.5}, {"kind": "clm", "weight": 0.5}


def half(**changes):
    """A recipe whose rows are read half this way, half that way."""
    return without_dropout(shrink("gpt-bert-tiny", **{"objective": [MNTP, CLM], "input.length": 20} | changes))


def built(recipe, corpus):
    """Its model, whose states depend much on what is seen, and a batch."""
    torch.manual_seed(0)
    module = PretrainingModel(recipe, corpus.tokenizer.size).eval()
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    (batch,) = make_batches(recipe, module, corpus, seed=0).step(0)
    return module, batch


def drawn(corpus, config, rows, epoch=0):
    """All rows of an epoch before and after tokens of them were hidden, and (N, T) labels, -1 where there is none."""
    objective = config.build(shrink("gpt-bert-tiny").model, corpus.tokenizer.size)
    format = rows.build(corpus.train, corpus.tokenizer, "documents")
    indices = np.arange(format.size)
    draws = Draws(0, np.full(len(indices), epoch), indices)
    before, after = format.examples(indices, draws), format.examples(indices, draws)
    targets = objective.targets(after, corpus.train, corpus.tokenizer, draws)
    labels = np.full(after.row.ids.shape, -1)
    labels.ravel()[targets.rows] = targets.labels
    return before, after, labels


@pytest.mark.parametrize("isolate", [False, True])
def test_what_is_hidden_is_predicted_at_the_place_before(corpus, isolate):
    """Hidden tokens are ordinary ones of rows seen from both sides; the place before is of the same document."""
    config = MaskedNextTokenConfig(causal=0.3, mask=1.0, random=0.0, rate=0.4)
    before, after, labels = drawn(corpus, config, BlocksConfig(length=24, isolate=isolate))
    hidden = after.row.ids == corpus.tokenizer.mask
    assert not hidden[:, 0].any()
    assert np.array_equal(hidden[:, 1:], labels[:, :-1] >= 0)
    assert (labels[:, -1] == -1).all()
    assert np.array_equal(labels[:, :-1][hidden[:, 1:]], before.row.ids[:, 1:][hidden[:, 1:]])
    assert np.array_equal(after.row.ids[~hidden], before.row.ids[~hidden])
    assert not np.isin(before.row.ids[hidden], corpus.tokenizer.special_ids).any()
    assert (before.row.documents[:, 1:] == before.row.documents[:, :-1])[hidden[:, 1:]].all()
    padding_mask = (before.row.documents > 0).sum(1)
    assert ((after.row.prefix == 0) | (after.row.prefix == padding_mask)).all()
    assert not hidden[after.row.prefix == 0].any()
    whole = (after.row.prefix > 0) & (padding_mask == 24)
    possible = (before.sources[:, 1:] >= 0).sum(1)
    assert np.array_equal(hidden.sum(1)[whole], np.rint(possible * 0.4)[whole])


def test_each_row_is_read_causally_as_often_as_is_said(corpus):
    """Another one in every epoch, but where masks are static."""
    rows = BlocksConfig(length=12)
    config = MaskedNextTokenConfig(causal=1 / 16)
    prefixes = np.stack([drawn(corpus, config, rows, epoch)[1].row.prefix for epoch in range(3)])
    assert prefixes.size > 3000
    assert stats.binomtest(int((prefixes == 0).sum()), prefixes.size, 1 / 16).pvalue > CHANCE
    assert not np.array_equal(prefixes[0], prefixes[1])
    static = MaskedNextTokenConfig(causal=0.5, masking="static")
    first, second = (drawn(corpus, static, rows, epoch) for epoch in (0, 1))
    assert np.array_equal(first[1].row.prefix, second[1].row.prefix)
    assert np.array_equal(first[2], second[2])


@torch.no_grad()
def test_rows_are_read_from_both_sides_or_causally(corpus):
    """A change moves states before it, of its document, in the rows of mntp, and none in those of clm."""
    module, batch = built(half(), corpus)
    assert 0 < int((batch.row.prefix > 0).sum()) < 8
    hidden, causal = module.model(batch.row)[0], batch.row.prefix == 0
    ahead = 0
    for here in range(1, 20):
        others = batch.row.ids.clone()
        others[:, here:] = (others[:, here:] + 1) % corpus.tokenizer.size
        moved = (module.model(batch.row._replace(ids=others))[0] - hidden).abs().amax(-1) > 1e-6
        assert not moved[causal, :here].any()
        ahead += int(moved[~causal, :here].sum())
        if batch.row.documents is not None:
            unseen = (batch.row.documents[:, :, None] != batch.row.documents[:, None, here:]).all(-1)
            assert not moved[unseen].any()
    assert ahead > 100


@pytest.mark.parametrize("order", [[MNTP, CLM], [CLM, MNTP]], ids=["mntp first", "clm first"])
def test_every_row_belongs_to_one_of_the_two_in_whatever_order_they_are_listed(corpus, order):
    _, batch = built(half(objective=order), corpus)
    _, expected = built(half(), corpus)
    assert torch.equal(batch.row.ids, expected.row.ids)
    for kind in ("mntp", "clm"):
        rows, labels = batch.targets[kind]
        assert torch.equal(rows, expected.targets[kind][0])
        assert torch.equal(labels, expected.targets[kind][1])
        assert set((rows // 20).tolist()) == set(
            torch.nonzero((batch.row.prefix > 0) == (kind == "mntp"))[:, 0].tolist()
        )
    rows, labels = batch.targets["clm"]
    following = torch.roll(batch.row.ids, -1, 1).flatten()[rows]
    assert torch.equal(labels[rows % 20 < 19], following[rows % 20 < 19])


def test_one_head_learns_both_and_each_mean_counts_with_its_weight(corpus):
    """The loss is the weighted sum of two means, computed here from the scores of all places."""
    weighted = {"objective": [MNTP | {"weight": 0.75}, CLM | {"weight": 0.25}]}
    steps = {"training.clip": None, "training.schedule": {"kind": "constant"}, "training.optimizer.lr": 1.0}
    recipe = half(**weighted, **steps)
    module, batch = built(recipe, corpus)
    assert list(module.heads) == ["mntp"]
    head = module.heads["mntp"]
    assert all(objective.head is head for objective in module.objectives)
    scores = head.log_probabilities(module.model(batch.row)[0].flatten(0, 1), module.model.embedding.weight)
    means = {}
    for kind in ("mntp", "clm"):
        rows, labels = batch.targets[kind]
        means[kind] = -scores[rows, labels].mean()
    (0.75 * means["mntp"] + 0.25 * means["clm"]).backward()
    expected = {name: parameter.grad.clone() for name, parameter in module.named_parameters()}
    before = {name: parameter.detach().clone() for name, parameter in module.named_parameters()}
    module.zero_grad()
    optimizer = torch.optim.SGD(module.parameters(), lr=1.0)
    unit = Pretraining(recipe, module, optimizer=optimizer)
    batches = make_batches(recipe.changed({"training.micro_batch": 3}), module, corpus, seed=0)
    found = optimize(unit, batches.step(0), 0)
    for kind, mean in means.items():
        torch.testing.assert_close(found[kind], mean.detach())
    for name, parameter in module.named_parameters():
        torch.testing.assert_close(before[name] - parameter.detach(), expected[name], atol=1e-5, rtol=1e-4)


def test_where_mntp_rests_all_rows_are_those_of_clm(corpus):
    """The other way round is refused: rows that are left to clm would be read for nothing."""
    module, _ = built(half(), corpus)
    (alone,) = make_batches(half().changed({"objective.0.weight": 0}), module, corpus, 0).step(0)
    assert alone.row.prefix is None
    assert len(alone.targets["mntp"][0]) == 0
    assert len(alone.targets["clm"][0]) == 8 * 20
    with pytest.raises(UserError, match="mntp leaves rows to clm, whose weight is 0"):
        half().changed({"objective.1.weight": 0})


def test_flops_and_targets_count_what_the_rows_have(corpus):
    """As the batches have them on average; a row from both sides sees all pairs, and has a target in some places."""
    recipe = half(**{"objective": [MNTP | {"causal": 0.25}, CLM], "input.isolate": False, "training.batch": 512})
    module, batch = built(recipe, corpus)
    expected = module.targets_per_token()
    assert expected == {"mntp": pytest.approx(0.15 * 0.75), "clm": 0.25}
    for kind, share in expected.items():
        assert len(batch.targets[kind][0]) / batch.tokens == pytest.approx(share, rel=0.2)
    without = build_on_meta(recipe.changed({"objective.0.weight": 0}), corpus.tokenizer.size)
    assert without.targets_per_token() == {"clm": 1.0}
    pairs = (batch.row.prefix * (batch.row.prefix - 1) / 2).double()
    mntp = module.objectives[0]
    assert abs(float(pairs.mean()) - mntp.pairs_ahead(20)) < 5 * float(pairs.std()) / len(pairs) ** 0.5
    heads = mntp.head.flops_per_row * sum(expected.values())
    alone = 3 * (module.model.row_flops(20, ahead=0.75 * 20 * 19 / 2) / 20 + heads)
    assert module.flops_per_token() == pytest.approx(alone, abs=1)


@pytest.mark.parametrize(
    ("name", "changes", "reason"),
    [
        ("bert-tiny", {"objective": [{"kind": "mntp"}]}, "use 'decoder', or mlm"),
        ("t5-tiny", {"objective": [{"kind": "mntp"}]}, "without anything to read; leave it out, or use denoising"),
        ("elmo-tiny", {"objective": [{"kind": "mntp"}]}, "use bilm, or set it to 1"),
        ("tcn-tiny", {"objective": [{"kind": "mntp"}]}, "attention of any kind can look there"),
        ("gpt-bert-tiny", {"objective": [{"kind": "mntp", "causal": 0.1}]}, "add that, or set causal to 0"),
        ("gpt-bert-tiny", {"objective": [{"kind": "mntp"}, {"kind": "clm"}]}, "leaves no rows to clm; set causal"),
        ("gpt-bert-tiny", {"objective": [MNTP, CLM, {"kind": "prefix_clm"}]}, "shows tokens what .* stands alone"),
        ("gpt-bert-tiny", {"objective": [MNTP, CLM, {"kind": "mlm"}]}, "mlm predicts from both sides, but"),
        ("gpt-bert-tiny", {"input.context": 8}, "has no use for tokens that are only read"),
        ("prefix-lm-tiny", {"objective": [MNTP, CLM], "model.decoder.block.mixer.two_sided": False}, "set two_sided"),
        ("transformer-xl-tiny", {"objective": [{"kind": "mntp"}]}, "starts anew in every row"),
        ("gpt-bert-tiny", {"input": {"format": "segment_pair", "length": 32}}, "needs running text"),
    ],
)
def test_what_cannot_be_read_both_ways_is_refused(name, changes, reason):
    with pytest.raises(UserError, match=reason):
        build_on_meta(load_recipe(name, changes), 100)


def test_a_stack_without_clm_learns_it_too(corpus):
    module, batch = built(half(objective=[{"kind": "mntp"}]), corpus)
    assert (batch.row.prefix > 0).all()
    assert float(module(batch)[0]["mntp"].detach()) > 0
