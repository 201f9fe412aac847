"""The making of a corpus from text, in one go or in shards, by one process or by several that share a disk."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bakeoff.corpus.store import Corpus
from bakeoff.durable import held, own_folder, remove
from bakeoff.errors import Interrupted, UserError, path_of
from bakeoff.full_disk import DiskFull, full_disk
from bakeoff.preparation.encoding.pool import WorkerDied, workers_for
from bakeoff.preparation.encoding.writer import check_target, work_folder
from bakeoff.preparation.merging import merge
from bakeoff.preparation.options import PrepareOptions, Texts
from bakeoff.preparation.planning.plan import PreparationPlan, shard_folder
from bakeoff.preparation.planning.planner import Planner
from bakeoff.preparation.progress import ReadingProgress, ShowProgress
from bakeoff.preparation.shards import encode_shard, encode_whole
from bakeoff.same_settings import require_same


class Preparation:
    """The making of a corpus from a text with options; nothing is read until one of the methods is called.

    Args:
        texts: files, folders and globs.
        out: folder of the corpus.
        options: the options that decide on the corpus.
        overwrite: as for `prepare`, like all further arguments.

    Raises:
        UserError: a file does not exist, or a link stands where the corpus would grow.
    """

    def __init__(
        self,
        texts: Texts,
        out: str | Path,
        options: PrepareOptions,
        *,
        overwrite: bool = False,
        workers: int | None = None,
        progress: ShowProgress = False,
    ) -> None:
        self._planner = Planner(texts, options)
        self._reader = self._planner.reader
        self._out, self._overwrite = path_of(out, "out"), overwrite
        self._work = own_folder(work_folder(self._out))
        self._given = self._planner.given
        hub = any(not isinstance(file, Path) for file in self._reader.files)
        self._workers = workers_for(workers, None if hub else sum(self._reader.sizes))
        self._progress = progress

    def whole(self) -> Corpus:
        """Make the corpus in one go; see `prepare`."""
        check_target(self._out, self._overwrite)
        with self._holding(), ReadingProgress(self._progress, self._reader) as shown:
            plan = PreparationPlan.load(self._work)
            if plan is not None and plan.shards > 1:
                raise UserError(
                    f"{self._out}: is being made in {plan.shards} shards; give --shard or --merge, or remove "
                    f"{self._work}"
                )
            if plan is not None and (other := plan.difference(self._planner.arguments())):
                shown.note(f"starting anew, for an unfinished corpus here was begun with {other}")
                plan = None
            try:
                with full_disk(self._work, self._kept):
                    if plan is None:
                        _empty(self._work)
                        plan = self._planner.plan(self._work, 1, shown)
                    else:
                        shown.note("going on with an unfinished corpus of the same text and options")
                    corpus = encode_whole(
                        plan, self._work, self._out, self._overwrite, self._reader, self._given, self._workers, shown
                    )
            except UserError as error:
                if not isinstance(error, WorkerDied | DiskFull) or PreparationPlan.load(self._work) is None:
                    remove(self._work)
                raise
            except KeyboardInterrupt:
                if PreparationPlan.load(self._work) is None:
                    remove(self._work)
                    raise
                message = f"interrupted; the same command goes on from here, or remove {self._work}"
                raise Interrupted(message, signal.SIGINT) from None
            remove(self._work)
            return corpus

    def _kept(self) -> str:
        """The sentence for the user about what a full disk leaves, made before anything is removed."""
        if PreparationPlan.load(self._work) is None:
            return "nothing was kept, for the text was not read to its end"
        return f"what is encoded is kept: with more space the same command goes on from here, or remove {self._work}"

    def shard(self, shard: int, shards: int, planned: bool = False) -> dict[str, Any]:
        """Make one shard; see `prepare_shard`.

        Args:
            shard: number of the shard, from 1.
            shards: number of all shards.
            planned: whether the plan must be there already, made by another process.
        """
        if not 1 <= shard <= shards:
            raise UserError(f"--shard {shard}/{shards}: there is no such shard; the first is 1/{shards}")
        if self.made() is None:
            plan = self._existing(shards) if planned else self.planned(shards)
            folder = shard_folder(self._work, shard, shards)
            own_folder(folder).mkdir(exist_ok=True)
            with (
                held(folder, f"shard {shard}/{shards} of {self._out}"),
                ReadingProgress(self._progress, self._reader) as shown,
                full_disk(folder, self._kept),
            ):
                journal = encode_shard(plan, self._work, shard, self._reader, self._workers, shown)
            counts = list(journal.splits.values())
        else:  # a shard that is started once more when all is done
            counts = []
        return {
            "shard": f"{shard}/{shards}",
            "documents": sum(split.documents for split in counts),
            "tokens": sum(split.tokens for split in counts),
            "merged": not counts,
        }

    def merge(self) -> Corpus:
        """Merge the shards; see `merge_shards`."""
        made = self.made()
        if made is not None:
            plan = PreparationPlan.load(self._work)
            if plan is not None and not plan.difference(self._planner.arguments()):  # killed before it was removed
                remove(self._work)
            return made
        check_target(self._out, self._overwrite)
        plan = PreparationPlan.load(self._work)
        if plan is None or plan.shards == 1:
            raise UserError(f"{self._out}: there are no shards to merge; make them with --shard 1/N to --shard N/N")
        self._check(plan, plan.shards)
        with held(self._work, self._out), ReadingProgress(self._progress, self._reader) as shown:
            with full_disk(self._work, lambda: "all shards are kept: with more space the same command merges them"):
                corpus = merge(plan, self._work, self._out, self._overwrite, self._given, self._workers, shown)
            remove(self._work)
        return corpus

    @property
    def shards(self) -> int | None:
        """Number of shards of the plan on the disk; None: there is no plan."""
        plan = PreparationPlan.load(self._work)
        return None if plan is None else plan.shards

    @property
    def bytes(self) -> int:
        """Size of the text on the disk; 0 if it is not known."""
        return sum(self._reader.sizes)

    def planned(self, shards: int) -> PreparationPlan:
        """The plan for `shards` shards, made by the process that comes first, while others wait for it.

        Raises:
            UserError: the text cannot be read or planned, or there is a plan for another corpus or number of shards.
        """
        while PreparationPlan.load(self._work) is None:
            check_target(self._out, self._overwrite)
            with (
                ReadingProgress(self._progress, self._reader) as shown,
                self._holding(lambda: shown.note("waiting for the process that reads the text")),
            ):
                # The one that was waited for may have made the plan, or have failed and removed the folder.
                if self._work.is_dir() and PreparationPlan.load(self._work) is None:
                    try:
                        with full_disk(self._work, self._kept):
                            return self._planner.plan(self._work, shards, shown)
                    except BaseException:
                        remove(self._work)
                        raise
        return self._existing(shards)

    def _existing(self, shards: int) -> PreparationPlan:
        plan = PreparationPlan.load(self._work)
        if plan is None:
            raise UserError(f"{self._work}: not seen here; all machines must share the disk of --out")
        self._check(plan, shards)
        return plan

    @contextmanager
    def _holding(self, waiting: Callable[[], None] | None = None) -> Iterator[None]:
        try:
            own_folder(self._work).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"{self._out}: cannot be created ({error.strerror})") from None
        with held(self._work, self._out, waiting):
            yield

    def made(self) -> Corpus | None:
        """The corpus of this text and these options; None: it is not complete yet, or is to be replaced."""
        if self._overwrite or not (self._out / "corpus.json").is_file():
            return None
        corpus = Corpus.open(self._out)
        same = corpus.manifest.options == self._planner.recorded and corpus.manifest.sources == self._planner.sources()
        return corpus if same else None

    def _check(self, plan: PreparationPlan, shards: int) -> None:
        if plan.shards != shards:
            made = "one go" if plan.shards == 1 else f"{plan.shards} shards"
            raise UserError(
                f"{self._out}: is being made in {made}, not in {shards} shards; go on so, or remove {self._work}"
            )
        before, now, unnamed = plan.compared(self._planner.arguments())
        require_same(self._out, before, now, f"give the same, or remove {self._work} to start anew", unnamed)


def _empty(folder: Path) -> None:
    for path in own_folder(folder).iterdir():
        if path.is_dir():
            remove(path)
        else:
            path.unlink()
