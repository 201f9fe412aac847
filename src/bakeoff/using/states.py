"""What the layers of a run in memory compute: logits, hidden states, and vectors of texts and of words.

Shapes: N texts or rows, T length, D width, V vocabulary, W words of a text.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from bakeoff.batching.batch import asked_everywhere
from bakeoff.errors import UserError
from bakeoff.objectives.heads import logits
from bakeoff.reading.text_files import in_memory
from bakeoff.row import Row
from bakeoff.tokenizer.stretches import Per
from bakeoff.using.rows import Ids
from bakeoff.using.weights import LoadedWeights
from bakeoff.vectors.embed import vectors_of
from bakeoff.vectors.layer_states import layer_index, layer_states
from bakeoff.vectors.options import VectorConfig
from bakeoff.vectors.word_vectors import WordVectors, word_vectors


class LoadedStates(LoadedWeights):
    """A run in memory, with the methods of `LoadedRun` that give numbers of its layers."""

    def logits(self, ids: Ids, segments: Ids | None = None, *, source: Ids | None = None) -> Tensor:
        """The logits of every token of the vocabulary at each position.

        A model that predicts hidden tokens scores the token at the position. A model that predicts next tokens, or
        hidden tokens from the position before (mntp), scores the token after the position. A model with two directions
        is read forwards. With several objectives, the head of the first that predicts tokens is used, of those
        that were trained until the end.

        Args:
            ids: (N, T) ids, an array or a tensor, or N lists of any lengths. `tokenizer.pad` at the end of an array's
                row is padding; lists are padded with it. Special tokens are not added: a row for a BERT begins with
                `tokenizer.start` and ends with `tokenizer.separator`.
            segments: the segment of each token, in the shape of `ids`; None: 0 everywhere.
            source: for a sequence-to-sequence model the N rows that its encoder reads; `ids` are then the decoder's.

        Returns:
            (N, T, V) float32 on the run's device, T being the longest row; zeros at padding. V includes the tokens that
            an objective has in addition to the tokenizer's.

        Raises:
            UserError: the run is fine-tuned, or no objective predicts tokens; ids are outside of the vocabulary, or
                more than the model's positions; a sequence-to-sequence model has no source, or another model has one.
        """
        run, module = self._require_pretrained("logits")
        named = next((each for each in run.recipe.trained_first if each.token_targets), None)
        if named is None:
            raise UserError(f"{self.path}: no objective of this run predicts tokens")
        if self.recipe.model.sequence_to_sequence != (source is not None):
            needs = "reads a source; give source" if source is None else "has no source; leave it out"
            raise UserError(f"{self.path}: this model {needs}")

        def read(row: Row[Tensor]) -> Tensor:
            batch = asked_everywhere(row, named.kind)
            scores: Tensor = module(batch, score=logits)[0][named.kind]
            return scores.float().view(*row.ids.shape, -1)

        return self._rows.read(ids, segments, read, source)

    def hidden(self, ids: Ids, layer: int = -1, segments: Ids | None = None) -> Tensor:
        """The hidden states of a layer.

        Args:
            ids: as for `logits`.
            layer: 0 for the input of the first layer, 1 for its output, ..., -1 for the output of the last layer, with
                the final norm.
            segments: as for `logits`.

        Returns:
            (N, T, D) float32 on the run's device; zeros at padding. For a model with two directions the states of both
            are concatenated; for a model with an encoder and a decoder they are the encoder's.

        Raises:
            UserError: there is no such layer, or `ids` are invalid as in `logits`.
        """
        config = self.recipe.model
        stack = config.encoder if config.sequence_to_sequence else config.stack
        assert stack is not None
        index = layer_index(layer, stack.layers, str(self.path))
        return self._rows.read(ids, segments, lambda row: layer_states(self._model, row, [index])[0].float())

    def embed(
        self,
        texts: Sequence[str],
        pooling: Literal["mean", "cls", "last", "max"] | None = None,
        *,
        layers: Sequence[int] | None = None,
        length: int | None = None,
    ) -> NDArray[np.float32]:
        """(N, D) vectors of texts, those of `bakeoff.embed`.

        Args:
            texts: N texts.
            pooling: mean or max over all tokens of a row; cls for the state at [CLS]; last for that at the last token;
                None: that for which `contrast` has taught the run, else mean.
            layers: the layers whose outputs are pooled; those of several layers are averaged; None: those that
                `contrast` has taught the run, where no pooling is named, else the last.
            length: the largest length of a row in tokens; None: as in pre-training, or in fine-tuning.

        Raises:
            UserError: there is no such layer, or the run has no state for the pooling.
        """
        config = VectorConfig.parse({"pooling": pooling, "layers": layers, "length": length}, "embed")
        return vectors_of(self.embedder(config), [text for (text,) in in_memory(texts)])[0]

    def embed_words(
        self, texts: Sequence[str], per: Per = "word", *, layers: Sequence[int] = (-1,), length: int | None = None
    ) -> list[WordVectors]:
        """The vectors of the words of each text, or of its tokens, in their context, those of `embed --per`.

        Args:
            texts: N texts.
            per: word or token.
            layers: the layers whose outputs are taken; those of several layers are averaged.
            length: the largest length of a row in tokens, as for `embed`; longer texts are read in windows.

        Returns:
            For each text its `words`, with `text`, `start` and `end` in the raw text and the number of
            `tokens`, and their `vectors`, (W, D): the mean of the states of a word's tokens.

        Raises:
            UserError: there is no such layer.
        """
        config = VectorConfig.parse({"pooling": "mean", "layers": layers, "length": length}, "embed_words")
        return word_vectors(self.embedder(config), [text for (text,) in in_memory(texts)], per)
