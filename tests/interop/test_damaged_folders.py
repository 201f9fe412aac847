"""Folders of others that are damaged, contradict themselves or have no counterpart: one line, and nothing is left."""

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

import bakeoff
from bakeoff.errors import UserError
from tests.interop.decoder_models import byte_bpe
from tests.interop.decoder_models import saved as saved_decoder
from tests.interop.test_decoder_families import xlnet
from tests.interop.test_encoders import saved as saved_encoder
from tests.interop.test_modernbert import BASES
from tests.interop.test_modernbert import saved as saved_modernbert

pytest.importorskip("transformers")


def edit_config(**values):
    def edit(folder):
        path = folder / "config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | values))

    return edit


def edit_tensors(change):
    def edit(folder):
        tensors = load_file(folder / "model.safetensors")
        change(tensors)
        save_file(tensors, folder / "model.safetensors")

    return edit


def outside(folder):
    (folder / "model.safetensors").rename(folder.parent / "outside.safetensors")
    index = {"weight_map": {"bert.embeddings.word_embeddings.weight": "../outside.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def linked(name):
    def edit(folder):
        (folder / name).rename(folder.parent / "outside.safetensors")
        (folder / name).symlink_to(folder.parent / "outside.safetensors")

    return edit


def of_many_dimensions(folder):
    """The library reads such a header, torch no such tensor."""
    data = (folder / "model.safetensors").read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    end = max(entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__")
    header["flat"] = {"dtype": "F32", "shape": [1] * 65, "data_offsets": [end, end + 4]}
    content = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(
        len(content).to_bytes(8, "little") + content + data[8 + length :] + bytes(4)
    )


def pickled(folder):
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def one_id(folder):
    """A tokenizer.json of byte-level BPE, of which one token has the number of another."""
    inner = byte_bpe(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], 331)
    text = json.loads(inner.to_str())
    ids = sorted(text["model"]["vocab"], key=text["model"]["vocab"].get)
    order = [*ids[:5], "a", "b", *(token for token in ids[5:] if token not in "ab")]
    text["model"]["vocab"] = {token: number for number, token in enumerate(order)} | {"b": 5}
    (folder / "tokenizer.json").write_text(json.dumps(text))
    edit_config(vocab_size=len(order))(folder)


def parts(folder):
    """Two files with an index, the second of which holds what is no number."""
    tensors = load_file(folder / "model.safetensors")
    tensors[LAYER][1, 2] = torch.nan
    (folder / "model.safetensors").unlink()
    files = {name: f"{1 + (name == LAYER)}.safetensors" for name in tensors}
    for file in set(files.values()):
        save_file({name: tensor for name, tensor in tensors.items() if files[name] == file}, folder / file)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": files}))


def within(folder):
    """As Sentence Transformers saves a model."""
    shutil.copytree(folder, folder / "0_Transformer")
    (folder / "config.json").unlink()


def onnx(folder):
    (folder / "config.json").write_text('{"inputs": []}')
    (folder / "model.onnx").write_bytes(b"")


LAYER = "bert.encoder.layer.1.attention.self.key.weight"
HEAD = "cls.predictions.transform.dense.bias"
FINITE = "model.safetensors: the tensor {} holds numbers that are infinite or no numbers in float32; get the file again"
OF_BERT = {
    "no config": (lambda folder: (folder / "config.json").unlink(), "has no config.json"),
    "one within": (within, "/0_Transformer is one"),
    "onnx": (onnx, "ONNX, which is not read back; import what `export --to hf` wrote of the same run"),
    "no weights": (lambda folder: (folder / "model.safetensors").unlink(), "has no weights"),
    "pickle": (pickled, "pytorch_model.bin: not read, because only safetensors are; convert it once"),
    "cut short": (
        lambda folder: (folder / "model.safetensors").write_bytes((folder / "model.safetensors").read_bytes()[:5000]),
        "model.safetensors: damaged",
    ),
    "missing tensor": (edit_tensors(lambda each: each.pop(LAYER)), f"the tensor {LAYER} is missing"),
    "half a head": (edit_tensors(lambda each: each.pop(HEAD)), f"the tensor {HEAD} is missing"),
    "wrong shape": (edit_tensors(lambda each: each.update({LAYER: torch.zeros(34, 35)})), "of shape"),
    "a tensor of too many dimensions": (
        of_many_dimensions,
        "model.safetensors: damaged: flat has 65 dimensions; 64 can be read",
    ),
    "whole numbers": (edit_tensors(lambda each: each.update({LAYER: torch.zeros(35, 35).char()})), "no floating-point"),
    "not a number": (edit_tensors(lambda each: each[LAYER].view(-1)[3].fill_(torch.nan)), FINITE.format(LAYER)),
    "infinite": (edit_tensors(lambda each: each[HEAD][2].fill_(-torch.inf)), FINITE.format(HEAD)),
    "infinite in half": (
        edit_tensors(lambda each: each.update({name: (tensor * 1e6).half() for name, tensor in each.items()})),
        "holds numbers that are infinite or no numbers in float32",
    ),
    "too large for float32": (
        edit_tensors(lambda each: each.update({name: tensor.double() * 1e300 for name, tensor in each.items()})),
        "holds numbers that are infinite or no numbers in float32",
    ),
    "a part with what is no number": (parts, f"2.safetensors: the tensor {LAYER} holds numbers"),
    "unknown type": (edit_config(model_type="bort"), "model_type: 'bort' cannot be imported; these can: "),
    "other width": (edit_config(hidden_size=40), "of shape"),
    "more layers": (edit_config(num_hidden_layers=4), "the tensor bert.encoder.layer.3.attention.self.query.weight"),
    "no width": (edit_config(hidden_size=None), "hidden_size is missing"),
    "odd width": (edit_config(hidden_size="wide"), "hidden_size: a whole number from 1 on is wanted, not 'wide'"),
    "odd heads": (edit_config(num_attention_heads=4), "4 heads do not divide the width 35"),
    "activation": (edit_config(hidden_act="swish"), "hidden_act: 'swish' has no counterpart here"),
    "positions": (edit_config(position_embedding_type="relative_key"), "position_embedding_type"),
    "decoder": (edit_config(is_decoder=True), "is_decoder: True has no counterpart here; only False has"),
    "huge": (edit_config(hidden_size=10**12), "too large"),
    "no tokenizer": (lambda folder: (folder / "vocab.txt").unlink(), "has no tokenizer"),
    "other tokenizer": (
        lambda folder: (folder / "vocab.txt").write_text("[UNK]\n" + "\n".join(map(str, range(500)))),
        "tokens, but the model's table has",
    ),
    "broken tokenizer": (lambda folder: (folder / "tokenizer.json").write_text("{}"), "tokenizer"),
    "two tokens with one id": (one_id, "the tokens 'a' and 'b' have one id, 5; this is no tokenizer of a model"),
    "outside": (outside, "names the file '../outside.safetensors', which is outside of this folder"),
    "tokenizer outside": (
        lambda folder: (folder / "tokenizer_config.json").write_text('{"vocab_file": "/etc/passwd"}'),
        "outside of this folder",
    ),
    "a name that no file has": (
        lambda folder: (folder / "tokenizer_config.json").write_text(json.dumps({"vocab_file": "é" * 200})),
        "outside of this folder",
    ),
    "a link to other weights": (linked("model.safetensors"), "model.safetensors: a link out of this folder"),
    "a link to another vocabulary": (
        linked("vocab.txt"),
        "vocab.txt: a link out of this folder, which is not followed",
    ),
    "a link to another config": (linked("config.json"), "config.json: a link out of this folder"),
    "half a character": (
        edit_config(id2label={"0": "\ud800"}),
        "config.json: not valid JSON: half of a surrogate pair (\\ud8...) is not a character (line 1, column ",
    ),
    "config is a list": (lambda folder: (folder / "config.json").write_text("[]"), "expected a JSON object"),
    "untied": (
        edit_tensors(lambda each: each.update({"cls.predictions.decoder.weight": torch.zeros(3, 35)})),
        "is not bert.embeddings.word_embeddings.weight again",
    ),
}
REFUSED_OF_MODERNBERT = {
    "decoder_bias": (False, "decoder_bias: False has no counterpart here; only True has"),
    "tie_word_embeddings": (False, "tie_word_embeddings: False has no counterpart"),
    "hidden_activation": ("silu", "hidden_activation: 'silu' has no counterpart"),
    "norm_bias": ("no", "norm_bias: true or false is wanted, not 'no'"),
    "local_attention": (1, "local_attention: a window of 1 token has no counterpart here; at least 2 has"),
    "layer_types": (["full_attention"] * 4, "layer_types: for each of the 5 layers"),
    "rope_parameters": (
        {**BASES, "full_attention": {"rope_type": "yarn", "rope_theta": 9.0}},
        "rope_parameters.full_attention: rope_type: 'yarn' has no counterpart",
    ),
    "rope_scaling": ({"type": "linear", "factor": 2.0}, "rope_scaling"),
    "rope_parameters by an older name": (
        {**BASES, "full_attention": {"type": "linear", "factor": 2.0, "rope_theta": 9.0}},
        "rope_parameters.full_attention: type: 'linear' has no counterpart",
    ),
    "rope_parameters of all layers": (
        {"rope_type": "default", "rope_theta": 9.0},
        "rope_parameters: an object for each of full_attention and sliding_attention is wanted, not {'rope_type'",
    ),
    "num_attention_heads": (8, "rotary needs heads of an even width, not 5"),
    "mlp_bias": (True, "the tensor model.layers.0.mlp.Wi.bias is missing"),
    "intermediate_size": (52, "of shape"),
}
DAMAGE = {f"bert, {name}": ("bert", *each) for name, each in OF_BERT.items()}
REFUSED_OF_XLNET = {
    "bi_data": (True, "bi_data: True has no counterpart here; only False has"),
    "attn_type": ("uni", "attn_type: 'uni' has no counterpart here"),
    "clamp_len": (7, "clamp_len: 7 has no counterpart here"),
    "same_length": (True, "same_length: True has no counterpart here"),
}
DAMAGE |= {
    f"xlnet, {key}": ("xlnet", edit_config(**{key: value}), message)
    for key, (value, message) in REFUSED_OF_XLNET.items()
}
DAMAGE |= {
    f"modernbert, {key}": ("modernbert", edit_config(**{key.split()[0]: value}), message)
    for key, (value, message) in REFUSED_OF_MODERNBERT.items()
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A folder of each family."""
    folder = tmp_path_factory.mktemp("whole")
    saved_encoder(folder / "bert", "bert")
    saved_modernbert(folder / "modernbert", "as published")
    saved_decoder(folder / "xlnet", *xlnet())
    return folder


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_one_line_and_leaves_nothing(damage, whole, tmp_path):
    family, change, message = DAMAGE[damage]
    shutil.copytree(whole / family, tmp_path / "theirs")
    change(tmp_path / "theirs")
    with pytest.raises(UserError) as error:
        bakeoff.import_model(tmp_path / "theirs", tmp_path / "run")
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert {path.name for path in tmp_path.iterdir()} <= {"theirs", "outside.safetensors"}


def test_links_of_the_cache_of_the_hub_are_followed(whole, tmp_path):
    blobs, folder = tmp_path / "models--a--b/blobs", tmp_path / "models--a--b/snapshots/1a2b"
    blobs.mkdir(parents=True)
    folder.mkdir(parents=True)
    for number, file in enumerate(sorted((whole / "bert").iterdir())):
        shutil.copy(file, blobs / str(number))
        (folder / file.name).symlink_to(f"../../blobs/{number}")
    assert bakeoff.import_model(folder, tmp_path / "run").finished


def test_code_of_the_folder_is_never_run(whole, tmp_path):
    folder = shutil.copytree(whole / "bert", tmp_path / "theirs")
    edit_config(auto_map={"AutoModel": "modeling_evil.Evil"})(folder)
    ran = tmp_path / "ran"
    (folder / "modeling_evil.py").write_text(f"open({str(ran)!r}, 'w')\nraise SystemExit")
    run = bakeoff.import_model(folder, tmp_path / "run")
    done = bakeoff.export(run.path, tmp_path / "again")
    assert "auto_map" not in json.loads((done.path / "config.json").read_text())
    assert not list(done.path.glob("*.py"))
    assert not ran.exists()


def test_something_there_already(whole, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run/file").write_text("")
    for make in (bakeoff.import_model, bakeoff.export):
        with pytest.raises(UserError, match="holds something already; choose another --out"):
            make(whole / "bert", tmp_path / "run")
