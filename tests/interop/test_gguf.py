"""Runs as GGUF: the names and numbers that llama.cpp reads, and what is refused."""

import json
import os
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from tokenizers.normalizers import BertNormalizer

import bakeoff
from bakeoff.conformance.texts import sentences
from bakeoff.errors import UserError
from bakeoff.interop.export import export
from bakeoff.interop.gguf.vocabulary import WordPiece
from bakeoff.preparation.prepare import prepare
from bakeoff.tasks.rows.inputs import InputFormat
from bakeoff.tensors import load_tensors
from bakeoff.tokenizer.tokenizer import Tokenizer
from bakeoff.tokenizer.tokenizer_config import TokenizerConfig
from tests.untrained_runs import untrained

gguf = pytest.importorskip("gguf")

BERT_LAYER = {
    "attn_output": "mixer.{}.function.output",
    "attn_output_norm": "mixer.{}.norm",
    "ffn_up": "ffn.{}.function.input",
    "ffn_down": "ffn.{}.function.output",
    "layer_output_norm": "ffn.{}.norm",
}
GPT2_LAYER = {
    "attn_qkv": "mixer.{}.function.query_key_value",
    "attn_output": "mixer.{}.function.output",
    "attn_norm": "mixer.{}.norm",
    "ffn_up": "ffn.{}.function.input",
    "ffn_down": "ffn.{}.function.output",
    "ffn_norm": "ffn.{}.norm",
}
"""llama.cpp's names of the parts of a layer, and ours."""


def prepared(folder, kind, **more):
    lines = sentences(2400, seed=3)
    (folder / "text.txt").write_text("\n".join(" ".join(lines[at : at + 8]) for at in range(0, 2400, 8)) + "\n")
    tokenizer = TokenizerConfig(kind=kind, size=300, **more)
    return prepare(
        [folder / "text.txt"], folder / "corpus", tokenizer=tokenizer, document_per_line=True, validation=0.1, workers=0
    )


@pytest.fixture(scope="module")
def wordpiece(tmp_path_factory):
    return prepared(tmp_path_factory.mktemp("wordpiece"), "wordpiece", lowercase=True)


@pytest.fixture(scope="module")
def byte_bpe(tmp_path_factory):
    return prepared(tmp_path_factory.mktemp("bytes"), "byte_bpe")


def read(folder):
    """Tensors and keys of an exported folder."""
    reader = gguf.GGUFReader(folder / "model.gguf")
    return {each.name: each.data for each in reader.tensors}, {
        name: field.contents() for name, field in reader.fields.items()
    }


def layers(ours, stack, names, count):
    return {
        f"blk.{number}.{name}.{kind}": ours[f"model.{stack}.parts.{own.format(number)}.{kind}"]
        for number in range(count)
        for name, own in names.items()
        for kind in ("weight", "bias")
    }


def test_an_encoder_has_the_tensors_and_keys_of_bert(wordpiece, tmp_path):
    run = untrained("bert-tiny", wordpiece, tmp_path / "run")
    made = export(run.path, tmp_path / "out", to="gguf", pooling="cls")
    found, keys = read(made.path)
    ours = load_tensors(run.weights_file())
    wanted = layers(ours, "encoder", BERT_LAYER, 2)
    wanted |= {
        "token_embd.weight": ours["model.embedding.tokens.weight"],
        "position_embd.weight": ours["model.embedding.positions.weight"],
        "token_types.weight": ours["model.embedding.segments.weight"],
        "token_embd_norm.weight": ours["model.embedding.norm.weight"],
        "token_embd_norm.bias": ours["model.embedding.norm.bias"],
    }
    for number in range(2):
        for kind in ("weight", "bias"):
            joint = ours[f"model.encoder.parts.mixer.{number}.function.query_key_value.{kind}"]
            parts = zip(("attn_q", "attn_k", "attn_v"), joint.chunk(3), strict=True)
            wanted |= {f"blk.{number}.{name}.{kind}": part for name, part in parts}
    assert found.keys() == wanted.keys()
    for name, tensor in wanted.items():
        assert np.array_equal(found[name], tensor.numpy()), name
    assert keys["general.architecture"] == "bert"
    assert (keys["bert.block_count"], keys["bert.embedding_length"], keys["bert.attention.head_count"]) == (2, 32, 2)
    assert keys["bert.context_length"] == len(wanted["position_embd.weight"])
    assert keys["bert.pooling_type"] == gguf.PoolingType.CLS
    assert keys["bert.attention.causal"] is False
    assert keys["tokenizer.ggml.normalizer.lowercase"] is True
    tokens, inner = keys["tokenizer.ggml.tokens"], run.tokenizer
    assert len(tokens) == len(wanted["token_embd.weight"])
    assert tokens[keys["tokenizer.ggml.bos_token_id"]] == "[CLS]"
    ids = inner.encode(["the streets"])[0][0].tolist()
    spelt = "".join(tokens[each] for each in ids)
    assert spelt.replace("\u2581", " ").split() == ["the", "streets"]


@pytest.mark.parametrize("lowercase", [True, False])
@pytest.mark.parametrize("strip", [None, True, False])
def test_the_keys_of_bert_say_what_its_normalizer_does(lowercase, strip):
    """Whose accents fall with the capital letters, unless it says otherwise."""
    tokenizer = Tokenizer.train(TokenizerConfig(kind="wordpiece", size=100, lowercase=lowercase), ["a b c. " * 9])
    state = json.loads(tokenizer.to_string())
    state["normalizer"]["strip_accents"] = strip
    run = SimpleNamespace(tokenizer=Tokenizer.from_string(json.dumps(state)))
    writer = Mock()
    WordPiece(run, "run").write(writer, run.tokenizer.size, gguf.TokenType)
    said = {key.rpartition(".")[2]: value for (key, value), _ in writer.add_bool.call_args_list}
    normalizer = BertNormalizer(strip_accents=strip, lowercase=lowercase)
    assert said["lowercase"] == (normalizer.normalize_str("A") == "a")
    assert said["strip_accents"] == (normalizer.normalize_str("é") == "e")


def test_a_decoder_has_the_tensors_and_keys_of_gpt2(byte_bpe, tmp_path):
    run = untrained("gpt2-tiny", byte_bpe, tmp_path / "run")
    made = export(run.path, tmp_path / "out", to="gguf")
    found, keys = read(made.path)
    ours = load_tensors(run.weights_file())
    wanted = layers(ours, "decoder", GPT2_LAYER, 2)
    wanted |= {
        "token_embd.weight": ours["model.embedding.tokens.weight"],
        "position_embd.weight": ours["model.embedding.positions.weight"],
        "output_norm.weight": ours["model.decoder.norm.weight"],
        "output_norm.bias": ours["model.decoder.norm.bias"],
    }
    assert found.keys() == wanted.keys()
    for name, tensor in wanted.items():
        assert np.array_equal(found[name], tensor.numpy()), name
    assert keys["tokenizer.ggml.pre"] == "gpt-2"
    tokens = keys["tokenizer.ggml.tokens"]
    assert all("".join(each.split(" ")) in tokens for each in keys["tokenizer.ggml.merges"])
    assert keys["tokenizer.ggml.bos_token_id"] == run.tokenizer.separator
    assert keys["tokenizer.ggml.eos_token_id"] == run.tokenizer.separator
    assert keys["tokenizer.ggml.add_bos_token"] is True
    special = [place for place, kind in enumerate(keys["tokenizer.ggml.token_type"]) if kind == gguf.TokenType.CONTROL]
    assert special == run.tokenizer.special_ids.tolist()


def test_a_head_of_its_own_goes_along(byte_bpe, tmp_path):
    run = untrained("gpt2-tiny", byte_bpe, tmp_path / "run", **{"objective.0.head": "untied"})
    found, _ = read(export(run.path, tmp_path / "out", to="gguf").path)
    assert np.array_equal(found["output.weight"], load_tensors(run.weights_file())["heads.clm.output.weight"].numpy())


@pytest.mark.parametrize(
    ("recipe", "changes", "message"),
    [
        ("conv-light-encoder-tiny", {}, "llama.cpp has no such model; bert, gpt2 and t5 are written .*mixers"),
        ("bart-tiny", {}, "of the family bart, which is not written as GGUF"),
        ("gpt2-tiny", {"model.decoder.block.ffn.activation": "relu"}, "networks have relu, and those of llama.cpp"),
        ("gpt2-tiny", {}, "tokenizer is of kind wordpiece, and llama.cpp reads byte_bpe for gpt2"),
        ("gpt-tiny", {}, "gpt2: model.decoder.block.norm is 'post' here"),
    ],
)
def test_what_llama_cpp_has_nothing_like_is_refused_in_one_line(wordpiece, tmp_path, recipe, changes, message):
    run = untrained(recipe, wordpiece, tmp_path / "run", **changes)
    with pytest.raises(UserError, match=message) as refused:
        export(run.path, tmp_path / "out", to="gguf")
    assert "\n" not in str(refused.value)
    assert os.listdir(tmp_path) == ["run"]


def test_a_pooling_that_the_file_cannot_say_is_refused(wordpiece, tmp_path):
    run = untrained("bert-tiny", wordpiece, tmp_path / "run")
    with pytest.raises(UserError, match="--pooling max"):
        export(run.path, tmp_path / "out", to="gguf", pooling="max")


def test_a_tensor_that_comes_back_otherwise_is_not_written(wordpiece, tmp_path, monkeypatch):
    run = untrained("bert-tiny", wordpiece, tmp_path / "run")
    add = gguf.GGUFWriter.add_tensor
    monkeypatch.setattr(gguf.GGUFWriter, "add_tensor", lambda own, name, tensor: add(own, name, tensor + 1e-6))
    with pytest.raises(UserError, match="came back otherwise"):
        export(run.path, tmp_path / "out", to="gguf")
    assert os.listdir(tmp_path) == ["run"]


TEXTS = ["The town and the streets of rivers, 12 words.", "Ärger über Öl; naïve 中文 x", "a", "river [MASK] don't"]


def opened(made, run, **options):
    """The model in llama.cpp, whose tokens of texts are ours."""
    model = pytest.importorskip("llama_cpp").Llama(
        str(made.path / "model.gguf"), verbose=False, n_ctx=32, n_threads=1, **options
    )
    format = InputFormat(run.tokenizer, run.recipe, 32)
    rows = [row.tolist() for row in format.framed(format.ids(TEXTS)).ids]
    assert [model.tokenize(text.encode(), special=False) for text in TEXTS] == rows
    return model, rows


@pytest.mark.slow
@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_llama_cpp_gives_the_vectors_of_embed(pooling, wordpiece, tmp_path):
    run = untrained("bert-tiny", wordpiece, tmp_path / "run")
    model, _ = opened(export(run.path, tmp_path / "out", to="gguf", pooling=pooling), run, embedding=True)
    found = np.array([model.embed(text, normalize=False) for text in TEXTS])
    wanted = bakeoff.embed(run.path, TEXTS, pooling=pooling, device="cpu")
    assert np.abs(found - wanted).max() < 1e-3 * np.abs(wanted).max()


@pytest.mark.slow
@pytest.mark.parametrize("head", ["tied", "untied"])
def test_llama_cpp_gives_the_logits(head, byte_bpe, tmp_path):
    run = untrained("gpt2-tiny", byte_bpe, tmp_path / "run", **{"objective.0.head": head})
    model, rows = opened(export(run.path, tmp_path / "out", to="gguf"), run, logits_all=True)
    for row in rows:
        model.reset()
        model.eval(row)
        wanted = bakeoff.load(run.path, device="cpu").logits(torch.tensor([row]))[0].numpy()
        assert np.abs(np.array(model.scores[: len(row)]) - wanted).max() < 1e-3 * np.abs(wanted).max()
