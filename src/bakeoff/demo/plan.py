"""What the demo compares, and under which budget."""

from typing import Any

TOKENS = 4_000_000
"""Budget of each pre-training at scale 1."""

SHARED: dict[str, Any] = {"training.batch": 16}


def demo_plan(scale: float) -> dict[str, Any]:
    """The demo's plan."""
    return {}
