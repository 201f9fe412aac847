"""Whether the processor waits for a GPU in a step of a training; a part of gpu.py."""

import time
from typing import Any

import torch

from bakeoff.conformance.narrow import narrow
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.resources.device import Placement, resolve_precision
from bakeoff.trainer.step import optimize
from bakeoff.training.pretraining import Pretraining
from bakeoff.training.stages import Stages


def wait_for(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def steps_without_waits(corpora: Any, device: torch.device, names: list[str], ends: float) -> dict[str, Any]:
    """The recipes whose third step waits for the device; torch itself raises the error."""
    wrong, seen, left_out = {}, 0, []
    for name in names:
        if time.monotonic() > ends:
            left_out.append(name)
            continue
        recipe, seen = narrow(name), seen + 1
        corpus = corpora.of(recipe)
        module = PretrainingModel(recipe, corpus.tokenizer.size).to(device)
        placement = Placement(device, resolve_precision("auto", device))
        unit = Pretraining(recipe, module, placement, stages=Stages(recipe, module, corpus, seed=0))
        unit.begin()
        for step in range(3):
            batches = unit.batches(step)
            wait_for(device)
            if device.type == "cuda" and step == 2:
                torch.cuda.set_sync_debug_mode("error")
            try:
                optimize(unit, batches, step)
            except RuntimeError as error:
                wrong[name] = str(error).splitlines()[0]
            finally:
                if device.type == "cuda":
                    torch.cuda.set_sync_debug_mode("default")
    return {"recipes": seen, "wrong": wrong, "left out": left_out}
