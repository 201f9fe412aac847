"""Spans in tags against conlleval's own rules, written down as its code has them."""

from hypothesis import given
from hypothesis import strategies as st

from bakeoff.tasks.reading.texts_with_spans import spans_in_text, tagged_words
from bakeoff.tasks.scores.spans import Span, may_follow, span_counts, spans_of, type_counts

TAGS = ["O", *(f"{prefix}-{type}" for prefix in "BIES" for type in ("X", "Y"))]
SENTENCES = st.lists(st.sampled_from(TAGS), max_size=9)


def parts(tag):
    return (tag[0], tag[2:])


def ends(before, tag):
    """conlleval's endOfChunk: whether a span ends between two tags."""
    (prefix_before, type_before), (prefix, type) = parts(before), parts(tag)
    if prefix_before in "ES" or (prefix_before in "BI" and prefix in "BSO"):
        return True
    return prefix_before != "O" and type_before != type


def begins(before, tag):
    """conlleval's startOfChunk: whether a span begins with the second of two tags."""
    (prefix_before, type_before), (prefix, type) = parts(before), parts(tag)
    if prefix in "BS" or (prefix_before in "ESO" and prefix in "EI"):
        return True
    return prefix != "O" and type_before != type


def by_conlleval(tags):
    found, first = [], None
    for place, (before, tag) in enumerate(zip(["O", *tags], [*tags, "O"], strict=True)):
        if first is not None and ends(before, tag):
            found.append(Span(parts(before)[1], first, place))
            first = None
        if begins(before, tag):
            first = place
    return found


@given(SENTENCES)
def test_spans_are_those_of_conlleval(tags):
    assert list(spans_of(tags)) == by_conlleval(tags)


@given(SENTENCES)
def test_bilou_is_bioes_with_other_letters(tags):
    other = [tag.replace("E-", "L-").replace("S-", "U-") for tag in tags]
    assert list(spans_of(other)) == list(spans_of(tags))


@given(st.lists(st.lists(st.tuples(st.sampled_from(TAGS), st.sampled_from(TAGS)), max_size=9), min_size=1, max_size=4))
def test_counts_of_types_add_up_to_those_of_all_spans(rows):
    """Also of types that are predicted and never right."""
    true, found = ([[pair[side] for pair in row] for row in rows] for side in (0, 1))
    by_type = type_counts(true, found)
    for name in ("right", "wanted", "given"):
        every = getattr(span_counts(true, found), name).sum()
        assert sum(getattr(each, name) for each in by_type.values()) == every


@given(SENTENCES)
def test_tags_that_may_follow_each_other_in_bioes_close_what_they_open(tags):
    """A sentence of legal moves has a span for each S and for each B with its E, and no tag outside of them."""
    moves = zip(["O", *tags], [*tags, "O"], strict=True)
    legal = all(may_follow(before, tag, closed=True) for before, tag in moves)
    inside, right = "", True
    for prefix, type in map(parts, tags):
        if prefix in "IE":
            right &= inside == type
        else:
            right &= not inside
        inside = type if prefix in "BI" else ""
    assert legal == (right and not inside)


TEXT = "One two-three, fourteen; five (six)"


@given(st.lists(st.integers(0, len(TEXT)), max_size=8, unique=True), st.data())
def test_spans_in_a_text_are_read_from_its_tags_again(cuts, data):
    """Also those that touch each other and have one label, and those that begin or end inside of a word."""
    pairs = zip(sorted(cuts)[:-1], sorted(cuts)[1:], strict=True)
    spans = [
        {"start": start, "end": end, "label": data.draw(st.sampled_from("XY"))}
        for start, end in pairs
        if TEXT[start:end] == TEXT[start:end].strip() and data.draw(st.booleans())
    ]
    found = tagged_words(TEXT, spans, "here")
    assert spans_in_text(found.tags, found.offsets) == spans
    assert [TEXT[begin:end] for begin, end in found.offsets] == list(found.words)
