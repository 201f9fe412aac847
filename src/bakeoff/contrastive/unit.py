"""What `contrast` trains, as the loop of all trainings sees it: batches of two views of each text, and their loss.

Shapes: N texts of a batch, B texts of a micro-batch, T length, D width.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils._pytree import tree_map_only
from typing_extensions import override

from bakeoff.contrastive.loss import alignment, contrastive_losses, partners_first, uniformity
from bakeoff.contrastive.setting import Setting, ViewBatch
from bakeoff.contrastive.texts import TokenTexts, rare_tokens
from bakeoff.contrastive.views import Views, same_texts
from bakeoff.display.wording import number as in_words
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.machine.transfer import pinned
from bakeoff.randomness.draws import key_of
from bakeoff.randomness.order import examples_of, shuffle
from bakeoff.randomness.seeding import seed_torch
from bakeoff.row import Row
from bakeoff.scoring.token_scores import batches
from bakeoff.tasks.rows.batches import collate
from bakeoff.trainer.position import Position
from bakeoff.trainer.step import NORM, step_seed
from bakeoff.trainer.unit import SPARE, Evaluation, Unit
from bakeoff.training.pretraining import TRAIN_LINES, validation_steps
from bakeoff.vectors.layer_states import common_width, layer_index, pooled_stack, text_states
from bakeoff.vectors.taught import Taught
from bakeoff.vectors.whitening import whitening

CONTRAST = "contrast"
"""The name of the loss."""

WHITENED, FEWEST_WHITENED = 20_000, 2
"""The most texts to which the whitening is fitted, and the fewest for each number of a vector."""

ROWS_AT_ONCE = 64
"""The number of held-out texts whose views go through the model at once."""


class Contrast(Unit[ViewBatch]):
    """A model that learns to tell the views of a text from those of the other texts of its batch.

    A batch that is cut into micro-batches, on one or several processes, has the loss of the whole batch: the vectors of
    all are computed first, and each micro-batch then has its part of the gradient (Gao et al. 2021, GradCache,
    arXiv:2101.06983, section 3).

    Args:
        module: the run's model with the heads of its objectives, which are left as they are, on the device.
        setting: what was decided.

    Attributes:
        last: the line of the last evaluation; empty before the first one.
        width: D, the width of the vectors.
        taught: how states become vectors, before they are whitened.
    """

    module: PretrainingModel

    def __init__(self, module: PretrainingModel, setting: Setting) -> None:
        config = setting.config
        assert config.learning_rate is not None
        assert config.pooling is not None
        self.module, self.setting, self.config, self.title = module, setting, config, setting.title
        self.seed, self.placement, self.processes = setting.seed, setting.placement, setting.processes
        self.steps, self.clip = setting.steps, config.clip
        weighted = config.pooling == "mean" and config.rare > 0
        weights = rare_tokens(setting.texts, setting.format.tokenizer, config.rare) if weighted else None
        self.taught = Taught(config.pooling, config.layers, weights).to(setting.placement.device)
        self.optimizer = config.optimizer_at(config.learning_rate).build(module, setting.placement.precision)
        self.learning_rate, self.average = config.learning_rate, config.average
        self.schedule = config.schedule_of(self.steps)
        self.evaluations = set(validation_steps(config.evaluations, self.steps))
        self.views = Views(config, setting.format.room)
        depth = pooled_stack(module.model.config).layers
        self.layers = sorted({layer_index(layer, depth, setting.title) for layer in config.layers})
        self.width = common_width(module.model.config, self.layers, setting.title)
        self.batch = min(config.batch, setting.texts.train.count)
        self.last: dict[str, Any] = {}
        self._log_every = max(1, self.steps // TRAIN_LINES)
        self._coming: Sequence[ViewBatch] = ()
        self._gradients: Tensor | None = None
        self._values: Tensor | None = None

    @property
    @override
    def over(self) -> bool:
        return False

    @property
    @override
    def how_to_go_on(self) -> str:
        return "the same command with --resume goes on"

    @override
    def batches(self, step: int) -> list[ViewBatch]:
        texts = self.setting.texts.train
        indices, epochs = examples_of(step * self.batch, self.batch, texts.count, self.seed)
        rows = self.views(texts, indices, epochs, self.seed)
        same = torch.from_numpy(same_texts(indices, *rows))
        size = self.config.micro_batch or self.batch
        share = self.processes.share(-(-self.batch // size))
        return [
            self._micro_batch(rows, same, np.arange(number * size, min(self.batch, (number + 1) * size)), number)
            for number in share
        ]

    def _micro_batch(
        self, rows: Sequence[Sequence[NDArray[np.int64]]], same: Tensor, places: NDArray[np.int64], number: int
    ) -> ViewBatch:
        """The views of the texts at some places of the whole batch."""
        encoded = self.setting.format.framed([side[place] for side in rows for place in places])
        row = collate(encoded, np.arange(len(encoded.ids)), self.setting.format)
        row = tree_map_only(Tensor, partial(pinned, device=self.placement.device), row)
        return ViewBatch(row, torch.from_numpy(places), same, int(encoded.lengths.sum()), number)

    @override
    def counts(self, micro_batches: Sequence[ViewBatch]) -> dict[str, float]:
        self._coming = micro_batches
        return {CONTRAST: float(sum(len(each.places) for each in micro_batches))}

    @override
    def enter(self, step: int) -> None:
        """Compute the vectors of a batch that is cut, and the gradient of its loss in each of them."""
        self._gradients = None
        if self.processes.alone and len(self._coming) == 1:
            return
        device, same = self.placement.device, self._coming[0].same.to(self.placement.device)
        vectors = torch.zeros(2, len(same), self.width, device=device)
        for batch in self._coming:
            seed_torch(step_seed(self.seed, step, batch.number), device)  # as before the pass that follows
            with self.distribution.passing(counts=False):
                made = self.vectors(batch.row).detach()  # not under no_grad, where rows are packed and dropout differs
            vectors[:, batch.places.to(device)] = made.unflatten(0, (2, -1))
        self.processes.sum([vectors])
        vectors.requires_grad_(True)
        values = contrastive_losses(vectors[0], vectors[1], same, self.config.temperature)
        (self._gradients,) = torch.autograd.grad(values.sum(), vectors)
        self._values = values.detach()

    def vectors(self, row: Row[Tensor]) -> Tensor:
        """(2 B, D) float32 vectors of rows, those of `embed`."""
        with self.placement.autocast():
            states, mask = text_states(
                self.module.model, row.to(self.placement.device), self.layers, self.setting.reads_both_sides
            )
        ids = row.ids[:, 1:] if self.module.model.config.sequence_to_sequence else row.ids
        ids = ids.to(self.placement.device)
        mean = torch.stack(states).float().mean(0) if len(states) > 1 else states[0].float()
        return self.taught.vectors(mean, ids, mask, self.setting.format.start_last)

    @override
    def losses(self, batch: ViewBatch, counts: dict[str, float]) -> dict[str, Tensor]:
        device = self.placement.device
        vectors = self.vectors(batch.row).unflatten(0, (2, -1))  # (2, B, D)
        if self._gradients is None or self._values is None:
            losses = contrastive_losses(vectors[0], vectors[1], batch.same.to(device), self.config.temperature)
            return {CONTRAST: losses.sum() / counts[CONTRAST]}
        places = batch.places.to(device)
        part = (vectors * self._gradients[:, places]).sum()  # its gradient is the loss's
        total = part - part.detach() + self._values[places].sum()
        return {CONTRAST: total / counts[CONTRAST]}

    @override
    def spare(self, micro_batches: Sequence[ViewBatch]) -> ViewBatch:
        return micro_batches[-1]._replace(number=SPARE)

    @override
    def weights(self, step: int) -> dict[str, float]:
        return {CONTRAST: 1.0}

    @override
    def of_schedule(self, step: int) -> float:
        return self.schedule.factor(step, self.steps)

    @override
    def flops(self, step: int) -> int:
        return self.module.flops_per_token()

    @override
    def logs(self, step: int) -> bool:
        return step % self._log_every == 0 or step == self.steps

    @override
    def log(self, position: Position) -> dict[str, Any]:
        means = position.means()
        norm = means.pop(NORM)
        return {
            "kind": "train",
            **self._counters(position),
            "loss": means[CONTRAST],
            "losses": means,
            "gradient_norm": norm,
            "learning_rate": self.learning_rate * self.factor(position.step - 1),
            "tokens_per_second": round(position.since_tokens / position.since_seconds, 1),
        }

    def _counters(self, position: Position) -> dict[str, Any]:
        counters = position.counters(0.0)
        return {name: value for name, value in counters.items() if name != "words"} | {"steps": self.steps}

    @override
    def evaluate(self, position: Position) -> Evaluation:
        figures = self.measured()
        self.require_finite({"held-out loss": figures["loss"]}, position.step)
        self.last = {"kind": "validation", **self._counters(position), **figures}
        share = 100 * figures["accuracy"][CONTRAST]
        return Evaluation(self.last, f"held-out {in_words(figures['loss'], 3)}, partners first {share:.1f} %")

    @torch.no_grad()
    def measured(self) -> dict[str, Any]:
        """The figures of the held-out texts, whose views are always the same, as metrics.jsonl has them.

        The loss is that of all held-out texts in one batch; `accuracy` is the share of views whose nearest among the
        views of the other side is their own text's.
        """
        self.module.eval()
        held_out: TokenTexts = self.setting.texts.held_out
        indices = np.arange(held_out.count)
        rows = self.views(held_out, indices, np.zeros_like(indices), self.seed, "held-out ")
        same = torch.from_numpy(same_texts(indices, *rows)).to(self.placement.device)
        parts = []
        for begin in range(0, len(indices), ROWS_AT_ONCE):
            batch = self._micro_batch(rows, same, indices[begin : begin + ROWS_AT_ONCE], 0)
            parts.append(self.vectors(batch.row).unflatten(0, (2, -1)))
        first, second = torch.cat(parts, dim=1)
        loss = float(contrastive_losses(first, second, same, self.config.temperature).mean())
        return {
            "loss": loss,
            "losses": {CONTRAST: loss},
            "accuracy": {CONTRAST: float(partners_first(first, second, same).mean())},
            "perplexity": {},
            "bits_per_byte": {},
            "alignment": float(alignment(first, second)),
            "uniformity": float(uniformity(first)),
        }

    @property
    def fewest_whitened(self) -> int:
        """The fewest texts of which the vectors are whitened."""
        return FEWEST_WHITENED * self.width

    @torch.no_grad()
    def whitened(self) -> Taught:
        """What is taught, with the linear layer that whitens the vectors of texts, if there are enough of them.

        It is fitted to `WHITENED` texts at most, each cut to a row.
        """
        self.module.eval()
        meant = self.setting.texts.meant
        if not self.config.whiten or meant.count < self.fewest_whitened:
            return self.taught
        order = shuffle(meant.count, key_of(self.seed, 0, "whitened texts"))[:WHITENED]
        encoded = self.setting.format.framed([meant[int(index)][: self.setting.format.room] for index in order])
        vectors = np.empty((len(order), self.width), np.float32)
        for rows in batches(encoded.lengths, self.placement.device):
            row = collate(encoded, np.array(rows), self.setting.format)
            vectors[rows] = self.vectors(row).cpu().numpy()
        mean, matrix = whitening(vectors)
        weight, bias = (torch.from_numpy(each).float().contiguous() for each in (matrix.T, -mean @ matrix))
        return self.taught._replace(weight=weight, bias=bias)

    @override
    def diverged(self, name: str, step: int) -> str:
        return (
            f"{self.title}: {name} is not a finite number at step {step}; try a lower learning_rate, a longer warm-up, "
            "or a run whose training.precision is float32"
        )

    @override
    def state(self) -> dict[str, Any]:
        return {}

    @override
    def tensors(self) -> dict[str, dict[str, Tensor]]:
        return {}

    @override
    def load(self, checkpoint: Path, state: dict[str, Any], lines: Sequence[dict[str, Any]]) -> None:
        self.last = next((line for line in reversed(lines) if line["kind"] == "validation"), {})
