"""The variables with which a process of ours starts that works for another one."""

import os
import sys


def worker_environment(threads: int) -> dict[str, str]:
    """This process's, so that each of the libraries has so many threads and the package is found."""
    found = {**os.environ, "TOKENIZERS_PARALLELISM": "false"}
    found |= dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(threads))
    # The package may be on a path that only this process knows.
    found["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    return found
