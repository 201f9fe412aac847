"""Fresh heads as a measure: how well each objective is done by a new head on the frozen states of a run.

Every run is asked every objective, whichever it has learned (Lan et al. 2020, ALBERT, table 5, for sentence order and
next sentences): the model keeps its weights and has no dropout, and the head alone is trained on the training text.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

import torch
from pydantic import Field, field_validator
from torch import Tensor
from typing_extensions import override

from bakeoff.corpus.mixture import open_corpus
from bakeoff.errors import UserError
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.objectives.heads import Head
from bakeoff.objectives.objective import ObjectiveConfig
from bakeoff.objectives.registry import OBJECTIVES
from bakeoff.recipe import Recipe
from bakeoff.resources.device import Placement, resolve_device
from bakeoff.runs.run import Run
from bakeoff.tasks.measures.held_out_text import (
    STRETCHES,
    documents_of,
    mark_of,
    per_target,
    row_sums,
    stretched,
    title_of,
)
from bakeoff.tasks.measures.measure import MeasureConfig, Measured, Measurement, Panel
from bakeoff.tasks.scores.jackknife import Vector, of_ratios
from bakeoff.tasks.task_config import Metric
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
    """Number of steps for which each head is trained, in batches of the run's recipe."""
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

    @override
    def refused(self, recipe: Recipe) -> str | None:
        reasons = []
        for objective in self.objectives:
            try:
                _asked(recipe, objective, self.steps)
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
                recipe = _asked(run.recipe, objective, self.steps)
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
        corpus, on = open_corpus(text), resolve_device(device)
        torch.manual_seed(0)  # the same first head for every run
        module = PretrainingModel(recipe, corpus.tokenizer.size)
        fresh = {name: tensor.clone() for name, tensor in module.state_dict().items() if not name.startswith("model.")}
        Start(run=run.path).load(module, corpus)
        module.load_state_dict(fresh, strict=False)
        module.to(on).eval()
        module.model.requires_grad_(False)
        heads = [parameter for parameter in module.parameters() if parameter.requires_grad]
        optimizer = torch.optim.AdamW(heads, lr=self.learning_rate)
        batches = make_batches(recipe, module, corpus, seed=0)
        for step in range(self.steps):
            optimizer.param_groups[0]["lr"] = self.learning_rate * (1 - step / self.steps)
            optimizer.zero_grad()
            made = batches.step(step)
            count = sum(len(labels) for batch in made for _, labels in batch.targets.values())
            for batch in made:
                losses, _ = module(batch.to(on))
                if count:
                    (sum(losses.values()) / count).backward()
            optimizer.step()
        held_out = make_batches(recipe, module, corpus, seed=0, split="validation")
        placement = Placement(on, "float32")
        return row_sums(
            module, held_out.fixed(self.rows), placement, recipe.model.directions, partial(per_target, _hits)
        )

    @override
    def panels(self, measurements: Sequence[Measurement], recipes: Mapping[str, Any], text: str) -> list[Panel]:
        return [panel for each in self.objectives for panel in _panels(each, measurements, text)]


def _asked(recipe: Recipe, objective: ObjectiveConfig, steps: int) -> Recipe:
    """A recipe that learns an objective in place of its own, in pairs of segments where the objective needs them.

    Raises:
        UserError: the model cannot.
    """
    changes = {
        "objective": [objective.model_dump(mode="json")],
        "training.budget": {"steps": steps},
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
    chance = None if classes is None else 1 / len(classes)
    clusters, metric = documents_of(text, count), f"{ACCURACY}:{name}"
    title, files = title_of(objective), {"held-out text": text}
    return [Panel(title, metric, Metric("accuracy"), False, tuple(rows), rows, clusters, 1.0, chance, files)]
