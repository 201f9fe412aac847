"""T5 as GGUF: an encoder, a decoder, tables of distances, and a vocabulary of scored pieces."""

import json
import os
from itertools import pairwise

import numpy as np
import pytest
import torch

from bakeoff.errors import UserError
from bakeoff.generation.prompts import encoded
from bakeoff.interop.export import export
from bakeoff.interop.hugging_face.sentencepiece import unigram_of
from bakeoff.row import Row, Source
from bakeoff.tensors import load_tensors
from bakeoff.tokenizer.tokenizer import Tokenizer
from tests.interop.test_gguf import prepared, read
from tests.untrained_runs import untrained

gguf = pytest.importorskip("gguf")

LAYER = {
    "attn_norm.weight": "mixer.{}.norm.weight",
    "attn_o.weight": "mixer.{}.function.output.weight",
    "ffn_norm.weight": "ffn.{}.norm.weight",
    "ffn_up.weight": "ffn.{}.function.input.weight",
    "ffn_down.weight": "ffn.{}.function.output.weight",
}
CROSS = {
    "cross_attn_norm.weight": "cross.{}.norm.weight",
    "cross_attn_q.weight": "cross.{}.function.query.weight",
    "cross_attn_o.weight": "cross.{}.function.output.weight",
}
"""llama.cpp's names of the parts of a layer, and ours."""
GATED = {
    f"model.{side}.block.ffn.{key}": value
    for side in ("encoder", "decoder")
    for key, value in (("activation", "gelu_tanh"), ("gate", True))
}
UNTIED = GATED | {"objective.0.head": "untied"}
"""What T5's version 1.1 has."""
SCALED = {"objective.0.head": "scaled", "objective.0.decoder_begins": ["pad"]}
"""What its version 1.0 has."""


@pytest.fixture(scope="module")
def unigram(tmp_path_factory):
    return prepared(tmp_path_factory.mktemp("unigram"), "unigram")


def wanted(ours, recipe):
    """Our tensors by llama.cpp's names, those after the decoder aside."""
    found = {
        "token_embd.weight": ours["model.embedding.tokens.weight"],
        "enc.output_norm.weight": ours["model.encoder.norm.weight"],
    }
    for side, short in (("encoder", "enc"), ("decoder", "dec")):
        found[f"{short}.blk.0.attn_rel_b.weight"] = ours[f"model.{side}.bias.table.weight"]
        for number in range(recipe.model.stacks()[side].layers):
            at = f"model.{side}.parts"
            names = LAYER | (CROSS if side == "decoder" else {})
            if GATED[f"model.{side}.block.ffn.gate"] and recipe.model.stacks()[side].distinct()[0].ffn.gate:
                names = names | {"ffn_gate.weight": "ffn.{}.function.gate.weight"}
                # Theirs calls the one with the activation the gate.
                names["ffn_gate.weight"], names["ffn_up.weight"] = names["ffn_up.weight"], names["ffn_gate.weight"]
            found |= {f"{short}.blk.{number}.{name}": ours[f"{at}.{own.format(number)}"] for name, own in names.items()}
            joint = ours[f"{at}.mixer.{number}.function.query_key_value.weight"].chunk(3)
            found |= {f"{short}.blk.{number}.attn_{name}.weight": each for name, each in zip("qkv", joint, strict=True)}
            if side == "decoder":
                joint = ours[f"{at}.cross.{number}.function.key_value.weight"].chunk(2)
                found |= {
                    f"dec.blk.{number}.cross_attn_{name}.weight": each for name, each in zip("kv", joint, strict=True)
                }
    return found


@pytest.mark.parametrize("changes", [{}, SCALED, UNTIED], ids=["tied", "1.0", "1.1"])
def test_both_stacks_have_the_tensors_and_keys_of_t5(changes, unigram, tmp_path):
    run = untrained("t5-tiny", unigram, tmp_path / "run", **{"model.decoder.layers": 1, **changes})
    found, keys = read(export(run.path, tmp_path / "out", to="gguf").path)
    ours = load_tensors(run.weights_file())
    tensors, norm = wanted(ours, run.recipe), ours["model.decoder.norm.weight"]
    head = changes.get("objective.0.head")
    tensors["dec.output_norm.weight"] = norm * torch.tensor(32.0) ** -0.5 if head == "scaled" else norm
    if head == "untied":
        tensors["output.weight"] = ours["heads.span_corruption.output.weight"]
    assert found.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert np.array_equal(found[name], tensor.numpy()), name
    assert (keys["t5.block_count"], keys["t5.decoder_block_count"], keys["t5.attention.head_count"]) == (2, 1, 2)
    assert (keys["t5.attention.key_length"], keys["t5.attention.value_length"]) == (16, 16)
    assert keys["t5.attention.relative_buckets_count"] == 32
    assert keys["t5.attention.layer_norm_rms_epsilon"] == pytest.approx(1e-6)
    tokenizer = run.tokenizer
    begin = tokenizer.pad if changes is SCALED else tokenizer.start
    assert keys["t5.decoder_start_token_id"] == begin
    tokens, scores, types = (keys[f"tokenizer.ggml.{name}"] for name in ("tokens", "scores", "token_type"))
    assert len(tokens) == len(scores) == len(types) == len(tensors["token_embd.weight"])
    (objective,) = run.recipe.objective
    marks = objective.mark_ids(tokenizer)
    assert [tokens[token] for token in marks[:2]] == ["<extra_id_0>", "<extra_id_1>"]
    assert all(types[token] == gguf.TokenType.USER_DEFINED for token in marks)
    assert types[tokenizer.unknown] == gguf.TokenType.UNKNOWN
    pieces = len(json.loads(tokenizer.to_string())["model"]["vocab"])
    assert pieces < len(scores)
    assert max(scores[pieces:]) < min(scores[:pieces]), "no text is cut into what no score was learned for"
    kept = [place for place, kind in enumerate(types) if kind == gguf.TokenType.NORMAL]
    ordered = sorted(scores[place] for place in kept)
    assert [scores[place] for place in kept] == ordered[::-1]  # pieces are numbered by their scores
    assert all(later <= earlier < 0 for earlier, later in pairwise(ordered[::-1]))
    ids = tokenizer.encode(["the streets"])[0][0].tolist()
    assert "".join(tokens[each] for each in ids) == "\u2581the\u2581streets"
    assert keys["tokenizer.ggml.eos_token_id"] == tokenizer.separator
    assert (keys["tokenizer.ggml.add_eos_token"], keys["tokenizer.ggml.add_bos_token"]) == (True, False)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"model.encoder.block.ffn.activation": "gelu", "model.decoder.block.ffn.activation": "gelu"},
            "have gelu without a gate, and those of llama.cpp relu without one",
        ),
        (
            {"model.encoder.block.mixer.distance": 64, "model.decoder.block.mixer.distance": 64},
            "are alike from 64 on, and those of llama.cpp from 128 on",
        ),
        ({"objective.0.decoder_begins": ["separator", "start"]}, "begins with two tokens"),
        ({"model.decoder.layers": 3}, "decoder has more layers than its encoder"),
    ],
)
def test_what_llama_cpp_would_compute_otherwise_is_refused(changes, message, unigram, tmp_path):
    run = untrained("t5-tiny", unigram, tmp_path / "run", **changes)
    with pytest.raises(UserError, match=message) as refused:
        export(run.path, tmp_path / "out", to="gguf")
    assert "\n" not in str(refused.value)
    assert os.listdir(tmp_path) == ["run"]


@pytest.mark.parametrize(
    ("kind", "more", "message"),
    [
        ("wordpiece", {}, "of kind wordpiece, and llama.cpp reads unigram for t5"),
        ("unigram", {"lowercase": True}, r"normalises texts \(NFD\), which llama.cpp does not do for t5"),
    ],
)
def test_tokenizers_that_llama_cpp_does_not_have_are_refused(kind, more, message, tmp_path):
    run = untrained("t5-tiny", prepared(tmp_path, kind, **more), tmp_path / "run")
    with pytest.raises(UserError, match=message):
        export(run.path, tmp_path / "out", to="gguf")
    assert not (tmp_path / "out").exists()


def of_sentencepiece(folder):
    """A tokenizer with a table of characters, such as T5 is published with."""
    library = pytest.importorskip("sentencepiece")
    lines = [f"the model {n} reads the streets of {n + 1} towns, naïve café 中文" for n in range(300)]
    (folder / "lines.txt").write_text("\n".join(lines), encoding="utf-8")
    library.SentencePieceTrainer.train(
        input=str(folder / "lines.txt"),
        model_prefix=str(folder / "spiece"),
        vocab_size=150,
        hard_vocab_limit=False,
        pad_id=0,
        eos_id=1,
        unk_id=2,
        bos_id=-1,
        normalization_rule_name="nmt_nfkc",
        minloglevel=2,
    )
    return unigram_of((folder / "spiece.model").read_bytes(), "spiece.model", {"extra_ids": 0}, "t5")


class Prepared:
    """What `untrained` reads of a corpus."""

    def __init__(self, text):
        self.tokenizer = Tokenizer.from_string(text, "spiece.model")


def test_a_table_of_characters_goes_along(tmp_path):
    run = untrained("t5-tiny", Prepared(of_sentencepiece(tmp_path)), tmp_path / "run")
    _, keys = read(export(run.path, tmp_path / "out", to="gguf").path)
    table = bytes(each % 256 for each in keys["tokenizer.ggml.precompiled_charsmap"])
    assert len(table) > 1000
    assert table in (tmp_path / "spiece.model").read_bytes()


TEXTS = [
    "The town and the streets of rivers, 12 words.",
    "Ärger über Öl; naïve ﬁ 中文 x",
    "a",
    "rivers [MASK] the town [MASK] don't",
    "towns and rivers and the streets of the town " * 5,
]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tied", "1.0", "1.1", "characters"])
def test_llama_cpp_gives_the_tokens_and_the_logits(name, unigram, tmp_path):
    llama = pytest.importorskip("llama_cpp")
    own = Prepared(of_sentencepiece(tmp_path)) if name == "characters" else unigram
    changes = {"tied": {}, "1.0": SCALED, "1.1": UNTIED, "characters": {}}[name]
    run = untrained("t5-tiny", own, tmp_path / "run", **{"model.encoder.layers": 3, **changes})
    made = export(run.path, tmp_path / "out", to="gguf")
    model = llama.Llama(str(made.path / "model.gguf"), verbose=False, n_ctx=256, n_threads=1, logits_all=True)
    module = run.load()
    (objective,) = run.recipe.objective
    rows = [encoded(text.strip().replace(" [MASK]", "[MASK]"), run.tokenizer, run) for text in TEXTS]
    for text, row in zip(TEXTS, rows, strict=True):
        for number in range(2):
            text = text.replace("[MASK]", f"<extra_id_{number}>", 1)
        assert model.tokenize(text.strip().encode(), special=False) == row
    target = torch.randint(5, run.tokenizer.size, (9,), generator=torch.Generator().manual_seed(3)).tolist()
    for row in rows:
        ids = [*objective.prompt(run.tokenizer), *target]
        found = logits(llama, model, row, ids)
        with torch.inference_mode():
            hidden = module.model(Row(torch.tensor([ids]), source=Source(torch.tensor([row]))))[0][0]
            right = module.objectives[0].head.scores(hidden, module.model.embedding.weight).numpy()
        assert np.abs(found - right).max() < 1e-3 * np.abs(right).max()


def logits(llama, model, row, ids):
    """(T, V) llama.cpp's logits of the decoder's ids, after the encoder's row."""
    context = model.ctx
    llama.llama_memory_clear(llama.llama_get_memory(context), True)
    for given, run in ((row, llama.llama_encode), (ids, llama.llama_decode)):
        batch = llama.llama_batch_init(len(given), 0, 1)
        batch.n_tokens = len(given)
        for place, token in enumerate(given):
            batch.token[place], batch.pos[place], batch.n_seq_id[place] = token, place, 1
            batch.seq_id[place][0], batch.logits[place] = 0, True
        assert run(context, batch) == 0
        llama.llama_batch_free(batch)
    rows = [llama.llama_get_logits_ith(context, place) for place in range(len(ids))]
    return np.stack([np.ctypeslib.as_array(row, (model.n_vocab(),)).copy() for row in rows])
