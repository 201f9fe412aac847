"""Encoding of a shard of the text, which continues from where a killed process was."""

import json
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from pathlib import Path

from bakeoff.config import Config
from bakeoff.corpus.store import Corpus
from bakeoff.durable import write_atomically
from bakeoff.errors import UserError
from bakeoff.json_files import read_json
from bakeoff.preparation.encoding.pool import encode_jobs
from bakeoff.preparation.encoding.split_writer import SplitState, SplitWriter
from bakeoff.preparation.encoding.text_encoding import Ends, encode_job, jobs_of
from bakeoff.preparation.encoding.writer import CorpusWriter
from bakeoff.preparation.given_splits import encode_given
from bakeoff.preparation.planning.held_out import Assigned, assign
from bakeoff.preparation.planning.plan import PreparationPlan, shard_folder
from bakeoff.preparation.planning.sampling import CutPoint
from bakeoff.preparation.progress import ReadingProgress
from bakeoff.reading.pieces import BEGINNING, TextPiece
from bakeoff.reading.sources import TextReader

_SAVE_EVERY = 2.0  # seconds
_SAVE_SHARE = 0.01  # largest share of the time for saving to the disk


class ShardJournal(Config):
    """Progress of the encoding of a shard."""

    mark: CutPoint
    """The point of the text at which encoding continues."""
    opened: int
    """Number of documents before the point, in this shard."""
    empty: int
    """Number of empty documents before the point, in this shard."""
    splits: dict[str, SplitState]
    """State of the writer of each split that is cut from the text, by name."""
    complete: bool
    """Whether the shard is encoded to its end."""

    def save(self, folder: Path) -> None:
        """Write the journal beside a shard's folder."""
        write_atomically(_journal(folder), json.dumps(self.model_dump(mode="json")))

    @classmethod
    def load(cls, folder: Path) -> "ShardJournal | None":
        """The journal of a shard; None: it has none, or its files hold less than the journal says."""
        try:
            journal = cls.parse(read_json(_journal(folder)), str(folder))
            for name, state in journal.splits.items():
                for kind, size in state.sizes.items():
                    if (folder / f"{name}.{kind}").stat().st_size < size:
                        return None
        except (OSError, UserError):
            return None
        return journal


def _journal(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.json")


def encode_whole(
    plan: PreparationPlan,
    work: Path,
    out: str | Path,
    overwrite: bool,
    reader: TextReader,
    given: Mapping[str, TextReader],
    workers: int,
    shown: ReadingProgress,
) -> Corpus:
    """Encode the only shard of a plan, and the given splits, and put the corpus in its place.

    Raises:
        UserError: unreadable text, or too little of it; or `out` would have to be replaced.
    """
    folder = shard_folder(work, 1, 1)
    journal = ShardJournal.load(folder)
    with CorpusWriter(
        out,
        plan.tokenizer(work),
        overwrite,
        folder=folder,
        states=None if journal is None else journal.splits,
        names=plan.names,
    ) as writer:
        if journal is None or not journal.complete:
            splits = {name: writer.splits[name] for name in plan.cut}
            journal = _encode(plan, work, 1, journal, splits, reader, workers, shown)
            if given:
                journal = _completed(journal, splits, folder)
        return finish(plan, work, writer, [journal], given, workers, shown)


def finish(
    plan: PreparationPlan,
    work: Path,
    writer: CorpusWriter,
    journals: Sequence[ShardJournal],
    given: Mapping[str, TextReader],
    workers: int,
    shown: ReadingProgress,
) -> Corpus:
    """Encode the given splits of a corpus, after its text, and complete it."""
    documents, empty = encode_given(given, writer.splits, plan.tokenizer(work), plan.shuffle, workers, shown)
    recorded = sum(split.documents for split in writer.splits.values())
    opened = sum(journal.opened for journal in journals) + documents
    empty += sum(journal.empty for journal in journals)
    return writer.finish(plan.provenance(recorded, opened, empty, documents))


def _completed(journal: ShardJournal, splits: Mapping[str, SplitWriter], folder: Path) -> ShardJournal:
    """Save the journal of a completely encoded shard."""
    states = {name: split.save() for name, split in splits.items()}
    journal = journal.model_copy(update={"splits": states, "complete": True})
    journal.save(folder)
    return journal


def encode_shard(
    plan: PreparationPlan, work: Path, shard: int, reader: TextReader, workers: int, shown: ReadingProgress
) -> ShardJournal:
    """Encode shard number `shard`, from 1, of several; the caller holds its folder.

    Raises:
        UserError: unreadable text.
    """
    folder = shard_folder(work, shard, plan.shards)
    journal = ShardJournal.load(folder)
    if journal is not None and journal.complete:
        return journal
    vocabulary = plan.tokenizer(work).size
    splits = {
        name: SplitWriter(folder, name, vocabulary, None if journal is None else journal.splits[name])
        for name in plan.cut
    }
    try:
        journal = _encode(plan, work, shard, journal, splits, reader, workers, shown)
        journal = _completed(journal, splits, folder)
    finally:
        for split in splits.values():
            split.close()
    return journal


def _encode(
    plan: PreparationPlan,
    work: Path,
    shard: int,
    journal: ShardJournal | None,
    splits: dict[str, SplitWriter],
    reader: TextReader,
    workers: int,
    shown: ReadingProgress,
) -> ShardJournal:
    """Encode the missing part of a shard; returns the journal of its end, not saved, without `splits`."""
    start = plan.starts[shard - 1]
    stop = plan.starts[shard].place if shard < plan.shards else None
    if journal is None:
        journal = ShardJournal(mark=start, opened=0, empty=0, splits={}, complete=False)
    elif journal.mark != start and plan.shards > 1:
        shown.note("going on where a process was killed")
    mark = journal.mark
    runs = plan.runs
    first = BEGINNING if runs else mark.place
    name = "encoding" if plan.shards == 1 else f"encoding shard {shard} of {plan.shards}:"
    selection = plan.selection(work)
    pieces: Iterator[TextPiece] = shown.phase(name, reader, reader.read(first, stop), 1 / plan.shards)
    if selection is not None:
        pieces = selection.keep(pieces, first.document)
    assigned = assign(pieces, plan.survey, plan.share, plan.options["seed"], plan.lines)
    if runs and mark == start and shard > 1:  # whose pieces were counted before any was cut
        mark, assigned = _from_document(assigned, mark)
    elif runs:  # which runs are held out depends on all that stands before them
        assigned = islice(assigned, mark.pieces, None)
    folder = shard_folder(work, shard, plan.shards)
    ends: Ends = deque()
    clock = _Clock()
    if stop != first:
        jobs = jobs_of(assigned, mark, journal.opened, runs, ends)
        for encoded in encode_jobs(plan.tokenizer(work), jobs, workers, partial(encode_job, shuffle=plan.shuffle)):
            for split, share in zip(splits.values(), encoded, strict=False):  # without a share no second split
                split.append(*share)
            end, opened = ends.popleft()
            if end is not None and clock.due():
                with clock:
                    states = {split_name: split.save() for split_name, split in splits.items()}
                    empty = end.place.empty - start.place.empty
                    ShardJournal(mark=end, opened=opened, empty=empty, splits=states, complete=False).save(folder)
            journal = journal.model_copy(update={"opened": opened})
    empty = reader.skips["empty documents"] - start.place.empty if stop != first else journal.empty
    return journal.model_copy(update={"empty": empty})


def _from_document(assigned: Assigned, mark: CutPoint) -> tuple[CutPoint, Assigned]:
    """The cut point with the true number of pieces before it, and the pieces from there on."""
    for number, (split, piece) in enumerate(assigned):
        if piece.place is not None and piece.place.document >= mark.place.document:
            return mark._replace(pieces=number), chain([(split, piece)], assigned)
    return mark, iter(())


class _Clock:
    """Clock for saves, which take only a small share of the time."""

    def __init__(self) -> None:
        self._next = time.monotonic() + _SAVE_EVERY

    def due(self) -> bool:
        return time.monotonic() >= self._next

    def __enter__(self) -> None:
        self._started = time.monotonic()

    def __exit__(self, *_: object) -> None:
        now = time.monotonic()
        self._next = now + max(_SAVE_EVERY, (now - self._started) / _SAVE_SHARE)
