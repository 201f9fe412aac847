"""`bakeoff check`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bakeoff.cli.output import Json, print_json
from bakeoff.display.terminal import show
from bakeoff.errors import UserError

if TYPE_CHECKING:
    from bakeoff.checking import FileGroup


def check(
    directory: Annotated[Path, typer.Argument(help="A corpus, a run, a fine-tuned run or a comparison.")],
    json: Json = False,
) -> None:
    """Read every byte of a directory and compare it with the checksums that were kept when it was written.

    Example: bakeoff check runs/bert
    """
    from bakeoff.checking import check as check_directory

    found = check_directory(directory, None if json else _print)
    if json:
        print_json(found.model_dump(mode="json"))
    problems = found.problems
    if problems:
        more = f" (and {len(problems) - 1} more, above)" if len(problems) > 1 else ""
        raise UserError(f"{problems[0]}{more}")
    if not json:
        files, listed = (sum(getattr(group, name) for group in found.groups) for name in ("files", "listed"))
        show(f"{directory}: a {found.kind}; {listed:,} of {files:,} files are what was written" + _rest(files, listed))


def _rest(files: int, listed: int) -> str:
    if listed == files:
        return ""
    if listed == 0:
        return ": it was made before checksums were kept, and no more is known than that it can be read"
    return f", of the other {files - listed:,} no checksums were kept"


def _print(group: "FileGroup") -> None:
    what = "damaged" if group.problems else "ok" if group.listed == group.files else "no checksum"
    if 0 < group.listed < group.files and not group.problems:
        what = f"ok, {group.files - group.listed} without checksum"
    count = f"{group.files} files, " if group.files > 1 else ""
    show(f"{group.name:<24}  {what:<12}  {count}{group.bytes:,} bytes")
    for problem in group.problems:
        show(f"  {problem}")
