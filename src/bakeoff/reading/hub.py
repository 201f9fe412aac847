"""Data sets of the Hugging Face Hub, streamed: nothing is fetched before it is read, and nothing is kept."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

from typing_extensions import override

from bakeoff.errors import UserError, at_home
from bakeoff.extras import missing
from bakeoff.reading.class_names import NamedField, field_of
from bakeoff.reading.table_reader import TableReader

PREFIX = "hub:"
_CONVERTED = "refs/convert/parquet"  # the Hub's branch of converted data sets, in folders CONFIG/SPLIT/
_NAME = re.compile(r"(?P<path>[^:@]+)(?::(?P<config>[^:@]+))?(?:@(?P<split>[^:@]+))?")


class HubFile(TableReader):
    """One file of a split of a data set, or all of them; `path` is its name.

    `translation.de` is `de` of the column `translation`; a class that is stored as a number comes by its name.

    Args:
        name: the user's name of the data set, with the number of the file.
        rows: an `IterableDataset`, or a shard of one.
        size: the file's size in bytes; 0 if it is not known.
        revision: commit of the data set on the Hub; for a folder, a hash of the names, sizes and times of its files.
        errors: see `TableReader`.
    """

    def __init__(self, name: str, rows: Any, size: int, revision: str, errors: str = "strict") -> None:
        super().__init__(name, errors)
        self._rows, self.bytes, self.revision = rows, size, revision

    def __str__(self) -> str:
        """The name."""
        return str(self.path)

    def read_with(self, errors: str) -> "HubFile":
        """The same file with another treatment of errors."""
        return HubFile(str(self), self._rows, self.bytes, self.revision, errors)

    @override
    def position(self) -> int:
        return 0  # the library does not tell how much it has read, so that a file counts only when it is done

    @override
    def names(self) -> list[str]:
        if self._rows.features is not None:
            return list(self._rows.features)
        with _refusing(str(self)):
            return next((list(row) for row in self._rows), [])

    @override
    def rows(self, names: Sequence[str], advice: str = "", skip: int = 0) -> Iterator[tuple[int, list[Any]]]:
        features = self._rows.features.to_dict() if self._rows.features is not None else {}
        fields: list[NamedField] = []
        with _refusing(str(self)):
            for number, row in enumerate(self._rows.skip(skip) if skip else self._rows, skip + 1):
                fields = fields or [field_of(name, list(row), features, str(self), advice) for name in names]
                yield number, [field.value(row[field.column], self, number) for field in fields]


def on_hub(path: Path | str) -> bool:
    """Whether this is a data set of the Hugging Face Hub, not a file."""
    return str(path).startswith(PREFIX)


def hub_files(text: str, *, whole: bool = False) -> list[HubFile]:
    """The files of a data set, whose content is not fetched yet.

    Args:
        text: `hub:OWNER/NAME`, `hub:OWNER/NAME:CONFIG`, either with `@SPLIT` (default `train`); or a folder instead of
            OWNER/NAME.
        whole: whether all files come as one.

    Raises:
        UserError: `datasets` is not installed; no such data set, config or split; the network does not answer.
    """
    match = _NAME.fullmatch(text.removeprefix(PREFIX))
    if match is None:
        raise UserError(f"{text}: expected hub:OWNER/NAME, hub:OWNER/NAME:CONFIG, or either with @SPLIT after it")
    try:
        import datasets
    except ImportError:
        raise missing(f"{text}: data sets of the Hub need the library datasets", "hub") from None
    path, config, split = match["path"], match["config"], match["split"] or "train"
    datasets.disable_progress_bars()
    folder = at_home(path)
    with _refusing(text):
        revision, sizes = (None, {}) if folder.is_dir() else _commit(path)
        try:
            builder = datasets.load_dataset_builder(str(folder) if folder.is_dir() else path, config, revision=revision)
        except RuntimeError as error:
            if folder.is_dir() or "scripts are no longer supported" not in str(error):
                raise
            revision, sizes = _commit(path, _CONVERTED)
            builder = datasets.load_dataset_builder(
                path, data_files=_converted(text, config, list(sizes)), revision=revision
            )
        files = {str(name): list(paths) for name, paths in (builder.config.data_files or {}).items()}
        if split not in files:
            raise UserError(f"{text}: no split '{split}' (splits here: {', '.join(files) or 'none'}); give @SPLIT")
        rows = builder.as_streaming_dataset(split=split)
        if revision is None:
            revision, sizes = _state(files[split])
        if whole:
            return [HubFile(text, rows, 0, revision)]
        paths = files[split] if len(files[split]) == rows.num_shards else [""] * rows.num_shards
        return [
            HubFile(f"{text}#{i + 1}", rows.shard(rows.num_shards, i), sizes.get(file.rpartition("@")[2], 0), revision)
            for i, file in enumerate(paths)
        ]


def _converted(text: str, config: str | None, files: Sequence[str]) -> dict[str, list[str]]:
    """The Parquet files that the Hub made of a data set that is a program, by split; the program is not run.

    Raises:
        UserError: there is no such config, or several and none is named; or the Hub converted only the first part.
    """
    configs: dict[str, dict[str, list[str]]] = {}
    for file in sorted(name.partition("/")[2] for name in files):
        if len(parts := file.split("/")) == 3 and file.endswith(".parquet"):
            configs.setdefault(parts[0], {}).setdefault(parts[1], []).append(file)
    chosen = config or (next(iter(configs)) if len(configs) == 1 else "default")
    if chosen not in configs:
        raise UserError(f"{text}: no config '{chosen}' (configs here: {', '.join(configs) or 'none'}); give :CONFIG")
    if partial := next((split for split in configs[chosen] if split.startswith("partial-")), None):
        raise UserError(f"{text}: the Hub has made Parquet of a part only ({partial}); give files")
    return configs[chosen]


def _commit(path: str, revision: str | None = None) -> tuple[str, dict[str, int]]:
    """The newest commit, which all readings and all shards use, and the sizes of its files in bytes."""
    from huggingface_hub import HfApi

    info = HfApi().dataset_info(path, revision=revision, files_metadata=True)
    return str(info.sha), {f"{info.sha}/{file.rfilename}": file.size or 0 for file in info.siblings or []}


def _state(files: list[str]) -> tuple[str, dict[str, int]]:
    """A hash of the names, sizes and times of files in a folder, and the sizes in bytes."""
    states = [(file, stat.st_size, stat.st_mtime_ns) for file in files for stat in [Path(file).stat()]]
    return sha256(repr(states).encode()).hexdigest()[:16], {file: size for file, size, _ in states}


@contextmanager
def _refusing(name: str) -> Iterator[None]:
    """Errors of the library, of Arrow and of the network as one line."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
        raise UserError(f"{name}: cannot be read ({reason}); is the name right, and the network there?") from None
