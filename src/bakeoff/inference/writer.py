"""What writes: a model that reads forwards, and the head that predicts its next token."""

from typing import NamedTuple

from bakeoff.display.wording import listed
from bakeoff.errors import UserError
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.models.model import Model
from bakeoff.objectives.heads import Head
from bakeoff.objectives.registry import OBJECTIVES


class Writer(NamedTuple):
    """A model that writes, with what it needs for that."""

    model: Model
    """A model that reads forwards."""
    head: Head
    """The head that predicts its next token."""
    reads_prefix: bool
    """What the model is given to go on with is seen from both sides."""


def writer_of(module: PretrainingModel) -> Writer:
    """A pre-trained model with the head that predicts its next token.

    Raises:
        UserError: it has learnt none.
    """
    return Writer(module.model, next_token_head(module), module.reads_prefix)


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
