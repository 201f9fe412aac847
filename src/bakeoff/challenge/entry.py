"""`bakeoff babylm`: an entry to a track of BabyLM, from the text to the file that is submitted."""

import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from bakeoff.challenge.evaluation import Evaluation, missing_of, parts_of
from bakeoff.challenge.folder import MAIN, EntryFolder, Settings
from bakeoff.challenge.labelled import (
    FOLDER,
    SEEDS,
    TASKS,
    LabelledTask,
    TaskScores,
    fine_tune,
    scores_of,
    write_tables,
)
from bakeoff.challenge.results import EntryResults, zero_shot_scores
from bakeoff.challenge.rules import MOST_EPOCHS, Track, backend_of, checkpoint_name, count_words, track_of, words_of
from bakeoff.challenge.submission import lacking, submission_of, write_submission
from bakeoff.corpus.store import Corpus
from bakeoff.display.progress import Shown
from bakeoff.display.wording import counted
from bakeoff.durable import held, write_atomically
from bakeoff.errors import Interrupted, UserError
from bakeoff.extras import missing as not_installed
from bakeoff.full_disk import full_disk
from bakeoff.interop.export import export
from bakeoff.optimization.budget import Budget
from bakeoff.optimization.save_points import SavePoints
from bakeoff.preparation.prepare import prepare
from bakeoff.reading.sources import SourceOptions
from bakeoff.recipe import Recipe
from bakeoff.recipe_files import load_recipe
from bakeoff.runs.run import Run
from bakeoff.training.pretrain import pretrain
from bakeoff.training.saving import MISSED_AT_THE_END

HELD_OUT = 0.005
"""The share of the text that is held out: so little that the last checkpoint is still that of all words."""

Say = Callable[[str], None]


class Asked(NamedTuple):
    """What an entry is made of, checked and counted."""

    track: Track
    recipe: Recipe
    folder: EntryFolder
    settings: Settings
    evaluation: Path | None
    device: str

    @property
    def read(self) -> int:
        """The words that are read in training, at most."""
        return self.settings.words * self.settings.epochs

    def checkpoints(self) -> list[int]:
        """The words after which checkpoints are due."""
        return self.track.checkpoints(self.read * (1 - HELD_OUT) / (1 - MISSED_AT_THE_END))

    def evaluating(self) -> tuple[Evaluation, list[str]]:
        """The zero-shot evaluation, and what is missing of the files of all of the evaluation."""
        parts = parts_of(self.evaluation, self.checkpoints())
        absent = missing_of(parts)
        for task in TASKS:
            if not self.has_labels(task):
                absent.append(f"{task.name}: no full_eval/{FOLDER}/{task.name}.train.jsonl and .valid.jsonl")
        return Evaluation(self.folder, parts, self.settings.backend, self.device), absent

    def has_labels(self, task: LabelledTask) -> bool:
        """Whether the files of a fine-tuning task are there."""
        where = self.evaluation
        return where is not None and all(task.file(where, split).is_file() for split in ("train", "valid"))


def babylm(
    track: str,
    recipe: str | Path | Recipe,
    data: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    evaluation: str | Path | None = None,
    epochs: int = 10,
    backend: str | None = None,
    document_per_line: bool = False,
    seed: int = 0,
    device: str = "auto",
    progress: Shown = True,
    say: Say | None = None,
) -> EntryResults:
    """Make an entry: prepare, pre-train with checkpoints, export and score each, fine-tune, write what is submitted.

    The same call goes on after an interruption; what is done is not done again. Files of the evaluation that come later
    are scored then.

    Args:
        track: strict or strict-small.
        recipe: a recipe, its name or its file; its budget is replaced.
        data: files and folders of text, together at most the words of the track.
        out: folder of the entry.
        evaluation: the official folder `evaluation_data`, with `full_eval` and `fast_eval`; None: nothing is scored.
            What is missing in it is named.
        epochs: number of passes over the text, 10 at most.
        backend: causal, mlm or mntp, which is scored as mlm; None: that of the recipe's first objective.
        document_per_line: read each line of a .txt as a document.
        seed: seed of everything that is random in the pre-training.
        device: auto, cpu, cuda or mps.
        progress: show bars, or lines where there is no terminal.
        say: called with a line on each stage.

    Raises:
        UserError: a rule of the track is broken, an argument or a file has a mistake, or the entry was begun with other
            settings.
        Interrupted: a signal came; the same call goes on.
    """
    asked = ask(
        track,
        recipe,
        data,
        out,
        evaluation=evaluation,
        epochs=epochs,
        backend=backend,
        document_per_line=document_per_line,
        seed=seed,
        device=device,
    )
    asked.evaluating()[0].check()
    asked.folder.begin(asked.settings)
    try:
        with held(asked.folder.path), full_disk(asked.folder.path, lambda: "what is done is kept"):
            return _made(asked, progress, say or (lambda line: None))
    except (Interrupted, KeyboardInterrupt) as error:
        number = error.signal_number if isinstance(error, Interrupted) else signal.SIGINT
        raise Interrupted(f"{out}: interrupted; the same command goes on", number) from None


def ask(
    track: str,
    recipe: str | Path | Recipe,
    data: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    evaluation: str | Path | None = None,
    epochs: int = 10,
    backend: str | None = None,
    document_per_line: bool = False,
    seed: int = 0,
    device: str = "auto",
) -> Asked:
    """What is asked for, by the rules of the track; see `babylm`. Nothing is written.

    Raises:
        UserError: a rule of the track is broken, or an argument has a mistake.
    """
    rules = track_of(track)
    if not 1 <= epochs <= MOST_EPOCHS:
        raise UserError(f"--epochs {epochs}: the track allows 1 to {MOST_EPOCHS} passes over the text")
    loaded = recipe if isinstance(recipe, Recipe) else load_recipe(recipe)
    chosen = backend_of(loaded, backend)
    where = None if evaluation is None else Path(evaluation)
    if where is not None and not any((where / name).is_dir() for name in ("full_eval", "fast_eval")):
        raise UserError(
            f"--evaluation {where}: holds no folder full_eval or fast_eval; give the official evaluation_data"
        )
    try:
        import transformers  # noqa: F401
    except ImportError:
        raise not_installed("babylm exports checkpoints and reads them back with transformers", "hub") from None
    folder = EntryFolder(out)
    texts = [str(each) for each in ([data] if isinstance(data, str | Path) else data)]
    begun = folder.settings()
    if begun is not None and begun.data == texts and begun.document_per_line == document_per_line:
        words = begun.words
    else:
        words = count_words(texts, SourceOptions(document_per_line=document_per_line))
    if words > rules.words:
        raise UserError(
            f"{', '.join(texts)}: {words:,} words between white space, and the track {track} allows {rules.words:,}; "
            "leave some of the text out"
        )
    settings = Settings(
        track=track,
        data=texts,
        document_per_line=document_per_line,
        words=words,
        epochs=epochs,
        backend=chosen,
        seed=seed,
        recipe=loaded.model_dump(mode="json"),
    )
    return Asked(rules, loaded, folder, settings, where, device)


def corpus_of(asked: Asked, progress: Shown) -> Corpus:
    """The corpus of an entry, which is made if it is not there."""
    if asked.folder.corpus.exists():
        return Corpus.open(asked.folder.corpus)
    return prepare(
        asked.settings.data,
        asked.folder.corpus,
        tokenizer=asked.recipe.tokenizer,
        seed=asked.settings.seed,
        progress=progress is True,
        validation=HELD_OUT,
        document_per_line=asked.settings.document_per_line,
    )


def _made(asked: Asked, progress: Shown, say: Say) -> EntryResults:
    folder, settings = asked.folder, asked.settings
    if not folder.corpus.exists():
        say(f"corpus of {settings.words:,} words")
    corpus = corpus_of(asked, progress)
    run = _trained(asked, corpus, progress, say)
    models = _exported(asked, run, say)
    evaluation, absent = asked.evaluating()
    evaluation.score(lambda name: models.get(name), say)
    labelled = _labelled(asked, progress, say)
    content = submission_of(folder, evaluation, labelled, asked.recipe.name)
    write_submission(folder, settings.backend, content)
    results = EntryResults(
        path=folder.path,
        track=settings.track,
        recipe=asked.recipe.name,
        backend=settings.backend,
        words=settings.words,
        words_read=int(run.summary["words"]),
        checkpoints=[words_of(name) for name in models if name != MAIN],
        scores=zero_shot_scores(evaluation),
        labelled=labelled,
        missing=absent,
        lacking=lacking(content, asked.track.checkpoints(asked.track.most_read)),
        submission=folder.submission(settings.backend).name,
    )
    write_atomically(folder.results, results.model_dump_json(indent=2) + "\n")
    write_atomically(folder.report, results.markdown())
    return results


def _trained(asked: Asked, corpus: Corpus, progress: Shown, say: Say) -> Run:
    """The pre-trained run, with weights kept after the track's numbers of words."""
    folder, points = asked.folder, asked.checkpoints()
    if (folder.run / "summary.json").is_file():
        return Run.open_finished(folder.run)
    say(f"pre-training of {asked.recipe.name}, {asked.settings.epochs} passes, {counted(len(points), 'checkpoint')}")
    return pretrain(
        asked.recipe,
        corpus.path,
        folder.run,
        seed=asked.settings.seed,
        budget=Budget(epochs=asked.settings.epochs),
        device=asked.device,
        save_at=SavePoints(words=points) if points else None,
        resume=folder.run.exists(),
        progress=progress,
    )


def _exported(asked: Asked, run: Run, say: Say) -> dict[str, Run]:
    """The run of each checkpoint that was kept, and of the last model as main, after each is exported."""
    folder = asked.folder
    paths = {checkpoint_name(words): folder.kept(words) for words in asked.checkpoints()}
    paths = {name: path for name, path in paths.items() if path.is_dir()} | {MAIN: run.path}
    for name, path in paths.items():
        if not folder.export(name).exists():
            say(f"export of {name}")
            folder.export(name).parent.mkdir(exist_ok=True)
            export(path, folder.export(name), to="hf")
    return {name: Run.open_finished(path) for name, path in paths.items()}


def _labelled(asked: Asked, progress: Shown, say: Say) -> dict[str, TaskScores]:
    """The scores of the fine-tuning tasks whose files are there."""
    folder = asked.folder
    found: dict[str, TaskScores] = {}
    for task in TASKS:
        if not asked.has_labels(task):
            continue
        assert asked.evaluation is not None
        runs = {seed: folder.finetuned(task.name, seed) for seed in SEEDS}
        waiting = {seed: path for seed, path in runs.items() if not (path / "results.json").is_file()}
        if waiting:
            folder.tables().mkdir(parents=True, exist_ok=True)
            tables = write_tables(task, asked.evaluation, folder.tables())
            for seed, path in waiting.items():
                say(f"fine-tuning on {task.name}, seed {seed}")
                fine_tune(task, folder.run, tables, path, seed, asked.device, progress)
        found[task.name] = scores_of(task, runs)
    return found
