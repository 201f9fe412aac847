"""The progress of a training, in the units in which trainings are measured."""

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Position:
    """The progress of a training, in several units; saved with every checkpoint."""

    step: int = 0
    """Optimizer steps done."""
    tokens: int = 0
    """Tokens seen, padding not counted."""
    flops: int = 0
    """Floating-point operations spent on the tokens, forward and backward."""
    seconds: float = 0.0
    """Seconds spent in steps; evaluations and checkpoints are not counted."""
    work_seconds: float = 0.0
    """Seconds spent in steps by `work_clock`: on a CPU, processor time of all threads."""
    sums: dict[str, float] = field(default_factory=dict)
    """Sums of each mean loss, and of the gradient's norm, over the steps since the last line of metrics."""
    since: int = 0
    """Number of steps since the last line of metrics."""
    since_tokens: int = 0
    """Number of tokens in the steps since the last line of metrics."""
    since_seconds: float = 0.0
    """Seconds spent in the steps since the last line of metrics."""
    evaluation_seconds: float = 0.0
    """Seconds spent in evaluations."""

    def add(self, steps: int, tokens: int, seconds: float, work_seconds: float) -> None:
        """Add the times of the last steps, whose tokens are among `tokens` already."""
        self.seconds += seconds
        self.work_seconds += work_seconds
        self.since += steps
        self.since_tokens += tokens
        self.since_seconds += seconds

    def means(self) -> dict[str, float]:
        """The means of figures over the steps since the last line of metrics."""
        return {name: total / self.since for name, total in self.sums.items()}

    def begin_line(self) -> None:
        """Begin the next line of metrics."""
        self.sums, self.since, self.since_tokens, self.since_seconds = {}, 0, 0, 0.0

    def counters(self, words_per_token: float) -> dict[str, Any]:
        """The progress as it stands in every line of metrics; `words_per_token` is that of the training text."""
        return {
            "step": self.step,
            "tokens": self.tokens,
            "words": round(self.tokens * words_per_token),
            "flops": self.flops,
            "seconds": round(self.seconds, 3),
        }
