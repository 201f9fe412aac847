"""What a pre-training is asked for, and what is there: the run to go on with, the corpus, the recipe."""

from pathlib import Path
from shlex import quote
from typing import Any, NamedTuple

import torch

from bakeoff import checksums
from bakeoff.corpus.mixture import AnyCorpus, corpora_of, open_corpus
from bakeoff.distributed.processes import ALONE, Processes
from bakeoff.durable import is_held
from bakeoff.errors import UserError
from bakeoff.optimization.budget import Budget
from bakeoff.recipe import Recipe
from bakeoff.resources.device import resolve_device
from bakeoff.resources.thread_choice import Asked as AskedThreads
from bakeoff.runs.checkpoint import list_checkpoints
from bakeoff.runs.run import Run
from bakeoff.tokenizer.tokenizer_config import TokenizerConfig
from bakeoff.training.initial_weights import Start
from bakeoff.training.remarks import require_known
from bakeoff.training.teachers import identities


class Asked(NamedTuple):
    """The arguments of `pretrain` that decide what is trained."""

    recipe: Recipe | None
    corpus: str | Path | None
    out: Path
    seed: int | None
    budget: Budget | None
    device: str
    threads: AskedThreads
    start: Start | None
    changes: dict[str, Any]
    """Values of the recipe's `training` that are replaced."""
    resume: bool
    finish_now: bool
    processes: Processes = ALONE


class Opened(NamedTuple):
    """What a pre-training reads."""

    asked: Asked
    run: Run | None
    """The run that is gone on with, finished or not; None: a run begins."""
    corpus: AnyCorpus
    recipe: Recipe
    """The recipe that is asked for, with the corpus's tokenizer."""
    tokenizer: TokenizerConfig
    """The tokenizer that the recipe asked for itself."""
    device: torch.device
    request: dict[str, Any]
    """What a resumed training has to share with its beginning; in environment.json."""

    @property
    def seed(self) -> int:
        """The seed of weights, order, masks and dropout."""
        return int(self.request["seed"])

    @property
    def steps_before(self) -> int:
        """The steps that have trained the first weights."""
        return int(self.request["steps_before"])

    @property
    def tokens_before(self) -> int:
        """Tokens of the texts that have trained the first weights, without the corpus's."""
        here = {each.fingerprint for each in corpora_of(self.corpus)}
        return sum(tokens for fingerprint, tokens in self.request["texts"].items() if fingerprint not in here)

    @property
    def fits_memory(self) -> bool:
        """Whether micro-batches are to be as large as memory allows."""
        return self.recipe.training.micro_batch == "auto"

    @property
    def trained(self) -> bool:
        """Whether weights of an earlier call are gone on with."""
        return self.run is not None and _trained(self.run)


def open_training(asked: Asked) -> Opened:
    """Open the run, the corpus and the recipe of a pre-training.

    Raises:
        UserError: one of them is missing or damaged, or the run cannot be gone on with.
    """
    run = asked.processes.once(lambda: _begun(asked))
    path = _corpus_path(asked, run)
    corpus = open_corpus(path)
    require_known(corpus)
    device = resolve_device(asked.device)
    recipe = _recipe(asked, run)
    changes = {f"training.{key}": value for key, value in asked.changes.items()}
    wanted = recipe.changed({**changes, "tokenizer": corpus.tokenizer.config.model_dump()})
    request = {
        "recipe": wanted.model_dump(mode="json"),
        "budget": None if asked.budget is None else str(asked.budget),
        "seed": (run.environment["seed"] if run else 0) if asked.seed is None else asked.seed,
        "corpus": {"path": str(path), "fingerprint": corpus.fingerprint},
        "origin": _origin(asked, run),
        "steps_before": _steps_before(asked, run),
        "texts": _texts(asked, run) | {each.fingerprint: each.train_tokens for each in corpora_of(corpus)},
    }
    if wanted.training.distillation is not None and not asked.finish_now:
        request["teachers"] = asked.processes.once(lambda: _teachers(run, wanted, corpus))
    return Opened(asked, run, corpus, wanted, recipe.tokenizer, device, request)


def _teachers(run: Run | None, wanted: Recipe, corpus: AnyCorpus) -> list[dict[str, str]]:
    """The records of the teachers; of a finished run, which needs them no more, those that it was begun with."""
    try:
        return identities(wanted, corpus)
    except UserError:
        if run is None or not run.finished:
            raise
        recorded: list[dict[str, str]] = run.environment.get("teachers", [])
        return recorded


def _begun(asked: Asked) -> Run | None:
    """The run that is gone on with; None: there is none, or it is not asked for."""
    out = asked.out
    checksums.require_present(out / "recipe.yaml")
    run = Run.open(out) if (asked.resume or asked.finish_now) and (out / "recipe.yaml").exists() else None
    if run:
        if not run.finished and is_held(run.path):  # before anything in it is changed
            raise UserError(f"{out}: another process is writing here; wait for it, or choose another --out")
        run.complete_beginning()
        run.verify()
        if run.environment["corpus"] is None:
            raise UserError(
                f"{out}: imported, and has no training to go on with; train it further: --from {quote(str(out))}"
            )
    if asked.finish_now and not (run and (run.finished or list_checkpoints(run.checkpoints))):
        raise UserError(f"{out}: --finish-now: there is no training with a checkpoint to finish")
    return run


def _corpus_path(asked: Asked, run: Run | None) -> str | Path:
    if asked.corpus is not None:
        return asked.corpus
    if run is None:
        nothing = "there is no run to resume; give a recipe and its corpus"
        raise UserError(f"{asked.out}: {nothing if asked.resume else 'give the corpus to train on'} (--corpus DIR)")
    return str(run.environment["corpus"]["path"])


def _recipe(asked: Asked, run: Run | None) -> Recipe:
    """The recipe to train: the given one, or that of the run that is gone on with or that the weights come from.

    Raises:
        UserError: there is none, it is not valid any more, or the run cannot be grown.
    """
    start = asked.start
    if asked.recipe is not None:
        return asked.recipe if start is None else start.fit(asked.recipe)
    if run is not None:
        return Recipe.parse(run.environment["recipe"], str(run.path))
    if start is None:
        raise UserError("give a recipe, or a run to start from (--from RUN)")
    return start.recipe()


def _origin(asked: Asked, run: Run | None) -> str | None:
    """The runs that the first weights come from, in words; None: chance.

    Raises:
        UserError: a run that began from others is gone on with before its first checkpoint, and they are not named.
    """
    if asked.start is not None:
        return str(asked.start)
    if run is None or asked.recipe is not None:
        return None
    origin: str | None = run.environment.get("origin")
    if origin is not None and not _trained(run):
        raise UserError(
            f"{run.path}: begun {origin}, and stopped before its first checkpoint; give the run with the whole command "
            "that it was begun with, and --resume"
        )
    return origin


def _trained(run: Run) -> bool:
    return run.finished or bool(list_checkpoints(run.checkpoints))


def _steps_before(asked: Asked, run: Run | None) -> int:
    """The steps that have trained the first weights; a run that is gone on with knows them itself."""
    if run is not None:
        return int(run.environment.get("steps_before", 0))
    return 0 if asked.start is None else asked.start.steps()


def _texts(asked: Asked, run: Run | None) -> dict[str, int]:
    """The texts that have trained the first weights; a run that is gone on with knows them itself."""
    if run is not None:
        return dict(run.environment.get("texts") or {})
    return {} if asked.start is None else asked.start.texts()
