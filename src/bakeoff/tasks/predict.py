"""Using a fine-tuned run: the class of new texts."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from bakeoff.errors import UserError
from bakeoff.inference.text_files import Texts, in_memory, read_ahead
from bakeoff.resources.device import resolve_device
from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.tasks.probabilities import Predictions, class_probabilities

TEXTS_AT_ONCE = 2048
"""The most that are read ahead, so that texts of similar length go through the model together."""


class Predicted(NamedTuple):
    """What a run says of a text, or of a pair."""

    texts: tuple[str, ...]
    """The text, or both, as they were given."""
    label: str
    """The most probable class."""
    probability: float
    """And its probability."""


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
        texts: (N,) texts; a blank one is classified as the text that it is, one without words.
        pairs: (N,) second texts, for a run that was fine-tuned on pairs.
        device: auto, cpu, cuda or mps.

    Raises:
        UserError: no fine-tuned run; second texts that the run cannot take, or their lack; not one for each text.
    """
    opened = run if isinstance(run, FinetunedRun) else FinetunedRun.open(run)
    require_sides(opened, texts, pairs)
    given = in_memory(texts) if pairs is None else in_memory(texts, pairs)
    return [(each.label, each.probability) for part in classify(opened, given, device=device) for each in part]


def classify(run: FinetunedRun, texts: Texts, *, device: str = "auto") -> Iterator[list[Predicted]]:
    """What `predict` gives for each text, in their order, some of them at once; memory does not grow with them.

    Args:
        run: a fine-tuned run.
        texts: a file, or tuples of a text each, for a run that was fine-tuned on pairs of two.
        device: auto, cpu, cuda or mps.

    Raises:
        UserError: there is a mistake in the file.
    """
    on = resolve_device(device)
    classifier, format = run.load(on), run.format()
    for part in read_ahead(texts, TEXTS_AT_ONCE):
        first, *second = ([each[side] for each in part] for side in range(len(part[0])))
        encoded = format.encode(first, *second)
        found = class_probabilities(classifier, encoded, format, on, "float32")
        chosen = found.probabilities.max(1).tolist()
        labels = [run.classes[place] for place in found.classes]
        yield [Predicted(*each) for each in zip(part, labels, chosen, strict=True)]


def predictions_of(
    run: FinetunedRun,
    texts: Sequence[str],
    pairs: Sequence[str] | None,
    labels: Sequence[int] | None,
    device: str,
) -> Predictions:
    """Probabilities of all classes for each text, and the mean loss where there are labels."""
    require_sides(run, texts, pairs)
    on = resolve_device(device)
    format = run.format()
    # Everything is float32 here: the answer should not depend on the machine more than it must.
    return class_probabilities(run.load(on), format.encode(texts, pairs), format, on, "float32", labels)


def require_sides(run: FinetunedRun, texts: Sequence[str], pairs: Sequence[str] | None) -> None:
    """Refuse single texts for a run of pairs, and the other way round.

    Raises:
        UserError: there are second texts that the run cannot take, or none, or not one for each text.
    """
    takes_pairs = run.task.pair_column is not None
    if takes_pairs != (pairs is not None):
        raise UserError(
            f"{run.path}: this run was fine-tuned on {'pairs of texts; give both' if takes_pairs else 'single texts'}"
        )
    if pairs is not None and len(pairs) != len(texts):
        raise UserError(f"{len(texts)} texts and {len(pairs)} second texts: one for each is needed")
