"""What a checkpoint of a fine-tuning says of the trainings that have ended."""

import json

import pytest
import torch

from bakeoff.tasks.finetune_results import TrialResult
from bakeoff.tasks.fitting.trial import DevEvaluation, Ended, Fit, FittingTrial, ended_before, recorded
from bakeoff.tensors import save_tensors
from bakeoff.trainer.checkpoint import complete, make_anew
from bakeoff.trainer.position import Position

PLANNED = [FittingTrial(1e-4, 1), FittingTrial(3e-3, 1), FittingTrial(3e-3, 2)]


@pytest.mark.parametrize("best", [0, 1, 2])
def test_the_best_of_the_trainings_that_have_ended_stays_the_best(best, tmp_path):
    """Whichever it was, with its own rate, epochs, scores and weights."""
    weights = {"weight": torch.randn(3, 2), "bias": torch.randn(2)}
    fit = Fit(PLANNED[best], 7, DevEvaluation(5, {"accuracy": 0.75}, 0.5), weights)
    results = [
        TrialResult(learning_rate=each.learning_rate, epochs=each.epochs, score=0.5, seconds=1.0) for each in PLANNED
    ]
    state = {"since_best": 1, "best": recorded(None), **Ended(results, fit, 20).state()}
    partial = tmp_path / "partial"
    make_anew(partial)
    save_tensors(weights, partial / "chosen.safetensors")
    complete(partial, tmp_path / "step-00000024", json.dumps({**vars(Position(step=4)), **state}))
    found = ended_before(tmp_path / "step-00000024")
    assert (found.trials, found.steps) == (results, 20)
    assert found.best is not None
    assert found.best.trial == PLANNED[best]
    assert (found.best.steps, found.best.best) == (fit.steps, fit.best)
    assert all(torch.equal(found.best.weights[name], tensor) for name, tensor in weights.items())
