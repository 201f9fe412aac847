"""What a run's JSON files hold, as far as anything reads it: a missing key or another type is an error of one line."""

from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from bakeoff import checksums
from bakeoff.config import Record
from bakeoff.json_files import parse_json_lines, read_json


class CorpusRecord(Record):
    """The corpus of a training."""

    path: str
    """Its directory, or the mixture, as it was given."""
    fingerprint: str
    """What tells its content from others."""


class BudgetChange(Record):
    """Another budget of an unfinished run."""

    from_step: int
    """The step from which on it holds."""
    steps: int
    """Steps that it pays for."""


class Versions(Record):
    """The software of a training."""

    bakeoff: str
    """Bakeoff's own."""


class Environment(Record):
    """Machine, versions and settings; environment.json of a run or a fine-tuned run."""

    versions: Versions
    """The versions of the software."""
    device_name: str
    """The processor's or accelerator's name."""
    seed: int = Field(ge=-(1 << 63), lt=1 << 63)
    """The seed."""
    device: str
    """cpu, cuda or mps."""
    threads: int
    """Threads that torch computed with."""
    rules: int = 0
    """The number of the rules that it was made by; see `bakeoff.runs.rules`."""


class Imported(Record):
    """A model that was trained elsewhere."""

    model_type: str
    """Its family's name there."""
    rows: int
    """Rows of its table of tokens; the tokenizer may have got more."""
    dtype: str
    """The type in which its numbers were stored; here they are float32."""
    config: dict[str, Any]
    """Its config.json."""
    remarks: list[str]
    """What did not come along, or is fresh, in words."""


class PretrainingEnvironment(Environment):
    """Machine, versions and settings of a pre-training, with its recipe, corpus and budget."""

    recipe: dict[str, Any]
    """What was asked for, the budget as it was asked for."""
    corpus: CorpusRecord | None
    """The corpus; null: it is not known, because the model was trained elsewhere."""
    budget: str | None
    """What `--budget` said."""
    steps: int | None = None
    """The steps that the budget pays for; None: from before it could be changed."""
    budgets: list[BudgetChange] = Field(default=[])
    """Other budgets that it got while it was unfinished."""
    begun_before: list[str] = Field(default=[])
    """Changes of the rules since it was begun."""
    origin: str | None = None
    """The runs that the first weights came from, in words; None: from chance. For an imported run where it is from."""
    imported: Imported | None = None
    """What was imported; None: the run was trained here."""


class Validation(Record):
    """The figures of one look at the held-out text."""

    loss: float
    """The sum of the objectives' losses with their weights."""
    losses: dict[str, float]
    """Nats a target, by objective."""
    accuracy: dict[str, float]
    """Share of right predictions, by objective."""
    perplexity: dict[str, float]
    """Perplexity of a token, by objective that predicts tokens."""
    bits_per_byte: dict[str, float]
    """Bits a byte of the text, by objective that predicts tokens."""


class Summary(Record):
    """The figures of a whole training; summary.json."""

    seed: int = Field(ge=-(1 << 63), lt=1 << 63)
    """The seed."""
    steps: int = Field(ge=0, lt=1 << 63)
    """Optimizer steps; 0 of an imported run, of whose training nothing is known."""
    tokens: int = Field(ge=0, lt=1 << 63)
    """Tokens seen."""
    seconds: float
    """Time in steps."""
    work_seconds: float | None = None
    """The same by processor time; None: from before it was kept."""
    planned_steps: int | None = None
    """Those of the budget, of which fewer may have been made; None: from before a run could be cut short."""
    flops: float
    """Floating-point operations spent."""
    parameters: int = Field(ge=0, lt=1 << 63)
    """Numbers of the model and its heads."""
    flops_per_token: float
    """Floating-point operations to train on one token."""
    tokens_per_second: float | None
    """Speed; null of an imported run."""
    peak_memory_bytes: Annotated[int, Field(ge=0, lt=1 << 63)] | None
    """The most memory held."""
    unigram_entropy: float | None
    """Loss from the tokens' frequencies alone, nats."""
    validation: Validation | None
    """The last look at the held-out text; null of an imported run, which has had none."""


class MetricsLine(Record):
    """What every line of metrics.jsonl has."""

    kind: str
    """train, validation, or in fine-tuning dev."""
    step: int = Field(ge=0, lt=1 << 63)
    """Optimizer steps done."""


class ValidationLine(MetricsLine, Validation):
    """A line of kind validation."""

    tokens: int = Field(ge=0, lt=1 << 63)
    """Tokens seen."""
    flops: float
    """Floating-point operations spent."""
    seconds: float
    """Time in steps."""


def read_summary(path: Path) -> dict[str, Any]:
    """Read the summary.json of a finished run.

    Raises:
        UserError: it is damaged, or lacks a key.
    """
    return Summary.check(read_json(path), str(path))


def read_metrics(path: Path, growing: bool = False) -> list[dict[str, Any]]:
    """The lines of a metrics.jsonl; none where there is no such file.

    Args:
        path: the file.
        growing: a training is not finished, and a machine that lost its power may have left half a line.

    Raises:
        UserError: it is damaged, or a line is no JSON object or lacks a key; the message has its number.
    """
    content = checksums.read(path) if path.is_file() else b""
    return parse_metrics(content[: content.rfind(b"\n") + 1] if growing else content, str(path))


def parse_metrics(content: bytes, where: str) -> list[dict[str, Any]]:
    """The lines of a metrics.jsonl.

    Raises:
        UserError: one is no JSON object, or lacks a key; the message has its number.
    """
    lines = parse_json_lines(content, where)
    for number, line in enumerate(lines, 1):
        kind = ValidationLine if line.get("kind") == "validation" else MetricsLine
        kind.check(line, f"{where}:{number}")
    return lines
