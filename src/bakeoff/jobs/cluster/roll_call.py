"""The machines of a cluster are asked what they are, before anything starts."""

from typing import Any

from bakeoff.display.wording import counted, listed, verb
from bakeoff.errors import UserError
from bakeoff.jobs.cluster.machines import Machine, Shared, differences, machine_here, other_device
from bakeoff.jobs.runner import Say
from bakeoff.machine.cluster import on_node, reason

PATIENCE = 120.0
"""Seconds within which a machine has to answer."""


def require_machines(
    ray: Any, where: str, shared: Shared, asked: str, device: str, one_device: bool, say: Say
) -> str | None:
    """See to it that all machines can do jobs, and remark on what is not equal on them.

    Args:
        ray: the module of Ray, connected.
        where: the beginning of errors.
        shared: the files that the machines have to see.
        asked: the device that the user asks for, such as auto.
        device: the kind of device that it is on this machine: cpu, cuda or mps.
        one_device: whether all devices have to have the name of this machine's.
        say: a function that prints a line.

    Returns:
        The name of the only device that may do jobs; None: any may.

    Raises:
        UserError: a machine does not share the disk, or does not answer; there is no room for a job; devices differ
            where they may not.
    """
    gpus = device == "cuda"
    machines = _machines(ray, where, shared, gpus)
    if not gpus and asked == "auto" and any(has.get("GPU") for _, has in machines):
        raise UserError(
            f"{where}: the cluster has GPUs and this machine has none, so that it cannot plan for them; give the "
            "command on a machine with a GPU, or `device: cpu`"
        )
    able = [machine for machine, has in machines if has.get("CPU") and (has.get("GPU") or not gpus)]
    if not able:
        raise UserError(f"{where}: no machine of the cluster has a {'GPU' if gpus else 'CPU'} for Ray")
    only = machine_here(shared, gpus).device if one_device else None
    for machine in able:
        if (problem := other_device(machine, only)) is not None:
            raise UserError(
                f"{where}: the machine {machine.name} {problem}; give a budget in steps or tokens, or machines that "
                "are equal to this one"
            )
    for line in differences(able):
        say(f"ATTENTION: {line}")
    if without := sorted({machine.name for machine, _ in machines if not machine.locks}):
        say(
            f"ATTENTION: {listed(without)}: a lock of another machine on {shared.out} is not seen there; see to it "
            "that no two commands write to it at the same time"
        )
    devices = listed(sorted({each.device for each in able}))
    say(f"{counted(len(able), 'machine')} of the cluster {verb(len(able), 'does', 'do')} the jobs: {devices}")
    return only


def _machines(ray: Any, where: str, shared: Shared, gpus: bool) -> list[tuple[Machine, dict[str, float]]]:
    """Each machine, as it describes itself, with its resources.

    Raises:
        UserError: a machine does not answer, or does not share the disk.
    """
    alive = [each for each in ray.nodes() if each["Alive"]]
    ask = ray.remote(num_cpus=0, max_retries=0)(machine_here)
    asked = [
        ask.options(scheduling_strategy=on_node(ray, each["NodeID"])).remote(shared, gpus, each["NodeID"])
        for each in alive
    ]
    machines = []
    for each, reference in zip(alive, asked, strict=True):
        node, name = each["NodeID"], each.get("NodeManagerHostname") or each["NodeID"]
        try:
            machine: Machine = ray.get(reference, timeout=PATIENCE)
        except (ray.exceptions.TaskUnschedulableError, ray.exceptions.NodeDiedError):
            continue  # it has just left, which Ray lists somewhat later
        except ray.exceptions.RayError as error:
            raise UserError(
                f"{where}: the machine {name} cannot do jobs ({reason(error)}); Bakeoff has to be installed there as "
                "it is here"
            ) from None
        problem = machine.problem
        if problem is None and shared.lacks_mark_of(node):
            problem = f"writes to a folder {shared.out} of its own; all machines must share the disk"
        if problem is not None:
            raise UserError(f"{where}: the machine {machine.name} {problem}")
        machines.append((machine, each["Resources"]))
    return machines
