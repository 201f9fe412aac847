"""The options of `evaluate`, each declared here alone: the data of an evaluation, and how they are read."""

from pathlib import Path
from typing import Any

from pydantic import Field

from bakeoff.scoring.options import FileOptions, Reading, ScoreOptions


class EvaluateOptions(FileOptions):
    """One of corpus, data, texts and minimal_pairs, and the options that belong to it."""

    corpus: Path | None = None
    """For a pre-trained run: corpus to measure it on, made with the same tokenizer."""
    split: str = "validation"
    """With `corpus`: the split to measure on, validation, test or train."""
    examples: int | None = Field(default=None, ge=1)
    """With `corpus`: number of rows to measure on, spread evenly over the split; None: all, or of a mixture as many as
    in pre-training."""
    data: Path | None = None
    """For a fine-tuned run: labelled file to measure it on."""
    text_column: str | None = None
    """The column with the text; None: for `data` the column of fine-tuning, as for the next two options, and for
    `texts` the column text."""
    pair_column: str | None = None
    """The column of `data` with the second text."""
    label_column: str | list[str] | None = None
    """The column of `data` with the class, or a list of columns, one for each label."""
    settings: dict[str, Any] | None = None
    """Further differences between `data` and the files of fine-tuning, by keys of the task's config: other columns,
    header, separator, encoding, layout, ..."""
    texts: Path | None = None
    """For a pre-trained run: file of texts to score, as `bakeoff score RUN --texts` does."""
    minimal_pairs: Path | None = None
    """For a pre-trained run: file of sentence pairs; the model should find the first one likelier (BLiMP)."""
    reading: Reading | None = None
    """With `minimal_pairs`: how the run scores them; None: forwards where the run can, else pseudo."""

    def scored(self) -> ScoreOptions:
        """The options of scoring `texts`."""
        shared = {name: getattr(self, name) for name in FileOptions.model_fields}
        return ScoreOptions(text_column=self.text_column, **shared)

    def reading_of_data(self) -> dict[str, Any]:
        """Differences between `data` and the files of fine-tuning, by keys of the task's config."""
        columns = {name: getattr(self, name) for name in ("text_column", "pair_column", "label_column")}
        named = {name: column for name, column in columns.items() if column is not None}
        return {"errors": self.errors, **named, **(self.settings or {})}
