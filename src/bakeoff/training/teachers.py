"""The runs that a training learns from beside its text: opened, checked, read in each step, and never trained."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, Self

import torch

from bakeoff.batching.batch import Batch
from bakeoff.corpus.mixture import AnyCorpus
from bakeoff.display.wording import counted, listed
from bakeoff.errors import UserError
from bakeoff.learner.pretraining_model import PretrainingModel, build_on_meta
from bakeoff.objectives.distillation import DistillationConfig, Distilled, Known, known, require_each_once
from bakeoff.objectives.mlm import MaskedLanguageModelConfig
from bakeoff.objectives.objective import ObjectiveConfig
from bakeoff.objectives.registry import OBJECTIVES
from bakeoff.recipe import Recipe
from bakeoff.runs.run import Run
from bakeoff.stored_tensors import digest_of
from bakeoff.unfinished import ELSEWHERE


class Teacher(NamedTuple):
    """A run that teaches a recipe's objectives."""

    run: Run
    """The finished run, or one of its checkpoints."""
    subjects: frozenset[str]
    """The names of the recipe's objectives that it teaches."""

    def record(self) -> dict[str, str]:
        """The run and the digest of its weights, as environment.json has them."""
        return {"run": str(self.run.path), "digest": digest_of(self.run.weights_file())}


def teachers_of(recipe: Recipe, corpus: AnyCorpus) -> list[Teacher]:
    """The teachers that a recipe names; none where it names none.

    Raises:
        UserError: one is no finished pre-trained run, has another tokenizer than the corpus, has learned nothing that
            the recipe learns, cannot read its rows, or is named twice.
    """
    distillation = recipe.training.distillation
    taught = [] if distillation is None else [_opened(name, recipe, corpus) for name in distillation.teachers]
    require_each_once([each.run.path for each in taught])
    return taught


def digests(recipes: Sequence[Recipe]) -> dict[str, str]:
    """The digest of the weights of each teacher that recipes name, by its name; none where they name none.

    Raises:
        UserError: one is no finished pre-trained run.
    """
    named = {name: recipe for recipe in recipes if (taught := recipe.training.distillation) for name in taught.teachers}
    return {name: digest_of(_finished(name, recipe).weights_file())[:16] for name, recipe in named.items()}


def _finished(name: str, recipe: Recipe) -> Run:
    if not Path(name).exists():
        raise UserError(
            f"{name}: no such run, and {recipe.name} learns from it (training.distillation); give where it stands now, "
            "or set training.distillation=null beside a recipe"
        )
    return Run.open_finished(name)


def _opened(name: str, recipe: Recipe, corpus: AnyCorpus) -> Teacher:
    run = _finished(name, recipe)
    run.require_sizes()
    learned = {part.kind: part for part in run.recipe.objective}
    asked = [part for part in recipe.objective if part.token_targets]
    subjects = frozenset(part.kind for part in asked if part.kind in learned)
    if not subjects:
        raise UserError(
            f"{name}: has learned {_titles(learned)}, and {recipe.name} learns {_titles([each.kind for each in asked])}"
            "; a teacher has to predict what its student predicts: give a run of a recipe with the same objective"
        )
    run.require_tokenizer_of(corpus)
    here, there = (each.extra_tokens for each in (recipe, run.recipe))
    if here != there:
        raise UserError(
            f"{name}: its objective adds {there} tokens to the vocabulary, and {recipe.name}'s adds {here}; give a "
            "run of a recipe whose objectives have the same settings"
        )
    longest = max(each.input.length for each in recipe.stages())
    if (most := run.recipe.model.longest_input) is not None and longest > most:
        raise UserError(
            f"{name}: reads {most:,} tokens at most, and rows of {recipe.name} have {longest:,}; set "
            f"input.length={most}"
        )
    if any(_reads_causally(part) for part in asked) and not any(_reads_causally(part) for part in learned.values()):
        raise UserError(
            f"{name}: has read no rows causally, and {recipe.name} reads some so; set the causal of its objective to 0"
        )
    return Teacher(run, subjects)


def _titles(kinds: Any) -> str:
    """Objectives in words, such as `the next token (clm)`."""
    titles = [OBJECTIVES[kind].title for kind in kinds]
    return listed([title[:1].lower() + title[1:] for title in titles], "and")


def _reads_causally(part: ObjectiveConfig) -> bool:
    return isinstance(part, MaskedLanguageModelConfig) and part.causal > 0


def identities(recipe: Recipe, corpus: AnyCorpus) -> list[dict[str, str]]:
    """The records of a recipe's teachers, by which a resumed training knows them; see `teachers_of`."""
    return [teacher.record() for teacher in teachers_of(recipe, corpus)]


def require_same_teachers(run: Run, now: list[dict[str, str]]) -> None:
    """Refuse to go on with a distillation with other teachers than it was begun with, wherever they stand now.

    Raises:
        UserError: their number, their order or the weights of one differ.
    """
    before = run.environment.get("teachers", [])
    if len(before) != len(now):
        raise UserError(
            f"{run.path}: begun with {counted(len(before), 'teacher')}, not {len(now)}; "
            f"--resume goes on with the same; {ELSEWHERE}"
        )
    for one, other in zip(before, now, strict=True):
        if one["digest"] != other["digest"]:
            raise UserError(
                f"{run.path}: begun with the teacher {one['run']}, and {other['run']} has other weights; --resume goes "
                f"on with the same; {ELSEWHERE}"
            )


def teachers_on_meta(recipe: Recipe, corpus: AnyCorpus) -> Iterator[PretrainingModel]:
    """A recipe's teachers without memory, to count the operations of their passes."""
    for teacher in teachers_of(recipe, corpus):
        yield build_on_meta(teacher.run.recipe, teacher.run.tokenizer.size)


class Teachers:
    """The models of a recipe's teachers on a device, frozen and without dropout, beside the module that is trained.

    Args:
        config: the weight and the temperature.
        models: each model, and the objectives that it teaches.
    """

    def __init__(self, config: DistillationConfig, models: list[tuple[PretrainingModel, frozenset[str]]]) -> None:
        self.config, self.models = config, models

    @classmethod
    def load(cls, recipe: Recipe, corpus: AnyCorpus, device: torch.device) -> Self | None:
        """The teachers that a recipe names; None: it names none.

        Raises:
            UserError: see `teachers_of`; or the weights of one are damaged.
        """
        config = recipe.training.distillation
        if config is None:
            return None
        taught = teachers_of(recipe, corpus)
        models = [(each.run.load(device).requires_grad_(False), each.subjects) for each in taught]
        return cls(config, models)

    @torch.no_grad()
    def knowledge(self, batch: Batch) -> dict[str, list[Known]]:
        """What the teachers know at the targets of a batch, by the names of the objectives that they teach."""
        found: dict[str, list[Known]] = {}
        for model, subjects in self.models:
            targets = {name: each for name, each in batch.targets.items() if name in subjects}
            if targets:
                for name, each in model(replace(batch, targets=targets, parts={}), score=known)[0].items():
                    found.setdefault(name, []).append(each)
        return found

    def scores(self, batch: Batch) -> dict[str, Distilled]:
        """The losses of the objectives that the teachers teach in a batch, for the student's `forward`."""
        return {name: Distilled(self.config, each) for name, each in self.knowledge(batch).items()}
