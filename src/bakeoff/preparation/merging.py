"""Merging of a corpus's shards."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from bakeoff.corpus.store import Corpus
from bakeoff.errors import UserError
from bakeoff.preparation.encoding.split_writer import SplitState, SplitWriter, id_type
from bakeoff.preparation.encoding.writer import CorpusWriter
from bakeoff.preparation.planning.plan import PreparationPlan, shard_folder
from bakeoff.preparation.progress import ReadingProgress
from bakeoff.preparation.shards import ShardJournal, finish
from bakeoff.reading.sources import TextReader
from bakeoff.tokenizer.hidden import HiddenText

_SENTENCES = 1 << 14  # that a merge holds at once
_SHOWN = 8  # missing shards that an error names


def merge(
    plan: PreparationPlan,
    work: Path,
    out: str | Path,
    overwrite: bool,
    given: Mapping[str, TextReader],
    workers: int,
    shown: ReadingProgress,
) -> Corpus:
    """Merge the shards of a plan into the corpus that `prepare` makes in one go; the caller holds `work`.

    Given splits of the corpus are encoded here.

    Raises:
        UserError: a shard is missing, there is too little text, or `out` would have to be replaced.
    """
    folders = [shard_folder(work, shard, plan.shards) for shard in range(1, plan.shards + 1)]
    journals = [ShardJournal.load(folder) for folder in folders]
    missing = [shard for shard, journal in enumerate(journals, 1) if journal is None or not journal.complete]
    if missing:
        names = ", ".join(f"{shard}/{plan.shards}" for shard in missing[:_SHOWN])
        more = f" and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else ""
        raise UserError(f"{out}: --shard {names}{more} not made yet; run what is missing, then --merge again")
    whole = [journal for journal in journals if journal is not None]
    tokenizer = plan.tokenizer(work)
    with CorpusWriter(out, tokenizer, overwrite, folder=work / "merged", names=plan.names) as writer:
        for folder, journal in zip(folders, whole, strict=True):
            for name, state in journal.splits.items():
                _append(writer.splits[name], folder, name, state, id_type(tokenizer.size))
        return finish(plan, work, writer, whole, given, workers, shown)


def _append(split: SplitWriter, folder: Path, name: str, state: SplitState, dtype: str) -> None:
    """Append a shard's part of a split, which starts with a document."""
    itemsize = np.dtype(dtype).itemsize
    documents = _mapped(folder / f"{name}.documents", state.documents)
    originals = _mapped(folder / f"{name}.originals", state.documents)
    with (
        (folder / f"{name}.tokens").open("rb") as tokens,
        (folder / f"{name}.sentences").open("rb") as sentences,
        (folder / f"{name}.words").open("rb") as words,
    ):
        size, spoken, hidden = state.bytes, state.words, state.hidden
        for first in range(0, state.sentences, _SENTENCES):
            sentences.seek(8 * first)
            offsets = np.fromfile(sentences, np.int64, min(_SENTENCES + 1, state.sentences - first))
            if first + _SENTENCES >= state.sentences:
                offsets = np.append(offsets, state.tokens)
            low, high = int(offsets[0]), int(offsets[-1])
            tokens.seek(itemsize * low)
            words.seek(low // 8)
            packed = np.fromfile(words, np.uint8, (high + 7) // 8 - low // 8)
            if high > state.tokens - len(state.bits):
                packed = np.append(packed[: state.tokens // 8 - low // 8], np.packbits(state.bits, bitorder="little"))
            starts = np.unpackbits(packed, bitorder="little")[low % 8 : low % 8 + high - low].astype(bool)
            opens, closes = np.searchsorted(documents, [low, high])
            owners = originals[max(opens - 1, 0) : closes]
            stretches = np.diff(owners, prepend=owners[:1] - 1)[int(opens > 0) :] == 0
            split.append(
                np.fromfile(tokens, dtype, high - low),
                starts,
                np.diff(offsets),
                np.searchsorted(offsets, documents[opens:closes]),
                size,
                spoken,
                stretches,
                hidden,
            )
            size, spoken, hidden = 0, 0, HiddenText()
        nothing = np.zeros(0, dtype=np.int64)
        opens = nothing + 0 if not state.opens_next else np.zeros(1, dtype=np.int64)
        split.append(nothing, nothing.astype(bool), nothing, opens, size, spoken, None, hidden)


def _mapped(file: Path, length: int) -> np.ndarray:
    return np.memmap(file, np.int64, "r", shape=(length,)) if length else np.zeros(0, dtype=np.int64)
