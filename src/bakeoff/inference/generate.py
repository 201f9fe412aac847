"""Texts in, texts out: generation with a run."""

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from bakeoff.corpus.aligned import clean
from bakeoff.corpus.tokenizer import Tokenizer
from bakeoff.errors import UserError
from bakeoff.inference.generation import GenerationConfig, Generator
from bakeoff.objectives.span_corruption import SpanCorruptionConfig
from bakeoff.training.device import resolve_device
from bakeoff.training.run import Run

MASK = "[MASK]"
"""Stands in a prompt for what a sequence-to-sequence model shall fill in."""


def generate(
    run: str | Path | Run,
    prompts: Sequence[str],
    config: GenerationConfig | None = None,
    *,
    device: str = "auto",
) -> list[str]:
    """Let a run go on with texts, or write the target for them.

    A model trained with clm or prefix_clm continues each prompt. One trained with span_corruption, denoising,
    deshuffling or prefix_lm reads it as its source, in which [MASK] stands for what is missing: the first then writes
    what belongs at each mark, as "[1] ... [2] ...", the next two the whole text, the last what follows. One trained
    with translation reads it as a source, as `prepare` would, and writes its translation; that of an empty text is
    empty.

    Args:
        run: a run of a causal or a sequence-to-sequence model; of one that was stopped, its newest checkpoint.
        prompts: the texts; for clm and prefix_clm they may be empty.
        config: how tokens are chosen.
        device: auto, cpu, cuda or mps.

    Raises:
        UserError: no such run, one that cannot write, or a prompt that is too long for it.
    """
    opened = run if isinstance(run, Run) else Run.open_trained(run)
    config = config or GenerationConfig()
    if not prompts:
        return []
    module = opened.load(resolve_device(device))
    tokenizer = opened.tokenizer
    generator = Generator(module, tokenizer.separator, never_written(tokenizer))
    translates = opened.recipe.input.parallel
    if translates:
        prompts = [clean(text) for text in prompts]
    rows = [encoded(text, tokenizer, opened) for text in prompts]
    longest = module.model.config.longest_input
    for text, row in zip(prompts, rows, strict=True):
        if longest is not None and len(row) >= longest:
            raise UserError(f"'{text[:30]}...': {len(row)} tokens are too long for this model, which has {longest}")
    if module.model.config.sequence_to_sequence:
        written = generator.write([[tokenizer.start]] * len(rows), config, sources=rows)
    else:
        written = generator.write(rows, config)
    silent = [translates and not text for text in prompts]
    return ["" if empty else decoded(ids, tokenizer) for ids, empty in zip(written, silent, strict=True)]


def never_written(tokenizer: Tokenizer) -> list[int]:
    """The ids that no text is made of: those of special tokens but the separator, which ends it, and of sources."""
    return sorted({*tokenizer.special_ids.tolist(), *range(tokenizer.target_ids.start)} - {tokenizer.separator})


def encoded(text: str, tokenizer: Tokenizer, run: Run) -> list[int]:
    """The ids of a prompt, in the form in which pre-training showed texts."""
    (objective, *_) = run.recipe.objective
    parts = text.split(MASK) if objective.rewrites and not run.recipe.input.parallel else [text]
    marks = [tokenizer.mask] * (len(parts) - 1)
    if isinstance(objective, SpanCorruptionConfig):
        if len(marks) > objective.marks:
            raise UserError(f"a prompt has {len(marks)} {MASK}, but the run knows {objective.marks} marks")
        marks = [tokenizer.size + index for index in range(len(marks))]
    ids = [part.tolist() for part, _ in tokenizer.encode(parts)]
    joined = ids[0] + [token for mark, part in zip(marks, ids[1:], strict=True) for token in (mark, *part)]
    return [*joined, tokenizer.separator] if objective.rewrites else [tokenizer.separator, *joined]


def decoded(ids: Sequence[int], tokenizer: Tokenizer) -> str:
    """The text of what was written; marks beyond the vocabulary are shown by their numbers, counted from 1."""
    if all(token < tokenizer.size for token in ids):
        return tokenizer.decode(ids)
    pieces: list[str] = []
    for marked, run in groupby(ids, key=lambda token: token >= tokenizer.size):
        tokens = list(run)
        pieces += (
            [f"[{token - tokenizer.size + 1}]" for token in tokens] if marked else [tokenizer.decode(tokens).strip()]
        )
    return " ".join(pieces)
