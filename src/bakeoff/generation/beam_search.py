"""Beam search over several prompts at once.

Shapes: P prompts whose search goes on, R rows (the candidates of all these prompts, prompt by prompt), V vocabulary.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence


class Hypothesis(NamedTuple):
    """A text that a search has made."""

    ids: list[int]
    """The tokens of the text, without the end token."""
    log_probability: float
    """Sum over the tokens in nats, the end token included if it was reached."""


class Search(NamedTuple):
    """Settings of a beam search."""

    beams: int
    """Number of candidates of each prompt; 1: greedy search."""
    tokens: int
    """Largest number of tokens of a text, the end token included."""
    length_penalty: float
    """alpha of the score log p(y) / ((5 + |y|) / 6)^alpha (Wu et al. 2016, arXiv:1609.08144, equation 14)."""
    end: int | None
    """The token that ends a text; None: texts end at `tokens` alone."""

    def value(self, total: float, length: int) -> float:
        """The score of a text with the log-probability `total` and `length` tokens."""
        return float(total / ((5 + length) / 6) ** self.length_penalty)


@dataclass
class _Prompt:
    """The search of one prompt."""

    number: int
    """The index of the prompt."""
    ids: list[list[int]] = field(default_factory=lambda: [[]])
    """The tokens of the candidates, the likeliest candidate first."""
    totals: list[float] = field(default_factory=lambda: [0.0])
    """The log-probabilities of the candidates in nats."""
    finished: list[tuple[float, Hypothesis]] = field(default_factory=list)
    """Scores and texts that have ended."""

    def best(self, search: Search) -> Hypothesis:
        """The text with the best score, among ended ones and those cut at the largest number of tokens."""
        cut = [
            (search.value(total, len(ids)), Hypothesis(ids, total))
            for total, ids in zip(self.totals, self.ids, strict=True)
        ]
        return max(self.finished + cut, key=lambda entry: entry[0])[1]

    def settled(self, search: Search, length: int) -> bool:
        """Whether no candidate of `length` tokens can become better than the ended texts."""
        if not self.totals:
            return True
        if len(self.finished) < search.beams:
            return False
        if search.beams == 1:
            return True
        # The score that the best candidate would have without any further loss bounds all of them.
        first = self.totals[0]
        reachable = max(search.value(first, length + 1), search.value(first, search.tokens))
        return sorted((value for value, _ in self.finished), reverse=True)[search.beams - 1] >= reachable

    def take(self, found: list[tuple[float, int, int]], search: Search) -> list[tuple[int, int]]:
        """Replace the candidates by the best continuations (total, candidate, token), given in falling order.

        Returns:
            The old candidate and the new token of each new candidate.
        """
        chosen: list[tuple[float, int, int]] = []
        for total, candidate, token in found:
            if total == float("-inf") or len(chosen) == search.beams:
                break
            if token == search.end:
                own = self.ids[candidate]
                self.finished.append((search.value(total, len(own) + 1), Hypothesis(own, total)))
            else:
                chosen.append((total, candidate, token))
        self.ids = [[*self.ids[candidate], token] for _, candidate, token in chosen]
        self.totals = [total for total, _, _ in chosen]
        return [(candidate, token) for _, candidate, token in chosen]


def beam_search(
    scores: Tensor, go_on: Callable[[list[int], list[int]], Tensor | None], search: Search
) -> list[Hypothesis]:
    """The best continuation of each prompt, independent of the other prompts.

    Args:
        scores: (P, V) log-probabilities of the first tokens.
        go_on: a function from rows of the last scores (a row with several continuations repeats) and their next tokens
            to the (R, V) log-probabilities of the tokens after these, or None if the model has no more positions.
        search: the settings.
    """
    found: dict[int, Hypothesis] = {}
    going = [_Prompt(number) for number in range(len(scores))]
    for length in range(1, search.tokens + 1):
        rows: list[int] = []
        following: list[int] = []
        begin, still = 0, []
        for prompt, candidates in zip(going, _candidates(scores, going, search), strict=True):
            width = len(prompt.totals)
            taken = prompt.take(candidates, search)
            if prompt.settled(search, length):
                found[prompt.number] = prompt.best(search)
            else:
                rows += [begin + candidate for candidate, _ in taken]
                following += [token for _, token in taken]
                still.append(prompt)
            begin += width
        going = still
        if not going or length == search.tokens or (after := go_on(rows, following)) is None:
            break
        scores = after
    found |= {prompt.number: prompt.best(search) for prompt in going}
    return [found[number] for number in sorted(found)]


def _candidates(scores: Tensor, going: list[_Prompt], search: Search) -> list[list[tuple[float, int, int]]]:
    """The best continuations of each prompt's candidates as (total, candidate, token), in falling order."""
    # Each candidate has at most one continuation that ends, so twice as many continuations are enough.
    most = min(2 * search.beams, scores.shape[1])
    best, tokens = scores.topk(most)  # (R, most)
    counts = [len(prompt.totals) for prompt in going]
    totals = torch.tensor([total for prompt in going for total in prompt.totals], dtype=torch.float64)
    sums = totals.to(scores.device)[:, None] + best.double()
    padded = pad_sequence(list(sums.split(counts)), batch_first=True, padding_value=float("-inf")).flatten(1)
    values, indices = padded.topk(min(2 * search.beams, padded.shape[1]))  # (P, at most 2 beams)
    found, begin, names = [], 0, tokens.tolist()
    for own, of_prompt, count in zip(values.tolist(), indices.tolist(), counts, strict=True):
        pairs = [divmod(index, most) for index in of_prompt]
        found.append(
            [
                (value, row, names[begin + row][column])
                for value, (row, column) in zip(own, pairs, strict=True)
                if row < count
            ]
        )
        begin += count
    return found
