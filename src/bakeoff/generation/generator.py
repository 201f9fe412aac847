"""Generation of token ids: continuations by causal models, targets by sequence-to-sequence models."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from bakeoff.distributed.processes import ALONE, Processes
from bakeoff.generation.beam_search import Hypothesis, Search, beam_search
from bakeoff.generation.config import GenerationConfig
from bakeoff.generation.sampling import PromptSeed, chooser
from bakeoff.generation.writer import Writer, writer_of
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.lengths import by_length, padded
from bakeoff.models.part import ModelState, chosen_rows
from bakeoff.resources.device import autocast
from bakeoff.row import Row, Source

SCORES_AT_ONCE = 1 << 22
"""Largest number of scores held at once; they are sorted in float64, which takes several times 32 MB."""


Prompts = Sequence[Sequence[int]]
"""The token ids of each prompt."""


class Generator:
    """Generation with a model and its head for next tokens.

    Args:
        module: a pre-trained model with its heads, or a `Writer`; in evaluation mode.
        end: the token that ends a text; None: texts end at the largest number of tokens alone.
        banned: tokens that are never written.
        precision: float32 or bfloat16, the precision of products.
    """

    def __init__(
        self,
        module: PretrainingModel | Writer,
        end: int | None,
        banned: Sequence[int] = (),
        precision: str = "float32",
    ) -> None:
        self.writer, self.precision = module if isinstance(module, Writer) else writer_of(module), precision
        self.model, self.end = self.writer.model, end
        self.device = self.model.device
        self.banned = ids_of(sorted(banned), self.device)

    @torch.inference_mode()
    def write(
        self,
        prompts: Prompts,
        config: GenerationConfig,
        sources: Prompts | None = None,
        seeds: Sequence[PromptSeed] | None = None,
    ) -> list[list[int]]:
        """Generate the ids that follow each prompt.

        Args:
            prompts: token ids of any lengths, at least one id each.
            config: how tokens are chosen.
            sources: for sequence-to-sequence models, the ids that the encoder reads for each prompt.
            seeds: the random numbers of each prompt; None: those of the config's seed and the prompt's index.

        Returns:
            The generated ids of each prompt, without the end token. They do not depend on the other prompts.
        """
        if config.beams is not None and config.beams > 1:
            return [each.ids for each in self.search(prompts, config, sources)]
        drawn = [PromptSeed(config.seed, row) for row in range(len(prompts))] if seeds is None else seeds
        written: list[list[int]] = [[] for _ in prompts]
        for rows in self._together(prompts, sources, config.tokens):
            own = [prompts[row] for row in rows]
            given = None if sources is None else [sources[row] for row in rows]
            for step in self._steps(own, config, [drawn[row] for row in rows], given):
                for number, token in step:
                    written[rows[number]].append(token)
        return written

    def _together(
        self, prompts: Prompts, sources: Prompts | None, tokens: int, beams: int | None = None
    ) -> Iterator[list[int]]:
        """The indices of prompts, batch by batch."""
        most = max(1, SCORES_AT_ONCE // ((beams or 1) * self.model.vocabulary))
        alike = beams is not None or not self.model.stack.skips_padding
        return together(prompts, sources, tokens, most, beams or 1, alike)

    def stream(
        self,
        prompt: Sequence[int],
        config: GenerationConfig,
        sources: Prompts | None = None,
        seed: PromptSeed | None = None,
    ) -> Iterator[int]:
        """Generate the ids of `write` for one prompt, each as soon as it is chosen; arguments as for `write`."""
        steps = self._steps([prompt], config, [seed or PromptSeed(config.seed)], sources)
        while True:
            with torch.inference_mode():  # not held while the caller uses the token
                step = next(steps, None)
            if step is None:
                return
            yield from (token for _, token in step)

    def _steps(
        self, prompts: Prompts, config: GenerationConfig, seeds: Sequence[PromptSeed], sources: Prompts | None
    ) -> Iterator[list[tuple[int, int]]]:
        """Generate for a batch of prompts, which are aligned at their ends, with padding before shorter ones.

        Yields for each step the rows that are not done and their next tokens. Each row has its own random numbers.
        """
        choose = chooser(config, seeds)
        going = list(range(len(prompts)))  # rows of the batch in the order of the state
        counts, done = [0] * len(prompts), [False] * len(prompts)
        lengths = [len(prompt) for prompt in prompts]
        chunk, padding_mask = padded(prompts, 0, self.device, before=True)
        prefix = ids_of(lengths, self.device) if self.writer.reads_prefix else None
        row = Row(chunk, padding_mask=padding_mask, source=source_of(sources, self.device), prefix=prefix)
        longest = max(lengths) + config.tokens
        state = self.model.start(len(prompts), room=min(longest, self.model.config.longest_input or longest))
        while True:
            left = [slot for slot, number in enumerate(going) if not done[number]]  # rows that are done need no logits
            scores, state = self._scores(row, state, left, not config.greedy)
            wanted = [going[slot] for slot in left]
            step: list[tuple[int, int]] = []
            following = dict.fromkeys(going, 0)
            for number, token in zip(wanted, choose(scores, wanted).tolist(), strict=True):
                following[number] = token
                done[number] = token == self.end
                if not done[number]:
                    step.append((number, token))
                    counts[number] += 1
                    done[number] = counts[number] >= config.tokens or self._full(lengths[number] + counts[number] - 1)
            if step:
                yield step
            left = [slot for slot, number in enumerate(going) if not done[number]]
            if not left:
                return
            if len(left) <= len(going) // 2:  # below that, copying the state costs more than it saves
                state, going = chosen_rows(state, ids_of(left, self.device)), [going[slot] for slot in left]
            row = Row(ids_of([[following[number]] for number in going], self.device))

    @torch.inference_mode()
    def search(
        self,
        prompts: Prompts,
        config: GenerationConfig,
        sources: Prompts | None = None,
        processes: Processes = ALONE,
    ) -> list[Hypothesis]:
        """The best continuation of each prompt by beam search, for which several processes share the batches.

        Other arguments are as for `write`.
        """
        search = Search(config.beams or 1, config.tokens, config.length_penalty, self.end)

        def of_batch(rows: list[int]) -> dict[int, Hypothesis]:
            own = [prompts[row] for row in rows]
            given = None if sources is None else [sources[row] for row in rows]
            return dict(zip(rows, self._searched(own, search, given), strict=True))

        found = processes.divided(list(self._together(prompts, sources, config.tokens, search.beams)), of_batch)
        return [found[row] for row in range(len(prompts))]

    def _searched(self, prompts: Prompts, search: Search, sources: Prompts | None) -> list[Hypothesis]:
        """Beam search for a batch of prompts of one length."""
        ids = ids_of(prompts, self.device)
        prefix = torch.full_like(ids[:, 0], ids.shape[1]) if self.writer.reads_prefix else None
        row = Row(ids, source=source_of(sources, self.device), prefix=prefix)
        scores, state = self._scores(row, self.model.start(len(ids)))

        def go_on(rows: list[int], following: list[int]) -> Tensor | None:
            nonlocal state
            if self._full(state.tokens):
                return None
            chosen = chosen_rows(state, ids_of(rows, self.device))
            scores, state = self._scores(Row(ids_of([[token] for token in following], self.device)), chosen)
            return scores

        return beam_search(scores, go_on, search)

    def _scores(
        self, row: Row[Tensor], state: ModelState, chosen: Sequence[int] | None = None, normalised: bool = True
    ) -> tuple[Tensor, ModelState]:
        """What `Writer` gives, with minus infinity for banned tokens."""
        with autocast(self.device, self.precision):
            scores, after = self.writer(row, state, chosen, normalised)
        return scores.index_fill_(1, self.banned, float("-inf")), after

    def _full(self, read: int) -> bool:
        """Whether the model has no position for a token after `read` tokens."""
        longest = self.model.config.longest_input
        return longest is not None and read >= longest


POSITIONS = 1 << 14
"""Largest number of tokens in a batch, including the tokens to be written."""


def together(
    prompts: Prompts, sources: Prompts | None, tokens: int, most: int, beams: int = 1, alike: bool = False
) -> Iterator[list[int]]:
    """The indices of prompts, in batches of similar length.

    Args:
        prompts: token ids, at least one id each.
        sources: the ids that the encoder reads for each prompt; None: there is no encoder.
        tokens: the number of tokens to be written.
        most: the largest number of prompts in a batch.
        beams: rows of each prompt.
        alike: whether the prompts of a batch must have the same length.
    """
    own = np.array([len(prompt) for prompt in prompts], np.int64)
    lengths = own + np.array([len(sources[row]) if sources else 0 for row in range(len(prompts))], np.int64)
    chosen: list[int] = []
    for row in by_length(lengths, own).tolist():
        full = len(chosen) >= most or (len(chosen) + 1) * beams * (lengths[row] + tokens) > POSITIONS
        other = alike and chosen and len(prompts[row]) != len(prompts[chosen[0]])
        if chosen and (full or other):
            yield chosen
            chosen = []
        chosen.append(row)
    if chosen:
        yield chosen


def ids_of(rows: Prompts | Sequence[int], device: torch.device) -> Tensor:
    """A tensor of ids: (B, T) for rows of one length, (B,) for numbers."""
    return torch.tensor(rows, dtype=torch.int64, device=device)


def source_of(sources: Prompts | None, device: torch.device) -> Source[Tensor] | None:
    """The source of a batch, with padding after the tokens; None: there is no encoder."""
    if sources is None:
        return None
    return Source(*padded(sources, 0, device))
