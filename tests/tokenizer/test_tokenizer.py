import json
import random

import numpy as np
import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st

from bakeoff.errors import UserError
from bakeoff.tokenizer.tokenizer import Tokenizer, TwoVocabularies
from bakeoff.tokenizer.tokenizer_config import TokenizerConfig
from bakeoff.tokenizer.training import LINE_PATTERN

KINDS = ["wordpiece", "byte_bpe", "char_bpe", "unigram", "word", "whitespace", "character"]
ENGLISH = [
    "The cat sat on the mat, and the dog sat on the cat.",
    "It's a well-known story: cats don't like dogs (3.14 times out of 10).",
    "Ångström and naïve café visitors paid 20 € for the well-known story.",
]
CHINESE = ["房间很大，服务也不错。", "这本书我看了三遍，还是觉得很好！", "电池还可以，外形很漂亮。"]
TEXTS = [*ENGLISH, *CHINESE] * 5

any_text = st.one_of(
    st.text(max_size=60),
    st.text(alphabet="ab .,'-\n\t房间很大。，שלוםعربي🎉👩‍👩‍👧é̄[MASK]<s>", max_size=60),
    st.lists(st.sampled_from([*" \n", "[MASK]", "[SEP]", "[PAD]", "cat", "房", "🎉", "a[CLS]b"]), max_size=12).map(
        "".join
    ),
)


@pytest.fixture(scope="module")
def trained() -> dict[str, Tokenizer]:
    return {kind: Tokenizer.train(TokenizerConfig(kind=kind, size=400), iter(TEXTS)) for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS)
def test_special_tokens_come_first(trained, kind):
    tokenizer = trained[kind]
    assert (tokenizer.pad, tokenizer.unknown, tokenizer.start, tokenizer.separator, tokenizer.mask) == (0, 1, 2, 3, 4)
    assert tokenizer.special_ids.tolist() == [0, 1, 2, 3, 4]
    assert 5 < tokenizer.size <= 400


@pytest.mark.parametrize("kind", KINDS)
def test_training_is_deterministic(kind):
    generator = random.Random(1)
    words = ["".join(generator.choices("abcdefgh", k=generator.randint(1, 6))) for _ in range(300)]
    texts = [" ".join(generator.choices(words, k=20)) for _ in range(100)] + CHINESE
    first, second = (Tokenizer.train(TokenizerConfig(kind=kind, size=300), iter(texts)).to_string() for _ in range(2))
    assert first == second


@pytest.mark.parametrize("kind", KINDS)
@given(text=any_text)
@settings(max_examples=60, deadline=None)
def test_encoding_any_text(trained, kind, text):
    tokenizer = trained[kind]
    (ids, starts), _ = tokenizer.encode([text, "cat"])
    assert ids.shape == starts.shape
    assert ids.dtype == np.int64
    assert starts.dtype == bool
    assert not np.isin(ids, [0, 2, 3, 4]).any()
    if len(ids):
        assert starts[0]
    if kind == "byte_bpe":
        assert tokenizer.decode(ids) == text


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "character"])
@given(texts=st.lists(any_text, max_size=4))
@settings(max_examples=60, deadline=None)
def test_encoding_word_by_word_equals_encoding_whole(trained, kind, texts):
    encoder = trained[kind]._encoder
    by_word, whole = encoder.encode(texts), encoder._encode(texts)
    assert by_word.packed == whole.packed
    assert by_word.hidden.tolist() == whole.hidden.tolist()


def test_joined_encoding_is_the_concatenation(trained):
    tokenizer = trained["wordpiece"]
    texts = ["the cat", "", "房间 dog"]
    ids, starts, lengths, _ = tokenizer.encode_joined(texts)
    single = tokenizer.encode(texts)
    assert np.array_equal(ids, np.concatenate([one for one, _ in single]))
    assert np.array_equal(starts, np.concatenate([one for _, one in single]))
    assert lengths.tolist() == [len(one) for one, _ in single]


@pytest.mark.parametrize("kind", ["wordpiece", "byte_bpe", "char_bpe", "unigram", "whitespace", "character"])
def test_words_are_what_whitespace_separates(trained, kind):
    text = "The cat, unbelievable-ish dog's mat!"
    _, starts = trained[kind].encode([text])[0]
    assert starts.sum() == len(text.split())


@pytest.mark.parametrize("kind", ["wordpiece", "byte_bpe", "unigram", "character"])
def test_each_chinese_character_is_a_word(trained, kind):
    tokenizer = trained[kind]
    ids, starts = tokenizer.encode(["我龘电"])[0]
    if kind == "unigram":  # its pieces hold several characters, and a lone space opens the text
        assert starts[0]
    else:
        assert starts.sum() == 3
        assert kind == "byte_bpe" or len(ids) == 3


def test_lowercase_strips_accents():
    for kind in ("wordpiece", "byte_bpe", "unigram", "character"):
        texts = [*TEXTS, *["words without marks, of which most texts are made"] * 50]
        tokenizer = Tokenizer.train(TokenizerConfig(kind=kind, size=400, lowercase=True), texts)
        upper, lower = tokenizer.encode(["CAFÉ cat", "cafe cat"])
        assert np.array_equal(upper[0], lower[0])


@pytest.mark.parametrize("kind", KINDS)
def test_save_and_load(trained, kind, tmp_path):
    trained[kind].save(tmp_path / "tokenizer.json")
    loaded = Tokenizer.load(tmp_path)
    assert loaded.size == trained[kind].size
    for (a, b), (c, d) in zip(loaded.encode(TEXTS), trained[kind].encode(TEXTS), strict=True):
        assert np.array_equal(a, c)
        assert np.array_equal(b, d)


def _foreign(model, **kwargs) -> tokenizers.Tokenizer:
    inner = tokenizers.Tokenizer(model)
    inner.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    for name, value in kwargs.items():
        setattr(inner, name, value)
    return inner


def test_loading_a_foreign_tokenizer(tmp_path):
    vocabulary = {"<s>": 0, "</s>": 1, "<pad>": 2, "<unk>": 3, "cat": 4, "[x": 5}
    inner = _foreign(tokenizers.models.WordLevel(vocabulary, unk_token="<unk>"))
    inner.enable_padding(length=10)
    inner.enable_truncation(2)
    inner.post_processor = tokenizers.processors.BertProcessing(("</s>", 1), ("<s>", 0))
    inner.save(str(tmp_path / "t.json"))
    tokenizer = Tokenizer.load(tmp_path / "t.json")
    assert (tokenizer.start, tokenizer.separator, tokenizer.pad, tokenizer.unknown) == (0, 1, 2, 3)
    assert tokenizer.mask == 6  # added at the end
    assert tokenizer.size == 7
    assert tokenizer.encode(["cat cat cat"])[0][0].tolist() == [4, 4, 4]
    # The model itself finds `<s>` between spaces; it is text all the same.
    assert not np.isin(tokenizer.encode(["cat <s> cat <mask>"])[0][0], [0, 1, 2, 6]).any()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lowercase", [False, True])
def test_a_tokenizer_knows_the_settings_that_made_it(kind, lowercase, tmp_path):
    end_of_line = lowercase and kind in ("whitespace", "character")
    config = TokenizerConfig(kind=kind, size=400, lowercase=lowercase, end_of_line=end_of_line)
    tokenizer = Tokenizer.train(config, iter(TEXTS))
    tokenizer.save(tmp_path / "tokenizer.json")
    for each in (tokenizer, Tokenizer.load(tmp_path)):
        assert each.config == config.model_copy(update={"size": tokenizer.size})


def test_tokenizers_of_others_are_of_the_nearest_kind(trained):
    inner = _foreign(tokenizers.models.WordLevel({"<unk>": 0, "cat": 1, "\n": 2}, unk_token="<unk>"))
    inner.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    found = Tokenizer(inner).config
    assert (found.kind, found.end_of_line) == ("word", False)
    inner.pre_tokenizer = tokenizers.pre_tokenizers.Split(tokenizers.Regex(LINE_PATTERN), "removed", invert=True)
    found = Tokenizer(inner).config  # the line end is a token, which a kind must have that is read back
    assert (found.kind, found.end_of_line) == ("whitespace", True)
    for lines in (True, False):
        made = Tokenizer.train(TokenizerConfig(kind="character", size=50, end_of_line=lines), ["ab c", "\nd e"])
        assert (made.config.kind, made.config.end_of_line) == ("character", lines)
    inner = tokenizers.Tokenizer(tokenizers.models.BPE({"a": 0, "b": 1}, []))
    assert Tokenizer(inner).config == TokenizerConfig(kind="char_bpe", size=7 - 1)  # four special tokens are added
    steps = [tokenizers.pre_tokenizers.Digits(), tokenizers.pre_tokenizers.ByteLevel()]
    inner.pre_tokenizer = tokenizers.pre_tokenizers.Sequence(steps)
    inner.normalizer = tokenizers.normalizers.Sequence([tokenizers.normalizers.Lowercase()])
    found = Tokenizer(inner).config
    assert (found.kind, found.lowercase) == ("byte_bpe", True)
    two = TwoVocabularies(trained["unigram"], trained["word"])
    assert two.config == trained["unigram"].config.model_copy(update={"size": two.size})


def test_byte_bpe_of_others_has_no_unknown(trained, tmp_path):
    state = json.loads(trained["byte_bpe"].to_string())
    state["added_tokens"] = []
    for i, name in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]):
        del state["model"]["vocab"][name]
        state["model"]["vocab"]["<|endoftext|>" if i == 0 else f"unused{i}"] = i
    (tmp_path / "t.json").write_text(json.dumps(state))
    tokenizer = Tokenizer.load(tmp_path / "t.json")
    assert tokenizer.unknown is None
    assert tokenizer.separator == 0
    assert tokenizer.decode(tokenizer.encode(["<|endoftext|> 房🎉"])[0][0]) == "<|endoftext|> 房🎉"


@pytest.mark.parametrize(("name", "content"), [("absent.json", None), ("broken.json", "{"), ("other.json", '{"a": 1}')])
def test_a_bad_file_is_named(tmp_path, name, content):
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(UserError, match=name):
        Tokenizer.load(tmp_path / name)


def test_what_cannot_be_trained():
    with pytest.raises(UserError, match="too small"):
        Tokenizer.train(TokenizerConfig(kind="byte_bpe", size=100), TEXTS)
    with pytest.raises(UserError, match="empty"):
        Tokenizer.train(TokenizerConfig(), [" ", ""])


@pytest.mark.parametrize("kind", ["wordpiece", "char_bpe", "unigram", "character"])
def test_many_characters_do_not_burst_the_vocabulary(kind):
    texts = ["".join(chr(0x4E00 + (7 * i + j) % 900) for j in range(40)) for i in range(200)]
    assert Tokenizer.train(TokenizerConfig(kind=kind, size=300), texts).size <= 300
