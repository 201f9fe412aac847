"""Options of `evaluate`, each declared here alone: the data of an evaluation, and how they are read."""

from pathlib import Path
from typing import Any, Literal

from bakeoff.config import Config
from bakeoff.scoring.options import Reading, ScoreOptions


class EvaluateOptions(Config):
    """One of corpus, data, texts and minimal_pairs, and the options that belong to it."""

    corpus: str | Path | None = None
    """For a pre-trained run, a directory that `prepare` made with the same tokenizer."""
    split: str = "validation"
    """The split of the corpus: validation, test (where `prepare` was given one) or train."""
    examples: int | None = None
    """The number of rows of the split to measure, spread evenly; None: all (of a mixture, as many as in
    pre-training)."""
    data: str | Path | None = None
    """For a fine-tuned run, a .csv, .tsv or .jsonl file."""
    text_column: str | None = None
    """The column with the text; None: for `data` the column of fine-tuning, as for the next two options, and for
    `texts` the column `text`."""
    pair_column: str | None = None
    """The column of `data` with the second text."""
    label_column: str | list[str] | None = None
    """The column of `data` with the class, or a list of columns, one for each label."""
    settings: dict[str, Any] | None = None
    """Further differences between `data` and the files of fine-tuning, by keys of the task's config: other columns,
    header, separator, encoding, layout, ..."""
    errors: Literal["strict", "replace"] = "strict"
    """Invalid UTF-8 in `data` or `texts` is an error, or is replaced."""
    texts: str | Path | None = None
    """For a pre-trained run, a file of texts to score."""
    source_column: str | None = None
    """The column of `texts` with the source, for a sequence-to-sequence model; None: `source`."""
    target_column: str | None = None
    """The column of `texts` with the target; None: `target`."""
    last_word: bool = False
    """Score the last word of each text alone."""
    stride: int | None = None
    """The most tokens that each row after the first scores, in texts longer than a row; None: half a row."""
    minimal_pairs: str | Path | None = None
    """For a pre-trained run, a file of pairs of sentences, of which the first should be the likelier one."""
    reading: Reading | None = None
    """How minimal pairs are read; None: forwards where the run has learnt to."""

    def scored(self) -> ScoreOptions:
        """The options of scoring `texts`."""
        columns = self.text_column, self.source_column, self.target_column
        return ScoreOptions(*columns, self.errors, self.last_word, self.stride)

    def reading_of_data(self) -> dict[str, Any]:
        """Differences between `data` and the files of fine-tuning, by keys of the task's config."""
        columns = {name: getattr(self, name) for name in ("text_column", "pair_column", "label_column")}
        named = {name: column for name, column in columns.items() if column is not None}
        return {"errors": self.errors, **named, **(self.settings or {})}
