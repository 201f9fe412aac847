"""Classifiers that learn from the probabilities of fine-tuned ones, on texts without labels."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bakeoff.config import require_seed
from bakeoff.display.progress import Shown
from bakeoff.display.wording import counted, listed
from bakeoff.durable import write_atomically
from bakeoff.errors import UserError, path_of
from bakeoff.json_files import json_lines, read_json_lines
from bakeoff.machine.launch import require_no_torchrun
from bakeoff.objectives.distillation import require_each_once
from bakeoff.reading.text_files import TextFile, is_blank
from bakeoff.recipe import Recipe
from bakeoff.resources.thread_choice import Asked
from bakeoff.runs.run import Run
from bakeoff.tasks.finetune import finetune
from bakeoff.tasks.finetune_config import FinetuneConfig
from bakeoff.tasks.finetune_results import FinetuneResult
from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.tasks.predict import predict_parts
from bakeoff.tasks.table_config import TextsConfig
from bakeoff.tasks.unfinished_run import require_no_run
from bakeoff.unfinished import ELSEWHERE

PROBABILITIES = "probabilities"
"""The column of the teachers' probabilities, unless the task has a column of this name."""

LEARNED = "probabilities_column"
"""The key by which the config of a kind of task that learns probabilities names their column."""


def distill_classifier(
    teachers: Sequence[str | Path],
    source: str | Path | Run | Recipe,
    texts: str | Path,
    out: str | Path,
    *,
    text_column: str | None = None,
    test: str | Path | None = None,
    config: FinetuneConfig | None = None,
    seed: int = 0,
    device: str = "auto",
    threads: Asked = None,
    resume: bool = False,
    progress: Shown = True,
) -> FinetuneResult:
    """Fine-tune a model on the mean probabilities that fine-tuned classifiers give to texts without labels.

    What they say is kept in `OUT-taught.jsonl`, with which the fine-tuning could be repeated by `finetune`. Some of its
    rows are held out: the scores on them are the agreement with the teachers' most probable class.

    Args:
        teachers: fine-tuned runs for classification, of one set of classes.
        source: a run, whose weights are taken, or a recipe, to train from scratch with the first teacher's tokenizer.
        texts: a file of texts, or of pairs where the teachers read pairs; blank ones are left out.
        out: directory of the fine-tuned run; it must not exist.
        text_column: the column of the texts; None: that of the first teacher's fine-tuning.
        test: a labelled file with the columns of the first teacher's fine-tuning, for the score; None: rows of `texts`
            are held out.
        config: the settings of the training.
        seed: seed of everything that is random.
        device: auto, cpu, cuda or mps.
        threads: as of `finetune`.
        resume: continue an interrupted training exactly where it stopped.
        progress: as of `finetune`.

    Raises:
        UserError: a run is no fine-tuned classifier, or of other classes; there are no texts; or as `finetune`.
    """
    require_seed(seed)
    require_no_torchrun("distill RUN... --texts FILE")
    if isinstance(teachers, str | Path) or not teachers:
        raise UserError(f"teachers: {teachers!s:.80} is no list of runs; give one, such as [RUN, RUN]")
    out, texts = path_of(out, "out"), path_of(texts, "texts")
    if not resume:
        require_no_run(out)
    opened = [FinetunedRun.open(path) for path in teachers]
    first = _require_alike(opened)
    columns = [text_column, *first.text_columns[1:]] if text_column else first.text_columns
    found = [each for each in TextFile(texts, columns, text_column is not None) if not is_blank(each)]
    if not found:
        raise UserError(f"{texts}: the file holds no texts")
    if not round(first.dev_share * (several := len(set(found)))):
        raise UserError(f"{texts}: {counted(several, 'text')}: too few to hold some out as dev; give more")
    taught = out.with_name(f"{out.name}-taught.jsonl")
    probabilities = _free_column(first)
    means = _means(opened, found, device)
    rows = list(_rows(first, probabilities, opened[0].learned.classes, found, means))
    if not (resume and _equal_but_for_rounding(taught, rows, probabilities, first.label_column)):
        _write(taught, json_lines(rows), resume)
    task = first.model_copy(
        update={"train": taught, "dev": None, "test": None if test is None else Path(test)}
    ).model_dump()
    task |= {"name": first.title, "train_rows": None, LEARNED: probabilities, "class_weights": None}
    task |= {name: field.default for name, field in TextsConfig.model_fields.items() if name in _FORM}
    what = listed([str(each.path) for each in opened], "and")
    agreement = "dev" if test is not None else "dev and test"
    task["remark"] = f"labels of train, and of {agreement}, are what {what} predicted: scores there are agreement"
    return finetune(
        source,
        type(first).parse(task, "distill"),
        out,
        config=config,
        seed=seed,
        tokenizer=opened[0].path / "tokenizer.json" if isinstance(source, Recipe) else None,
        device=device,
        threads=threads,
        resume=resume,
        progress=progress,
    )


_FORM = ("header", "separator", "extra_columns", "broken_rows", "layout", "encoding", "cluster_column")
"""How the teacher's files were read, which says nothing of the rows that are written here."""


def _require_alike(teachers: Sequence[FinetunedRun]) -> TextsConfig:
    """The task of the first teacher, where all are classifiers of the same classes.

    Raises:
        UserError: one is not.
    """
    for each in teachers:
        if not isinstance(each.task, TextsConfig) or LEARNED not in type(each.task).model_fields:
            raise UserError(
                f"{each.path}: fine-tuned for {each.task.kind}; the teacher of a classifier is a classifier"
            )
    require_each_once([each.path for each in teachers])
    first = teachers[0]
    for each in teachers[1:]:
        if set(each.learned.classes) != set(first.learned.classes):
            raise UserError(f"{each.path}: has other classes than {first.path}; teachers share them")
        if each.task.input_sides != first.task.input_sides:
            raise UserError(f"{each.path}: one of it and {first.path} reads pairs of texts, the other single ones")
    assert isinstance(first.task, TextsConfig)
    return first.task


def _means(
    teachers: Sequence[FinetunedRun], texts: list[tuple[str, ...]], device: str
) -> Iterator[NDArray[np.float64]]:
    """The mean probabilities of the teachers for each text, in the order of the first one's classes."""
    total = np.zeros((len(texts), len(teachers[0].learned.classes)))
    for teacher in teachers:
        index = [teacher.learned.classes.index(name) for name in teachers[0].learned.classes]
        answers = (each.prediction for part in predict_parts(teacher, texts, device=device) for each in part)
        for row, answer in enumerate(answers):
            total[row] += answer.probabilities[index]
    yield from total / len(teachers)


def _free_column(task: TextsConfig) -> str:
    """A name for the column of probabilities that no column of the task has."""
    name = PROBABILITIES
    while name in (*task.text_columns, task.label_column):
        name += "_taught"
    return name


def _rows(
    task: TextsConfig,
    probabilities: str,
    classes: list[str],
    texts: list[tuple[str, ...]],
    means: Iterator[NDArray[np.float64]],
) -> Iterator[dict[str, Any]]:
    """The lines of the file to learn from, whose labels are those that `label_names` names as the classes."""
    label_of = {name: label for label, name in task.label_names.items()}
    for each, mean in zip(texts, means, strict=True):
        rounded = [round(float(value), 6) for value in mean]
        yield {
            **dict(zip(task.text_columns, each, strict=True)),
            task.label_column: label_of.get(best := classes[int(mean.argmax())], best),
            probabilities: dict(zip(classes, rounded, strict=True)),
        }


def _write(path: Path, content: str, resume: bool) -> None:
    """Write the file to learn from, which may stand there with this content already.

    Raises:
        UserError: something else stands there.
    """
    if path.exists():
        if not path.is_file() or path.read_bytes() != content.encode():
            begun = "was begun with other texts or teachers" if resume else "is there already, with another content"
            raise UserError(f"{path}: {begun}; remove it, or {ELSEWHERE}")
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, content)


_ROUNDING = 2e-3
"""The most by which two devices differ in a probability."""


def _equal_but_for_rounding(path: Path, rows: list[dict[str, Any]], probabilities: str, label: str) -> bool:
    """Whether a file holds these texts, with probabilities that another device may have computed."""

    def texts(row: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in row.items() if key not in (probabilities, label)}

    try:
        known = read_json_lines(path)
        return len(known) == len(rows) and all(
            texts(one) == texts(other)
            and one[probabilities].keys() == other[probabilities].keys()
            and all(abs(one[probabilities][name] - value) <= _ROUNDING for name, value in other[probabilities].items())
            for one, other in zip(known, rows, strict=True)
        )
    except (UserError, KeyError, AttributeError, TypeError):  # no file of ours
        return False
