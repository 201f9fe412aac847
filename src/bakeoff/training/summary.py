"""The figures of a training for the summary.json of its run."""

from typing import Any

import torch

from bakeoff.corpus.mixture import AnyCorpus
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.resources.device import peak_memory, peak_memory_since_reset
from bakeoff.trainer.position import Position
from bakeoff.training.pretraining import Pretraining


def summary_of(unit: Pretraining, position: Position, corpus: AnyCorpus) -> dict[str, Any]:
    """The summary of a training at its present step, see `bakeoff.runs.records.Summary`."""
    return {
        "name": unit.recipe.name,
        "seed": unit.seed,
        **spent(unit.module, position, unit.steps, unit.placement.device, unit.stages.words_per_token),
        "unigram_entropy": corpus.validation.unigram_entropy(),
        "corpus_fingerprint": corpus.fingerprint,
        "validation": unit.early_stop.measured(unit.last_validation),
        **unit.early_stop.summary(position.step < unit.steps),
    }


def spent(
    module: PretrainingModel, position: Position, steps: int, device: torch.device, words_per_token: float | None = None
) -> dict[str, Any]:
    """What a summary says of a training's length and cost, and of the size of its model.

    Args:
        module: what is trained.
        position: where the training is.
        steps: the steps that were planned.
        device: the device of the training.
        words_per_token: words that a token stands for; None: words are not counted.
    """
    words = {} if words_per_token is None else {"words": round(position.tokens * words_per_token)}
    return {
        "steps": position.step,
        "planned_steps": steps,
        "tokens": position.tokens,
        **words,
        "seconds": round(position.seconds, 3),
        "work_seconds": round(position.work_seconds, 3),
        "flops": position.flops,
        "parameters": module.parameter_count(),
        "flops_per_token": module.flops_per_token(),
        "tokens_per_second": round(position.tokens / position.seconds, 1),
        "peak_memory_bytes": peak_memory(device),
        "training_memory_bytes": peak_memory_since_reset(device),
    }
