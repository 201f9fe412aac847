"""Measurements that one call of `compare` keeps in a file for the next."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

from bakeoff import checksums
from bakeoff.comparison.running.planned_training import PlannedTraining
from bakeoff.config import Config, Record, differing
from bakeoff.json_files import read_json

C = TypeVar("C", bound=Config)


class KeptMeasurements(Record):
    """The content of such a file."""

    circumstances: dict[str, Any]
    """All that the measurements depend on beside the models; other circumstances make them void."""
    measurements: list[dict[str, Any]]
    """The measurements."""


def read_kept(path: Path, circumstances: dict[str, Any], kind: type[C]) -> list[C]:
    """The measurements that are kept in a file; none where there is no file, or they were made otherwise.

    Raises:
        UserError: the file is damaged.
    """
    if not path.is_file():
        return []
    kept = KeptMeasurements.check(read_json(path), str(path))
    if any(differing(kept["circumstances"], circumstances)):
        return []
    return [kind.parse(each, f"{path}: measurements") for each in kept["measurements"]]


def write_kept(path: Path, circumstances: dict[str, Any], measurements: Sequence[Config]) -> None:
    """Keep measurements in a file."""
    values = [each.model_dump(mode="json") for each in measurements]
    kept = {"circumstances": circumstances, "measurements": values}
    checksums.write(path, json.dumps(kept, indent=1, ensure_ascii=False) + "\n")


def digest_of(training: PlannedTraining) -> str:
    """A digest of the settings that decide a training's outcome."""
    return hashlib.sha256(json.dumps(training.settings, sort_keys=True).encode()).hexdigest()[:16]
