"""A run in memory, and everything that it can be asked for.

Shapes: N texts or rows, T length, D width, V vocabulary.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any, Literal, overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bakeoff.errors import UserError
from bakeoff.inference.generate import PROMPTS_AT_ONCE, PromptWriter
from bakeoff.inference.generation import GenerationConfig
from bakeoff.inference.scoring import TextScore, TextScores
from bakeoff.inference.text_files import Texts, in_memory, read_ahead
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.models.inputs import Inputs, Source
from bakeoff.recipe import Recipe
from bakeoff.resources.device import resolve_device
from bakeoff.runs.run import Run
from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.tasks.heads.heads import Head
from bakeoff.tasks.predict import Predicted, answer, require_sides
from bakeoff.tokenizer.tokenizer import Tokenizer
from bakeoff.using.attribution import TokenWeights, weights_of_tokens
from bakeoff.using.capabilities import Capability, capabilities_of
from bakeoff.using.filling import Filled, Filler
from bakeoff.using.rows import Ids, in_batches, lists_of, padded_ids, real_lengths
from bakeoff.vectors.embed import vectors_of
from bakeoff.vectors.embedder import Embedder, EmbeddingConfig
from bakeoff.vectors.layer_states import layer_states, place_of_layer


class LoadedRun:
    """A run whose weights are loaded once; `bakeoff.load` makes it.

    Its methods change nothing: any number of threads may call any of them at the same time, and each gets what it would
    get alone. An iterator that `stream` gives belongs to one thread. Texts and rows of similar length go through the
    model together, whatever their order, and memory beyond the results does not grow with their number.

    Everything is computed in float32, without gradients, on the run's device; tensors that come out are there.

    Args:
        run: a pre-trained or a fine-tuned run.
        device: auto, cpu, cuda or mps.

    Attributes:
        path: the run's directory.
        device: where its weights are.
    """

    def __init__(self, run: Run | FinetunedRun, device: str = "auto") -> None:
        self.path: Path = run.path
        self.device = resolve_device(device)
        self._run = run
        self._pretrained: tuple[Run, PretrainingModel] | None = None
        self._finetuned: tuple[FinetunedRun, Head] | None = None
        if isinstance(run, FinetunedRun):
            head = run.load(self.device).requires_grad_(False)
            self._finetuned, self._model = (run, head), head.model
            # What is read once and kept is read now, and not by several threads at once.
            run.learned, run.config, run.task  # noqa: B018
        else:
            module = run.load(self.device).requires_grad_(False)
            self._pretrained, self._model = (run, module), module.model
        self.tokenizer: Tokenizer = run.tokenizer
        """The run's tokenizer: `encode` gives ids of texts, `decode` texts of ids."""
        self.recipe: Recipe = run.recipe
        """The complete recipe of the model."""
        self._embedders: dict[EmbeddingConfig, Embedder] = {}
        self._lock = Lock()

    def __repr__(self) -> str:
        """The run, and what it can do."""
        able = ", ".join(sorted(self.capabilities))
        return f"LoadedRun({str(self.path)!r}): {self.recipe.name} on {self.device}, {able}"

    @cached_property
    def capabilities(self) -> frozenset[Capability]:
        """The names of the methods that this run has an answer for, of those that not every run has.

        `embed` and `hidden` are in every run's, `fill`, `generate`, `stream`, `logits` and `score` in those of
        pre-trained runs whose objectives have taught it, `predict` in those of fine-tuned runs, `weights_of_tokens` in
        those of classifiers.
        """
        return capabilities_of(self._run)

    def logits(self, ids: Ids, segments: Ids | None = None, *, source: Ids | None = None) -> Tensor:
        """What the run's head gives each token of the vocabulary at each position, before the softmax.

        Of a model that has learnt to predict hidden tokens these are scores of the token at the position; of one that
        predicts the next token, or hidden ones from the position before (mntp), of the one behind it. Of two
        directions it is the one that reads forwards. Several objectives: the first that predicts tokens.

        Args:
            ids: (N, T) ids, an array or a tensor, or N lists of any lengths. At the end of a row of an array
                `tokenizer.pad` is padding; lists are padded with it. Special tokens are not added: a row of BERT's
                begins with `tokenizer.start` and ends with `tokenizer.separator`.
            segments: the segment of each token, of the same shape; None: 0 everywhere.
            source: for a sequence-to-sequence model the N rows that its encoder reads; `ids` are then the decoder's.

        Returns:
            (N, T, V) float32 on the run's device, T being the longest row; zeros at padding. V counts the tokens that
            an objective has beside the tokenizer's, too.

        Raises:
            UserError: a fine-tuned run; ids outside of the vocabulary, or more than the model has positions for; a
                sequence-to-sequence model without a source, or another one with it.
        """
        run, module = self._require_pretrained("logits")
        named = next((each for each in run.recipe.objective if each.token_targets), None)
        if named is None:
            raise UserError(f"{self.path}: no objective of this run predicts tokens")
        head = next(each.head for each in module.objectives if each.name == named.kind)
        table = self._model.embedding.table
        if self.recipe.model.sequence_to_sequence != (source is not None):
            needs = "reads a source; give source" if source is None else "has no source; leave it out"
            raise UserError(f"{self.path}: this model {needs}")
        sources = None if source is None else self._checked(source, "source")

        def read(inputs: Inputs) -> Tensor:
            if self.recipe.model.directions == 2:
                hidden = self._model.stack(*self._model.stack_inputs(inputs))[0]
            else:
                hidden = module.hidden(named.kind, inputs)
            scores: Tensor = head.scores(hidden.flatten(0, 1), table)
            return scores.float().view(*hidden.shape[:2], -1)

        return self._read(ids, segments, read, sources)

    def hidden(self, ids: Ids, layer: int = -1, segments: Ids | None = None) -> Tensor:
        """The hidden states of a layer.

        Args:
            ids: as for `logits`.
            layer: 0 is what comes into the first layer, 1 what leaves it, -1 what leaves the last one, behind its norm.
            segments: as for `logits`.

        Returns:
            (N, T, D) float32 on the run's device; zeros at padding. Of a model with two directions those of both side
            by side, of one with an encoder and a decoder the encoder's.

        Raises:
            UserError: no such layer; ids as for `logits`.
        """
        config = self.recipe.model
        stack = config.encoder if config.sequence_to_sequence else config.stack
        assert stack is not None
        place = place_of_layer(layer, stack.layers, str(self.path))
        return self._read(ids, segments, lambda inputs: layer_states(self._model, inputs, [place])[0].float())

    def embed(
        self,
        texts: Sequence[str],
        pooling: Literal["mean", "cls", "last", "max"] = "mean",
        *,
        layers: Sequence[int] = (-1,),
        length: int | None = None,
    ) -> NDArray[np.float32]:
        """A vector for each text, as `bakeoff.embed` gives it, (N, D).

        Args:
            texts: N texts.
            pooling: mean or max over all tokens of the row; cls or last, the state at [CLS], or at the last token.
            layers: whose output is pooled, several averaged.
            length: the most tokens of a row; None: as in pre-training, or in fine-tuning.

        Raises:
            UserError: no such layer, or a pooling that the run has nothing for.
        """
        config = EmbeddingConfig.parse({"pooling": pooling, "layers": layers, "length": length}, "embed")
        return vectors_of(self.embedder(config), [text for (text,) in in_memory(_several(texts))])[0]

    def embedder(self, config: EmbeddingConfig) -> Embedder:
        """What gives vectors as the config says, with the weights of this object."""
        with self._lock:
            if config not in self._embedders:
                self._embedders[config] = Embedder(self._run, config, loaded=self._model)
            return self._embedders[config]

    @overload  # a text is a sequence of texts, too, but here it is one
    def fill(self, texts: str, k: int = 5) -> Filled: ...  # type: ignore[overload-overlap]
    @overload
    def fill(self, texts: Sequence[str], k: int = 5) -> list[Filled]: ...
    def fill(self, texts: str | Sequence[str], k: int = 5) -> Filled | list[Filled]:
        """The k most probable tokens for each [MASK] of a text.

        The masks of a text are all hidden, and each is predicted by itself. A model that reads forwards predicts what
        follows a text: its only [MASK] is the text's end.

        Args:
            texts: a text, or N of them.
            k: how many; special tokens are never among them.

        Returns:
            For a text a list with an entry a mask, each a list of k candidates with `token`, `id` and `probability`,
            the most probable first; for several texts a list of these.

        Raises:
            UserError: a run that cannot; a text without a mask, or with one where the model cannot fill it.
        """
        run, module = self._require_pretrained("fill")
        filler = Filler(run, module)
        found = filler.fill([text for (text,) in in_memory([texts] if isinstance(texts, str) else texts)], k)
        return found[0] if isinstance(texts, str) else found

    def score(self, texts: Sequence[str], pairs: Sequence[str] | None = None) -> list[TextScore]:
        """The log-probability of each text, as `bakeoff score` gives it.

        Args:
            texts: (N,) texts; of a sequence-to-sequence model the sources.
            pairs: (N,) for a sequence-to-sequence model the targets, which are scored.

        Returns:
            For each text its `log_probability` in nats (for models that see both sides the pseudo-log-likelihood), its
            `tokens`, and how many of them are `unknown`.

        Raises:
            UserError: a run that gives texts no probability; sources without targets, or targets without need.
        """
        run, module = self._require_pretrained("score")
        wants_pairs = self.recipe.model.sequence_to_sequence
        if "score" in self.capabilities and wants_pairs != (pairs is not None):
            needs = "scores targets of sources; give both" if wants_pairs else "scores single texts; leave pairs out"
            raise UserError(f"{self.path}: this run {needs}")
        given = in_memory(_several(texts)) if pairs is None else in_memory(*_as_long(texts, pairs))
        return list(TextScores(run, given, module=module))

    @overload
    def generate(self, prompts: str, **settings: Any) -> str: ...
    @overload
    def generate(self, prompts: Sequence[str], **settings: Any) -> list[str]: ...
    def generate(self, prompts: str | Sequence[str], **settings: Any) -> str | list[str]:
        """What the run writes behind each prompt, or for it, as `bakeoff.generate` does.

        Args:
            prompts: a text, or N of them.
            settings: tokens, temperature, top_k, top_p, beams, length_penalty and seed of `GenerationConfig`.

        Returns:
            A text for a prompt, or N texts. The random numbers of a prompt are those of its place among the prompts.

        Raises:
            UserError: a run that has not learnt to write, an unknown setting, or a prompt that is too long.
        """
        given = in_memory([prompts] if isinstance(prompts, str) else prompts)
        writer = self.writer(GenerationConfig.parse(settings, "generate"))
        written = [
            each.answer for part in read_ahead(given, PROMPTS_AT_ONCE) for each in writer.write([t for (t,) in part])
        ]
        return written[0] if isinstance(prompts, str) else written

    def stream(self, prompt: str, **settings: Any) -> Iterator[str]:
        """What `generate` gives for one prompt, in pieces as it is written; together they are that text.

        Args:
            prompt: a text.
            settings: as for `generate`, but for `beams`, which knows its text at the end alone.

        Raises:
            UserError: as of `generate`, at once and not when the first piece is asked for.
        """
        in_memory([prompt])
        writer = self.writer(GenerationConfig.parse(settings, "generate"))
        return writer.stream(prompt)

    def writer(self, config: GenerationConfig) -> PromptWriter:
        """What writes as the config says, with the weights of this object; it counts its prompts."""
        run, module = self._require_pretrained("generate")
        return PromptWriter(run, config, module)

    def predict(self, texts: Sequence[str], pairs: Sequence[str] | None = None) -> list[dict[str, Any]]:
        """What a fine-tuned run says of each text, or pair of texts, as `bakeoff.predict` does.

        Args:
            texts: (N,) texts.
            pairs: (N,) second texts, for a run that was fine-tuned on pairs.

        Returns:
            For each a dictionary, whose keys are those of the run's task: label and probability, value, words and tags,
            answer with start and end, or text.

        Raises:
            UserError: a pre-trained run; second texts that the run cannot take, or their lack; not one for each text.
        """
        run, _ = self._require_finetuned("predict")
        require_sides(run, _several(texts), pairs)
        given = in_memory(texts) if pairs is None else in_memory(texts, pairs)
        task = run.learned
        return [task.answered(each.example, each.answer) for part in self.answers(given) for each in part]

    def answers(self, texts: Texts) -> Iterator[list[Predicted]]:
        """What a fine-tuned run says of texts, some of them at once, in the order of a file or a sequence."""
        run, head = self._require_finetuned("predict")
        return answer(run, texts, head=head)

    def weights_of_tokens(self, text: str, pair: str | None = None) -> TokenWeights:
        """How much each token of a text speaks for the class that the run predicts: integrated gradients.

        The weights add up to the log-probability of the predicted class less that of a row in which every token of the
        text is padding (Sundararajan et al. 2017, arXiv:1703.01365, proposition 1); above 0 speaks for it.

        Args:
            text: the text.
            pair: its second text, for a run that was fine-tuned on pairs.

        Returns:
            The `label`, its `probability`, and for each token where it stands in the text or the pair, and its weight.

        Raises:
            UserError: a run that is no classifier, a second text that it cannot take, or its lack.
        """
        run, head = self._require_finetuned("weights_of_tokens")
        if "weights_of_tokens" not in self.capabilities:
            raise UserError(f"{self.path}: weights of tokens are those for a class, and {run.task.kind} predicts none")
        require_sides(run, [text], None if pair is None else [pair])
        in_memory([text] if pair is None else [text, pair])
        return weights_of_tokens(run, head, text, pair)

    def _require_pretrained(self, verb: str) -> tuple[Run, PretrainingModel]:
        if self._pretrained is None:
            raise UserError(
                f"{self.path}: {verb}: a fine-tuned run has no head for that; give the run that it came from"
            )
        return self._pretrained

    def _require_finetuned(self, verb: str) -> tuple[FinetunedRun, Head]:
        if self._finetuned is None:
            raise UserError(f"{self.path}: {verb}: a pre-trained run; make a fine-tuned one with `bakeoff finetune`")
        return self._finetuned

    def _checked(self, ids: Ids, what: str) -> list[NDArray[np.int64]]:
        """Rows whose ids the model knows, and positions too."""
        rows = lists_of(ids, what)
        size, longest = len(self._model.embedding.table), self.recipe.model.longest_input
        for number, row in enumerate(rows, 1):
            if row.min() < 0 or row.max() >= size:
                wrong = int(row.min() if row.min() < 0 else row.max())
                raise UserError(f"{what}: row {number}: there is no token {wrong}; the vocabulary has {size:,}")
            if longest is not None and len(row) > longest:
                raise UserError(f"{what}: row {number}: {len(row):,} tokens; the model has {longest:,} positions")
        if not rows:
            raise UserError(f"{what}: give at least one row")
        return rows

    @torch.inference_mode()
    def _read(
        self, ids: Ids, segments: Ids | None, read: Any, sources: list[NDArray[np.int64]] | None = None
    ) -> Tensor:
        """(N, T, K) what is read of rows, in batches."""
        rows = self._checked(ids, "ids")
        pad, model = self.tokenizer.pad, self.recipe.model
        given = isinstance(ids, Tensor | np.ndarray)
        lengths = real_lengths(rows, pad) if given else [len(row) for row in rows]
        numbers = None if segments is None else lists_of(segments, "segments")
        for what, others in (("segments", numbers), ("source", sources)):
            if others is not None and len(others) != len(rows):
                raise UserError(f"{what}: {len(others)} rows for {len(rows)} of ids")
        if numbers is not None:
            self._require_segments(rows, numbers)
        source_lengths = None if sources is None else real_lengths(sources, pad)

        def batch(chosen: list[int]) -> Tensor:
            tokens, real = padded_ids(rows, lengths, chosen, pad, self.device)
            own = None if numbers is None else padded_ids(numbers, lengths, chosen, 0, self.device)[0]
            source = None
            if sources is not None and source_lengths is not None:
                source = Source(*padded_ids(sources, source_lengths, chosen, pad, self.device))
            # Padding stands behind the tokens, where nothing that reads forwards sees it.
            result: Tensor = read(Inputs(tokens, own, None if model.causal else real, source=source))
            return result

        return in_batches(rows, lengths, self.device, batch)

    def _require_segments(self, rows: Sequence[NDArray[np.int64]], numbers: Sequence[NDArray[np.int64]]) -> None:
        """Refuse segments of another shape, and those that the model has no vector for."""
        known = self.recipe.model.embedding.segments or (3 if self._reads_segments else 1)
        for number, (row, own) in enumerate(zip(rows, numbers, strict=True), 1):
            if len(row) != len(own):
                raise UserError(f"segments: row {number}: {len(own)} segments for {len(row)} tokens")
            if own.min() < 0 or own.max() >= known:
                raise UserError(f"segments: row {number}: {int(own.max())}; the model tells {known} apart, 0 the first")

    @property
    def _reads_segments(self) -> bool:
        return any(mixer.reads_segments for mixer in self.recipe.model.mixers)


def load(run: str | Path | Run | FinetunedRun, device: str = "auto") -> LoadedRun:
    """Load a run, to be used from Python: its weights once, for everything that it is asked.

    Args:
        run: a pre-trained run, of one that was stopped its newest checkpoint, or a fine-tuned one.
        device: auto, cpu, cuda or mps.

    Raises:
        UserError: no such run, one that cannot be read, or no such device.
    """
    if isinstance(run, Run | FinetunedRun):
        return LoadedRun(run, device)
    return LoadedRun(FinetunedRun.open(run) if FinetunedRun.at(run) else Run.open_trained(run), device)


def _several(texts: Sequence[str]) -> Sequence[str]:
    """Refuse a text where a sequence of them is wanted, whose letters would be taken for texts.

    Raises:
        UserError: it is a text.
    """
    if isinstance(texts, str):
        raise UserError(f"texts: a list of texts is wanted, and this is one ('{texts[:30]}'); put it into a list")
    return texts


def _as_long(texts: Sequence[str], pairs: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    if len(_several(texts)) != len(_several(pairs)):
        raise UserError(f"{len(texts)} texts and {len(pairs)} second texts: one for each is needed")
    return texts, pairs
