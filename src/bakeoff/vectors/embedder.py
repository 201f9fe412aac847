"""Vectors of texts: a run's hidden states, pooled over each text's tokens.

Shapes: N texts, B batch, T length, D width, L layers.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bakeoff.errors import UserError
from bakeoff.models.model import Model, ModelConfig
from bakeoff.resources.device import Placement, Precision, resolve_precision
from bakeoff.resources.inference import for_inference
from bakeoff.row import Row
from bakeoff.runs.run import Run
from bakeoff.scoring.token_scores import batches
from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.tasks.heads.heads import pooled
from bakeoff.tasks.pooling import Pooling
from bakeoff.tasks.rows.batches import collate
from bakeoff.tasks.rows.inputs import InputFormat
from bakeoff.vectors.layer_states import common_width, layer_index, layer_width, pooled_stack, text_states
from bakeoff.vectors.options import VectorConfig
from bakeoff.vectors.taught import Taught


def require_poolable(model: ModelConfig, pooling: Pooling, where: str) -> None:
    """Refuse a pooling for which rows of a model have no state.

    Raises:
        UserError: it is one; the message names `where`.
    """
    if pooling == "cls" and (model.encoder is None or model.sequence_to_sequence):
        kind = "sequence-to-sequence" if model.sequence_to_sequence else "causal"
        raise UserError(f"{where}: rows of a {kind} model have no [CLS]; pool by mean, max or last")


class Embedder:
    """A function from texts to float32 vectors; a vector depends on the other texts by rounding alone.

    Rows are those of fine-tuning: [CLS] A [SEP], or [SEP] A for a decoder. Texts are read as those of a corpus are. For
    a model with an encoder and a decoder, the encoder's states are pooled (Ni et al. 2022, arXiv:2108.08877, section
    3).

    Args:
        run: a pre-trained run, or a fine-tuned run, whose head is not used.
        config: how a text becomes a vector.
        device: auto, cpu, cuda or mps.
        loaded: the run's model if it is loaded already, in the precision; None: load it to the device.
        precision: auto, float32 or bfloat16, the precision of products.

    Attributes:
        width: D, the width of the vectors.
        pooling: how token vectors become one vector: the config's, else that of the run's vectors, else mean.
        taught: how states become vectors: as `contrast` has taught the run, unless the config names another pooling or
            other layers.
        model: the model.
        device: the device of the weights.
        hides_first: whether rows are read without their first token, [CLS], as those of an encoder with a decoder are.

    Raises:
        UserError: there is no such run or layer, the model has no positions for the length, the layers differ in width,
            or the run has no state for the pooling.
    """

    def __init__(
        self,
        run: str | Path | Run | FinetunedRun,
        config: VectorConfig,
        device: str = "auto",
        loaded: Model | None = None,
        precision: Precision = "float32",
    ) -> None:
        if not isinstance(run, Run | FinetunedRun):
            run = FinetunedRun.open(run) if FinetunedRun.at(run) else Run.open_trained(run)
        self.taught = Taught(config.pooling or "mean", (-1,) if config.layers is None else config.layers)
        if config.pooling is None and config.layers is None:
            self.taught = Taught.of(run) or self.taught
        self.path, self.config, opened = run.path, config, run
        self.pooling: Pooling = self.taught.pooling
        finetuned = run if isinstance(run, FinetunedRun) else None
        recipe = opened.recipe
        length = config.length
        if length is None:
            length = recipe.input.length if finetuned is None else finetuned.format().length
        self.format = InputFormat(opened.tokenizer, recipe, length)
        model = recipe.model
        self.hides_first = model.sequence_to_sequence
        self._reads_both_sides = recipe.reads_both_sides
        self._depth = pooled_stack(model).layers
        self._layers = sorted({layer_index(layer, self._depth, str(self.path)) for layer in self.taught.layers})
        if not self._layers:
            raise UserError("layers: give at least one")
        require_poolable(model, self.pooling, str(self.path))
        if loaded is None:
            placement = Placement.of(device, precision)
            loaded = for_inference(opened.load(placement.device).model, placement)
        self.model: Model = loaded
        self.device = self.model.device
        self._placement = Placement(self.device, resolve_precision(precision, self.device))
        self.width = common_width(model, self._layers, str(self.path))
        self.taught = self.taught.to(self.device)

    def __call__(self, texts: Sequence[str]) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """(N, D) vectors, and (N,) True for texts that were cut; texts of similar length share a batch.

        Raises:
            UserError: a vector has a number that is not finite.
        """
        ids = self.format.ids(texts)
        cut = np.array([len(each) > self.format.room for each in ids], bool)
        vectors = np.empty((len(texts), self.width), np.float32)
        for rows, batch in self._batches(ids):
            vectors[rows] = self._embed(batch).cpu().numpy()
        self.require_finite(vectors)
        return vectors, cut

    def of_each_layer(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        """The (N, D) vectors of every layer, the input of the first one first, whatever the config's layers are.

        Raises:
            UserError: a vector has a number that is not finite.
        """
        layers = range(self._depth + 1)
        vectors = [np.empty((len(texts), layer_width(self.model.config, layer)), np.float32) for layer in layers]
        for rows, batch in self._batches(self.format.ids(texts)):
            states, padding_mask = self._states(batch, layers)
            for of_layer, state in zip(vectors, states, strict=True):
                of_layer[rows] = self._pooled(state.float(), padding_mask).cpu().numpy()
        for of_layer in vectors:
            self.require_finite(of_layer)
        return vectors

    def _batches(self, ids: Sequence[NDArray[np.int64]]) -> Iterator[tuple[list[int], Row[Tensor]]]:
        """The numbers of the texts of each batch, and its rows."""
        encoded = self.format.framed(ids)
        for rows in batches(encoded.lengths, self.device):
            yield rows, collate(encoded, np.array(rows), self.format).to(self.device)

    def require_finite(self, vectors: NDArray[np.float32]) -> None:
        """Refuse vectors with numbers that are not finite.

        Raises:
            UserError: there is one.
        """
        if not np.isfinite(vectors).all():
            raise UserError(f"{self.path}: a vector has numbers that are not finite; are the run's weights damaged?")

    def _embed(self, batch: Row[Tensor]) -> Tensor:
        """(B, D) vectors of a batch."""
        ids = batch.ids[:, 1:] if self.hides_first else batch.ids
        states, padding_mask = self.states(batch)
        return self.taught.vectors(states, ids, padding_mask, self.format.start_last)

    def _pooled(self, states: Tensor, padding_mask: Tensor) -> Tensor:
        """(B, D) vectors of (B, T, D) states."""
        return pooled(states, padding_mask, self.pooling, self.format.start_last)

    def states(self, batch: Row[Tensor]) -> tuple[Tensor, Tensor]:
        """(B, T, D) states of a batch, the mean of the config's layers, and (B, T) True where no padding is."""
        states, padding_mask = self._states(batch, self._layers)
        return torch.stack(states).float().mean(0) if len(states) > 1 else states[0].float(), padding_mask

    @torch.inference_mode()
    def _states(self, batch: Row[Tensor], layers: Sequence[int]) -> tuple[list[Tensor], Tensor]:
        """(B, T, D) states of a batch after each of some layers, and (B, T) True where no padding is."""
        with self._placement.autocast():
            return text_states(self.model, batch, layers, self._reads_both_sides)
