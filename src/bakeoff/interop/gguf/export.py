"""`--to gguf`: a run as llama.cpp reads it, with the names and keys that its own converter writes."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bakeoff.display import markdown
from bakeoff.errors import UserError
from bakeoff.interop.appearing import appearing, library, require_free
from bakeoff.interop.exported import Exported
from bakeoff.interop.families.bert import encoder_of
from bakeoff.interop.families.gpt import decoder_block
from bakeoff.interop.gguf.vocabulary import Vocabulary
from bakeoff.interop.hugging_face.choice import Choice, choose
from bakeoff.interop.tensors_across import give
from bakeoff.models.blocks.transformer import TransformerBlockConfig
from bakeoff.models.mixers.attention import AttentionConfig
from bakeoff.runs.run import Run
from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.tensors import load_tensors

MODEL = "model.gguf"
"""The file of the model."""
ARCHITECTURES = {"bert": "BERT", "gpt2": "GPT2"}
"""Families that are written, and what `gguf.MODEL_ARCH` calls them."""
POOLINGS = {"mean": "MEAN", "cls": "CLS"}
"""How a text becomes one vector, as in `bakeoff embed`, and what `gguf.PoolingType` calls it."""
TRANSPOSED = (".c_attn.weight", ".c_proj.weight", ".c_fc.weight")
"""GPT-2's linear maps, which lie the other way round in transformers."""

Tensors = dict[str, NDArray[np.float32]]


def export(run: Path, out: Path, *, pooling: str | None = None) -> Exported:
    """Write model.gguf and a README.md, and read every tensor back.

    Args:
        run: a pre-trained run of the families bert or gpt2.
        out: the folder to make.
        pooling: how an encoder's states become one vector: mean or cls; None: mean.

    Raises:
        UserError: no such run; gguf is not installed; llama.cpp has nothing like the run, or would compute something
            else; what was read back differs.
    """
    if pooling is not None and pooling not in POOLINGS:
        raise UserError(f"--pooling {pooling}: a GGUF file says {' or '.join(POOLINGS)}")
    require_free(out)
    gguf = library("gguf", "gguf")
    if FinetunedRun.at(run):
        raise UserError(f"{run}: a fine-tuned run, whose head has no place in GGUF; give a pre-trained run, or --to hf")
    opened = Run.open_trained(run)
    chosen = _chosen(opened, run)
    family = chosen.family.model_types[0]
    if pooling is not None and family != "bert":
        raise UserError(f"--pooling: {run} goes on with texts; vectors are those of encoders")
    _require_same_numbers(opened, run)
    vocabulary = Vocabulary(opened.tokenizer, family, str(run))
    tensors, left = _tensors(opened, chosen, gguf)
    with appearing(out) as folder:
        _write(gguf, folder / MODEL, opened, chosen, vocabulary, tensors, POOLINGS[pooling or "mean"])
        _require_read_back(gguf, folder / MODEL, tensors, run)
        text = _readme(opened.recipe.name, family, pooling or "mean")
        (folder / "README.md").write_text(text, encoding="utf-8")
    remarks = [f"read back: all {len(tensors)} tensors are the same; llama.cpp itself was not run"]
    if left:
        remarks.append(f"heads that llama.cpp has no place for stay here: {', '.join(left)}")
    if _block(opened)[0].ffn.activation == "gelu":
        remarks.append("llama.cpp approximates gelu by tanh, so that its numbers are not quite these")
    if family == "bert" and not opened.tokenizer.config.lowercase:
        remarks.append("cased: releases of llama.cpp that do not know its key for that lower-case every text")
    command = "llama-embedding" if family == "bert" else "llama-completion"
    return Exported(out, "gguf", f"{command} -m {out / MODEL}", None, remarks)


def _chosen(run: Run, path: Path) -> Choice:
    """What the family makes of it.

    Raises:
        UserError: it is of no family that is written.
    """
    imported = run.environment.get("imported") or {}
    chosen = choose(run.recipe, run.tokenizer, imported.get("model_type"))
    written = " and ".join(ARCHITECTURES)
    if isinstance(chosen, dict):
        reasons = "; ".join(f"{family}: {chosen[family]}" for family in ARCHITECTURES if family in chosen)
        raise UserError(f"{path}: llama.cpp has no such model; {written} are written ({reasons}); --to hf can take it")
    family = chosen.family.model_types[0]
    if family not in ARCHITECTURES:
        raise UserError(f"{path}: of the family {family}, which is not written as GGUF; {written} are; use --to hf")
    return chosen


def _block(run: Run) -> tuple[TransformerBlockConfig, AttentionConfig]:
    """The one kind of block, and its attention, of a run that one of the families can say."""
    if run.recipe.model.encoder is None:
        return decoder_block(run.recipe)
    return encoder_of(run.recipe)[1:]


def _require_same_numbers(run: Run, path: Path) -> None:
    """Refuse what a config of the family can say, and llama.cpp does not read.

    Raises:
        UserError: it has such a thing.
    """
    block, mixer = _block(run)
    if not block.ffn.activation.startswith("gelu"):
        raise UserError(f"{path}: its networks have {block.ffn.activation}, and those of llama.cpp gelu; use --to hf")
    if not mixer.scaled:
        raise UserError(f"{path}: its attention is not scaled, and that of llama.cpp is; use --to hf")


def _tensors(run: Run, chosen: Choice, gguf: Any) -> tuple[Tensors, list[str]]:
    """What llama.cpp reads, by its names, and the objectives whose heads it has no place for."""
    family = chosen.family.model_types[0]
    architecture = gguf.MODEL_ARCH[ARCHITECTURES[family]]
    names = gguf.get_tensor_name_map(architecture, run.recipe.model.stack.layers)
    found: Tensors = {}
    for name, tensor in give(chosen.links, load_tensors(run.weights_file())).items():
        own = name.removeprefix("bert.")
        if own.startswith(("cls.", "pooler.")):
            continue
        if family == "gpt2" and own.endswith(TRANSPOSED):
            tensor = tensor.T
        known = names.get_name(own, try_suffixes=(".weight", ".bias"))
        assert known is not None, name
        found[known] = tensor.float().contiguous().numpy()
    heads = {part.kind for part in run.recipe.objective} if family == "bert" else set()
    return found, sorted(heads)


def _write(
    gguf: Any, file: Path, run: Run, chosen: Choice, vocabulary: Vocabulary, tensors: Tensors, pooling: str
) -> None:
    recipe, config = run.recipe, chosen.config
    family, stack = chosen.family.model_types[0], recipe.model.stack
    writer = gguf.GGUFWriter(file, family)
    try:
        writer.add_type("model")
        writer.add_name(recipe.name)
        if recipe.paper:
            writer.add_description(recipe.paper)
        writer.add_context_length(recipe.model.embedding.length)
        writer.add_embedding_length(stack.width)
        writer.add_feed_forward_length(_block(run)[0].ffn.width)
        writer.add_block_count(stack.layers)
        writer.add_head_count(config["num_attention_heads" if family == "bert" else "n_head"])
        writer.add_layer_norm_eps(recipe.model.norm_epsilon)
        writer.add_file_type(gguf.LlamaFileType.ALL_F32)
        writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
        if family == "bert":
            writer.add_causal_attention(False)
            writer.add_pooling_type(gguf.PoolingType[pooling])
            writer.add_token_type_count(config["type_vocab_size"])
        vocabulary.write(writer, len(tensors["token_embd.weight"]), gguf.TokenType)
        for name, tensor in tensors.items():
            writer.add_tensor(name, tensor)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
    finally:
        writer.close()


def _require_read_back(gguf: Any, file: Path, tensors: Tensors, run: Path) -> None:
    """Refuse a file whose tensors are not those that were meant.

    Raises:
        UserError: one is missing or differs.
    """
    found = {each.name: each.data for each in gguf.GGUFReader(file).tensors}
    differs = [name for name in tensors if name not in found or not np.array_equal(found[name], tensors[name])]
    if differs or len(found) != len(tensors):
        raise UserError(f"{run}: {(differs or ['a tensor too many'])[0]} came back otherwise, so nothing is written")


def _readme(name: str, family: str, pooling: str) -> str:
    """The README.md."""
    if family == "bert":
        use = f"llama-embedding -m {MODEL} -p 'The town lies behind the hill.' --embd-normalize -1"
        said = f"Vectors are the {pooling} of the last layer's states, those of `bakeoff embed --pooling {pooling}`."
    else:
        use = f"llama-completion -m {MODEL} -p 'The town' -n 20 --temp 0 -no-cnv"
        said = "A text begins behind the token that ends documents, which llama.cpp puts there."
    return f"""# {markdown.text(name)} as GGUF

Written by Bakeoff in float32 for llama.cpp; `llama-quantize` makes smaller ones. {said} Bakeoff reads texts in
Unicode's NFC and with one space for any white space; give llama.cpp such texts.

```
{use}
```
"""
