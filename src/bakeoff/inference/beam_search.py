"""Beam search over several prompts at once.

Shapes: P prompts that are searched for still, R rows (the candidates of all of them, those of a prompt one behind the
other), V vocabulary.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence


class Found(NamedTuple):
    """The text with the best score."""

    ids: list[int]
    """Its tokens, without the one that ends it."""
    log_probability: float
    """Of all its tokens, the one that ends it included if it was reached, in nats."""


class Search(NamedTuple):
    """How the best text is looked for."""

    beams: int
    """Candidates of each prompt that are gone on with; one: the most likely token is taken, and never looked back."""
    tokens: int
    """The most tokens of a text, its end included."""
    length_penalty: float
    """alpha of the score log p(y) / ((5 + |y|) / 6)^alpha (Wu et al. 2016, arXiv:1609.08144, equation 14)."""
    end: int | None
    """The token that ends a text."""

    def value(self, total: float, length: int) -> float:
        """The score of a text of so many tokens."""
        return float(total / ((5 + length) / 6) ** self.length_penalty)


@dataclass
class _Prompt:
    """What is known of a prompt's texts."""

    number: int
    """Its place among all prompts."""
    ids: list[list[int]] = field(default_factory=lambda: [[]])
    """The candidates, the likeliest first."""
    totals: list[float] = field(default_factory=lambda: [0.0])
    """Their log-probabilities."""
    finished: list[tuple[float, Found]] = field(default_factory=list)
    """Texts that have ended, with their scores."""

    def best(self, search: Search) -> Found:
        """The best text, be it one that was cut at the most tokens."""
        cut = [
            (search.value(total, len(ids)), Found(ids, total)) for total, ids in zip(self.totals, self.ids, strict=True)
        ]
        return max(self.finished + cut, key=lambda entry: entry[0])[1]

    def settled(self, search: Search, length: int) -> bool:
        """Whether no candidate of so many tokens can become better than what has ended."""
        if not self.totals:
            return True
        if len(self.finished) < search.beams:
            return False
        if search.beams == 1:
            return True
        # No candidate can become better than it would be at the greatest length without further loss.
        first = self.totals[0]
        reachable = max(search.value(first, length + 1), search.value(first, search.tokens))
        return sorted((value for value, _ in self.finished), reverse=True)[search.beams - 1] >= reachable

    def take(self, found: list[tuple[float, int, int]], search: Search) -> list[tuple[int, int]]:
        """Go on with the best of (total, candidate, token), which come in falling order.

        Returns:
            The candidate and the token of each new candidate.
        """
        chosen: list[tuple[float, int, int]] = []
        for total, place, token in found:
            if total == float("-inf") or len(chosen) == search.beams:
                break
            if token == search.end:
                own = self.ids[place]
                self.finished.append((search.value(total, len(own) + 1), Found(own, total)))
            else:
                chosen.append((total, place, token))
        self.ids = [[*self.ids[place], token] for _, place, token in chosen]
        self.totals = [total for total, _, _ in chosen]
        return [(place, token) for _, place, token in chosen]


def beam_search(scores: Tensor, go_on: Callable[[list[int], list[int]], Tensor | None], search: Search) -> list[Found]:
    """The best text that follows each prompt; a prompt's does not depend on the others.

    Args:
        scores: (P, V) log-probabilities of what follows each prompt.
        go_on: takes the rows that the last scores were of, each as often as it is gone on with, and the token that
            follows each; gives the (R, V) scores of what follows these, or None where nothing more can be read.
        search: how to look.
    """
    found: dict[int, Found] = {}
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
                rows += [begin + place for place, _ in taken]
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
    """The best continuations of each prompt's candidates, in falling order: total, candidate, token."""
    # Each candidate may end once, so that twice as many continuations leave enough that do not.
    most = min(2 * search.beams, scores.shape[1])
    best, tokens = scores.topk(most)  # (R, most)
    counts = [len(prompt.totals) for prompt in going]
    totals = torch.tensor([total for prompt in going for total in prompt.totals], dtype=torch.float64)
    sums = totals.to(scores.device)[:, None] + best.double()
    padded = pad_sequence(list(sums.split(counts)), batch_first=True, padding_value=float("-inf")).flatten(1)
    values, places = padded.topk(min(2 * search.beams, padded.shape[1]))  # (P, at most 2 beams)
    found, begin, names = [], 0, tokens.tolist()
    for own, own_places, count in zip(values.tolist(), places.tolist(), counts, strict=True):
        pairs = [divmod(place, most) for place in own_places]
        found.append(
            [
                (value, row, names[begin + row][column])
                for value, (row, column) in zip(own, pairs, strict=True)
                if row < count
            ]
        )
        begin += count
    return found
