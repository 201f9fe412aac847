"""The folder of a model to import, fetched from the Hub or not: no code of it is run, and no link out of it is read."""

import re
from collections.abc import Iterator
from pathlib import Path
from shlex import quote
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor

from bakeoff.errors import UserError, at_home, path_of
from bakeoff.extras import missing
from bakeoff.json_files import read_json
from bakeoff.stored_tensors import UNREADABLE
from bakeoff.tensors import shapes

CONFIG = "config.json"
WEIGHTS = "model.safetensors"
GENERATION = "generation_config.json"
INDEX = "model.safetensors.index.json"
PICKLES = ("pytorch_model.bin", "pytorch_model.bin.index.json")
"""Files of weights that transformers reads and that are not read here, since a pickle can run any code."""
OF_OTHERS = ("model.pt", "model.ckpt.index", "tf_model.h5", "flax_model.msgpack")
"""Files of weights of fairseq, TensorFlow and Flax."""
LONGEST_NAME = 255
"""Largest number of bytes of a file's name, as file systems have it."""
NAME = re.compile(r"[\w.-]+(/[\w.-]+)?(@[\w./-]+)?")
PATTERNS = ["*.safetensors", "*.safetensors.index.json", "*.json", "vocab.txt", "merges.txt", "*.model"]
"""Patterns of the files that are fetched."""
DTYPES = {torch.float32: "float32", torch.float16: "float16", torch.bfloat16: "bfloat16", torch.float64: "float64"}


def folder_of(source: str | Path) -> Path:
    """The folder of a model; a model on the Hub (OWNER/NAME or OWNER/NAME@REVISION) is fetched into the Hub's cache.

    Raises:
        UserError: there is no such folder and no such model, or huggingface_hub is not installed.
    """
    path = at_home(path_of(source, "source"))
    if path.exists() or not NAME.fullmatch(str(source)) or str(source).startswith((".", "/")):
        return path
    try:
        from huggingface_hub import snapshot_download
    except ImportError:
        raise missing(f"{source}: no such folder; models on the Hub need huggingface_hub", "hub") from None
    name, _, revision = str(source).partition("@")
    try:
        return Path(snapshot_download(name, revision=revision or None, allow_patterns=PATTERNS))
    except Exception as error:  # errors of the library and of the network have no common class
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
        raise UserError(
            f"{source}: no such folder, and the Hub does not give it ({reason}); check the name and the network"
        ) from None


class Folder:
    """The folder of a model that transformers saved."""

    def __init__(self, path: Path) -> None:
        """Open the folder at a path.

        Raises:
            UserError: there is no folder, or it has no config.json.
        """
        if not path.is_dir():
            raise UserError(f"{path}: no such folder, and no name on the Hub (OWNER/NAME)")
        self.path = path
        if not (path / CONFIG).is_file():
            # Sentence Transformers keeps the model in a folder within.
            inside = sorted(each for each in path.iterdir() if (each / CONFIG).is_file())
            way = f"; {inside[0]} is one" if inside else ""
            raise UserError(f"{path}: has no {CONFIG}, so it is not a model as transformers saves it{way}")

    def file(self, name: str) -> Path | None:
        """The path of a file directly in the folder; None: there is no such file.

        Raises:
            UserError: the name leads out of the folder, or is a link that does.
        """
        if Path(name).name != name or len(name.encode()) > LONGEST_NAME:
            raise UserError(
                f"{self.path}: names the file {name!r:.200}, which is outside of this folder; it is not read"
            )
        path = self.path / name
        if not path.is_file():
            return None
        if not any(path.resolve().is_relative_to(folder) for folder in self._folders()):
            raise UserError(f"{path}: a link out of this folder, which is not followed; put the file itself there")
        return path

    def _folders(self) -> Iterator[Path]:
        """Folders in which files may lie: the folder itself, and the Hub cache's folder of blobs that it links to."""
        path = self.path.resolve()
        yield path
        if path.parent.name == "snapshots":
            yield path.parent.parent / "blobs"

    def json(self, name: str) -> dict[str, Any]:
        """The content of a JSON file; empty if there is no such file."""
        path = self.file(name)
        return {} if path is None else read_json(path)

    @property
    def where(self) -> str:
        """The path of config.json, for errors."""
        return str(self.path / CONFIG)

    def tensors(self) -> dict[str, Tensor]:
        """All weights by name, on the CPU.

        Raises:
            UserError: there are no safetensors, a file is missing or damaged, two files have the same tensor, or a
                number is infinite or NaN in float32.
        """
        tensors: dict[str, Tensor] = {}
        for file in self._weight_files():
            for name, tensor in _read(file):
                if name in tensors:
                    raise UserError(f"{file}: the tensor {name} is in another file of this folder, too")
                if tensor.is_floating_point() and not bool(tensor.float().isfinite().all()):
                    raise UserError(
                        f"{file}: the tensor {name} holds numbers that are infinite or no numbers in float32; get the "
                        "file again, or take weights from before the training failed"
                    )
                tensors[name] = tensor
        if (index := self.file(INDEX)) is not None and self.file(WEIGHTS) is None:
            listed = read_json(index)["weight_map"]
            if missing := [name for name in listed if name not in tensors]:
                raise UserError(f"{index}: the tensor {missing[0]} is listed there, but in none of the files")
        return tensors

    def _weight_files(self) -> list[Path]:
        if (single := self.file(WEIGHTS)) is not None:
            return [single]
        if (index := self.file(INDEX)) is not None:
            names = read_json(index).get("weight_map")
            if not isinstance(names, dict) or not all(isinstance(name, str) for name in names.values()):
                raise UserError(f"{index}: weight_map: names of files by names of tensors are wanted")
            files = []
            for name in dict.fromkeys(names.values()):
                if (file := self.file(name)) is None:
                    raise UserError(f"{index}: names {name}, which is not in this folder")
                files.append(file)
            return files
        for name in PICKLES:
            if (self.path / name).is_file():
                raise UserError(
                    f"{self.path / name}: not read, because only safetensors are; convert it once, by what runs no "
                    f"code of it: python -c {quote(self._conversion())}"
                )
        for name in OF_OTHERS:
            if (self.path / name).is_file():
                raise UserError(
                    f"{self.path / name}: not read, because only safetensors are; get the model's {WEIGHTS}, or a "
                    f"{PICKLES[0]}, which can be converted"
                )
        raise UserError(f"{self.path}: has no weights: neither {WEIGHTS} nor {INDEX}")

    def _conversion(self) -> str:
        """The Python that writes all pickled tensors as safetensors under their names, and runs no code of the pickle.

        A class of transformers would leave out those that it has no place for, and make up those that it misses.
        """
        return (
            "import pathlib as p, safetensors.torch as s, torch as t; "
            f"d = p.Path({str(self.path)!r}); "
            "s.save_file({n: x.clone().contiguous() for f in d.glob('pytorch_model*.bin') "
            "for n, x in t.load(f, map_location='cpu', weights_only=True).items()}, "
            f"d / {WEIGHTS!r}, {{'format': 'pt'}})"
        )


def _read(file: Path) -> Iterator[tuple[str, Tensor]]:
    """The tensors of a file.

    Raises:
        UserError: the file is damaged, or cannot be read.
    """
    names = shapes(file)
    try:
        with safe_open(file, "pt") as opened:
            for name in names:
                yield name, opened.get_tensor(name)
    except UNREADABLE as error:
        raise UserError(f"{file}: damaged, or no safetensors ({error}); get it again") from None
    except OSError as error:
        raise UserError(f"{file}: cannot be read: {error.strerror or error}") from None
