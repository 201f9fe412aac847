"""Launchers that start several processes of one command: noticed, because one training is one process so far."""

import os

from bakeoff.errors import UserError

COUNTS = {
    "WORLD_SIZE": "torchrun or another launcher",
    "SLURM_STEP_NUM_TASKS": "srun",
    "OMPI_COMM_WORLD_SIZE": "mpirun",
    "PMI_SIZE": "mpirun",
}
"""Environment variables with the number of processes that were started together, and who sets them."""


def require_one_process(out: object) -> None:
    """Refuse to train where several processes were started together, which would all write to one folder.

    Args:
        out: the folder, for the message.

    Raises:
        UserError: a launcher has started more than one process.
    """
    for name, launcher in COUNTS.items():
        count = os.environ.get(name, "")
        if count.isdecimal() and int(count) > 1:
            raise UserError(
                f"{out}: one of {int(count):,} processes ({name}, set by {launcher}), and one training over several is "
                f"not supported yet: start a single process, or, for trainings of their own, `env -u {name} bakeoff "
                "...`, each with its own --out"
            )
