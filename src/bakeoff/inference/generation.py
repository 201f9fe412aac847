"""Generation: a causal model goes on with a text, a sequence-to-sequence model writes a target for a source.

Shapes: B rows, V vocabulary.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import torch
from pydantic import Field, model_validator
from torch import Tensor

from bakeoff.config import Config
from bakeoff.display.wording import listed
from bakeoff.errors import UserError
from bakeoff.inference.beam_search import Found, Search, beam_search
from bakeoff.inference.sampling import draw, filtered
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.models.inputs import Source
from bakeoff.models.model import Model, ModelState
from bakeoff.models.part import map_state
from bakeoff.objectives.heads import Head
from bakeoff.objectives.registry import OBJECTIVES

PLACES = 1 << 14
"""Tokens, those to be written included, that are held at once."""

SCORES_AT_ONCE = 1 << 22
"""Scores of a token that are held at once; they are sorted in float64, several times 32 MB."""


class GenerationConfig(Config):
    """How tokens are chosen."""

    tokens: int = Field(default=100, gt=0)
    """The most tokens to write; less where the model ends the text itself."""
    temperature: float = Field(default=1.0, ge=0)
    """Temperature of sampling: below 1 the likely becomes likelier; 0 always takes the most likely token (greedy)."""
    top_k: int | None = Field(default=None, gt=0)
    """Sample from the so many most likely tokens."""
    top_p: float = Field(default=1.0, gt=0, le=1)
    """Sample from the fewest most likely tokens that have this share together."""
    beams: int | None = Field(default=None, gt=0, le=1000)
    """Search for the likeliest text with so many candidates, instead of sampling; 1 always takes the most likely
    token."""
    length_penalty: float = Field(default=0.6, ge=0)
    """How much the search favours long texts: a text's score is its log-probability divided by ((5 + length) / 6) to
    this power."""
    seed: int = 0
    """Seed of sampling."""

    @model_validator(mode="after")
    def _one_way(self) -> "GenerationConfig":
        if self.beams is not None and (self.top_k is not None or self.top_p < 1 or self.temperature not in (0, 1)):
            raise ValueError("beams: a search does not sample; leave temperature, top_k and top_p out")
        return self


class Writer(NamedTuple):
    """What writes."""

    model: Model
    """A model that reads forwards."""
    head: Head
    """The head that predicts its next token."""
    reads_prefix: bool
    """What the model is given to go on with is seen from both sides."""


class Generator:
    """A model with the head that predicts its next token.

    Args:
        module: a pre-trained model with its heads, or what writes, in evaluation mode.
        end: the token that ends a text; None writes on.
        banned: tokens that are never written.
    """

    def __init__(self, module: PretrainingModel | Writer, end: int | None, banned: Sequence[int] = ()) -> None:
        if isinstance(module, Writer):
            self.writer = module
        else:
            self.writer = Writer(module.model, next_token_head(module), module.reads_prefix)
        self.model, self.head, self.end = self.writer.model, self.writer.head, end
        self.table = self.model.embedding.table
        self.banned = torch.tensor(sorted(banned), dtype=torch.int64, device=self.table.device)

    @torch.inference_mode()
    def write(
        self,
        prompts: Sequence[Sequence[int]],
        config: GenerationConfig,
        sources: Sequence[Sequence[int]] | None = None,
        first: int = 0,
    ) -> list[list[int]]:
        """What follows each prompt.

        Args:
            prompts: token ids, at least one each; any lengths.
            config: how tokens are chosen.
            sources: for sequence-to-sequence models the ids that each row's encoder reads.
            first: number of the first prompt, where others were written before; the random numbers of a prompt are
                those of its number.

        Returns:
            For each prompt the ids that were written, without the token that ends the text. A prompt's result does
            not depend on the others'.
        """
        if config.beams is not None and config.beams > 1:
            return [each.ids for each in self.search(prompts, config, sources)]
        written: list[list[int]] = [[] for _ in prompts]
        for rows in self._together(prompts, sources, config.tokens):
            own = [prompts[row] for row in rows]
            given = None if sources is None else [sources[row] for row in rows]
            numbers = [first + row for row in rows]
            for row, ids in zip(rows, self._sample(own, config, given, numbers), strict=True):
                written[row] = ids
        return written

    def _together(
        self,
        prompts: Sequence[Sequence[int]],
        sources: Sequence[Sequence[int]] | None,
        tokens: int,
        beams: int | None = None,
    ) -> Iterator[list[int]]:
        """The prompts that go on together: those of similar length that fit, each with so many beams.

        Prefixes, and what is searched with beams, are read at once and therefore of one length.
        """
        lengths = [len(prompt) + (len(sources[row]) if sources else 0) for row, prompt in enumerate(prompts)]
        order = sorted(range(len(prompts)), key=lambda row: (lengths[row], len(prompts[row])))
        chosen: list[int] = []
        each = beams or 1
        most = max(1, SCORES_AT_ONCE // (each * len(self.table)))
        alike = beams is not None or self.writer.reads_prefix
        for row in order:
            full = len(chosen) >= most or (len(chosen) + 1) * each * (lengths[row] + tokens) > PLACES
            other = alike and chosen and len(prompts[row]) != len(prompts[chosen[0]])
            if chosen and (full or other):
                yield chosen
                chosen = []
            chosen.append(row)
        if chosen:
            yield chosen

    def _sample(
        self,
        prompts: Sequence[Sequence[int]],
        config: GenerationConfig,
        sources: Sequence[Sequence[int]] | None,
        numbers: Sequence[int],
    ) -> list[list[int]]:
        """What follows each prompt, each with random numbers of its own, which its number gives."""
        return self._continue(prompts, config.tokens, _chooser(config, numbers), sources)

    def stream(
        self,
        prompt: Sequence[int],
        config: GenerationConfig,
        sources: Sequence[Sequence[int]] | None = None,
        first: int = 0,
    ) -> Iterator[int]:
        """The ids that `write` gives for one prompt, each as soon as it is chosen; arguments as of `write`."""
        steps = self._steps([prompt], config.tokens, _chooser(config, [first]), sources)
        while True:
            with torch.inference_mode():  # left again while the caller has what was written
                step = next(steps, None)
            if step is None:
                return
            yield from (token for _, token in step)

    def _continue(
        self,
        prompts: Sequence[Sequence[int]],
        tokens: int,
        choose: Callable[[Tensor, list[int]], Tensor],
        sources: Sequence[Sequence[int]] | None,
    ) -> list[list[int]]:
        """What follows each prompt."""
        written: list[list[int]] = [[] for _ in prompts]
        for step in self._steps(prompts, tokens, choose, sources):
            for row, token in step:
                written[row].append(token)
        return written

    def _steps(
        self,
        prompts: Sequence[Sequence[int]],
        tokens: int,
        choose: Callable[[Tensor, list[int]], Tensor],
        sources: Sequence[Sequence[int]] | None,
    ) -> Iterator[list[tuple[int, int]]]:
        """Rows go on together: what all prompts have is read at once, then a row whose prompt is longer reads on.

        Yields, step by step, the rows that write, each with its next token.
        """
        known = [list(prompt) for prompt in prompts]
        counts = [0] * len(known)
        done = [False] * len(known)
        shortest = min(map(len, known))
        state = self.model.start(len(known), self._source(sources), in_place=True)
        chunk = self._ids([row[:shortest] for row in known])
        prefix = self._prefix(chunk)
        while True:
            hidden, state = self.model.extend(chunk, state, prefix=prefix)
            prefix = None
            # Rows that read on, or have ended, need no scores of the vocabulary.
            following = [
                0 if ended else row[state.tokens] if state.tokens < len(row) else -1
                for row, ended in zip(known, done, strict=True)
            ]
            wanted = [row for row, token in enumerate(following) if token < 0]
            step: list[tuple[int, int]] = []
            if wanted:
                last = hidden[:, -1] if len(wanted) == len(known) else hidden[wanted, -1]
                for row, token in zip(wanted, choose(self.scores(last), wanted).tolist(), strict=True):
                    following[row] = token
                    done[row] = token == self.end
                    if not done[row]:
                        step.append((row, token))
                        counts[row] += 1
                        done[row] = counts[row] >= tokens
            if step:
                yield step
            if all(done) or self._full(state):
                return
            chunk = self._ids([[token] for token in following])

    @torch.inference_mode()
    def search(
        self,
        prompts: Sequence[Sequence[int]],
        config: GenerationConfig,
        sources: Sequence[Sequence[int]] | None = None,
    ) -> list[Found]:
        """The best of what `beams` candidates find to follow each prompt; arguments as of `write`."""
        search = Search(config.beams or 1, config.tokens, config.length_penalty, self.end)
        found: dict[int, Found] = {}
        for rows in self._together(prompts, sources, config.tokens, search.beams):
            own = [prompts[row] for row in rows]
            given = None if sources is None else [sources[row] for row in rows]
            found |= zip(rows, self._searched(own, search, given), strict=True)
        return [found[row] for row in range(len(prompts))]

    def _searched(
        self, prompts: Sequence[Sequence[int]], search: Search, sources: Sequence[Sequence[int]] | None
    ) -> list[Found]:
        """The same for prompts of one length, all at once."""
        ids = self._ids(prompts)
        hidden, state = self.model.extend(
            ids, self.model.start(len(ids), self._source(sources)), prefix=self._prefix(ids)
        )

        def go_on(rows: list[int], following: list[int]) -> Tensor | None:
            nonlocal state
            if self._full(state):
                return None
            chosen = chosen_rows(state, self._ids([rows])[0])
            hidden, state = self.model.extend(self._ids([[token] for token in following]), chosen)
            return self.scores(hidden[:, -1])

        return beam_search(self.scores(hidden[:, -1]), go_on, search)

    def scores(self, hidden: Tensor) -> Tensor:
        """(B, V) log-probabilities of the next token behind (B, D) hidden states, minus infinity where banned."""
        return self.head.log_probabilities(hidden, self.table).index_fill(1, self.banned, float("-inf"))

    def _source(self, sources: Sequence[Sequence[int]] | None) -> Source | None:
        if sources is None:
            return None
        longest = max(map(len, sources))
        real = torch.tensor([[place < len(row) for place in range(longest)] for row in sources])
        ids = self._ids([[*row, *[0] * (longest - len(row))] for row in sources])
        return Source(ids, None if bool(real.all()) else real.to(ids.device))

    def _prefix(self, ids: Tensor) -> Tensor | None:
        """(B,) that all of (B, T) prompts are seen from both sides, where pre-training has shown the model prefixes."""
        return torch.full_like(ids[:, 0], ids.shape[1]) if self.writer.reads_prefix else None

    def _ids(self, rows: Sequence[Sequence[int]]) -> Tensor:
        return torch.tensor(rows, dtype=torch.int64, device=self.table.device)

    def _full(self, state: ModelState) -> bool:
        longest = self.model.config.longest_input
        return longest is not None and state.tokens >= longest


def _chooser(config: GenerationConfig, numbers: Sequence[int]) -> Callable[[Tensor, list[int]], Tensor]:
    """Chooses the next (N,) tokens by the (N, V) scores of some rows, whose places come with them.

    Args:
        config: how.
        numbers: (B,) the prompts' numbers, each of which gives random numbers of its own.
    """
    seeds = [(config.seed * 1_000_003 + number) % 2**64 for number in numbers]
    drawn = [torch.Generator().manual_seed(seed) for seed in seeds]

    def choose(scores: Tensor, rows: list[int]) -> Tensor:
        if config.temperature == 0 or config.beams == 1:
            return scores.argmax(-1)
        # A number is used up for each token that is written, whatever the other rows do.
        uniform = torch.stack([torch.rand((), generator=drawn[row], dtype=torch.float64) for row in rows])
        return draw(filtered(scores, config.temperature, config.top_k, config.top_p), uniform.to(scores.device))

    return choose


def chosen_rows(state: ModelState, rows: Tensor) -> ModelState:
    """The state of some rows, each as often as it is named by the (B,) indices."""
    mask = state.source_mask
    return state._replace(
        layers=map_state(state.layers, lambda tensor: tensor.index_select(0, rows)),
        source=None if state.source is None else state.source.index_select(0, rows),
        source_mask=None if mask is None else mask.index_select(0, rows),
    )


def next_token_head(module: PretrainingModel) -> Head:
    """The head of the objective that has taught the model its next token.

    Raises:
        UserError: there is none.
    """
    if module.writing is None:
        able = [kind for kind, config in OBJECTIVES.items() if config.writes]
        raise UserError(
            f"this run was trained on {', '.join(module.weights)} and cannot write; generate needs a run with "
            f"{listed(able, 'or')}"
        )
    return next(objective.head for objective in module.objectives if objective.name == module.writing)
