"""`--to hf` for models that transformers has no class for: an export with code."""

from pathlib import Path
from typing import Any

from bakeoff.display.text import visible
from bakeoff.extras import version_of
from bakeoff.interop.export import write_json
from bakeoff.interop.model_card import model_card
from bakeoff.interop.remote_code.comparison import compare
from bakeoff.interop.remote_code.described import Described
from bakeoff.interop.remote_code.finetuned import describe_finetuned
from bakeoff.interop.remote_code.pretrained import describe_pretrained
from bakeoff.interop.remote_code.source import model_source
from bakeoff.interop.tokenizer_files import with_marks, write_tokenizer
from bakeoff.runs.run import Run
from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.tensors import save_tensors

FILE = "modeling_bakeoff"
"""Name of the file of code, without `.py`."""


def export(run: Path, folder: Path) -> tuple[float, str, list[str]]:
    """Write a run into an empty folder, load it in a process without Bakeoff, and compare outputs.

    Returns:
        The largest difference of outputs, the class of transformers that loads the model, and remarks about what is
        left out.

    Raises:
        UserError: there is no such run, transformers cannot express it, or the files compute other numbers.
    """
    described = written(run, folder)
    return compare(described, folder), described.main, described.remarks


def written(run: Path, folder: Path) -> Described:
    """Write a run into an empty folder without loading it, and return its description.

    Raises:
        UserError: there is no such run, or transformers cannot express it.
    """
    finetuned = FinetunedRun.at(run)
    described = describe_finetuned(FinetunedRun.open(run)) if finetuned else describe_pretrained(Run.open_trained(run))
    _write_model(described, folder)
    described.remarks += write_tokenizer(
        with_marks(described.tokenizer, described.frame.marks), folder, described.frame
    )
    (folder / "README.md").write_text(
        model_card(run, described.main, described.purpose, described.remarks), encoding="utf-8"
    )
    return described


def _write_model(run: Described, folder: Path) -> None:
    """Write config.json, generation_config.json, the file of code and the weights."""
    names = {"AutoConfig": "BakeoffConfig", **run.classes}
    config: dict[str, Any] = {
        "model_type": "bakeoff",
        "architectures": [run.classes[run.main]],
        "auto_map": {name: f"{FILE}.{class_name}" for name, class_name in names.items()},
        "dtype": "float32",
        **run.config,
    }
    write_json(folder / "config.json", config)
    if run.generation is not None:
        write_json(folder / "generation_config.json", {"_from_model_config": False, **run.generation})
    title = (
        f"{visible(run.recipe.name)}: a model of Bakeoff {version_of('bakeoff')} in one file, for transformers.\n\n"
        "Made of the parts of Bakeoff that this model has, as they are there; it needs torch and transformers.\n"
    )
    title = title.replace("\\", "/").replace('"', "'")
    source = model_source(run.recipe.model, list(run.classes.values()), run.heads, title)
    (folder / f"{FILE}.py").write_text(source, encoding="utf-8")
    save_tensors(run.tensors, folder / "model.safetensors")
