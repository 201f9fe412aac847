"""`bakeoff import`: a run from a model in the format of transformers."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from bakeoff.errors import UserError, path_of
from bakeoff.interop.config_reader import ConfigReader
from bakeoff.interop.families import FAMILIES, Family, NotSaid
from bakeoff.interop.hugging_face.finetuned_writing import write_finetuned
from bakeoff.interop.hugging_face.folder import DTYPES, Folder, folder_of
from bakeoff.interop.hugging_face.imported_head import imported_head
from bakeoff.interop.hugging_face.tokenizer_reading import filled_up, tokenizer_text
from bakeoff.interop.hugging_face.tokenizer_settings import SETTINGS
from bakeoff.interop.tensors_across import Taken, take
from bakeoff.learner.pretraining_model import PretrainingModel, build_on_meta
from bakeoff.recipe import Recipe
from bakeoff.runs.environment import environment
from bakeoff.runs.run import Run
from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.tensors import save_tensors
from bakeoff.tokenizer import file as tokenizer_file
from bakeoff.tokenizer.special_tokens import SPECIAL_TOKENS
from bakeoff.tokenizer.tokenizer import Tokenizer
from bakeoff.unfinished import require_free, unfinished

LEFT = "imported.safetensors"
"""The file of tensors that the run does not use, kept for a later export."""
TRAINING: dict[str, Any] = {
    "batch": 32,
    "optimizer": {"kind": "adamw", "lr": 2.0e-5, "weight_decay": 0.01},
    "schedule": {"kind": "linear", "warmup": 0.06},
    "budget": {"steps": 10000},
}
"""Defaults of further training; the learning rate is what BERT's README advises for more steps from a published
model."""
OLD_NAMES = {".gamma": ".weight", ".beta": ".bias"}
"""Endings of norms in early conversions from TensorFlow, and the endings that transformers reads instead."""


def import_model(source: str | Path, out: str | Path, *, head: bool = True, pairs: bool = False) -> Run | FinetunedRun:
    """Make a run of a model in the format of transformers.

    A model with a task head that Bakeoff has, too, becomes a fine-tuned run. Any other model becomes a pre-trained run;
    `imported.remarks` in its environment.json says why its task head is not used.

    Args:
        source: a folder with config.json, weights in safetensors and a tokenizer, or a name on the Hub, OWNER/NAME or
            OWNER/NAME@REVISION. No code of it is run, and no pickle is read.
        out: the run to make; it gets this name only when it is complete.
        head: use a task head; False: make a pre-trained run of the model without it.
        pairs: the model was fine-tuned on pairs of texts, which no config.json says (classification, multilabel or
            regression).

    Raises:
        UserError: there is no such model; its family is not known, or a value is not supported; files are damaged or
            contradict each other; `out` holds something.
    """
    out = path_of(out, "out")
    require_free(out)
    if pairs and not head:
        raise UserError(f"{source}: pairs of texts are read by the head of a task; use it, or leave --pairs out")
    folder = Folder(folder_of(source))
    config = ConfigReader(folder.json("config.json"), folder.where)
    _require_no_onnx(folder, config)
    family = family_of(config)
    theirs = _named(folder.tensors(), family)
    rows = config.whole("vocab_size")
    text, said = tokenizer_text(folder, family.model_types[0], config.values)
    tokenizer_file.bounded(text, f"{folder.path}: its tokenizer", rows, spare=len(SPECIAL_TOKENS))
    tokenizer = Tokenizer.from_string(filled_up(text, rows, f"{folder.path}: its tokenizer"), str(folder.path))
    recipe = _recipe(family, config, set(theirs), tokenizer, folder.path.resolve().name)
    shapes = _shapes(build_on_meta(recipe, tokenizer.size))
    _require_tokenizer(tokenizer, rows, folder)
    task_head, unused = None, list[str]()
    if head:
        try:
            task_head = imported_head(folder, family, recipe, tokenizer, theirs, out, pairs)
        except NotSaid as reason:
            unused = [f"its head of a task is not used: {reason}"]
            if pairs:
                raise UserError(f"{folder.path}: --pairs: {unused[0]}") from None
    links = family.links(recipe)
    if task_head is not None and folder.json(SETTINGS).get("truncation_side") == "left":
        unused.append("of texts that are too long transformers reads the end (truncation_side), and the run does not")
    if task_head is not None:
        links = [*family.body(recipe), *task_head.head.links]
        with torch.device("meta"):
            shapes = _shapes(task_head.build(recipe, tokenizer.size))
    taken = take(links, theirs, shapes, rows, str(folder.path))
    imported = {
        "model_type": str(config.values["model_type"]),
        "rows": rows,
        "dtype": _dtype(theirs, folder),
        "config": dict(config.values),
        "remarks": [*unused, *said, *_remarks(taken, tokenizer, rows)],
    }
    facts = {
        "seed": 0,
        "origin": f"imported from {source}",
        "imported": imported,
        **environment(torch.device("cpu"), "float32"),
    }
    kept = taken.left | taken.partly
    with unfinished(out) as partial:
        if task_head is not None:
            if kept:
                save_tensors(kept, partial / LEFT)
            write_finetuned(partial, recipe, tokenizer, task_head, taken.tensors, {"source": None, **facts})
        else:
            asked = {"recipe": recipe.model_dump(mode="json"), "corpus": None, "budget": None}
            run = Run.create(partial, recipe, tokenizer, {**asked, **facts})
            if kept:
                save_tensors(kept, partial / LEFT)
            module = _filled(recipe, tokenizer, taken)
            run.finish(module.state_dict(), _summary(recipe, module), path=out)
    return Run(out) if task_head is None else FinetunedRun.open(out)


def _require_no_onnx(folder: Folder, config: ConfigReader) -> None:
    if "model_type" not in config.values and any(folder.path.glob("*.onnx")):
        raise UserError(
            f"{folder.path}: ONNX, which is not read back; import what `export --to hf` wrote of the same run"
        )


def _shapes(module: nn.Module) -> dict[str, tuple[int, ...]]:
    return {name: tuple(tensor.shape) for name, tensor in module.state_dict().items()}


def family_of(config: ConfigReader) -> Family:
    """The family of a config, by its `model_type`.

    Raises:
        UserError: no family has this `model_type`.
    """
    kind = config.values.get("model_type")
    for family in FAMILIES:
        if kind in family.model_types:
            return family
    known = ", ".join(sorted({each for family in FAMILIES for each in family.model_types}))
    raise UserError(f"{config.where}: model_type: {kind!r:.50} cannot be imported; these can: {known}")


def _named(tensors: Mapping[str, Tensor], family: Family) -> dict[str, Tensor]:
    """Tensors under the family's names: with its prefix, and without buffers that are computed."""
    named = {}
    for name, tensor in tensors.items():
        if name.endswith(("position_ids", "token_type_ids")):
            continue
        for old, new in OLD_NAMES.items():
            if name.endswith(old):
                name = name.removesuffix(old) + new
        named[name.removeprefix(family.wrapped)] = tensor
    if family.prefix and not any(name.startswith(family.prefix) for name in named):
        named = {f"{family.prefix}{name}": tensor for name, tensor in named.items()}
    return named


def _recipe(family: Family, config: ConfigReader, tensors: set[str], tokenizer: Tokenizer, name: str) -> Recipe:
    said = family.adapted(family.recipe(config, tensors), tokenizer)
    values = {"name": name, **said, "tokenizer": tokenizer.config.model_dump()}
    return Recipe.parse({"training": TRAINING, **values}, config.where)


def _require_tokenizer(tokenizer: Tokenizer, rows: int, folder: Folder) -> None:
    if tokenizer.size - rows > len(SPECIAL_TOKENS):  # more than the special tokens that Bakeoff may have added
        raise UserError(
            f"{folder.path}: its tokenizer has {tokenizer.size:,} tokens, but by the config the model has {rows:,}: "
            "this is another model's tokenizer"
        )


def _remarks(taken: Taken, tokenizer: Tokenizer, rows: int) -> list[str]:
    remarks = [f"{part}: not in the files, so that it is random" for part in taken.fresh]
    if taken.left:
        parts = sorted({".".join(name.split(".")[:2]) for name in taken.left})
        remarks.append(f"kept for a later export, but not used here: {', '.join(parts)}")
    if tokenizer.size > rows:
        new = tokenizer.size - rows
        remarks.append(f"added to its {rows:,} tokens: {new} special token{'s' if new > 1 else ''} that it lacked")
    return remarks


def _dtype(theirs: Mapping[str, Tensor], folder: Folder) -> str:
    dtypes = {tensor.dtype for tensor in theirs.values() if tensor.is_floating_point()}
    if len(dtypes) != 1 or not dtypes <= set(DTYPES):
        kinds = ", ".join(sorted(str(each).removeprefix("torch.") for each in dtypes)) or "no floating-point numbers"
        raise UserError(f"{folder.path}: its weights are of {kinds}; one of {', '.join(DTYPES.values())} is read")
    return DTYPES[dtypes.pop()]


def _filled(recipe: Recipe, tokenizer: Tokenizer, taken: Taken) -> PretrainingModel:
    """The model with the imported tensors; missing ones are random, with seed 0."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module = PretrainingModel(recipe, tokenizer.size)
    module.load_state_dict(module.state_dict() | taken.tensors)
    return module


def _summary(recipe: Recipe, module: PretrainingModel) -> dict[str, Any]:
    return {
        "name": recipe.name,
        "seed": 0,
        "steps": 0,
        "tokens": 0,
        "seconds": 0.0,
        "flops": 0.0,
        "parameters": module.parameter_count(),
        "flops_per_token": float(module.flops_per_token()),
        "tokens_per_second": None,
        "peak_memory_bytes": None,
        "unigram_entropy": None,
        "validation": None,
    }
