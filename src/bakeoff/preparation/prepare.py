"""Text to corpus: in one go, in parts that any number of machines make, and the merging of parts."""

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


def prepare_part(
    texts: Texts,
    out: str | Path,
    part: int,
    parts: int,
    *,
    overwrite: bool = False,
    workers: int | None = None,
    progress: ShowProgress = False,
    **options: Any,
) -> dict[str, Any]:
    """Make one of the parts that `merge_parts` puts together; any process of any machine that shares the disk may.

    The process that comes first reads the text and trains the tokenizer, others wait for it meanwhile. A part that is
    complete is not made again, and one that was killed goes on where it was.

    Args:
        texts: as for `prepare`, the same for all parts.
        out: folder of the corpus; parts grow in a hidden folder beside it.
        part: number of the part, from 1.
        parts: how many there are.
        overwrite: as for `prepare`, like the others; options are the same for all parts.
        workers: processes that encode.
        progress: how it is shown.
        options: fields of `PrepareOptions`.

    Returns:
        Number and size of the part, to be printed.

    Raises:
        UserError: what `prepare` raises; other options or another text than that of the other parts; fewer than 200
            documents; another process makes the same part.
    """
    return _preparation(texts, out, options, overwrite, workers, progress).part(part, parts)


def merge_parts(
    texts: Texts,
    out: str | Path,
    *,
    overwrite: bool = False,
    workers: int | None = None,
    progress: ShowProgress = False,
    **options: Any,
) -> Corpus:
    """Put the parts of `prepare_part` together; the corpus is the one that `prepare` makes in one go, byte for byte.

    Args:
        texts: as for the parts.
        out: as for the parts.
        overwrite: as for `prepare`, like the others.
        workers: processes that encode the files that are held out.
        progress: how it is shown.
        options: as for the parts.

    Raises:
        UserError: a part is missing; other options or another text than that of the parts.
    """
    return _preparation(texts, out, options, overwrite, workers, progress).merge()


def _preparation(
    texts: Texts, out: str | Path, options: dict[str, Any], overwrite: bool, workers: int | None, progress: ShowProgress
) -> Preparation:
    checked = PrepareOptions.parse(options, "prepare")
    return Preparation(texts, out, checked, overwrite=overwrite, workers=workers, progress=progress)
