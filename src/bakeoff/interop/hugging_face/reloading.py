"""Comparison of an exported folder, loaded with transformers, with its run."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from bakeoff.errors import UserError
from bakeoff.interop.families import Family
from bakeoff.interop.families.task_heads import ANSWERS, CHOICES
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.recipe import Recipe
from bakeoff.row import Row, Source
from bakeoff.runs.run import Run
from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.tasks.heads.writing_head import WritingHead
from bakeoff.tokenizer.tokenizer import Tokenizer

TOLERANCE = 1e-5
"""Largest allowed difference in float32 as a share of the largest logit; both sides sum in different orders."""
TEXT = "Language models read text: 12 words, and some more, 中文 and العربية too."


def pretrained_difference(run: Run | FinetunedRun, family: Family, folder: Path, architecture: str) -> float | None:
    """Load a folder and compare the logits of all heads, for padded rows of random tokens and of text.

    Raises:
        UserError: the logits differ, transformers cannot load the folder, or tensors are missing.
    """
    made = load_theirs(folder, architecture)
    if made is None:
        return None
    imported = run.environment.get("imported") or {}
    ids, padding_mask, segments = rows_of(run.recipe, run.tokenizer, imported.get("rows"))
    worst = 0.0
    with torch.no_grad():
        module = run.load() if isinstance(run, Run) else _as_pretrained(run)
        row, inputs = Row(ids, segments, padding_mask), _inputs(ids, padding_mask, segments)
        if module.model.config.sequence_to_sequence:
            row = Row(ids.flip(1).contiguous(), source=Source(ids, padding_mask))
            inputs["decoder_input_ids"] = row.ids
        hidden, _ = module.model(row)
        for name, ours, theirs in family.compared(module, hidden, _answers(made, inputs, folder)):
            kept = padding_mask if theirs.dim() == 3 else torch.ones(len(theirs), dtype=torch.bool)
            worst = max(worst, _difference(ours[kept][..., : theirs.shape[-1]], theirs[kept], f"{folder}: {name}"))
    return worst


def _as_pretrained(run: FinetunedRun) -> PretrainingModel:
    """The model of a run that was fine-tuned to write, with its head as that of its one objective."""
    head = run.load()
    assert isinstance(head, WritingHead)
    module = PretrainingModel(run.recipe, run.tokenizer.size)
    writer = {f"heads.{head.owner.kind}.{name}": tensor for name, tensor in head.writer.state_dict().items()}
    module.load_state_dict({f"model.{name}": tensor for name, tensor in head.model.state_dict().items()} | writer)
    return module.eval()


def task_difference(run: FinetunedRun, folder: Path, architecture: str, pads_before: bool = False) -> float | None:
    """Load the folder of a fine-tuned run and compare the logits of its head, for the rows of `pretrained_difference`.

    Args:
        run: the fine-tuned run.
        folder: the folder that was written.
        architecture: the class that loads it.
        pads_before: put the padding of rows before the tokens.

    Raises:
        UserError: as of `pretrained_difference`.
    """
    made = load_theirs(folder, architecture)
    if made is None:
        return None
    imported = run.environment.get("imported") or {}
    ids, padding_mask, segments = rows_of(run.recipe, run.tokenizer, imported.get("rows"))
    assert run.task.exported is not None
    ending, (scale, shift) = run.task.exported.ending, run.learned.output_scale
    with torch.no_grad():
        ours = run.load()(Row(ids, segments, padding_mask))
        inputs = _inputs(ids, padding_mask, segments)
        if pads_before:
            inputs = {name: _turned(tensor, padding_mask) for name, tensor in inputs.items()}
        if ending == CHOICES:
            inputs = {name: tensor[None] for name, tensor in inputs.items()}
        answers = _answers(made, inputs, folder)
    if ending == ANSWERS:
        theirs = torch.stack([answers["start_logits"], answers["end_logits"]], dim=-1)
    else:
        theirs = answers["logits"][0][:, None] if ending == CHOICES else answers["logits"]
    ours = ours * scale + shift
    if ours.dim() == 3:
        ours, theirs = ours[padding_mask], theirs[padding_mask]
    return _difference(ours, theirs, f"{folder}: its head")


def _turned(rows: Tensor, padding_mask: Tensor) -> Tensor:
    """(B, T) rows with the padding moved from after the tokens to before them."""
    width = rows.shape[1]
    return torch.stack([row.roll(width - int(mask.sum())) for row, mask in zip(rows, padding_mask, strict=True)])


def load_theirs(folder: Path, architecture: str) -> Any:
    """The model, loaded by transformers in float32 and evaluation mode; None: transformers is not installed.

    Raises:
        UserError: transformers cannot load the folder, or tensors are missing.
    """
    try:
        import transformers
    except ImportError:
        return None
    with quiet(transformers):
        try:
            made, info = getattr(transformers, architecture).from_pretrained(
                folder, output_loading_info=True, dtype=torch.float32, local_files_only=True
            )
        except Exception as error:  # keys of an imported config.json are anything, and so are its errors
            raise UserError(
                f"{folder}: transformers cannot load what was exported ({_reason(error)}); not exported"
            ) from None
    missing = sorted(map(str, [*info["missing_keys"], *info["mismatched_keys"]]))
    # Some classes have a pooler that their heads do not read; it may be missing.
    if missing := [name for name in missing if ".pooler." not in name]:
        raise UserError(f"{folder}: transformers misses {', '.join(missing[:5])}; not exported")
    return made.eval()


def _answers(made: Any, inputs: dict[str, Tensor], folder: Path) -> Any:
    """The output of their model.

    Raises:
        UserError: it fails, as for a key of an imported config.json that no weights contradict.
    """
    try:
        return made(**inputs, return_dict=True)  # whatever the config says of it
    except Exception as error:
        raise UserError(
            f"{folder}: transformers cannot use what was exported ({_reason(error)}); not exported"
        ) from None


def _reason(error: Exception) -> str:
    """The first line of an error of another library."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _inputs(ids: Tensor, padding_mask: Tensor, segments: Tensor | None) -> dict[str, Tensor]:
    inputs = {"input_ids": ids, "attention_mask": padding_mask.long()}
    return inputs if segments is None else inputs | {"token_type_ids": segments}


def _difference(ours: Tensor, theirs: Tensor, what: str) -> float:
    worst, scale = float((ours - theirs).abs().max()), float(ours.abs().max())
    if not worst <= TOLERANCE * max(scale, 1.0):
        raise UserError(f"{what}: transformers computes other numbers, by {worst:.2g} of {scale:.2g}; not exported")
    return worst


def rows_of(recipe: Recipe, tokenizer: Tokenizer, rows: int | None) -> tuple[Tensor, Tensor, Tensor | None]:
    """Rows of random tokens and of a text: (B, T) ids, (B, T) padding mask, and (B, T) segments or None.

    Args:
        recipe: the run's.
        tokenizer: the run's.
        rows: upper bound of ids; None: the size of the tokenizer.
    """
    length = min(64, recipe.model.longest_input or 64)
    rows = min(rows or tokenizer.size, tokenizer.size)
    usable = torch.tensor([i for i in range(rows) if i != tokenizer.pad])
    ids = usable[torch.randint(len(usable), (3, length), generator=torch.Generator().manual_seed(1))]
    (text, _), *_ = tokenizer.encode([TEXT])
    tokens = torch.from_numpy(text[text < rows][:length])
    ids[2, : len(tokens)] = tokens
    padding_mask = torch.arange(length) < torch.tensor([[length], [length // 2 + 1], [max(1, len(tokens))]])
    ids = ids.masked_fill(~padding_mask, tokenizer.pad if tokenizer.pad < rows else 0)
    if recipe.model.embedding.segments < 2 and not any(mixer.reads_segments for mixer in recipe.model.mixers):
        return ids, padding_mask, None
    return ids, padding_mask, (torch.arange(length) > length // 3).long().expand(3, -1).contiguous()


@contextmanager
def quiet(transformers: Any) -> Iterator[None]:
    """Silence transformers' progress bars and warnings on standard error."""
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
