"""What a preparation of text does: plan, encode in one go or in parts, merge."""

import shutil
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from bakeoff.corpus.files import find_files
from bakeoff.corpus.parts import encode_part, encode_whole, merge
from bakeoff.corpus.plan import Plan, part_folder
from bakeoff.corpus.progress import Progress
from bakeoff.corpus.sampling import FEWEST_DOCUMENTS, Cuts, Mark, Sample, survey
from bakeoff.corpus.selection import SelectionOptions, select
from bakeoff.corpus.sentences import RULE
from bakeoff.corpus.sources import Piece, Place, SourceOptions, TextReader
from bakeoff.corpus.store import SPLITS, Corpus, Source
from bakeoff.corpus.tokenizer import Tokenizer, TokenizerConfig
from bakeoff.corpus.tokenizer_sample import train_tokenizer
from bakeoff.corpus.worker import WorkerDied, workers_for
from bakeoff.corpus.writer import check_target, versions, work_folder
from bakeoff.durable import held
from bakeoff.errors import Interrupted, UserError

Texts = str | Path | Sequence[str | Path]

_FILES = 8  # files a part from which on parts are whole files, unless the text is read before for another reason


class Preparation:
    """A text and options, of which a corpus is made; the arguments are those of `prepare`."""

    def __init__(
        self,
        texts: Texts,
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
    ) -> None:
        """Check the options and find the files; nothing is read.

        Raises:
            UserError: bad options, or a file that is not there.
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
        self._select = SelectionOptions.parse(
            {"deduplicate": deduplicate, "minimum_characters": minimum_characters}, "prepare"
        )
        self._out, self._overwrite = Path(out), overwrite
        self._given = None if tokenizer is None or isinstance(tokenizer, TokenizerConfig) else Tokenizer.load(tokenizer)
        self._config = tokenizer if isinstance(tokenizer, TokenizerConfig) else TokenizerConfig()
        self._sample = tokenizer_sample
        self._skips: Counter[str] = Counter()
        self._reader = TextReader(find_files(texts, self._skips), options)
        hub = any(not isinstance(file, Path) for file in self._reader.files)
        self._workers = workers_for(workers, None if hub else sum(self._reader.sizes))
        self._progress = progress
        self._options: dict[str, Any] = {
            **options.model_dump(),
            **self._select.model_dump(),
            "shuffle_ngrams": shuffle_ngrams,
            "validation": validation,
            "seed": seed,
            "tokenizer": str(tokenizer) if self._given is not None else self._config.model_dump(),
        }
        self._work = work_folder(out)

    def whole(self) -> Corpus:
        """Make the corpus in one go; see `prepare`."""
        check_target(self._out, self._overwrite)
        with self._holding(), Progress(self._progress, self._reader) as shown:
            plan = Plan.load(self._work)
            if plan is not None and plan.parts > 1:
                raise UserError(
                    f"{self._out}: is being made in {plan.parts} parts; give --part or --merge, or remove {self._work}"
                )
            if plan is not None and (names := plan.differences(self._arguments())):
                shown.note(f"starting anew, for an unfinished corpus here had another {_listed(names)}")
                plan = None
            try:
                if plan is None:
                    _empty(self._work)
                    plan = self._plan(1, shown)
                else:
                    shown.note("going on with an unfinished corpus of the same text and options")
                corpus = encode_whole(plan, self._work, self._out, self._overwrite, self._reader, self._workers, shown)
            except UserError as error:
                if not isinstance(error, WorkerDied):
                    shutil.rmtree(self._work, ignore_errors=True)
                raise
            except KeyboardInterrupt:
                if Plan.load(self._work) is None:
                    shutil.rmtree(self._work, ignore_errors=True)
                    raise
                message = f"interrupted; the same command goes on from here, or remove {self._work}"
                raise Interrupted(message, signal.SIGINT) from None
            shutil.rmtree(self._work, ignore_errors=True)
            return corpus

    def part(self, part: int, parts: int, planned: bool = False) -> dict[str, Any]:
        """Make one part; see `prepare_part`.

        Args:
            part: its number, from 1.
            parts: how many there are.
            planned: whether the plan must be there already, made by another process.
        """
        if not 1 <= part <= parts:
            raise UserError(f"--part {part}/{parts}: there is no such part; the first is 1/{parts}")
        if self.made() is None:
            plan = self._existing(parts) if planned else self.planned(parts)
            folder = part_folder(self._work, part, parts)
            folder.mkdir(exist_ok=True)
            with (
                held(folder, f"part {part}/{parts} of {self._out}"),
                Progress(self._progress, self._reader) as shown,
            ):
                journal = encode_part(plan, self._work, part, self._reader, self._workers, shown)
            counts = [journal.splits[name] for name in SPLITS]
        else:  # a part that is started once more when all is done
            counts = []
        return {
            "part": f"{part}/{parts}",
            "documents": sum(split.documents for split in counts),
            "tokens": sum(split.tokens for split in counts),
            "merged": not counts,
        }

    def merge(self) -> Corpus:
        """Put the parts together; see `merge_parts`."""
        made = self.made()
        if made is not None:
            plan = Plan.load(self._work)
            if plan is not None and not plan.differences(self._arguments()):  # killed before it was removed
                shutil.rmtree(self._work, ignore_errors=True)
            return made
        check_target(self._out, self._overwrite)
        plan = Plan.load(self._work)
        if plan is None or plan.parts == 1:
            raise UserError(f"{self._out}: there are no parts to merge; make them with --part 1/N to --part N/N")
        self._check(plan, plan.parts)
        with held(self._work, self._out):
            corpus = merge(plan, self._work, self._out, self._overwrite)
            shutil.rmtree(self._work, ignore_errors=True)
        return corpus

    @property
    def parts(self) -> int | None:
        """Number of parts that a plan on the disk has; None where there is none."""
        plan = Plan.load(self._work)
        return None if plan is None else plan.parts

    @property
    def bytes(self) -> int:
        """Size of the text on the disk; 0 where it is not known."""
        return sum(self._reader.sizes)

    def planned(self, parts: int) -> Plan:
        """The plan of so many parts, made by the process that comes first; others wait for it.

        Raises:
            UserError: what the reading of the text raises; another plan is there.
        """
        while Plan.load(self._work) is None:
            check_target(self._out, self._overwrite)
            with (
                Progress(self._progress, self._reader) as shown,
                self._holding(lambda: shown.note("waiting for the process that reads the text")),
            ):
                # The one that was waited for may have made the plan, or have failed and removed the folder.
                if self._work.is_dir() and Plan.load(self._work) is None:
                    try:
                        return self._plan(parts, shown)
                    except BaseException:
                        shutil.rmtree(self._work, ignore_errors=True)
                        raise
        return self._existing(parts)

    def _existing(self, parts: int) -> Plan:
        plan = Plan.load(self._work)
        if plan is None:
            raise UserError(f"{self._work}: not seen here; all machines must share the disk of --out")
        self._check(plan, parts)
        return plan

    @contextmanager
    def _holding(self, waiting: Callable[[], None] | None = None) -> Iterator[None]:
        try:
            self._work.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"{self._out}: cannot be created ({error.strerror})") from None
        with held(self._work, self._out, waiting):
            yield

    def made(self) -> Corpus | None:
        """The corpus of this text and these options, where it is complete already."""
        if self._overwrite or not (self._out / "corpus.json").is_file():
            return None
        corpus = Corpus.open(self._out)
        same = corpus.manifest.options == self._options and corpus.manifest.sources == self._sources()
        return corpus if same else None

    def _check(self, plan: Plan, parts: int) -> None:
        if plan.parts != parts:
            made = "one go" if plan.parts == 1 else f"{plan.parts} parts"
            raise UserError(
                f"{self._out}: is being made in {made}, not in {parts} parts; go on so, or remove {self._work}"
            )
        if names := plan.differences(self._arguments()):
            raise UserError(
                f"{self._out}: its parts are being made with another {_listed(names)}; give the same, or remove "
                f"{self._work} to start anew"
            )

    def _plan(self, parts: int, shown: Progress) -> Plan:
        """Read the text as often as the encoding of its parts needs, train the tokenizer, and keep the plan."""
        seed, reader = self._options["seed"], self._reader
        arguments = self._arguments()
        selection = None
        if self._select != SelectionOptions():
            selection = select(shown.phase("selecting", reader), self._select)
            self._skips.update(selection.skips)
        sample = Sample(self._sample, seed) if self._given is None else None
        # Cuts within files need a reading of all of the text, and so do the numbers that pieces have in it.
        files = parts > 1 and sample is None and selection is None and self._options["shuffle_ngrams"] is None
        files = files and len(reader.files) >= _FILES * parts
        cuts = Cuts() if parts > 1 and not files else None
        pieces: Iterator[Piece] = shown.phase("reading", reader)
        found = survey(pieces if selection is None else selection.keep(pieces), seed, sample, cuts)
        if found.documents == 0:
            self._refuse_nothing(selection is not None and bool(selection.left_out.any()))
        if parts > 1 and found.documents < FEWEST_DOCUMENTS:
            raise UserError(
                f"{reader.files[0]}: {found.documents} documents in all, --part needs {FEWEST_DOCUMENTS}; leave it "
                "out, or say by --document-separator or --document-per-line where documents end"
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
            options=self._options,
            sources=self._sources(),
            survey=found,
            starts=(cuts or Cuts()).divide(parts, total),
            tokenizer_sample=record,
            skips={**self._skips, "empty files": sum(reader.is_empty(i) for i in range(len(reader.files)))},
            sentence_rule=RULE,
            versions=versions(),
        )
        plan.save(self._work, tokenizer, selection)
        return plan

    def _refuse_nothing(self, too_short: bool) -> None:
        first = self._reader.files[0]
        if too_short:
            raise UserError(
                f"{first}: no document has {self._select.minimum_characters:,} characters, nor in any other file that "
                "was given; lower --minimum-characters"
            )
        raise UserError(f"{first}: there is no text here, nor in any other file that was given")

    def _sources(self) -> list[Source]:
        return [
            Source(path=str(file), bytes=size, revision=None if isinstance(file, Path) else file.revision)
            for file, size in zip(self._reader.files, self._reader.sizes, strict=True)
        ]

    def _arguments(self) -> dict[str, Any]:
        """All that decides on the bytes of the corpus."""
        given = self._given
        return {
            "files": [
                [str(file), size, file.stat().st_mtime_ns if isinstance(file, Path) else file.revision]
                for file, size in zip(self._reader.files, self._reader.sizes, strict=True)
            ],
            **self._options,
            "tokenizer_sample": self._sample,
            "content of the tokenizer": None if given is None else sha256(given.to_string().encode()).hexdigest(),
            "sentence_rule": RULE,
            "versions": versions(),
        }


def _listed(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _empty(folder: Path) -> None:
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
