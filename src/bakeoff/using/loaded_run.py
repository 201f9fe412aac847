"""A run in memory, with a method for everything that it can do.

Shapes: N texts or rows, T length, D width, V vocabulary.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, overload

from typing_extensions import override

from bakeoff.errors import UserError
from bakeoff.generation.config import GenerationConfig
from bakeoff.generation.generate import PROMPTS_AT_ONCE, PromptWriter
from bakeoff.generation.sampling import Seeds, drawn_by
from bakeoff.reading.text_files import Texts, in_memory, read_ahead
from bakeoff.resources.device import Precision
from bakeoff.runs.run import Run
from bakeoff.scoring.options import Reading
from bakeoff.scoring.texts import TextScore, TextScores
from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.tasks.predict import (
    Predicted,
    predict_parts,
    record_of,
    require_one_each,
    require_probabilities,
    require_sides,
)
from bakeoff.tokenizer.stretches import Per
from bakeoff.using.attribution import TokenWeights, weights_of_tokens
from bakeoff.using.filling import Filled, Filler
from bakeoff.using.states import LoadedStates


class LoadedRun(LoadedStates):
    """A run whose weights are loaded once; `bakeoff.load` makes it.

    Methods change nothing: any number of threads may call them at the same time, with the same results as alone. An
    iterator from `stream` belongs to one thread. Texts and rows of similar length share a batch, whatever their order,
    and memory beyond the results does not grow with their number.

    All computations are without gradients, on the run's device, in its precision; returned tensors are on that device.

    Args:
        run: a pre-trained or a fine-tuned run.
        device: auto, cpu, cuda or mps.
        precision: auto, float32 or bfloat16, the precision of products.

    Attributes:
        path: the run's directory.
        device: the device of the weights.
        precision: float32 or bfloat16, the precision of products.
    """

    @override
    def __reduce__(self) -> tuple[Any, ...]:
        """Another process loads the run from its folder, with the same device and precision."""
        return load, (self.path.absolute(), str(self.device), self.precision)

    @overload  # a str is a Sequence[str], too, but means one text here
    def fill(self, texts: str, k: int = 5) -> Filled: ...  # type: ignore[overload-overlap]
    @overload
    def fill(self, texts: Sequence[str], k: int = 5) -> list[Filled]: ...
    def fill(self, texts: str | Sequence[str], k: int = 5) -> Filled | list[Filled]:
        """The k most probable tokens for each [MASK] of a text.

        Each mask is predicted independently, with all masks of the text hidden. A causal model predicts the token
        after a text: its only [MASK] stands at the text's end.

        Args:
            texts: a text, or N texts.
            k: number of tokens for each mask; special tokens are never among them.

        Returns:
            For a text a list with one entry for each mask: a list of k candidates with `token`, `id` and `probability`,
            the most probable first. For several texts a list of such lists.

        Raises:
            UserError: the run cannot fill masks, or a text has no mask, or a mask that the model cannot fill.
        """
        run, module = self._require_pretrained("fill")
        filler = Filler(run, module, self.precision)
        filled = filler.fill([text for (text,) in in_memory([texts] if isinstance(texts, str) else texts)], k)
        return filled[0] if isinstance(texts, str) else filled

    def score(
        self,
        texts: Sequence[str],
        pairs: Sequence[str] | None = None,
        *,
        per: Per | None = None,
        reading: Reading | None = None,
    ) -> list[TextScore]:
        """The log-probability of each text, that of `bakeoff score`.

        Args:
            texts: N texts; for a sequence-to-sequence model the sources.
            pairs: for a sequence-to-sequence model the N targets, which are scored.
            per: word or token: give the surprisals of each text's words or tokens, too.
            reading: forwards; pseudo, each token given all others; or pseudo_words, with the later tokens of its word
                hidden, too. None: as the run's first objective has learned.

        Returns:
            For each text its `log_probability` in nats (the pseudo-log-likelihood for bidirectional models; None: every
            token is unknown), its number of `tokens`, of `unknown` ones, and counts of what is `hidden`; with `per`
            also its `parts`, each with `text`, `start` and `end` in the raw text, `surprisal` in bits,
            `tokens` and `unknown`. Their surprisals add up to -log_probability / ln 2.

        Raises:
            UserError: the run gives texts no probability, or targets are missing or not needed.
        """
        run, module = self._require_pretrained("score")
        self._require_float32("score")
        wants_pairs = self.recipe.model.sequence_to_sequence
        if "score" in self.capabilities and wants_pairs != (pairs is not None):
            needs = "scores targets of sources; give both" if wants_pairs else "scores single texts; leave pairs out"
            raise UserError(f"{self.path}: this run {needs}")
        if pairs is not None:
            require_one_each(texts, pairs)
        source = in_memory(texts) if pairs is None else in_memory(texts, pairs)
        return list(TextScores(run, source, module=module, per=per, reading=reading))

    @overload
    def generate(self, prompts: str, *, seeds: Seeds | None = None, **settings: Any) -> str: ...
    @overload
    def generate(self, prompts: Sequence[str], *, seeds: Seeds | None = None, **settings: Any) -> list[str]: ...
    def generate(self, prompts: str | Sequence[str], *, seeds: Seeds | None = None, **settings: Any) -> str | list[str]:
        """Generate a continuation, or a target, for each prompt, as `bakeoff.generate` does.

        Args:
            prompts: a text, or N texts.
            seeds: a seed for each of N prompts in place of the setting `seed`; the prompt gets the text that it gets
                alone under that seed. A pair (seed, place) gives the text of the prompt at that place, from 0 on.
            settings: tokens, temperature, top_k, top_p, beams, length_penalty and seed of `GenerationConfig`.

        Returns:
            A text for a prompt, or N texts. A prompt's random numbers depend on the seed and on its place among the
            prompts, or on its seed, and not on other prompts.

        Raises:
            UserError: the run has not learned to generate text, a setting is unknown, a prompt is too long, or there is
                not one seed for each prompt.
        """
        source = in_memory([prompts] if isinstance(prompts, str) else prompts)
        writer = self.writer(GenerationConfig.parse(settings, "generate"))
        draws = None if seeds is None else drawn_by(seeds, len(source))
        written: list[str] = []
        for part in read_ahead(source, PROMPTS_AT_ONCE):
            part_draws = None if draws is None else draws[len(written) : len(written) + len(part)]
            written += [each.output for each in writer.write([text for (text,) in part], part_draws)]
        return written[0] if isinstance(prompts, str) else written

    def stream(self, prompt: str, **settings: Any) -> Iterator[str]:
        """Generate the text of `generate` for one prompt, and yield it in pieces as tokens are chosen.

        Args:
            prompt: a text.
            settings: as for `generate`, without `beams`: a beam search has its text only at the end.

        Raises:
            UserError: as for `generate`. A run that cannot generate and wrong settings are refused at the call; `beams`
                and a prompt that is too long are refused when the first piece is asked for.
        """
        in_memory([prompt])
        writer = self.writer(GenerationConfig.parse(settings, "generate"))
        return writer.stream(prompt)

    def writer(self, config: GenerationConfig) -> PromptWriter:
        """A new `PromptWriter` with these settings and the weights of this object."""
        run, module = self._require_pretrained("generate")
        return PromptWriter(run, config, module, self._count_tokens, self.precision)

    def predict(
        self, texts: Sequence[str], pairs: Sequence[str] | None = None, *, probabilities: bool = False
    ) -> list[dict[str, Any]]:
        """The predictions of a fine-tuned run for texts, or pairs of texts, those of `bakeoff.predict`.

        Args:
            texts: N texts.
            pairs: N second texts, for a run that was fine-tuned on pairs.
            probabilities: add the `probabilities` of all classes, for a run for classification.

        Returns:
            A dictionary for each text, with the keys of the run's task: label and probability; value; words and tags;
            answer with start and end; or text.

        Raises:
            UserError: the run is pre-trained, second texts are missing or not needed, there is not one for each text,
                or there are no classes to have probabilities.
        """
        run, _ = self._require_finetuned("predict")
        require_sides(run, texts, pairs)
        require_probabilities(run, probabilities)
        source = in_memory(texts) if pairs is None else in_memory(texts, pairs)
        task = run.learned
        return [record_of(task, each, probabilities) for part in self.predictions(source) for each in part]

    def predictions(self, texts: Texts) -> Iterator[list[Predicted]]:
        """The predictions of a fine-tuned run for the texts of a file or in memory, several at once, in their order."""
        run, head = self._require_finetuned("predict")
        return predict_parts(run, texts, precision=self.precision, head=head)

    def weights_of_tokens(self, text: str, pair: str | None = None) -> TokenWeights:
        """The contribution of each token of a text to the class that the run predicts, by integrated gradients.

        A weight above 0 speaks for the class. The weights add up to the log-probability of the class minus its
        log-probability for a row in which padding replaces every token of the text (Sundararajan et al. 2017,
        arXiv:1703.01365, proposition 1).

        Args:
            text: the text.
            pair: the second text, for a run that was fine-tuned on pairs.

        Returns:
            The `label`, its `probability`, and the place and weight of each token of the text and the second text.

        Raises:
            UserError: the run is no classifier, or the second text is missing or not needed.
        """
        run, head = self._require_finetuned("weights_of_tokens")
        self._require_float32("weights_of_tokens")
        if "weights_of_tokens" not in self.capabilities:
            raise UserError(f"{self.path}: weights of tokens are those for a class, and {run.task.kind} predicts none")
        require_sides(run, [text], None if pair is None else [pair])
        in_memory([text], *([] if pair is None else [[pair]]))
        return weights_of_tokens(run, head, text, pair)


def load(run: str | Path | Run | FinetunedRun, device: str = "auto", precision: Precision = "float32") -> LoadedRun:
    """Load a run for use from Python; its weights are loaded once for all methods.

    Args:
        run: a fine-tuned run, or a pre-trained run; if it was stopped, its newest checkpoint is used.
        device: auto, cpu, cuda or mps.
        precision: the precision of products: float32; bfloat16, in which there is neither `score` nor
            `weights_of_tokens`; or auto, which is bfloat16 where the device multiplies it faster.

    Raises:
        UserError: there is no such run, device or precision, or the run cannot be read.
    """
    if isinstance(run, Run | FinetunedRun):
        return LoadedRun(run, device, precision)
    return LoadedRun(FinetunedRun.open(run) if FinetunedRun.at(run) else Run.open_trained(run), device, precision)
