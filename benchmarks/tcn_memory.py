"""Losses of a TCN on the adding problem, T=600, and on copy memory, T=1000, against Bai et al. 2018, table 1.

    python benchmarks/tcn_memory.py adding|copy [--steps N] [--decay] [--every 500] [--length T] [--seed 0]

Data, losses and rows are those of the published code (locuslab/TCN), sizes and learning rates those of the paper. A
fixed set of training rows is read repeatedly in one order, 32 rows a step; the loss on 1,000 held-out rows is printed
during the training. The published code clips gradients before it computes them, which has no effect; here they are
clipped as the paper says. The learning rate is constant; with --decay it falls linearly to zero.

- adding: the inputs are T random numbers, two of them marked; the target after the last is the sum of the marked ones.
  The loss is the mean squared error, 0.167 for a constant prediction of 1.
- copy: the inputs are ten symbols, T - 1 blanks and eleven signals; the targets after the signals are the symbols. The
  loss is the mean cross-entropy over all T + 20 positions, nearly all of them blank: 0.0204 (10 ln 8 / 1020) for a
  model
  that knows the positions of the symbols but not the symbols.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from bakeoff.machine.capacity import processor_name
from bakeoff.models.blocks.tcn import TcnBlockConfig
from bakeoff.models.context import BuildContext, Context
from bakeoff.models.stack import Stack, StackConfig
from bakeoff.optimization.schedules import ConstantConfig, LinearConfig
from bakeoff.resources.device import resolve_device

BATCH, HELD_OUT = 32, 1000
LEVELS, KERNEL = 8, 8
SYMBOLS = 10


def adding_rows(rows: int, length: int, generator: Generator) -> tuple[Tensor, Tensor]:
    """(B, T, 2) numbers in [0, 1) and marks, and (B, 1) sums of the two marked numbers."""
    numbers = torch.rand(rows, length, generator=generator)
    first = torch.randint(length, (rows, 1), generator=generator)
    second = (first + torch.randint(1, length, (rows, 1), generator=generator)) % length
    marked = torch.cat([first, second], dim=1)
    marks = torch.zeros(rows, length).scatter_(1, marked, 1.0)
    return torch.stack([numbers, marks], dim=-1), numbers.gather(1, marked).sum(1, keepdim=True)


def copy_rows(rows: int, length: int, generator: Generator) -> tuple[Tensor, Tensor]:
    """(B, T + 20, 1) symbols 1 to 8, blanks (0) and signals (9) as numbers, and (B, T + 20) target classes."""
    symbols = torch.randint(1, 9, (rows, SYMBOLS), generator=generator)
    blanks = symbols.new_zeros(rows, length - 1)
    signals = symbols.new_full((rows, SYMBOLS + 1), 9)
    classes = torch.cat([symbols.new_zeros(rows, SYMBOLS + length), symbols], dim=1)
    return torch.cat([symbols, blanks, signals], dim=1).float()[..., None], classes


def last_state(stack: Stack, x: Tensor) -> Tensor:
    """(B, O) output at the last position of a stack whose layer l has dilation 2^l, from a stack with dilations of 1.

    From layer l on, the output depends only on positions at a distance that is a multiple of 2^l. The others are left
    out, which takes a quarter of the time.
    """
    for layer in stack.layers:
        for part in layer:
            x, _ = part(x, Context())
        x = x[:, (x.shape[1] - 1) % 2 :: 2]
    return x[:, -1]


def adding_loss(stack: Stack, output: nn.Linear, x: Tensor, y: Tensor) -> Tensor:
    return F.mse_loss(output(last_state(stack, x)), y)


def copy_loss(stack: Stack, output: nn.Linear, x: Tensor, y: Tensor) -> Tensor:
    return F.cross_entropy(output(stack(x, Context())[0]).flatten(0, 1), y.flatten())


@dataclass(frozen=True)
class Task:
    """One of the two tasks, with the paper's settings and results."""

    rows: Callable[[int, int, Generator], tuple[Tensor, Tensor]]
    loss: Callable[[Stack, nn.Linear, Tensor, Tensor], Tensor]
    length: int
    train_rows: int
    inputs: int
    width: int
    outputs: int
    dilation: int | None
    optimizer: Callable[[list[nn.Parameter]], torch.optim.Optimizer]
    clip: float | None
    steps: int
    published_parameters: str
    published_loss: float

    def build(self) -> tuple[Stack, nn.Linear]:
        """The stack and the linear layer on top of it."""
        block = TcnBlockConfig(kernel=KERNEL, width=self.width, dilation=self.dilation)
        place = BuildContext(width=self.inputs, causal=True, dropout=0.0)
        stack = StackConfig(width=self.inputs, layers=LEVELS, block=block).build(place)
        output = nn.Linear(self.width, self.outputs)
        nn.init.normal_(output.weight, std=0.01)  # as the code does
        return stack, output


TASKS = {
    "adding": Task(
        rows=adding_rows,
        loss=adding_loss,
        length=600,
        train_rows=50_000,
        inputs=2,
        width=24,
        outputs=1,
        dilation=1,  # `last_state` makes it 2^l
        optimizer=lambda parameters: torch.optim.Adam(parameters, lr=2e-3),
        clip=None,
        steps=15_630,  # ten epochs, as the code
        published_parameters="70K",
        published_loss=5.8e-5,
    ),
    "copy": Task(
        rows=copy_rows,
        loss=copy_loss,
        length=1000,
        train_rows=10_000,
        inputs=1,
        width=10,
        outputs=10,
        dilation=None,
        optimizer=lambda parameters: torch.optim.RMSprop(parameters, lr=5e-4),
        clip=1.0,
        steps=4000,
        published_parameters="13K",
        published_loss=3.5e-5,
    ),
}


def train(task: Task, length: int, steps: int, decay: bool, every: int, seed: int) -> None:
    """Train, and print the held-out loss after every `every` steps and after the last."""
    generator = Generator().manual_seed(seed)
    torch.manual_seed(seed)
    stack, output = task.build()
    parameters = [*stack.parameters(), *output.parameters()]
    print(f"{sum(p.numel() for p in parameters):,} parameters (the paper: {task.published_parameters})")
    optimizer = task.optimizer(parameters)
    schedule = LinearConfig() if decay else ConstantConfig()
    rate = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: schedule.factor(step, steps))
    x, y = task.rows(task.train_rows, length, generator)
    held_out = list(zip(*(part.split(100) for part in task.rows(HELD_OUT, length, generator)), strict=True))
    batches = list(zip(x.split(BATCH), y.split(BATCH), strict=True))
    best = float("inf")
    began = time.process_time()
    print("| steps | minutes of processor time | training loss | held-out loss | the paper's |\n|---|---|---|---|---|")
    total = torch.zeros(())
    for step in range(1, steps + 1):
        loss = task.loss(stack, output, *batches[(step - 1) % len(batches)])
        optimizer.zero_grad()
        loss.backward()
        if task.clip is not None:
            nn.utils.clip_grad_norm_(parameters, task.clip)
        optimizer.step()
        rate.step()
        total += loss.detach()
        if step % every == 0 or step == steps:
            with torch.inference_mode():
                held = sum(float(task.loss(stack, output, *part)) for part in held_out) / len(held_out)
            best = min(best, held)
            minutes = (time.process_time() - began) / 60
            mean = float(total) / ((step - 1) % every + 1)
            print(f"| {step} | {minutes:.1f} | {mean:.2e} | {held:.2e} | {task.published_loss:.1e} |", flush=True)
            total.zero_()
    print(f"lowest {best:.2e}, which is {best / task.published_loss:.2f} of the paper's")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("task", choices=list(TASKS))
    parser.add_argument("--steps", type=int)
    parser.add_argument("--decay", action="store_true", help="let the learning rate fall linearly to zero")
    parser.add_argument("--every", type=int, default=500, help="steps between two evaluations on the held-out rows")
    parser.add_argument("--length", type=int, help="T, the paper's where absent")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    resolve_device("cpu")  # flushes denormals
    print(f"{processor_name()}, {torch.get_num_threads()} threads, torch {torch.__version__}")
    task = TASKS[options.task]
    length, steps = options.length or task.length, options.steps or task.steps
    train(task, length, steps, options.decay, options.every, options.seed)


if __name__ == "__main__":
    main()
