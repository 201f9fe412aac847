"""A model with the head that predicts next tokens."""

from typing import NamedTuple

from bakeoff.display.wording import listed
from bakeoff.errors import UserError
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.models.model import Model
from bakeoff.objectives.heads import Head
from bakeoff.objectives.registry import OBJECTIVES


class Writer(NamedTuple):
    """A model that generates text."""

    model: Model
    """A causal model, or an encoder with a decoder."""
    head: Head
    """The head that predicts next tokens."""
    reads_prefix: bool
    """Whether the tokens of a prompt attend to each other in both directions."""


def writer_of(module: PretrainingModel) -> Writer:
    """The writer of a pre-trained model.

    Raises:
        UserError: the model has no head for next tokens.
    """
    return Writer(module.model, next_token_head(module), module.reads_prefix)


def next_token_head(module: PretrainingModel) -> Head:
    """The head of the objective that trained the prediction of next tokens.

    Raises:
        UserError: the model has no such objective.
    """
    if module.writing is None:
        able = [kind for kind, config in OBJECTIVES.items() if config.writes]
        raise UserError(
            f"this run was trained on {', '.join(module.weights)} and cannot write; generate needs a run with "
            f"{listed(able, 'or')}"
        )
    return next(objective.head for objective in module.objectives if objective.name == module.writing)
