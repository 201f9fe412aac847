"""What is trained, as the loop sees it: pre-training, a trial of fine-tuning, and whatever comes to them."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import torch
from torch import Tensor, nn

from bakeoff.distributed.processes import ALONE, Processes
from bakeoff.distributed.replicas import Replicas
from bakeoff.distributed.shards import Shards
from bakeoff.errors import Diverged
from bakeoff.optimization.averages import AverageBaseConfig
from bakeoff.resources.device import Placement
from bakeoff.resources.micro_batch import Size
from bakeoff.trainer.position import Position


class MicroBatch(Protocol):
    """The rows that go through the model at once; the unit of randomness."""

    @property
    def tokens(self) -> int:
        """The number of tokens, padding not counted."""
        ...

    @property
    def number(self) -> int:
        """Its number in the whole batch of a step, from 0."""
        ...


M = TypeVar("M", bound=MicroBatch)

SPARE = -1
"""The number of a micro-batch that counts for nothing: its losses have no weight, and it leaves no trace."""


class Evaluation(NamedTuple):
    """A measurement of the present weights on data that nothing is learned from."""

    line: dict[str, Any]
    """The line of metrics.jsonl."""
    shown: str
    """The measurement in words, which stand beside the figures of the steps that follow."""


class Unit(ABC, Generic[M]):
    """The batches, the losses, the evaluation and the state of a training.

    The loop, the step, the checkpoint and the guard are the same for all units.
    """

    title: str
    """The name of what is trained, in lines about it."""
    module: nn.Module
    """The model with its heads, on the device."""
    optimizer: torch.optim.Optimizer
    """The optimizer of the module's parameters."""
    processes: Processes = ALONE
    """The processes that train the module together, each on its share of the micro-batches of every step."""
    placement: Placement
    """The device of the module, and the precision of its products."""
    seed: int
    """The seed of order and dropout."""
    steps: int
    """The number of steps of the whole training."""
    steps_before: int = 0
    """The number of steps of earlier trainings whose checkpoints stand in the same folder."""
    learning_rate: float
    """The learning rate where the schedule's factor is 1."""
    clip: float | None
    """Largest norm of the gradient, over all parameters; None: no clipping."""
    average: AverageBaseConfig | None = None
    """The average of the weights that is measured and saved in their place; None: there is none."""
    evaluations: Collection[int]
    """The steps after which the module is evaluated; 0: before the first."""
    settle: Callable[[], None] = staticmethod(lambda: None)
    """Waits for a checkpoint that is being written; set by the trainer."""
    replayed: bool = False
    """Whether layers are replayed as CUDA graphs, see `models/replays.py`."""
    fits_memory: bool = False
    """Whether micro-batches are as large as memory allows, and become smaller where it does not, see `shortage.py`."""

    @cached_property
    def distribution(self) -> Replicas:
        """How the module is divided among the processes."""
        kind = Shards if self.processes.shards else Replicas
        return kind(self.module, self.optimizer, self.processes)

    @property
    @abstractmethod
    def over(self) -> bool:
        """Whether the training ends here, whatever is left of its steps."""

    @property
    @abstractmethod
    def how_to_go_on(self) -> str:
        """The end of the sentence on a training that a signal has stopped."""

    def begin(self) -> None:
        """Set the module to training; called before the first step and after each evaluation."""
        self.module.train()

    @abstractmethod
    def batches(self, step: int) -> list[M]:
        """This process's micro-batches of a step, a function of the step alone; called in a thread that stays ahead."""

    @property
    def micro_batch(self) -> Size:
        """The size of a micro-batch, of a unit that fits memory."""
        raise NotImplementedError

    def note(self) -> None:
        """Note what a step writes over beside weights and gradients, so that the step can be taken anew."""

    def cut(self, size: Size) -> None:
        """Cut batches into micro-batches of another size from now on; what was noted stands again."""
        raise NotImplementedError

    def record(self, change: dict[str, Any]) -> None:
        """Write into the files of the run that micro-batches have another size, from a step on."""

    @abstractmethod
    def counts(self, micro_batches: Sequence[M]) -> dict[str, float]:
        """The number of targets of each loss in some micro-batches; all those of a batch divide the sum of the loss."""

    @abstractmethod
    def losses(self, batch: M, counts: dict[str, float]) -> dict[str, Tensor]:
        """The share of a micro-batch in each mean loss of the whole batch.

        Args:
            batch: the micro-batch.
            counts: the number of targets of each loss in the whole batch, 1 where there is none.
        """

    def widths(self, micro_batches: Sequence[M]) -> tuple[int, ...]:
        """The sizes to which the rows of all micro-batches of a batch are padded alike, as far as these need them."""
        return ()

    def widened(self, batch: M, widths: tuple[int, ...]) -> M:
        """A micro-batch with its rows padded to the sizes of the whole batch, see `widths`."""
        return batch

    @abstractmethod
    def spare(self, micro_batches: Sequence[M]) -> M:
        """A micro-batch, numbered `SPARE`, that this process reads while others have more than its `micro_batches`."""

    @abstractmethod
    def weights(self, step: int) -> dict[str, float]:
        """The weight of each loss in a step."""

    @abstractmethod
    def of_schedule(self, step: int) -> float:
        """The schedule's factor of the learning rate in a step, counted from 0."""

    def factor(self, step: int) -> float:
        """The factor of the learning rate in a step: the schedule's, unless an average has cycles of its own."""
        if self.average is None:
            return self.of_schedule(step)
        return self.average.factor(step, self.steps, self.of_schedule)

    def decay_factor(self, step: int) -> float:
        """The factor of the weight decay in a step."""
        return 1.0

    def enter(self, step: int) -> None:
        """Make ready for a step, whose first pass follows; called for every step."""
        return

    def flops(self, step: int) -> int:
        """Floating-point operations of a token in a step; 0: they are not counted."""
        return 0

    def logs(self, step: int) -> bool:
        """Whether metrics.jsonl gets a line on the training after so many steps."""
        return False

    def log(self, position: Position) -> dict[str, Any]:
        """The line of metrics.jsonl on the steps since the last line."""
        raise NotImplementedError

    @abstractmethod
    def evaluate(self, position: Position) -> Evaluation:
        """Evaluate the module, and note what follows from it, such as better weights than before."""

    def require_finite(self, figures: dict[str, float], step: int) -> None:
        """Refuse figures of a step that are not finite numbers.

        Raises:
            Diverged: one of them is not.
        """
        for name, value in figures.items():
            if not math.isfinite(value):
                self.settle()  # so that the message knows the last checkpoint
                raise Diverged(self.diverged(name.replace("_", " "), step))

    @abstractmethod
    def diverged(self, name: str, step: int) -> str:
        """The message where a loss, or the gradient's norm, is not a finite number at a step."""

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """What a checkpoint holds in state.json beside the position."""

    @abstractmethod
    def tensors(self) -> dict[str, dict[str, Tensor]]:
        """What a checkpoint holds beside the weights and the optimizer, by the names of files.

        Later steps do not change these tensors: they may be written while the training goes on.
        """

    @abstractmethod
    def load(self, checkpoint: Path, state: dict[str, Any], lines: Sequence[dict[str, Any]]) -> None:
        """Go on from a checkpoint.

        Args:
            checkpoint: its folder, whose files have been compared with their checksums.
            state: the content of its state.json.
            lines: the lines of metrics.jsonl up to it.

        Raises:
            UserError: a file is damaged.
            KeyError: a tensor is missing.
        """
