import random
import string
import time
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer as Inner
from tokenizers import models, normalizers, pre_tokenizers

from bakeoff.tokenizer.case import Case, bert_normalizer
from bakeoff.tokenizer.hidden import HiddenText
from bakeoff.tokenizer.tokenizer import Tokenizer, TwoVocabularies
from bakeoff.tokenizer.tokenizer_config import TokenizerConfig

DRAW = random.Random(0)
SIGNS = "aé한ก-/字ア"


def letters(alphabet: str, length: int) -> str:
    return "".join(DRAW.choices(alphabet, k=length))


def trained(texts: list[str], kind: str = "wordpiece", **values) -> Tokenizer:
    return Tokenizer.train(TokenizerConfig(kind=kind, size=600, **values), texts)


def published_bert(words: list[str]) -> Tokenizer:
    """BERT's tokenizer as it is published, with [UNK] for words of more than 100 characters."""
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    pieces = [*specials, *words, *string.ascii_lowercase, *(f"##{letter}" for letter in string.ascii_lowercase)]
    inner = Inner(models.WordPiece({piece: i for i, piece in enumerate(pieces)}, unk_token="[UNK]"))
    inner.normalizer = normalizers.BertNormalizer(lowercase=True)
    inner.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return Tokenizer(inner)


@pytest.mark.parametrize(
    "alphabet",
    ["ACGT", string.ascii_letters + string.digits, "กขคงจฉชซญดตถทนบปผพฟมยรลวสหอ", "កខគឃងចឆជឈញដឋឌ", "ကခဂဃငစဆဇဈညတထ"],
    ids=["dna", "base64", "thai", "khmer", "burmese"],
)
def test_no_character_of_a_long_word_is_lost(alphabet):
    lines = [letters(alphabet, length) for length in (99, 100, 101, 250, 1000, 5000)]
    tokenizer = trained(lines)
    counts = tokenizer.hidden(lines)
    assert (counts.unknown, counts.hidden) == (0, 0)
    assert counts.characters == sum(map(len, lines))
    for line, (ids, starts) in zip(lines, tokenizer.encode(lines), strict=True):
        assert tokenizer.decode(ids).replace(" ", "") == line
        assert starts[0]
        assert alphabet > "\u0e00" or starts.sum() == 1  # a cut within a word begins no word


def test_words_up_to_a_hundred_characters_are_encoded_as_berts_are(tmp_path):
    texts = [" ".join(letters("abcdefgh", DRAW.randint(1, 100)) for _ in range(30)) for _ in range(20)]
    tokenizer = trained(texts)
    tokenizer.save(tmp_path / "tokenizer.json")
    other = Inner.from_file(str(tmp_path / "tokenizer.json"))
    other.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    for text, (ids, _) in zip(texts, tokenizer.encode(texts), strict=True):
        assert other.encode(text, add_special_tokens=False).ids == ids.tolist()


def test_a_published_tokenizer_keeps_its_ids_and_what_it_hides_is_counted():
    tokenizer = published_bert(["the", "city"])
    long = letters("abc", 150)
    text = f"the city {long} € the"
    ((ids, _),) = tokenizer.encode([text])
    assert ids.tolist() == [5, 6, 1, 1, 5]
    assert tokenizer.hidden([text]) == HiddenText(
        tokens=5, unknown=2, characters=3 + 4 + 150 + 1 + 3, hidden=151, hidden_bytes=150 + 3, example=f"{long[:21]}..."
    )
    assert str(tokenizer.hidden([text, "the city"])) == (
        f"2 of 7 tokens (28.6 %) are unknown and hide 151 of 168 characters (89.9 %), such as '{long[:21]}...'"
    )
    assert str(tokenizer.hidden(["the city"])) == ""


@pytest.mark.parametrize("kind", ["wordpiece", "byte_bpe", "char_bpe", "unigram"])
def test_time_grows_with_the_text_and_not_with_its_words(kind):
    """Words without an end cost trainers, and WordPiece, the square of their length: forty times as long here."""
    text = letters("ACGT", 40_000)
    times = []
    for texts in ([text[place : place + 1000] for place in range(0, len(text), 1000)], [text]):
        begun = time.process_time()
        tokenizer = trained(texts, kind)
        assert tokenizer.hidden(texts).hidden == 0
        times.append(time.process_time() - begun)
    assert times[1] < 8 * times[0] + 0.2


@pytest.mark.parametrize("kind", ["wordpiece", "char_bpe", "unigram", "character", "word", "byte_bpe"])
def test_characters_outside_of_the_vocabulary_are_counted(kind):
    tokenizer = trained(["the old city lies behind the hill " * 5], kind)
    counts = tokenizer.hidden(["the city ЖЩЫ the", "hill"])
    if kind == "byte_bpe":
        assert (counts.unknown, counts.hidden) == (0, 0)
    else:
        assert counts.hidden == 3
        assert counts.hidden_bytes == 6
        assert counts.unknown == {"wordpiece": 1, "word": 1}.get(kind, counts.unknown)
        assert counts.unknown > 0
        assert counts.example == "ЖЩЫ"


@pytest.mark.parametrize(
    ("word", "shown"),
    [("\ue000\u00ad", "U+E000 U+00AD"), ("\u00ad" * 30, "U+00AD"), ("Ж\u00ad", "Ж\u00ad"), ("👨", "👨")],
)
def test_characters_that_cannot_be_seen_are_shown_by_their_numbers(word, shown):
    said = str(trained(["the old city lies behind the hill " * 5]).hidden([f"the {word} hill"]))
    assert said[said.index("such as '") + 9 :].startswith(shown)
    assert "\ue000" not in said
    assert said.endswith("U+00AD...'") == (len(word) == 30)


def test_an_example_is_of_one_text():
    counts = trained(["the old city lies behind the hill " * 5]).hidden(["the city ЖЩ", "ЫЫЫ hill"])
    assert (counts.hidden, counts.example) == (5, "ЖЩ")


def test_words_that_a_strangers_wordpiece_would_read_for_hours_are_unknown_and_counted():
    limit = '"max_input_chars_per_word": '
    tokenizer = Tokenizer.from_string(published_bert(["ab"]).to_string().replace(f"{limit}100", f"{limit}99999999"))
    counts = tokenizer.hidden(["ab " + "ab" * 300_000, "ab" * 200])
    assert (counts.unknown, counts.hidden, counts.tokens) == (1, 600_000, 1 + 1 + 1 + 398)


def test_an_unknown_word_that_a_corpus_spells_itself_hides_nothing():
    tokenizer = trained(["the old city"], "whitespace")
    counts = tokenizer.hidden(["the <unk> city", "the hidden city"])
    assert (counts.unknown, counts.hidden, counts.example) == (2, 6, "hidden")


def test_characters_for_which_there_is_no_token_at_all_are_hidden():
    inner = Inner(models.BPE({"a": 0, "b": 1, "ab": 2}, [("a", "b")]))  # no unknown token, and no bytes
    inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    counts = Tokenizer(inner).hidden(["ab xyz é ab", "xab"])
    assert (counts.tokens, counts.unknown, counts.hidden, counts.hidden_bytes) == (3, 0, 5, 6)
    assert str(counts) == "the tokenizer has no token for 5 of 11 characters (45.5 %), such as 'xyz'"


@given(st.lists(st.text(alphabet="abЖ é.,\n€", max_size=40), max_size=5))
@settings(max_examples=60, deadline=None)
def test_counts_of_texts_add_up(texts):
    tokenizer = published_bert(["ab"])
    together = tokenizer.hidden(texts)
    assert together == sum(map(tokenizer.hidden, ([text] for text in texts)), HiddenText())
    assert together.hidden <= together.characters
    # Of BERT's tokenizer a word is hidden exactly if one of its characters is unknown.
    assert together.hidden == sum(text.count("Ж") + text.count("€") for text in texts) or together.unknown > 0


@pytest.mark.parametrize("text", ["a € b", "€ €", "the city €uro €uro the", "x" * 150 + " €"])
def test_a_word_hides_as_often_as_it_stands_there(text):
    tokenizer = published_bert(["the", "city"])
    once, often = tokenizer.hidden([text]), tokenizer.hidden([" ".join([text] * 7)])
    assert once.hidden > 0
    assert (often.tokens, often.unknown) == (7 * once.tokens, 7 * once.unknown)
    assert (often.characters, often.hidden, often.hidden_bytes) == tuple(
        7 * count for count in (once.characters, once.hidden, once.hidden_bytes)
    )


def test_sources_and_targets_are_counted_by_their_own_vocabularies():
    both = TwoVocabularies(trained(["the city " * 9]), trained(["die Stadt " * 9]))
    assert both.hidden(["the ЖЖ"]).hidden == both.encode_targets(["ЖЖ Stadt"]).hidden.hidden == 2
    assert both.encode_targets(["Stadt"]).hidden.unknown == 0


@pytest.mark.parametrize("lowercase", [False, True])
@given(parts=st.lists(st.tuples(st.text(alphabet=f"{SIGNS} ", max_size=3), st.integers(0, 60)), max_size=4))
@settings(max_examples=80, deadline=None)
def test_words_of_any_length_are_read_by_a_tokenizer_that_has_seen_short_ones(lowercase, parts):
    """And shorter ones as BERT reads them."""
    tokenizer = short_words(lowercase)
    text = " ".join("".join(part * times for part, times in parts).split())
    assert tokenizer.hidden([text]).hidden == 0
    cuts, normalizer = pre_tokenizers.BertPreTokenizer(), bert_normalizer(Case(lowercase, False))
    words = [word for word, _ in cuts.pre_tokenize_str(normalizer.normalize_str(text))]
    parts_of = [word[place : place + 100] for word in words for place in range(0, len(word), 100)]
    ((ids, _),) = tokenizer.encode([text])
    assert ids.tolist() == [int(each) for part in parts_of for each in tokenizer.encode([part])[0][0]]


@cache
def short_words(lowercase):
    pairs = " ".join(one + other for one in SIGNS for other in SIGNS)
    return Tokenizer.train(TokenizerConfig(size=60, lowercase=lowercase), [f"{pairs} {pairs}"])
