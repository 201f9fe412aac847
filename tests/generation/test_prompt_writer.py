"""A writer of prompts, call after call: numbers, counts, pieces, and what it never writes."""

import unicodedata
from types import SimpleNamespace

import pytest
import torch
from tests.conftest import sentences
from tests.untrained_runs import untrained

from bakeoff.errors import UserError
from bakeoff.generation.config import GenerationConfig
from bakeoff.generation.generate import PromptWriter, decoded, generate, never_written
from bakeoff.generation.generator import Generator
from bakeoff.generation.prompts import begun, encoded, whole
from bakeoff.generation.sampling import filtered
from bakeoff.tokenizer.tokenizer import Tokenizer
from bakeoff.tokenizer.tokenizer_config import TokenizerConfig

PROMPTS = ["The river", " ", "stone", "The river", "The old stone finds"]


@pytest.fixture(scope="module")
def of_bytes(tmp_path_factory):
    """A run that writes bytes, of which most make no character."""
    tokenizer = Tokenizer.train(TokenizerConfig(kind="byte_bpe", size=300), sentences(30))
    corpus = SimpleNamespace(tokenizer=tokenizer)
    return untrained("gpt2-tiny", corpus, tmp_path_factory.mktemp("runs") / "bytes")


@pytest.mark.parametrize("name", ["gpt2-tiny", "bart-tiny", "prefix-lm-tiny"])
def test_prompts_are_numbered_and_tokens_counted_over_all_calls(name, corpus, tmp_path):
    run = untrained(name, corpus, tmp_path / "run")
    config = GenerationConfig(tokens=5, seed=3)
    whole, parts = [], []
    expected = PromptWriter(run, config, run.load(), whole.append).write(PROMPTS)
    writer = PromptWriter(run, config, run.load(), parts.append)
    found = [each.output for each in writer.write(PROMPTS[:1])]
    found += ["".join(writer.stream(prompt)) for prompt in PROMPTS[1:4]]
    found += [each.output for each in writer.write(PROMPTS[4:])]
    assert found == [each.output for each in expected]
    assert len(set(found)) == len(PROMPTS)
    blank = 5 * run.recipe.model.sequence_to_sequence  # what is written for no source is thrown away
    assert sum(parts) == sum(whole) - blank == 5 * len(PROMPTS) - blank


def test_pieces_are_whole_characters_and_make_the_text(of_bytes):
    module = of_bytes.load()
    for seed in range(8):
        config = GenerationConfig(tokens=20, seed=seed)
        (expected,) = PromptWriter(of_bytes, config, module).write(["The river"])
        pieces = list(PromptWriter(of_bytes, config, module).stream("The river"))
        assert "".join(pieces) == expected.output
        assert "\N{REPLACEMENT CHARACTER}" in expected.output
        assert not any(piece.endswith("\N{REPLACEMENT CHARACTER}") for piece in pieces[:-1])


@pytest.mark.parametrize("name", ["gpt2-tiny", "bart-tiny", "t5-tiny", "transformer-translation-tiny"])
def test_no_special_token_and_no_token_of_sources_is_written(name, corpus, parallel_corpus, tmp_path, monkeypatch):
    """However evenly tokens are drawn; the separator ends a text, and only what marks gaps belongs to one."""
    run = untrained(name, parallel_corpus if "translation" in name else corpus, tmp_path / "run")
    tokenizer, written, write = run.tokenizer, [], Generator.write

    def watched(self, *arguments, **options):
        written.extend(write(self, *arguments, **options))
        return written[-1:]

    monkeypatch.setattr(Generator, "write", watched)
    for seed in range(4):
        generate(
            run,
            ["1 2" if "translation" in name else "The river"],
            GenerationConfig(tokens=200, temperature=1e6, seed=seed),
        )
    found, marks = {token for row in written for token in row}, set(run.recipe.objective[0].mark_ids(tokenizer))
    usual = set(tokenizer.target_ids) - set(tokenizer.special_ids.tolist())
    assert found <= usual | marks
    assert len(found) > len(usual) // 2
    assert bool(found & marks) == bool(marks)
    assert tokenizer.separator not in found
    assert not usual & set(never_written(tokenizer))


def test_by_default_tokens_are_drawn_from_the_distribution_of_the_model():
    config, scores = GenerationConfig(), torch.randn(3, 50).log_softmax(-1)
    found = filtered(scores, config.temperature, config.top_k, config.top_p)
    torch.testing.assert_close(found, scores.double().softmax(-1))
    assert not config.greedy
    assert GenerationConfig.model_fields["length_penalty"].default == 0.6  # as published for beam search
    assert config.tokens == 100


def test_a_translation_is_of_the_text_as_it_was_prepared(parallel_corpus, tmp_path):
    """In NFC, with single spaces; a mask is a text as any other."""
    run = untrained("transformer-translation-tiny", parallel_corpus, tmp_path / "run")
    tokenizer = run.tokenizer
    for text in (" 1  2 ", "e\u0301 1", "1 [MASK] 2"):
        clean = unicodedata.normalize("NFC", " ".join(text.split()))
        assert encoded(clean, tokenizer, run) == [*tokenizer.encode([clean])[0][0].tolist(), tokenizer.separator]
        config = GenerationConfig(tokens=8, temperature=0)
        assert generate(run, [text], config) == generate(run, [clean], config)


@pytest.mark.parametrize("name", ["gpt2-tiny", "prefix-lm-tiny", "t5-tiny"])
def test_a_prompt_is_read_as_texts_of_a_corpus_are(name, of_bytes, tmp_path):
    """In NFC, with single spaces; where it is continued, a space at its end stays one."""
    run = untrained(name, SimpleNamespace(tokenizer=of_bytes.tokenizer), tmp_path / "run")
    writer = PromptWriter(run, GenerationConfig(tokens=6, temperature=0), run.load())
    forms = ["the caf\u00e9 river", "the cafe\u0301 river", " the\u00a0caf\u00e9 \t\u2003river"]
    alone = {each.text for each in writer.write(forms)}
    assert len(alone) == 1 == len({"".join(writer.stream(each)) for each in forms})
    spaced = {each.text for each in writer.write([f"{each}{end}" for each in forms for end in (" ", "\u00a0", " \n ")])}
    assert len(spaced) == 1
    if name == "t5-tiny":
        assert spaced == alone
    else:
        assert alone.pop().startswith(forms[0])
        assert spaced.pop().startswith(f"{forms[0]} ")
    assert [each.prompt for each in writer.write(forms)] == forms


def test_ends_of_lines_that_are_tokens_stay_in_a_prompt():
    lines = Tokenizer.train(TokenizerConfig(kind="whitespace", size=50, end_of_line=True), sentences(30))
    for read in (whole, begun):
        assert read(" the  cafe\u0301\triver \n old\n", lines) == "the caf\u00e9 river\nold\n"
    assert begun("the river ", lines) == "the river "


def test_as_many_gaps_as_there_are_marks(corpus, tmp_path):
    run = untrained("t5-tiny", corpus, tmp_path / "run")
    marks = run.recipe.objective[0].mark_ids(run.tokenizer)
    row = encoded("a" + "[MASK]b" * len(marks), run.tokenizer, run)
    assert [token for token in row if token in marks] == marks
    numbers = decoded([marks[1], *run.tokenizer.encode(["the river"])[0][0].tolist(), marks[0]], run.tokenizer, marks)
    assert numbers == "[2] the river [1]"


def test_a_prompt_that_is_too_long_is_named_by_its_number_over_all_calls(corpus, tmp_path):
    run = untrained("gpt2-tiny", corpus, tmp_path / "run")
    writer = PromptWriter(run, GenerationConfig(tokens=1), run.load())
    writer.write(["a", "b"])
    with pytest.raises(UserError, match=r"^text 4 \("):
        writer.write(["c", "river " * 2000])
