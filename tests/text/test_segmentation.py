"""Words and grapheme clusters of all scripts, and that every part takes the same ones."""

import json
import unicodedata

import numpy as np
import pytest
import regex
from hypothesis import example, given
from hypothesis import strategies as st

from bakeoff.tasks.baselines.overlap import count_words, overlapping_answer
from bakeoff.tasks.baselines.tfidf import WORDS
from bakeoff.tasks.scores.answer_scores import word_f1
from bakeoff.tasks.scores.text_scores import exact, rouge, text_scores
from bakeoff.tasks.scores.unspaced_answers import unspaced_words
from bakeoff.text.segmentation import whole_clusters, words, words_and_signs
from bakeoff.text.words import separates_words, words_before
from bakeoff.tokenizer.tokenizer import Tokenizer
from bakeoff.tokenizer.tokenizer_config import TokenizerConfig
from bakeoff.tokenizer.training import OLD_WORD_PATTERN
from bakeoff.vectors.baselines import WordOverlap

# A text of each script as its words, with | between them.
TEXTS = {
    "English": "it|'|s|3|.|14|m²|a_b|well|-|known|!",
    "Hindi": "मैं|दिल्ली|में|हूँ|।",
    "Hindi, joined by ZWJ and ZWNJ": "क्‍ष|श्‌व",
    "Bengali": "আমি|বাংলায়|গান|গাই",
    "Tamil": "கொடுக்கும்|நாள்",
    "Arabic": "شَجَرَةٌ|كَبِيرَة",
    "Persian": "می‌روم|.",
    "Hebrew": "שָׁלוֹם|עוֹלָם",
    "Thai": "น้ำ|ใ|จ|ดี|๒๕๖๘",
    "Lao": "ນ້ຳ|ໃ|ຈ",
    "Khmer": "ខ្មែ|រ",
    "Burmese": "မြ|န်|မာ",
    "Tibetan": "བོ|ད|་|སྐ|ད",
    "Chinese": "我|爱|。|北|京|ABC|，|１２",
    "Japanese": "カ|タ|が|く|々",
    "Korean": "한국어|단어",
    "Vietnamese": "Tiếng|Việt",
    "Emoji": "👨‍👩‍👧|🇩🇪|🇫🇷|👍🏽|❤️",
    "a soft hyphen": "Wort\u00adteil|.",
    "an Arabic sign before its number": "\u060012|a",
    "signs with marks": "!\u0301|a",
}


@pytest.mark.parametrize("form", ["NFC", "NFD"])
@pytest.mark.parametrize("script", TEXTS)
def test_words_and_signs_of(script, form):
    parts = [unicodedata.normalize(form, part) for part in TEXTS[script].split("|")]
    text = " ".join(parts)
    found = words_and_signs(text)
    assert [word for word, _ in found] == parts
    assert all(text.startswith(word, begin) for word, begin in found)
    letters = [part for part in parts if any(unicodedata.category(sign)[0] in "LN" for sign in part)]
    assert words(text) == [unicodedata.normalize("NFC", part) for part in letters]


def test_white_space_and_invisible_signs_are_no_words():
    assert words_and_signs(" \t\n\u200b\ufeff\x00\u3000") == []
    assert words("") == words_and_signs("") == []


# Burmese and Khmer letters that are stacked would join a letter of another script, which no text has.
SIGNS = st.text("aé' -_3²।दिल्ाหน้ำာ한\u1112\u1161\u11ab我が\u3099\u0301\u200c\u200d\u00ad👨🏽🇩️⃣!\u0600", max_size=12)


@given(SIGNS)
@example("-\u102c\u200d")  # a joiner after a vowel sign that belongs to no letter
@example("-\u102c\u094d\u0926")  # and a sign that joins the letter after it
def test_no_word_begins_or_ends_inside_a_cluster(text):
    bounds = {0, *(match.end() for match in regex.finditer(r"\X", text))}
    for word, begin in words_and_signs(text):
        end = begin + len(word)
        mark = regex.match(r"[\p{M}\p{GCB=Extend}\p{GCB=SpacingMark}]", word)
        assert begin in bounds or (mark and unicodedata.category(text[begin - 1])[0] in "ZC")  # which has no letter
        assert end == len(text) or (end in bounds and unicodedata.category(text[end])[0] != "M")
        assert mark or whole_clusters(text, [(begin, end)]) == [(begin, end)]


@given(st.text(st.characters(max_codepoint=127), max_size=20))
def test_words_of_ascii_are_those_of_the_long_way(text):
    longer = text + " é"
    assert words(longer) == [*words(text), "é"]
    assert words_and_signs(longer) == [*words_and_signs(text), ("é", len(text) + 1)]


@given(SIGNS, st.integers(0, 12), st.integers(0, 12))
def test_spans_are_widened_to_whole_clusters_and_no_further(text, one, other):
    begin, end = sorted((min(one, len(text)), min(other, len(text))))
    ((first, last),) = whole_clusters(text, [(begin, end)])
    assert first <= begin <= end <= last
    assert whole_clusters(text, [(first, last)]) == [(first, last)]
    if text.isascii():
        assert (first, last) == (begin, end)


def test_a_span_inside_a_cluster_takes_all_of_it():
    assert whole_clusters("दिल्ली ❤\ufe0f", [(1, 2), (0, 2), (7, 8)]) == [(0, 2), (0, 2), (7, 9)]


UNSPACED = ["Thai", "Lao", "Khmer", "Burmese", "Tibetan", "Chinese", "Japanese"]


@pytest.mark.parametrize("script", UNSPACED)
def test_a_word_for_masking_is_a_cluster_in_scripts_without_spaces(script):
    parts = TEXTS[script].split("|")
    text = "".join(part for part in parts if not part.isascii())
    starts = np.flatnonzero(np.diff(words_before(text))).tolist()
    if script == "Chinese":  # full-width forms stand alone there
        assert [text[at] for at in starts] == list("我爱。北京，１２")
        return
    assert starts == np.cumsum([0, *(len(part) for part in parts)])[:-1].tolist()


def test_a_word_behind_a_mark_begins_where_one_behind_a_letter_does():
    assert separates_words("ที", "A")
    assert separates_words("ท", "A")
    assert not separates_words("A\u0301", "A")
    assert words_before("น้ำA ดี").tolist() == [0, 1, 1, 1, 2, 3, 3, 3]


def test_rouge_reads_whole_words():
    assert rouge(["दिन"], ["दीन"])["rouge_1"] == 0
    assert rouge(["दीन दीन", "दीन काल"], ["दिन दिन", "दिन कल"])["rouge_1"] == 0
    assert rouge(["தமிழ் நாடு"], ["தமிழ் நாட"])["rouge_1"] == 0.5
    assert rouge(["น้ำใจ"], ["นำใจ"])["rouge_1"] == pytest.approx(2 / 3)
    assert rouge(["한국어 단어"], ["한국말 단어"])["rouge_1"] == 0.5
    assert rouge(["می‌روم"], ["می روم"])["rouge_1"] == 0
    # Signs among ideographs count, as where Chinese is scored by its characters.
    assert rouge(["我爱。"], ["我。爱"])["rouge_1"] == 1


@pytest.mark.parametrize("text", ["Tiếng Việt", "한국어 말", "école", "ガギグゲ"])
def test_texts_in_two_forms_are_the_same(text):
    apart = unicodedata.normalize("NFD", text)
    assert rouge([text], [apart]) == rouge([text], [text])
    assert text_scores([text], [apart], "char") == text_scores([text], [text], "char")
    assert exact([apart], [text]).tolist() == [1]
    assert word_f1(apart, text) == 1
    assert unspaced_words(apart) == unspaced_words(text)
    assert WordOverlap([text, apart]).of_pairs([text], [apart]).tolist() == [1]


def test_similarity_without_a_model_reads_whole_words():
    overlap = WordOverlap(["दिन कल", "दीन काल"])
    assert overlap.of_pairs(["दिन", "दिन कल"], ["दीन", "दिन काल"]) == pytest.approx([0, 1 / 3])
    assert WORDS["tokenizer"]("दिल्ली में, it's") == ["दिल्ली", "में", "it", "s"]


def test_answers_without_a_model_are_whole_words():
    assert overlapping_answer("कौन दिल्ली में", "राम दिल्ली में था", 1) in ("राम", "था")
    assert count_words("दिल्ली में") == 2
    assert count_words("น้ำ") == 1
    assert word_f1("हिंदी भाषा", "हिदी भाषा") == 0.5


@pytest.mark.parametrize("script", [name for name in TEXTS if name not in ("English", "Hindi, joined by ZWJ and ZWNJ")])
def test_a_tokenizer_of_words_has_the_same(script):
    text = TEXTS[script].replace("|", " ")
    tokenizer = Tokenizer.train(TokenizerConfig(kind="word", size=99), [text])
    ((ids, _),) = tokenizer.encode([text])
    # It drops joiners and other invisible signs, as BERT's tokenizers do.
    expected = ["".join(c for c in part if unicodedata.category(c) != "Cf") for part in TEXTS[script].split("|")]
    if script not in ("Khmer", "Emoji"):  # the library's clusters are those of an older Unicode
        assert tokenizer.decode(ids).split(" ") == [part for part in expected if part]
    assert all(unicodedata.category(tokenizer.decode([token])[0])[0] != "M" for token in ids)


def test_a_tokenizer_of_words_that_was_trained_before_reads_as_it_did():
    made = Tokenizer.train(TokenizerConfig(kind="word", size=99), ["don't stop a-b, ab कल"])
    state = json.loads(made.to_string())
    state["pre_tokenizer"]["pattern"] = {"Regex": OLD_WORD_PATTERN}
    before = Tokenizer.from_string(json.dumps(state))
    text = "don't stop, a-b कल ab."
    assert before.encode([text])[0][0].tolist() == made.encode([text])[0][0].tolist()
    assert before.config == made.config
