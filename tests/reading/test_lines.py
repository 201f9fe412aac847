"""Text that is cut into words already, whose lines are sentences: Penn Treebank, WikiText, the billion words."""

import unicodedata
from collections import Counter

import numpy as np
import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import models, pre_tokenizers

from bakeoff.errors import UserError
from bakeoff.preparation.prepare import prepare
from bakeoff.preparation.prepare_pairs import prepare_pairs
from bakeoff.reading.pieces import DOCUMENT
from bakeoff.reading.sources import SourceOptions, TextReader
from bakeoff.tokenizer import word_counts
from bakeoff.tokenizer.tokenizer import Tokenizer
from bakeoff.tokenizer.tokenizer_config import TokenizerConfig
from bakeoff.tokenizer.word_counts import WordCounts

WORDS = TokenizerConfig(kind="whitespace", size=5000)
LINES = TokenizerConfig(kind="whitespace", size=5000, end_of_line=True)
TREEBANK = [
    " mr. <unk> is chairman of <unk> n.v. the dutch publishing group ",
    " it 's a group of N analysts \\ he said @-@ $ N a share ",
]


def _tokens(lines):
    """What the benchmarks' own code makes of lines."""
    return [token for line in lines for token in [*line.split(), "\n"]]


def _all(corpus):
    return np.concatenate([corpus.train.tokens, corpus.validation.tokens])


def _spelt(tokenizer, ids):
    return ["<unk>" if i == tokenizer.unknown else tokenizer._inner.id_to_token(int(i)) for i in ids]


def test_white_space_alone_cuts_words_and_the_unknown_token_is_spelt():
    tokenizer = Tokenizer.train(WORDS, TREEBANK)
    ids, starts = tokenizer.encode([TREEBANK[1] + " @-@ <unk> other"])[0]
    assert _spelt(tokenizer, ids) == [*TREEBANK[1].split(), "@-@", "<unk>", "<unk>"]
    assert starts.all()
    assert tokenizer.end_of_line is None
    again = Tokenizer.from_string(tokenizer.to_string())
    assert again.unknown == tokenizer.unknown
    assert again.end_of_line is None


@given(st.lists(st.sampled_from(["a", "b", "N", "the", "mr.", "<unk>", "[SEP]"]), min_size=1, max_size=60))
@settings(max_examples=60, deadline=None)
def test_ids_fall_with_frequency_and_special_tokens_stay_words(words):
    tokenizer = Tokenizer.train(TokenizerConfig(kind="whitespace", size=20), [" ".join(words)])
    counts = Counter(word for word in words if word not in ("<unk>", "[SEP]"))
    expected = sorted(counts, key=lambda word: (-counts[word], word))
    assert [tokenizer._inner.id_to_token(i) for i in range(5, tokenizer.size)] == expected
    assert tokenizer._inner.token_to_id("<unk>") == tokenizer.unknown == 1


def test_what_does_not_fit_is_unknown_and_case_stays_unless_asked():
    text = [" ".join(f"w{i}" for i in range(30)) + " N N n"]
    small = Tokenizer.train(TokenizerConfig(kind="whitespace", size=15), text)
    assert small.size == 15
    assert small.encode(["N w29"])[0][0].tolist() == [5, small.unknown]
    lower = Tokenizer.train(TokenizerConfig(kind="whitespace", size=100, lowercase=True), text)
    assert len(set(lower.encode(["N n É e"])[0][0][:2])) == 1


def test_line_ends_are_tokens_and_come_out_as_line_breaks():
    tokenizer = Tokenizer.train(LINES, [line.strip() for line in TREEBANK])
    ids, _ = tokenizer.encode(["the group\n\na share\n"])[0]
    assert _spelt(tokenizer, ids) == ["the", "group", "\n", "\n", "a", "share", "\n"]
    assert tokenizer.decode(ids) == "the group\n\na share\n"
    assert Tokenizer.from_string(tokenizer.to_string()).end_of_line == tokenizer.end_of_line == ids[2]
    for kind in ("word", "unigram", "byte_bpe"):
        with pytest.raises(UserError, match="end_of_line"):
            TokenizerConfig.parse({"kind": kind, "end_of_line": True}, "recipe")


def test_characters_with_line_ends_are_those_of_the_text():
    tokenizer = Tokenizer.train(TokenizerConfig(kind="character", size=50, end_of_line=True), ["ab c", "d <unk>"])
    ids, _ = tokenizer.encode(["a <unk>\nb\n"])[0]
    assert _spelt(tokenizer, ids) == [*"a <unk>\nb\n"]
    assert tokenizer.decode(ids) == "a <unk>\nb\n"
    assert tokenizer.end_of_line is not None
    assert Tokenizer.train(TokenizerConfig(kind="character", size=50), ["ab c"]).end_of_line is None


def _words(pre_tokenizer, vocabulary=("[UNK]", "a", "b", "\n")):
    """A tokenizer.json of others, in whose vocabulary a line break is one of the words."""
    inner = tokenizers.Tokenizer(models.WordLevel({word: i for i, word in enumerate(vocabulary)}, unk_token="[UNK]"))
    inner.pre_tokenizer = pre_tokenizer
    return Tokenizer.from_string(inner.to_str())


def test_a_line_break_in_a_vocabulary_makes_no_lines():
    for pre_tokenizer in (pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Split(" ", "removed")):
        assert _words(pre_tokenizer).end_of_line is None
    paragraphs = Tokenizer.train(TokenizerConfig(kind="character", size=50), ["ab c", "\nd e"])
    ids, _ = paragraphs.encode(["ab\n d"])[0]
    assert _spelt(paragraphs, ids) == [*"ab\n d"]
    assert paragraphs.end_of_line is None
    assert Tokenizer.from_string(paragraphs.to_string()).end_of_line is None


def test_tokenizers_of_characters_from_before_lines_were_recorded_are_of_lines():
    old = pre_tokenizers.Split(tokenizers.Regex(r"[\s\S]"), "isolated")
    assert _words(old).end_of_line == 3


some_lines = st.lists(
    st.one_of(st.text(alphabet="ab .N<>\t\r", max_size=8), st.just(""), st.just(" = A Title . = ")), max_size=12
)


some_files = st.lists(
    st.tuples(some_lines, st.booleans(), st.sampled_from([("", ""), ("\n \n", "\n\n")])), min_size=1, max_size=24
)


@given(files=some_files)
@settings(max_examples=10, deadline=None)
def test_every_line_of_a_file_is_kept_in_its_order(tmp_path_factory, files):
    """Of many files at once: a corpus takes longer to be made than to be checked."""
    folder = tmp_path_factory.mktemp("lines")
    read = []
    for number, (lines, ended, (before, behind)) in enumerate(files):
        text = "\n".join([*["the first lines of a text"] * 9, *lines, f"some last words of {number} . No more"])
        content = before + text + "\n" * ended + ("\n" + behind if behind else "")
        (folder / f"{number:02}.txt").write_bytes(content.encode())
        read += content.removesuffix("\n").split("\n")
    corpus = prepare(folder, folder.with_name(f"{folder.name}-corpus"), tokenizer=LINES, validation=0.3, workers=0)
    splits = [corpus.train, corpus.validation]
    assert sorted(_spelt(corpus.tokenizer, _all(corpus))) == sorted(_tokens(read))
    assert sum(split.counts.lines for split in splits) == len(read)
    assert sum(split.bytes for split in splits) == sum(
        len(" ".join(unicodedata.normalize("NFC", line).split())) + 1 for line in read
    )
    for split in splits:  # each sentence is a line
        ends = split.tokens[np.asarray(split.sentences[1:]) - 1]
        assert (ends == corpus.tokenizer.end_of_line).all()
        assert len(ends) == np.count_nonzero(split.tokens == corpus.tokenizer.end_of_line)
        # And the lines of each part stand in the order of the text.
        rest = iter(_tokens([" ".join(unicodedata.normalize("NFC", line).split()) for line in read]))
        assert all(token in rest for token in _spelt(corpus.tokenizer, split.tokens))


def test_lines_of_each_format_and_of_documents(tmp_path):
    lines = [f" mr. w{i} said . He w{i} left . " if i % 3 else "" for i in range(1, 40)]
    (tmp_path / "a.txt").write_text("\n".join(lines) + "\n")
    (tmp_path / "b.jsonl").write_text('{"text": "mr. a said .\\n\\n N\\n"}\n{"text": "\\n"}\n{"text": "b\\nc"}\n')
    corpus = prepare([tmp_path / "a.txt", tmp_path / "b.jsonl"], tmp_path / "c", tokenizer=LINES, validation=0.2)
    expected = _tokens([*lines, "mr. a said .", "", "N", "b", "c"])
    assert sorted(_spelt(corpus.tokenizer, _all(corpus))) == sorted(expected)
    assert corpus.manifest.skips["empty documents"] == 1
    assert corpus.manifest.sentence_rule == "lines"
    options = {"tokenizer": corpus.path / "tokenizer.json", "validation": 0.2}  # a tokenizer brings the lines along
    each = prepare(tmp_path / "a.txt", tmp_path / "d", document_per_line=True, **options)
    assert each.manifest.originals == each.train.counts.lines + each.validation.counts.lines == 26
    separated = prepare(tmp_path / "a.txt", tmp_path / "e", document_separator="^ mr. w1 ", **options)
    expected = _tokens(line.removeprefix(" mr. w1 ") for line in lines)
    assert sorted(_spelt(separated.tokenizer, _all(separated))) == sorted(expected)


def test_a_long_line_is_one_sentence(tmp_path):
    line = "word " * 20_000
    (tmp_path / "a.txt").write_text(f"{line}\nshort . Line\n" * 3)
    corpus = prepare(tmp_path / "a.txt", tmp_path / "c", tokenizer=LINES, validation=0.3)
    lengths = np.concatenate([np.diff(split.sentences) for split in (corpus.train, corpus.validation)])
    assert sorted(lengths.tolist()) == [4, 4, 4, 20_001, 20_001, 20_001]


def test_the_vocabulary_counts_the_whole_text(tmp_path):
    (tmp_path / "a.txt").write_text("".join(f"line w{i} x\n" for i in range(400)))
    corpus = prepare(tmp_path / "a.txt", tmp_path / "c", tokenizer=LINES, tokenizer_sample=100)
    assert corpus.manifest.vocabulary == 5 + 3 + 400
    assert corpus.tokenizer.unknown not in _all(corpus)
    assert corpus.manifest.tokenizer_sample["paragraphs"] == 400


def test_rare_words_are_forgotten_where_there_are_too_many(monkeypatch):
    monkeypatch.setattr(word_counts, "MOST_WORDS", 10)
    counts = WordCounts(f"often w{i} also" for i in range(100))
    assert len(counts.words()) <= 11
    assert counts.words()["often"] == counts.words()["also"] == 100
    assert len(counts) == 100


def test_lines_have_no_place_in_pairs(tmp_path):
    (tmp_path / "a").write_text("x\nz\nw\n" * 9)
    (tmp_path / "b").write_text("y\n" * 27)
    with pytest.raises(UserError, match="end_of_line"):
        prepare_pairs(tmp_path / "a", tmp_path / "b", tmp_path / "c", tokenizer=LINES)
    pairs = prepare_pairs(
        tmp_path / "a", tmp_path / "b", tmp_path / "c", tokenizer=TokenizerConfig(kind="whitespace", size=20)
    )
    assert pairs.manifest.vocabulary == 9


@pytest.mark.parametrize("end", ["\n", "\r\n", ""])
def test_a_separator_at_the_end_of_a_line_leaves_no_line_of_its_own(tmp_path, end):
    (tmp_path / "a.txt").write_bytes(f"one<sep>{end or chr(10)}two<sep>{end}".encode())
    pieces = TextReader([tmp_path / "a.txt"], SourceOptions(document_separator="<sep>"), lines=True)
    assert [(piece.opens, piece.text) for piece in pieces] == [(DOCUMENT, "one"), (DOCUMENT, "two")]
