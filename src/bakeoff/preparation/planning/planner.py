"""Planning of a corpus: the readings of the text before its encoding."""

from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

from bakeoff.corpus.manifest import SourceFile
from bakeoff.display.wording import counted
from bakeoff.errors import UserError
from bakeoff.preparation.encoding.writer import versions
from bakeoff.preparation.given_splits import read_given, require_text
from bakeoff.preparation.options import PrepareOptions, Texts
from bakeoff.preparation.planning.held_out import FEWEST_DOCUMENTS
from bakeoff.preparation.planning.plan import PreparationPlan
from bakeoff.preparation.planning.sampling import CutPoint, CutPoints, survey
from bakeoff.preparation.planning.selection import SelectionOptions, select
from bakeoff.preparation.planning.tokenizer_sample import sample_for, train_tokenizer
from bakeoff.preparation.progress import ReadingProgress
from bakeoff.reading.files import find_files
from bakeoff.reading.pieces import TextPiece, TextPosition
from bakeoff.reading.sources import SourceOptions, TextReader
from bakeoff.text.sentences import LINES, RULE
from bakeoff.tokenizer.tokenizer import Tokenizer
from bakeoff.tokenizer.tokenizer_config import TokenizerConfig

_FILES = 8  # files a shard from which on shards are whole files, unless the text is read before for another reason


class Planner:
    """Planner of a corpus, for a text and the options that decide on the corpus's bytes.

    Args:
        texts: files, folders and globs.
        options: the options.

    Attributes:
        reader: reader of the text.
        given: readers of the files of given splits, by the split's name.
        recorded: the options as the manifest of the corpus records them.

    Raises:
        UserError: a file does not exist, or the tokenizer's file is no tokenizer.
    """

    def __init__(self, texts: Texts, options: PrepareOptions) -> None:
        self._options = options
        chosen = options.tokenizer
        self._given = None if isinstance(chosen, TokenizerConfig) else Tokenizer.load(chosen)
        self._config = chosen if isinstance(chosen, TokenizerConfig) else TokenizerConfig()
        self._select = SelectionOptions(**options.fields_of(SelectionOptions))
        self._skips: Counter[str] = Counter()
        lines = self._config.end_of_line if self._given is None else self._given.end_of_line is not None
        self._rule = LINES if lines else RULE
        self.reader = TextReader(find_files(texts, self._skips), options, lines)
        share = options.validation if isinstance(options.validation, float) else None
        validation_files = {"validation": None if isinstance(options.validation, float) else options.validation}
        official = {
            name: files for name, files in (validation_files | {"test": options.test}).items() if files is not None
        }
        self.given = read_given(self.reader, official, self._skips)
        self.recorded: dict[str, Any] = {
            **options.fields_of(SourceOptions),
            **options.fields_of(SelectionOptions),
            "shuffle_ngrams": options.shuffle_ngrams,
            "validation": share,
            **official,
            "seed": options.seed,
            "tokenizer": str(chosen) if self._given is not None else self._config.model_dump(),
        }

    def plan(self, work: Path, shards: int, shown: ReadingProgress) -> PreparationPlan:
        """Read the text as often as the encoding of its shards needs, train the tokenizer, and keep the plan.

        Args:
            work: folder to keep the plan in.
            shards: number of shards.
            shown: the display of the progress.

        Raises:
            UserError: the text is unreadable or empty, or has too few documents to be cut into shards.
        """
        options, reader = self._options, self.reader
        seed = options.seed
        arguments = self.arguments()
        require_text(self.given)
        share = options.validation if isinstance(options.validation, float) else None
        selection = None
        if self._select != SelectionOptions():
            selection = select(shown.phase("selecting", reader), self._select)
            self._skips.update(selection.skips)
        sample = sample_for(self._config, options.tokenizer_sample, seed) if self._given is None else None
        # CutPoints within files need a reading of all of the text, and so do the numbers that pieces have in it.
        files = shards > 1 and sample is None and selection is None and options.shuffle_ngrams is None
        files = files and len(reader.files) >= _FILES * shards
        cuts = CutPoints() if shards > 1 and not files else None
        pieces: Iterator[TextPiece] = shown.phase("reading", reader)
        measured = survey(pieces if selection is None else selection.keep(pieces), share, seed, sample, cuts)
        if (separator := reader.missed_separator) is not None:
            shown.note(f"--document-separator {separator}: found nowhere in the .txt files, so that each is a document")
        if files and measured.sentences:  # whose positions depend on the text before a shard
            files, cuts = False, CutPoints()
            measured = survey(shown.phase("reading", reader), share, seed, None, cuts)
        if measured.documents == 0:
            self._refuse_nothing(selection is not None and bool(selection.left_out.any()))
        if shards > 1 and measured.documents < FEWEST_DOCUMENTS and share is not None:
            raise UserError(
                f"--shard: the text has {counted(measured.documents, 'document')}, fewer than the {FEWEST_DOCUMENTS} "
                "that are needed; make it in one go, say by --document-separator or --document-per-line where "
                "documents end, or give --validation FILES"
            )
        total = measured.characters
        if files:
            cuts, total = CutPoints(), 0
            for i, size in enumerate(reader.sizes):
                cuts.add(CutPoint(TextPosition(i, 0, 0, 0), 0, total))
                total += size
        tokenizer = self._given
        record: dict[str, Any] = {}
        if sample is not None:
            tokenizer, record = train_tokenizer(sample, self._config, seed, options.tokenizer_sample, shown)
        assert tokenizer is not None
        plan = PreparationPlan(
            arguments=arguments,
            options=self.recorded,
            sources=self.sources(),
            survey=measured,
            starts=(cuts or CutPoints()).divide(shards, total),
            tokenizer_sample=record,
            skips={**self._skips, "empty files": sum(reader.is_empty(i) for i in range(len(reader.files)))},
            sentence_rule=self._rule,
            versions=versions(),
        )
        plan.save(work, tokenizer, selection)
        return plan

    def _refuse_nothing(self, too_short: bool) -> None:
        first = self.reader.files[0]
        if too_short:
            raise UserError(
                f"{first}: no document has {self._select.minimum_characters:,} characters, nor in any other file that "
                "was given; lower --minimum-characters"
            )
        raise UserError(f"{first}: there is no text here, nor in any other file that was given")

    def sources(self) -> list[SourceFile]:
        """The input files, as the manifest of the corpus records them."""
        return [
            SourceFile(
                path=str(file), bytes=size, revision=None if isinstance(file, Path) else file.revision, split=split
            )
            for split, reader in self._readers()
            for file, size in zip(reader.files, reader.sizes, strict=True)
        ]

    def _readers(self) -> list[tuple[str | None, TextReader]]:
        return [(None, self.reader), *self.given.items()]

    def arguments(self) -> dict[str, Any]:
        """All arguments that decide on the bytes of the corpus."""
        tokenizer = self._given
        return {
            "files": [
                [str(file), size, file.stat().st_mtime_ns if isinstance(file, Path) else file.revision]
                for _, reader in self._readers()
                for file, size in zip(reader.files, reader.sizes, strict=True)
            ],
            "held-out files": {name: list(map(str, reader.files)) for name, reader in self.given.items()},
            **self.recorded,
            "tokenizer_sample": self._options.tokenizer_sample,
            "content of the tokenizer": None
            if tokenizer is None
            else sha256(tokenizer.to_string().encode()).hexdigest(),
            "sentence_rule": self._rule,
            "versions": versions(),
        }
