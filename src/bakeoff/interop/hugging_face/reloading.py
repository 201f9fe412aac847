"""What transformers computes of an exported folder, compared with what the run computes."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from bakeoff.errors import UserError
from bakeoff.interop.families import Family
from bakeoff.models.inputs import Inputs
from bakeoff.runs.run import Run

TOLERANCE = 1e-5
"""Of the largest number of the logits, in float32; both sides add up in another order."""
TEXT = "Language models read text: 12 words, and some more, 中文 and العربية too."


def largest_difference(run: Run, family: Family, folder: Path, architecture: str) -> float | None:
    """Load a folder and compare the logits of all heads, on padded rows of random tokens and of text.

    Raises:
        UserError: they differ, or transformers cannot load the folder, or lacks tensors.
    """
    try:
        import transformers
    except ImportError:
        return None
    with quiet(transformers):
        made, found = getattr(transformers, architecture).from_pretrained(
            folder, output_loading_info=True, dtype=torch.float32, local_files_only=True
        )
    if found["missing_keys"] or found["mismatched_keys"]:
        keys = ", ".join(sorted(map(str, [*found["missing_keys"], *found["mismatched_keys"]]))[:5])
        raise UserError(f"{folder}: transformers misses {keys}; the export is not used")
    ids, real, segments = rows_of(run)
    worst = 0.0
    with torch.no_grad():
        module = run.load()
        hidden = module.model(Inputs(ids, segments, real))
        given: dict[str, Any] = {"input_ids": ids, "attention_mask": real.long()}
        if segments is not None:
            given["token_type_ids"] = segments
        answers = made.eval()(**given)
        for name, ours, theirs in family.compared(module, hidden, answers):
            kept = real if theirs.dim() == 3 else slice(None)
            worst = max(worst, _difference(ours[kept][..., : theirs.shape[-1]], theirs[kept], f"{folder}: {name}"))
    return worst


def _difference(ours: Tensor, theirs: Tensor, what: str) -> float:
    worst, scale = float((ours - theirs).abs().max()), float(ours.abs().max())
    if not worst <= TOLERANCE * max(scale, 1.0):
        raise UserError(f"{what}: transformers computes other numbers, by {worst:.2g} of {scale:.2g}; not exported")
    return worst


def rows_of(run: Run) -> tuple[Tensor, Tensor, Tensor | None]:
    """(B, T) ids, which are tokens, and segments where the model has such: random tokens and a text, padded."""
    longest = run.recipe.model.longest_input or 64
    length = min(64, longest)
    imported = run.environment.get("imported") or {}
    rows = min(run.tokenizer.size, imported.get("rows", run.tokenizer.size))
    usable = torch.tensor([i for i in range(rows) if i != run.tokenizer.pad])
    ids = usable[torch.randint(len(usable), (3, length), generator=torch.Generator().manual_seed(1))]
    (text, _), *_ = run.tokenizer.encode([TEXT])
    text = torch.from_numpy(text[:length])
    text = text[text < rows]
    ids[2, : len(text)] = text
    real = torch.arange(length) < torch.tensor([[length], [length // 2 + 1], [max(1, len(text))]])
    pad = run.tokenizer.pad if run.tokenizer.pad < rows else 0
    ids = ids.masked_fill(~real, pad)
    if run.recipe.model.embedding.segments < 2:
        return ids, real, None
    return ids, real, (torch.arange(length) > length // 3).long().expand(3, -1).contiguous()


@contextmanager
def quiet(transformers: Any) -> Iterator[None]:
    """Keep transformers' bars and warnings from standard error."""
    logging = transformers.utils.logging
    level = logging.get_verbosity()
    shown = logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if shown:
            logging.enable_progress_bar()
