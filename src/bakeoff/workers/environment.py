"""The environment variables of worker processes."""

import os
import sys


def worker_environment(threads: int) -> dict[str, str]:
    """The variables of this process, with `threads` threads for each numeric library, and a path to the package."""
    found = {**os.environ, "TOKENIZERS_PARALLELISM": "false"}
    found |= dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(threads))
    # The package may be on a path that was added in this process.
    found["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    return found
