"""The machines of a cluster: whether they see the files of the jobs, and the devices that they have."""

import os
import platform
import secrets
import subprocess
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from bakeoff.config import Config
from bakeoff.durable import held
from bakeoff.errors import UserError
from bakeoff.extras import version_of
from bakeoff.machine.capacity import processor_name

LAG = 10.0
"""Seconds within which a file that one machine writes has to appear on another one; network disks cache folders."""

MARK = ".bakeoff-shared-"
"""The beginning of the names of files by which machines see that they share a folder."""


class Machine(Config):
    """A machine of the cluster, as it sees itself."""

    name: str
    """Its name in the network."""
    device: str
    """The name of its processor, or of its GPUs where jobs run on GPUs."""
    versions: dict[str, str]
    """Versions of Python, torch and Bakeoff."""
    problem: str | None = None
    """The reason why no job can run here; None: jobs can."""
    locks: bool = True
    """Whether a lock of another machine on the shared folder is seen here."""


class Shared(Config):
    """The files that every machine has to see under the same paths."""

    folder: Path
    """The folder in which the command was given, to which relative paths refer."""
    out: Path
    """The folder that all jobs write to."""
    mark: str
    """The name and the content of a file in it, by which it is recognised."""
    sizes: dict[str, int]
    """The sizes of the files that jobs read, by path."""

    @classmethod
    def of(cls, out: Path, read: Iterable[Path]) -> "Shared":
        """The files of jobs that write to `out`, and read other files and all that is in other folders."""
        sizes = {str(file): file.stat().st_size for path in read for file in _files(path)}
        return cls(folder=Path.cwd(), out=out, mark=f"{MARK}{secrets.token_hex(8)}", sizes=sizes)

    def write_mark(self) -> None:
        """Write the file by which other machines recognise the folder."""
        (self.out / self.mark).write_text(self.mark, encoding="ascii")

    def remove_marks(self) -> None:
        """Remove the files that this class has written, also those of commands that were killed."""
        for path in self.out.glob(f"{MARK}*"):
            with suppress(OSError):
                path.unlink()

    def lacks_mark_of(self, node: str) -> bool:
        """Whether the mark that a machine has written is not seen here, after `LAG` seconds."""
        return not _appears(self.out / f"{self.mark}-{node}", self.mark)

    def problem(self, node: str | None = None) -> str | None:
        """The reason why this machine does not share the files; None: it does, and is in the folder from now on.

        Args:
            node: a name under which the machine writes a mark of its own; None: it writes none.
        """
        try:
            os.chdir(self.folder)
        except OSError:
            return f"does not see {self.folder}, the folder of the command; all machines must share the disk"
        if not _appears(self.out / self.mark, self.mark):
            return f"does not see in {self.out} what was written there; all machines must share the disk"
        for path, size in self.sizes.items():
            if not _appears(Path(path), size):
                return f"does not see {path} as it is elsewhere; all machines must share the disk, or have equal copies"
        if node is not None:
            try:
                (self.out / f"{self.mark}-{node}").write_text(self.mark, encoding="ascii")
            except OSError as error:
                return f"cannot write to {self.out}: {error.strerror or error}"
        return None


def machine_here(shared: Shared, gpus: bool, node: str | None = None) -> Machine:
    """This machine, as one of a cluster.

    Args:
        shared: the files that it has to see; the command holds their folder.
        gpus: whether jobs run on GPUs.
        node: see `Shared.problem`.
    """
    problem = shared.problem(node)
    return Machine(
        name=platform.node(),
        device=device_name(gpus),
        versions={
            "Python": platform.python_version(),
            **{name: version_of(name) for name in ("torch", "bakeoff")},
        },
        problem=problem,
        locks=problem is not None or _is_locked(shared.out),
    )


def device_name(gpus: bool) -> str:
    """The name of this machine's processor, or of its GPUs; torch is not asked, as it would take memory of the GPU."""
    if not gpus:
        return processor_name()
    try:
        command = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
        names = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.splitlines()
    except (OSError, subprocess.SubprocessError):
        return "a GPU"
    return ", ".join(sorted({name.strip() for name in names})) or "a GPU"


def other_device(machine: Machine, only: str | None) -> str | None:
    """The reason why a machine's device is not the only one that may do jobs; None: it is, or any may."""
    if only is None or machine.device == only:
        return None
    return f"has another device ({machine.device}) than the others ({only}), for which minutes were turned into steps"


def differences(machines: Sequence[Machine]) -> list[str]:
    """Sentences on devices and versions that are not the same on all machines."""
    lines = []
    for what, values in (
        ("devices", [machine.device for machine in machines]),
        *((name, [machine.versions[name] for machine in machines]) for name in machines[0].versions),
    ):
        if len({*values}) > 1:
            having = {
                value: sorted({m.name for m, of_it in zip(machines, values, strict=True) if of_it == value})
                for value in sorted({*values})
            }
            each = "; ".join(f"{value} on {', '.join(names)}" for value, names in having.items())
            lines.append(
                f"machines with different {what}, so that the last bits of results depend on the machine: {each}"
            )
    return lines


def _files(path: Path) -> Iterable[Path]:
    return sorted(each for each in path.rglob("*") if each.is_file()) if path.is_dir() else [path]


def _appears(path: Path, content: str | int) -> bool:
    """Whether a file has a content, or a size, within `LAG` seconds."""
    until = time.monotonic() + LAG
    while True:
        with suppress(OSError):
            os.listdir(path.parent)  # network disks then look anew
            found: Any = path.stat().st_size if isinstance(content, int) else path.read_text(encoding="ascii")
            if found == content:
                return True
        if time.monotonic() >= until:
            return False
        time.sleep(0.2)


def _is_locked(folder: Path) -> bool:
    try:
        with held(folder):
            return False
    except UserError:
        return True
