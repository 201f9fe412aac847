"""Text to corpus: in one go, in shards that any number of machines make, and the merging of shards."""

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
    """Make a corpus of text files.

    The same text and options give the same corpus, byte for byte, whatever the number of workers. After a kill the same
    call goes on where the killed one was; with other options, or a file that has changed, it starts anew.

    Args:
        texts: .txt, .jsonl, .csv and .tsv files, each plain, .gz or .zst; .parquet and .arrow; folders and globs.
        out: folder of the corpus; it appears only when it is complete.
        overwrite: replace a corpus at `out`.
        workers: processes that encode; default one a core, at most four, and none for a small text.
        progress: True shows it on standard error; or is called with phase, bytes read and bytes in total.
        options: fields of `PrepareOptions`: tokenizer, tokenizer_sample, validation, test, document_per_line,
            document_separator, field, deduplicate, minimum_characters, shuffle_ngrams, errors, seed.

    Raises:
        UserError: bad options, unreadable text (with file and line), a text too small to hold some out.
        Interrupted: Ctrl-C came after the first reading of the text, of which nothing is lost.
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
    """Make one of the shards that `merge_shards` puts together; any process of any machine that shares the disk may.

    The process that comes first reads the text and trains the tokenizer, others wait for it meanwhile. A shard that is
    complete is not made again, and one that was killed goes on where it was.

    Args:
        texts: as for `prepare`, the same for all shards.
        out: folder of the corpus; shards grow in a hidden folder beside it.
        shard: number of the shard, from 1.
        shards: how many there are.
        overwrite: as for `prepare`, like the others; options are the same for all shards.
        workers: processes that encode.
        progress: how it is shown.
        options: fields of `PrepareOptions`.

    Returns:
        Number and size of the shard, to be printed.

    Raises:
        UserError: what `prepare` raises; other options or another text than that of the other shards; fewer than 200
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
    """Put the shards of `prepare_shard` together; the corpus is the one that `prepare` makes in one go, byte for byte.

    Args:
        texts: as for the shards.
        out: as for the shards.
        overwrite: as for `prepare`, like the others.
        workers: processes that encode the files that are held out.
        progress: how it is shown.
        options: as for the shards.

    Raises:
        UserError: a shard is missing; other options or another text than that of the shards.
    """
    return _preparation(texts, out, options, overwrite, workers, progress).merge()


def _preparation(
    texts: Texts, out: str | Path, options: dict[str, Any], overwrite: bool, workers: int | None, progress: ShowProgress
) -> Preparation:
    checked = PrepareOptions.parse(options, "prepare")
    return Preparation(texts, out, checked, overwrite=overwrite, workers=workers, progress=progress)
