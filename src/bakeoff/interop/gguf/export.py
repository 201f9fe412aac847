"""`--to gguf`: a run for llama.cpp, with the tensor names and keys that llama.cpp's converter writes."""

from pathlib import Path
from typing import Any

import numpy as np

from bakeoff.display import markdown
from bakeoff.display.wording import listed
from bakeoff.errors import UserError
from bakeoff.extras import library
from bakeoff.interop.export import Exported
from bakeoff.interop.gguf.architectures import ARCHITECTURES, Architecture, Tensors
from bakeoff.interop.gguf.unigram import Unigram
from bakeoff.interop.gguf.vocabulary import ByteBpe, Vocabulary, WordPiece
from bakeoff.interop.hugging_face.family_choice import FamilyChoice, choose
from bakeoff.interop.tensors_across import give
from bakeoff.runs.run import Run
from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.tensors import load_tensors
from bakeoff.tokenizer.long_words import LONGEST_WORD
from bakeoff.unfinished import require_free, unfinished
from bakeoff.vectors.taught import Taught, require_last_layer

MODEL = "model.gguf"
"""The name of the model's file."""
POOLINGS = {"mean": "MEAN", "cls": "CLS"}
"""Names of poolings in `gguf.PoolingType` by their names in `bakeoff embed`."""


def _require_known(pooling: str | None) -> None:
    """Refuse a pooling that a GGUF file cannot say.

    Raises:
        UserError: it is one.
    """
    if pooling is not None and pooling not in POOLINGS:
        raise UserError(f"--pooling {pooling}: a GGUF file says {' or '.join(POOLINGS)}")


def export(run: Path, out: Path, *, pooling: str | None = None) -> Exported:
    """Write model.gguf and README.md, and compare every tensor that the file holds.

    Args:
        run: a pre-trained run of the family bert, gpt2 or t5.
        out: the folder to make.
        pooling: how token vectors become one vector: mean or cls; None: that for which `bakeoff contrast` has taught
            the run, else mean.

    Raises:
        UserError: there is no such run; gguf is not installed; llama.cpp cannot express the run, or computes other
            numbers; a tensor differs after writing.
    """
    _require_known(pooling)
    require_free(out)
    gguf = library("gguf", "gguf")
    if FinetunedRun.at(run):
        raise UserError(f"{run}: a fine-tuned run, whose head has no place in GGUF; give a pre-trained run, or --to hf")
    opened = Run.open_trained(run)
    chosen = _chosen(opened, run)
    architecture = ARCHITECTURES[chosen.family.model_types[0]]
    if pooling is not None and architecture.name != "bert":
        raise UserError(f"--pooling: {run} writes texts; vectors are those of encoders")
    if architecture.name == "bert":
        taught = Taught.of(opened)
        if pooling is None and taught is not None and (taught.weight is not None or taught.token_weights is not None):
            lacks = "weights of tokens or a linear layer, which GGUF lacks"
            raise UserError(f"{run}: its vectors have {lacks}; give --pooling mean or cls")
        if pooling is None and taught is not None:
            require_last_layer(taught, opened, "a GGUF file reads")
        pooling = pooling or (None if taught is None else taught.pooling)
        _require_known(pooling)
    if reason := architecture.other_numbers(opened.recipe, opened.tokenizer):
        raise UserError(f"{run}: {reason}; use --to hf")
    vocabulary = vocabulary_of(opened, architecture.name, str(run))
    tensors, left = _tensors(opened, chosen, architecture, gguf)
    with unfinished(out) as folder:
        _write(gguf, folder / MODEL, opened, chosen, vocabulary, tensors, POOLINGS[pooling or "mean"])
        _require_read_back(gguf, folder / MODEL, tensors, run)
        text = readme(opened.recipe.name, architecture.name, pooling or "mean")
        (folder / "README.md").write_text(text, encoding="utf-8")
    remarks = [f"read back: all {len(tensors)} tensors are the same; llama.cpp itself was not run"]
    if left:
        remarks.append(f"heads that llama.cpp has no place for stay here: {', '.join(left)}")
    if architecture.block(opened.recipe)[0].ffn.activation == "gelu":
        remarks.append("llama.cpp approximates gelu by tanh, so that its numbers are not quite these")
    if architecture.name == "bert":
        remarks.append(
            f"a word of more than {LONGEST_WORD} characters is other tokens for llama.cpp, which does not cut it"
        )
    if architecture.name == "bert" and not opened.tokenizer.config.lowercase:
        remarks.append("cased: releases of llama.cpp that do not know its key for that lower-case every text")
    return Exported(out, "gguf", f"{architecture.command} -m {out / MODEL}", None, remarks)


def _chosen(run: Run, path: Path) -> FamilyChoice:
    """The family for a run, with its config and its links.

    Raises:
        UserError: the run is of no family that can be written as GGUF.
    """
    imported = run.environment.get("imported") or {}
    chosen = choose(run.recipe, run.tokenizer, imported.get("model_type"))
    written = listed(list(ARCHITECTURES), "and")
    if isinstance(chosen, dict):
        reasons = "; ".join(f"{family}: {chosen[family]}" for family in ARCHITECTURES if family in chosen)
        raise UserError(f"{path}: llama.cpp has no such model; {written} are written ({reasons}); --to hf can take it")
    family = chosen.family.model_types[0]
    if family not in ARCHITECTURES:
        raise UserError(f"{path}: of the family {family}, which is not written as GGUF; {written} are; use --to hf")
    return chosen


def _tensors(run: Run, chosen: FamilyChoice, architecture: Architecture, gguf: Any) -> tuple[Tensors, list[str]]:
    """The tensors under llama.cpp's names, and the objectives whose heads llama.cpp has no place for."""
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH[architecture.member], architecture.layers(run.recipe))
    renamed: Tensors = {}
    for name, tensor in give(chosen.links, load_tensors(run.weights_file())).items():
        base = name.removeprefix("bert.")
        if base.startswith(architecture.left):
            continue
        if base.endswith(architecture.transposed):
            tensor = tensor.T
        known = names.get_name(base, try_suffixes=(".weight", ".bias"))
        assert known is not None, name
        renamed[known] = tensor.float().contiguous().numpy()
    heads = {part.kind for part in run.recipe.objective} if architecture.left else set()
    return architecture.changed(renamed, run.recipe), sorted(heads)


def _write(
    gguf: Any, file: Path, run: Run, chosen: FamilyChoice, vocabulary: Vocabulary, tensors: Tensors, pooling: str
) -> None:
    recipe, architecture = run.recipe, ARCHITECTURES[chosen.family.model_types[0]]
    writer = gguf.GGUFWriter(file, architecture.name)
    try:
        writer.add_type("model")
        writer.add_name(recipe.name)
        if recipe.paper:
            writer.add_description(recipe.paper)
        architecture.write(writer, recipe, chosen.config, gguf)
        if architecture.name == "bert":
            writer.add_pooling_type(gguf.PoolingType[pooling])
        writer.add_file_type(gguf.LlamaFileType.ALL_F32)
        writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
        vocabulary.write(writer, len(tensors["token_embd.weight"]), gguf.TokenType)
        for name, tensor in tensors.items():
            writer.add_tensor(name, tensor)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
    finally:
        writer.close()


def _require_read_back(gguf: Any, file: Path, tensors: Tensors, run: Path) -> None:
    """Compare the tensors in the file with those that were to be written.

    Raises:
        UserError: a tensor is missing, is one too many, or differs.
    """
    read = {each.name: each.data for each in gguf.GGUFReader(file).tensors}
    differs = [name for name in tensors if name not in read or not np.array_equal(read[name], tensors[name])]
    if differs or len(read) != len(tensors):
        raise UserError(f"{run}: {(differs or ['a tensor too many'])[0]} came back otherwise, so nothing is written")


def vocabulary_of(run: Run, architecture: str, where: str) -> Vocabulary:
    """The run's vocabulary for the architecture bert, gpt2 or t5.

    Raises:
        UserError: llama.cpp would cut texts into other tokens; `where` names the run.
    """
    kinds: tuple[type[Vocabulary], ...] = (WordPiece, ByteBpe, Unigram)
    return next(kind for kind in kinds if kind.architecture == architecture)(run, where)


FILE = "model.gguf"
USES = {
    "bert": f"llama-embedding -m {FILE} -p 'The town lies behind the hill.' --embd-normalize -1",
    "gpt2": f"llama-completion -m {FILE} -p 'The town' -n 20 --temp 0 -no-cnv",
    "t5": f"llama-completion -m {FILE} -p 'The town lies behind the hill.' -n 20 --temp 0 -no-cnv",
}
"""Shell commands that run a model, by architecture."""
SAID = {
    "gpt2": "A text begins after the token that ends documents, which llama.cpp puts there.",
    "t5": "The prompt is what the encoder reads; llama.cpp puts the token after it that ends texts, and begins the "
    "decoder's text. `<extra_id_0>`, `<extra_id_1>`, ... stand for gaps in it, where it has learnt to fill such.",
}


def readme(name: str, architecture: str, pooling: str) -> str:
    """The text of the README.md.

    Args:
        name: the recipe's name.
        architecture: bert, gpt2 or t5.
        pooling: how the states of an encoder become one vector: mean or cls.
    """
    of_vectors = f"Vectors are the {pooling} of the last layer's states, those of `bakeoff embed --pooling {pooling}`."
    return f"""# {markdown.text(name)} as GGUF

Written by Bakeoff in float32 for llama.cpp; `llama-quantize` makes smaller ones. {SAID.get(architecture, of_vectors)} \
Bakeoff reads texts in Unicode's NFC and with one space for any white space; give llama.cpp such texts.

```
{USES[architecture]}
```
"""
