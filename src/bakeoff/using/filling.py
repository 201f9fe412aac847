"""What belongs at the masks of a text. Shapes: N masks, D width, V vocabulary, T tokens."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bakeoff.display.wording import listed
from bakeoff.errors import UserError
from bakeoff.inference.around_masks import encoded_around
from bakeoff.inference.both_sides import BothSides
from bakeoff.inference.generate import MASK
from bakeoff.inference.token_scores import batches, padded
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.models.inputs import Inputs
from bakeoff.objectives.objective import ObjectiveConfig
from bakeoff.objectives.registry import OBJECTIVES
from bakeoff.reading.aligned import clean
from bakeoff.runs.run import Run
from bakeoff.tokenizer.tokenizer import Tokenizer

SCORES = 1 << 24
"""Scores of a token that are held at once: 64 MB in float32."""


class TokenCandidate(NamedTuple):
    """A token that may stand at a mask."""

    token: str
    """As the tokenizer decodes it alone, white space around it left out."""
    id: int
    """Its id."""
    probability: float
    """Among all tokens of the vocabulary, those that are never shown included."""


Filled = list[list[TokenCandidate]]
"""For each mask of a text, in their order, its most probable tokens, the most probable first."""


def filling_objective(run: Run) -> ObjectiveConfig | None:
    """The objective by which a run fills masks: one that predicts hidden tokens, else one that reads forwards."""
    objectives: list[ObjectiveConfig] = list(run.recipe.objective)
    hidden = [each for each in objectives if _hides(each)]
    forwards = [each for each in objectives if each.scoring == "forwards"]
    return next(iter(hidden + forwards), None)


def _hides(objective: ObjectiveConfig | type[ObjectiveConfig]) -> bool:
    return objective.scoring in ("masked", "query") or objective.from_before


class _Row(NamedTuple):
    """A text with masks, as a row."""

    ids: NDArray[np.int64]
    """(T,) the row, special tokens included."""
    places: list[int]
    """Where its masks are."""


class Filler:
    """Fills [MASK]; the masks of a text are predicted each by itself, all of them hidden.

    A model that sees both sides fills masks anywhere. One that reads forwards predicts what follows a text, so that its
    only mask is the text's end. What is read of a text that is longer than a row are the tokens around its masks.

    Args:
        run: a pre-trained run.
        module: its model with its heads, in evaluation mode.

    Raises:
        UserError: no objective of the run fills masks.
    """

    def __init__(self, run: Run, module: PretrainingModel) -> None:
        objective = filling_objective(run)
        if objective is None:
            able = [kind for kind, config in OBJECTIVES.items() if _hides(config) or config.scoring == "forwards"]
            trained = ", ".join(each.kind for each in run.recipe.objective)
            hint = "; `generate` writes what belongs there" if module.writing else f"; that needs {listed(able, 'or')}"
            raise UserError(f"{run.path}: trained on {trained}, which gives the tokens at a mask no probability{hint}")
        self._run, self._module, self._tokenizer = run, module, run.tokenizer
        self._head = next(each.head for each in module.objectives if each.name == objective.kind)
        self._table = module.model.embedding.table
        self._shown_not = torch.from_numpy(run.tokenizer.special_ids).to(self._table.device)
        tokenizer = run.tokenizer
        special = tokenizer.start, tokenizer.separator, tokenizer.mask
        self._both = BothSides(module, objective, run.recipe, special) if _hides(objective) else None
        self._length = run.recipe.input.length

    @torch.inference_mode()
    def fill(self, texts: Sequence[str], k: int, done: int = 0) -> list[Filled]:
        """The k most probable tokens for each mask of each text; a text's do not depend on the others.

        Args:
            texts: the texts.
            k: how many tokens.
            done: how many texts were filled before, for errors to count on.

        Raises:
            UserError: a text has no mask, masks further apart than a row is long, or one where the model cannot fill
                it; or k is none.
        """
        if k < 1:
            raise UserError(f"k: {k} tokens for a mask; give 1 or more")
        rows = [self._row(number, text) for number, text in enumerate(texts, done + 1)]
        found: list[Filled] = [[] for _ in rows]
        for chosen in batches([len(row.ids) for row in rows], self._table.device):
            states = self._states([rows[place] for place in chosen])
            owners = [place for place in chosen for _ in rows[place].places]
            for owner, candidates in zip(owners, self._candidates(states, k), strict=True):
                found[owner].append(candidates)
        return found

    def _states(self, rows: Sequence[_Row]) -> Tensor:
        """(N, D) the states behind which the masks of rows are predicted."""
        if self._both is None:
            model = self._module.model
            ids, _ = padded([row.ids for row in rows], self._tokenizer.pad, self._table.device)
            hidden: Tensor = model.stack(*model.stack_inputs(Inputs(ids)))[0]
            return hidden[torch.arange(len(rows)), torch.tensor([len(row.ids) - 1 for row in rows])]
        firsts = [place for row in rows for place in row.places]
        owners = [number for number, row in enumerate(rows) for _ in row.places]
        return self._both.read([row.ids for row in rows], firsts, [place + 1 for place in firsts], owners)[0]

    def _candidates(self, states: Tensor, k: int) -> list[list[TokenCandidate]]:
        found = []
        for part in states.split(max(1, SCORES // len(self._table))):
            scores = self._head.log_probabilities(part, self._table)
            scores = scores.index_fill(1, self._shown_not, float("-inf"))[:, : self._tokenizer.size]
            best, tokens = scores.topk(min(k, self._tokenizer.size - len(self._shown_not)), dim=-1)
            for ids, own in zip(tokens.tolist(), best.exp().tolist(), strict=True):
                named = zip(ids, own, strict=True)
                found.append([TokenCandidate(self._tokenizer.decode([i]).strip(), i, share) for i, share in named])
        return found

    def _row(self, number: int, text: str) -> _Row:
        parts = masked_parts(text, self._tokenizer)
        if len(parts) < 2:
            raise UserError(f"text {number:,} ('{text[:30]}'): has no {MASK}; put it where a token is missing")
        if self._both is None:
            if len(parts) > 2 or parts[1].strip():
                raise UserError(
                    f"{self._run.path}: reads forwards, and predicts what follows a text: of text {number} "
                    f"('{text[:30]}') the end has to be {MASK}, and nothing else"
                )
            ids = self._tokenizer.encode(parts[:1])[0][0][-(self._length - 1) :]
            return _Row(np.concatenate([[self._tokenizer.opening], ids]).astype(np.int64), [0])
        encoded = encoded_around(parts, self._tokenizer)
        places = (np.cumsum([len(ids) + 1 for ids in encoded[:-1]]) - 1).tolist()
        ids = np.concatenate([part for own in encoded for part in (own, [self._tokenizer.mask])][:-1]).astype(np.int64)
        room = self._both.room
        if places[-1] - places[0] >= room:
            raise UserError(
                f"text {number}: its {MASK} are {places[-1] - places[0] + 1:,} tokens apart; a row has {room}"
            )
        begin = min(max(0, (places[0] + places[-1]) // 2 - room // 2), max(0, len(ids) - room))
        shift = len(self._both.before) - begin
        return _Row(self._both.row(ids[begin : begin + room]), [place + shift for place in places])


def masked_parts(text: str, tokenizer: Tokenizer) -> list[str]:
    """What stands between the masks of a text, which is read as a corpus is.

    A mask takes the white space before it along, as tokens of words do that begin with it; the tokenizer's own name
    for it is one, too.
    """
    name = tokenizer.decode([tokenizer.mask], skip_special=False).strip()
    parts = clean(text.replace(name, MASK) if name else text).split(MASK)
    return [*(part.rstrip() for part in parts[:-1]), parts[-1]]
