"""Schemes of tags: the same spans by other letters, with types and without, in IOB1 as in BIO; comments among rows."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bakeoff.errors import UserError
from bakeoff.tasks.data import load_task
from bakeoff.tasks.kinds.tagging import TaggedSentence, TaggingConfig
from bakeoff.tasks.scores.spans import Span, are_spans, have_types, may_follow, span_scores, spans_of

LETTERS = {"BIO": "BIIB", "BIOES": "BIES", "BILOU": "BILU", "BMES": "BMES"}
"""The letters of each scheme for the first, an inner, the last and the only word of a span."""
CONFIG = TaggingConfig(train="train.conll")


def written(spans, length, scheme, types=True):
    """The tags of a sentence with these spans."""
    first, inner, last, only = LETTERS[scheme]
    tags = ["O"] * length
    for type, begin, end in spans:
        letters = [only] if end - begin == 1 else [first, *[inner] * (end - begin - 2), last]
        tags[begin:end] = [f"{letter}-{type}" if types else letter for letter in letters]
    return tags


def in_iob1(spans, length):
    """The tags of a sentence with these spans in IOB1."""
    tags = written(spans, length, "BIO")
    for type, begin, _ in spans:
        before = tags[begin - 1] if begin else "O"
        tags[begin] = f"{'B' if before.endswith(f'-{type}') else 'I'}-{type}"
    return tags


@st.composite
def sentences(draw):
    """The spans of a sentence in their order, and its length."""
    cuts = sorted(draw(st.sets(st.integers(0, 9), min_size=2)))
    spans = [Span(draw(st.sampled_from("XY")), one, other) for one, other in pairwise(cuts) if draw(st.booleans())]
    return spans, cuts[-1] + 1


@given(sentences(), st.sampled_from(sorted(LETTERS)), st.booleans())
def test_spans_of_every_scheme_are_those_that_were_written(sentence, scheme, types):
    spans, length = sentence
    tags = written(spans, length, scheme, types)
    assert list(spans_of(tags)) == [span if types else span._replace(type="") for span in spans]
    closed = scheme != "BIO"
    assert all(may_follow(before, tag, closed) for before, tag in pairwise(["O", *tags, "O"]))
    assert list(spans_of(in_iob1(spans, length))) == spans


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ("B-X I-X O", True),
        ("I-X O", True),
        ("S-X U-Y O", True),
        ("B-X M-X E-X S-X", True),
        ("B I O", True),
        ("B O", True),
        ("I O", True),
        ("B I", True),
        ("B M E S", True),
        ("B I L U O", True),
        ("B-X x", True),  # of which x is refused
        ("B S", False),
        ("S O", False),
        ("I", False),
        ("B I O X", False),
        ("B_X I_X O", False),
        ("PER O", False),
        ("NOUN VERB", False),
        ("S- M-p n", False),
        ("M-p n-s", False),
        ("O", False),
    ],
)
def test_what_marks_spans(tags, expected):
    assert are_spans(tags.split()) is expected
    assert have_types(["B-X", "O"]) is not have_types(["B", "O"])


def learned(*rows):
    examples = [TaggedSentence(n, tuple("abcdefgh"[: len(tags)]), tuple(tags)) for n, tags in enumerate(rows, 1)]
    return CONFIG.learn(examples, "train.conll"), examples


def test_the_words_of_chinese_have_an_f1():
    task, examples = learned(["B", "M", "E", "S"], ["S", "B", "E"])
    found = [["B", "E", "B", "E"], ["S", "B", "E"]]
    assert task.metric == "f1"
    assert task.score(examples, found) == pytest.approx(
        {"f1": 2 * 2 / (4 + 4), "precision": 0.5, "recall": 0.5, "accuracy": 4 / 7}, abs=1e-6
    )
    assert {name: score.count for name, score in task.score_labels(examples, found).items()} == {"span": 4}
    lines = [{"label": list(each.tags), "prediction": own} for each, own in zip(examples, found, strict=True)]
    assert CONFIG.contributions(lines, "f1").mean() == pytest.approx(0.5)
    restored = CONFIG.restore(task.labels, "labels.json")
    assert (restored.metric, restored.notes) == ("f1", ())
    with pytest.raises(
        UserError, match=r"the tag 'B-X' of the sentence that ends on line 3 is neither .* alone, as other"
    ):
        task.check([TaggedSentence(3, ("a",), ("B-X",))], "dev.conll", "train.conll")
    with pytest.raises(
        UserError, match=r"the tag 'B' of the sentence that ends on line 2 is neither .* with a type, as"
    ):
        learned(["B-X", "O"], ["B"])


@pytest.mark.parametrize("rows", [(["PER", "O"],), (["B_X", "O"],), (["B", "I", "O", "X"],)])
def test_tags_that_mark_no_spans_beside_o_are_told(rows):
    task, _ = learned(*rows)
    assert task.metric == "accuracy"
    assert [note.partition(",")[0] for note in task.notes] == ["the tags mark no spans"]
    with pytest.raises(UserError, match=r"the tags mark no spans, .*; give metric accuracy"):
        CONFIG.model_copy(update={"metric": "f1"}).learn([TaggedSentence(1, ("a", "b"), ("PER", "O"))], "t")
    assert not learned(["NOUN", "VERB"])[0].notes


def test_iob1_is_named_with_its_places_and_other_schemes_are_told_from_it():
    task, _ = learned(["I-X", "I-X", "B-X", "O", "I-X"], ["O", "I-Y", "I-X"])
    assert task.notes == [
        "the tags of train are IOB1: I- begins a span at 4 places (I-X at the beginning of a sentence 1, "
        "I-X after O 1, I-Y after O 1, I-X after I-Y 1), and B- one that follows another of its type; spans are read "
        "as conlleval does, by which I- begins one where none is open, and the model learns IOB1"
    ]
    assert not list(task.remarks([TaggedSentence(3, ("a", "b"), ("I-X", "B-X"))]))
    assert list(task.remarks([TaggedSentence(3, ("a", "b", "c"), ("B-X", "O", "B-X"))])) == [
        "2 tags stand where IOB1, the scheme of train, does not have them (B-X at the beginning of a sentence 1, B-X "
        "after O 1), the first in the sentence that ends on line 3: convert the files to one scheme"
    ]


def test_tags_out_of_place_are_counted_by_place_with_their_kinds():
    rows = [["B-X", "I-X"]] + [["O", "I-X"]] * 3 + [["I-X"], ["B-X", "I-Y"]]
    told = (
        "5 tags stand where BIO does not have them (I-X after O 3, I-X at the beginning of a sentence 1, I-Y after B-X "
        "1), the first in the sentence that ends on line 2: spans are read as conlleval does, by which I- begins one "
        "where none is open"
    )
    task, examples = learned(*rows)
    assert (task.notes, list(task.remarks(examples))) == ([f"train: {told}"], [told])
    task, _ = learned(["B-X", "E-X", "O"], ["B-X", "O"])
    assert task.notes[0].startswith("train: 1 tag stands where their scheme does not have it (O after B-X 1)")


def test_sixty_places_are_sixty(tmp_path):
    path = tmp_path / "a.conll"
    path.write_text("a\tI-X\nb\tO\n\n" * 19 + "a\tO\nb\tI-X\nc\tO\n\n" * 41)
    small = tmp_path / "b.conll"
    small.write_text("a\tI-X\nb\tO\n\n" * 3)
    (note,) = [each for each in load_task(TaggingConfig(train=path, dev=small, test=small)).notes if "IOB1" in each]
    assert "at 60 places (I-X after O 41, I-X at the beginning of a sentence 19)" in note


COMMENTS = [
    ("# 1\nthe DET\nold ADJ\n\n# 2\ncity NOUN\n", ["the old", "city"]),
    ("# sent_id = 1\n# text = x\nthe\tDET\n\n#newpar\na\tDET\n", ["the", "a"]),
    ("# 1\nthe\tDET\n\n# DET\na\tDET\n", ["the", "a"]),  # no tab, where rows have one
    ("# SYM\n1 NUM\n\na SYM\n", ["# 1", "a"]),
    ("a DET\n# #\n\n# #\n1 NUM\n", ["a #", "# 1"]),  # as the Penn Treebank has it
    ("#nlp O\nis O\n\n#a B-X\n#b B-X\nc B-X\n", ["#nlp is", "#a #b c"]),
    ("-DOCSTART- -X- O O\n\n# a comment\nEU NNP B-NP B-ORG\n\n", ["EU"]),
    ("# 1\n\nthe DET\n", ["the"]),
]


@pytest.mark.parametrize(("content", "expected"), COMMENTS)
@pytest.mark.parametrize("labelled", [True, False])
def test_comments_are_no_words_and_words_no_comments(content, expected, labelled, tmp_path):
    path = tmp_path / "a.conll"
    path.write_text(content)
    assert [" ".join(each.texts) for each in TaggingConfig(train=path).read(path, labelled)] == expected


def test_a_sign_in_a_file_of_words_alone_is_a_word(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("# sentence 1\n#\none\n\n#tag\nsaw\n")
    assert [each.texts for each in TaggingConfig(train=path).read(path, False)] == [("#", "one"), ("#tag", "saw")]


def test_precision_and_recall_of_nameless_spans():
    found = span_scores([["B", "I", "O", "B"]], [["B", "I", "B", "O"]])
    assert found == {"f1": 0.5, "precision": 0.5, "recall": 0.5}
