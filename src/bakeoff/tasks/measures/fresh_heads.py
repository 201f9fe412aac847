"""Fresh heads as a measure: how well each objective is done by a new head on the frozen states of a run.

Every run is asked every objective, whichever it has learned (Lan et al. 2020, ALBERT, table 5, for sentence order and
next sentences): the model keeps its weights and has no dropout, and the head alone is trained on the training text.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Any, ClassVar, Literal, Self

import torch
from pydantic import Field, field_validator, model_validator
from torch import Tensor
from typing_extensions import override

from bakeoff.corpus.mixture import AnyCorpus, open_corpus
from bakeoff.errors import UserError
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.objectives.heads import Head
from bakeoff.objectives.objective import ObjectiveConfig
from bakeoff.objectives.registry import OBJECTIVES
from bakeoff.recipe import Recipe
from bakeoff.resources.device import Placement, resolve_device
from bakeoff.runs.run import Run
from bakeoff.tasks.measures.expected import seconds_of_rows, seconds_of_steps
from bakeoff.tasks.measures.held_out_text import (
    STRETCHES,
    documents_of,
    mark_of,
    per_target,
    row_sums,
    stretched,
    title_of,
)
from bakeoff.tasks.measures.measure import Anchor, MeasureConfig, Measured, Measurement, Panel
from bakeoff.tasks.scores.jackknife import Vector, of_ratios
from bakeoff.tasks.task_config import Metric
from bakeoff.tokenizer.tokenizer import Tokenizer
from bakeoff.training.initial_weights import Start
from bakeoff.training.stages import make_batches

ACCURACY = "accuracy"
"""The metric; in `Measured.scores` the name of the objective follows, after a colon."""


class FreshHeadsConfig(MeasureConfig):
    """The accuracy of each objective by a fresh head on the frozen states of each run (ALBERT, table 5)."""

    in_words: ClassVar[str] = "fresh heads"
    reads_text: ClassVar[bool] = True

    kind: Literal["fresh_heads"] = "fresh_heads"
    """Fresh heads on frozen states."""
    objectives: list[Annotated[ObjectiveConfig, OBJECTIVES]] = Field(min_length=1)
    """The objectives, by name (`[mlm, nsp, sop]`) or with settings; a run that cannot do one is left out of it."""
    steps: int = Field(default=1000, gt=0)
    """Number of steps for which each head is trained."""
    batch: int = Field(default=16, gt=0)
    """Rows of a step, the same for every run, so that heads are compared after equal training."""
    learning_rate: float = Field(default=1e-3, gt=0)
    """Learning rate of the heads (AdamW), falling evenly to 0."""
    rows: int = Field(default=1024, gt=1)
    """The most rows of the held-out text that accuracies are measured on, spread evenly over it."""

    @field_validator("objectives", mode="before")
    @classmethod
    def _by_name(cls, value: Any) -> Any:
        return (
            [{"kind": each} if isinstance(each, str) else each for each in value] if isinstance(value, list) else value
        )

    @model_validator(mode="after")
    def _each_once(self) -> Self:
        kinds = [each.kind for each in self.objectives]
        if twice := [kind for kind in kinds if kinds.count(kind) > 1]:
            again = "another task with a name of its own asks it with other settings"
            raise ValueError(f"objectives: {twice[0]} is given twice; leave one out ({again})")
        return self

    @override
    def refused(self, recipe: Recipe) -> str | None:
        reasons = []
        for objective in self.objectives:
            try:
                _asked(recipe, objective, self.steps, self.batch)
            except UserError as error:
                reasons.append(str(error))
        return f"can do none of these objectives ({reasons[0]})" if len(reasons) == len(self.objectives) else None

    @override
    def measure(self, run: Run, text: str | None, device: str) -> Measured:
        assert text is not None
        scores: dict[str, float] = {}
        lines: list[dict[str, Any]] = []
        for objective in self.objectives:
            try:
                recipe = _asked(run.recipe, objective, self.steps, self.batch)
            except UserError:
                continue
            rows = self._rows(run, recipe, text, device)
            name = objective.kind
            hits, targets = (sum(row[key].get(name, 0) for row in rows) for key in ("values", "targets"))
            if targets:
                scores[f"{ACCURACY}:{name}"] = hits / targets
                lines += [
                    {"objective": name, "hits": row["values"][name], "targets": row["targets"][name]} for row in rows
                ]
        return Measured(scores, lines, {"tokenizer": mark_of(run.tokenizer)})

    def _rows(self, run: Run, recipe: Recipe, text: str, device: str) -> list[dict[str, dict[str, float]]]:
        """The right predictions and the targets of each held-out row, after the head was trained."""
        head = _FreshHead(recipe, open_corpus(text), resolve_device(device), run)
        for step in range(self.steps):
            head.step(step, self.learning_rate * (1 - step / self.steps))
        return head.rows(self.rows)

    @override
    def expected_seconds(self, recipe: Recipe, tokenizer: Tokenizer, text: str | None, device: str) -> float:
        assert text is not None
        seconds = 0.0
        for objective in self.objectives:
            try:
                asked = _asked(recipe.with_tokenizer(tokenizer.config), objective, self.steps, self.batch)
            except UserError:
                continue
            row, head = (
                _FreshHead(asked.changed({"training.batch": rows}), open_corpus(text), resolve_device(device))
                for rows in (1, self.batch)
            )
            seconds += seconds_of_steps(partial(_steps, row), partial(_steps, head), self.steps, self.batch)
            seconds += seconds_of_rows(head.rows, min(self.rows, head.held_out.rows_an_epoch))
        return seconds

    @override
    def panels(self, measurements: Sequence[Measurement], recipes: Mapping[str, Any], text: str) -> list[Panel]:
        return [panel for each in self.objectives for panel in _panels(each, measurements, text)]


class _FreshHead:
    """A new head for an objective, over a model that keeps its weights.

    Args:
        recipe: the recipe, which learns the objective alone.
        corpus: the text.
        device: the device.
        run: the run whose weights the model has; None: random ones.
    """

    def __init__(self, recipe: Recipe, corpus: AnyCorpus, device: torch.device, run: Run | None = None) -> None:
        self.recipe, self.device = recipe, device
        torch.manual_seed(0)  # the same first head for every run
        self.module = module = PretrainingModel(recipe, corpus.tokenizer.size)
        if run is not None:
            fresh = {name: each.clone() for name, each in module.state_dict().items() if not name.startswith("model.")}
            Start(run=run.path).load(module, corpus)
            module.load_state_dict(fresh, strict=False)
        module.to(device).eval()
        module.model.requires_grad_(False)
        heads = [parameter for parameter in module.parameters() if parameter.requires_grad]
        self.optimizer = torch.optim.AdamW(heads) if heads else None  # one may have no weights but the model's
        self.batches = make_batches(recipe, module, corpus, seed=0)
        self.held_out = make_batches(recipe, module, corpus, seed=0, split="validation")

    def step(self, step: int, learning_rate: float) -> None:
        """A step of the head's training, with its number; nothing where there is nothing to train."""
        if self.optimizer is None:
            return
        self.optimizer.param_groups[0]["lr"] = learning_rate
        self.optimizer.zero_grad()
        made = self.batches.step(step)
        count = sum(len(labels) for batch in made for _, labels in batch.targets.values())
        for batch in made:
            losses, _ = self.module(batch.to(self.device))
            if count:
                (sum(losses.values()) / count).backward()
        self.optimizer.step()

    def rows(self, count: int) -> list[dict[str, dict[str, float]]]:
        """The right predictions and the targets of so many held-out rows, spread evenly."""
        read, placement = self.held_out.fixed(count), Placement(self.device, "float32")
        return row_sums(self.module, read, placement, self.recipe.model.directions, partial(per_target, _hits))


def _steps(head: _FreshHead, count: int) -> None:
    """So many steps of a head's training that change nothing."""
    for step in range(count):
        head.step(step, 0.0)


def _asked(recipe: Recipe, objective: ObjectiveConfig, steps: int, batch: int) -> Recipe:
    """A recipe that learns an objective in place of its own, in pairs of segments where the objective needs them.

    Args:
        recipe: the recipe.
        objective: the objective.
        steps: the number of steps.
        batch: rows of a step.

    Raises:
        UserError: the model cannot.
    """
    changes = {
        "objective": [objective.model_dump(mode="json")],
        "training.budget": {"steps": steps},
        "training.batch": batch,
        "training.micro_batch": None,
        "training.first_batch": 1.0,
        "training.curriculum": [],
    }
    try:
        return recipe.changed(changes)
    except UserError:
        if not objective.relates_segments or recipe.input.format == "segment_pair":
            raise
        return recipe.changed({**changes, "input": {"format": "segment_pair", "length": recipe.input.length}})


def _hits(head: Head, rows: Tensor, labels: Tensor, table: Tensor) -> Tensor:
    """(N,) 1 for each right prediction, else 0."""
    return (head.log_probabilities(rows, table).argmax(-1) == labels).float()


def _panels(objective: ObjectiveConfig, measurements: Sequence[Measurement], text: str) -> list[Panel]:
    """The comparison by an objective; of tokens none, where runs have unlike ones."""
    name, classes = objective.kind, objective.classes
    those = [each for each in measurements if f"{ACCURACY}:{name}" in each.scores]
    if not those or (classes is None and len({each.facts["tokenizer"] for each in those}) > 1):
        return []
    lines = [[line for line in each.lines if line["objective"] == name] for each in those]
    count = min(STRETCHES, *map(len, lines))
    rows: dict[str, list[Vector]] = {}
    for each, own in zip(those, lines, strict=True):
        hits, targets = (stretched([line[key] for line in own], count) for key in ("hits", "targets"))
        rows.setdefault(each.label, []).append(of_ratios(hits, targets))
    anchors = [] if classes is None else [Anchor("chance", 1 / len(classes), counts=False)]
    clusters, metric = documents_of(text, count), f"{ACCURACY}:{name}"
    title, files = title_of(objective), {"held-out text": text}
    return [Panel(title, metric, Metric("accuracy"), False, tuple(rows), rows, clusters, 1.0, anchors, files)]
