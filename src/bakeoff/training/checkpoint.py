"""Checkpoints: written beside, synced, then renamed, so that a reader never sees half of one."""

import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from bakeoff.durable import own_folder, remove, sync
from bakeoff.errors import UserError
from bakeoff.tensors import Damaged, load_tensors, save_tensors
from bakeoff.training.memory import Memory

KEPT = 2
"""Number of newest checkpoints that stay on disk."""


def save_checkpoint(
    folder: Path,
    step: int,
    module: nn.Module,
    optimizer: torch.optim.Optimizer,
    state: dict[str, Any],
    memory: Memory | None = None,
) -> Path:
    """Write `folder/step-NNNNNNNN` whole or not at all, then remove all but the newest checkpoints."""
    final = folder / f"step-{step:08d}"
    if final.exists():
        return final
    partial = own_folder(folder) / f".{final.name}.partial"
    remove(partial)
    partial.mkdir(parents=True)
    save_tensors(module.state_dict(), partial / "model.safetensors")
    save_tensors(_optimizer_tensors(optimizer), partial / "optimizer.safetensors")
    if memory is not None:
        save_tensors(memory.tensors(), partial / "memory.safetensors")
    (partial / "state.json").write_text(json.dumps({**state, "step": step}), encoding="utf-8")
    sync(partial / "state.json")
    sync(partial)
    partial.rename(final)
    sync(folder)
    for old in list_checkpoints(folder)[:-KEPT]:
        remove(old)
    return final


def list_checkpoints(folder: Path) -> list[Path]:
    """All whole checkpoints, the oldest first."""
    return sorted(folder.glob("step-*")) if folder.is_dir() else []


def checkpoint_step(path: Path) -> int:
    """The number of steps behind a checkpoint."""
    return int(path.name.removeprefix("step-"))


def load_checkpoint(
    path: Path, module: nn.Module, optimizer: torch.optim.Optimizer, memory: Memory | None = None
) -> dict[str, Any]:
    """Put a checkpoint's tensors into a module, its optimizer and its memory; returns the state saved beside them.

    Raises:
        UserError: it is damaged, or cannot be read.
    """
    states: dict[int, dict[str, Tensor]] = {}
    try:
        weights = load_tensors(path / "model.safetensors")
        for name, tensor in load_tensors(path / "optimizer.safetensors").items():
            index, _, key = name.partition(".")
            states.setdefault(int(index), {})[key] = tensor
        remembered = {} if memory is None else load_tensors(path / "memory.safetensors")
        state: dict[str, Any] = json.loads((path / "state.json").read_text(encoding="utf-8"))
    except (Damaged, ValueError) as error:
        raise UserError(
            f"{path}: this checkpoint is damaged ({error}); delete it, and --resume goes on from the one before"
        ) from None
    module.load_state_dict(weights)
    if memory is not None:
        memory.load(remembered)
    optimizer.load_state_dict({"state": states, "param_groups": optimizer.state_dict()["param_groups"]})
    return state


def _optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    states = optimizer.state_dict()["state"]
    return {f"{index}.{key}": value for index, state in states.items() for key, value in state.items()}
