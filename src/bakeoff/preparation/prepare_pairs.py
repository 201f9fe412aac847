"""Pairs of texts to corpus, for translation: a first reading trains the tokenizer, a second one encodes."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal

import numpy as np

from bakeoff.corpus.manifest import SourceFile
from bakeoff.corpus.store import SPLITS, TEST, Corpus
from bakeoff.durable import own_folder
from bakeoff.errors import UserError
from bakeoff.preparation.encoding.pair_encoding import LengthFilter, encode_pairs
from bakeoff.preparation.encoding.split_writer import SplitWriter
from bakeoff.preparation.encoding.worker import encode_jobs, workers_for
from bakeoff.preparation.encoding.writer import CorpusWriter, check_target, versions, work_folder
from bakeoff.preparation.given_parts import require_apart
from bakeoff.preparation.planning.held_out import TRAIN, VALIDATION
from bakeoff.preparation.planning.sampling import Sample
from bakeoff.preparation.planning.tokenizer_sample import sample_for, train_tokenizer
from bakeoff.preparation.progress import ReadingProgress, ShowProgress
from bakeoff.reading.aligned import Pair, PairOptions, PairReader
from bakeoff.tokenizer.tokenizer import Tokenizer, TwoVocabularies
from bakeoff.tokenizer.tokenizer_config import TokenizerConfig
from bakeoff.tokenizer.word_counts import WordCounts

_JOB = 1 << 18  # characters
_HASHES = 1 << 64

Paths = str | Path | Sequence[str | Path]


def prepare_pairs(
    source: Paths,
    target: Paths,
    out: str | Path,
    *,
    source_field: str = "source",
    target_field: str = "target",
    tokenizer: TokenizerConfig | str | Path | None = None,
    separate_vocabularies: bool = False,
    tokenizer_sample: int = 50_000_000,
    longest_pair: int = 250,
    ratio: float | None = None,
    validation: float = 0.01,
    validation_source: Paths = (),
    validation_target: Paths = (),
    test_source: Paths = (),
    test_target: Paths = (),
    errors: Literal["strict", "replace"] = "strict",
    seed: int = 0,
    overwrite: bool = False,
    workers: int | None = None,
    progress: ShowProgress = False,
) -> Corpus:
    """Make a corpus of texts and their translations.

    The same text and options give the same corpus, byte for byte, whatever the number of workers.

    Args:
        source: one file or several; a line of it, or a record of a .jsonl, .csv, .tsv, .parquet or .arrow, is a text.
        target: as many files, whose lines or records are the translations of those with their numbers.
        out: folder of the corpus; it appears only when it is complete.
        source_field: field or column of records that holds the source.
        target_field: the one that holds the target.
        tokenizer: what to train (default: a `TokenizerConfig` as it is), or the path of a `tokenizer.json`.
        separate_vocabularies: train a tokenizer for each side; else one for both.
        tokenizer_sample: UTF-8 bytes of text to train a tokenizer on at most.
        longest_pair: leave out pairs with more tokens on one side.
        ratio: leave out pairs one side of which has more than so many times the tokens of the other; None: none.
        validation: share of the pairs to hold out; pairs with the same source stay together.
        validation_source: in place of that share, files of sources that are held out whole and in their order, whatever
            the lengths of their pairs.
        validation_target: their translations.
        test_source: such files for a third part, which `evaluate` can be asked for.
        test_target: their translations.
        errors: "strict" refuses invalid UTF-8, "replace" reads it as U+FFFD.
        seed: chooses the tokenizer's sample and the held-out pairs.
        overwrite: replace a corpus at `out`.
        workers: processes that encode; default one a core, at most four, and none for small files.
        progress: True shows it on standard error; or is called with phase, bytes read and bytes in total.

    Raises:
        UserError: bad options, unreadable text (with file and line), files of different lengths, or too few pairs to
            hold some out.
    """
    if not 0 < validation < 1:
        raise UserError(f"validation: {validation} is not a share between 0 and 1, such as 0.01")
    if tokenizer_sample < 1:
        raise UserError(f"tokenizer_sample: {tokenizer_sample} is not a number of bytes above 0")
    fields = {"source_field": source_field, "target_field": target_field, "errors": errors}
    options = PairOptions.parse(fields, "prepare")
    limits = LengthFilter.parse({"longest_pair": longest_pair, "ratio": ratio}, "prepare")
    check_target(Path(out), overwrite)
    own_folder(work_folder(out))
    given = None if tokenizer is None or isinstance(tokenizer, TokenizerConfig) else Tokenizer.load(tokenizer)
    if given is not None and separate_vocabularies:
        raise UserError(f"{tokenizer}: taken as it is; leave out separate_vocabularies")
    config = tokenizer if isinstance(tokenizer, TokenizerConfig) else TokenizerConfig()
    reader = PairReader(_files(source), _files(target), options)
    official = {"validation": (validation_source, validation_target), "test": (test_source, test_target)}
    files = {name: (_files(sources), _files(targets)) for name, (sources, targets) in official.items()}
    held_out = {name: PairReader(*both, options) for name, both in files.items() if any(both)}
    require_apart({"pairs": reader.files, **{f"--{name}-source": part.files for name, part in held_out.items()}})
    share = None if "validation" in held_out else validation
    sides = 0 if given is not None else 2 if separate_vocabularies else 1
    if sides and config.end_of_line:
        raise UserError("end_of_line: the texts of pairs are no lines of one text; leave it out")
    samples = [sample_for(config, tokenizer_sample, seed) for _ in range(sides)]

    with ReadingProgress(progress, reader) as shown:
        smallest = _survey(shown.phase("reading", reader), seed, samples)
        if smallest == _HASHES:
            raise UserError(f"{reader.files[0]}: there is no pair here, nor in any other file that was given")
        for part in held_out.values():
            if not any(pair.source and pair.target for pair in part):
                raise UserError(f"{part.files[0]}: there is no pair here to hold out")
        records: list[dict[str, Any]] = []
        trained: list[Tokenizer] = []
        for sample in samples:
            own, record = train_tokenizer(sample, config, seed, tokenizer_sample, shown)
            trained.append(own)
            records.append(record)
        used = given or (TwoVocabularies(*trained) if separate_vocabularies else trained[0])
        names = (*SPLITS, TEST) if TEST in held_out else SPLITS
        with CorpusWriter(out, used, overwrite, pairs=True, names=names) as writer:
            # At least one of the pairs is held out, however few that would be by chance.
            threshold = 0 if share is None else max(int(share * _HASHES), smallest + 1)
            processes = workers_for(workers, sum(reader.sizes))
            jobs = _jobs(shown.phase("encoding", reader), seed, threshold)
            skips = _encode(used, jobs, [writer.splits[name] for name in SPLITS], limits, processes)
            for name, part in held_out.items():
                jobs = _jobs(shown.phase(f"encoding {name}", part), seed, threshold=0)
                skips += _encode(used, jobs, [writer.splits[name]], None, processes)
            return writer.finish(
                {
                    "sources": [
                        SourceFile(path=str(file), bytes=size, split=name)
                        for name, part in ((None, reader), *held_out.items())
                        for file, size in zip(part.files, part.sizes, strict=True)
                    ],
                    "options": {
                        **options.model_dump(),
                        **limits.model_dump(),
                        "separate_vocabularies": isinstance(used, TwoVocabularies),
                        "validation": share,
                        **{name: list(map(str, part.files)) for name, part in held_out.items()},
                        "seed": seed,
                        "tokenizer": str(tokenizer) if given is not None else config.model_dump(),
                    },
                    "sentence_rule": "none: a pair is a source and a target",
                    "tokenizer_sample": dict(zip(("source", "target"), records, strict=True))
                    if separate_vocabularies
                    else dict(*records),
                    "originals": sum(split.documents for split in writer.splits.values()),
                    "validation_unit": "pairs",
                    "skips": dict(sorted(skips.items())),
                    "versions": versions(),
                }
            )


def _encode(
    tokenizer: Tokenizer,
    jobs: Iterator[list[tuple[int, Pair]]],
    splits: list[SplitWriter],
    limits: LengthFilter | None,
    processes: int,
) -> Counter[str]:
    """Write pairs to the parts of the corpus that they belong to; returns how many were left out, by reason."""
    skips: Counter[str] = Counter()
    for parts in encode_jobs(tokenizer, jobs, processes, partial(encode_pairs, limits=limits)):
        for split, part in zip(splits, parts, strict=False):
            opens = np.arange(0, len(part.lengths), 2)
            split.append(
                part.ids, part.starts, part.lengths, opens, part.size, part.words, target_size=part.target_size
            )
            skips += part.skips
    return skips


def _files(given: Paths) -> list[Path]:
    return [Path(each).expanduser() for each in ([given] if isinstance(given, str | Path) else given)]


def _survey(pairs: Iterable[Pair], seed: int, samples: list[Sample | WordCounts]) -> int:
    """Read the pairs for the first time: fills one sample with both sides, or two with one each.

    Returns:
        The smallest hash of a pair, or `_HASHES` where there is no pair.
    """
    smallest = _HASHES
    for pair in pairs:
        if pair.source and pair.target:
            smallest = min(smallest, _identity(pair, seed))
        for text, sample in zip(pair, samples * (3 - len(samples)), strict=False):
            if text:
                sample.add(text)
    return smallest


def _identity(pair: Pair, seed: int) -> int:
    """Keyed hash of the source: a text that was learned with one translation is no test of another one."""
    key = (seed % _HASHES).to_bytes(8, "little")
    return int.from_bytes(blake2b(pair.source.encode(), digest_size=8, key=key).digest(), "little")


def _jobs(pairs: Iterable[Pair], seed: int, threshold: int) -> Iterator[list[tuple[int, Pair]]]:
    """Group pairs into jobs, each with the part of the corpus that it belongs to."""
    job: list[tuple[int, Pair]] = []
    length = 0
    for pair in pairs:
        job.append((VALIDATION if _identity(pair, seed) < threshold else TRAIN, pair))
        length += len(pair.source) + len(pair.target)
        if length >= _JOB:
            yield job
            job, length = [], 0
    if job:
        yield job
