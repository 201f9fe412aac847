"""The memory of a training, counted with tensors that have shapes and no content."""

import contextlib
from collections.abc import Callable, Iterator
from functools import cached_property
from operator import attrgetter

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._pytree import tree_leaves

from bakeoff.config import Config
from bakeoff.learner.pretraining_model import PretrainingModel, build_on_meta
from bakeoff.models.part import ModelState
from bakeoff.objectives.heads import Head, TokenHead, UntiedTokenHead
from bakeoff.objectives.masking import MaskingConfig
from bakeoff.objectives.mlm import MaskedLanguageModelConfig
from bakeoff.ops import linear_cross_entropy
from bakeoff.recipe import Recipe
from bakeoff.resources.device import autocast, resolve_precision
from bakeoff.resources.full_batch import Storages, full_batch
from bakeoff.resources.gpu_stand_in import META, GpuStandIn

BYTES_PER_NUMBER = 4
"""Bytes of a number: weights, gradients and the optimizer's moments are float32."""

MOST_ROWS = 32
"""Largest number of rows at once that is assumed for a recipe without `micro_batch`; larger batches can be divided."""


class MemoryNeed(Config):
    """Peak memory of a training in bytes, reached between forward and backward pass or in the optimizer's step."""

    rows: int
    """Number of rows that go through the model at once."""
    device: str
    """The kind of device; operations on a CPU differ from those on a GPU, and keep more."""
    precision: str
    """The precision of activations, float32 or bfloat16."""
    weights: int
    """Bytes of the parameters."""
    gradients: int
    """Bytes of the gradients."""
    optimizer: int
    """Bytes of the optimizer's state, and of a running average of the weights."""
    activations: int
    """Bytes that the forward pass keeps for the backward pass, for full rows without padding, without compilation.

    The memory that oneDNN keeps inside an LSTM on a CPU is missing: the figure is a half to a third of the real need.
    """

    remembered: int
    """Bytes of the memories of all rows of a batch that continue other rows, other micro-batches included."""

    update: int = 0
    """Bytes that the optimizer's step needs temporarily, when activations are freed."""

    @property
    def total(self) -> int:
        """The sum in bytes, without the temporary memory of single operations."""
        lasting = self.weights + self.gradients + self.optimizer + self.remembered
        return lasting + max(self.activations, self.update)


def largest(most: int, fits: Callable[[int], bool]) -> int:
    """The largest number up to `most` that fits, where all smaller ones do; 0: none."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low


@contextlib.contextmanager
def counting(device: torch.device, precision: str, fake: FakeTensorMode) -> Iterator[None]:
    """A context in which operations are those of a device, without content.

    Args:
        device: a GPU need not be there: its operations are those of meta tensors. Other devices' depend on what torch
            chooses there.
        precision: float32 or bfloat16.
        fake: the mode of all tensors that are counted together, where the device is no GPU.
    """
    if device.type == "cuda":
        with GpuStandIn(precision):
            yield
    else:
        with fake, autocast(device, precision):
            yield


class MemoryCount:
    """The memory of a training for any number of rows at once.

    Args:
        recipe: the recipe.
        vocabulary: the number of tokens.
        device: its kind decides which operations are counted; a GPU need not be there.
        precision: float32 or bfloat16; None: the recipe's on that device.
    """

    def __init__(self, recipe: Recipe, vocabulary: int, device: torch.device, precision: str | None = None) -> None:
        self.device = device
        self.precision = precision or resolve_precision(recipe.training.precision, device)
        self.recipe = max((recipe.at(0.0), recipe.at(1.0)), key=_predicted)
        self.module = build_on_meta(self.recipe, vocabulary).train()
        # A GPU's operations on meta tensors need no GPU; other devices' depend on what torch chooses there.
        self.on = META if device.type == "cuda" else device
        self._activations: dict[bool, tuple[int, int]] = {}

    def need(self, rows: int) -> MemoryNeed:
        """The memory with `rows` rows at once."""
        training, weights = self.recipe.training, self.module.parameter_count() * BYTES_PER_NUMBER
        return MemoryNeed(
            rows=rows,
            device=self.device.type,
            precision=self.precision,
            weights=weights,
            gradients=weights,
            optimizer=training.optimizer.kept(self.module) * BYTES_PER_NUMBER
            + (0 if training.average is None else weights),
            activations=self._of_activations(rows),
            remembered=self._remembered(rows),
            update=training.optimizer.needed(self._placed) * BYTES_PER_NUMBER,
        )

    def most_rows(self, limit: float, most: int) -> int:
        """The largest number of rows at once, up to `most`, with which a training takes at most `limit` bytes."""
        return largest(most, lambda rows: self.need(rows).total <= limit)

    def reading(self, rows: int) -> int:
        """Bytes of the activations where `rows` rows are only read: those of one layer, which the next one replaces."""
        models = [each for each in (self.module.model, self.module.generator) if each is not None]
        return self._of_activations(rows) // sum(
            len(stack.layers) for each in models for stack in each.stacks().values()
        )

    @cached_property
    def _placed(self) -> PretrainingModel:
        """The module where it is counted."""
        with self._there():
            return self.module if self.on == META else self.module.to_empty(device=self.on)

    @contextlib.contextmanager
    def _there(self) -> Iterator[None]:
        with counting(self.device, self.precision, self._fake):
            yield

    @cached_property
    def _fake(self) -> FakeTensorMode:
        return FakeTensorMode(allow_non_fake_inputs=True)

    def _of_activations(self, rows: int) -> int:
        """Bytes that are held after the forward pass of `rows` rows.

        They are extrapolated from two and three rows: some operations loop over rows, and the constant part must not be
        scaled. Scores that are made in chunks are not held; those of a chunk, and their gradient, are counted.
        """
        scores = self._scores_of_a_row
        chunked = rows * scores > linear_cross_entropy.MOST_SCORES
        if chunked not in self._activations:
            with linear_cross_entropy.most_scores(round(scores) if chunked else 1 << 62):
                held = [self._held(count) for count in (2, 3)]
                if self.recipe.training.activation_checkpointing:
                    held = [each + extra for each, extra in zip(held, self._of_one_layer(held), strict=True)]
            self._activations[chunked] = held[0], held[1] - held[0]
        two, more = self._activations[chunked]
        chunk = 2 * BYTES_PER_NUMBER * linear_cross_entropy.MOST_SCORES if chunked else 0
        return two + (rows - 2) * more + chunk

    def _of_one_layer(self, inputs: list[int]) -> list[int]:
        """Bytes of the layer that the backward pass applies anew, where two and three rows hold the layers' inputs."""
        models = [each for each in (self.module.model, self.module.generator) if each is not None]
        stacks = [stack for each in models for stack in each.stacks().values()]
        for stack in stacks:
            stack.recomputed = False
        whole = [self._held(count) for count in (2, 3)]
        for stack in stacks:
            stack.recomputed = True
        layers = sum(len(stack.layers) for stack in stacks)
        return [(each - kept) // layers for each, kept in zip(whole, inputs, strict=True)]

    @cached_property
    def _scores_of_a_row(self) -> float:
        """The expected number of scores of a row, in the head that makes most of those that may be made in chunks."""
        shares, length = self.module.targets_per_token(), self.module.row_lengths[1]
        large = [
            shares.get(each.name, 0.0)  # of an objective that other stages train, none
            for each in self.module.objectives
            if isinstance(each.head, TokenHead | UntiedTokenHead)
        ]
        return max(large, default=0.0) * length * self.module.model.vocabulary

    def _remembered(self, rows: int) -> int:
        """Bytes of the memories of all rows of a batch; with `auto` those before a step are kept, too."""
        training = self.recipe.training
        if not self.recipe.input.continues:
            return 0
        assert isinstance(training.batch, int), "batches by tokens have no streams"
        kept = max(rows, training.batch) * self._remembered_by_two // 2
        return kept * 2 if training.micro_batch == "auto" else kept

    @cached_property
    def _remembered_by_two(self) -> int:
        with self._there():
            state = self._filled_state(2)
        assert state is not None
        return _bytes_of(state)

    def _filled_state(self, rows: int) -> ModelState | None:
        """The state of `rows` rows with full memories; None: rows do not continue each other."""
        if not self.recipe.input.continues:
            return None
        state, before = self._placed.model.start(rows), -1
        batch = full_batch(self.recipe, self._placed, rows, self.on)
        with torch.no_grad():
            while before < (size := _bytes_of(state)):
                state, before = self._placed(batch, state, _usual_loss)[1], size
        return state

    def _held(self, rows: int) -> int:
        """Bytes that a forward pass of so many rows holds."""
        module = self._placed
        with self._there():
            state = self._filled_state(rows)
            with Storages() as made:
                batch = full_batch(self.recipe, module, rows, self.on)
                losses, _ = module(batch, state, _usual_loss)  # which hold what the backward pass needs
                held: int = made.bytes()
            del losses
        return held


def memory_need(recipe: Recipe, vocabulary: int, device: torch.device, rows: int | None = None) -> MemoryNeed:
    """Count the memory of a training with `rows` rows at once, in the stage that needs most.

    None: the recipe's `micro_batch`, or for a recipe without one its batch, but at most `MOST_ROWS`.
    """
    return max((_need_of_stage(each, vocabulary, device, rows) for each in recipe.stages()), key=attrgetter("total"))


def _need_of_stage(recipe: Recipe, vocabulary: int, device: torch.device, rows: int | None) -> MemoryNeed:
    default = recipe.training.rows_at_once(recipe.input.length)
    rows = rows or (default if recipe.training.at_once != recipe.training.batch else min(default, MOST_ROWS))
    return MemoryCount(recipe, vocabulary, device).need(rows)


def _predicted(recipe: Recipe) -> float:
    """The sum of the shares of tokens that are predicted, which may change during the training."""
    shares = [part.rate for part in recipe.objective if isinstance(part, MaskingConfig)]
    causal = any(part.causal > 0 for part in recipe.objective if isinstance(part, MaskedLanguageModelConfig))
    return max(sum(shares), float(causal))


def _bytes_of(state: ModelState) -> int:
    return sum(leaf.nbytes for leaf in tree_leaves(state.layers) if isinstance(leaf, Tensor))


def _usual_loss(head: Head, rows: Tensor, labels: Tensor, table: Tensor) -> Tensor:
    return head.usual_loss(rows, table)
