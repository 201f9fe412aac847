"""A model with the head that predicts next tokens."""

from collections.abc import Sequence

from torch import Tensor, nn

from bakeoff.display.wording import listed
from bakeoff.errors import UserError
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.models.model import Model
from bakeoff.models.part import ModelState
from bakeoff.objectives.heads import Head
from bakeoff.objectives.registry import OBJECTIVES
from bakeoff.row import Row


class Writer(nn.Module):
    """A model that generates text, with its head for next tokens; R of B rows, V vocabulary.

    Args:
        model: a causal model, or an encoder with a decoder.
        head: the head that predicts next tokens.
        reads_prefix: whether the tokens of a prompt attend to each other in both directions.
        scoring_weight: see `PretrainingModel`.
    """

    def __init__(self, model: Model, head: Head, reads_prefix: bool, scoring_weight: Tensor | None = None) -> None:
        super().__init__()
        self.model, self.head, self.reads_prefix = model, head, reads_prefix
        self._scoring_weight = scoring_weight

    def forward(
        self, row: Row[Tensor], state: ModelState, chosen: Sequence[int] | None = None, normalised: bool = True
    ) -> tuple[Tensor, ModelState]:
        """Scores of the tokens that follow the rows, and the state after the rows.

        Args:
            row: the next tokens of B texts.
            state: the state from which they continue.
            chosen: the R rows whose following tokens are scored; None: all B.
            normalised: log-probabilities; else logits, which are log-probabilities up to a constant in each row.

        Returns:
            (R, V) scores, and the state.
        """
        hidden, after = self.model(row, state)
        last = hidden[:, -1]
        if chosen is not None and len(chosen) < len(last):
            last = last[list(chosen)]
        scores = self.head.log_probabilities if normalised else self.head.scores
        weight = self.model.embedding.weight if self._scoring_weight is None else self._scoring_weight
        return scores(last, weight), after


def writer_of(module: PretrainingModel) -> Writer:
    """The writer of a pre-trained model.

    Raises:
        UserError: the model has no head for next tokens.
    """
    return Writer(module.model, next_token_head(module), module.reads_prefix, module.scoring_weight)


def next_token_head(module: PretrainingModel) -> Head:
    """The head of the objective that trained the prediction of next tokens.

    Raises:
        UserError: the model has no such objective.
    """
    if module.writing is None:
        able = [kind for kind, config in OBJECTIVES.items() if config.generates]
        raise UserError(
            f"this run was trained on {', '.join(module.weights)} and cannot write; generate needs a run with "
            f"{listed(able, 'or')}"
        )
    return next(objective.head for objective in module.objectives if objective.name == module.writing)
