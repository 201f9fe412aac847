"""What objectives draw, counted over real text: the prose of numpy's docstrings, cut as BERT's and T5's rows are.

No tolerance is chosen by hand: shares lie within five standard deviations of their binomial distribution, and counts
in several classes pass a chi-square test at one in a million.
"""

import json
from math import comb

import numpy as np
import pytest
from pydantic import TypeAdapter
from scipy import stats
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import GroupKFold, cross_val_score
from tests.conftest import shrink

from bakeoff.demo.docstrings import docstrings, package_folders, prose
from bakeoff.errors import UserError
from bakeoff.formats.blocks import BlocksConfig
from bakeoff.formats.packed_sentences import FullSentencesConfig
from bakeoff.formats.pairs import SegmentPairConfig, SentencePairConfig
from bakeoff.objectives.registry import AnyObjectiveConfig
from bakeoff.preparation.prepare import prepare
from bakeoff.randomness.draws import Draws
from bakeoff.recipe_files import load_recipe
from bakeoff.tokenizer.tokenizer_config import TokenizerConfig

CHANCE = 1e-6
LENGTH = 256
MODELS = {name: shrink(name).model for name in ("bert-tiny", "xlnet-tiny", "t5-tiny")}


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """A corpus of about 140,000 tokens in 130 documents, with words of several tokens and sentences of all lengths."""
    folder = tmp_path_factory.mktemp("prose")
    with (folder / "prose.jsonl").open("w", encoding="utf-8") as file:
        for _, found in docstrings(package_folders()["numpy"]):
            paragraphs = [paragraph for docstring in found for paragraph in prose(docstring)]
            file.write(json.dumps({"text": "\n".join(paragraphs)}) + "\n")
    size = TokenizerConfig(size=1000)
    return prepare(folder / "prose.jsonl", folder / "corpus", tokenizer=size, validation=0.02, workers=0)


def built(corpus, kind, model="bert-tiny", **options):
    config = TypeAdapter(AnyObjectiveConfig).validate_python({"kind": kind, **options})
    return config.build(MODELS[model], corpus.tokenizer.size + config.extra_tokens)


def drawn(corpus, objective, rows, epoch, marks="ends"):
    """All rows of an epoch before and after an objective has drawn its targets, and the targets."""
    relation = objective if rows.pairs and hasattr(objective, "arrange") else None
    format = rows.build(corpus.train, corpus.tokenizer, marks, relation)
    indices = np.arange(format.size)
    draws = Draws(0, np.full(len(indices), epoch), indices)
    before = format.examples(indices, draws)
    after = format.examples(indices, draws)
    return before, after, objective.targets(after, corpus.train, corpus.tokenizer, draws)


def assert_share(count, total, share):
    assert abs(count - total * share) <= 5 * np.sqrt(total * share * (1 - share)), f"{count / total} is not {share}"


def assert_shares(counts, shares):
    shares = np.array(shares, float)
    assert stats.chisquare(counts, np.sum(counts) * shares / shares.sum()).pvalue > CHANCE, counts / np.sum(counts)


CHOOSING = [
    ("mlm", {}),
    ("mlm", {"rate": 0.4}),
    ("mlm", {"whole_word": True}),
    ("mlm", {"ngram": 3}),
    ("mlm", {"ngram": 10, "lengths": "geometric"}),
    ("mlm", {"ngram": 3, "lengths": "uniform", "runs": "tokens"}),
    ("permutation", {"ngram": 1}),
    ("permutation", {}),
    ("word_structure", {}),
]


@pytest.mark.parametrize(("kind", "options"), CHOOSING, ids=str)
def test_as_many_ordinary_tokens_are_targets_as_wanted(text, kind, options):
    """Of tokens, and of runs of three, exactly; of words and runs of words on average."""
    objective = built(text, kind, "xlnet-tiny", **options)
    rate = {"mlm": 0.15, "permutation": 1 / 6, "word_structure": 0.05}[kind]
    rate = options.get("rate", rate)
    over = []
    for epoch in range(3):
        before, after, targets = drawn(text, objective, FullSentencesConfig(length=LENGTH), epoch)
        ordinary = (before.sources >= 0) & (before.row.ids != text.tokenizer.unknown)
        chosen = after.taken
        assert not (chosen & ~ordinary).any()
        assert not np.isin(targets.labels, text.tokenizer.special_ids).any()
        assert len(targets.labels) == chosen.sum()
        wanted = np.rint(ordinary.sum(1) * rate) * (3 if kind == "word_structure" else 1)
        full = ordinary.sum(1) > LENGTH / 2  # in a short row a single run may be more than is wanted
        over.append((chosen.sum(1) - wanted)[full])
    over = np.concatenate(over)
    if options.get("whole_word") or options.get("ngram", 5 if kind == "permutation" else 1) > 1:
        assert over.std() > 0
        assert abs(over.mean()) <= 5 * over.std() / np.sqrt(len(over))
    else:
        assert (over == 0).all()


@pytest.mark.parametrize("options", [options for kind, options in CHOOSING if kind == "mlm"], ids=str)
def test_targets_are_hidden_replaced_and_kept_as_published(text, options):
    vocabulary = text.tokenizer.size - len(text.tokenizer.special_ids)
    counts, tokens = np.zeros(3), np.zeros(text.tokenizer.size, np.int64)
    for epoch in range(3):
        before, after, targets = drawn(text, built(text, "mlm", **options), FullSentencesConfig(length=LENGTH), epoch)
        chosen = after.taken
        assert np.array_equal(after.row.ids[~chosen], before.row.ids[~chosen])
        assert np.array_equal(targets.labels, before.row.ids[chosen])
        masked, same = after.row.ids == text.tokenizer.mask, after.row.ids == before.row.ids
        replaced = chosen & ~masked & ~same
        counts += [(chosen & masked).sum(), replaced.sum(), (chosen & same).sum()]
        tokens += np.bincount(after.row.ids[replaced], minlength=len(tokens))
    assert_shares(counts, [0.8, 0.1 * (1 - 1 / vocabulary), 0.1 + 0.1 / vocabulary])
    ordinary = np.setdiff1d(np.arange(len(tokens)), text.tokenizer.special_ids)
    assert tokens.sum() == tokens[ordinary].sum()
    # A token is not counted where it would have replaced itself; in bins of a hundred that is next to nothing.
    assert_shares(np.array([part.sum() for part in np.array_split(tokens[ordinary], 10)]), np.ones(10))


GEOMETRIC = 0.8 ** np.arange(10)
INVERSE = 1 / np.arange(1, 6)


@pytest.mark.parametrize(
    ("kind", "options", "shares"),
    [
        ("mlm", {"ngram": 3}, [6, 3, 2]),
        ("mlm", {"ngram": 10, "lengths": "geometric"}, GEOMETRIC),
        ("permutation", {}, INVERSE),
    ],
    ids=["ALBERT", "SpanBERT", "XLNet"],
)
def test_runs_have_the_published_numbers_of_words(text, kind, options, shares):
    """Of each row the first six runs are counted: the last one of a row is cut."""
    objective = built(text, kind, "xlnet-tiny", **options)
    before, _, _ = drawn(text, objective, FullSentencesConfig(length=LENGTH), 0)
    starts = text.train.starts_word(np.maximum(before.sources, 0)) & (before.sources >= 0)
    starts[:, 1:] |= (before.sources[:, 1:] >= 0) & (before.sources[:, 1:] != before.sources[:, :-1] + 1)
    rows = np.flatnonzero(starts.sum(1) > 6 * len(shares))  # words enough for six runs of any length
    draws = Draws(0, np.zeros_like(rows), rows)
    units = objective.choice.units(before.sources[rows], text.train, draws)
    counts = np.zeros(len(shares))
    for unit, start in zip(units, starts[rows], strict=True):
        words = np.bincount(unit[start])
        counts += np.bincount(words[words > 0][:6], minlength=len(shares) + 1)[1:]
    assert counts.sum() == 6 * len(rows) > 2000
    assert_shares(counts, shares)


SPANS = {
    "LTG-BERT": ({"ngram": 9, "lengths": "geometric", "stop": 1 / 3}, (2 / 3) ** np.arange(9)),
    "GPT-BERT": ({"ngram": 3, "lengths": "uniform"}, np.ones(3)),
}


@pytest.mark.parametrize(("options", "shares"), SPANS.values(), ids=SPANS)
def test_spans_have_the_published_numbers_of_tokens_and_are_treated_as_one(text, options, shares):
    """They begin inside words as elsewhere; the tokens of each are all hidden, all replaced, or all kept."""
    objective = built(text, "mlm", **options, runs="tokens", replace="run", rate=0.4)
    counts, kinds, inside, begun = np.zeros(len(shares)), np.zeros(3), 0, 0
    vocabulary = text.tokenizer.size - len(text.tokenizer.special_ids)
    for epoch in range(3):
        before, after, _ = drawn(text, objective, FullSentencesConfig(length=LENGTH), epoch)
        rows = np.arange(len(before.row.ids))
        ordinary = (before.sources >= 0) & (before.row.ids != text.tokenizer.unknown)
        sources = np.where(ordinary, before.sources, -1)
        units = objective.choice.units(sources, text.train, Draws(0, np.full(len(rows), epoch), rows))
        for row in rows[ordinary.sum(1) > 6 * len(shares) + 20]:
            unit, own = units[row], ordinary[row]
            parts = np.split(np.arange(LENGTH), np.flatnonzero(np.diff(sources[row]) != 1) + 1)
            first = max(parts, key=len)  # the longest stretch of text, whose first and last run may have been cut
            first = first[own[first]]
            sizes = np.bincount(unit[first])[unit[first[0]] + 1 : unit[first[-1]]]
            counts += np.bincount(sizes[:6], minlength=len(shares) + 1)[1:]
            starts = np.flatnonzero(np.diff(unit[first]) != 0) + 1
            begun += len(starts)
            inside += (~text.train.starts_word(sources[row][first][starts])).sum()
            for each in np.unique(unit[after.taken[row]]):
                now, was = (ids[row][own & (unit == each)] for ids in (after.row.ids, before.row.ids))
                masked, kept = now == text.tokenizer.mask, now == was
                assert masked.all() or not masked.any()
                kinds += [masked.all(), not masked.any() and not kept.all(), kept.all()]
    assert inside > 0.05 * begun
    assert_shares(counts, shares)
    assert_shares(kinds, [0.8, 0.1 * (1 - 1 / vocabulary), 0.1 + 0.1 / vocabulary])


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"runs": "tokens"}, "ngram: 1 makes none"),
        ({"runs": "tokens", "ngram": 3, "whole_word": True}, "whole_word hides words"),
        ({"replace": "run"}, "set ngram, or whole_word"),
    ],
)
def test_runs_that_are_none_are_refused(options, reason):
    with pytest.raises(UserError, match=reason):
        load_recipe("roberta-tiny", {"objective": [{"kind": "mlm", **options}]})


@pytest.mark.parametrize(
    ("kind", "options", "length"),
    [
        ("mlm", {"ngram": 3}, 64),
        ("mlm", {"ngram": 3}, 128),
        ("mlm", {"ngram": 10, "lengths": "geometric"}, 128),  # in rows of 64 one of them is often all that is wanted
        ("mlm", {"whole_word": True}, 64),
        ("mlm", {"ngram": 9, "lengths": "geometric", "stop": 1 / 3, "runs": "tokens"}, 128),
        ("permutation", {}, 64),
        ("permutation", {}, 128),
    ],
    ids=str,
)
def test_short_and_long_runs_are_chosen_alike(text, kind, options, length):
    """Of the runs, or words, that rows are laid out in, each is as likely as any other: those that are chosen are of
    all numbers of tokens in the same shares."""
    objective = built(text, kind, "xlnet-tiny", **options)
    laid_out, chosen = np.zeros(40), np.zeros(40)
    for epoch in range(4):
        before, after, _ = drawn(text, objective, FullSentencesConfig(length=length), epoch)
        rows = np.arange(len(before.row.ids))
        draws = Draws(0, np.full(len(rows), epoch), rows)
        ordinary = (before.sources >= 0) & (before.row.ids != text.tokenizer.unknown)
        units = objective.choice.units(np.where(ordinary, before.sources, -1), text.train, draws)
        for unit, own, taken in zip(units, ordinary, after.taken, strict=True):
            if own.sum() < length / 2:
                continue
            sizes = np.bincount(unit[own])
            assert set(np.bincount(unit[taken], minlength=len(sizes)) / np.maximum(sizes, 1)) <= {0, 1}  # whole ones
            laid_out += np.bincount(sizes[sizes > 0], minlength=40)[:40]
            chosen += np.bincount(sizes[np.unique(unit[taken])], minlength=40)[:40]
    common = laid_out > 200
    assert_shares(chosen[common], laid_out[common])


RELATIONS = {"nsp": [1, 1], "sop": [1, 1], "sentence_structure": [1, 1, 1]}
FOLLOWS, SWAPPED, ELSEWHERE = range(3)
MEANING = {"nsp": [FOLLOWS, ELSEWHERE], "sop": [FOLLOWS, SWAPPED], "sentence_structure": [FOLLOWS, SWAPPED, ELSEWHERE]}


@pytest.mark.parametrize(
    "rows",
    [SegmentPairConfig(length=128), SegmentPairConfig(length=64), SentencePairConfig(length=128)],
    ids=lambda r: f"{r.format}-{r.length}",
)
@pytest.mark.parametrize("kind", RELATIONS)
def test_each_relation_is_what_its_label_says_and_as_frequent_as_the_others(text, kind, rows):
    """Whole sentences that follow each other, or the same the other way round, or of two documents of the input.

    Where no text from elsewhere fits into the row, B breaks off inside a sentence, whatever the label: in 0.2 % of the
    rows of runs of 128 tokens, and 0.6 % of those of 64.
    """
    split, counts, cut = text.train, np.zeros(len(RELATIONS[kind])), np.zeros(len(RELATIONS[kind]))
    for epoch in range(8):
        before, _, targets = drawn(text, built(text, kind), rows, epoch)
        assert before.row.ids.shape[1] == rows.length
        assert np.array_equal(targets.labels, before.relation)
        first, last = (
            np.stack([side(np.where(inside, before.sources, missing), 1) for inside in segments(before)])
            for side, missing in ((np.min, len(split.tokens)), (np.max, -1))
        )
        documents = split.originals[np.searchsorted(split.documents, first, side="right") - 1]
        apart = documents[0] != documents[1]
        whole = np.isin(last + 1, split.sentences)  # (2, N)
        breaks = ~whole.all(0)
        cut += np.bincount(before.relation[breaks], minlength=len(cut))
        follows, swapped = last[0] + 1 == first[1], last[1] + 1 == first[0]
        found = np.select([apart, follows, swapped], [ELSEWHERE, FOLLOWS, SWAPPED], -1)
        assert np.array_equal(found, np.array(MEANING[kind])[before.relation])
        assert np.isin(first, split.sentences).all()
        assert whole.any(0).all()
        for inside, begin, end in zip(segments(before), first, last, strict=True):
            assert np.array_equal(inside.sum(1), end - begin + 1)
        counts += np.bincount(before.relation, minlength=len(counts))
    assert_shares(counts, RELATIONS[kind])
    assert (cut.sum() == 0) == (kind == "sop" or rows.single)
    if cut.any():
        assert cut.sum() < 0.01 * counts.sum()
        assert_shares(cut, RELATIONS[kind])


@pytest.mark.parametrize("kind", RELATIONS)
def test_pairs_of_sentences_are_one_sentence_each_whatever_their_relation(text, kind):
    for epoch in range(4):
        before, _, _ = drawn(text, built(text, kind), SentencePairConfig(length=128), epoch)
        for inside in segments(before):
            owner = np.searchsorted(text.train.sentences, before.sources, side="right")  # (N, T)
            assert np.array_equal(
                owner.max(1, where=inside, initial=0), owner.min(1, where=inside, initial=before.sources.max() + 1)
            )
            assert np.array_equal(
                inside.sum(1), np.diff(text.train.sentences)[owner.max(1, where=inside, initial=0) - 1]
            )


@pytest.mark.parametrize(
    ("kind", "most"), [("nsp", 0.53), pytest.param("sentence_structure", 0.38, marks=pytest.mark.slow)]
)
def test_the_lengths_of_two_sentences_hardly_tell_how_they_relate(text, kind, most):
    """Chance is a half and a third; rows of one pair are in the same fold, for a pair that follows is told by heart."""
    lengths, labels, pairs = [], [], []
    for epoch in range(8):
        before, _, _ = drawn(text, built(text, kind), SentencePairConfig(length=128), epoch)
        first, second = (inside.sum(1) for inside in segments(before))
        lengths.append(np.stack([first, second, first + second, first - second], 1))
        labels.append(before.relation)
        pairs.append(np.arange(len(first)))
    told = cross_val_score(
        HistGradientBoostingClassifier(max_iter=60, min_samples_leaf=50),
        np.concatenate(lengths),
        np.concatenate(labels),
        groups=np.concatenate(pairs),
        cv=GroupKFold(4),
    )
    assert told.mean() < most


def segments(examples):
    """(N, T) each: the ordinary tokens of the first and of the second segment."""
    ordinary = examples.sources >= 0
    return ordinary & (examples.row.segments == 0), ordinary & (examples.row.segments == 1)


def test_every_order_of_targets_is_equally_likely(text):
    orders = []
    for epoch in range(4):
        _, after, _ = drawn(
            text, built(text, "permutation", "xlnet-tiny", ngram=1), SegmentPairConfig(length=64), epoch
        )
        orders.append(np.argsort(after.row.queries.positions[after.taken.sum(1) >= 3, :3], axis=1))
    ways, counts = np.unique(np.concatenate(orders), axis=0, return_counts=True)
    assert not np.array_equal(orders[0], orders[1])  # another one in every epoch
    assert len(ways) == 6
    assert_shares(counts, np.ones(6))


@pytest.mark.parametrize(("rate", "span"), [(0.15, 3.0), (0.5, 2.0)])
def test_spans_are_as_long_as_all_ways_to_cut_make_them(text, rate, span):
    """Of n tokens that are cut into s pieces the first has k in C(n - k - 1, s - 2) of C(n - 1, s - 1) ways."""
    objective = built(text, "span_corruption", "t5-tiny", rate=rate, span=span)
    rows = BlocksConfig(length=128, isolate=False)
    assert built(text, "span_corruption", "t5-tiny").lengths(568) == (512, 114)  # the paper's
    noise, spans = (int(count[0]) for count in objective.counts(np.array([rows.length])))
    lengths = []
    for epoch in range(3):
        before, after, targets = drawn(text, objective, rows, epoch, marks="none")
        full = np.flatnonzero((before.row.documents > 0).all(1))
        assert objective.lengths(rows.length) == (after.row.source.ids.shape[1], after.row.ids.shape[1])
        labels = np.full(after.row.ids.shape, -1)
        labels.ravel()[targets.rows] = targets.labels
        marks = labels[full] >= text.tokenizer.size
        assert (marks.sum(1) == spans).all()
        assert ((labels[full] >= 0).sum(1) == noise + spans + 1).all()
        lengths += [np.diff(np.flatnonzero(row))[0] - 1 for row in marks]
    ways = [comb(noise - k - 1, spans - 2) for k in range(1, noise - spans + 2)]
    longest = max(k for k in range(1, len(ways) + 1) if sum(ways[k - 1 :]) * len(lengths) >= 5 * sum(ways))
    counts = np.bincount(np.minimum(lengths, longest), minlength=longest + 1)[1:]
    assert_shares(counts, [*ways[: longest - 1], sum(ways[longest - 1 :])])


def test_denoising_hides_its_share_in_spans_of_poisson_lengths(text):
    """Lengths are drawn until h tokens are hidden: more than n spans with the probability of Poisson(3 n) < h."""
    objective = built(text, "denoising", "t5-tiny", permute=False)
    rows, masks = BlocksConfig(length=128, isolate=False), []
    for epoch in range(3):
        before, after, _ = drawn(text, objective, rows, epoch, marks="none")
        assert after.row.ids.shape[1] == rows.length + 1
        assert after.row.source.ids.shape[1] <= -(-(rows.length + 1) // 8) * 8
        masked = after.row.source.padding_mask & (after.row.source.ids == text.tokenizer.mask)
        padding_mask = (before.row.documents > 0).sum(1)
        hidden = padding_mask + 1 - (after.row.source.padding_mask & ~masked).sum(1)
        assert np.array_equal(hidden, np.rint(0.3 * padding_mask))
        masks += masked.sum(1)[padding_mask == rows.length].tolist()
    more = stats.poisson.cdf(round(0.3 * rows.length) - 1, 3.0 * np.arange(200))
    mean, square = more.sum(), (more * (2 * np.arange(200) + 1)).sum()
    assert abs(np.mean(masks) - mean) <= 5 * np.sqrt((square - mean**2) / len(masks))
    lengths = objective.drawn(20, Draws(0, np.zeros_like(padding_mask), np.arange(len(padding_mask)))).ravel()
    expected = stats.poisson.pmf(np.arange(8), 3.0)
    assert_shares(np.bincount(np.minimum(lengths, 8)), [*expected, 1 - expected.sum()])


@pytest.mark.parametrize("length", [48, 49])
def test_the_lengths_that_prefix_lm_declares_are_those_of_its_rows(text, length):
    """With a separator each; what operations are counted by."""
    objective = built(text, "prefix_lm", "t5-tiny")
    source, target = objective.lengths(length)
    assert source + target == length + 2
    _, after, targets = drawn(text, objective, BlocksConfig(length=length, isolate=False), 0, marks="none")
    found, written = after.row.source.padding_mask.sum(1), after.row.documents.sum(1)
    whole = found + written == length + 2
    assert abs(found[whole].mean() - length / 2 - 1) < 5 * length / np.sqrt(12 * whole.sum())
    assert abs(source - length / 2 - 1) <= 0.5
    assert len(targets.rows) == written.sum()
