"""The figures of a training for the summary.json of its run."""

from typing import Any

from bakeoff.corpus.mixture import AnyCorpus
from bakeoff.resources.device import peak_memory
from bakeoff.trainer.position import Position
from bakeoff.training.pretraining import Pretraining


def summary_of(unit: Pretraining, position: Position, corpus: AnyCorpus) -> dict[str, Any]:
    """The summary of a training at its present step, see `bakeoff.runs.records.Summary`."""
    return {
        "name": unit.recipe.name,
        "seed": unit.seed,
        "steps": position.step,
        "planned_steps": unit.steps,
        "tokens": position.tokens,
        "words": round(position.tokens * unit.stages.words_per_token),
        "seconds": round(position.seconds, 3),
        "work_seconds": round(position.work_seconds, 3),
        "flops": position.flops,
        "parameters": unit.module.parameter_count(),
        "flops_per_token": unit.module.flops_per_token(),
        "tokens_per_second": round(position.tokens / position.seconds, 1),
        "peak_memory_bytes": peak_memory(unit.placement.device),
        "unigram_entropy": corpus.validation.unigram_entropy(),
        "corpus_fingerprint": corpus.fingerprint,
        "validation": unit.early_stop.measured(unit.last_validation),
        **unit.early_stop.summary(position.step < unit.steps),
    }
