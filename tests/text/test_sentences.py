import unicodedata
from hashlib import sha256
from itertools import product
from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bakeoff.text.sentences import RULE, split_sentences


def _split(text: str) -> list[str]:
    return [sentence.strip() for sentence in split_sentences(text)]


@pytest.mark.parametrize(
    "sentences",
    [
        ["Mr. Smith met Dr. J. R. Jones.", "They spoke."],
        ["It costs 3.14 dollars, e.g. in the U.S. market.", "Cheap!"],
        [f"It is {'1' * 30}.", "A number ends a sentence, and is no list's item."],
        ['He said "It works."', "(Really?)", "Yes!"],
        ["No. 5 is alive.", "See Fig. 2 for it."],
        ["So do I.", "Then we left."],
        ["1. The first item.", "2. The second item."],
        ["“Did it?”", "“It did.”"],
        ["Wait ... what did you say?!", "Nothing."],
        ["No full stop at the end"],
        ["Yahoo! is a company.", "It exists."],
        ["Été comme hiver.", "Où est-il ?", "Là."],
    ],
)
def test_english(sentences):
    assert _split(" ".join(sentences)) == sentences


@pytest.mark.parametrize(
    "sentences",
    [
        ["房间很大。", "服务也不错！", "你去过吗？", "没有"],
        ["他说：“很好。”", "我不信！！", "（真的吗？）", "是的。"],
        ["算不错!", "但是太贵了。"],
    ],
)
def test_chinese(sentences):
    assert _split("".join(sentences)) == sentences


SPACED = {
    "Hindi": ["यह एक घर है।", "वह बड़ा है।", "क्या आप आए?", "हाँ।"],
    "Sanskrit, with verse numbers": ["धर्मक्षेत्रे कुरुक्षेत्रे ॥ १ ॥", "दृष्ट्वा तु पाण्डवानीकम् ॥२॥", "अत्र शूराः।"],
    "Bengali": ["এটি একটি বাড়ি।", "সে বড়।"],
    "Arabic": ["هل أنت هنا؟", "نعم!", "هذا بيت."],
    "Persian": ["کجا رفتی؟!", "«به خانه؟»", "بله."],
    "Urdu": ["یہ ایک گھر ہے۔", "وہ بڑا ہے۔", "کیا آپ نے بی۔اے کیا؟", "جی۔"],
    "Armenian": ["Սա տուն է։", "Այն մեծ է։", "Ժամը 10։30 է։"],
    "Greek": ["Αυτό είναι σπίτι.", "Είναι μεγάλο!"],
    "Korean": ["이것은 내 것.", "집이다!", "어디?"],
    "Marathi": ["ते घरी आहेत.", "ते मोठे आहे."],
    "Tamil": ["இது வீடு.", "அவர்கள் வந்தார்கள்."],
    "Russian": ["Это дом.", "Где он?", "Там…", "Здесь."],
    "Amharic": ["ይህ ቤት ነው።", "ትልቅ ነው።", "የት ነው፧", "እዚያ።"],
    "Syriac": ["ܗܢܐ ܒܝܬܐ܂", "ܪܒܐ܂"],
    "N'Ko": ["ߌ ߣߌ߫ ߛߐ߲߬ߜߐߡߊ߹", "ߌ ߕߋ߫ ߓߍ߲߬ ߠߊ߫."],
    "Tibetan": ["འདི་ཁང་པ་ཡིན། །", "ཆེན་པོ་རེད།", "བཀྲ་ཤིས་བདེ་ལེགས༎"],
    "Burmese": ["ဒါက အိမ်ပါ။", "ကြီးတယ်။"],
    "Khmer": ["នេះជាផ្ទះ។", "វាធំ។", "ផ្លែឈើ បន្លែ ។ល។", "ចប់៕"],
    "Mongolian script": ["ᠡᠨᠡ ᠭᠡᠷ᠃", "ᠶᠡᠬᠡ᠃"],
    "Santali": ["ᱱᱚᱶᱟ ᱚᱲᱟᱜ ᱠᱟᱱᱟ᱾", "ᱢᱟᱨᱟᱝ᱿"],
    "Manipuri": ["ꯃꯁꯤ ꯌꯨꯝꯅꯤ꯫", "ꯑꯆꯧꯕꯅꯤ꯫"],
    "Inuktitut": ["ᐊᒡᓗ ᐅᓇ᙮", "ᐊᖏᔪᖅ᙮"],
    "Vai": ["ꔞꕌ ꔞꕌ꘎", "ꕉꕜꕮ꘏"],
    "Lisu": ["ꓡꓲꓢꓴ꓿", "ꓐꓬꓳ꓿"],
    "Chakma": ["𑄌𑄋𑄴𑄟𑄳𑄦\U00011141", "𑄃𑄪𑄎𑄴\U00011142", "𑄇𑄨\U00011143"],
}
UNSPACED = {
    "Japanese": ["これは家です。", "大きいですか？", "「はい。」", "値は３．１４です．", "終わり‼", "次です。"],
    "vertical Chinese": ["房间很大︒", "你去过吗︖", "没有"],
    "Burmese": ["ဒါက အိမ်ပါ။", "ကြီးလား?", "ကြီးတယ်။"],
    "Hindi": ["यह एक घर है।", "वह बड़ा है॥", "हाँ"],
    "Ge'ez": ["ይህ፡ቤት፡ነው።", "ትልቅ፡ነው።"],
    "Khmer": ["នេះជាផ្ទះ។", "ផ្លែឈើបន្លែ។ល។", "វាធំ។"],
    "Tibetan": ["འདི་ཁང་པ་ཡིན།", "ཆེན་པོ་རེད།"],
}


@pytest.mark.parametrize("language", SPACED)
def test_scripts_whose_sentences_a_space_parts(language):
    assert _split(" ".join(SPACED[language])) == SPACED[language]


@pytest.mark.parametrize("language", UNSPACED)
def test_scripts_whose_sentences_nothing_parts(language):
    assert _split("".join(UNSPACED[language])) == UNSPACED[language]


@pytest.mark.parametrize(
    "text",
    [
        "«Գնա՛։» ասաց նա",  # a small letter goes on
        "１．はじめに",  # the number of a list's item
        "約．５です",  # a fraction without its zero
        "Кто там? спросил он",
        "Так сказал А. С. Пушкин",
        "بی۔بی۔سی",  # an abbreviation
    ],
)
def test_marks_that_end_nothing(text):
    assert split_sentences(text) == [text]


def test_every_script_of_unicode():
    """What Unicode calls the end of a sentence is one to us, in as many scripts as this Python knows."""
    regex = pytest.importorskip("regex")
    ends = regex.compile(r"\p{Sentence_Terminal}")
    marks = [mark for mark in map(chr, range(0x110000)) if ends.match(mark) and unicodedata.category(mark) != "Cn"]
    assert len(marks) > 140
    assert [mark for mark in marks if _split(f"그것은 집이다{mark} 크다") != [f"그것은 집이다{mark}", "크다"]] == []


MARKS = "。！？．‼॥।۔؟։።။។།་\U00011141"


@given(st.text(alphabet=f'aB .!?”"()\n Dr1१房\u3000…लक{MARKS}', max_size=80))
def test_nothing_is_lost(text):
    sentences = split_sentences(text)
    assert "".join(sentences) == text
    assert all(sentences)
    if text.strip():
        assert all(sentence.strip() for sentence in sentences)


@given(st.text(max_size=80))
def test_nothing_is_lost_of_any_text(text):
    assert "".join(split_sentences(text)) == text


@given(st.lists(st.sampled_from([sentence for each in SPACED.values() for sentence in each]), min_size=1, max_size=6))
def test_languages_in_one_paragraph(sentences):
    assert _split(" ".join(sentences)) == sentences


def test_a_long_row_of_dots_takes_no_time():
    """What fills the lines of a table of contents: with every shorter row tried, too, these would take minutes."""
    started = perf_counter()
    assert split_sentences("." * 30_000 + "x") == ["." * 30_000 + "x"]
    assert perf_counter() - started < 10


def test_whitespace_alone_opens_no_sentence():
    assert split_sentences("") == []
    assert split_sentences("One. ") == ["One. "]


def test_another_result_needs_another_version():
    """Corpora tell by the rule's name how their sentences were found: a change here wants a new number in `RULE`."""
    words = [
        "Dr",
        "e.g",
        "No",
        "Sept",
        "J",
        "I",
        "12",
        "3.14",
        "Yahoo",
        "end",
        "房间很大",
        "«Oui",
        "(Yes",
        "घर आहेत",
        "것",
        "集３",
    ]
    marks = [
        ".",
        "!",
        "?",
        "...",
        "…",
        "。",
        "！？",
        '."',
        ".”)",
        "?’ ",
        "！」",
        "।",
        "॥ १ ॥",
        "۔",
        "؟!",
        "։",
        "。 །",
        "．",
    ]
    following = [" The next", " the next", " 5 of", "下一句", " “Then", " – and", "\n(But", "यह", " ལ"]
    digest = sha256()
    for parts in product(words, marks, following):
        digest.update("\0".join(split_sentences(f"It was {''.join(parts)} one. And more!")).encode() + b"\1")
    assert {"all-scripts-2": "f047f8912f3e1143"}[RULE] == digest.hexdigest()[:16]
