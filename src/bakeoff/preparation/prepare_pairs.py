"""Making a corpus from pairs of texts, for translation: a first reading trains the tokenizer, a second one encodes."""

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from bakeoff.corpus.manifest import SourceFile
from bakeoff.corpus.store import SPLITS, TEST, Corpus
from bakeoff.durable import own_folder
from bakeoff.errors import UserError
from bakeoff.preparation.encoding.pair_encoding import LengthFilter, encode_pairs
from bakeoff.preparation.encoding.pool import encode_jobs, workers_for
from bakeoff.preparation.encoding.split_writer import SplitWriter
from bakeoff.preparation.encoding.writer import CorpusWriter, check_target, versions, work_folder
from bakeoff.preparation.given_splits import require_apart
from bakeoff.preparation.options import PreparePairsOptions, Texts, paths_of
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


def prepare_pairs(
    source: Texts,
    target: Texts,
    out: str | Path,
    *,
    overwrite: bool = False,
    workers: int | None = None,
    progress: ShowProgress = False,
    **options: Any,
) -> Corpus:
    """Make a corpus from texts and their translations.

    The same text and options give the same corpus, byte for byte, whatever the number of workers.

    Args:
        source: one file or several; each line, or record of a .jsonl, .csv, .tsv, .parquet or .arrow, is a text.
        target: as many files; each line or record is the translation of the source's with the same number.
        out: folder of the corpus; it appears only when it is complete.
        overwrite: replace a corpus at `out`.
        workers: number of processes that encode; None: one a core, at most four, and none for small files.
        progress: True: show the progress on standard error; a function: call it with phase, bytes read and all bytes.
        options: fields of `PreparePairsOptions`: source_field, target_field, tokenizer, separate_vocabularies,
            tokenizer_sample, longest_pair, ratio, validation, validation_source, validation_target, test_source,
            test_target, errors, seed.

    Raises:
        UserError: bad options, unreadable text (with file and line), files of different lengths, or too few pairs to
            hold some out.
    """
    asked = PreparePairsOptions.parse(options, "prepare")
    config, seed = asked.tokenizer, asked.seed
    reading = PairOptions(**asked.fields_of(PairOptions))
    limits = LengthFilter(**asked.fields_of(LengthFilter))
    check_target(Path(out), overwrite)
    own_folder(work_folder(out))
    tokenizer = None if isinstance(config, TokenizerConfig) else Tokenizer.load(config)
    if tokenizer is not None and asked.separate_vocabularies:
        raise UserError(f"{config}: taken as it is; leave out separate_vocabularies")
    reader = PairReader(paths_of(source), paths_of(target), reading)
    files = {
        "validation": (asked.validation_source, asked.validation_target),
        "test": (asked.test_source, asked.test_target),
    }
    held_out = {name: PairReader(*both, reading) for name, both in files.items() if any(both)}
    require_apart({"pairs": reader.files, **{f"--{name}-source": split.files for name, split in held_out.items()}})
    share = None if "validation" in held_out else asked.validation
    samples: list[Sample | WordCounts] = []
    if isinstance(config, TokenizerConfig):
        if config.end_of_line:
            raise UserError("end_of_line: the texts of pairs are no lines of one text; leave it out")
        sides = 2 if asked.separate_vocabularies else 1
        samples = [sample_for(config, asked.tokenizer_sample, seed) for _ in range(sides)]

    with ReadingProgress(progress, reader) as shown:
        smallest = _survey(shown.phase("reading", reader), seed, samples)
        if smallest == _HASHES:
            raise UserError(f"{reader.files[0]}: there is no pair here, nor in any other file that was given")
        for split in held_out.values():
            if not any(pair.source and pair.target for pair in split):
                raise UserError(f"{split.files[0]}: there is no pair here to hold out")
        records: list[dict[str, Any]] = []
        trained: list[Tokenizer] = []
        for sample in samples:
            assert isinstance(config, TokenizerConfig)
            tokenizer_of_side, record = train_tokenizer(sample, config, seed, asked.tokenizer_sample, shown)
            trained.append(tokenizer_of_side)
            records.append(record)
        used = tokenizer or (TwoVocabularies(*trained) if asked.separate_vocabularies else trained[0])
        names = (*SPLITS, TEST) if TEST in held_out else SPLITS
        with CorpusWriter(out, used, overwrite, pairs=True, names=names) as writer:
            # At least one of the pairs is held out, however few that would be by chance.
            threshold = 0 if share is None else max(int(share * _HASHES), smallest + 1)
            processes = workers_for(workers, sum(reader.sizes))
            jobs = _jobs(shown.phase("encoding", reader), seed, threshold)
            skips = _encode(used, jobs, [writer.splits[name] for name in SPLITS], limits, processes)
            for name, split in held_out.items():
                jobs = _jobs(shown.phase(f"encoding {name}", split), seed, threshold=0)
                skips += _encode(used, jobs, [writer.splits[name]], None, processes)
            return writer.finish(
                {
                    "sources": [
                        SourceFile(path=str(file), bytes=size, split=name)
                        for name, split in ((None, reader), *held_out.items())
                        for file, size in zip(split.files, split.sizes, strict=True)
                    ],
                    "options": {
                        **reading.model_dump(),
                        **limits.model_dump(),
                        "separate_vocabularies": isinstance(used, TwoVocabularies),
                        "validation": share,
                        **{name: list(map(str, split.files)) for name, split in held_out.items()},
                        "seed": seed,
                        "tokenizer": config.model_dump() if isinstance(config, TokenizerConfig) else str(config),
                    },
                    "sentence_rule": "none: a pair is a source and a target",
                    "tokenizer_sample": dict(zip(("source", "target"), records, strict=True))
                    if asked.separate_vocabularies
                    else dict(*records),
                    "originals": sum(written.documents for written in writer.splits.values()),
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
    """Write pairs to their splits; returns the number of pairs left out, by reason."""
    skips: Counter[str] = Counter()
    for encoded in encode_jobs(tokenizer, jobs, processes, partial(encode_pairs, limits=limits)):
        for split, pairs in zip(splits, encoded, strict=False):
            opens = np.arange(0, len(pairs.lengths), 2)
            split.append(
                pairs.ids,
                pairs.starts,
                pairs.lengths,
                opens,
                pairs.size,
                pairs.words,
                hidden=pairs.hidden,
                target_size=pairs.target_size,
                target_hidden=pairs.target_hidden,
            )
            skips += pairs.skips
    return skips


def _survey(pairs: Iterable[Pair], seed: int, samples: list[Sample | WordCounts]) -> int:
    """Read the pairs for the first time, and fill one sample with both sides, or a sample for each side.

    Returns:
        The smallest hash of a pair; `_HASHES` if there is no pair.
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
    """Keyed hash of the source, so that all translations of a text are in the same split."""
    key = (seed % _HASHES).to_bytes(8, "little")
    return int.from_bytes(blake2b(pair.source.encode(), digest_size=8, key=key).digest(), "little")


def _jobs(pairs: Iterable[Pair], seed: int, threshold: int) -> Iterator[list[tuple[int, Pair]]]:
    """Group pairs, each with its split, into jobs."""
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
