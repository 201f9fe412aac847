"""Planning a corpus: the readings of the text before its encoding."""

from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from bakeoff.corpus.store import Source
from bakeoff.errors import UserError
from bakeoff.preparation.given_parts import Texts, read_given, require_text
from bakeoff.preparation.held_out import FEWEST_DOCUMENTS
from bakeoff.preparation.plan import Plan
from bakeoff.preparation.progress import Progress
from bakeoff.preparation.sampling import Cuts, Mark, survey
from bakeoff.preparation.selection import SelectionOptions, select
from bakeoff.preparation.tokenizer_sample import sample_for, train_tokenizer
from bakeoff.preparation.writer import versions
from bakeoff.reading.files import find_files
from bakeoff.reading.sources import Piece, Place, SourceOptions, TextReader
from bakeoff.text.sentences import LINES, RULE
from bakeoff.tokenizer.tokenizer import Tokenizer, TokenizerConfig

_FILES = 8  # files a part from which on parts are whole files, unless the text is read before for another reason


class Planner:
    """A text, and the options that decide on the bytes of its corpus; the arguments are those of `prepare`.

    Attributes:
        reader: of the text.
        given: readers of the files that parts of the corpus are given in, by the names of these.
        options: as the manifest of the corpus records them.
    """

    def __init__(
        self,
        texts: Texts,
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
    ) -> None:
        """Check the options and find the files; nothing is read.

        Raises:
            UserError: bad options, or a file that is not there.
        """
        share = validation if isinstance(validation, int | float) else None
        if share is not None and not 0 < share < 1:
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
        self._select = SelectionOptions.parse(
            {"deduplicate": deduplicate, "minimum_characters": minimum_characters}, "prepare"
        )
        self._given = None if tokenizer is None or isinstance(tokenizer, TokenizerConfig) else Tokenizer.load(tokenizer)
        self._config = tokenizer if isinstance(tokenizer, TokenizerConfig) else TokenizerConfig()
        self._sample = tokenizer_sample
        self._skips: Counter[str] = Counter()
        lines = self._config.end_of_line if self._given is None else self._given.end_of_line is not None
        self._rule = LINES if lines else RULE
        self.reader = TextReader(find_files(texts, self._skips), options, lines)
        given = {"validation": None if isinstance(validation, int | float) else validation, "test": test}
        official: dict[str, list[str]] = {name: _listed(files) for name, files in given.items() if files is not None}
        self.given = read_given(self.reader, official, self._skips)
        self.options: dict[str, Any] = {
            **options.model_dump(),
            **self._select.model_dump(),
            "shuffle_ngrams": shuffle_ngrams,
            "validation": share,
            **official,
            "seed": seed,
            "tokenizer": str(tokenizer) if self._given is not None else self._config.model_dump(),
        }

    def plan(self, work: Path, parts: int, shown: Progress) -> Plan:
        """Read the text as often as the encoding of its parts needs, train the tokenizer, and keep the plan.

        Args:
            work: folder to keep it in.
            parts: how many parts the text is encoded in.
            shown: is told of it.

        Raises:
            UserError: unreadable text, none at all, or too few documents for parts.
        """
        seed, reader = self.options["seed"], self.reader
        arguments = self.arguments()
        require_text(self.given)
        share = self.options["validation"]
        share = share if isinstance(share, float) else None
        selection = None
        if self._select != SelectionOptions():
            selection = select(shown.phase("selecting", reader), self._select)
            self._skips.update(selection.skips)
        sample = sample_for(self._config, self._sample, seed) if self._given is None else None
        # Cuts within files need a reading of all of the text, and so do the numbers that pieces have in it.
        files = parts > 1 and sample is None and selection is None and self.options["shuffle_ngrams"] is None
        files = files and len(reader.files) >= _FILES * parts
        cuts = Cuts() if parts > 1 and not files else None
        pieces: Iterator[Piece] = shown.phase("reading", reader)
        found = survey(pieces if selection is None else selection.keep(pieces), share, seed, sample, cuts)
        if (separator := reader.missed_separator) is not None:
            shown.note(f"--document-separator {separator}: found nowhere in the .txt files, so that each is a document")
        if files and found.sentences:  # whose places depend on the text before a part
            files, cuts = False, Cuts()
            found = survey(shown.phase("reading", reader), share, seed, None, cuts)
        if found.documents == 0:
            self._refuse_nothing(selection is not None and bool(selection.left_out.any()))
        if parts > 1 and found.documents < FEWEST_DOCUMENTS and share is not None:
            raise UserError(
                f"--part: the text has {found.documents} documents, fewer than the {FEWEST_DOCUMENTS} that are needed; "
                "make it in one go, say by --document-separator or --document-per-line where documents end, or give "
                "--validation FILES"
            )
        total = found.characters
        if files:
            cuts, total = Cuts(), 0
            for i, size in enumerate(reader.sizes):
                cuts.add(Mark(Place(i, 0, 0, 0), 0, total))
                total += size
        tokenizer = self._given
        record: dict[str, Any] = {}
        if sample is not None:
            tokenizer, record = train_tokenizer(sample, self._config, seed, self._sample, shown)
        assert tokenizer is not None
        plan = Plan(
            arguments=arguments,
            options=self.options,
            sources=self.sources(),
            survey=found,
            starts=(cuts or Cuts()).divide(parts, total),
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

    def sources(self) -> list[Source]:
        """The files, as the manifest of the corpus records them."""
        return [
            Source(path=str(file), bytes=size, revision=None if isinstance(file, Path) else file.revision, split=split)
            for split, reader in self._readers()
            for file, size in zip(reader.files, reader.sizes, strict=True)
        ]

    def _readers(self) -> list[tuple[str | None, TextReader]]:
        return [(None, self.reader), *self.given.items()]

    def arguments(self) -> dict[str, Any]:
        """All that decides on the bytes of the corpus."""
        given = self._given
        return {
            "files": [
                [str(file), size, file.stat().st_mtime_ns if isinstance(file, Path) else file.revision]
                for _, reader in self._readers()
                for file, size in zip(reader.files, reader.sizes, strict=True)
            ],
            "held-out files": {name: list(map(str, reader.files)) for name, reader in self.given.items()},
            **self.options,
            "tokenizer_sample": self._sample,
            "content of the tokenizer": None if given is None else sha256(given.to_string().encode()).hexdigest(),
            "sentence_rule": self._rule,
            "versions": versions(),
        }


def _listed(texts: Texts) -> list[str]:
    return [str(text) for text in ([texts] if isinstance(texts, str | Path) else texts)]
