"""Generation against its definition: whole passes, all texts, exact probabilities."""

import itertools
import math

import numpy as np
import pytest
import torch
from tests.conftest import crossed, shrink

from bakeoff.conformance.narrow import EVERY_CHOICE
from bakeoff.errors import UserError
from bakeoff.generation.config import GenerationConfig
from bakeoff.generation.generator import Generator
from bakeoff.generation.sampling import PromptSeed, chooser, draw, filtered
from bakeoff.generation.writer import next_token_head
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.models.mixers.attention import Attention
from bakeoff.models.model import ModelConfig
from bakeoff.recipe_files import load_recipe, recipe_names
from bakeoff.row import Row, Source

VOCABULARY = 60
CAUSAL = [name for name in recipe_names() if load_recipe(name).model.causal]
QUICK = [name for name in CAUSAL if name in EVERY_CHOICE or name.endswith("-tiny")]
"""Recipes of every choice, and small ones, whose prompts are read whenever tests are run; the others are crossings."""
GREEDY = GenerationConfig(tokens=6, temperature=0)
PROMPTS = [[7, 8, 9], [10], [11, 12, 13, 14, 15, 16, 17, 18]]
SOURCES = [[20, 21, 22, 23], [24], [25, 26, 27, 28, 29, 30]]


def build(name, vocabulary=VOCABULARY):
    """A model whose next token is not always the same."""
    torch.manual_seed(0)
    module = PretrainingModel(shrink(name), vocabulary).eval()
    for parameter in module.parameters():
        if parameter.dim() > 1:
            parameter.data *= 8
    return module


def sources_of(module):
    return SOURCES if module.model.config.sequence_to_sequence else None


def by_whole_passes(module, prompt, source, tokens, end):
    """Greedy, reading everything anew for each token."""
    ids, written = list(prompt), []
    read = None if source is None else Source(torch.tensor([source]))
    head = next_token_head(module)
    prefix = torch.tensor([len(prompt)]) if module.reads_prefix else None
    for _ in range(tokens):
        hidden = module.model(Row(torch.tensor([ids]), source=read, prefix=prefix))[0][:, -1]
        token = int(head.log_probabilities(hidden, module.model.embedding.weight).argmax())
        if token == end:
            break
        ids.append(token)
        written.append(token)
    return written


@pytest.mark.parametrize("name", crossed(CAUSAL, QUICK))
def test_greedy_equals_whole_passes_for_prompts_of_any_length(name):
    module = build(name)
    sources = sources_of(module)
    expected = [
        by_whole_passes(module, prompt, None if sources is None else sources[row], 6, None)
        for row, prompt in enumerate(PROMPTS)
    ]
    assert Generator(module, None).write(PROMPTS, GREEDY, sources) == expected
    end = expected[0][2]
    stopped = Generator(module, end).write(PROMPTS, GREEDY, sources)
    assert stopped[0] == expected[0][: expected[0].index(end)]


@pytest.mark.parametrize("name", ["gpt-tiny", "prefix-lm-tiny", "transformer-translation-tiny"])
def test_one_beam_takes_the_most_likely_token(name):
    module = build(name)
    one = Generator(module, None).write(PROMPTS, GenerationConfig(tokens=6, beams=1), sources_of(module))
    assert one == Generator(module, None).write(PROMPTS, GREEDY, sources_of(module))
    assert one != Generator(module, None).write(PROMPTS, GenerationConfig(tokens=6), sources_of(module))


def test_banned_tokens_are_never_written():
    module = build("gpt-tiny")
    free = Generator(module, None).write(PROMPTS, GREEDY)
    banned = Generator(module, None, banned=[free[0][0]]).write(PROMPTS, GREEDY)
    assert all(free[0][0] not in row for row in banned)


@pytest.mark.parametrize("name", ["gpt-tiny", "prefix-lm-tiny", "bart-tiny"])
def test_a_sampled_row_does_not_depend_on_the_others(name):
    module = build(name)
    config = GenerationConfig(tokens=8, temperature=1.3, top_k=20, seed=3)
    sources = sources_of(module)
    together = Generator(module, None).write(PROMPTS, config, sources)
    first = Generator(module, None).write(PROMPTS[:1], config, sources and sources[:1])
    assert together[0] == first[0]
    assert Generator(module, None).write(PROMPTS, config, sources) == together
    other = config.model_copy(update={"seed": 4})
    assert Generator(module, None).write(PROMPTS, other, sources) != together


@pytest.mark.parametrize("penalty", [0.0, 0.6, 2.0])
def test_a_wide_search_finds_the_best_of_all_texts(penalty):
    """With as many beams as there are texts nothing is lost, so the result is the best by exhaustion."""
    vocabulary, end, tokens = 7, 6, 3
    torch.manual_seed(1)
    module = PretrainingModel(shrink("gpt-tiny"), vocabulary).eval()
    for parameter in module.parameters():
        parameter.data *= 5 if parameter.dim() > 1 else 1
    prompt = [1, 2]
    head, table = next_token_head(module), module.model.embedding.weight

    def log_probability(ids):
        hidden = module.model(Row(torch.tensor([prompt + ids])))[0][0, len(prompt) - 1 : -1]
        every = head.log_probabilities(hidden, table)
        return float(every[torch.arange(len(ids)), torch.tensor(ids)].double().sum())

    texts = [[*body, end] for length in range(tokens) for body in itertools.product(range(end), repeat=length)]
    texts += [list(body) for body in itertools.product(range(end), repeat=tokens)]
    with torch.inference_mode():
        values = [log_probability(ids) / ((5 + len(ids)) / 6) ** penalty for ids in texts]
    best = [token for token in texts[int(np.argmax(values))] if token != end]
    config = GenerationConfig(tokens=tokens, beams=vocabulary**tokens, length_penalty=penalty)
    assert Generator(module, end).write([prompt], config) == [best]


def test_filters_keep_what_they_say():
    scores = torch.tensor([[0.5, 0.2, 0.15, 0.1, 0.05]]).log()
    assert torch.allclose(filtered(scores)[0], scores.exp()[0].double(), atol=1e-6)
    assert filtered(scores, top_k=2)[0].tolist() == pytest.approx([5 / 7, 2 / 7, 0, 0, 0])
    assert filtered(scores, top_p=0.7)[0].tolist() == pytest.approx([5 / 7, 2 / 7, 0, 0, 0], abs=1e-6)
    assert filtered(scores, top_p=0.71)[0].tolist() == pytest.approx([50 / 85, 20 / 85, 15 / 85, 0, 0], abs=1e-6)
    assert filtered(scores, top_p=1e-9)[0].tolist() == [1, 0, 0, 0, 0]
    cold = filtered(scores, temperature=0.5)[0]
    assert cold.tolist() == pytest.approx([p * p / 0.325 for p in (0.5, 0.2, 0.15, 0.1, 0.05)], abs=1e-6)


def test_the_smallest_set_is_taken_of_the_most_likely_tokens():
    """Of 0.5, 0.2 and 0.15 the first has 0.588, and of all tokens 0.5."""
    scores = torch.tensor([[0.5, 0.2, 0.15, 0.1, 0.05]]).log()
    assert filtered(scores, top_k=3, top_p=0.59)[0].tolist() == pytest.approx([5 / 7, 2 / 7, 0, 0, 0], abs=1e-6)
    assert filtered(scores, top_k=3, top_p=0.58)[0].tolist() == [1, 0, 0, 0, 0]
    assert filtered(scores, top_p=0.58)[0].tolist() == pytest.approx([5 / 7, 2 / 7, 0, 0, 0], abs=1e-6)


@pytest.mark.parametrize("temperature", [0.3, 1.0, 2.5])
@pytest.mark.parametrize("top_k", [None, 1, 7, 60])
@pytest.mark.parametrize("top_p", [0.2, 0.75, 0.9, 1.0])
def test_filters_are_applied_as_by_transformers(temperature, top_k, top_p):
    logits = pytest.importorskip("transformers.generation.logits_process")
    scores = torch.randn(30, VOCABULARY, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 2
    warpers = [logits.TemperatureLogitsWarper(temperature)]
    warpers += [] if top_k is None else [logits.TopKLogitsWarper(top_k)]
    warpers += [] if top_p == 1.0 else [logits.TopPLogitsWarper(top_p)]
    expected = scores
    for warper in warpers:
        expected = warper(None, expected)
    found = filtered(scores.log_softmax(-1), temperature, top_k, top_p)
    torch.testing.assert_close(found, expected.softmax(-1))


def test_draws_follow_the_probabilities():
    probabilities = torch.tensor([0.0, 0.5, 0.0, 0.3, 0.2, 0.0], dtype=torch.float64)
    count = 50_000
    uniform = torch.rand(count, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    drawn = draw(probabilities.expand(count, -1), uniform)
    shares = torch.bincount(drawn, minlength=6) / count
    assert shares.tolist() == pytest.approx(probabilities.tolist(), abs=5 * math.sqrt(0.25 / count))
    edges = draw(probabilities.expand(2, -1), torch.tensor([0.0, 1 - 2**-53], dtype=torch.float64))
    assert edges.tolist() == [1, 4]


@pytest.mark.parametrize("name", ["gpt2-tiny", "gpt-bert-tiny", "bart-tiny"])
@torch.no_grad()
def test_a_memory_written_in_place_gives_what_one_that_is_copied_gives(name):
    model = build(name).model
    source = Source(torch.tensor(SOURCES[:1] * 2)) if model.config.sequence_to_sequence else None
    ids = torch.randint(7, VOCABULARY, (2, 200), generator=torch.Generator().manual_seed(1))
    copied, written = model.start(2), model.start(2, room=100)
    for chunk in ids[:, : min(200, model.config.longest_input or 200)].split([1, 5, 1, 60, 1, 1, 70, 61], dim=1):
        row = Row(chunk, source=None if copied.tokens else source)
        (expected, copied), (found, written) = model(row, copied), model(row, written)
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


def test_positions_end_where_the_table_ends():
    module = build("gpt-tiny")
    longest = module.model.config.longest_input
    prompt = [[7] * (longest - 2)]
    assert len(Generator(module, None).write(prompt, GREEDY)[0]) == 3  # after the last position one more is predicted


def test_a_masked_model_cannot_write():
    with pytest.raises(UserError, match="was trained on mlm, nsp and cannot write"):
        Generator(PretrainingModel(shrink("bert-tiny"), VOCABULARY), None)
    with pytest.raises(UserError, match="a search does not sample"):
        GenerationConfig.parse({"beams": 4, "top_k": 3}, "generate")


@pytest.mark.parametrize("name", crossed(CAUSAL, QUICK))
@pytest.mark.parametrize("padding", ["computed", "left out"])
def test_prompts_of_unlike_lengths_are_read_at_once_as_each_is_alone(name, padding):
    """Whatever a state is made of: keys, sums, taps, cells; and whatever tells positions."""
    with torch.set_grad_enabled(padding == "computed"):
        compare_rows_read_at_once_with_each_alone(build(name).requires_grad_(False).model)


@pytest.mark.parametrize(
    "mixer",
    [
        {"kind": "average"},
        {"kind": "attention", "heads": 2, "window": 5, "positions": "t5"},
        {"kind": "attention", "heads": 2, "window": 5, "positions": "rotary", "convolution": 3},
        {"kind": "relative_attention", "heads": 2, "memory": 6},
        {"kind": "conv", "kernel": 3, "dilation": 2},
    ],
    ids=str,
)
def test_the_same_of_mixers_that_no_recipe_writes_with(mixer):
    torch.manual_seed(0)
    values = shrink("gpt-tiny").model.model_dump(mode="json")
    values["decoder"]["block"]["mixer"] = mixer
    model = ModelConfig.parse({**values, "embedding": {**values["embedding"], "positions": "none"}}, "model").build(60)
    for parameter in model.parameters():
        if parameter.dim() > 1:
            parameter.data *= 8
    compare_rows_read_at_once_with_each_alone(model.eval().requires_grad_(False))


def compare_rows_read_at_once_with_each_alone(model):
    generator = torch.Generator().manual_seed(2)
    lengths, behind = torch.tensor([30, 1, 17, 29]), 12
    behind = min(behind, (model.config.longest_input or 99) - 30)
    ids = torch.randint(7, VOCABULARY, (4, 30 + behind), generator=generator)
    source = Source(torch.tensor(SOURCES[:1] * 4)) if model.config.sequence_to_sequence else None
    padding_mask = torch.arange(30) >= 30 - lengths[:, None]
    read, state = model(Row(ids[:, :30], padding_mask=padding_mask, source=source), model.start(4, room=64))
    found = [read]
    for chunk in ids[:, 30:].split([1, 4, behind - 5], dim=1):
        hidden, state = model(Row(chunk), state)
        found.append(hidden)
    together = torch.cat(found, dim=1)
    assert together.isfinite().all()
    for row, length in enumerate(lengths.tolist()):
        alone = None if source is None else Source(source.ids[:1])
        first, state = model(Row(ids[row : row + 1, 30 - length : 30], source=alone), model.start(1))
        others, _ = model(Row(ids[row : row + 1, 30:]), state)
        expected = torch.cat([first, others], dim=1)[0]
        torch.testing.assert_close(together[row, 30 - length :], expected, rtol=2e-4, atol=2e-4)


def test_models_with_parts_that_remember_padding_read_prompts_of_one_length_together(monkeypatch):
    """A part of others need not know of padding in front of a text."""
    module = build("gpt2-tiny")
    expected = Generator(module, None).write(PROMPTS + PROMPTS, GREEDY)
    monkeypatch.setattr(Attention, "skips_padding", False)
    chunks = []
    module.model.register_forward_pre_hook(lambda _, given: chunks.append(given[0]))
    assert Generator(module, None).write(PROMPTS + PROMPTS, GREEDY) == expected
    assert all(row.padding_mask is None for row in chunks)
    assert (2, len(PROMPTS[0])) in [tuple(row.ids.shape) for row in chunks]


def test_rows_that_have_ended_are_read_no_further():
    module = build("gpt2-tiny")
    prompts, config = PROMPTS[:1] + PROMPTS, GenerationConfig(tokens=20, temperature=0)
    free = Generator(module, None).write(prompts, config)
    end = free[0][0]
    expected = [row[: row.index(end)] if end in row else row for row in free]
    assert [len(row) for row in expected].count(20) == 2, "half of them end early"
    rows = []
    module.model.register_forward_pre_hook(lambda _, given: rows.append(len(given[0].ids)))
    assert Generator(module, end).write(prompts, config) == expected
    assert rows[0] == 4
    assert rows[-1] == 2


@pytest.mark.parametrize(
    "settings",
    [{}, {"temperature": 0.3}, {"temperature": 2.0, "top_k": 3}, {"top_p": 0.5}, {"top_k": 4, "top_p": 0.7}],
)
def test_what_is_chosen_follows_all_settings(settings):
    """A draw for each of many prompts with the same scores has the frequencies of the filtered distribution."""
    scores = (torch.arange(8) * -0.4).log_softmax(-1)[torch.tensor([3, 0, 6, 2, 7, 1, 5, 4])]
    config, count = GenerationConfig(**settings), 2000
    choose = chooser(config, [PromptSeed(5, number) for number in range(count)])
    drawn = choose(scores.expand(count, -1), list(range(count)))
    scaled = (scores.double() / config.temperature).softmax(-1)
    order = scaled.argsort(descending=True)[: config.top_k or 8].tolist()
    total, kept = float(scaled[order].sum()), []
    for token in order:
        if sum(float(scaled[each]) for each in kept) / total < config.top_p:
            kept.append(token)
    shares = torch.zeros(8, dtype=torch.float64)
    shares[kept] = scaled[kept] / scaled[kept].sum()
    found = torch.bincount(drawn, minlength=8) / count
    assert set(drawn.tolist()) <= set(kept)
    assert found.tolist() == pytest.approx(shares.tolist(), abs=5 * math.sqrt(0.25 / count))
