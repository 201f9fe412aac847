"""Configs of tasks on published data sets, by the name of the data set."""

import glob
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bakeoff.errors import UserError
from bakeoff.reading.hub import PREFIX
from bakeoff.tasks.datasets.dataset import SPLITS, Form, HubForm, describes_dataset, load_dataset
from bakeoff.tasks.registry import parse_task
from bakeoff.tasks.task_config import TaskConfig

_COMPRESSIONS = ("", ".gz", ".zst")


def dataset_task(name: str, data: str | Path | None, /, **settings: Any) -> TaskConfig:
    """The task of a data set that is known by its name; arguments and errors are those of `named_task`."""
    return parse_task(named_task(name, data, settings), name)


def named_task(name: str, data: str | Path | None, settings: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The values of the config of a data set's task, as `parse_task` reads them.

    Args:
        name: the name of the data set, or a YAML file that describes one.
        data: the folder with its files as they are published; or `hub:OWNER/NAME`, a copy on the Hugging Face Hub with
            the columns of the known one; or `hub:`, the known one itself. None: `settings` has the files.
        settings: values that replace the known ones.

    Raises:
        UserError: there is no such data set or folder, its files are not there, or none of its layouts can be read.
    """
    settings = {key: value for key, value in (settings or {}).items() if value is not None}
    known = load_dataset(name)
    name = Path(name).stem if describes_dataset(name) else name
    common = {"kind": known.kind, "name": name, **known.settings}
    if data is not None and str(data).startswith(PREFIX):
        if known.hub is None:
            raise UserError(f"{name}: --data {data}: the data set is not known on the Hub; give --data FOLDER")
        return common | _on_hub(known.hub, str(data).removeprefix(PREFIX)) | settings
    folder = None if data is None else Path(data)
    if folder is None and "train" not in settings:
        raise UserError(f"{name}: give --data FOLDER with its files, or --train FILE")
    if folder is not None and not folder.is_dir():
        raise UserError(f"{folder}: no such folder; --data is the folder with the files of {name}")
    layouts = [values for form in known.forms if (values := _values(form, folder, settings)) is not None]
    if not layouts:
        wanted = "; or ".join(dict.fromkeys(_listed(form, settings) for form in known.forms))
        raise UserError(f"{folder}: not the files of {name}: looked for {wanted} (each also .gz or .zst)")
    return _first_that_reads([{**common, **values} | settings for values in layouts])


def _on_hub(form: HubForm, repository: str) -> dict[str, Any]:
    chosen = repository or form.repository
    values: dict[str, Any] = {**form.settings, "remark": form.remark}
    return values | {name: Path(f"{PREFIX}{chosen}@{split}") for name, split in form.splits.items()}


def _values(form: Form, folder: Path | None, settings: Mapping[str, Any]) -> dict[str, Any] | None:
    """The config values of a layout, with the files of the folder; None where a file is missing and not given."""
    files: dict[str, Any] = {}
    for split in SPLITS:
        if split in settings or folder is None or not form.names(split):
            continue
        file = next(_files(folder, form.names(split)), None)
        if file is None:
            return None
        files[split] = file
    # With files of other splits the remark need not be true.
    unchanged = folder is not None and not any(split in settings for split in SPLITS)
    return {**form.settings, **files, **({"remark": form.remark} if unchanged else {})}


def _files(folder: Path, names: tuple[str, ...]) -> Iterator[Path]:
    """The files of a folder that have one of the names, compressed or not.

    Raises:
        UserError: several files fit a pattern.
    """
    for name in names:
        for ending in _COMPRESSIONS:
            if not glob.has_magic(name):
                if (folder / f"{name}{ending}").exists():
                    yield folder / f"{name}{ending}"
                continue
            fitting = sorted(folder.glob(f"{name}{ending}"))
            if len(fitting) > 1:
                shown = ", ".join(file.name for file in fitting[:4])
                raise UserError(f"{folder}: {len(fitting)} files are called {name}{ending} ({shown}); keep one")
            yield from fitting


def _listed(form: Form, settings: Mapping[str, Any]) -> str:
    wanted = [" or ".join(form.names(split)) for split in SPLITS if form.names(split) and split not in settings]
    return " with ".join(wanted)


def _first_that_reads(candidates: list[dict[str, Any]]) -> dict[str, Any]:
    """The first candidate whose smallest file it can read, else the last; layouts may share names of files."""
    for number, values in enumerate(candidates):
        if number == len(candidates) - 1:
            break
        config = parse_task(values, "dataset")
        files = [path for split in SPLITS if (path := getattr(config, split)) is not None]
        try:
            next(iter(config.read(min(files, key=lambda path: path.stat().st_size if path.is_file() else 0))))
        except (UserError, StopIteration):
            continue
        return values
    return candidates[-1]
