"""Making a corpus from text: in one go, or in shards on any number of machines, which are then merged."""

from pathlib import Path
from typing import Any

from bakeoff.corpus.store import Corpus
from bakeoff.preparation.making import Preparation
from bakeoff.preparation.options import PrepareOptions, Texts
from bakeoff.preparation.progress import ShowProgress


def prepare(
    texts: Texts,
    out: str | Path,
    *,
    overwrite: bool = False,
    workers: int | None = None,
    progress: ShowProgress = False,
    **options: Any,
) -> Corpus:
    """Make a corpus from text files.

    The same text and options give the same corpus, byte for byte, whatever the number of workers. After a kill the same
    call continues from where the killed call was; with other options, or a changed file, it starts anew.

    Args:
        texts: .txt, .jsonl, .csv and .tsv files, each plain, .gz or .zst; .parquet and .arrow; folders and globs.
        out: folder of the corpus; it appears only when it is complete.
        overwrite: replace a corpus at `out`.
        workers: number of processes that encode; None: one a core, at most four, and none for a small text.
        progress: True: show the progress on standard error; a function: call it with phase, bytes read and all bytes.
        options: fields of `PrepareOptions`: tokenizer, tokenizer_sample, validation, test, document_per_line,
            document_separator, field, deduplicate, minimum_characters, shuffle_ngrams, errors, seed.

    Raises:
        UserError: bad options, unreadable text (with file and line), or too little text to hold some out.
        Interrupted: Ctrl-C came after the first readings of the text, whose results are kept.
    """
    return _preparation(texts, out, options, overwrite, workers, progress).whole()


def prepare_shard(
    texts: Texts,
    out: str | Path,
    shard: int,
    shards: int,
    *,
    overwrite: bool = False,
    workers: int | None = None,
    progress: ShowProgress = False,
    **options: Any,
) -> dict[str, Any]:
    """Make one shard of a corpus for `merge_shards`, in any process on any machine that shares the disk.

    The process that comes first reads the text and trains the tokenizer, while the others wait for it. A complete shard
    is not made again, and a killed one continues from where it was.

    Args:
        texts: as for `prepare`, the same for all shards.
        out: folder of the corpus; shards grow in a hidden folder beside it.
        shard: number of the shard, from 1.
        shards: number of all shards.
        overwrite: as for `prepare`.
        workers: as for `prepare`.
        progress: as for `prepare`.
        options: as for `prepare`, the same for all shards.

    Returns:
        Number and size of the shard, to be printed.

    Raises:
        UserError: as of `prepare`; options or text differ from those of the other shards; the text has fewer than 200
            documents; another process makes the same shard.
    """
    return _preparation(texts, out, options, overwrite, workers, progress).shard(shard, shards)


def merge_shards(
    texts: Texts,
    out: str | Path,
    *,
    overwrite: bool = False,
    workers: int | None = None,
    progress: ShowProgress = False,
    **options: Any,
) -> Corpus:
    """Merge the shards of `prepare_shard` into the corpus that `prepare` makes in one go, byte for byte.

    Args:
        texts: as for the shards.
        out: as for the shards.
        overwrite: as for `prepare`.
        workers: number of processes that encode the files of given splits.
        progress: as for `prepare`.
        options: as for the shards.

    Raises:
        UserError: a shard is missing; options or text differ from those of the shards.
    """
    return _preparation(texts, out, options, overwrite, workers, progress).merge()


def _preparation(
    texts: Texts, out: str | Path, options: dict[str, Any], overwrite: bool, workers: int | None, progress: ShowProgress
) -> Preparation:
    checked = PrepareOptions.parse(options, "prepare")
    return Preparation(texts, out, checked, overwrite=overwrite, workers=workers, progress=progress)
