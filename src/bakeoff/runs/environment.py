"""The record of the machine and the software of a run."""

import platform
from typing import Any

import torch

from bakeoff.extras import version_of
from bakeoff.ops.cpu.compiled_kernels import kernels
from bakeoff.plugins import plugin_versions
from bakeoff.resources.device import device_name
from bakeoff.runs.rules import RULES


def environment(device: torch.device, precision: str, processes: int = 1) -> dict[str, Any]:
    """Facts about machine, rules and versions that affect results and speed.

    Args:
        device: the device of the training.
        precision: the precision of products.
        processes: the number of processes that train together.
    """
    packages = ("bakeoff", "torch", "numpy", "tokenizers", "safetensors")
    return {
        "device": device.type,
        "device_name": device_name(device),
        "precision": precision,
        "threads": torch.get_num_threads(),
        "processes": processes,
        "kernels": kernels().origin if device.type == "cpu" and "bfloat16" in precision else None,
        "platform": platform.platform(),
        "python": platform.python_version(),
        "rules": RULES,
        "versions": {package: version_of(package) for package in packages} | plugin_versions(),
    }
