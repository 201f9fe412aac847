"""`bakeoff babylm`: an entry to a track of BabyLM, from the text to the file that is submitted."""

import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bakeoff.challenge.acquisition import AgeScore
from bakeoff.challenge.asking import HELD_OUT, Asked, ask
from bakeoff.challenge.evaluation import Evaluation
from bakeoff.challenge.folder import MAIN, MultilingualSettings
from bakeoff.challenge.labelled import TaskScores, digests_of, fine_tune, scores_of, write_tables
from bakeoff.challenge.multilingual_results import MultilingualResults
from bakeoff.challenge.multilingual_submission import write_multilingual
from bakeoff.challenge.on_the_way import OnTheWay
from bakeoff.challenge.results import EntryResults, zero_shot_scores
from bakeoff.challenge.rules import words_of
from bakeoff.challenge.submission import lacking, submission_of, write_submission
from bakeoff.corpus.store import Corpus
from bakeoff.display.progress import Shown
from bakeoff.display.wording import counted
from bakeoff.durable import held, remove, write_atomically
from bakeoff.errors import Interrupted, UserError
from bakeoff.full_disk import full_disk
from bakeoff.interop.export import export
from bakeoff.optimization.budget import Budget
from bakeoff.optimization.save_points import SavePoints
from bakeoff.preparation.encoding.writer import NothingLeft
from bakeoff.preparation.prepare import prepare
from bakeoff.recipe import Recipe
from bakeoff.runs.run import Run
from bakeoff.training.pretrain import pretrain
from bakeoff.unfinished import unfinished_folder

Say = Callable[[str], None]

UNFINISHED = "the training goes on"
"""What the submission lacks while there is none."""


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
    byte_premiums: str | None = None,
    seed: int = 0,
    device: str = "auto",
    progress: Shown = True,
    say: Say | None = None,
) -> EntryResults:
    """Make an entry: prepare, pre-train with checkpoints, export and score each, fine-tune, write what is submitted.

    The same call goes on after an interruption; what is done is not done again. Files of the evaluation that come later
    are scored then.

    Args:
        track: strict, strict-small or multilingual.
        recipe: a recipe, its name or its file; its budget is replaced.
        data: files and folders of text, together at most the words of the track; for multilingual with their languages:
            `eng=PATH`, `nld=PATH`, `zho=PATH`, or folders with folders of these names.
        out: folder of the entry.
        evaluation: the official folder evaluation_data, with full_eval and fast_eval, or for multilingual the official
            folder multilingual, with the data sets of lm-eval in zeroshot; None: nothing is scored. What is missing in
            it is named.
        epochs: number of passes over the text, 10 at most.
        backend: causal, mlm or mntp, which is scored as mlm; None: that of the recipe's first objective.
        document_per_line: read each line of a .txt as a document.
        byte_premiums: for multilingual, byte premiums in place of BabyBabelLM's: zho=0.936,nld=1.05.
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
        byte_premiums=byte_premiums,
        seed=seed,
        device=device,
    )
    asked.check()
    asked.folder.begin(asked.settings)
    try:
        with held(asked.folder.path), full_disk(asked.folder.path, lambda: "what is done is kept"):
            return _made(asked, progress, say or (lambda line: None))
    except (Interrupted, KeyboardInterrupt) as error:
        number = error.signal_number if isinstance(error, Interrupted) else signal.SIGINT
        raise Interrupted(f"{out}: interrupted; the same command goes on", number) from None


def corpus_of(asked: Asked, progress: Shown) -> Corpus:
    """The corpus of an entry, which is made if it is not there.

    Raises:
        UserError: a file has a mistake, or there is too little text.
    """
    if asked.folder.corpus.exists():
        return Corpus.open(asked.folder.corpus)
    try:
        return prepare(
            asked.texts,
            asked.folder.corpus,
            tokenizer=asked.tokenizer,
            seed=asked.settings.seed,
            progress=progress is True,
            validation=HELD_OUT,
            document_per_line=asked.settings.document_per_line,
        )
    except NothingLeft:
        asked.folder.forsake()
        raise UserError(
            f"{asked.settings.words:,} words are too little text for an entry, of which {100 * HELD_OUT:g} % are held "
            "out; give --data more"
        ) from None


def _made(asked: Asked, progress: Shown, say: Say) -> EntryResults:
    folder, settings = asked.folder, asked.settings
    if not folder.corpus.exists():
        say(f"corpus of {settings.words:,} words")
    corpus = corpus_of(asked, progress)
    evaluation, _ = asked.evaluating()
    run = _trained(asked, corpus, evaluation, progress, say)
    models = _exported(asked, corpus, run, say)
    evaluation.score(models.get, say)
    labelled = _labelled(asked, progress, say)
    if asked.languages:
        lacks = write_multilingual(asked, evaluation, labelled)
    else:
        content = submission_of(folder, evaluation, labelled, asked.recipe.name)
        write_submission(folder, settings.backend, content)
        lacks = lacking(content, asked.track.checkpoints(asked.track.most_read))
    return _written(asked, corpus, evaluation, run, labelled, lacks, evaluation.ages())


def _written(
    asked: Asked,
    corpus: Corpus,
    evaluation: Evaluation,
    run: Run,
    labelled: dict[str, TaskScores],
    lacks: list[str],
    ages: AgeScore | None = None,
) -> EntryResults:
    """The results so far, of which the last weights are those of `run`; written and returned."""
    folder, settings = asked.folder, asked.settings
    values: dict[str, Any] = {
        "path": folder.path,
        "track": settings.track,
        "recipe": asked.recipe.name,
        "backend": settings.backend,
        "words": settings.words,
        "words_read": int(run.summary["words"]),
        "checkpoints": [words_of(name) for name in asked.kept(corpus)],
        "scores": zero_shot_scores(evaluation),
        "ages": ages,
        "labelled": labelled,
        "missing": asked.evaluating()[1],
        "lacking": lacks,
        "submission": folder.submission(settings.backend).name,
    }
    results: EntryResults
    if isinstance(settings, MultilingualSettings):
        values["words_read"] = round(run.summary["tokens"] * asked.words_per_token(corpus))
        values["submission"] = folder.multilingual_submission(asked.recipe.name)[0].name
        values |= {"languages": settings.languages, "byte_premiums": settings.byte_premiums}
        results = MultilingualResults(**values)
    else:
        results = EntryResults(**values)
    write_atomically(folder.results, results.model_dump_json(indent=2) + "\n")
    write_atomically(folder.report, results.markdown())
    return results


def _trained(asked: Asked, corpus: Corpus, evaluation: Evaluation, progress: Shown, say: Say) -> Run:
    """The pre-trained run, with weights kept after the track's numbers of words and scored on the way."""
    folder, points = asked.folder, list(asked.points(corpus).values())
    if (folder.run / "summary.json").is_file():
        return Run.open_finished(folder.run)
    say(f"pre-training of {asked.recipe.name}, {asked.settings.epochs} passes, {counted(len(points), 'checkpoint')}")

    def kept_run(model: str) -> Run | None:
        path = asked.kept(corpus).get(model)
        return None if path is None else Run.open_finished(path)

    def write() -> None:
        last = [*asked.kept(corpus).values()][-1]
        _written(asked, corpus, evaluation, Run.open_finished(last), {}, [UNFINISHED])

    return pretrain(
        asked.recipe,
        corpus.path,
        folder.run,
        seed=asked.settings.seed,
        budget=Budget(epochs=asked.settings.epochs),
        device=asked.device,
        save_at=SavePoints.parse({points[0].unit: [point.amount for point in points]}, "save_at") if points else None,
        resume=folder.run.exists(),
        progress=progress,
        kept=OnTheWay(evaluation, kept_run, write, say),
    )


def _exported(asked: Asked, corpus: Corpus, run: Run, say: Say) -> dict[str, Run]:
    """The run of each checkpoint that was kept, and of the last model as main, after each is exported."""
    folder = asked.folder
    paths = asked.kept(corpus) | {MAIN: run.path}
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
    for task in asked.tasks:
        if not asked.has_labels(task):
            continue
        assert asked.evaluation is not None
        runs = {seed: folder.finetuned(task.name, seed) for seed in asked.seeds}
        folder.tables().mkdir(parents=True, exist_ok=True)
        before = digests_of(task, folder.tables())
        tables = write_tables(task, asked.evaluation, folder.tables())
        if before not in (None, digests_of(task, folder.tables())):
            say(f"{task.name}: its files have changed, and what was fine-tuned on them is made anew")
            for path in runs.values():
                remove(path)
                remove(unfinished_folder(path))
        for seed, path in runs.items():
            if not (path / "results.json").is_file():
                say(f"fine-tuning on {task.name}, seed {seed}")
                fine_tune(task, folder.run, tables, path, seed, asked.device, progress)
        found[task.name] = scores_of(task, runs)
    return found
