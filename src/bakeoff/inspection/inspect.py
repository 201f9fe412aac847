"""Analysis of a run's layers on held-out text."""

import json
from pathlib import Path

import torch

from bakeoff.config import Config
from bakeoff.corpus.mixture import AnyCorpus
from bakeoff.corpus.store import Corpus
from bakeoff.display.wording import counted
from bakeoff.durable import own_folder, write_atomically
from bakeoff.errors import UserError, path_of
from bakeoff.inspection.layers import Layer, layers_of
from bakeoff.inspection.page import write_page
from bakeoff.json_files import require_replaceable
from bakeoff.resources.device import resolve_device
from bakeoff.runs.run import Run
from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.training.stages import make_batches

JSON, PAGE = "inspect.json", "inspect.html"
"""The names of the results, in the order in which they are written."""

EXAMPLES = 64
"""Default number of rows of held-out text; with more, the means over tokens hardly change."""


class Inspection(Config):
    """The measurements of a run's layers, and their text."""

    run: str
    """The path of the run."""
    recipe: str
    """The name of the run's recipe."""
    corpus: str
    """The path of the corpus whose held-out text was read."""
    corpus_fingerprint: str
    """The fingerprint of the corpus."""
    examples: int
    """Number of rows of held-out text."""
    layers: list[Layer]
    """The layers, with those of the encoder first."""


def inspect(
    run: str | Path,
    *,
    corpus: str | Path | None = None,
    out: str | Path | None = None,
    examples: int = EXAMPLES,
    device: str = "auto",
) -> Inspection:
    """Measure each layer: L2 distance and cosine similarity between its input and output, and its kernels.

    The distances are those of figure 1 of Lan et al. 2020 (arXiv:1909.11942). inspect.json and inspect.html are
    written.

    Args:
        run: a pre-trained run; if it was stopped, its newest checkpoint is used.
        corpus: corpus whose held-out text is read, made with the run's tokenizer; None: the corpus of the run.
        out: folder to write the results to; None: RUN/inspect.
        examples: number of held-out rows to read: the first ones of those that the training measures.
        device: auto, cpu, cuda or mps.

    Raises:
        UserError: the run is fine-tuned or has no checkpoint, the corpus is missing or has another tokenizer, or the
            folder cannot be made, or holds other files under the names of these two.
    """
    if FinetunedRun.at(run):
        raise UserError(
            f"{run}: fine-tuned, and inspect reads pre-trained runs, such as the one that a run was fine-tuned from"
        )
    opened = Run.open_trained(run)
    text = Corpus.open(_corpus_of(opened) if corpus is None else corpus)
    opened.require_tokenizer_of(text)
    folder = opened.home / "inspect" if out is None else path_of(out, "out")
    if out is not None:
        require_replaceable([folder / JSON, folder / PAGE], {"examples", "layers"})
    try:
        (own_folder(folder) if out is None else folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{folder}: cannot be made: {error.strerror}; choose another --out") from None
    layers, rows = layers_on_held_out_text(opened, text, resolve_device(device), examples)
    inspection = Inspection(
        run=str(opened.path),
        recipe=opened.recipe.name,
        corpus=str(text.path),
        corpus_fingerprint=text.fingerprint,
        examples=rows,
        layers=layers,
    )
    source = f"{inspection.corpus}, fingerprint {inspection.corpus_fingerprint}"
    about = f"{counted(inspection.examples, 'row')} of held-out text of {source}"
    write_atomically(folder / JSON, json.dumps(inspection.model_dump(), indent=1) + "\n")
    write_page(folder / PAGE, f"{inspection.recipe}: {inspection.run}", about, inspection.layers)
    return inspection


def layers_on_held_out_text(
    run: Run, text: AnyCorpus, device: torch.device, examples: int = EXAMPLES
) -> tuple[list[Layer], int]:
    """The layers of a run, measured on rows of a corpus's validation split, and the number of these rows.

    Args:
        run: the run.
        text: the corpus.
        device: the device of the model.
        examples: number of rows to read: the first ones of those that the training measures.
    """
    module = run.load(device)
    batches = make_batches(run.recipe, module, text, seed=0, split="validation").fixed(examples)
    return layers_of(module, batches, device), sum(len(batch.row.ids) for batch in batches)


def _corpus_of(run: Run) -> Path:
    """The corpus of a run's training.

    Raises:
        UserError: the run is imported, or its corpus is no longer there.
    """
    corpus = run.environment["corpus"]
    if corpus is None:
        raise UserError(f"{run.path}: imported, so that it has no corpus of its own; give one with --corpus")
    path = Path(corpus["path"])
    if not path.is_dir():
        raise UserError(f"{run.path}: its corpus {path} is not there any more; give one with --corpus")
    return path
