"""A text and what a run writes after it join as the tokenizer joins them, whatever its kind."""

import json
from functools import cache

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import sentences
from tests.untrained_runs import untrained
from tokenizers import decoders, models, normalizers, trainers

from bakeoff.cli import run as command
from bakeoff.generation import generate as generation
from bakeoff.generation.config import GenerationConfig
from bakeoff.generation.generate import joined, write
from bakeoff.generation.prompts import MASK, encoded
from bakeoff.preparation.prepare import prepare
from bakeoff.reading.text_files import in_memory
from bakeoff.tokenizer.tokenizer import Tokenizer
from bakeoff.tokenizer.tokenizer_config import TokenizerConfig

TEXTS = [*sentences(300), "naïve cafés, 房间 🎉 don't stop", "a b"]
KINDS = ["wordpiece", "byte_bpe", "char_bpe", "unigram", "word", "whitespace", "character"]
OTHERS = ["lines of words", "lines of characters", "byte_fallback", "sentencepiece_bpe"]


@cache
def tokenizer_of(kind):
    if kind == "lines of words":
        return Tokenizer.train(TokenizerConfig(kind="whitespace", size=60, end_of_line=True), TEXTS)
    if kind == "lines of characters":
        return Tokenizer.train(TokenizerConfig(kind="character", size=60, end_of_line=True), TEXTS)
    if kind in ("byte_fallback", "sentencepiece_bpe"):
        return _as_llama(kind == "byte_fallback")
    return Tokenizer.train(TokenizerConfig(kind=kind, size=400), TEXTS)


def _as_llama(bytes_for_rare):
    """A BPE of others with SentencePiece's spaces, as Llama's; bytes stand for characters that it lacks."""
    inner = tokenizers.Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=bytes_for_rare))
    inner.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    inner.decoder = decoders.Sequence(steps)
    specials = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    trainer = trainers.BpeTrainer(vocab_size=600, special_tokens=specials, show_progress=False)
    inner.train_from_iterator(sentences(50), trainer)
    state = json.loads(inner.to_str())
    state["added_tokens"] = state["added_tokens"][:3]  # bytes are no special tokens
    return Tokenizer.from_string(json.dumps(state))


prompts = st.one_of(
    st.sampled_from(["", " ", "The river", "The riv", "The river ", "don't", "naïve 房", "The\nriver\n", "🎉"]),
    st.text(alphabet="The rivstonc.\n' é房🎉", max_size=20),
)


@pytest.mark.parametrize("kind", [*KINDS, *OTHERS])
@given(prompt=prompts, draws=st.lists(st.integers(0, 1 << 20), max_size=8))
@settings(max_examples=60, deadline=None)
def test_what_follows_stands_right_behind_the_text(kind, prompt, draws):
    tokenizer = tokenizer_of(kind)
    (ids, _) = tokenizer.encode([prompt])[0]
    following = [draw % tokenizer.size for draw in draws]
    before, behind = joined(ids.tolist(), following, tokenizer)
    assert before == tokenizer.decode(ids)
    together = tokenizer.decode([*ids.tolist(), *following])
    if kind != "byte_fallback":  # it spoils a character after which bytes follow that make none
        assert before + behind == together
    elif together.startswith(before):
        assert behind == together[len(before) :]


@pytest.mark.parametrize("kind", KINDS)
def test_the_words_of_a_text_come_apart_and_together_where_they_did(kind):
    """Cut anywhere between two tokens, a text is its beginning and what follows."""
    tokenizer = tokenizer_of(kind)
    for text in sentences(20, seed=3):
        ids = tokenizer.encode([text])[0][0].tolist()
        whole = tokenizer.decode(ids)
        for cut in range(len(ids) + 1):
            before, behind = joined(ids[:cut], ids[cut:], tokenizer)
            assert before + behind == whole


def test_a_continuation_completes_a_word_or_begins_one():
    tokenizer = tokenizer_of("wordpiece")
    word, *rest = tokenizer.encode(["riverish"])[0][0].tolist()
    assert tokenizer.decode(rest).startswith("##")  # as it would be shown by itself
    before, behind = joined([word], rest, tokenizer)
    assert before + behind == "riverish"
    for kind in KINDS:
        tokenizer = tokenizer_of(kind)
        first, second = (tokenizer.encode([text])[0][0].tolist() for text in ("The", " river"))
        assert joined(first, second, tokenizer) == ("The", " river"), kind


@pytest.fixture(scope="module", params=["wordpiece", "lines"])
def run(request, corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "lines":
        (folder / "train.txt").write_text("".join(line + "\n" for line in sentences(300)), encoding="utf-8")
        config = TokenizerConfig(kind="whitespace", size=120, end_of_line=True)
        corpus = prepare(folder / "train.txt", folder / "corpus", tokenizer=config, validation=0.1, workers=0)
    return untrained("gpt-tiny", corpus, folder / "run")


def test_the_command_gives_both_and_the_whole(run, capsys):
    texts = ["The river", "The riv", "", "The river finds\tthe"]
    arguments = ["generate", str(run.path), *texts, "--tokens", "12", "--device", "cpu"]
    assert command([*arguments, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [each["prompt"] for each in found] == texts
    for each in found:
        decoded = run.tokenizer.decode(run.tokenizer.encode([each["prompt"]])[0][0])
        assert each["text"] == decoded + each["continuation"]
        assert "##" not in each["text"]
    assert command(arguments) == 0
    assert capsys.readouterr().out == "".join(each["continuation"] + "\n" for each in found)


def test_a_prompt_begins_behind_what_training_texts_begin_behind(run):
    tokenizer = run.tokenizer
    first, *rest = encoded("The river", tokenizer, run)
    assert rest == tokenizer.encode(["The river"])[0][0].tolist()
    assert first == (tokenizer.separator if tokenizer.end_of_line is None else tokenizer.end_of_line)
    if tokenizer.end_of_line is not None:
        (part,) = write(run, in_memory([""]), GenerationConfig(tokens=5), device="cpu")
        assert not part[0].text.startswith("\n")  # what a prompt begins after is no part of it


PREFIX = {"objective": [{"kind": "prefix_lm"}]}


@pytest.mark.parametrize(("name", "changes"), [("t5-tiny", {}), ("bart-tiny", {}), ("t5-tiny", PREFIX)])
def test_what_is_rewritten_follows_nothing(name, changes, corpus, tmp_path):
    run = untrained(name, corpus, tmp_path / "run", **changes)
    (part,) = write(run, in_memory(["The river", " "]), GenerationConfig(tokens=5), device="cpu")
    assert [each.prompt for each in part] == ["The river", " "]
    if changes:  # what it writes is what follows
        assert part[0].text == "The river" + part[0].continuation
        assert (part[1].continuation, part[1].text) == ("", "")
    else:
        assert part[0].continuation is None
        assert part[0].output == part[0].text != ""
        assert (part[1].continuation, part[1].text) == (None, "")


def test_a_marked_prompt_joins_without_its_marks(corpus, tmp_path):
    run = untrained("t5-tiny", corpus, tmp_path / "run", **PREFIX)
    ((found,),) = write(run, in_memory([f"The {MASK} river"]), GenerationConfig(tokens=5), device="cpu")
    assert found.text == "The river" + found.continuation


def test_a_decoder_that_changes_its_mind_leaves_the_prompt_as_it_is():
    """ByteFallback spoils the bytes of a whole character where bytes follow that make none."""
    tokenizer = tokenizer_of("byte_fallback")
    ids = tokenizer.encode(["房"])[0][0].tolist()
    assert tokenizer.decode(ids) == "房"
    wrong = tokenizer._inner.token_to_id("<0xFF>")
    assert not tokenizer.decode([*ids, wrong]).startswith("房")
    assert generation.joined(ids, [wrong], tokenizer) == ("房", "�")
