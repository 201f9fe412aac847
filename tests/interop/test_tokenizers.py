"""Tokenizers of others give the ids that they give in transformers, whichever files they are published as."""

import json

import pytest

import bakeoff
from bakeoff.errors import UserError
from bakeoff.generation.text_around_masks import encoded_around
from bakeoff.interop.tokenizer_files import TokenizerSettings, write_tokenizer
from bakeoff.tokenizer.identity import identity_of
from bakeoff.tokenizer.tokenizer import Tokenizer
from bakeoff.tokenizer.tokenizer_config import TokenizerConfig
from tests.interop.elsewhere import write_byte_bpe, write_wordpiece

transformers = pytest.importorskip("transformers")

PAGE = """The model reads THE models, and reading isn't hard: e.g. "it's", don't; 3,141.59 (café, naïve, Zürich).
中文字和English混在一起，かな、カタカナ。模型读文字！
النموذج يقرأ النصوص العربية، وهذا مثال قصير؟
Emoji 😀 👩‍👩‍👧 🇩🇪 ❤️ end.
def model(a, b): return {"a": a ** 2, 'b': b[0] != None}  # the  model
"""
LINES = [line for line in PAGE.splitlines() if line]
SIZES = {"hidden_size": 12, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}


def same_ids(folder, out):
    theirs = transformers.AutoTokenizer.from_pretrained(folder)
    ours = bakeoff.import_model(folder, out).tokenizer
    for line, (ids, *_) in zip(LINES, ours.encode(LINES), strict=True):
        assert list(ids) == theirs(line, add_special_tokens=False)["input_ids"], line


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"do_lower_case": True},
        {"do_lower_case": False},
        {"do_lower_case": True, "tokenize_chinese_chars": False},
        {"do_lower_case": False, "strip_accents": True},
    ],
    ids=str,
)
def test_bert_with_vocab_txt_alone(settings, tmp_path):
    transformers.utils.logging.disable_progress_bar()
    folder = tmp_path / "theirs"
    folder.mkdir()
    rows = write_wordpiece(folder)
    no_ends = ["\u2028", "\x85"]  # ends of lines to Python alone
    more = [*"TE0123456789:;()\"'!？،ابتثنمق", *no_ends, "cafe"]
    words = (folder / "vocab.txt").read_text(encoding="utf-8") + "\n".join(more)
    (folder / "vocab.txt").write_text(words + "\n", encoding="utf-8")
    rows = len(words.split("\n"))
    config = transformers.BertConfig(vocab_size=rows, max_position_embeddings=40, **SIZES)
    transformers.BertForMaskedLM(config).save_pretrained(folder)
    if settings:
        said = {"tokenizer_class": "BertTokenizer", **settings}
        (folder / "tokenizer_config.json").write_text(json.dumps(said))
    same_ids(folder, tmp_path / "run")


@pytest.mark.parametrize("settings", [{}, {"add_prefix_space": True}], ids=str)
def test_roberta_with_vocab_json_and_merges_txt(settings, tmp_path):
    transformers.utils.logging.disable_progress_bar()
    folder = tmp_path / "theirs"
    folder.mkdir()
    sizes = {**SIZES, "type_vocab_size": 1, "pad_token_id": 1, "max_position_embeddings": 42}
    config = transformers.RobertaConfig(vocab_size=write_byte_bpe(folder), **sizes)
    transformers.RobertaForMaskedLM(config).save_pretrained(folder)
    if settings:
        said = {"tokenizer_class": "RobertaTokenizer", **settings}
        (folder / "tokenizer_config.json").write_text(json.dumps(said))
    same_ids(folder, tmp_path / "run")


def with_tokens(folder, form, first):
    """Two tokens after a vocabulary, as transformers 4 writes them for tokenizers in Python, old or new."""
    if form == "added_tokens.json":
        (folder / form).write_text(json.dumps({"naïve": first, "Emoji end": first + 1}))
        return
    flags = dict.fromkeys(("lstrip", "rstrip", "single_word", "special"), False) | {"normalized": True}
    added = {str(first): {"content": "naïve", **flags}, str(first + 1): {"content": "English", **flags}}
    (folder / "tokenizer_config.json").write_text(json.dumps({"added_tokens_decoder": added}))


@pytest.mark.parametrize("form", ["added_tokens.json", "tokenizer_config.json"])
@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_tokens_that_were_added_to_a_vocabulary(family, form, tmp_path):
    transformers.utils.logging.disable_progress_bar()
    folder = tmp_path / "theirs"
    folder.mkdir()
    if family == "bert":
        rows = write_wordpiece(folder)
        config = transformers.BertConfig(vocab_size=rows + 2, max_position_embeddings=40, **SIZES)
        transformers.BertForMaskedLM(config).save_pretrained(folder)
    else:
        rows = write_byte_bpe(folder)
        sizes = {**SIZES, "type_vocab_size": 1, "pad_token_id": 1, "max_position_embeddings": 42}
        transformers.RobertaForMaskedLM(transformers.RobertaConfig(vocab_size=rows + 2, **sizes)).save_pretrained(
            folder
        )
    with_tokens(folder, form, rows)
    same_ids(folder, tmp_path / "run")
    (ids, _), *_ = Tokenizer.load(tmp_path / "run").encode(["a naïve model"])
    assert rows in ids
    with_tokens(folder, form, rows + 1)
    with pytest.raises(UserError, match=rf"the added token 'naïve' has the id {rows + 1}, and after its .* {rows};"):
        bakeoff.import_model(folder, tmp_path / "other")


@pytest.mark.parametrize("family", ["albert", "xlnet", "t5"])
def test_a_model_of_sentencepiece(family, tmp_path):
    """sentencepiece itself cuts the same."""
    library = pytest.importorskip("sentencepiece")
    from bakeoff.interop.hugging_face.sentencepiece import unigram_of

    lines = [*LINES, *(f"the model {n} reads texts of {n + 1} words, and more of them" for n in range(300))]
    (tmp_path / "text.txt").write_text("\n".join(lines), encoding="utf-8")
    symbols = {"albert": "[CLS],[SEP],[MASK]", "xlnet": "<cls>,<sep>,<mask>", "t5": "<extra_id_0>"}[family]
    library.SentencePieceTrainer.train(
        input=str(tmp_path / "text.txt"),
        model_prefix=str(tmp_path / "spiece"),
        vocab_size=250,
        hard_vocab_limit=False,
        pad_id=3,
        user_defined_symbols=symbols.split(","),
        normalization_rule_name="nmt_nfkc",
        character_coverage=1.0,
        minloglevel=2,
    )
    settings = {"do_lower_case": False, "keep_accents": True}
    text = unigram_of((tmp_path / "spiece.model").read_bytes(), "spiece.model", settings, family)
    ours = Tokenizer.from_string(text, "spiece.model")
    theirs = library.SentencePieceProcessor(model_file=str(tmp_path / "spiece.model"))
    for line, (ids, *_) in zip(LINES, ours.encode(LINES), strict=True):
        assert list(ids) == theirs.encode(line.replace("''", '"')), line


@pytest.mark.parametrize("kind", ["unigram", "wordpiece", "byte_bpe"])
def test_a_space_before_a_mask_belongs_to_it_as_in_fill(kind, tmp_path):
    """Alone it would be a token that no text has there."""
    text = "The old river and the green stone: the window is open."
    size = {"byte_bpe": 400}.get(kind, 100)
    tokenizer = Tokenizer.train(TokenizerConfig(kind=kind, size=size), [f"{text} {text}"] * 50)
    write_tokenizer(tokenizer, tmp_path, TokenizerSettings("start", 64, False))
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    for word in ("old", "river", "green", "window"):
        before, behind = encoded_around(text.split(word), tokenizer)
        ids = theirs(text.replace(word, theirs.mask_token), add_special_tokens=False)["input_ids"]
        assert ids == [*before.tolist(), tokenizer.mask, *behind.tolist()]


@pytest.mark.parametrize("kind", ["unigram", "wordpiece", "byte_bpe"])
def test_white_space_of_every_kind_is_read_as_the_run_reads_it(kind, tmp_path):
    tokenizer = Tokenizer.train(TokenizerConfig(kind=kind, size=400), LINES * 20)
    write_tokenizer(tokenizer, tmp_path, TokenizerSettings("start", None))
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    spaces = [chr(code) for code in range(0x3001) if chr(code).isspace()]
    assert {"\x1c", "\x1f", "\x85", "\u2028", "\u3000"} <= set(spaces)
    expected = theirs("the river", add_special_tokens=False)["input_ids"]
    for space in spaces:
        assert theirs(f"the{space}river", add_special_tokens=False)["input_ids"] == expected, repr(space)
    assert expected == list(tokenizer.encode(["the river"])[0][0])


@pytest.mark.parametrize("lowercase", [False, True])
def test_words_without_an_end_have_the_same_ids_after_an_export(lowercase, tmp_path):
    words = ["ACGT" * 40 + "A", "กขคงจฉช" * 30, "x" * 100, "x" * 101, "http://a.org/" + "aB3" * 120]
    tokenizer = Tokenizer.train(TokenizerConfig(kind="wordpiece", size=300, lowercase=lowercase), [*LINES, *words])
    write_tokenizer(tokenizer, tmp_path, TokenizerSettings("start", None))
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    for text, (ids, *_) in zip(words, tokenizer.encode(words), strict=True):
        assert list(ids) == theirs(text, add_special_tokens=False)["input_ids"]
        assert tokenizer.unknown not in ids
    assert tokenizer.hidden(words).hidden == 0


@pytest.mark.parametrize("kind", ["unigram", "wordpiece", "byte_bpe", "char_bpe", "character"])
def test_the_tokenizer_of_an_export_has_the_identity_of_the_run_s_and_of_no_other(kind, tmp_path):
    """So that a corpus of the run is one of its export, once it is imported again."""
    config = TokenizerConfig(kind=kind, size={"byte_bpe": 400}.get(kind, 200))
    tokenizer = Tokenizer.train(config, LINES * 20)
    write_tokenizer(tokenizer, tmp_path, TokenizerSettings("start", 64))
    exported = Tokenizer.load(tmp_path)
    assert exported.to_string() != tokenizer.to_string()
    assert identity_of(exported) == identity_of(tokenizer)
    other = Tokenizer.train(config, LINES[1:] * 20)
    assert identity_of(other) != identity_of(tokenizer)
    state = json.loads(tokenizer.to_string())
    state["normalizer"] = {"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Lowercase"}]}
    assert identity_of(Tokenizer.from_string(json.dumps(state))) != identity_of(tokenizer)
