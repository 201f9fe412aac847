"""Predictions of a fine-tuned run for new texts."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from bakeoff.display.wording import counted
from bakeoff.errors import UserError
from bakeoff.reading.hub import on_hub
from bakeoff.reading.text_files import Texts, Tidier, in_memory, read_ahead, several
from bakeoff.resources.device import Placement, Precision, resolve_precision
from bakeoff.resources.inference import for_inference
from bakeoff.tasks.cut_rows import CutTexts
from bakeoff.tasks.examples import LeftOut
from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.tasks.heads.heads import HeadedModel
from bakeoff.tasks.predictions.predicting import predictions_of
from bakeoff.tasks.task import Task
from bakeoff.tasks.task_config import TaskConfig

TEXTS_AT_ONCE = 2048
"""The most texts that are read ahead, so that texts of similar length go through the model together."""


class Predicted(NamedTuple):
    """A run's prediction for one example: a text, a pair, or whatever its task reads."""

    example: Any
    """The example, with its texts as they were given."""
    prediction: Any
    """The prediction, in the form of the task."""

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts of the example."""
        texts: tuple[str, ...] = self.example.texts
        return texts


def predict(
    run: str | Path | FinetunedRun,
    texts: Sequence[str],
    pairs: Sequence[str] | None = None,
    *,
    probabilities: bool = False,
    device: str = "auto",
    precision: Precision = "float32",
    head: HeadedModel | None = None,
) -> list[dict[str, Any]]:
    """The predictions of a run for texts, or pairs of texts.

    Args:
        run: a fine-tuned run.
        texts: (N,) texts; a blank one is predicted as the text that it is, one without words.
        pairs: (N,) second texts, for a run that was fine-tuned on pairs.
        probabilities: add the `probabilities` of all classes, for a run for classification.
        device: auto, cpu, cuda or mps.
        precision: auto, float32 or bfloat16, the precision of products.
        head: the run's where it is loaded already, in the precision; None: it is loaded to the device.

    Returns:
        For each text label and probability (classification), value (regression), words and tags (tagging), or
        answer, start, end, probability and n_best (question answering).

    Raises:
        UserError: no fine-tuned run; second texts that the run cannot take, or none that it needs; not one for each
            text; or no classes to have probabilities.
    """
    opened = run if isinstance(run, FinetunedRun) else FinetunedRun.open(run)
    require_sides(opened, texts, pairs)
    require_probabilities(opened, probabilities)
    source = in_memory(texts) if pairs is None else in_memory(texts, pairs)
    task = opened.learned
    parts = predict_parts(opened, source, device=device, precision=precision, head=head)
    return [record_of(task, each, probabilities) for part in parts for each in part]


def record_of(task: Task, predicted: Predicted, probabilities: bool = False) -> dict[str, Any]:
    """A prediction as JSON, with the probabilities of all classes where they are asked for."""
    record = task.as_record(predicted.example, predicted.prediction)
    return {**record, "probabilities": task.probabilities(predicted.prediction)} if probabilities else record


def require_probabilities(run: FinetunedRun, asked: bool) -> None:
    """Refuse to give the probabilities of all classes of a run whose predictions are none of several classes.

    Raises:
        UserError: they are asked for, and there are none.
    """
    if asked and not run.task.has_probabilities:
        raise UserError(f"{run.path}: a run for {run.task.kind} has no classes to have probabilities; ask for none")


def predict_parts(
    run: FinetunedRun,
    texts: Texts,
    *,
    device: str = "auto",
    precision: Precision = "float32",
    head: HeadedModel | None = None,
    cut: CutTexts | None = None,
) -> Iterator[list[Predicted]]:
    """The prediction of a run for each text, in order, some at a time; memory does not grow with their number.

    Args:
        run: a fine-tuned run.
        texts: a file, or tuples of as many texts as an example of the task has.
        device: auto, cpu, cuda or mps.
        precision: auto, float32 or bfloat16, the precision of products.
        head: the run's where it is loaded already, in the precision; None: it is loaded to the device.
        cut: a counter of the texts that were too long for a row.

    Raises:
        UserError: there is a mistake in the file.
    """
    examples = ([run.task.example(each) for each in part] for part in read_ahead(texts, TEXTS_AT_ONCE))
    yield from _answered(run, examples, device, precision, head, cut)


def predict_file(
    run: FinetunedRun,
    path: Path,
    *,
    settings: Mapping[str, Any] | None = None,
    device: str = "auto",
    precision: Precision = "float32",
    left_out: Counter[str] | None = None,
    cut: CutTexts | None = None,
) -> Iterator[list[Predicted]]:
    """The predictions of a run for the examples of a file in the format of its task's files; labels may be missing.

    Args:
        run: a fine-tuned run.
        path: the file.
        settings: settings of the task's config for reading the file, where they differ from fine-tuning.
        device: auto, cpu, cuda or mps.
        precision: auto, float32 or bfloat16, the precision of products.
        left_out: a counter of the rows that have no prediction, by reason.
        cut: a counter of the rows that were too long.

    Raises:
        UserError: there is a mistake in the file, or in the settings.
    """
    task = run.task.read_otherwise(settings or {})
    if not on_hub(path):  # what is wrong with the file comes out before the work
        for _ in task.read(path, labelled=False):
            pass
    yield from _answered(run, _some(_kept(task, path, left_out)), device, precision, cut=cut)


def _kept(task: TaskConfig, path: Path, left_out: Counter[str] | None) -> Iterator[Any]:
    """The examples of a file without the rows that are left out, which have no prediction."""
    for each in task.read(path, labelled=False):
        if not isinstance(each, LeftOut):
            yield each
        elif left_out is not None:
            left_out[each.reason] += 1


def _some(examples: Iterator[Any]) -> Iterator[list[Any]]:
    """The examples in their order, in lists of bounded length."""
    tidier = Tidier(TEXTS_AT_ONCE)
    while part := list(islice(examples, TEXTS_AT_ONCE)):
        yield part
        tidier.add(len(part))


def _answered(
    run: FinetunedRun,
    parts: Iterable[list[Any]],
    device: str,
    precision: Precision,
    head: HeadedModel | None = None,
    cut: CutTexts | None = None,
) -> Iterator[list[Predicted]]:
    if head is None:
        placement = Placement.of(device, precision)
        head = for_inference(run.load(placement.device), placement)
    on, format, task = head.model.device, run.format(), run.learned
    placement = Placement(on, resolve_precision(precision, on))
    for part in parts:
        items = task.encode(part, format)
        if cut is not None:
            cut.add(items, format.length)
        predicted = predictions_of(head, items, task, format, placement)
        yield [Predicted(*each) for each in zip(part, predicted.predictions, strict=True)]


def require_sides(run: FinetunedRun, texts: Sequence[str], pairs: Sequence[str] | None) -> None:
    """Refuse single texts for a run of pairs, and pairs for a run of single texts.

    Raises:
        UserError: there are second texts that the run cannot take, none that it needs, or not one for each text.
    """
    wanted = run.task.input_sides
    if wanted is None:
        raise UserError(f"{run.path}: an example of a run for {run.task.kind} has texts of several sorts; give a file")
    takes_pairs = wanted > 1
    if takes_pairs != (pairs is not None):
        raise UserError(
            f"{run.path}: this run was fine-tuned on {'pairs of texts; give both' if takes_pairs else 'single texts'}"
        )
    if pairs is not None:
        require_one_each(texts, pairs)


def require_one_each(texts: Sequence[str], pairs: Sequence[str]) -> None:
    """Refuse texts and second texts that differ in number.

    Raises:
        UserError: they do, or an argument is a single text.
    """
    if len(several(pairs)) != len(several(texts)):
        raise UserError(
            f"{counted(len(texts), 'text')} and {counted(len(pairs), 'second text')}: one for each is needed"
        )
