"""The interface between a comparison and the rest of Bakeoff, which a test can replace."""

import os
import platform
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from bakeoff.comparison.facts import CorpusFacts, StartFacts
from bakeoff.comparison.plan import SearchPlan, TaskPlan
from bakeoff.corpus.mixture import corpora_of, mixture_entries, open_corpus
from bakeoff.errors import UserError
from bakeoff.optimization.budget import Budget
from bakeoff.tasks.checks.hidden_text import hidden_notes
from bakeoff.tasks.data import TaskData, load_task
from bakeoff.training.progress import Shown
from bakeoff.workers.pool import Workers

Watch = Callable[[int, float], None]


class Engine:
    """The steps of a comparison; imports wait until they are needed, because reading a plan needs no torch.

    Recipes here may be any objects with `model_dump`, and with `changed` if they are searched.
    """

    def recipe(self, name: str, overrides: dict[str, Any], device: str) -> Any:
        """The recipe of a name or a file, with the precision of its training on the device."""
        from bakeoff.recipe_files import load_recipe

        return self._resolved(load_recipe(name, overrides), device)

    def further(self, start: Path, overrides: dict[str, Any], device: str) -> Any:
        """The own recipe of a run, by which the run is trained further where the plan names no other recipe."""
        from bakeoff.training.initial_weights import Start

        return self._resolved(Start(run=start).recipe().changed(overrides), device)

    def _resolved(self, recipe: Any, device: str) -> Any:
        from bakeoff.resources.device import resolve_device, resolve_precision

        precision = resolve_precision(recipe.training.precision, resolve_device(device))
        return recipe.changed({"training.precision": precision})

    def start(self, source: str, imported: Path, say: Callable[[str], None]) -> Path:
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

    def starting(self, source: str, start: Path, recipe: Any, corpus: Path) -> StartFacts:
        """The weights that a recipe takes from the run that it starts from.

        Raises:
            UserError: the weights do not fit the recipe, or the corpus has another tokenizer than the run.
        """
        from bakeoff.digests import digest
        from bakeoff.learner.pretraining_model import PretrainingModel
        from bakeoff.runs.run import Run
        from bakeoff.training.initial_weights import Start

        opened, run = open_corpus(corpus), Run.open_finished(start)
        run.require_tokenizer_of(opened)
        fitting = recipe.with_tokenizer(opened.tokenizer.config)
        taken = Start(run=start).load(PretrainingModel(fitting, opened.tokenizer.size), opened)
        return StartFacts(
            source=source,
            run=str(start),
            origin=run.environment.get("origin"),
            steps=run.step(),
            weights=digest(start / "model.safetensors")[:16],
            **taken,
        )

    def check(self, recipe: Any, task: TaskPlan) -> None:
        """Refuse a recipe that cannot be fine-tuned on a task, before anything is trained."""
        from bakeoff.tasks.fitting.resolution import resolve_finetuning

        task.data.require_model(recipe)
        resolve_finetuning(task.finetune, recipe, task.data)

    def corpus(self, path: Path, recipes: Sequence[Any], device: str) -> CorpusFacts:
        """The facts of the corpus.

        Raises:
            UserError: a recipe cannot be trained on the corpus.
        """
        from bakeoff.resources.device import resolve_device
        from bakeoff.training.stages import require_rows

        corpus = open_corpus(path)
        for recipe in recipes:
            try:
                require_rows(recipe, corpus, resolve_device(device))
            except UserError as error:
                raise UserError(f"{path}, recipe {recipe.name}: {error}") from None
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
        )

    def task(self, task: TaskPlan) -> TaskData:
        """The labelled rows of a task."""
        return load_task(task.data)

    def hidden(self, corpus: Path, data: TaskData) -> list[str]:
        """Notes on the texts of a task that the corpus's tokenizer does not know, one for each split."""
        splits = {"train": data.train, "dev": data.dev, "test": data.test}
        return hidden_notes(open_corpus(corpus).tokenizer, splits)

    def search_steps(self, recipe: Any, corpus: Path, *, search: SearchPlan, budget: Budget, device: str) -> int:
        """The fewest steps of any trial under the budget.

        Raises:
            UserError: the recipe cannot be searched over these values.
        """
        from bakeoff.tuning.planning import fewest_steps

        options: dict[str, Any] = {"over": search.over, "trials": search.trials, "budget": budget, "device": device}
        return fewest_steps(recipe, str(corpus), option="search.over", **options)

    def search(
        self,
        recipe: Any,
        corpus: Path,
        out: Path,
        *,
        search: SearchPlan,
        budget: Budget,
        device: str,
        progress: Callable[[str], None],
        workers: Workers | None = None,
        start: Path | None = None,
    ) -> None:
        """Search, or go on with what an interruption left at `out`, until `report.html` stands there.

        `budget` is the budget of one whole trial. `workers` train several trials side by side. A search has the seeds
        from 0 on, whatever the plan's seeds are, so that these may change.
        """
        from bakeoff.tuning.engine import TrialEngine
        from bakeoff.tuning.tune import tune

        options: dict[str, Any] = {"over": search.over, "trials": search.trials, "budget": budget, "device": device}
        several: dict[str, Any] = {"engine": TrialEngine()} if workers is None else {"workers": workers}
        several["start"] = start
        tune(recipe, corpus, out, seed=0, seeds=search.seeds, progress=progress, **several, **options)

    def step_times(self, recipes: list[Any], corpus: Path, device: str) -> Sequence[tuple[float, float]]:
        """Seconds of a step by the clock and seconds of its work, for each recipe; recipes are measured in turns."""
        from bakeoff.training.speed import step_times

        return step_times(recipes, corpus, device)

    def pretrain(
        self,
        recipe: Any,
        corpus: Path,
        out: Path,
        *,
        seed: int,
        budget: Budget,
        device: str,
        progress: Shown,
        watch: Watch | None = None,
        start: Path | None = None,
    ) -> None:
        """Pre-train, or go on with what an interruption left at `out`, until `summary.json` stands there.

        The first weights come from the run `start`, if one is given. `watch` is called during the training with the
        steps done and the seconds of their work; an exception that it raises ends the training.
        """
        from bakeoff.training.initial_weights import Start
        from bakeoff.training.pretrain import pretrain

        begun = (out / "recipe.yaml").exists()  # else a line would say that there is nothing to resume
        options: dict[str, Any] = {"seed": seed, "budget": budget, "device": device, "progress": progress}
        options["start"] = None if start is None else Start(run=start)
        if watch is not None:
            options["watch"] = lambda position: watch(position.step, position.work_seconds)
        # What is compared is the run itself, so that its average would be written for nobody.
        pretrain(recipe, corpus, out, average_last=0, resume=begun, **options)

    def finetune(
        self,
        source: Any,
        task: TaskPlan,
        out: Path,
        *,
        seed: int,
        corpus: Path,
        device: str,
        progress: Shown,
    ) -> None:
        """Fine-tune a run's directory, or a recipe from random weights, until `results.json` stands at `out`."""
        from bakeoff.tasks.finetune import finetune

        entries = mixture_entries(str(corpus))
        shared = entries[0][0] if entries else corpus  # the corpora of a mixture have one tokenizer
        tokenizer = None if isinstance(source, Path) else shared  # a run has its own, the very same
        common: dict[str, Any] = {"seed": seed, "device": device, "progress": progress}
        finetune(source, task.data, out, config=task.finetune, tokenizer=tokenizer, **common)

    def environment(self, device: str) -> tuple[dict[str, str], dict[str, str]]:
        """Facts of the machine (processor, cores, threads, memory, device, system), and versions of the libraries."""
        import torch

        from bakeoff.resources.device import processor_name, resolve_device

        machine = {"processor": processor_name(), "cores": str(os.cpu_count()), "threads": str(torch.get_num_threads())}
        if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
            size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
            machine["memory"] = f"{size / 2**30:.1f} GiB"
        on = resolve_device(device)
        machine["device"] = torch.cuda.get_device_name(on) if on.type == "cuda" else on.type
        machine["system"] = platform.platform()
        packages = ("bakeoff", "torch", "numpy", "tokenizers", "scikit-learn", "scipy")
        versions = {"python": platform.python_version()} | {name: metadata.version(name) for name in packages}
        return machine, versions
