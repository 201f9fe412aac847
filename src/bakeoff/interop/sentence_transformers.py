"""`--to sentence-transformers`: the form of `--to hf` with the library's files that say how states are pooled."""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from bakeoff.display import markdown
from bakeoff.errors import UserError
from bakeoff.interop.export import Exported, write_json
from bakeoff.interop.hugging_face.reloading import quiet
from bakeoff.runs.run import Run
from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.unfinished import require_free, unfinished
from bakeoff.vectors.embed import embed
from bakeoff.vectors.embedder import Embedder
from bakeoff.vectors.options import VectorConfig

POOLINGS = ("mean", "max", "cls")
"""Poolings of `bakeoff embed` that sentence-transformers has as well."""
CLOSE = 1e-5
"""Largest allowed difference of vectors, as a share of the largest number."""
COMPARED = [
    "The town lies behind the hill.",
    "a",
    "Ein Satz mit Umlauten: Äpfel, Öl, Übung; and several words more, so that the two are not of one length.",
]
"""Texts whose vectors are compared."""


def export(run: Path, out: Path, *, pooling: str = "mean") -> Exported:
    """Write a model for sentence-transformers with the vectors of `bakeoff embed --pooling POOLING`.

    Args:
        run: a pre-trained encoder.
        out: the folder to make.
        pooling: how token vectors become one vector: mean, max (not for gguf) or cls.

    Raises:
        UserError: there is no such run or pooling; the run is not an encoder with rows that begin with [CLS], or is
            fine-tuned; `--to hf` refuses the run; the vectors differ from those of `bakeoff embed`.
    """
    if pooling not in POOLINGS:
        raise UserError(f"--pooling {pooling}: sentence-transformers has no such pooling; it has {', '.join(POOLINGS)}")
    require_free(out)
    if FinetunedRun.at(run):
        raise UserError(f"{run}: a fine-tuned run, whose head gives no vectors; give the run that it came from")
    recipe = Run.open_trained(run).recipe
    if recipe.model.encoder is None or recipe.model.sequence_to_sequence or recipe.input.start_last:
        raise UserError(f"{run}: vectors are exported of encoders whose rows begin with [CLS]; use `bakeoff embed`")
    embedder = Embedder(run, VectorConfig.parse({"pooling": pooling}, "export"), "cpu")
    length = embedder.format.length
    write = import_module("bakeoff.interop.hugging_face.export").export
    with unfinished(out) as folder:
        inner = write(run, folder / "0_Transformer")
        write_json(folder / "modules.json", _modules())
        write_json(
            folder / "0_Transformer" / "sentence_bert_config.json", {"max_seq_length": length, "do_lower_case": False}
        )
        (folder / "1_Pooling").mkdir()
        write_json(
            folder / "1_Pooling" / "config.json",
            {
                "word_embedding_dimension": embedder.width,
                "pooling_mode_cls_token": pooling == "cls",
                "pooling_mode_mean_tokens": pooling == "mean",
                "pooling_mode_max_tokens": pooling == "max",
                "pooling_mode_mean_sqrt_len_tokens": False,
            },
        )
        (folder / "README.md").write_text(_readme(recipe.name, pooling, length), encoding="utf-8")
        difference = _compared(run, folder, pooling) if find_spec("sentence_transformers") else None
        if difference is not None and not difference <= CLOSE:
            raise UserError(
                f"{run}: sentence-transformers gives other vectors than `bakeoff embed` (a difference of "
                f"{difference:.1e}), so nothing is written"
            )
    remarks = list(inner.remarks)
    if difference is None:
        remarks.append("not compared with `bakeoff embed`: install sentence-transformers to have that done")
    else:
        remarks.append(f"vectors differ from those of `bakeoff embed` by {difference:.1e} of the largest number")
    return Exported(out, "sentence-transformers", f'SentenceTransformer("{out}")', difference, remarks)


def _modules() -> list[dict[str, Any]]:
    kinds = ("0_Transformer", "Transformer"), ("1_Pooling", "Pooling")
    return [
        {"idx": number, "name": str(number), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for number, (path, kind) in enumerate(kinds)
    ]


def _compared(run: Path, folder: Path, pooling: Any) -> float:
    """Largest difference between the library's vectors and ours, as a share of the largest number."""
    library: Any = import_module("sentence_transformers")
    with quiet(import_module("transformers")):  # silences remarks about heads that vectors do not need
        vectors = library.SentenceTransformer(str(folder), device="cpu").encode(COMPARED, show_progress_bar=False)
    wanted = embed(run, COMPARED, pooling=pooling, device="cpu")
    if vectors.shape != wanted.shape:
        return float("inf")
    return float(np.abs(vectors - wanted).max() / np.abs(wanted).max())


def _readme(name: str, pooling: str, length: int) -> str:
    return f"""# Vectors of {markdown.text(name)}

Written by Bakeoff: the {pooling} of the last layer's states over the tokens of a text, of which up to {length} are
read. These are the vectors of `bakeoff embed --pooling {pooling}`.

```python
from sentence_transformers import SentenceTransformer

print(SentenceTransformer(".").encode(["The town lies behind the hill."]).shape)
```
"""
