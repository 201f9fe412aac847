"""Using a fine-tuned run: the class of new texts."""

from collections.abc import Sequence
from pathlib import Path

from bakeoff.errors import UserError
from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.tasks.probabilities import Predictions, class_probabilities
from bakeoff.training.device import resolve_device


def predict(
    run: str | Path | FinetunedRun,
    texts: Sequence[str],
    pairs: Sequence[str] | None = None,
    *,
    device: str = "auto",
) -> list[tuple[str, float]]:
    """The most probable class of each text, or pair of texts, and its probability.

    Args:
        run: a fine-tuned run.
        texts: (N,) texts.
        pairs: (N,) second texts, for a run that was fine-tuned on pairs.
        device: auto, cpu, cuda or mps.

    Raises:
        UserError: no fine-tuned run; second texts that the run cannot take, or their lack; not one for each text.
    """
    opened = run if isinstance(run, FinetunedRun) else FinetunedRun.open(run)
    if not texts:
        return []
    predictions = predictions_of(opened, texts, pairs, None, device)
    chosen = predictions.probabilities.max(1)
    return [
        (opened.classes[place], float(probability))
        for place, probability in zip(predictions.classes, chosen, strict=True)
    ]


def predictions_of(
    run: FinetunedRun,
    texts: Sequence[str],
    pairs: Sequence[str] | None,
    labels: Sequence[int] | None,
    device: str,
) -> Predictions:
    """Probabilities of all classes for each text, and the mean loss where there are labels."""
    takes_pairs = run.task.pair_column is not None
    if takes_pairs != (pairs is not None):
        raise UserError(
            f"{run.path}: this run was fine-tuned on {'pairs of texts; give both' if takes_pairs else 'single texts'}"
        )
    if pairs is not None and len(pairs) != len(texts):
        raise UserError(f"{len(texts)} texts and {len(pairs)} second texts: one for each is needed")
    on = resolve_device(device)
    format = run.format()
    # Everything is float32 here: the answer should not depend on the machine more than it must.
    return class_probabilities(run.load(on), format.encode(texts, pairs), format, on, "float32", labels)
