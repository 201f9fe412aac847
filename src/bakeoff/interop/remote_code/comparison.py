"""Comparison of an export, loaded in a process without Bakeoff, with its run, for rows with padding."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from bakeoff.errors import UserError
from bakeoff.interop.remote_code.described import Described
from bakeoff.row import Row
from bakeoff.tensors import load_tensors, save_tensors

TOLERANCE = 1e-5
"""Largest allowed difference, as a share of the largest compared number."""
LENGTHS = (24, 17, 5)
"""Lengths of the compared rows in tokens, cut to the model's positions."""


def compare(run: Described, folder: Path) -> float:
    """The largest difference between the outputs of the files in a folder and those of the run.

    Raises:
        UserError: the files cannot be loaded, or compute other numbers.
    """
    with tempfile.TemporaryDirectory() as temporary:
        results = Path(temporary)
        prepare(run, results)
        read_back([(folder, results)])
        return difference(run, results)


def prepare(run: Described, results: Path) -> None:
    """Write the inputs of the other process, and the classes to load, into the folder `results`."""
    right, left, _ = _batches(run)
    inputs = {f"right.{name}": tensor for name, tensor in _named(right, run).items()}
    inputs |= {f"left.{name}": tensor for name, tensor in _named(left, run).items()}
    save_tensors(inputs, results / "inputs.safetensors")
    with torch.inference_mode():
        classes = sorted(run.computed(right))  # the other classes have a random head
    (results / "classes.json").write_text(json.dumps(classes), encoding="utf-8")


def difference(run: Described, results: Path) -> float:
    """The largest difference between the outputs of the other process in `results` and those of the run.

    Raises:
        UserError: a difference is too large.
    """
    right, _, lengths = _batches(run)
    with torch.inference_mode():
        expected = run.computed(right)
    outputs = load_tensors(results / "outputs.safetensors")
    return max(_difference(name, expected[name.partition(".")[0]], tensor, lengths) for name, tensor in outputs.items())


def _batches(run: Described) -> tuple[Row[Tensor], Row[Tensor], list[int]]:
    """A batch with padding after the tokens, the same batch with padding before them, and the lengths of rows."""
    longest = run.recipe.model.longest_input
    lengths = [min(length, longest or length) for length in LENGTHS]
    width = max(lengths)
    draw = torch.Generator().manual_seed(0)
    special = set(run.tokenizer.special_ids.tolist())
    plain = torch.tensor([token for token in range(run.tokenizer.size) if token not in special])
    ids = torch.full((len(lengths), width), run.tokenizer.pad)
    segments = torch.zeros_like(ids)
    for row, length in enumerate(lengths):
        ids[row, :length] = plain[torch.randint(len(plain), (length,), generator=draw)]
        segments[row, length // 2 : length] = 1
    padding_mask = torch.arange(width) < torch.tensor(lengths)[:, None]
    ids_after, segments_after, mask_after = (
        torch.stack([each.roll(width - length) for each, length in zip(part, lengths, strict=True)])
        for part in (ids, segments, padding_mask)
    )
    return Row(ids, segments, padding_mask), Row(ids_after, segments_after, mask_after), lengths


def _named(batch: Row[Tensor], run: Described) -> dict[str, Tensor]:
    assert batch.padding_mask is not None
    assert batch.segments is not None
    inputs = {"input_ids": batch.ids, "attention_mask": batch.padding_mask.long()}
    return {**inputs, "token_type_ids": batch.segments} if run.config["uses_segments"] else inputs


def read_back(exports: Sequence[tuple[Path, Path]]) -> None:
    """Load exports in another process, and run them on what `prepare` wrote; `exports` are (folder, results) pairs.

    Raises:
        UserError: transformers cannot load an export.
    """
    program = Path(__file__).with_name("reload.py")
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONSTARTUP")}
    outside = {"HF_MODULES_CACHE": str(exports[0][1] / "modules"), "HF_HUB_OFFLINE": "1"}
    paths = [str(path.absolute()) for pair in exports for path in pair]
    command = [sys.executable, "-I", "-B", str(program), *paths]
    made = subprocess.run(command, env=kept | outside, capture_output=True, text=True, check=False)
    if made.returncode:
        last = (made.stderr.strip().splitlines() or ["no message"])[-1]
        raise UserError(f"what was exported cannot be read back by transformers: {last}")


def _difference(name: str, expected: Tensor, actual: Tensor, lengths: list[int]) -> float:
    """The largest difference at tokens, padding aside; lengths are those of rows."""
    left = name.endswith(".left") and expected.dim() == 3 and not name.startswith("AutoModelForSeq2SeqLM")
    if expected.shape != actual.shape:
        raise UserError(f"what was read back gives {name} of shape {tuple(actual.shape)}, not {tuple(expected.shape)}")
    if expected.dim() == 3:
        width = expected.shape[1]
        if name.startswith("AutoModelForSeq2SeqLM"):
            lengths = [width] * len(expected)
        pairs = [
            (row[:length], (other[width - length :] if left else other[:length]))
            for row, other, length in zip(expected, actual, lengths, strict=True)
        ]
        expected, actual = (torch.cat([pair[side] for pair in pairs]) for side in (0, 1))
    largest = float((expected - actual).abs().max())
    scale = max(1.0, float(expected.abs().max()))
    if not largest <= TOLERANCE * scale:
        raise UserError(f"what was read back computes something else: {name} differs by {largest:.2g}")
    return largest
