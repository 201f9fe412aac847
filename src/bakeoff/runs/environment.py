"""The record of the machine and the software of a run."""

import platform
from importlib import metadata
from typing import Any

import torch

from bakeoff.machine.capacity import processor_name
from bakeoff.plugins import plugin_versions
from bakeoff.runs.rules import RULES


def environment(device: torch.device, precision: str) -> dict[str, Any]:
    """Facts about machine, rules and versions that affect results and speed."""
    packages = ("bakeoff", "torch", "numpy", "tokenizers", "safetensors")
    return {
        "device": str(device),
        "device_name": torch.cuda.get_device_name(device) if device.type == "cuda" else processor_name(),
        "precision": precision,
        "threads": torch.get_num_threads(),
        "platform": platform.platform(),
        "python": platform.python_version(),
        "rules": RULES,
        "versions": {package: metadata.version(package) for package in packages} | plugin_versions(),
    }
