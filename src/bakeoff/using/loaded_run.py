"""A run in memory, and everything that it can be asked for.

Shapes: N texts or rows, T length, D width, V vocabulary.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from bakeoff.errors import UserError
from bakeoff.inference.generate import PROMPTS_AT_ONCE, PromptWriter
from bakeoff.inference.generation_config import GenerationConfig
from bakeoff.inference.sampling import Seeds, drawn_by
from bakeoff.inference.scoring import TextScore, TextScores
from bakeoff.inference.text_files import Texts, in_memory, read_ahead
from bakeoff.models.inputs import Inputs
from bakeoff.runs.run import Run
from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.tasks.predict import Predicted, answer, require_sides
from bakeoff.using.attribution import TokenWeights, weights_of_tokens
from bakeoff.using.filling import Filled, Filler
from bakeoff.using.rows import Ids
from bakeoff.using.texts import as_long, several
from bakeoff.using.weights import LoadedWeights
from bakeoff.vectors.embed import vectors_of
from bakeoff.vectors.embedder import VectorConfig
from bakeoff.vectors.layer_states import layer_states, place_of_layer


class LoadedRun(LoadedWeights):
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

    def logits(self, ids: Ids, segments: Ids | None = None, *, source: Ids | None = None) -> Tensor:
        """What the run's head gives each token of the vocabulary at each position, before the softmax.

        A model that has learnt to predict hidden tokens scores the token at the position; one that predicts the next
        token, or hidden ones from the position before (mntp), scores the token behind it. A model with two directions
        is read forwards. Where there are several objectives, it is the head of the first that predicts tokens.

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

        def read(inputs: Inputs) -> Tensor:
            if self.recipe.model.directions == 2:
                hidden = self._model.stack(*self._model.stack_inputs(inputs))[0]
            else:
                hidden = module.hidden(named.kind, inputs)
            scores: Tensor = head.scores(hidden.flatten(0, 1), table)
            return scores.float().view(*hidden.shape[:2], -1)

        return self._rows.read(ids, segments, read, source)

    def hidden(self, ids: Ids, layer: int = -1, segments: Ids | None = None) -> Tensor:
        """The hidden states of a layer.

        Args:
            ids: as for `logits`.
            layer: 0 is what comes into the first layer, 1 what leaves it, -1 what leaves the last one, behind its norm.
            segments: as for `logits`.

        Returns:
            (N, T, D) float32 on the run's device; zeros at padding. A model with two directions has those of both side
            by side, and one with an encoder and a decoder has the encoder's.

        Raises:
            UserError: no such layer; ids as for `logits`.
        """
        config = self.recipe.model
        stack = config.encoder if config.sequence_to_sequence else config.stack
        assert stack is not None
        place = place_of_layer(layer, stack.layers, str(self.path))
        return self._rows.read(ids, segments, lambda inputs: layer_states(self._model, inputs, [place])[0].float())

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
        config = VectorConfig.parse({"pooling": pooling, "layers": layers, "length": length}, "embed")
        return vectors_of(self.embedder(config), [text for (text,) in in_memory(several(texts))])[0]

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
            texts: (N,) texts; for a sequence-to-sequence model the sources.
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
        given = in_memory(several(texts)) if pairs is None else in_memory(*as_long(texts, pairs))
        return list(TextScores(run, given, module=module))

    @overload
    def generate(self, prompts: str, *, seeds: Seeds | None = None, **settings: Any) -> str: ...
    @overload
    def generate(self, prompts: Sequence[str], *, seeds: Seeds | None = None, **settings: Any) -> list[str]: ...
    def generate(self, prompts: str | Sequence[str], *, seeds: Seeds | None = None, **settings: Any) -> str | list[str]:
        """What the run writes behind each prompt, or for it, as `bakeoff.generate` does.

        Args:
            prompts: a text, or N of them.
            seeds: (N,) a seed for each prompt in the place of the setting `seed`, with which it gets what it gets alone
                under that seed; a pair (seed, place) gives what a prompt at that place, from 0 on, gets under it.
            settings: tokens, temperature, top_k, top_p, beams, length_penalty and seed of `GenerationConfig`.

        Returns:
            A text for a prompt, or N texts. The random numbers of a prompt are those of its place among the prompts, or
            of its seed; what stands beside it in a batch has no influence.

        Raises:
            UserError: a run that has not learnt to write, an unknown setting, a prompt that is too long, or not a seed
                for each prompt.
        """
        given = in_memory([prompts] if isinstance(prompts, str) else prompts)
        writer = self.writer(GenerationConfig.parse(settings, "generate"))
        draws = None if seeds is None else drawn_by(seeds, len(given))
        written: list[str] = []
        for part in read_ahead(given, PROMPTS_AT_ONCE):
            own = None if draws is None else draws[len(written) : len(written) + len(part)]
            written += [each.answer for each in writer.write([text for (text,) in part], own)]
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
        require_sides(run, several(texts), pairs)
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


def load(run: str | Path | Run | FinetunedRun, device: str = "auto") -> LoadedRun:
    """Load a run, to be used from Python: its weights once, for everything that it is asked.

    Args:
        run: a pre-trained run, which is at its newest checkpoint if it was stopped, or a fine-tuned one.
        device: auto, cpu, cuda or mps.

    Raises:
        UserError: no such run, one that cannot be read, or no such device.
    """
    if isinstance(run, Run | FinetunedRun):
        return LoadedRun(run, device)
    return LoadedRun(FinetunedRun.open(run) if FinetunedRun.at(run) else Run.open_trained(run), device)
