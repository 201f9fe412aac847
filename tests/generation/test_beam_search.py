"""Beam search against one search after the other, and against all texts."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import shrink

from bakeoff.generation.beam_search import Search, beam_search
from bakeoff.generation.config import GenerationConfig
from bakeoff.generation.generator import Generator, source_of
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.row import Row

VOCABULARY, END = 5, 4


def build(name, vocabulary=40):
    torch.manual_seed(0)
    module = PretrainingModel(shrink(name), vocabulary).eval()
    for parameter in module.parameters():
        if parameter.dim() > 1:
            parameter.data *= 6
    return module


class Table:
    """A language model that is a table: what follows depends on the last two tokens."""

    def __init__(self, seed, prompts):
        logits = np.random.default_rng(seed).normal(size=(VOCABULARY, VOCABULARY, VOCABULARY)) * 2
        self.scores = torch.tensor(logits).log_softmax(-1)
        self.rows = [[prompt % VOCABULARY, prompt // VOCABULARY] for prompt in range(prompts)]
        self.starts = [list(row) for row in self.rows]

    def after(self, row):
        return self.scores[row[-2], row[-1]]

    def first(self):
        return torch.stack([self.after(row) for row in self.rows])

    def go_on(self, rows, following):
        self.rows = [[*self.rows[row], token] for row, token in zip(rows, following, strict=True)]
        return torch.stack([self.after(row) for row in self.rows])

    def log_probability(self, start, ids):
        row, total = list(start), 0.0
        for token in ids:
            total += float(self.after(row)[token])
            row.append(token)
        return total

    def best(self, start, tokens, penalty):
        """By exhaustion: every text that ends, and every one of the most tokens that does not."""
        bodies = [body for length in range(tokens) for body in itertools.product(range(END), repeat=length)]
        texts = [[*body, END] for body in bodies] + [list(b) for b in itertools.product(range(END), repeat=tokens)]
        scored = [(self.log_probability(start, ids), ids) for ids in texts]
        total, ids = max(scored, key=lambda each: each[0] / ((5 + len(each[1])) / 6) ** penalty)
        return [token for token in ids if token != END], total


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(1, 4), st.sampled_from([0.0, 0.6, 1.0, 2.5]))
def test_a_wide_search_finds_the_best_of_all_texts_of_every_prompt(seed, prompts, tokens, penalty):
    table = Table(seed, prompts)
    found = beam_search(table.first(), table.go_on, Search(VOCABULARY**tokens, tokens, penalty, END))
    for start, own in zip(table.starts, found, strict=True):
        ids, total = table.best(start, tokens, penalty)
        assert own.ids == ids
        assert own.log_probability == pytest.approx(total, abs=1e-6)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 8), st.integers(1, 5), st.integers(1, 8))
def test_a_prompt_is_searched_as_if_it_were_alone_and_its_log_probability_is_that_of_its_tokens(
    seed, prompts, beams, tokens
):
    table = Table(seed, prompts)
    search = Search(beams, tokens, 0.6, END)
    for number, own in enumerate(beam_search(table.first(), table.go_on, search)):
        alone = Table(seed, prompts)
        alone.rows = [alone.rows[number]]
        assert beam_search(alone.first(), alone.go_on, search) == [own]
        written = [*own.ids, END] if len(own.ids) < tokens else own.ids
        options = [alone.log_probability(alone.starts[number], ids) for ids in (written, own.ids)]
        assert any(own.log_probability == pytest.approx(total, abs=1e-6) for total in options)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 4), st.integers(1, 5), st.sampled_from([0.0, 0.6, 2.5]))
def test_as_many_candidates_go_on_as_there_are_beams_beside_the_texts_that_end(seed, beams, tokens, penalty):
    """Against a search that sorts all continuations and never stops early."""
    table = Table(seed, 1)
    (start,), going, ended, wanted, read = table.starts, [(0.0, [])], [], [], []
    for _ in range(tokens):
        longer = [
            (total + score, [*ids, token])
            for total, ids in going
            for token, score in enumerate(table.after([*start, *ids]).tolist())
        ]
        going = []
        for total, ids in sorted(longer, reverse=True):
            if len(going) < beams:
                (ended if ids[-1] == END else going).append((total, ids))
        wanted.append([ids[-1] for _, ids in going])

    def go_on(rows, following):
        read.append(following)
        return table.go_on(rows, following)

    total, ids = max(ended + going, key=lambda each: each[0] / ((5 + len(each[1])) / 6) ** penalty)
    (found,) = beam_search(table.first(), go_on, Search(beams, tokens, penalty, END))
    assert read == wanted[: len(read)]
    assert found.ids == [token for token in ids if token != END]
    assert found.log_probability == pytest.approx(total, abs=1e-6)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(1, 8))
def test_one_beam_takes_the_most_likely_token(seed, prompts, tokens):
    table = Table(seed, prompts)
    for start, own in zip(
        table.starts, beam_search(table.first(), table.go_on, Search(1, tokens, 2.0, END)), strict=True
    ):
        row, expected = list(start), []
        while len(expected) < tokens and (token := int(table.after(row).argmax())) != END:
            expected.append(token)
            row.append(token)
        assert own.ids == expected


def test_a_search_ends_where_nothing_more_can_be_read():
    table = Table(1, 2)
    found = beam_search(table.first(), lambda rows, following: None, Search(3, 9, 0.6, None))
    assert [len(own.ids) for own in found] == [1, 1]


SOURCES = [[20, 21, 22, 23], [24], [25, 26, 27, 28, 29, 30]]


@pytest.mark.parametrize("name", ["transformer-translation-tiny", "conv-dynamic-tiny", "gpt-tiny", "prefix-lm-tiny"])
def test_states_of_attention_and_convolution_follow_their_candidates(name):
    """The log-probability that a search has summed up step by step is that of a whole pass over its text."""
    module = build(name)
    sources = SOURCES if module.model.config.sequence_to_sequence else None
    prompts = [[7]] * 3 if sources else [[7, 8, 9], [10], [11, 12, 13]]
    generator = Generator(module, 3)
    config = GenerationConfig(tokens=6, beams=3)
    found = generator.search(prompts, config, sources)
    assert [own.ids for own in found] == generator.write(prompts, config, sources)
    for row, own in enumerate(found):
        given = None if sources is None else [sources[row]]
        (alone,) = generator.search([prompts[row]], config, given)
        assert alone.ids == own.ids
        total, prompt = 0.0, list(prompts[row])
        with torch.inference_mode():
            for token in [*own.ids, *([3] if len(own.ids) < 6 else [])]:
                ids = torch.tensor([prompt])
                prefix = torch.tensor([len(prompts[row])]) if module.reads_prefix else None
                read = Row(ids, source=source_of(given, torch.device("cpu")), prefix=prefix)
                total += float(generator.writer(read, module.model.start(1))[0][0, token])
                prompt.append(token)
        assert own.log_probability == pytest.approx(total, abs=1e-3)


def naive(table, start, search):
    """Beam search by its definition: it goes on to the last token and compares everything that has ended."""
    going, ended = [(0.0, [])], []
    for _ in range(search.tokens):
        every = [
            (total + float(score), [*ids, token])
            for total, ids in going
            for token, score in enumerate(table.after([*start, *ids]))
        ]
        going = []
        for total, ids in sorted(every, key=lambda each: -each[0]):
            if len(going) == search.beams:
                break
            (ended if ids[-1] == search.end else going).append((total, ids))
    total, ids = max(ended + going, key=lambda each: search.value(each[0], len(each[1])))
    return [token for token in ids if token != search.end], total


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 5), st.integers(1, 8), st.sampled_from([0.0, 0.6, 1.0, 2.5]))
def test_a_search_that_ends_early_finds_what_one_that_goes_on_to_the_end_finds(seed, beams, tokens, penalty):
    compare_with_naive(Table(seed, 3), beams, tokens, penalty)


@pytest.mark.parametrize("seed", range(8))
def test_the_same_where_long_texts_lose_little_and_are_rewarded(seed):
    """Then a text that goes on for long can become better than all that have ended before."""
    table = Table(seed, 1)
    table.scores = (2 * table.scores).log_softmax(-1)
    compare_with_naive(table, 2 + seed % 2, 20, 2.5)


def compare_with_naive(table, beams, tokens, penalty):
    search = Search(beams, tokens, penalty, END)
    for start, own in zip(table.starts, beam_search(table.first(), table.go_on, search), strict=True):
        ids, total = naive(table, start, search)
        assert own.log_probability == pytest.approx(total, abs=1e-6)
        if own.ids != ids:  # texts of the same pairs of tokens in another order, which rounding tells apart
            written = [*own.ids, *([END] if len(own.ids) < tokens else [])]
            own_total = table.log_probability(start, written)
            assert (own_total, len(written)) == (pytest.approx(total, abs=1e-6), len(ids) + (len(ids) < tokens))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.sets(st.integers(0, VOCABULARY - 1), min_size=1, max_size=4), st.integers(1, 6))
def test_what_has_no_probability_is_never_written(seed, banned, beams):
    """Not even where fewer texts are possible than there are beams."""
    table = Table(seed, 2)
    table.scores[..., sorted(banned)] = float("-inf")
    for start, own in zip(
        table.starts, beam_search(table.first(), table.go_on, Search(beams, 3, 0.6, END)), strict=True
    ):
        assert not banned & set(own.ids)
        ended = len(own.ids) < 3
        assert ended <= (END not in banned)
        written = [*own.ids, END] if ended else own.ids
        values = [table.log_probability(start, ids) for ids in (written, own.ids)]
        assert any(own.log_probability == pytest.approx(value, abs=1e-6) for value in values)
        assert own.log_probability > float("-inf")
