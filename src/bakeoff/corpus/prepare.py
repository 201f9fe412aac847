"""Text to corpus: a first reading trains the tokenizer, a second one encodes; one before them selects documents."""

import os
import platform
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import numpy as np
import tokenizers

from bakeoff.corpus.files import find_files
from bakeoff.corpus.progress import Progress
from bakeoff.corpus.sampling import FEWEST_DOCUMENTS, Sample, Survey, assign, survey
from bakeoff.corpus.selection import SelectionOptions, select
from bakeoff.corpus.sentences import RULE
from bakeoff.corpus.sources import DOCUMENT, STRETCH, Piece, SourceOptions, TextReader
from bakeoff.corpus.store import SPLITS, Corpus, Source
from bakeoff.corpus.tokenizer import Tokenizer, TokenizerConfig
from bakeoff.corpus.tokenizer_sample import fit
from bakeoff.corpus.word_order import NgramShuffle
from bakeoff.corpus.worker import Job, encode_job, encode_jobs
from bakeoff.corpus.writer import CorpusWriter, check_target
from bakeoff.errors import UserError
from bakeoff.memory import return_memory

_JOB = 1 << 18  # characters
_MOST_WORKERS = 4  # the reader feeds no more, and each takes about 90 MB
_SMALL = 1 << 22  # bytes on disk below which starting workers takes longer than they save


def prepare(
    texts: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    tokenizer: TokenizerConfig | str | Path | None = None,
    tokenizer_sample: int = 50_000_000,
    validation: float = 0.01,
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

    The same text and options give the same corpus, byte for byte, whatever the number of workers.

    Args:
        texts: .txt, .jsonl, .csv and .tsv files, each plain, .gz or .zst; .parquet and .arrow; folders and globs.
        out: folder of the corpus; it appears only when it is complete.
        tokenizer: what to train (default: a `TokenizerConfig` as it is), or the path of a `tokenizer.json`.
        tokenizer_sample: UTF-8 bytes of text to train the tokenizer on at most.
        validation: share of the text to hold out: whole documents, or runs of paragraphs below 200 documents.
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
    """
    if not 0 < validation < 1:
        raise UserError(f"validation: {validation} is not a share between 0 and 1, such as 0.01")
    if tokenizer_sample < 1:
        raise UserError(f"tokenizer_sample: {tokenizer_sample} is not a number of bytes above 0")
    if shuffle_ngrams is not None and shuffle_ngrams < 1:
        raise UserError(f"shuffle_ngrams: {shuffle_ngrams} is not a number of words above 0")
    options = SourceOptions.parse(
        {
            "document_per_line": document_per_line,
            "document_separator": document_separator,
            "field": field,
            "errors": errors,
        },
        "prepare",
    )
    selected = SelectionOptions.parse({"deduplicate": deduplicate, "minimum_characters": minimum_characters}, "prepare")
    check_target(Path(out), overwrite)
    given = None if tokenizer is None or isinstance(tokenizer, TokenizerConfig) else Tokenizer.load(tokenizer)
    config = tokenizer if isinstance(tokenizer, TokenizerConfig) else TokenizerConfig()
    skips: Counter[str] = Counter()
    reader = TextReader(find_files(texts, skips), options)
    sample = Sample(tokenizer_sample, seed) if given is None else None

    with Progress(progress, reader) as shown:
        selection = select(shown.phase("selecting", reader), selected) if selected != SelectionOptions() else None

        def text(phase: str) -> Iterator[Piece]:
            pieces = shown.phase(phase, reader)
            return pieces if selection is None else selection.keep(pieces)

        found = survey(text("reading"), seed, sample)
        if found.documents == 0:
            if selection is not None and selection.left_out.any():
                raise UserError(
                    f"{reader.files[0]}: no document has {minimum_characters:,} characters, nor in any other file that "
                    "was given; lower --minimum-characters"
                )
            raise UserError(f"{reader.files[0]}: there is no text here, nor in any other file that was given")
        record: dict[str, Any] = {}
        if sample is not None:
            shown.note(f"training a {config.kind} tokenizer on {sample.bytes / 1e6:.1f} MB of text")
            record = fit(sample, config, seed, tokenizer_sample)
            given = Tokenizer.train(config, sample)
            sample.clear()
            return_memory()
        assert given is not None
        with CorpusWriter(out, given, overwrite) as writer:
            opened = [0, 0]
            assigned = assign(text("encoding"), found, validation, seed)
            shuffle = None if shuffle_ngrams is None else NgramShuffle(shuffle_ngrams, seed)
            encode = partial(encode_job, shuffle=shuffle)
            jobs = _jobs(assigned, opened)
            for parts in encode_jobs(given, jobs, workers_for(workers, reader.sizes), encode):
                for name, part in zip(SPLITS, parts, strict=True):
                    writer.splits[name].append(*part)
            recorded = sum(split.documents for split in writer.splits.values())
            skips.update(reader.skips)
            skips.update({} if selection is None else selection.skips)
            if sum(opened) > recorded:
                skips["documents without tokens"] += sum(opened) - recorded
            return writer.finish(
                {
                    "sources": [
                        Source(path=str(file), bytes=size)
                        for file, size in zip(reader.files, reader.sizes, strict=True)
                    ],
                    "options": {
                        **options.model_dump(),
                        **selected.model_dump(),
                        "shuffle_ngrams": shuffle_ngrams,
                        "validation": validation,
                        "seed": seed,
                        "tokenizer": str(tokenizer) if sample is None else config.model_dump(),
                    },
                    "sentence_rule": RULE,
                    "tokenizer_sample": record,
                    "originals": found.documents if found.documents < FEWEST_DOCUMENTS else recorded,
                    "validation_unit": _unit(found),
                    "skips": dict(sorted(skips.items())),
                    "versions": versions(),
                }
            )


def _jobs(assigned: Iterator[tuple[int, Piece]], opened: list[int]) -> Iterator[Job]:
    """Group pieces into jobs; counts in `opened` the documents of each part."""
    job = Job(0, [])
    length = 0
    for part, piece in assigned:
        opened[part] += piece.opens in (DOCUMENT, STRETCH)
        job.pieces.append((part, piece))
        length += len(piece.text)
        if length >= _JOB:
            yield job
            job, length = Job(job.first + len(job.pieces), []), 0
    if job.pieces:
        yield job


def workers_for(asked: int | None, sizes: Sequence[int]) -> int:
    """How many processes encode files of these sizes in bytes, where nobody has asked for a number."""
    if asked is not None:
        return asked
    if sum(sizes) < _SMALL:
        return 0
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, _MOST_WORKERS)


def _unit(found: Survey) -> str:
    return "documents" if found.documents >= FEWEST_DOCUMENTS else "runs of paragraphs"


def versions() -> dict[str, str]:
    """What a corpus is made with, for its manifest."""
    return {
        "bakeoff": version("bakeoff"),
        "tokenizers": tokenizers.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }
