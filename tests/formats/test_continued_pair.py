"""XLNet's rows: where they begin and end, what they see, and both directions of reading."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.conftest import gathered_of, shrink, without_dropout

from bakeoff.errors import UserError
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.objectives.target_choice import TargetChoice
from bakeoff.randomness.draws import Draws
from bakeoff.row import Row
from bakeoff.training.stages import make_batches

REUSE, LENGTH = 12, 32


def rows(corpus, count=400, **changes):
    """Examples of an epoch, as objectives are given them, and their format."""
    recipe = shrink("xlnet-tiny", **{"input.reuse": REUSE, "input.length": LENGTH, **changes})
    batches = make_batches(recipe, PretrainingModel(recipe, corpus.tokenizer.size), corpus, seed=0)
    number = np.arange(count)
    indices = number * 7 % batches.texts[0].format.size
    return batches.texts[0].format.examples(indices, Draws(0, number, indices)), batches.texts[0].format


def test_layout(corpus):
    """Reused text and A in one run, [SEP], B in one run, [SEP], [CLS]; segments 0, 1 and 2."""
    examples, format = rows(corpus)
    separator, start = corpus.tokenizer.separator, corpus.tokenizer.start
    for ids, sources, segments, backwards in zip(
        examples.row.ids, examples.sources, examples.row.segments, examples.row.backwards, strict=True
    ):
        second = int(np.flatnonzero(segments == 1)[0])
        assert REUSE + 1 < second < LENGTH - 2
        assert ids[second - 1] == ids[-2] == separator
        assert ids[-1] == start
        assert segments.tolist() == [0] * second + [1] * (LENGTH - 1 - second) + [2]
        padding_mask = sources >= 0
        assert (ids[padding_mask] == corpus.train.tokens[sources[padding_mask]]).all()
        for part in (sources[: second - 1], sources[second:-2]):
            inside = part[part >= 0]
            assert (np.diff(inside) == (-1 if backwards else 1)).all()
    assert examples.row.backwards.any()
    assert not examples.row.backwards.all()
    assert format.advance == REUSE


def test_a_row_begins_behind_what_the_one_before_reused(corpus):
    _, format = rows(corpus, count=60)
    length = format.size // 2
    for backwards in (False, True):
        indices = np.arange(20) + backwards * length
        own = format.examples(indices, Draws(0, indices * 0, indices))
        for row in range(19):
            second = int(np.flatnonzero(own.row.segments[row] == 1)[0]) - 1
            known = own.row.ids[row, REUSE : min(second, 2 * REUSE)]
            assert known.tolist() == own.row.ids[row + 1, : len(known)].tolist()
            assert len(known) > 0


def test_segment_b_comes_from_elsewhere_as_often_as_it_should(corpus):
    for share in (0.0, 0.5, 1.0):
        examples, _ = rows(corpus, 600, **{"input.unrelated": share, "input.backwards": False})
        follows = []
        for sources, segments in zip(examples.sources, examples.row.segments, strict=True):
            second = int(np.flatnonzero(segments == 1)[0])
            before, behind = sources[second - 2], sources[second]
            if before >= 0 and behind >= 0:
                follows.append(behind == before + 1)
        expected = (1 - share) * len(follows)
        # Drawn among all places, B may by chance come from where it would have followed.
        assert abs(sum(follows) - expected) <= 5 * math.sqrt(len(follows) * max(share * (1 - share), 0.004))


def test_an_unrelated_segment_comes_from_anywhere_in_the_text(corpus):
    """A quarter of them from each quarter of it, in either direction."""
    examples, _ = rows(corpus, 1200, **{"input.unrelated": 1.0})
    begins = (examples.row.segments == 1).argmax(1)
    sources = examples.sources[np.arange(1200), begins]
    for backwards in (False, True):
        found = sources[(examples.row.backwards == backwards) & (sources >= 0)]
        quarters = np.bincount(found * 4 // len(corpus.train.tokens), minlength=4)
        assert (abs(quarters - len(found) / 4) < 5 * math.sqrt(len(found) * 3 / 16)).all()


def test_boundaries_are_those_of_sentences(corpus):
    """Where A ends, a sentence does, in either direction, unless none ends within the row's room."""
    examples, _ = rows(corpus)
    starts = set(corpus.train.sentences.tolist())
    clean = 0
    for sources, segments, backwards in zip(
        examples.sources, examples.row.segments, examples.row.backwards, strict=True
    ):
        last = sources[int(np.flatnonzero(segments == 1)[0]) - 2]
        clean += last < 0 or (last if backwards else last + 1) in starts
    assert clean > 0.95 * len(examples.row.ids)


def test_the_first_part_knows_nothing_of_the_second(corpus):
    """The states of what is reused are the same whatever follows, so that they can be remembered."""
    recipe = without_dropout(shrink("xlnet-tiny", **{"input.reuse": REUSE, "input.length": LENGTH}))
    torch.manual_seed(0)
    module = PretrainingModel(recipe, corpus.tokenizer.size).eval()
    (batch,) = make_batches(recipe, module, corpus, seed=0).step(0)
    others = batch.row.ids.clone()
    others[:, REUSE:] = (others[:, REUSE:] + 1) % corpus.tokenizer.size
    padding_mask = batch.row.queries.visible[:, LENGTH:].any(-1)  # others only fill a row
    first = (batch.row.queries.positions < REUSE) & padding_mask
    with torch.no_grad():
        one, two = (
            module.model(Row(ids, batch.row.segments, queries=batch.row.queries))[0] for ids in (batch.row.ids, others)
        )
    torch.testing.assert_close(one[:, :REUSE], two[:, :REUSE])
    torch.testing.assert_close(one[:, LENGTH:][first], two[:, LENGTH:][first])
    assert not torch.allclose(one[:, REUSE:LENGTH], two[:, REUSE:LENGTH])
    seen = batch.row.queries.visible[:, LENGTH:][padding_mask & ~first][:, :REUSE]
    assert seen.all()
    assert first.any()


def test_each_part_has_an_order_of_its_own_and_the_second_sees_all_of_the_first(corpus):
    """Token by token: a target is seen by what comes later in its part, and the first part by all of the second."""
    recipe = shrink("xlnet-tiny", **{"input.reuse": REUSE, "input.length": LENGTH})
    module = PretrainingModel(recipe, corpus.tokenizer.size)
    (batch,) = make_batches(recipe, module, corpus, seed=0).step(0)
    both = 0
    for row, (visible, positions) in enumerate(
        zip(batch.row.queries.visible, batch.row.queries.positions, strict=True)
    ):
        asked = (batch.targets["permutation"][0] // (LENGTH + len(positions)) == row).sum()
        order = positions[:asked].tolist()
        parts = [[place for place in order if (place >= REUSE) == second] for second in (False, True)]
        both += all(parts)
        known = [set(range(REUSE)) - set(order), set(range(REUSE, LENGTH)) - set(order)]  # by all of a part
        for place in range(LENGTH):
            second = place >= REUSE
            earlier = parts[second][: parts[second].index(place)] if place in order else []
            seen = known[second] | set(earlier) | (set(range(REUSE)) if second else set())
            assert set(visible[place].nonzero()[:, 0].tolist()) == seen
            if place in order:
                assert set(visible[LENGTH + order.index(place)].nonzero()[:, 0].tolist()) == seen
    assert both


@pytest.mark.parametrize("kind", ["mlm", "permutation"])
def test_words_are_whole_in_both_directions(kind, corpus):
    options = {"whole_word": True} if kind == "mlm" else {"ngram": 3}
    examples, _ = rows(corpus)
    choice = TargetChoice(0.2, **options)
    count = np.arange(len(examples.row.ids))
    chosen = choice.choose(examples.sources, corpus.train, Draws(0, count * 0, count), examples.row.backwards)
    assert chosen.any(1).all()
    for picked, sources, backwards in zip(chosen, examples.sources, examples.row.backwards, strict=True):
        text = sources[::-1] if backwards else sources
        picks = picked[::-1] if backwards else picked
        for place in range(1, LENGTH):
            if text[place] == text[place - 1] + 1 > 0 and not corpus.train.starts_word(text[place : place + 1])[0]:
                assert picks[place] == picks[place - 1]


def test_runs_of_tokens_are_those_of_the_published_code(corpus):
    """From the start of a word on n tokens; the next run begins with the first word after it."""
    examples, _ = rows(corpus, **{"input.backwards": False})
    choice = TargetChoice(0.2, 4, span_end="token")
    count = np.arange(len(examples.row.ids))
    draws = Draws(0, count * 0, count)
    units = choice.units(examples.sources, corpus.train, draws)
    lengths = np.searchsorted(choice.bounds, draws.uniform("ngram", LENGTH), side="right") + 1
    cut_words = 0
    for own, sources, wanted in zip(units, examples.sources, lengths, strict=True):
        starts = corpus.train.starts_word(np.maximum(sources, 0)) | (np.diff(sources, prepend=-9) != 1)
        place, run = 0, 0
        expected = np.full(LENGTH, -1)
        while place < LENGTH:
            if not (starts[place] and sources[place] >= 0):
                place += 1
                continue
            stop = min(place + wanted[run], LENGTH)
            expected[place:stop] = run
            if stop < LENGTH:
                cut_words += sources[stop] >= 0 and not starts[stop]
            place, run = stop, run + 1
        expected[sources < 0] = -1
        assert own.tolist() == expected.tolist()
    assert cut_words > 0
    chosen = choice.choose(examples.sources, corpus.train, draws)
    assert not chosen[units < 0].any()


@pytest.mark.parametrize("in_turn", [False, True])
def test_a_model_is_told_which_rows_read_backwards(corpus, in_turn):
    recipe = shrink("xlnet-tiny", **{"input.reuse": REUSE, "input.length": LENGTH})
    recipe = recipe.changed({"training.batch": 4, "training.micro_batch": 2})
    module = PretrainingModel(recipe, corpus.tokenizer.size).eval()
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.1)
    for part in make_batches(recipe, module, corpus, seed=0).step(3):
        assert part.row.backwards.tolist() == [False, True]  # every other stream
        found = []
        for row in (part.row, part.row._replace(backwards=None)):
            with torch.no_grad():
                state = module.model.start(2) if in_turn else None
                hidden, _ = gathered_of(module, replace(part, row=row), state)
            found.append(hidden["permutation"][0])
        row = part.targets["permutation"][0] // part.row.queries.visible.shape[1]
        torch.testing.assert_close(found[0][row == 0], found[1][row == 0])
        assert (found[0] - found[1])[row == 1].abs().max() > 1e-4


def dae(corpus, **changes):
    """XLNet's rows with BERT's masks: a model whose hidden states depend much on what it sees, and its batches."""
    sizes = {"input.reuse": REUSE, "input.length": LENGTH, "model.encoder.block.mixer.memory": 2 * REUSE}
    recipe = without_dropout(shrink("xlnet-dae-tiny", **sizes, **changes))
    torch.manual_seed(0)
    module = PretrainingModel(recipe, corpus.tokenizer.size).eval()
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    return module, make_batches(recipe, module, corpus, seed=0)


def sources_of(batches, step):
    """(B, T) places in the text of the rows of a step."""
    indices, epochs = batches.order.streams.examples_of(step, 1)
    return batches.texts[0].format.examples(indices, Draws(batches.texts[0].seed, epochs, indices)).sources


@pytest.mark.parametrize("kind", ["mlm", "word_structure"])
@torch.no_grad()
def test_no_state_that_is_remembered_knows_a_token_that_is_predicted_later(kind, corpus):
    """What was read of a target in the rows before, where nothing hid it, is another token, and nothing moves.

    B may come from a place that has been read, as any text may be of something read before, and is left out.
    """
    module, batches = dae(corpus, objective=[{"kind": kind}])
    steps, seen_before = 4, 0
    for last in (steps - 1, steps + 8):
        parts = [batches.step(step)[0] for step in range(last - steps + 1, last + 1)]
        rows, _ = parts[-1].targets[kind]
        row, place = rows // LENGTH, rows % LENGTH
        inside = parts[-1].row.segments[row, place] == 0
        sources = sources_of(batches, last)
        changed = [part.row.ids.clone() for part in parts]
        for step, ids in enumerate(changed[:-1], start=last - steps + 1):
            before = sources_of(batches, step)
            for stream in range(len(ids)):
                own = sources[stream, place[inside & (row == stream)]]
                there = torch.from_numpy(np.isin(before[stream], own))
                ids[stream, there] = (ids[stream, there] + 1) % corpus.tokenizer.size
                seen_before += int(there.sum())
        found = []
        for given in ([part.row.ids for part in parts], changed):
            state = module.model.start(len(parts[0].row.ids))
            for part, ids in zip(parts, given, strict=True):
                gathered, state = gathered_of(module, replace(part, row=part.row._replace(ids=ids)), state)
            found.append(gathered[kind][0][inside])
        assert torch.equal(*found)
        assert len(found[0]) > 8
    assert seen_before > 20


@torch.no_grad()
def test_what_is_remembered_does_not_depend_on_the_second_part(corpus):
    module, batches = dae(corpus)
    (part,) = batches.step(0)
    others = part.row.ids.clone()
    others[:, REUSE:] = (others[:, REUSE:] + 1) % corpus.tokenizer.size
    hidden, states = [], []
    for ids in (part.row.ids, others):
        own, state = module.model(Row(ids, part.row.segments), module.model.start(len(ids)), remembered=REUSE)
        hidden.append(own)
        states.append([memory for layer in state.layers for memory in layer if memory is not None])
    assert torch.equal(hidden[0][:, :REUSE], hidden[1][:, :REUSE])
    assert (hidden[0][:, REUSE:] - hidden[1][:, REUSE:]).abs().amax() > 1e-2
    assert len(states[0]) == 2
    assert all(torch.equal(one, other) for one, other in zip(*states, strict=True))
    assert all(memory.shape[1] == REUSE for memory in states[0])
    first = part.row.ids.clone()
    first[:, 0] = (first[:, 0] + 1) % corpus.tokenizer.size  # which the second part does see
    own, _ = module.model(Row(first, part.row.segments), module.model.start(len(first)), remembered=REUSE)
    assert ((own - hidden[0]).abs().amax(-1) > 1e-6).all()


def test_a_model_without_a_second_stream_has_nothing_for_it_to_start_from(corpus):
    module, _ = dae(corpus)
    assert module.model.query is None
    with pytest.raises(UserError, match=r"not where model\.second_stream is false"):
        shrink("xlnet-dae-tiny", objective=[{"kind": "permutation"}])
    assert PretrainingModel(shrink("xlnet-tiny"), corpus.tokenizer.size).model.query is not None


@pytest.mark.parametrize("kind", ["mlm", "word_structure"])
def test_both_directions_are_masked_and_shuffled_alike(kind, corpus):
    """Whole words, and runs that stand side by side in the text, whichever way they are read."""
    options = {"rate": 0.3, "whole_word": True} if kind == "mlm" else {"rate": 0.2}
    _, batches = dae(corpus, objective=[{"kind": kind, **options}])
    counts = np.zeros(2)
    for step in range(6):
        (part,) = batches.step(step)
        sources = sources_of(batches, step)
        chosen = np.zeros(sources.shape, bool)
        chosen.ravel()[part.targets[kind][0].numpy()] = True
        counts += [chosen[part.row.backwards.numpy() == turned].sum() for turned in (False, True)]
        if kind == "word_structure":
            runs = sources[chosen].reshape(-1, 3)
            assert (np.abs(np.diff(runs)) == 1).all()
            continue
        for own, text, turned in zip(chosen, sources, part.row.backwards, strict=True):
            for here, before in ((p, p + 1 if turned else p - 1) for p in range(1, LENGTH - 1)):
                if text[here] == text[before] + 1 > 0 and not corpus.train.starts_word(text[here : here + 1])[0]:
                    assert own[here] == own[before]
    assert abs(counts[0] - counts[1]) < 0.2 * counts.sum()


class Fixed:
    """Draws that are told what to draw."""

    def __init__(self, **values):
        self.values = values

    def uniform(self, name, count):
        return np.asarray(self.values[name])[:, None]


@pytest.mark.parametrize("backwards", [False, True])
def test_a_ends_at_the_nearest_end_of_a_sentence(backwards, corpus):
    """Of the two around the place that was drawn, unless the nearer one lies outside the row."""
    _, format = rows(corpus, **{"input.unrelated": 0.0})
    half = format.size // 2
    numbers = np.arange(1, half, max(1, half // 150))
    cuts = np.random.default_rng(3).random(len(numbers))
    drawn = Fixed(**{"cut": cuts, "other place": 0 * cuts, "unrelated": 0 * cuts + 1})
    found = format.examples(numbers + backwards * half, drawn)
    total = format.stream.total
    ends = np.asarray(format.stream.positions(np.asarray(corpus.train.sentences)))
    ends = np.minimum(ends, total)
    ends = np.sort(total - ends if backwards else ends)
    decided = 0
    for number, cut, segments in zip(numbers, cuts, found.row.segments, strict=True):
        begin = (number + 1) * REUSE
        wished = begin + 1 + int(cut * (format.own - 1))
        end = number * REUSE + int(np.flatnonzero(segments == 1)[0]) - 1
        below, above = ends[ends <= wished].max(initial=0), ends[ends >= wished].min(initial=total)
        inside = sorted((abs(each - wished), each) for each in {below, above} if begin < each < begin + format.own)
        if not inside:
            assert end == wished
        elif len(inside) == 1 or inside[0][0] < inside[1][0]:
            assert end == inside[0][1]
            decided += len(inside) == 2
    assert decided > 10


def test_a_text_without_room_for_a_row_has_none(corpus):
    with pytest.raises(UserError):
        rows(corpus, **{"input.length": 10**6, "input.reuse": 12})


def test_two_segments_have_a_token_each(corpus):
    """Beside what is reused and three special tokens."""
    assert rows(corpus, 5, **{"input.length": 20, "input.reuse": 15})[1].own == 2
    with pytest.raises(UserError, match=r"input.*reuse: 16 of 20 tokens leave none for two segments; give fewer"):
        rows(corpus, 5, **{"input.length": 20, "input.reuse": 16})
