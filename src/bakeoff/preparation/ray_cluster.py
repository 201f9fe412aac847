"""The making of a corpus's shards on a Ray cluster whose machines share a disk."""

import os
from pathlib import Path
from typing import Any

from bakeoff.corpus.store import Corpus
from bakeoff.errors import UserError
from bakeoff.machine.cluster import cluster, imported_ray
from bakeoff.preparation.making import Preparation
from bakeoff.preparation.options import PrepareOptions, Texts
from bakeoff.preparation.progress import ShowProgress, Tally

_SHARDS_A_CORE = 4  # so that cores which are done early have more to do
_SMALLEST = 1 << 20  # bytes on disk of a shard; below, starting it takes longer than its work


def prepare_on_ray(
    texts: Texts,
    out: str | Path,
    address: str,
    *,
    overwrite: bool = False,
    progress: ShowProgress = False,
    **options: Any,
) -> Corpus:
    """Make the corpus that `prepare` makes, byte for byte, on a Ray cluster.

    This process reads the text for the tokenizer, and merges; the cluster encodes, one shard a core at a time. Ray
    starts shards of a lost machine again. After a kill the same call makes the missing shards.

    Args:
        texts: as for `prepare`; these files and the folder of `out` have the same paths on all machines.
        out: as for `prepare`.
        address: `local`: start a cluster on this machine; `auto`: find this machine's cluster; or `HOST:PORT`.
        overwrite: as for `prepare`.
        progress: as for `prepare`.
        options: fields of `PrepareOptions`.

    Raises:
        UserError: Ray is not installed; no cluster answers; a machine does not see the files; as of `prepare`.
    """
    ray = imported_ray()
    checked = PrepareOptions.parse(options, "prepare")
    preparation = Preparation(texts, out, checked, overwrite=overwrite, progress=progress)
    if (made := preparation.made()) is not None:
        return made
    with cluster(ray, address):
        cores = int(ray.cluster_resources().get("CPU", 1))
        shards = preparation.shards or max(1, min(_SHARDS_A_CORE * cores, preparation.bytes // _SMALLEST))
        preparation.planned(shards)
        task = ray.remote(num_cpus=1, max_retries=3)(_make)
        folder = os.getcwd()
        waiting = [task.remote(folder, texts, out, shard, shards, checked) for shard in range(1, shards + 1)]
        with Tally(bool(progress), f"encoding {shards} shards on {cores} cores", shards) as tally:
            while waiting:
                done, waiting = ray.wait(waiting)
                for error in ray.get(done):
                    if error is not None:
                        raise UserError(error)
                    tally.advance()
    return preparation.merge()


def _make(folder: str, texts: Texts, out: str | Path, shard: int, shards: int, options: PrepareOptions) -> str | None:
    """Make one shard on a machine of the cluster; returns a UserError, which Ray would raise as its own error."""
    machine = os.uname().nodename
    try:
        os.chdir(folder)
    except OSError:
        return f"{folder}: the machine {machine} of the cluster does not see this folder; it must share the disk"
    try:
        Preparation(texts, out, options, workers=0).shard(shard, shards, planned=True)
    except UserError as error:
        return f"{error} (on the machine {machine} of the cluster)"
    return None
