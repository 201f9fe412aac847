"""Generation with a run, from texts to texts."""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from bakeoff.errors import UserError, require_object
from bakeoff.generation.config import GenerationConfig
from bakeoff.generation.generator import Generator
from bakeoff.generation.prompts import begun, composed, encoded, whole
from bakeoff.generation.sampling import PromptSeed
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.objectives.objective import ObjectiveConfig
from bakeoff.reading.text_files import Texts, in_memory, is_blank, read_ahead
from bakeoff.resources.device import Placement, Precision
from bakeoff.resources.inference import for_inference
from bakeoff.runs.run import Run
from bakeoff.tokenizer.tokenizer import Tokenizer

PROMPTS_AT_ONCE = 512
"""Largest number of prompts that are read ahead, so that prompts of similar length share a batch."""


class Written(NamedTuple):
    """A prompt and the text that a run wrote for it."""

    prompt: str
    """The prompt as the user gave it."""
    continuation: str | None
    """The text after the prompt, with the space between the two if there is one; None: the run rewrote the prompt."""
    text: str
    """The prompt, as the tokenizer decodes it, with its continuation; or the rewritten text."""

    @property
    def texts(self) -> tuple[str]:
        """The prompt as a tuple of one text, as files of results need it."""
        return (self.prompt,)

    @property
    def output(self) -> str:
        """The continuation, or the rewritten text."""
        return self.text if self.continuation is None else self.continuation


def generate(
    run: str | Path | Run,
    prompts: Sequence[str],
    config: GenerationConfig | None = None,
    *,
    device: str = "auto",
    precision: Precision = "float32",
) -> list[str]:
    """Generate a continuation, or a target, for each prompt.

    A model trained with clm, prefix_clm or prefix_lm continues the prompt. The continuation begins with a space if a
    new word follows, and without one if it completes the prompt's last word. A model trained with span_corruption,
    denoising, deshuffling or translation reads the prompt as its source. In a source [MASK] marks a gap, translation
    aside. span_corruption writes the text of each gap, as "[1] ... [2] ..."; denoising and deshuffling write the whole
    text; translation writes the translation of the text as `prepare` would read it.

    Args:
        run: a run of a causal or a sequence-to-sequence model; if it was stopped, its newest checkpoint is used.
        prompts: the texts, read as corpora are, in NFC with single spaces; a space at the end stays where the text is
            continued, and so does all white space for an imported model, which may know ends of lines. For a blank text
            a model without an encoder writes any text, other models write nothing.
        config: how tokens are chosen; None: the defaults.
        device: auto, cpu, cuda or mps.
        precision: auto, float32 or bfloat16, the precision of products.

    Raises:
        UserError: there is no such run, it cannot generate text, or a prompt is too long for it.
    """
    return [
        each.output
        for part in write(run, in_memory(prompts), config, device=device, precision=precision)
        for each in part
    ]


def write(
    run: str | Path | Run,
    prompts: Texts,
    config: GenerationConfig | None = None,
    *,
    device: str = "auto",
    precision: Precision = "float32",
) -> Iterator[list[Written]]:
    """Generate texts as `generate` does, batch by batch in the order of prompts, in bounded memory.

    Args:
        run: as for `generate`.
        prompts: a file of texts, or tuples of one text each.
        config: as for `generate`.
        device: as for `generate`.
        precision: as for `generate`.

    Raises:
        UserError: as for `generate`, or the file has a mistake.
    """
    require_object("config", config, GenerationConfig, "bakeoff.GenerationConfig(...)")
    opened = run if isinstance(run, Run) else Run.open_trained(run)
    writer: PromptWriter | None = None
    for part in read_ahead(prompts, PROMPTS_AT_ONCE):
        if writer is None:
            placement = Placement.of(device, precision)
            module = for_inference(opened.load(placement.device), placement)
            writer = PromptWriter(opened, config or GenerationConfig(), module, precision=placement.precision)
        yield writer.write([text for (text,) in part])


class PromptWriter:
    """Generation with one loaded run for any number of prompts.

    Args:
        run: the run.
        config: how tokens are chosen.
        module: the run's model, from `run.load`.
        count: a function that is called with the numbers of tokens that were written.
        precision: float32 or bfloat16, the precision of products.

    Raises:
        UserError: the run has not learned to generate text.
    """

    def __init__(
        self,
        run: Run,
        config: GenerationConfig,
        module: PretrainingModel,
        count: Callable[[int], None] = lambda tokens: None,
        precision: str = "float32",
    ) -> None:
        self._run, self._config, self._tokenizer = run, config, run.tokenizer
        self._module = module
        (objective, *_) = run.recipe.objective
        self._objective: ObjectiveConfig = objective
        self._marks = objective.mark_ids(self._tokenizer)
        banned = set(never_written(self._tokenizer)) - set(self._marks)
        self._generator = Generator(self._module, self._tokenizer.separator, sorted(banned), precision)
        self._has_source = self._module.model.config.sequence_to_sequence
        self._continues = not objective.rewrites or objective.continues_source
        self._read = begun if self._continues else whole
        # The texts of a model from elsewhere may have had ends of lines, and longer stretches of white space.
        if run.imported and not run.recipe.input.parallel:
            self._read = composed
        self._done = 0
        self._count = count

    def write(self, prompts: Sequence[str], seeds: Sequence[PromptSeed] | None = None) -> list[Written]:
        """Generate the texts for the next prompts.

        Args:
            prompts: N texts.
            seeds: (N,) random numbers of the prompts; None: those of the config's seed and of each prompt's number
                among all prompts so far.

        Raises:
            UserError: a prompt is too long for the model.
        """
        rows = self._rows(prompts)
        seeds = [self._seed(row) for row in range(len(rows))] if seeds is None else seeds
        if self._has_source:
            starts = [self._objective.prompt(self._tokenizer)] * len(rows)
            written = self._generator.write(starts, self._config, rows, seeds)
        else:
            written = self._generator.write(rows, self._config, seeds=seeds)
        self._done += len(rows)
        self._count(sum(map(len, written)))
        return [self._joined(*each) for each in zip(prompts, rows, written, strict=True)]

    def stream(self, prompt: str) -> Iterator[str]:
        """Generate the text of `write` for the next prompt, and yield it in pieces as tokens are chosen.

        A piece ends after a whole character, so that later tokens do not change it.

        Raises:
            UserError: the prompt is too long for the model, or the config asks for a beam search.
        """
        if self._config.beams is not None and self._config.beams > 1:
            raise UserError("beams: a search has its text only at the end and cannot be streamed; leave beams out")
        (row,) = self._rows([prompt])
        if self._has_source and is_blank([prompt]):
            self._done += 1
            return
        start, sources = (self._objective.prompt(self._tokenizer), [row]) if self._has_source else (row, None)
        ids: list[int] = []
        told = ""
        for token in self._generator.stream(start, self._config, sources, self._seed(0)):
            ids.append(token)
            self._count(1)
            whole = self._joined(prompt, row, ids).output
            if whole.startswith(told) and not whole.endswith("\N{REPLACEMENT CHARACTER}") and len(whole) > len(told):
                yield whole[len(told) :]
                told = whole
        whole = self._joined(prompt, row, ids).output
        if whole.startswith(told) and len(whole) > len(told):
            yield whole[len(told) :]
        self._done += 1

    def _seed(self, row: int) -> PromptSeed:
        """The default random numbers of the prompt `row` of a call."""
        return PromptSeed(self._config.seed, self._done + row)

    def _rows(self, prompts: Sequence[str]) -> list[list[int]]:
        """The ids of prompts, checked to fit into the model."""
        rows = [encoded(self._read(text, self._tokenizer), self._tokenizer, self._run) for text in prompts]
        for number, (text, row) in enumerate(zip(prompts, rows, strict=True), self._done + 1):
            self._require_room(number, text, len(row))
        return rows

    def _require_room(self, number: int, text: str, length: int) -> None:
        longest = self._module.model.config.longest_input
        if longest is not None and length >= longest:
            raise UserError(
                f"text {number:,} ('{text[:30]}...'): {length} tokens are too long for this model, which has {longest}"
            )

    def _joined(self, prompt: str, row: Sequence[int], written: Sequence[int]) -> Written:
        if self._has_source and is_blank([prompt]):
            return Written(prompt, "" if self._continues else None, "")
        if not self._continues:
            return Written(prompt, None, decoded(written, self._tokenizer, self._marks))
        begun = len(self._objective.before_source(self._tokenizer))
        before, behind = joined(row[begun:-1] if self._has_source else row[1:], written, self._tokenizer)
        return Written(prompt, behind, before + behind)


def joined(prompt: Sequence[int], following: Sequence[int], tokenizer: Tokenizer) -> tuple[str, str]:
    """The texts of a prompt's ids and of the ids after it, the second with a space before it if there is one.

    Both are decoded together, because the ids after a prompt do not tell alone whether they complete its last word.
    """
    before, whole = tokenizer.decode(prompt), tokenizer.decode([*prompt, *following])
    if whole.startswith(before):
        return before, whole[len(before) :]
    return before, tokenizer.decode(following)  # this decoder's text of the prompt depends on the ids after it


def never_written(tokenizer: Tokenizer) -> list[int]:
    """Ids that no text may contain: special tokens but the separator, which ends a text, and tokens of sources."""
    return sorted({*tokenizer.special_ids.tolist(), *range(tokenizer.target_ids.start)} - {tokenizer.separator})


def decoded(ids: Sequence[int], tokenizer: Tokenizer, marks: Sequence[int]) -> str:
    """The text of generated ids; marks of gaps are shown as their numbers, `[1]`, `[2]`, ..."""
    numbers = {token: number for number, token in enumerate(marks, 1)}
    if numbers.keys().isdisjoint(ids):
        return tokenizer.decode(ids)
    pieces: list[str] = []
    for marked, run in groupby(ids, key=lambda token: token in numbers):
        tokens = list(run)
        pieces += [f"[{numbers[token]}]" for token in tokens] if marked else [tokenizer.decode(tokens).strip()]
    return " ".join(pieces)
