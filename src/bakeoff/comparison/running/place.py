"""The directory of a comparison: what may stand there before it begins."""

from pathlib import Path

from bakeoff import checksums
from bakeoff.comparison.results import FIGURES, RESULTS
from bakeoff.comparison.running.spendable import BUDGET
from bakeoff.comparison.running.starts import IMPORTED
from bakeoff.durable import without_links
from bakeoff.errors import UserError

FOLDERS = ("floors", IMPORTED, "runs", "searches")
"""The folders of a comparison, which a start that was killed may have left before there was a budget."""


def require_own_place(out: Path) -> None:
    """Refuse to write into a corpus or a run, over results that no comparison has written, and through a link.

    Raises:
        UserError: the directory is a corpus, a run or a file, or holds such results or a link.
        Damaged: the comparison's budget is lost.
    """
    try:
        names = {path.name for path in out.iterdir()} if out.exists() else set()
    except NotADirectoryError:
        raise UserError(f"{out}: a file; choose another --out") from None
    if names & {"recipe.yaml", "corpus.json"}:
        raise UserError(f"{out}: holds something else already; choose another --out")
    if BUDGET not in names:  # no comparison has begun here
        checksums.require_present(out / BUDGET)
        taken = [name for name in FOLDERS if name in names and not (out / name).is_dir()]
        for name in sorted({*taken, *names & {*RESULTS, FIGURES}}):
            if (out / name).is_symlink():
                continue  # and is named as a link below
            raise UserError(f"{out / name}: is there already, and not from a comparison; choose another --out")
    without_links(out)
