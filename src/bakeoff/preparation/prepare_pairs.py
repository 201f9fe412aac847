"""Making a corpus from pairs of texts, for translation: a first reading trains the tokenizer, a second one encodes."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from bakeoff.corpus.manifest import SourceFile
from bakeoff.corpus.store import SPLITS, TEST, Corpus
from bakeoff.durable import own_folder
from bakeoff.errors import UserError, path_of
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
_Jobs = Iterator[list[tuple[int, Pair]]]
"""Groups of pairs, each pair with the number of its split in `SPLITS`."""


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
    check_target(path_of(out, "out"), overwrite)
    own_folder(work_folder(out))
    given = _given_tokenizer(asked)
    texts = _Texts.open(source, target, asked)
    samples = [] if given else _samples(asked)
    with ReadingProgress(progress, texts.pairs) as shown:
        smallest = _survey(shown.phase("reading", texts.pairs), asked.seed, samples)
        texts.require_pairs(smallest)
        tokenizer, records = (given, []) if given else _train(samples, asked, shown)
        names = (*SPLITS, TEST) if TEST in texts.held_out else SPLITS
        with CorpusWriter(out, tokenizer, overwrite, pairs=True, names=names) as writer:
            encoding = partial(_encode, tokenizer, processes=workers_for(workers, sum(texts.pairs.sizes)))
            skips = texts.encode(writer.splits, encoding, smallest, shown)
            written = sum(split.documents for split in writer.splits.values())
            return writer.finish(
                {**texts.facts(tokenizer, records), "originals": written, "skips": dict(sorted(skips.items()))}
            )


class _Texts(NamedTuple):
    """The pairs of a corpus, and the options by which they are split."""

    asked: PreparePairsOptions
    pairs: PairReader
    """The pairs that are trained on, and of which a share may be held out."""
    held_out: dict[str, PairReader]
    """The pairs of each split that has files for itself."""

    @classmethod
    def open(cls, source: Texts, target: Texts, asked: PreparePairsOptions) -> Self:
        """Open the files of all splits.

        Raises:
            UserError: a file is missing, is named twice, or has no partner.
        """
        reading = PairOptions(**asked.fields_of(PairOptions))
        pairs = PairReader(paths_of(source), paths_of(target), reading)
        files = {
            "validation": (asked.validation_source, asked.validation_target),
            TEST: (asked.test_source, asked.test_target),
        }
        held_out = {name: PairReader(*both, reading) for name, both in files.items() if any(both)}
        require_apart({"pairs": pairs.files, **{f"--{name}-source": split.files for name, split in held_out.items()}})
        return cls(asked, pairs, held_out)

    @property
    def share(self) -> float | None:
        """The share of the pairs that is held out; None: there are files of held-out pairs."""
        return None if "validation" in self.held_out else self.asked.validation

    def require_pairs(self, smallest: int) -> None:
        """Refuse files without a pair; `smallest` is what `_survey` has returned."""
        if smallest == _HASHES:
            raise UserError(f"{self.pairs.files[0]}: there is no pair here, nor in any other file that was given")
        for split in self.held_out.values():
            if not any(pair.source and pair.target for pair in split):
                raise UserError(f"{split.files[0]}: there is no pair here to hold out")

    def encode(
        self,
        splits: Mapping[str, SplitWriter],
        encoding: Callable[[_Jobs, list[SplitWriter], LengthFilter | None], Counter[str]],
        smallest: int,
        shown: ReadingProgress,
    ) -> Counter[str]:
        """Write all pairs to their splits; returns the number of pairs left out, by reason."""
        # At least one of the pairs is held out, however few that would be by chance.
        threshold = 0 if self.share is None else max(int(self.share * _HASHES), smallest + 1)
        limits = LengthFilter(**self.asked.fields_of(LengthFilter))
        jobs = _jobs(shown.phase("encoding", self.pairs), self.asked.seed, threshold)
        skips = encoding(jobs, [splits[name] for name in SPLITS], limits)
        for name, split in self.held_out.items():
            jobs = _jobs(shown.phase(f"encoding {name}", split), self.asked.seed, threshold=0)
            skips += encoding(jobs, [splits[name]], None)
        return skips

    def facts(self, tokenizer: Tokenizer, records: list[dict[str, Any]]) -> dict[str, Any]:
        """What the corpus says of its making, with its tokenizer and the records of what was trained for it."""
        asked, config = self.asked, self.asked.tokenizer
        return {
            "sources": [
                SourceFile(path=str(file), bytes=size, split=name)
                for name, split in ((None, self.pairs), *self.held_out.items())
                for file, size in zip(split.files, split.sizes, strict=True)
            ],
            "options": {
                **asked.fields_of(PairOptions),
                **asked.fields_of(LengthFilter),
                "separate_vocabularies": isinstance(tokenizer, TwoVocabularies),
                "validation": self.share,
                **{name: list(map(str, split.files)) for name, split in self.held_out.items()},
                "seed": asked.seed,
                "tokenizer": config.model_dump() if isinstance(config, TokenizerConfig) else str(config),
            },
            "sentence_rule": "none: a pair is a source and a target",
            "tokenizer_sample": dict(zip(("source", "target"), records, strict=True))
            if asked.separate_vocabularies
            else dict(*records),
            "validation_unit": "pairs",
            "versions": versions(),
        }


def _given_tokenizer(asked: PreparePairsOptions) -> Tokenizer | None:
    """The tokenizer that is used as it is; None: one is trained."""
    if isinstance(asked.tokenizer, TokenizerConfig):
        return None
    tokenizer = Tokenizer.load(asked.tokenizer)
    if asked.separate_vocabularies:
        raise UserError(f"{asked.tokenizer}: taken as it is; leave out separate_vocabularies")
    return tokenizer


def _samples(asked: PreparePairsOptions) -> list[Sample | WordCounts]:
    """An empty sample for each tokenizer that is trained."""
    assert isinstance(asked.tokenizer, TokenizerConfig)
    if asked.tokenizer.end_of_line:
        raise UserError("end_of_line: the texts of pairs are no lines of one text; leave it out")
    sides = 2 if asked.separate_vocabularies else 1
    return [sample_for(asked.tokenizer, asked.tokenizer_sample, asked.seed, whole=True) for _ in range(sides)]


def _train(
    samples: list[Sample | WordCounts], asked: PreparePairsOptions, shown: ReadingProgress
) -> tuple[Tokenizer, list[dict[str, Any]]]:
    """The tokenizer of both sides, and the record of each training."""
    assert isinstance(asked.tokenizer, TokenizerConfig)
    config, size = asked.tokenizer, asked.tokenizer_sample
    trained = [train_tokenizer(sample, config, asked.seed, size, shown) for sample in samples]
    tokenizers, records = [tokenizer for tokenizer, _ in trained], [record for _, record in trained]
    return (TwoVocabularies(*tokenizers) if asked.separate_vocabularies else tokenizers[0]), records


def _encode(
    tokenizer: Tokenizer, jobs: _Jobs, splits: list[SplitWriter], limits: LengthFilter | None, *, processes: int
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


def _jobs(pairs: Iterable[Pair], seed: int, threshold: int) -> _Jobs:
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
