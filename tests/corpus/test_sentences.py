from hashlib import sha256
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bakeoff.corpus.sentences import RULE, split_sentences


def _split(text: str) -> list[str]:
    return [sentence.strip() for sentence in split_sentences(text)]


@pytest.mark.parametrize(
    "sentences",
    [
        ["Mr. Smith met Dr. J. R. Jones.", "They spoke."],
        ["It costs 3.14 dollars, e.g. in the U.S. market.", "Cheap!"],
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


@given(st.text(alphabet='aB .!?。！？”"()\n Dr1房\u3000…', max_size=80))
def test_nothing_is_lost(text):
    sentences = split_sentences(text)
    assert "".join(sentences) == text
    assert all(sentences)
    if text.strip():
        assert all(sentence.strip() for sentence in sentences)


def test_whitespace_alone_opens_no_sentence():
    assert split_sentences("") == []
    assert split_sentences("One. ") == ["One. "]


def test_another_result_needs_another_version():
    """Corpora tell by the rule's name how their sentences were found: a change here wants a new number in `RULE`."""
    words = ["Dr", "e.g", "No", "Sept", "J", "I", "12", "3.14", "Yahoo", "end", "房间很大", "«Oui", "(Yes"]
    marks = [".", "!", "?", "...", "…", "。", "！？", '."', ".”)", "?’ ", "！」"]
    following = [" The next", " the next", " 5 of", "下一句", " “Then", " – and", "\n(But"]
    digest = sha256()
    for parts in product(words, marks, following):
        digest.update("\0".join(split_sentences(f"It was {''.join(parts)} one. And more!")).encode() + b"\1")
    assert {"western-and-chinese-1": "a973ab2c2123669a"}[RULE] == digest.hexdigest()[:16]
