"""`bakeoff distill`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from bakeoff.cli.shared.completing import complete_run, complete_source
from bakeoff.cli.shared.decorators import noted, taking
from bakeoff.cli.shared.finetuned import print_result, source_of
from bakeoff.cli.shared.makers import options_from
from bakeoff.cli.shared.options import Device, Json, Set, Threads, Track, threads_of
from bakeoff.cli.shared.pretraining import (
    START_OPTIONS,
    STOPPING_OPTIONS,
    TRAINING_OPTIONS,
    CorpusToTrain,
    Out,
    pretrained,
)
from bakeoff.errors import UserError


@noted
@taking(
    distillation=options_from(
        "bakeoff.objectives.distillation.DistillationConfig",
        *("weight", "temperature"),
        weight={"default": None, "metavar": "SHARE"},
        temperature={"default": None, "metavar": "T"},
    ),
    start=START_OPTIONS,
    options=TRAINING_OPTIONS,
    stopping=STOPPING_OPTIONS,
)
def distill(
    out: Out,
    teachers: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RUN...",
            help="Finished runs, whose probabilities are averaged: pre-trained, or fine-tuned for classification. With "
            "--resume of a pre-training, those of that run.",
            autocompletion=complete_run,
        ),
    ] = None,
    into: Annotated[
        str | None,
        typer.Option(
            metavar="RECIPE|RUN",
            help="Recipe of the student: its name or file. Of a classifier, the pre-trained run that learns, or a "
            "recipe. With --resume of a pre-training, the recipe of that run.",
            autocompletion=complete_source,
        ),
    ] = None,
    corpus: CorpusToTrain = None,
    texts: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Texts without labels, on which fine-tuned runs teach a classifier."),
    ] = None,
    text_column: Annotated[
        str | None,
        typer.Option(help="With --texts: column of the text. Default: the one of the teacher's fine-tuning."),
    ] = None,
    test: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="With --texts: labelled file for the score, with the columns of the teacher's fine-tuning.",
        ),
    ] = None,
    settings: Annotated[
        list[str],
        typer.Option(
            "--option", metavar="KEY=VALUE", help="With --texts: a setting of the fine-tuning (docs/tasks.md)."
        ),
    ] = [],  # noqa: B006
    *,
    distillation: dict[str, Any],
    options: dict[str, Any],
    set: Set = [],  # noqa: B006
    device: Device = "auto",
    threads: Threads = "auto",
    start: dict[str, Any],
    stopping: dict[str, Any],
    track: Track = [],  # noqa: B006
    json: Json = False,
) -> None:
    """Train a model that learns from the probabilities of trained ones: pre-train it, or with --texts a classifier.

    The result is an ordinary run; a larger model can so teach a smaller one, or several one of their size.

    Example: bakeoff distill runs/a runs/b --into bert-mini --corpus corpora/mine --out runs/from-both --budget
    minutes=10

    Example: bakeoff distill runs/bert-large --into bert-mini --corpus corpora/mine --out runs/small --weight 0.9
    --temperature 2

    Example: bakeoff distill runs/bert-reviews --into runs/small --texts articles.jsonl --text-column body --out
    runs/small-reviews
    """
    teachers = teachers or []
    goes_on = options["resume"] or options["finish_now"]
    _require_pretrained(teachers, texts, out)
    if texts is not None:
        _require_of_classifier(corpus, distillation, options, start, stopping)
        if not teachers or into is None:
            raise UserError(
                "distill: give the runs and who learns: bakeoff distill RUN... --into RUN --texts FILE --out DIR"
            )
        _classifier(teachers, into, texts, out, text_column, test, settings, set, options, device, threads, track, json)
        return
    for name, value in {"--text-column": text_column, "--test": test, "--option": settings}.items():
        if value:
            raise UserError(f"{name}: belongs to --texts FILE, on which fine-tuned runs teach a classifier")
    if bool(teachers) != (into is not None) or not (teachers or goes_on):
        missing = "the runs that teach" if into is not None else "the recipe that learns, --into RECIPE"
        raise UserError(f"distill: give {missing}: bakeoff distill RUN... --into RECIPE --corpus DIR --out DIR")
    if not teachers and distillation:
        raise UserError(f"--{next(iter(distillation))}: belongs to RUN... --into RECIPE; a resumed run keeps its own")
    taught = {"teachers": [_plain(each) for each in teachers], **distillation}
    pretrained(
        into,
        corpus,
        out,
        overrides=set,
        beside={f"training.distillation.{key}": (value, _NAMES[key]) for key, value in taught.items() if teachers},
        options=options,
        start=start,
        stopping=stopping,
        device=device,
        threads=threads,
        track=track,
        json=json,
    )


def _require_pretrained(teachers: list[str], texts: Path | None, out: Path) -> None:
    """Refuse fine-tuned teachers without texts, and to go on with a classifier that nobody teaches."""
    from bakeoff.tasks.finetuned_run import FinetunedRun

    if not teachers and FinetunedRun.at(out):
        raise UserError(
            f"{out}: a classifier, which knows its texts no more; to go on give the whole command again, with the runs "
            "that teach, --into and --texts"
        )
    for each in teachers:
        if FinetunedRun.at(each) and texts is None:
            raise UserError(
                f"{each}: a fine-tuned run teaches a classifier on texts without labels: give --texts FILE in place of "
                "--corpus, and as --into the pre-trained run that learns"
            )


def _require_of_classifier(
    corpus: Path | None, distillation: dict[str, Any], options: dict[str, Any], start: dict[str, Any], stopping: Any
) -> None:
    """Refuse options of a pre-training beside `--texts`."""
    given = {"corpus": corpus, **distillation, **options, **start, **stopping}
    of_both = ("seed", "resume")
    for name, value in given.items():
        if name not in of_both and value not in (None, False, [], "repeat"):
            shown = {"run": "--from", "encoder": "--encoder-from", "decoder": "--decoder-from"}
            option = shown.get(name, "--" + name.replace("_", "-"))
            raise UserError(
                f"{option}: belongs to a pre-training; the fine-tuning on --texts FILE has --option KEY=VALUE, such as "
                "epochs=5"
            )


def _classifier(
    teachers: list[str],
    into: str,
    texts: Path,
    out: Path,
    text_column: str | None,
    test: Path | None,
    settings: list[str],
    overrides: list[str],
    options: dict[str, Any],
    device: str,
    threads: str,
    track: list[str],
    json: bool,
) -> None:
    """Fine-tune a model on what fine-tuned ones say of texts, and print the results."""
    from bakeoff.overrides import parse_overrides
    from bakeoff.tasks.distill import distill_classifier
    from bakeoff.tasks.finetune_config import FinetuneConfig
    from bakeoff.tracking.track import track as mirrored

    config = FinetuneConfig.parse(parse_overrides(settings, "--option"), "--option")
    with mirrored(out, track):
        result = distill_classifier(
            teachers,
            source_of(into, overrides, scratch=True),
            texts,
            out,
            text_column=text_column,
            test=test,
            config=config,
            seed=options.get("seed") or 0,
            device=device,
            threads=threads_of(threads),
            resume=options["resume"],
        )
    print_result(result, out, json)


_NAMES = {"teachers": "RUN", "weight": "--weight", "temperature": "--temperature"}
"""What replaces each key of the recipe on the command line."""


def _plain(path: str) -> str:
    """A path as a run's files have it, without a slash at its end."""
    return str(Path(path))
