"""The methods by which a run can score a text."""

import unicodedata
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bakeoff.display.wording import listed
from bakeoff.errors import UserError
from bakeoff.objectives.objective import ObjectiveConfig
from bakeoff.objectives.registry import OBJECTIVES
from bakeoff.runs.run import Run
from bakeoff.scoring.options import Reading
from bakeoff.tokenizer.pieces import Speller
from bakeoff.tokenizer.tokenizer import Tokenizer


def readings(run: Run) -> dict[Reading, ObjectiveConfig]:
    """The ways in which a run can score a sentence, each with the objective that taught it.

    Raises:
        UserError: no objective of the run gives sentences a probability.
    """
    objectives: list[ObjectiveConfig] = list(run.recipe.trained_first)
    found = readings_of(objectives)
    if not found:
        able = [kind for kind, config in OBJECTIVES.items() if _forwards(config) or _pseudo(config)]
        raise UserError(
            f"{run.path}: trained on {', '.join(each.kind for each in objectives)}, which gives sentences no "
            f"probability; that needs {listed(able, 'or')}"
        )
    return found


def readings_of(objectives: Sequence[ObjectiveConfig]) -> dict[Reading, ObjectiveConfig]:
    """The ways in which runs with these objectives can score a sentence, each with its objective; empty: in none."""
    found: dict[Reading, ObjectiveConfig] = {}
    for each in objectives:
        if _forwards(each):
            found.setdefault("forwards", each)
        elif _pseudo(each):
            found.setdefault("pseudo", each)
            found.setdefault("pseudo_words", each)
    return found


def require_reading(run: Run, reading: Reading) -> dict[Reading, ObjectiveConfig]:
    """The ways in which a run can score a sentence, with a check that `reading` is among them.

    Raises:
        UserError: the run cannot score in the way `reading`.
    """
    known = readings(run)
    if reading not in known:
        raise UserError(f"{run.path}: cannot read {reading}, only {', '.join(known)}")
    return known


def _forwards(objective: ObjectiveConfig | type[ObjectiveConfig]) -> bool:
    return objective.scoring == "forwards"


def _pseudo(objective: ObjectiveConfig | type[ObjectiveConfig]) -> bool:
    return objective.scoring in ("masked", "query") or objective.from_before


class WordStarts:
    """Starts of words for masking: after white space, and before and after punctuation."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._speller = Speller(tokenizer)
        plain = (token for token in range(tokenizer.size) if self._speller.plain(token))
        # The speller shows a piece inside a word only after another token.
        self._before = next((token for token in plain if self._speller.name(token).isalnum()), None)
        self._edges: dict[int, tuple[bool, bool]] = {}

    def starts(self, ids: NDArray[np.int64], spaced: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """(T,) True for tokens that start a word.

        Args:
            ids: (T,) tokens.
            spaced: (T,) True for tokens after white space.
        """
        edges = np.array([self._edges_of(token) for token in ids.tolist()], bool).reshape(-1, 2)
        starts: NDArray[np.bool_] = spaced | edges[:, 0]
        starts[1:] |= edges[:-1, 1]
        return starts

    def _edges_of(self, token: int) -> tuple[bool, bool]:
        """Whether a token begins with punctuation, and whether it ends with punctuation."""
        if token not in self._edges:
            text = self._speller.behind(self._before, [token]).strip() if self._speller.plain(token) else ""
            self._edges[token] = (bool(text) and _punctuation(text[0]), bool(text) and _punctuation(text[-1]))
        return self._edges[token]


def _punctuation(character: str) -> bool:
    return unicodedata.category(character)[0] == "P"
