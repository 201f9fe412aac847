"""The interface between a comparison and the rest of Bakeoff, which a test can replace."""

import os
import platform
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bakeoff.comparison.facts import CorpusFacts, StartFacts
from bakeoff.comparison.latency import LatencyPlan
from bakeoff.comparison.layer_profiles import LayerProfile
from bakeoff.comparison.planning.advice import in_a_plan
from bakeoff.comparison.planning.task_plan import TaskPlan
from bakeoff.comparison.running.refusals import of_each
from bakeoff.corpus.mixture import Mixture, corpora_of, open_corpus
from bakeoff.corpus.store import Corpus
from bakeoff.corpus.trigram import trigram_bits
from bakeoff.display.progress import Shown
from bakeoff.errors import UserError
from bakeoff.extras import version_of
from bakeoff.jobs.job import Job, Note, Outcome
from bakeoff.jobs.runner import Say
from bakeoff.models.layer_map import GrowBy
from bakeoff.optimization.budget import Budget
from bakeoff.tasks.checks.hidden_text import hidden_notes
from bakeoff.tasks.data import TaskData, load_task


class Engine:
    """The steps of a comparison; imports wait until they are needed, because reading a plan needs no torch.

    Recipes here may be any objects with `model_dump`, and with `changed` if they are searched.
    """

    def recipe(self, name: str, overrides: dict[str, Any], device: str) -> Any:
        """The recipe of a name or a file, with the precision of its training on the device."""
        from bakeoff.recipe_files import load_recipe

        return self._resolved(load_recipe(name, overrides), device)

    def further(self, start: Path, overrides: dict[str, Any], device: str) -> Any:
        """The recipe of a run, by which the run is trained further where the plan names no other recipe."""
        from bakeoff.training.initial_weights import Start

        return self._resolved(Start(run=start).recipe().changed(overrides), device)

    def _resolved(self, recipe: Any, device: str) -> Any:
        from bakeoff.resources.device import resolve_device, resolve_precision

        precision = resolve_precision(recipe.training.precision, resolve_device(device))
        return recipe.changed({"training.precision": precision})

    def reshaped(self, recipe: Any, grow: int | None, grow_by: GrowBy, unshare: bool) -> Any:
        """The recipe with other layers than its start has: more of them, and none that share weights.

        Raises:
            UserError: the recipe has more layers already, or none that share weights.
        """
        from bakeoff.models.layer_map import grown, unshared

        if unshare:
            if all(stack.share == "none" for stack in recipe.model.stacks().values()):
                raise UserError("unshare would have no effect: no layers share weights")
            recipe = recipe.changed(unshared(recipe.model))
        return recipe if grow is None else recipe.changed(grown(recipe.model, grow, grow_by))

    def start(self, source: str, imported: Path, say: Say) -> Path:
        """The directory of a finished run: `source` itself, or `imported`, into which another model is imported once.

        Raises:
            UserError: the run has not finished, or the model cannot be imported.
        """
        from bakeoff.interop.hugging_face.importing import import_model
        from bakeoff.runs.checkpoint import run_folder
        from bakeoff.runs.run import Run

        if (run_folder(Path(source)) / "recipe.yaml").exists():
            return Run.open_finished(source).path
        if not (imported / "summary.json").is_file():
            say(f"importing {source}")
            import_model(source, imported, head=False)
        return imported

    def starting(self, source: str, start: Path, recipe: Any, corpus: Path | None, grow_by: GrowBy) -> StartFacts:
        """The weights that a recipe takes from the run that it starts from.

        Args:
            source: the run as the plan names it.
            start: its directory.
            recipe: the recipe, which may have more layers than the run.
            corpus: the corpus to train on; None: the run is compared as it is.
            grow_by: the order of the copied layers where there are more.

        Raises:
            UserError: the weights do not fit the recipe, or the corpus has another tokenizer than the run.
        """
        from bakeoff.learner.pretraining_model import PretrainingModel, build_on_meta
        from bakeoff.runs.run import Run
        from bakeoff.stored_tensors import digest_of
        from bakeoff.training.initial_weights import Start, steps_of

        run = Run.open_finished(start)
        if corpus is None:
            count = len(build_on_meta(run.recipe, run.tokenizer.size).state_dict())
            taken: dict[str, Any] = {"tensors": count, "of": count, "fresh": [], "unused": []}
        else:
            opened = open_corpus(corpus)
            run.require_tokenizer_of(opened)
            fitting = recipe.with_tokenizer(opened.tokenizer.config)
            grown = _deeper(run.recipe.model.stacks(), fitting.model.stacks())
            begun = Start(run=start) if grown is None else Start(run=start, grow=grown, grow_by=grow_by)
            taken = begun.load(PretrainingModel(fitting, opened.tokenizer.size), opened)
            taken |= {"grow": grown, "grow_by": grow_by} if grown else {}
        return StartFacts(
            source=source,
            run=str(start),
            origin=run.environment.get("origin"),
            steps=run.step(),
            trained=steps_of(run),
            weights=digest_of(start / "model.safetensors")[:16],
            **taken,
        )

    def teachers(self, recipe: Any) -> dict[str, str]:
        """The digest of the weights of each run that a recipe learns from, by its name."""
        from bakeoff.training.teachers import digests

        return digests([recipe])

    def check(self, recipe: Any, task: TaskPlan) -> None:
        """Refuse a recipe that cannot be fine-tuned on a task, before anything is trained."""
        from bakeoff.tasks.fitting.resolution import resolve_finetuning

        task.data.require_model(recipe)
        resolve_finetuning(task.finetune, recipe, task.data)

    def idle_settings(self, recipe: Any, task: TaskPlan) -> dict[str, str]:
        """Settings of a recipe's fine-tuning on a task that change nothing, by key, with the reasons."""
        from bakeoff.tasks.fitting.resolution import idle_settings

        return idle_settings(task.finetune, recipe, task.data)

    def require_coolable(self, recipe: Any, corpus: Path, budget: str, shares: Sequence[float], device: str) -> None:
        """Refuse a recipe whose pre-training cannot also end after these shares of a budget.

        Raises:
            UserError: a setting depends on the whole length, or a share is of too few steps.
        """
        from bakeoff.training.cooling import require_coolable
        from bakeoff.training.resolution import resolve_recipe

        wanted = Budget.parse_text(budget)
        steps = None
        if wanted.minutes is None:  # else the steps are not known yet
            steps = resolve_recipe(recipe, open_corpus(corpus), wanted, device).training.budget.steps
        require_coolable(recipe, steps, shares)

    def corpus(self, path: Path, recipes: Mapping[str, Any], device: str) -> CorpusFacts:
        """The facts of the corpus.

        Args:
            path: the corpus's directory.
            recipes: the recipes, by label.
            device: the device of the trainings.

        Raises:
            UserError: recipes cannot be trained on the corpus.
        """
        from bakeoff.resources.device import resolve_device
        from bakeoff.training.stages import require_rows

        corpus = open_corpus(path)
        of_each(recipes, lambda name: require_rows(recipes[name], corpus, resolve_device(device)), f"{path}, ")
        facts = [each.summary() for each in corpora_of(corpus)]
        return CorpusFacts(
            path=str(path),
            fingerprint=corpus.fingerprint,
            tokenizer=str(corpus.tokenizer.config),
            tokenizer_config=corpus.tokenizer.config.model_dump(),
            tokens=corpus.train_tokens,
            words_per_token=corpus.words_per_token,
            documents=sum(each["documents"] for each in facts),
            unigram_entropy=corpus.validation.unigram_entropy(),
            trigram_bits_per_byte=_trigram_bits(corpus, recipes),
            held_out="; ".join(map(_held_out, corpora_of(corpus))),
        )

    def task(self, task: TaskPlan) -> TaskData:
        """The labelled rows of a task.

        Raises:
            UserError: a mistake in a file.
        """
        try:
            return load_task(task.data)
        except UserError as error:
            raise in_a_plan(error) from None

    def hidden(self, corpus: Path, data: TaskData) -> list[str]:
        """Notes on the texts of a task that the corpus's tokenizer does not know, one for each split."""
        splits = {"train": data.train, "dev": data.dev, "test": data.test}
        return hidden_notes(open_corpus(corpus).tokenizer, splits)

    def search_steps(self, recipe: Any, corpus: Path, **options: Any) -> int:
        """The fewest steps of any trial, see `tuning.planning.fewest_steps`.

        Raises:
            UserError: the recipe cannot be searched over these values.
        """
        from bakeoff.tuning.planning import fewest_steps

        return fewest_steps(recipe, str(corpus), option="search.over", **options)

    def search(self, recipe: Any, corpus: Path, out: Path, **options: Any) -> None:
        """Search as `tune` does, or go on with what an interruption left at `out`, until `report.html` stands there."""
        from bakeoff.tuning.engine import TrialEngine
        from bakeoff.tuning.tune import tune

        tune(recipe, corpus, out, engine=TrialEngine(), **options)

    def step_times(self, recipes: list[Any], corpus: Path, device: str) -> Sequence[tuple[float, float]]:
        """Seconds of a step by the clock and seconds of its work, for each recipe; recipes are measured in turns."""
        from bakeoff.training.speed import step_times

        return step_times(recipes, corpus, device)

    def latencies(
        self, folders: Sequence[Path], task: TaskPlan, asked: LatencyPlan, device: str
    ) -> Sequence[tuple[float, int]]:
        """Median seconds of a batch of test texts, and the number of parameters, of fine-tuned runs."""
        from bakeoff.comparison.running.latency import measure

        return measure(folders, self.task(task).test, asked, device)

    def layers(self, folder: Path, corpus: Path, device: str) -> list[LayerProfile]:
        """What the layers of a pre-trained run do, on held-out text of a corpus."""
        from bakeoff.comparison.running.layers import measure_layers

        return measure_layers(folder, corpus, device)

    def similarities(self, base: Path, others: Sequence[Path], corpus: Path, device: str) -> list[list[list[float]]]:
        """How alike each layer of a pre-trained run is to each layer of others, on held-out text of a corpus."""
        from bakeoff.comparison.running.layers import measure_similarities

        return measure_similarities(base, others, corpus, device)

    def carry_out(self, job: Job, progress: Shown, note: Callable[[Note], None]) -> Outcome:
        """Do a job in this process; workers have no engine."""
        return job.carry_out(progress, note)

    def environment(self, device: str) -> tuple[dict[str, str], dict[str, str]]:
        """Facts of the machine (processor, cores, threads, memory, device, system), and versions of the libraries."""
        import torch

        from bakeoff.machine.capacity import processor_name
        from bakeoff.resources.device import resolve_device

        machine = {"processor": processor_name(), "cores": str(os.cpu_count()), "threads": str(torch.get_num_threads())}
        if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
            size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
            machine["memory"] = f"{size / 2**30:.1f} GiB"
        on = resolve_device(device)
        machine["device"] = torch.cuda.get_device_name(on) if on.type == "cuda" else on.type
        machine["system"] = platform.platform()
        packages = ("bakeoff", "torch", "numpy", "tokenizers", "scikit-learn", "scipy")
        versions = {"python": platform.python_version()} | {name: version_of(name) for name in packages}
        return machine, versions


def _trigram_bits(corpus: Corpus | Mixture, recipes: Mapping[str, Any]) -> float | None:
    """Held-out bits a byte of a trigram model of the text; None: no recipe has a loss that compares with it."""
    from bakeoff.objectives.registry import OBJECTIVES

    compares = any(OBJECTIVES[each.kind].whole_text for recipe in recipes.values() for each in recipe.objective)
    return trigram_bits(corpus) if compares and isinstance(corpus, Corpus) else None


def _held_out(corpus: Corpus) -> str:
    """The size of a corpus's held-out text, in words; a text that is prepared anew has the same."""
    counts = corpus.manifest.splits["validation"]
    return f"{counts.documents:,} documents, {counts.sentences:,} sentences, {counts.bytes:,} bytes"


def _deeper(before: Mapping[str, Any], now: Mapping[str, Any]) -> int | None:
    """The number of layers to which all stacks of a model grow; None: they are as deep as before, or no such number."""
    depths = {stack.layers for stack in now.values()}
    deeper = any(side in before and stack.layers > before[side].layers for side, stack in now.items())
    return depths.pop() if deeper and len(depths) == 1 else None
