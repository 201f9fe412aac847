"""Text to corpus: in one go, in parts that any number of machines make, and the merging of parts."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from bakeoff.corpus.store import Corpus
from bakeoff.preparation.making import Preparation
from bakeoff.preparation.planning import Texts
from bakeoff.tokenizer.tokenizer import TokenizerConfig


def prepare(
    texts: Texts,
    out: str | Path,
    *,
    tokenizer: TokenizerConfig | str | Path | None = None,
    tokenizer_sample: int = 50_000_000,
    validation: float | Texts = 0.01,
    test: Texts | None = None,
    document_per_line: bool = False,
    document_separator: str | None = None,
    field: str = "text",
    deduplicate: bool = False,
    minimum_characters: int = 0,
    shuffle_ngrams: int | None = None,
    errors: Literal["strict", "replace"] = "strict",
    seed: int = 0,
    overwrite: bool = False,
    workers: int | None = None,
    progress: bool | Callable[[str, int, int], None] = False,
) -> Corpus:
    """Make a corpus of text files.

    The same text and options give the same corpus, byte for byte, whatever the number of workers. After a kill the same
    call goes on where the killed one was; with other arguments, or a file that has changed, it starts anew.

    Args:
        texts: .txt, .jsonl, .csv and .tsv files, each plain, .gz or .zst; .parquet and .arrow; folders and globs.
        out: folder of the corpus; it appears only when it is complete.
        tokenizer: what to train (default: a `TokenizerConfig` as it is), or the path of a `tokenizer.json`.
        tokenizer_sample: UTF-8 bytes of text to train the tokenizer on at most.
        validation: share of the text to hold out: whole documents, or runs within them where they cannot give it; or
            files like those of `texts`, which are held out whole, in their order, and `texts` are all trained on.
        test: such files for a third part, which `evaluate` can be asked for.
        document_per_line: in .txt files each line is a document.
        document_separator: in .txt files a regular expression; each match within a line ends a document.
        field: field of .jsonl, or column of .csv, .tsv, .parquet and .arrow, that holds the text.
        deduplicate: keep documents whose text is the same once.
        minimum_characters: leave out documents with fewer characters of normalised text.
        shuffle_ngrams: shuffle the n-grams of so many words within each sentence, 1 all words; see `word_order`.
        errors: "strict" refuses invalid UTF-8, "replace" reads it as U+FFFD.
        seed: chooses the tokenizer's sample and the held-out text, and shuffles.
        overwrite: replace a corpus at `out`.
        workers: processes that encode; default one a core, at most four, and none for a small text.
        progress: True shows it on standard error; or is called with phase, bytes read and bytes in total.

    Raises:
        UserError: bad options, unreadable text (with file and line), a text too small to hold some out.
        Interrupted: Ctrl-C came after the first reading of the text, of which nothing is lost.
    """
    return Preparation(
        texts,
        out,
        tokenizer=tokenizer,
        tokenizer_sample=tokenizer_sample,
        validation=validation,
        test=test,
        document_per_line=document_per_line,
        document_separator=document_separator,
        field=field,
        deduplicate=deduplicate,
        minimum_characters=minimum_characters,
        shuffle_ngrams=shuffle_ngrams,
        errors=errors,
        seed=seed,
        overwrite=overwrite,
        workers=workers,
        progress=progress,
    ).whole()


def prepare_part(texts: Texts, out: str | Path, part: int, parts: int, **options: Any) -> dict[str, Any]:
    """Make one of the parts that `merge_parts` puts together; any process of any machine that shares the disk may.

    The process that comes first reads the text and trains the tokenizer, others wait for it meanwhile. A part that is
    complete is not made again, and one that was killed goes on where it was.

    Args:
        texts: as for `prepare`, the same for all parts.
        out: folder of the corpus; parts grow in a hidden folder beside it.
        part: number of the part, from 1.
        parts: how many there are.
        options: those of `prepare`, the same for all parts.

    Returns:
        Number and size of the part, to be printed.

    Raises:
        UserError: what `prepare` raises; other arguments or another text than that of the other parts; fewer than 200
            documents; another process makes the same part.
    """
    return Preparation(texts, out, **options).part(part, parts)


def merge_parts(texts: Texts, out: str | Path, **options: Any) -> Corpus:
    """Put the parts of `prepare_part` together; the corpus is the one that `prepare` makes in one go, byte for byte.

    Args:
        texts: as for the parts.
        out: as for the parts.
        options: as for the parts.

    Raises:
        UserError: a part is missing; other arguments or another text than that of the parts.
    """
    return Preparation(texts, out, **options).merge()
