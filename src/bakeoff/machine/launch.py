"""Launchers that start several processes of one command: torchrun for one training, others by mistake."""

import os
from collections.abc import Mapping

from bakeoff.errors import UserError

COUNTS = {
    "WORLD_SIZE": "torchrun or another launcher",
    "SLURM_STEP_NUM_TASKS": "srun",
    "OMPI_COMM_WORLD_SIZE": "mpirun",
    "PMI_SIZE": "mpirun",
}
"""Environment variables with the number of processes that were started together, and who sets them."""

MEETING = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
"""Environment variables by which the processes that torchrun starts find each other."""


def started_together() -> bool:
    """Whether torchrun, or whatever sets its variables, has started this process as one of several."""
    return all(os.environ.get(name) for name in MEETING) and _count("WORLD_SIZE") > 1


def rank_here() -> int:
    """The number of this process among those that torchrun has started; 0 where it was started alone."""
    rank = os.environ.get("RANK", "")
    return int(rank) if started_together() and rank.isdecimal() else 0


def started_again() -> bool:
    """Whether torchrun has started this process anew after one had failed (`--max-restarts`)."""
    return started_together() and _count("TORCHELASTIC_RESTART_COUNT") > 0


def without_launcher(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables of a process that trains alone, wherever it is started."""
    left_out = {*COUNTS, *MEETING, "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "TORCHELASTIC_RUN_ID"}
    return {name: value for name, value in environment.items() if name not in left_out}


def require_one_process(out: object) -> None:
    """Refuse work that several processes were started for, which would all write to one folder.

    Args:
        out: the folder, for the message.

    Raises:
        UserError: a launcher has started more than one process.
    """
    _refuse(
        out, list(COUNTS), "this work is done by one: start a single process, which starts others by itself (--jobs)"
    )


def require_no_torchrun(verb: str) -> None:
    """Refuse a verb that several processes of torchrun would do each for itself, into one folder.

    Raises:
        UserError: torchrun has started several processes.
    """
    if started_together():
        raise UserError(
            f"{verb}: torchrun has started {_count('WORLD_SIZE'):,} processes, which only pretrain, finetune and "
            f"evaluate share among them; start `bakeoff {verb}` alone"
        )


def require_torchrun(out: object) -> None:
    """Refuse to train where several processes were started, but cannot find each other to train one model.

    Args:
        out: the folder, for the message.

    Raises:
        UserError: a launcher other than torchrun has started more than one process.
    """
    if not started_together() and not os.environ.get("TORCHELASTIC_RUN_ID"):
        _refuse(out, list(COUNTS), "they cannot find each other: start one training over several by torchrun")


def _refuse(out: object, names: list[str], why: str) -> None:
    for name in names:
        if (count := _count(name)) > 1:
            raise UserError(
                f"{out}: one of {count:,} processes ({name}, set by {COUNTS[name]}), and {why}; or, for trainings of "
                f"their own, `env -u {name} bakeoff ...`, each with its own --out"
            )


def _count(name: str) -> int:
    text = os.environ.get(name, "")
    return int(text) if text.isdecimal() else 0
