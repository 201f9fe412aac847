"""What a checkpoint of a fine-tuning says of the trainings that have ended."""

from types import SimpleNamespace

import pytest
import torch

from bakeoff.runs.run import Run
from bakeoff.tasks.finetune_results import TrialResult
from bakeoff.tasks.fitting.checkpoint import EndedTrials, newest_checkpoint, read_found, save_checkpoint
from bakeoff.tasks.fitting.fitting import Evaluation, Fit, FittingPosition, FittingTrial

PLANNED = [FittingTrial(1e-4, 1), FittingTrial(3e-3, 1), FittingTrial(3e-3, 2), FittingTrial(1e-2, 2)]


@pytest.mark.parametrize("best", [0, 1, 2])
def test_the_best_of_the_trainings_that_have_ended_stays_the_best(best, tmp_path):
    """Whichever it was, with its own rate, epochs, scores and weights."""
    head = torch.nn.Linear(3, 2)
    course = FittingPosition(step=4, since_best=1, losses=[0.5], tokens=9, seconds=1.0)
    fitting = SimpleNamespace(course=course, best=None, head=head, optimizer=torch.optim.AdamW(head.parameters()))
    weights = {name: torch.randn_like(tensor) for name, tensor in head.state_dict().items()}
    fit = Fit(PLANNED[best], 7, Evaluation(5, {"accuracy": 0.75}, 0.5), weights)
    results = [
        TrialResult(learning_rate=each.learning_rate, epochs=each.epochs, score=0.5, seconds=1.0)
        for each in PLANNED[:3]
    ]
    (tmp_path / "recipe.yaml").touch()
    (tmp_path / "metrics.jsonl").touch()
    save_checkpoint(tmp_path, fitting, EndedTrials(results, fit))
    found = read_found(newest_checkpoint(tmp_path), Run(tmp_path), PLANNED)
    assert found.trials == results
    assert found.best.trial == PLANNED[best]
    assert (found.best.steps, found.best.best) == (fit.steps, fit.best)
    assert all(torch.equal(found.best.weights[name], tensor) for name, tensor in weights.items())
