"""`bakeoff export --to hf`."""

from importlib.util import find_spec
from pathlib import Path

from bakeoff.durable import fresh, remove, sync
from bakeoff.errors import UserError
from bakeoff.interop.exported import Exported
from bakeoff.interop.remote_code.export import export as write


def export(run: Path, out: Path) -> Exported:
    """Write a run as a folder that transformers loads.

    Raises:
        UserError: as of `bakeoff.interop.export.export`.
    """
    if find_spec("transformers") is None:
        raise UserError("--to hf needs transformers to read back what it writes: pip install 'bakeoff[hub]'")
    if out.exists():
        raise UserError(f"{out}: is there already; choose another --out")
    partial = out.absolute().with_name(f".{out.name}.partial")
    try:
        with fresh(partial, out):
            try:
                difference, main, remarks = write(run, partial)
                for file in partial.iterdir():
                    sync(file)
                partial.rename(out)
            finally:
                if partial.exists():
                    remove(partial)
    except OSError as error:
        raise UserError(f"{out}: cannot be written: {error.strerror or error}") from None
    loads = f"{main}.from_pretrained({str(out)!r}, trust_remote_code=True)"
    return Exported(out, "hf", loads, difference, remarks)
