"""Names in Markdown, read by an independent parser: they are text, and one block."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from bakeoff.display import markdown
from bakeoff.display.text import visible
from bakeoff.report.elements import items

PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
ANY = st.text() | st.text(st.sampled_from("ab_*`|[]()<>&#\\~$!+-=.1 \n\t\"'"))
HOSTILE = [
    "<script>alert(1)</script>",
    "[x](https://example.org) ![y](z)",
    "a | b | c",
    "a\n\n# b\n\n- c",
    "```\n</code>",
    "&lt;b&gt; &amp;",
    "mean_of_my_words, bert-tiny",
    "1. x",
    "\x1b[2J\u202eevil",
    "trailing \\",
]


def inline(tokens):
    """The text of the one inline token; fails where it has markup."""
    (found,) = [token for token in tokens if token.type == "inline"]
    assert {child.type for child in found.children} <= {"text", "text_special"}
    return "".join(child.content for child in found.children)


@example("__0__")
@given(ANY.filter(lambda text: visible(text).strip()))
def test_a_name_is_text_in_headings_paragraphs_lists_and_cells(name):
    shown = " ".join(visible(name).split(" ")).strip()
    kinds = {"# {}": "heading_open", "{}": "paragraph_open", "- {}\n": "bullet_list_open"}
    for form, kind in kinds.items():
        tokens = PARSER.parse(form.format(markdown.text(name)))
        assert tokens[0].type == kind
        assert inline(tokens) == shown
    cells = [
        token for token in PARSER.parse(f"|a|b|\n|---|---|\n| {markdown.text(name)} | c |") if token.type == "inline"
    ]
    assert [inline([cell]) for cell in cells] == ["a", "b", shown, "c"]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names(name):
    test_a_name_is_text_in_headings_paragraphs_lists_and_cells.hypothesis.inner_test(name)


def test_an_ordinary_name_is_not_disfigured():
    assert markdown.text("bert-tiny of my_words, arXiv:1909.11942 (2020)") == (
        "bert-tiny of my_words, arXiv:1909.11942 (2020)"
    )


@given(ANY)
@example("`")
@example("a``b")
def test_code_is_code(name):
    ((span,),) = [token.children for token in PARSER.parse(markdown.code(name)) if token.type == "inline"]
    assert span.type == "code_inline"
    assert span.content.strip() == visible(name).strip()


@given(ANY)
@example("a\n```\n<b>")
def test_lines_of_code_are_one_block(text):
    (fence,) = PARSER.parse(markdown.block(text))
    assert fence.type == "fence"
    assert fence.content == visible(text, "\n") + "\n"


def test_backticks_of_data_are_no_code():
    """Signs that a tokenizer does not know, and tags of the Penn treebank, may be backticks."""
    said = "2 tokens are unknown, such as '`'; of test '``', too, and '`'; see `bakeoff prepare --help` (`-h`)"
    ((paragraph,),) = [[token.children for token in PARSER.parse(markdown.sentence(said)) if token.type == "inline"]]
    assert [token.content for token in paragraph if token.type == "code_inline"] == ["bakeoff prepare --help", "-h"]
    text = said.replace("`bakeoff prepare --help` (`-h`)", "bakeoff prepare --help (-h)")
    assert "".join(token.content for token in paragraph) == text
    page = items([said])
    assert page.count("<code>") == 2
    assert "&#x27;`&#x27;; of test &#x27;``&#x27;, too" in page
