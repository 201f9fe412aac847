"""Texts in, texts out: generation with a run."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from bakeoff.errors import UserError
from bakeoff.inference.around_masks import encoded_around
from bakeoff.inference.generation import Generator
from bakeoff.inference.generation_config import GenerationConfig
from bakeoff.inference.sampling import Draws
from bakeoff.inference.text_files import Texts, in_memory, is_blank, read_ahead
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.objectives.objective import ObjectiveConfig
from bakeoff.ops.matrix_products import lay_out_for_few_rows
from bakeoff.reading.aligned import clean
from bakeoff.resources.device import resolve_device
from bakeoff.runs.run import Run
from bakeoff.tokenizer.tokenizer import Tokenizer

MASK = "[MASK]"
"""Stands in a prompt for what a sequence-to-sequence model shall fill in."""

PROMPTS_AT_ONCE = 512
"""The most that are read ahead, so that those of similar length go on together."""


class Written(NamedTuple):
    """What a run wrote for a prompt."""

    prompt: str
    """The prompt as the user gave it."""
    continuation: str | None
    """What follows the prompt, the space between the two included where there is one; None: a rewritten text, which
    follows nothing."""
    text: str
    """The prompt, as the tokenizer decodes it, and right behind it the continuation; or the rewritten text."""

    @property
    def texts(self) -> tuple[str]:
        """The prompt, as the one text that this answers."""
        return (self.prompt,)

    @property
    def answer(self) -> str:
        """What is new: the continuation, or the rewritten text."""
        return self.text if self.continuation is None else self.continuation


def generate(
    run: str | Path | Run,
    prompts: Sequence[str],
    config: GenerationConfig | None = None,
    *,
    device: str = "auto",
) -> list[str]:
    """Let a run go on with texts, or write the target for them.

    A model trained with clm, prefix_clm or prefix_lm continues each prompt: the continuation begins with a space where
    one stands between the two, and with none where it completes the prompt's last word. One trained with
    span_corruption, denoising, deshuffling or translation reads the prompt as its source, in which, but for
    translation, [MASK] stands for what is missing: the first then writes what belongs at each mark, as
    "[1] ... [2] ...", the next two the whole text, the last the translation of the text as `prepare` would read it.

    Args:
        run: a run of a causal or a sequence-to-sequence model; of one that was stopped, its newest checkpoint.
        prompts: the texts. For a blank one a model without an encoder writes a text of its own, any other nothing.
        config: how tokens are chosen.
        device: auto, cpu, cuda or mps.

    Raises:
        UserError: no such run, one that cannot write, or a prompt that is too long for it.
    """
    return [each.answer for part in write(run, in_memory(prompts), config, device=device) for each in part]


def write(
    run: str | Path | Run,
    prompts: Texts,
    config: GenerationConfig | None = None,
    *,
    device: str = "auto",
) -> Iterator[list[Written]]:
    """What `generate` gives for each prompt, in their order, some of them at once; memory does not grow with them.

    Args:
        run: as for `generate`.
        prompts: a file of texts, or tuples of one text each.
        config: as for `generate`.
        device: as for `generate`.

    Raises:
        UserError: as of `generate`, or there is a mistake in the file.
    """
    opened = run if isinstance(run, Run) else Run.open_trained(run)
    writer: PromptWriter | None = None
    for part in read_ahead(prompts, PROMPTS_AT_ONCE):
        if writer is None:
            module = opened.load(resolve_device(device))
            lay_out_for_few_rows(module)
            writer = PromptWriter(opened, config or GenerationConfig(), module)
        yield writer.write([text for (text,) in part])


class PromptWriter:
    """A run that writes for one prompt after the other.

    Args:
        run: what writes.
        config: how tokens are chosen.
        module: the run's model, as `run.load` gives it.

    Raises:
        UserError: it has not learnt to write.
    """

    def __init__(self, run: Run, config: GenerationConfig, module: PretrainingModel) -> None:
        self._run, self._config, self._tokenizer = run, config, run.tokenizer
        self._module = module
        (objective, *_) = run.recipe.objective
        self._objective: ObjectiveConfig = objective
        self._marks = objective.mark_ids(self._tokenizer)
        banned = set(never_written(self._tokenizer)) - set(self._marks)
        self._generator = Generator(self._module, self._tokenizer.separator, sorted(banned))
        self._has_source = self._module.model.config.sequence_to_sequence
        self._continues = not objective.rewrites or objective.continues_source
        self._done = 0

    def write(self, prompts: Sequence[str], draws: Sequence[Draws] | None = None) -> list[Written]:
        """What follows each of the next prompts.

        Args:
            prompts: N texts.
            draws: (N,) the random numbers of each; None: by the config's seed those of its number among all prompts.

        Raises:
            UserError: one is too long for the model.
        """
        rows = self._rows(prompts)
        draws = [self._draws(row) for row in range(len(rows))] if draws is None else draws
        if self._has_source:
            starts = [self._objective.prompt(self._tokenizer)] * len(rows)
            written = self._generator.write(starts, self._config, rows, draws)
        else:
            written = self._generator.write(rows, self._config, draws=draws)
        self._done += len(rows)
        return [self._joined(*each) for each in zip(prompts, rows, written, strict=True)]

    def stream(self, prompt: str) -> Iterator[str]:
        """The text that `write` gives for the next prompt, in pieces, as its tokens are written.

        A piece ends where nothing that follows changes it any more: behind whole characters, not behind half of one.

        Raises:
            UserError: the prompt is too long for the model, or the config asks for a search, which writes all at once.
        """
        if self._config.beams is not None and self._config.beams > 1:
            raise UserError("beams: a search knows its text at the end alone, and cannot be streamed; leave beams out")
        (row,) = self._rows([prompt])
        if self._has_source and is_blank([prompt]):
            return
        start, sources = (self._objective.prompt(self._tokenizer), [row]) if self._has_source else (row, None)
        ids: list[int] = []
        told = ""
        for token in self._generator.stream(start, self._config, sources, self._draws(0)):
            ids.append(token)
            whole = self._joined(prompt, row, ids).answer
            if whole.startswith(told) and not whole.endswith("\N{REPLACEMENT CHARACTER}") and len(whole) > len(told):
                yield whole[len(told) :]
                told = whole
        whole = self._joined(prompt, row, ids).answer
        if whole.startswith(told) and len(whole) > len(told):
            yield whole[len(told) :]
        self._done += 1

    def _draws(self, row: int) -> Draws:
        """The random numbers of one of the next prompts, where nothing else is said."""
        return Draws(self._config.seed, self._done + row)

    def _rows(self, prompts: Sequence[str]) -> list[list[int]]:
        """The ids of prompts, none of them too long."""
        own = [clean(text) for text in prompts] if self._run.recipe.input.parallel else prompts
        rows = [encoded(text, self._tokenizer, self._run) for text in own]
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
    """The text of a prompt's ids, and that of the ids behind it as it stands there, its space before it if it has one.

    Both are decoded together: alone, the ids behind a prompt do not tell whether they complete its last word.
    """
    before, whole = tokenizer.decode(prompt), tokenizer.decode([*prompt, *following])
    if whole.startswith(before):
        return before, whole[len(before) :]
    return before, tokenizer.decode(following)  # a decoder that changes what it has decoded already


def never_written(tokenizer: Tokenizer) -> list[int]:
    """The ids that no text is made of: those of special tokens but the separator, which ends it, and of sources."""
    return sorted({*tokenizer.special_ids.tolist(), *range(tokenizer.target_ids.start)} - {tokenizer.separator})


def encoded(text: str, tokenizer: Tokenizer, run: Run) -> list[int]:
    """The ids of a prompt, in the form in which pre-training showed texts."""
    (objective, *_) = run.recipe.objective
    parts = text.split(MASK) if objective.rewrites and not run.recipe.input.parallel else [text]
    marks = [tokenizer.mask] * (len(parts) - 1)
    if objective.gap_marks:
        if len(marks) > objective.gap_marks:
            raise UserError(f"a prompt has {len(marks)} {MASK}, but the run knows {objective.gap_marks} marks")
        marks = objective.mark_ids(tokenizer)[: len(marks)]
    ids = [part.tolist() for part in encoded_around(parts, tokenizer)]
    joined = ids[0] + [token for mark, part in zip(marks, ids[1:], strict=True) for token in (mark, *part)]
    if objective.rewrites:
        return [*objective.before_source(tokenizer), *joined, tokenizer.separator]
    return [tokenizer.opening, *joined]


def decoded(ids: Sequence[int], tokenizer: Tokenizer, marks: Sequence[int]) -> str:
    """The text of what was written; marks of gaps are shown by their numbers, counted from 1."""
    numbers = {token: number for number, token in enumerate(marks, 1)}
    if numbers.keys().isdisjoint(ids):
        return tokenizer.decode(ids)
    pieces: list[str] = []
    for marked, run in groupby(ids, key=lambda token: token in numbers):
        tokens = list(run)
        pieces += [f"[{numbers[token]}]" for token in tokens] if marked else [tokenizer.decode(tokens).strip()]
    return " ".join(pieces)
