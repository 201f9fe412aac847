"""Schemas of a run's JSON files, for the keys that are read: a missing key or another type is an error of one line."""

import json
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from bakeoff import checksums
from bakeoff.config import Record
from bakeoff.json_files import MOST_OF_LINES, parse_json_lines, read_json
from bakeoff.unfinished import FAILURE


class CorpusRecord(Record):
    """The corpus of a training."""

    path: str
    """The directory of the corpus, or the mixture, as it was given."""
    fingerprint: str
    """The fingerprint of the corpus's content."""


class BudgetChange(Record):
    """A change of an unfinished run's budget."""

    from_step: int
    """The first step of the new budget."""
    steps: int
    """Number of steps of the new budget."""


class Versions(Record):
    """Versions of the software of a training."""

    bakeoff: str
    """The version of Bakeoff."""


class Imported(Record):
    """Facts about a model that was imported."""

    model_type: str
    """`model_type` in its config.json."""
    rows: int = Field(ge=1)
    """Rows of its table of tokens; the run's tokenizer may have more tokens."""
    dtype: Literal["float32", "float16", "bfloat16", "float64"]
    """The type of its weights in the file; the run's weights are float32."""
    config: dict[str, Any]
    """The content of its config.json."""
    remarks: list[str]
    """Sentences about parts that were not imported or are random."""


class MicroBatchChange(Record):
    """Smaller micro-batches of an unfinished run, whose device had run out of memory."""

    from_step: int
    """The first step with them."""
    micro_batch: int | dict[str, int]
    """Their size, in rows or as `{tokens: N}`."""


class Vectors(Record):
    """The vectors of texts that `contrast` has taught a run."""

    pooling: Literal["cls", "mean", "max", "last"]
    """How token vectors become one vector."""
    layers: list[int]
    """The layers whose states are pooled."""


class Environment(Record):
    """Machine, versions and settings; environment.json of a run or a fine-tuned run."""

    versions: Versions
    """Versions of the software."""
    device_name: str
    """The name of the processor or accelerator."""
    seed: int = Field(ge=-(1 << 63), lt=1 << 63)
    """The seed of the training."""
    device: str
    """The device of the training: cpu, cuda or mps."""
    threads: int
    """Number of torch's threads."""
    processes: int = Field(default=1, ge=1)
    """Number of processes that began the training together."""
    kernels: str | None = None
    """The compiler of the kernels for bfloat16 on a CPU, or why there are none; None: the training needed none, or is
    from before there were any."""
    rules: int = 0
    """The number of the rules of the training, see `bakeoff.runs.rules`."""
    origin: str | None = None
    """A sentence about the runs that the first weights are from, or the source of an imported run; None: random
    weights."""
    imported: Imported | None = None
    """Facts about the imported model; None: the run was trained by Bakeoff."""
    micro_batches: list[MicroBatchChange] = Field(default=[])
    """Smaller micro-batches after the memory ran out, in their order."""
    vectors: Vectors | None = None
    """The vectors that the run was taught without labels; None: it was not."""


class TeacherRecord(Record):
    """A run that a training learned from."""

    run: str
    """Its directory, as it was given."""
    digest: str
    """The SHA-256 of its weights."""


class PretrainingEnvironment(Environment):
    """Machine, versions and settings of a pre-training, with recipe, corpus and budget; environment.json of a run."""

    recipe: dict[str, Any]
    """The recipe that was asked for, before its budget was turned into steps."""
    corpus: CorpusRecord | None
    """The corpus; null: unknown, because the model was imported."""
    budget: str | None
    """The current budget, as `--budget` names it."""
    steps: int | None = None
    """Number of steps of the current budget; None: the run is from before budgets could be changed."""
    budgets: list[BudgetChange] = Field(default=[])
    """Changes of the budget, in their order."""
    begun_before: list[str] = Field(default=[])
    """Changes of the rules since the training began."""
    steps_before: int = Field(default=0, ge=0, lt=1 << 63)
    """The steps that have trained the first weights."""
    texts: dict[str, int] | None = None
    """Training tokens of the texts that have trained the weights, the first weights' among them, by the fingerprint of
    each; None: the run was imported, or is from before they were recorded."""
    teachers: list[TeacherRecord] = Field(default=[])
    """The runs whose probabilities were learned, in their order."""


class Validation(Record):
    """The figures of one validation on held-out text."""

    loss: float | None
    """The weighted sum of the objectives' losses; null: one of them is no number."""
    losses: dict[str, float | None]
    """Loss in nats a target, by objective; null: no number, because there was no target."""
    accuracy: dict[str, float | None]
    """Share of correct predictions, by objective."""
    perplexity: dict[str, float | None]
    """Perplexity of a token, by each objective that predicts tokens."""
    bits_per_byte: dict[str, float | None]
    """Bits a byte of text, by each objective that predicts tokens."""
    at_most: list[str] = Field(default=[])
    """The objectives whose figures are bounds, such as masked diffusion."""
    no_number: dict[str, str] = Field(default={})
    """Reasons why figures are null, by objective, and for `bits_per_byte`."""


class EarlyStop(Record):
    """The effect of early stopping on a training."""

    stopped: bool
    """Whether it ended the training before the end of the budget."""
    patience: int | None
    """Number of validations without a better loss after which it ends a training; None: it ends at a target alone."""
    kept_best: bool
    """Whether the run's weights are those of the best held-out loss."""
    best_step: int = Field(ge=0, lt=1 << 63)
    """The step of the best held-out loss."""
    best_loss: float
    """The best held-out loss."""


class Summary(Record):
    """The figures of a whole training; summary.json."""

    seed: int = Field(ge=-(1 << 63), lt=1 << 63)
    """The seed of the training."""
    steps: int = Field(ge=0, lt=1 << 63)
    """Optimizer steps done; 0 for an imported run, whose training is unknown."""
    tokens: int = Field(ge=0, lt=1 << 63)
    """Tokens seen."""
    words: Annotated[int, Field(ge=0, lt=1 << 63)] | None = None
    """Words seen, between white space; None: an imported run, or one from before they were counted."""
    seconds: float
    """Seconds spent in steps."""
    work_seconds: float | None = None
    """Seconds of processor time spent in steps; None: the run is from before it was recorded."""
    planned_steps: int | None = None
    """Steps of the budget, more than `steps` if the run was cut short; None: the run is from before that was
    possible."""
    flops: float
    """Floating-point operations spent."""
    parameters: int = Field(ge=0, lt=1 << 63)
    """Number of parameters of the model and its heads."""
    flops_per_token: float
    """Floating-point operations of a training step for one token."""
    tokens_per_second: float | None
    """Tokens a second in steps; null for an imported run."""
    peak_memory_bytes: Annotated[int, Field(ge=0, lt=1 << 63)] | None
    """Peak memory in bytes, of the device or, on a CPU, of the process; null: not measured."""
    training_memory_bytes: Annotated[int, Field(ge=0, lt=1 << 63)] | None = None
    """The part of it that the training took, beyond what was in use before; null: not measured."""
    unigram_entropy: float | None
    """Entropy of the tokens' frequencies in nats, the loss of a model that knows them alone; null for an imported
    run."""
    validation: Validation | None
    """The last validation, or with `kept_best` the best; null for an imported run."""
    saved_at: str | None = None
    """The point of a training at which these weights were kept, such as words=1M; None: they are a training's last."""
    early_stopping: EarlyStop | None = None
    """The effect of early stopping; None: the training had none."""


class MetricsLine(Record):
    """The common keys of all lines in metrics.jsonl."""

    kind: str
    """train, validation, or dev in fine-tuning."""
    step: int = Field(ge=0, lt=1 << 63)
    """Optimizer steps done."""


class ValidationLine(MetricsLine, Validation):
    """A line of the kind validation."""

    tokens: int = Field(ge=0, lt=1 << 63)
    """Tokens seen."""
    flops: float
    """Floating-point operations spent."""
    seconds: float
    """Seconds spent in steps."""


def read_summary(path: Path) -> dict[str, Any]:
    """Read the summary.json of a finished run.

    Raises:
        UserError: the file is damaged, or lacks a key.
    """
    return Summary.check(read_json(path), str(path))


def read_metrics(path: Path, growing: bool = False) -> list[dict[str, Any]]:
    """The lines of a metrics.jsonl; empty if there is no such file.

    Args:
        path: the file.
        growing: whether the training is unfinished, so that an incomplete last line is ignored.

    Raises:
        UserError: the file is damaged, or a line is no JSON object or lacks a key; the message names the line.
    """
    content = checksums.read(path, MOST_OF_LINES) if path.exists() else b""
    return parse_metrics(content[: content.rfind(b"\n") + 1] if growing else content, str(path))


def parse_metrics(content: bytes, where: str) -> list[dict[str, Any]]:
    """Parse the lines of a metrics.jsonl; `where` names the file in errors.

    Raises:
        UserError: a line is no JSON object, or lacks a key; the message names the line.
    """
    lines = parse_json_lines(content, where)
    for number, line in enumerate(lines, 1):
        kind = ValidationLine if line.get("kind") == "validation" else MetricsLine
        kind.check(line, f"{where}:{number}")
    return lines


class Diverging(Record):
    """The content of `FAILURE`."""

    message: str
    """The error message of the divergence."""


def note_divergence(run: Path, message: str) -> None:
    """Write `FAILURE`, so that a training is not tried again, and lists say why it has no weights."""
    run.mkdir(parents=True, exist_ok=True)
    checksums.write(run / FAILURE, json.dumps({"message": message}, ensure_ascii=False) + "\n")


def divergence(run: Path) -> str | None:
    """The error message with which a training of a comparison or a search diverged; None: none did here.

    Raises:
        UserError: the file cannot be read.
    """
    path = run / FAILURE
    return str(Diverging.check(read_json(path), str(path))["message"]) if path.is_file() else None
