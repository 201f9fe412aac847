"""The words of a corpus are those of its text, whatever its tokens hold of them."""

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import sentences
from tokenizers import decoders, models, pre_tokenizers, trainers

from bakeoff.preparation.encoding.text_encoding import EncodingJob, encode_job
from bakeoff.preparation.prepare import prepare
from bakeoff.preparation.prepare_pairs import prepare_pairs
from bakeoff.reading.pieces import DOCUMENT, TextPiece
from bakeoff.tokenizer.tokenizer import Tokenizer
from bakeoff.tokenizer.tokenizer_config import TokenizerConfig


def _several_words_a_token(texts):
    """Byte-level BPE that merges across spaces."""
    inner = tokenizers.Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    inner.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    inner.train_from_iterator(
        texts, trainers.BpeTrainer(vocab_size=1000, initial_alphabet=alphabet, show_progress=False)
    )
    return Tokenizer(inner)


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    file = tmp_path_factory.mktemp("words") / "text.txt"
    file.write_text("".join(line + "\n" for line in sentences(300)), encoding="utf-8")
    return file


@pytest.mark.parametrize("kind", ["several words a token", "wordpiece", "unigram", "whitespace", "character"])
def test_words_are_what_white_space_separates(kind, text, tmp_path):
    if kind == "several words a token":
        tokenizer = tmp_path / "tokenizer.json"
        _several_words_a_token(sentences(300)).save(tokenizer)
    else:
        tokenizer = TokenizerConfig(kind=kind, size=120)
    corpus = prepare(text, tmp_path / "corpus", tokenizer=tokenizer, validation=0.2, workers=0, document_per_line=True)
    assert corpus.train.counts.words + corpus.validation.counts.words == 300 * 6
    if kind == "several words a token":
        assert corpus.train.counts.tokens < corpus.train.counts.words


def test_both_sides_of_pairs_count(text, tmp_path):
    options = {"tokenizer": TokenizerConfig(size=120), "validation": 0.2}
    pairs = prepare_pairs(text, _upper(text, tmp_path), tmp_path / "pairs", workers=0, **options)
    assert pairs.train.counts.words + pairs.validation.counts.words == 2 * 300 * 6


def _upper(text, folder):
    (folder / "upper.txt").write_text(text.read_text(encoding="utf-8").upper(), encoding="utf-8")
    return folder / "upper.txt"


@given(st.lists(st.text(alphabet="ab. \n房¼", max_size=20).map(lambda text: " ".join(text.split())), max_size=6))
@settings(max_examples=100, deadline=None)
def test_lines_count_their_words_and_their_ends(lines):
    tokenizer = Tokenizer.train(TokenizerConfig(kind="whitespace", size=30, end_of_line=True), ["a b. 房 ¼ ab"])
    job = EncodingJob(0, [(0, TextPiece(DOCUMENT, line)) for line in lines])
    encoded, nothing = encode_job(tokenizer, job)
    assert encoded.words == len(encoded.ids) == sum(len(line.split()) + 1 for line in lines)
    assert nothing.words == 0
