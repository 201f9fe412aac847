"""Writing of a corpus: files grow in a folder beside the final folder, which appears only when it is complete."""

import json
import os
import platform
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import tokenizers

from bakeoff import checksums
from bakeoff.corpus.manifest import Manifest, SplitCounts
from bakeoff.corpus.split import INDEXES
from bakeoff.corpus.store import FORMAT, MANIFEST, SPLITS, TOKENIZER, Corpus
from bakeoff.durable import fresh, own_folder, remove, sync
from bakeoff.errors import UserError
from bakeoff.extras import version_of
from bakeoff.json_files import parse_json
from bakeoff.preparation.encoding.split_writer import GrowingFile, SplitState, SplitWriter, id_type
from bakeoff.regular_files import read_regular
from bakeoff.tokenizer.tokenizer import Tokenizer


class NothingLeft(UserError):
    """A text is so small that one of the splits is empty."""


def check_target(out: Path, overwrite: bool) -> None:
    """Refuse an output folder that would have to be replaced.

    Raises:
        UserError: `out` is no folder, a folder with content that is no corpus, a corpus while `overwrite` is off, or a
            corpus that holds other files, too.
    """
    if not os.path.lexists(out):
        return
    if not out.is_dir() or out.is_symlink():
        raise UserError(f"{out}: exists and is not a folder; choose another --out")
    if not any(out.iterdir()):
        return
    if not (out / MANIFEST).is_file():
        raise UserError(f"{out}: exists and is not a corpus; choose another --out")
    if not overwrite:
        raise UserError(f"{out}: a corpus exists here already; add --overwrite to replace it, or choose another --out")
    files = _files_of(out / MANIFEST)
    for name in sorted(each.name for each in out.iterdir()):
        if name not in files and name.removeprefix(".").removesuffix(".partial") not in files:
            raise UserError(f"{out / name}: not of a corpus, and would be lost; move it, or choose another --out")


def _files_of(manifest: Path) -> set[str]:
    """The names of all files of a corpus, damaged or not; none where the manifest is not one."""
    try:
        hashes = parse_json(read_regular(manifest, checksums.MOST), str(manifest)).get("sha256")
    except (UserError, OSError):
        return set()
    return {MANIFEST, checksums.NAME, INDEXES, *hashes} if isinstance(hashes, dict) else set()


def work_folder(out: str | Path) -> Path:
    """The folder in which a corpus grows until it is complete.

    Raises:
        UserError: `out` is the root of the file system.
    """
    path = Path(os.path.abspath(out))
    if not path.name:
        raise UserError(f"{out}: no folder that a corpus can replace; choose another --out")
    return path.with_name(f".{path.name}.unfinished")


def versions() -> dict[str, str]:
    """Versions of Bakeoff, Python and the libraries that make a corpus, by name."""
    return {
        "bakeoff": version_of("bakeoff"),
        "tokenizers": tokenizers.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }


class CorpusWriter:
    """Context manager that writes a corpus; if left without `finish`, it removes its files, or closes them (`folder`).

    Attributes:
        splits: the writers of the splits, by their names.
    """

    def __init__(
        self,
        out: str | Path,
        tokenizer: Tokenizer,
        overwrite: bool = False,
        *,
        pairs: bool = False,
        folder: Path | None = None,
        states: Mapping[str, SplitState] | None = None,
        names: Sequence[str] = SPLITS,
    ) -> None:
        """Prepare to write to `out`.

        Args:
            out: folder of the corpus.
            tokenizer: the tokenizer of the ids.
            overwrite: replace a corpus at `out`.
            pairs: whether every document is a source and a target; such a corpus has no `states`.
            folder: the folder in which the files grow, on the disk of `out`, held and removed by the caller; None: a
                folder beside `out`, which is removed with an abandoned corpus.
            states: saved states of splits in `folder`, by name; the other splits are begun.
            names: names of the splits.

        Raises:
            UserError: `out` would have to be replaced (see `check_target`), or cannot be created.
        """
        self._out = Path(os.path.abspath(out))
        self._overwrite = overwrite
        self._tokenizer, self._pairs = tokenizer, pairs
        self._folder = work_folder(out) if folder is None else folder
        self._replaced = self._out.with_name(f".{self._out.name}.replaced")
        self._own = folder is None
        self._states, self._names = states or {}, names
        self._open = False
        self._held = ExitStack()
        check_target(self._out, overwrite)

    def __enter__(self) -> Self:
        try:
            own_folder(self._replaced)
            self._out.parent.mkdir(parents=True, exist_ok=True)
            if self._own:
                self._held.enter_context(fresh(self._folder, self._out))
            else:
                own_folder(self._folder).mkdir(exist_ok=True)
        except OSError as error:
            raise UserError(f"{self._out}: cannot be created ({error.strerror})") from None
        self._open = True
        self.splits = {
            name: SplitWriter(self._folder, name, self._tokenizer.size, self._states.get(name), pairs=self._pairs)
            for name in self._names
        }
        return self

    def finish(self, provenance: dict[str, Any]) -> Corpus:
        """Complete the corpus and put it in its place.

        Args:
            provenance: the fields of `Manifest` that the writer does not know.

        Raises:
            UserError: one of the splits is empty.
        """
        counts: dict[str, SplitCounts] = {}
        hashes: dict[str, str] = {}
        for name, split in self.splits.items():
            counts[name], digests = split.finish(self.splits["train"].frequencies, self._tokenizer.end_of_line)
            hashes |= digests
        for name, count in counts.items():
            if count.tokens == 0:
                share = provenance["options"].get("validation")
                if name == "train" and isinstance(share, float) and share > 0.5:
                    raise UserError(
                        f"--validation {100 * share:.10g}%: all of the text is held out, as nothing smaller than a "
                        "sentence can be trained on, and nothing is left; give a smaller share, or more text"
                    )
                kind = "to train on" if name == "train" else "to hold out"
                raise NothingLeft(
                    f"the text is too small: nothing is left {kind}; give more text or another --validation"
                )
        tokenizer = GrowingFile(self._folder / TOKENIZER)
        tokenizer.append(np.frombuffer(self._tokenizer.to_string().encode(), dtype=np.uint8))
        hashes[TOKENIZER] = tokenizer.finish()
        manifest = Manifest(
            format=FORMAT,
            dtype=id_type(self._tokenizer.size),
            vocabulary=self._tokenizer.size,
            splits=counts,
            sha256=hashes,
            **provenance,
        )
        # The manifest makes the folder a corpus, so it is written last.
        text = json.dumps(manifest.model_dump(mode="json"), indent=1, ensure_ascii=False) + "\n"
        grown = GrowingFile(self._folder / MANIFEST)
        grown.append(np.frombuffer(text.encode(), dtype=np.uint8))
        checksums.write_list(self._folder, {**hashes, MANIFEST: grown.finish()})
        sync(self._folder)
        check_target(self._out, self._overwrite)
        if self._out.exists():
            remove(self._replaced)  # of a process that was killed here
            self._out.rename(self._replaced)
        self._folder.rename(self._out)
        remove(self._replaced)
        self._open = False
        sync(self._out.parent)
        return Corpus.open(self._out)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._open:
            for split in self.splits.values():
                split.close()
            if self._own:
                remove(self._folder)
        self._held.close()
