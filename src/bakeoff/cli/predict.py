"""`bakeoff predict`."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer

from bakeoff.cli.shared.decorators import noted
from bakeoff.cli.shared.kept_columns import KeptColumns
from bakeoff.cli.shared.options import Device, Errors, Json, Precision
from bakeoff.cli.shared.output_files import Out, require_out, save_records
from bakeoff.cli.shared.texts import Blank, TextsFile, on_one_line, print_json, print_lines, texts_of
from bakeoff.display.terminal import tell
from bakeoff.display.wording import counted
from bakeoff.errors import UserError

if TYPE_CHECKING:
    from bakeoff.reading.text_files import Texts
    from bakeoff.tasks.cut_rows import CutTexts
    from bakeoff.tasks.finetuned_run import FinetunedRun
    from bakeoff.tasks.predict import Predicted
    from bakeoff.tasks.reading.tables import TableForm
    from bakeoff.tasks.task import Task


@noted
def predict(
    run: Annotated[Path, typer.Argument(help="A fine-tuned run.")],
    text: Annotated[
        list[str] | None, typer.Argument(help="Texts. If there are none, they are read from --texts.")
    ] = None,
    pair: Annotated[
        list[str], typer.Option(help="Second text of a pair. Give one for each text, in the same order.")
    ] = [],  # noqa: B006
    texts: TextsFile = None,
    text_column: Annotated[
        str | None, typer.Option(help="Column or field of --texts with the text. Default: the one of fine-tuning.")
    ] = None,
    pair_column: Annotated[
        str | None,
        typer.Option(
            help="Column or field of --texts with the second text of a pair. Default: the one of fine-tuning."
        ),
    ] = None,
    options: Annotated[
        list[str],
        typer.Option(
            "--option",
            metavar="KEY=VALUE",
            help="Setting of how --texts is read, e.g. header=false, as for evaluate.",
        ),
    ] = [],  # noqa: B006
    keep_columns: Annotated[
        bool,
        typer.Option(
            "--keep-columns",
            help=(
                "With --out or --json: all columns of --texts stand before the predictions. A prediction's name that "
                "is a column's begins with predicted_."
            ),
        ),
    ] = False,
    probabilities: Annotated[
        bool,
        typer.Option(
            "--probabilities",
            help="With --out or --json: the probability of every class of a run for classification, too.",
        ),
    ] = False,
    out: Out = None,
    errors: Errors = "strict",
    device: Device = "auto",
    precision: Precision = "float32",
    json: Json = False,
) -> None:
    """Say what a fine-tuned run makes of texts: the class, the number, the words' tags, the choice or the text.

    A tab separates the two texts of a pair, in what is read and in what is printed. For multiple choice, give the
    context and then the choices, and the question as --pair, or a file as in fine-tuning. For question answering, the
    second text of a pair is the context.

    Example: bakeoff predict runs/bert-sst2 "A wonderful film." "Two hours that I will never get back."

    Example: bakeoff predict runs/bert-sst2 --texts reviews.csv > classes.tsv

    Example: bakeoff predict runs/bert-sst2 --texts reviews.csv --keep-columns --probabilities --out answered.jsonl
    """
    from bakeoff.overrides import parse_overrides
    from bakeoff.tasks.cut_rows import CutTexts
    from bakeoff.tasks.finetuned_run import FinetunedRun
    from bakeoff.tasks.predict import record_of, require_probabilities

    require_out(out)
    opened = FinetunedRun.open(run)
    config, task, blank = opened.task, opened.learned, Blank(opened.tokenizer)
    left_out, cut = Counter[str](), CutTexts()
    columns = {"text_column": text_column, "pair_column": pair_column}
    named = {key: column for key, column in columns.items() if column is not None}
    form = parse_overrides(options, "--option")
    asked = _Asked(opened, list(text or []), pair, texts, named, form, errors)
    if pair_column is not None and config.input_sides == 1:
        raise UserError(f"{run}: this run was fine-tuned on single texts; leave --pair-column out")
    if form and texts is None:
        raise UserError("--option says how --texts FILE is read")
    require_probabilities(opened, probabilities)
    for name, given in {"--keep-columns": keep_columns, "--probabilities": probabilities}.items():
        if given and out is None and not json:
            raise UserError(f"{name} is about predictions with names; give --out FILE or --json, too")
    kept = KeptColumns.of(texts, asked.table, text_column, config, out) if keep_columns else None
    parts = (blank.counted(part) for part in asked.predictions(device, precision, left_out, cut))

    def named_values(predicted: "Predicted") -> dict[str, Any]:
        return record_of(task, predicted, probabilities)

    records = None if kept is None else kept.beside(parts, named_values)
    if out is not None:
        with_texts = ([_with_texts(each, named_values(each)) for each in part] for part in parts)
        count = save_records(out, records or with_texts)
        tell(f"{out}: {counted(count, 'prediction')}")
    elif json:
        print_json(records or ([named_values(each) for each in part] for part in parts))
    else:
        print_lines([_predicted(task, each) for each in part] for part in parts)
    blank.tell("what the run gives for a text without words")
    for note in cut.notes("what was given" if texts is None else str(texts)):
        tell(note)
    for reason, count in left_out.items():
        tell(f"{counted(count, 'row')} of {texts} left out, without a prediction: the row {reason}")


class _Asked(NamedTuple):
    """The texts that a run shall predict for, and how they are read."""

    run: "FinetunedRun"
    typed: list[str]
    """Texts that are arguments."""
    pairs: list[str]
    """The second texts of these."""
    file: Path | None
    """The file of `--texts`."""
    columns: dict[str, str]
    """The columns that the user names, by the keys of a task's config."""
    form: dict[str, Any]
    """How the file is read where that differs from fine-tuning, by the same keys."""
    errors: Literal["strict", "replace"]

    @property
    def as_labelled(self) -> bool:
        """Whether the file is read as those of fine-tuning are."""
        from bakeoff.reading.hub import on_hub

        config, file = self.run.task, self.file
        if file is None:
            return False
        if self.form or on_hub(file) or config.reads_files(file, self.columns.get("text_column")):
            return True
        return not self.columns and config.reads_its_form(file)

    @property
    def settings(self) -> dict[str, Any]:
        """How a file is read that is like those of fine-tuning."""
        return {**self.columns, "errors": self.errors, **self.form}

    @property
    def table(self) -> "TableForm":
        """The form in which the file is read as a table."""
        from bakeoff.tasks.reading.tables import PLAIN

        if self.as_labelled:
            return self.run.task.read_otherwise(self.settings).form
        return PLAIN._replace(errors=self.errors)

    def predictions(
        self, device: str, precision: Precision, left_out: Counter[str], cut: "CutTexts"
    ) -> Iterator[list["Predicted"]]:
        """The predictions for all texts, part by part.

        Args:
            device: auto, cpu, cuda or mps.
            precision: auto, float32 or bfloat16, the precision of products.
            left_out: gets the number of rows that are left out, by reason.
            cut: gets what was cut.

        Raises:
            UserError: the texts are given in a way that the run cannot take.
        """
        from bakeoff.tasks.predict import predict_file, predict_parts

        if self.file is not None and self.as_labelled:
            if self.typed or self.pairs:
                raise UserError(f"{self.file}: the file has all texts to predict; give no texts beside --texts")
            return predict_file(
                self.run,
                self.file,
                settings=self.settings,
                device=device,
                precision=precision,
                left_out=left_out,
                cut=cut,
            )
        if self.run.task.input_sides is not None:
            texts = self._texts(self.run.task.input_sides)
            return predict_parts(self.run, texts, device=device, precision=precision, cut=cut)
        if self.file is not None or self.columns or not self.typed:
            needs = "give the context and its choices, or --texts with a file as in fine-tuning"
            raise UserError(f"{self.run.path}: {needs}")
        questions = len(self.run.task.text_columns) - 1
        if len(self.pairs) != questions:
            needs = "with a question; give one --pair" if questions else "without questions; leave --pair out"
            raise UserError(f"{self.run.path}: this run was fine-tuned {needs}")
        context, *choices = self.typed
        return predict_parts(self.run, [(context, *self.pairs, *choices)], device=device, precision=precision, cut=cut)

    def _texts(self, sides: int) -> "Texts":
        """The texts, or pairs of texts, of arguments or of a file."""
        from bakeoff.reading.records import OPTION
        from bakeoff.tasks.predict import require_sides

        naming = ["--text-column", "--pair-column"][:sides] + [OPTION] * hasattr(self.run.task, "separator")
        defaults = dict(zip(("text_column", "pair_column"), self.run.task.text_columns, strict=False))
        wanted = [self.columns.get(key, default) for key, default in defaults.items()]
        arguments = [self.typed]
        if self.typed or self.pairs:
            require_sides(self.run, self.typed, self.pairs or None)
            arguments += [self.pairs] if self.pairs else []
        return texts_of(arguments, self.file, wanted, bool(self.columns), self.errors, naming)


def _with_texts(predicted: "Predicted", record: dict[str, Any]) -> dict[str, Any]:
    """A prediction's record after its text, and its pair if there is one; three texts or more are the list `texts`.

    If the prediction is a text itself, the text that it was written from is named source.
    """
    texts: Sequence[str] = predicted.example.as_given
    names = ("source" if "text" in record else "text", "pair")
    named = dict(zip(names, texts, strict=False)) if len(texts) <= 2 else {"texts": list(texts)}
    return {**named, **record}


def _predicted(task: "Task", predicted: "Predicted") -> str:
    texts = predicted.example.texts if task.shows_texts else ()
    shown = "\t".join(on_one_line(text, tabs=len(texts) > 1) for text in texts)
    cells = [on_one_line(cell, tabs=True) for cell in task.shown(predicted.example, predicted.prediction)]
    return "\t".join([*cells, *([shown] if texts else [])])
