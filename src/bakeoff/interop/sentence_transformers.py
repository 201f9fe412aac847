"""`--to sentence-transformers`: the form of `--to hf` with the library's files that say how states are pooled."""

import json
import os
import subprocess
import sys
import tempfile
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers

from bakeoff.display import markdown
from bakeoff.errors import UserError
from bakeoff.interop.export import Exported, write_json
from bakeoff.interop.tokenizer_files import clean_first
from bakeoff.json_files import read_json
from bakeoff.runs.run import Run
from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.tensors import load_tensors, save_tensors
from bakeoff.tokenizer.tokenizer import Tokenizer
from bakeoff.unfinished import require_free, unfinished
from bakeoff.vectors.embed import embed
from bakeoff.vectors.embedder import Embedder
from bakeoff.vectors.options import VectorConfig
from bakeoff.vectors.taught import Taught, require_last_layer

POOLINGS = {
    "mean": "pooling_mode_mean_tokens",
    "max": "pooling_mode_max_tokens",
    "cls": "pooling_mode_cls_token",
    "last": "pooling_mode_lasttoken",
}
"""The keys of sentence-transformers for the poolings of `bakeoff embed`."""
WEIGHTS, DENSE, IDENTITY = "1_WordWeights", "2_Dense", "torch.nn.modules.linear.Identity"
"""Folders of the modules that vectors of `contrast` have beside, and the activation of the second."""
CLOSE = 1e-5
"""Largest allowed difference of vectors, as a share of the largest number."""
COMPARED = [
    "The town lies behind the hill.",
    "a",
    "Ein Satz mit Umlauten: Äpfel, Öl, Übung; and several words more, so that the two are not of one length.",
    "A long text is cut. " * 200,
    "  Two\nlines, with  a decomposed cafe\u0301\t",
]
"""Texts whose vectors are compared."""


def export(run: Path, out: Path, *, pooling: str | None = None) -> Exported:
    """Write a model for sentence-transformers with the vectors of `bakeoff embed --pooling POOLING`.

    Args:
        run: a pre-trained run, of an encoder or a decoder.
        out: the folder to make.
        pooling: how token vectors become one vector: mean, max, cls or last (gguf: mean or cls); None: that for which
            `bakeoff contrast` has taught the run, else mean.

    Raises:
        UserError: there is no such run or pooling; the run is an encoder with a decoder, has rows that end with [CLS],
            or is fine-tuned; `--to hf` refuses the run; the vectors differ from those of `bakeoff embed`.
    """
    if pooling is not None and pooling not in POOLINGS:
        raise UserError(f"--pooling {pooling}: sentence-transformers has no such pooling; it has {', '.join(POOLINGS)}")
    require_free(out)
    if FinetunedRun.at(run):
        raise UserError(f"{run}: a fine-tuned run, whose head gives no vectors; give the run that it came from")
    opened = Run.open_trained(run)
    recipe = opened.recipe
    if recipe.model.sequence_to_sequence or recipe.input.start_last:
        what = "an encoder with a decoder" if recipe.model.sequence_to_sequence else "a model whose rows end with [CLS]"
        raise UserError(f"{run}: {what}, whose vectors sentence-transformers would not give; use `bakeoff embed`")
    embedder = Embedder(run, VectorConfig.parse({"pooling": pooling}, "export"), "cpu")
    length, chosen = embedder.format.length, embedder.pooling
    # No module is written that averages layers: WeightedLayerPooling was not tried.
    require_last_layer(embedder.taught, opened, "sentence-transformers reads")
    write = import_module("bakeoff.interop.hugging_face.export").export
    with unfinished(out) as folder:
        inner = write(run, folder / "0_Transformer")
        _read_as_here(folder / "0_Transformer", opened.tokenizer)
        has_code = (folder / "0_Transformer" / "modeling_bakeoff.py").is_file()
        write_json(folder / "modules.json", _modules(embedder.taught))
        write_json(
            folder / "0_Transformer" / "sentence_bert_config.json", {"max_seq_length": length, "do_lower_case": False}
        )
        (folder / "1_Pooling").mkdir()
        write_json(
            folder / "1_Pooling" / "config.json",
            {
                "word_embedding_dimension": embedder.width,
                **{key: name == chosen for name, key in POOLINGS.items()},
                "pooling_mode_mean_sqrt_len_tokens": False,
            },
        )
        _write_taught(folder, embedder.taught)
        code = ", trust_remote_code=True" if has_code else ""
        (folder / "README.md").write_text(
            _readme(recipe.name, length, code, embedder.taught, pooling), encoding="utf-8"
        )
        difference = _compared(run, folder, pooling) if find_spec("transformers") else None
        if difference is not None and not difference <= CLOSE:
            raise UserError(
                f"{run}: what was exported gives other vectors than `bakeoff embed` (they differ by {difference:.1e}), "
                "so nothing is written"
            )
    remarks = list(inner.remarks)
    if difference is None:
        remarks.append("not compared with `bakeoff embed`: install transformers to have that done")
    else:
        remarks.append(f"vectors differ from those of `bakeoff embed` by {difference:.1e} of the largest number")
    return Exported(out, "sentence-transformers", f'SentenceTransformer("{out}"{code})', difference, remarks)


def _read_as_here(folder: Path, tokenizer: Tokenizer) -> None:
    """Have the tokenizer read texts as `embed` does, and pad after the tokens.

    Models that count positions from a row's beginning need the latter here.
    """
    settings, file = folder / "tokenizer_config.json", folder / "tokenizer.json"
    write_json(settings, {**read_json(settings), "padding_side": "right", "split_special_tokens": True})
    if tokenizer.end_of_line is None:
        inner = tokenizers.Tokenizer.from_file(str(file))
        clean_first(inner, plain=True)
        inner.save(str(file))


def _write_taught(folder: Path, taught: Taught) -> None:
    """Write the weights of tokens and the linear layer after the pooling in the library's form."""
    if taught.token_weights is not None:
        (folder / WEIGHTS).mkdir()
        tokens = [str(number) for number in range(len(taught.token_weights))]  # their names have no effect
        weights = dict(zip(tokens, taught.token_weights.tolist(), strict=True))
        values = {"vocab": tokens, "word_weights": weights, "unknown_word_weight": 1.0}
        write_json(folder / WEIGHTS / "wordweights_config.json", values)
    if taught.weight is not None and taught.bias is not None:
        (folder / DENSE).mkdir()
        config = {"in_features": taught.weight.shape[1], "out_features": taught.weight.shape[0], "bias": True}
        write_json(folder / DENSE / "config.json", {**config, "activation_function": IDENTITY})
        tensors = {"linear.weight": taught.weight, "linear.bias": taught.bias}
        save_tensors(tensors, folder / DENSE / "model.safetensors")


def _modules(taught: Taught) -> list[dict[str, Any]]:
    kinds = [("0_Transformer", "Transformer")]
    kinds += [] if taught.token_weights is None else [(WEIGHTS, "WordWeights")]
    kinds += [("1_Pooling", "Pooling")]
    kinds += [] if taught.weight is None else [(DENSE, "Dense")]
    return [
        {"idx": number, "name": str(number), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for number, (path, kind) in enumerate(kinds)
    ]


def _compared(run: Path, folder: Path, pooling: Any) -> float:
    """Largest difference between the vectors of the files and ours, as a share of the largest number.

    Raises:
        UserError: the files cannot be read back.
    """
    program = Path(__file__).with_name("reload_vectors.py")
    with tempfile.TemporaryDirectory() as temporary:
        results = Path(temporary)
        (results / "texts.json").write_text(json.dumps(COMPARED), encoding="utf-8")
        kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONSTARTUP")}
        outside = {"HF_MODULES_CACHE": str(results / "modules"), "HF_HUB_OFFLINE": "1"}
        command = [sys.executable, "-I", "-B", str(program), str(folder.absolute()), str(results)]
        made = subprocess.run(command, env=kept | outside, capture_output=True, text=True, check=False)
        if made.returncode:
            last = (made.stderr.strip().splitlines() or ["no message"])[-1]
            raise UserError(f"{run}: what was exported cannot be read back: {last}")
        vectors = load_tensors(results / "vectors.safetensors")["vectors"].numpy()
    wanted = embed(run, COMPARED, pooling=pooling, device="cpu")
    if vectors.shape != wanted.shape:
        return float("inf")
    return float(np.abs(vectors - wanted).max() / np.abs(wanted).max())


def _readme(name: str, length: int, code: str, taught: Taught, asked: str | None) -> str:
    options = "" if asked is None else f" --pooling {asked}"
    pooling = f"{'weighted ' * (taught.token_weights is not None)}{taught.pooling}"
    then = "" if taught.weight is None else ", through a linear layer"
    return f"""# Vectors of {markdown.text(name)}

Written by Bakeoff: the {pooling} of the last layer's states over the tokens of a text{then}. Up to {length} tokens are
read. These are the vectors of `bakeoff embed{options}`.

```python
from sentence_transformers import SentenceTransformer

print(SentenceTransformer("."{code}).encode(["The town lies behind the hill."]).shape)
```
"""
