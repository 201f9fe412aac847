"""The latency of fine-tuned models: what it is measured on, and what was measured."""

from typing import Any

from pydantic import Field

from bakeoff.config import Config


class LatencyPlan(Config):
    """The texts that the latency of every recipe is measured on, after its last training."""

    batch: int = Field(default=1, ge=1, le=4096)
    """Number of test texts that are predicted at once."""
    length: int | None = Field(default=None, ge=8, le=1 << 14)
    """Tokens of each row; left out: those of the test texts as they are."""

    def circumstances(self, machine: dict[str, str], versions: dict[str, str]) -> dict[str, Any]:
        """All that a latency depends on beside the model: another machine measures anew."""
        there = {name: machine.get(name) for name in ("processor", "threads", "device")}
        return {**self.model_dump(), **there, "torch": versions.get("torch")}


class Latency(Config):
    """The latency of one recipe's fine-tuned model on one task."""

    recipe: str
    """The recipe's label."""
    task: str
    """The task's name."""
    seconds: float
    """Median seconds from a batch of texts to their predictions, tokenizer included."""
    parameters: int
    """Number of parameters of the model and its head."""
    trained: str
    """Digest of the settings of the fine-tuning whose model was measured."""
