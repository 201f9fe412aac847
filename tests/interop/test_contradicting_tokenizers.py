"""Files of a published tokenizer that contradict each other give the ids of transformers, or a remark."""

import json

import pytest
import tokenizers
from tokenizers import AddedToken, models, normalizers, pre_tokenizers, processors

import bakeoff
from bakeoff.tokenizer.tokenizer import Tokenizer
from tests.interop.elsewhere import write_byte_bpe, write_unigram, write_wordpiece

transformers = pytest.importorskip("transformers")

TEXTS = ["The model reads", "the Café, naïve MODEL", "中文字 the model.", " model"]
SIZES = {"hidden_size": 12, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}


@pytest.fixture
def folder(tmp_path):
    transformers.utils.logging.disable_progress_bar()
    folder = tmp_path / "theirs"
    folder.mkdir()
    return folder


def write_settings(folder, **settings):
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))


def write_bert(folder, normalizer, cls="BertForMaskedLM", config="BertConfig"):
    """A BERT with tokenizer.json and without vocab.txt."""
    write_wordpiece(folder)
    words = [*(folder / "vocab.txt").read_text(encoding="utf-8").splitlines(), *"TMCODEL", "ï", "é", "##é", "##ï"]
    (folder / "vocab.txt").unlink()
    inner = tokenizers.Tokenizer(
        models.WordPiece({word: number for number, word in enumerate(words)}, unk_token="[UNK]")
    )
    inner.normalizer = normalizer
    inner.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    inner.add_special_tokens(words[:5])
    inner.save(str(folder / "tokenizer.json"))
    sizes = SIZES if config != "DistilBertConfig" else {"dim": 12, "n_layers": 1, "n_heads": 2, "hidden_dim": 16}
    made = getattr(transformers, config)(vocab_size=len(words), max_position_embeddings=40, **sizes)
    getattr(transformers, cls)(made).save_pretrained(folder)


def write_roberta(folder, prefix, more=()):
    """A RoBERTa with tokenizer.json and without vocab.json."""
    write_byte_bpe(folder)
    inner = tokenizers.Tokenizer(
        models.BPE.from_file(str(folder / "vocab.json"), str(folder / "merges.txt"), fuse_unk=False)
    )
    for name in ("vocab.json", "merges.txt"):
        (folder / name).unlink()
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix)
    inner.add_special_tokens(["<s>", "<pad>", "</s>", "<unk>", AddedToken("<mask>", lstrip=True), *more])
    inner.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    inner.save(str(folder / "tokenizer.json"))
    config = transformers.RobertaConfig(
        vocab_size=inner.get_vocab_size(), type_vocab_size=1, pad_token_id=1, max_position_embeddings=42, **SIZES
    )
    transformers.RobertaForMaskedLM(config).save_pretrained(folder)


def imported(folder, out):
    """The run and its remarks; its ids are those of transformers."""
    run = bakeoff.import_model(folder, out)
    theirs = transformers.AutoTokenizer.from_pretrained(folder)
    for text, (ids, _) in zip(TEXTS, run.tokenizer.encode(TEXTS), strict=True):
        assert list(ids) == theirs(text, add_special_tokens=False)["input_ids"], text
    return run, run.environment["imported"]["remarks"]


@pytest.mark.parametrize(
    ("normalizer", "settings", "said"),
    [
        ({"lowercase": True}, {"tokenizer_class": "BertTokenizer", "do_lower_case": False}, "do_lower_case false"),
        ({"lowercase": False}, {"tokenizer_class": "BertTokenizerFast", "do_lower_case": True}, "do_lower_case true"),
        ({"lowercase": False}, {"tokenizer_class": "BertTokenizer"}, "by default do_lower_case true"),
        ({"lowercase": False}, None, "by default do_lower_case true"),
        ({"lowercase": True}, {"strip_accents": False}, "says strip_accents false"),
        ({"handle_chinese_chars": False}, {}, "by default tokenize_chinese_chars true"),
        ({"lowercase": False}, {"tokenizer_class": "PreTrainedTokenizerFast", "do_lower_case": True}, None),
        ({"lowercase": True}, {"tokenizer_class": "BertTokenizer", "do_lower_case": True}, None),
        ({"strip_accents": True}, {"tokenizer_class": "BertTokenizer"}, None),
    ],
    ids=str,
)
@pytest.mark.parametrize("family", ["Bert", "DistilBert"])
def test_steps_of_bert(family, normalizer, settings, said, folder, tmp_path):
    write_bert(folder, normalizers.BertNormalizer(**normalizer), f"{family}ForMaskedLM", f"{family}Config")
    if settings is not None:
        write_settings(folder, **settings)
    _, remarks = imported(folder, tmp_path / "run")
    assert any(said in remark for remark in remarks) if said else not any("tokenizer" in each for each in remarks)


@pytest.mark.parametrize(
    ("there", "settings", "said"),
    [
        (False, {"tokenizer_class": "RobertaTokenizer", "add_prefix_space": True}, "says add_prefix_space true"),
        (True, {"tokenizer_class": "RobertaTokenizer"}, "by default add_prefix_space false"),
        (True, {"tokenizer_class": "PreTrainedTokenizerFast"}, None),
        (True, {"add_prefix_space": True}, None),
    ],
    ids=str,
)
def test_a_space_before_texts(there, settings, said, folder, tmp_path):
    write_roberta(folder, there)
    write_settings(folder, **settings)
    _, remarks = imported(folder, tmp_path / "run")
    assert any(said in remark for remark in remarks) if said else remarks == []


def test_other_steps_than_those_of_the_class_are_remarked(folder, tmp_path):
    write_bert(folder, normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()]))
    run = bakeoff.import_model(folder, tmp_path / "run")
    assert any("ids may differ" in remark for remark in run.environment["imported"]["remarks"])


def test_albert_s_accents_are_remarked(folder, tmp_path):
    rows = write_unigram(folder)
    config = transformers.AlbertConfig(vocab_size=rows, embedding_size=6, max_position_embeddings=40, **SIZES)
    transformers.AlbertForMaskedLM(config).save_pretrained(folder)
    run = bakeoff.import_model(folder, tmp_path / "run")
    (remark,) = [each for each in run.environment["imported"]["remarks"] if "keep_accents" in each]
    assert "follows tokenizer.json" in remark
    write_settings(folder, tokenizer_class="AlbertTokenizer", keep_accents=True)
    run = bakeoff.import_model(folder, tmp_path / "again")
    assert not any("tokenizer" in each for each in run.environment["imported"]["remarks"])


@pytest.mark.parametrize("processor", [True, False])
def test_a_separator_that_was_added_to_a_roberta_ends_no_rows(processor, folder, tmp_path):
    write_roberta(folder, False, ["[CLS]", "[SEP]"])
    if not processor:
        state = json.loads((folder / "tokenizer.json").read_text())
        (folder / "tokenizer.json").write_text(json.dumps({**state, "post_processor": None}))
    run, remarks = imported(folder, tmp_path / "run")
    assert (run.tokenizer.start, run.tokenizer.separator) == (0, 2)
    again = Tokenizer.load(tmp_path / "run")
    assert (again.start, again.separator) == (0, 2)
    assert remarks == []


def test_a_separator_by_the_settings(folder, tmp_path):
    write_roberta(folder, False, ["[SEP]"])
    write_settings(folder, tokenizer_class="RobertaTokenizer", sep_token="[SEP]")
    run, _ = imported(folder, tmp_path / "run")
    theirs = transformers.AutoTokenizer.from_pretrained(folder)
    assert run.tokenizer.separator == theirs.sep_token_id == theirs("the")["input_ids"][-1]


def test_another_mask_is_remarked(folder, tmp_path):
    write_roberta(folder, False, ["[MASK]"])
    write_settings(folder, tokenizer_class="RobertaTokenizer", mask_token="<mask>")
    _, remarks = imported(folder, tmp_path / "run")
    (remark,) = remarks
    assert remark.startswith("tokenizer_config.json names '<mask>' as its mask_token, and the run takes '[MASK]' for")


def test_special_tokens_of_its_texts_are_remarked(folder, tmp_path):
    write_roberta(folder, False, ["[E1]", "[E2]"])
    write_settings(folder, tokenizer_class="RobertaTokenizer", additional_special_tokens=["[E1]", "[E2]"])
    _, (remark,) = imported(folder, tmp_path / "run")
    assert remark.startswith("2 special tokens of its tokenizer ('[E1]', '[E2]'): a text that names one")
    path = folder / "tokenizer.json"
    state = json.loads(path.read_text())
    for token in state["added_tokens"]:
        token["special"] = token["special"] and not token["content"].startswith("[E")
    path.write_text(json.dumps(state))
    run, remarks = imported(folder, tmp_path / "again")
    assert remarks == []
    theirs = transformers.AutoTokenizer.from_pretrained(folder)
    ((ids, _),) = run.tokenizer.encode(["the [E1] model [E2]"])
    assert list(ids) == theirs("the [E1] model [E2]", add_special_tokens=False)["input_ids"]
