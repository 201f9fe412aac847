"""The figures of a training for the summary.json of its run."""

from typing import TYPE_CHECKING, Any

from bakeoff.corpus.mixture import AnyCorpus
from bakeoff.resources.device import peak_memory

if TYPE_CHECKING:
    from bakeoff.training.loop import Training


def summary_of(training: "Training", corpus: AnyCorpus, seed: int) -> dict[str, Any]:
    """The summary of a training at its present step, see `bakeoff.runs.records.Summary`."""
    position = training.position
    return {
        "name": training.recipe.name,
        "seed": seed,
        "steps": position.step,
        "planned_steps": training.steps,
        "tokens": position.tokens,
        "words": round(position.tokens * training.batches.words_per_token),
        "seconds": round(position.seconds, 3),
        "work_seconds": round(position.work_seconds, 3),
        "flops": position.flops,
        "parameters": training.module.parameter_count(),
        "flops_per_token": training.module.flops_per_token(),
        "tokens_per_second": round(position.tokens / position.seconds, 1),
        "peak_memory_bytes": peak_memory(training.placement.device),
        "unigram_entropy": corpus.validation.unigram_entropy(),
        "corpus_fingerprint": corpus.fingerprint,
        "validation": training.early_stop.measured(training.last_validation),
        **training.early_stop.summary(position.step < training.steps),
    }
