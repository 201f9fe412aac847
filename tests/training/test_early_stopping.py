"""Trainings that end where their held-out loss has stopped falling, and the weights that they keep."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file
from tests.conftest import PLAIN, crossed, shrink
from tests.interrupting import interrupt_at
from torch import nn

from bakeoff.errors import Interrupted, UserError
from bakeoff.optimization.early_stopping import EarlyStopping
from bakeoff.optimization.save_points import SavePoints
from bakeoff.overview.listing import list_runs, state_text
from bakeoff.runs.run import Run
from bakeoff.training import pretraining
from bakeoff.training.early_stop import EarlyStop
from bakeoff.training.pretrain import pretrain

LOSSES = [4.0, 3.0, 3.5, 3.2, 2.9, 3.1, 3.0, 3.3]
"""Held-out losses of a training of 16 steps, measured after every second step: the best is after step 10."""

TIMED = {"seconds": 0, "tokens_per_second": 0}


def train(recipe, corpus, out, **options):
    return pretrain(recipe, corpus.path, out, progress=False, device="cpu", **options)


def weights(path):
    return {name: tensor.tolist() for name, tensor in load_file(path).items()}


def recipe(**changes):
    schedule = {"kind": "constant", "warmup": 0}
    values = {"training.budget": {"steps": 16}, "training.validations": 8, "training.schedule": schedule}
    return shrink("gpt-tiny", **{**PLAIN, **values, **changes})


@pytest.fixture(autouse=True)
def losses(monkeypatch):
    """The held-out losses are those above, whatever the model has learnt."""
    measured = pretraining.Pretraining.measured

    def known(self, position):
        figures, step = measured(self, position), position.step
        return figures | {"loss": 5.0 if step == 0 else LOSSES[(step - 1) // 2]}

    monkeypatch.setattr(pretraining, "FEWEST_STEPS_BETWEEN_VALIDATIONS", 2)
    monkeypatch.setattr(pretraining.Pretraining, "measured", known)


def after(corpus, folder, step):
    """The weights of an unbroken training after a step."""
    return weights(train(recipe(), corpus, folder, until=step).weights_file())


@pytest.mark.parametrize(
    ("patience", "stop", "best"),
    [(2, 8, 4), (3, 16, 10), *(pytest.param(*each, marks=pytest.mark.slow) for each in ((1, 6, 4), (8, 16, 10)))],
)
def test_a_training_ends_when_patience_runs_out(patience, stop, best, corpus, tmp_path):
    run = train(recipe(), corpus, tmp_path / "run", early_stopping=EarlyStopping(patience=patience))
    assert (run.finished, run.summary["steps"], run.summary["planned_steps"]) == (True, stop, 16)
    told = run.summary["early_stopping"]
    assert (told["stopped"], told["best_step"], told["best_loss"]) == (stop < 16, best, LOSSES[best // 2 - 1])
    last = run.metrics()[-1]
    assert (last["step"], last["best_step"], last["stops"]) == (stop, best, stop < 16 or patience == 3)
    assert run.summary["validation"]["step"] == stop  # of its last weights, which it has
    (entry,) = list_runs(run.path)
    assert state_text(entry) == (f"stopped early at step {stop} of 16" if stop < 16 else "finished")
    whole = tmp_path / "whole"
    assert weights(run.weights_file()) == (
        after(corpus, whole, stop) if stop < 16 else weights(train(recipe(), corpus, whole).weights_file())
    )


def test_of_several_objectives_the_mean_of_their_bits_has_to_reach_the_target():
    module = nn.Linear(1, 1)
    for target, over in ((1.4, False), (1.5, True), (2.0, True)):
        stop = EarlyStop(EarlyStopping(target=target, target_unit="bits per byte"))
        stop.observe({"step": 5, "loss": 9.0, "bits_per_byte": {"clm": 1.0, "prefix_clm": 2.0}}, module)
        assert stop.over == over
    stop = EarlyStop(EarlyStopping(target=100.0, target_unit="bits per byte"))
    stop.observe({"step": 5, "loss": 9.0, "bits_per_byte": {"clm": 1.0, "mlm": None}}, module)
    assert not stop.over  # one has none


def test_the_best_weights_are_kept_if_that_is_asked_for(corpus, tmp_path):
    asked = recipe(**{"training.early_stopping": {"patience": 2, "keep_best": True}})
    run = train(asked, corpus, tmp_path / "run")
    assert weights(run.weights_file()) == after(corpus, tmp_path / "whole", 4)
    assert (run.summary["steps"], run.summary["validation"]["step"], run.summary["validation"]["loss"]) == (8, 4, 3.0)
    assert "best held-out loss, at step 4" in (run.path / "README.md").read_text()


@pytest.mark.parametrize("step", crossed([3, 4, 7, 8], [4, 7]))
def test_an_interrupted_training_ends_alike(step, corpus, tmp_path, monkeypatch):
    """Also where the best weights lie before the interruption, and where it comes at the last step."""
    asked = recipe(**{"training.early_stopping": {"patience": 2, "keep_best": True}})
    whole = train(asked, corpus, tmp_path / "whole")
    with monkeypatch.context() as patch:
        interrupt_at(patch, step - 1)
        with pytest.raises(Interrupted, match="is whole" if step == 8 else "stopped at step"):
            train(asked, corpus, tmp_path / "parts")
    parts = train(asked, corpus, tmp_path / "parts", resume=True)
    assert weights(parts.weights_file()) == weights(whole.weights_file())
    timed = ("seconds", "tokens_per_second")
    first, second = (
        [{k: v for k, v in line.items() if k not in timed} for line in r.metrics()] for r in (whole, parts)
    )
    assert first == second
    assert parts.summary["early_stopping"] == whole.summary["early_stopping"]


def test_a_lost_file_of_best_weights_is_told(corpus, tmp_path):
    asked = recipe(**{"training.early_stopping": {"patience": 2, "keep_best": True}})
    run = train(asked, corpus, tmp_path / "run", until=6)
    (run.weights_file().parent / "best.safetensors").unlink()
    with pytest.raises(
        UserError, match=r"step-00000006: this checkpoint is damaged \(.*best\.safetensors.*; delete it, and --res"
    ):
        train(asked, corpus, tmp_path / "run", resume=True)


def test_finished_as_it_is_a_training_has_its_best_weights(corpus, tmp_path):
    asked = recipe(**{"training.early_stopping": {"patience": 3, "keep_best": True}})
    train(asked, corpus, tmp_path / "run", until=6)
    run = train(None, corpus, tmp_path / "run", finish_now=True)
    assert weights(run.weights_file()) == after(corpus, tmp_path / "whole", 4)


def test_what_is_kept_on_the_way_is_not_the_best_but_what_was_there(corpus, tmp_path):
    asked = recipe(**{"training.early_stopping": {"patience": 2, "keep_best": True}})
    run = train(asked, corpus, tmp_path / "run", save_at=SavePoints(steps=[6]))
    assert weights(run.saved / "steps-6" / "model.safetensors") == after(corpus, tmp_path / "whole", 6)
    assert Run(run.saved / "steps-6").summary["validation"]["step"] == 6


@pytest.mark.parametrize(
    ("kind", "told"), [("linear", True), ("cosine", True), ("constant", False), ("plateau", False)]
)
def test_a_schedule_that_waits_for_the_end_is_remarked_on(kind, told, corpus, tmp_path):
    notes = []
    asked = recipe(**{"training.schedule": {"kind": kind}, "training.early_stopping": {"patience": 2}})
    pretrain(asked, corpus.path, tmp_path / "run", device="cpu", progress=notes.append)
    lines = [note["line"] for note in notes if "line" in note]
    assert any("constant, plateau, inverse_sqrt" in line for line in lines) == told
    assert [
        line for line in lines if "stopped early at step 8 of 16" in line and "at step 4, 2 validations ago" in line
    ]


def test_an_average_of_the_last_weights_is_refused(corpus):
    with pytest.raises(UserError, match=r"average_last: .* early_stopping may not reach"):
        recipe(**{"training.early_stopping": {"patience": 2}, "training.average_last": 3})


@given(st.lists(st.floats(0.1, 10), max_size=12), st.integers(1, 4), st.sampled_from([0.0, 1e-4, 0.01, 0.3]))
def test_patience_is_counted_as_torch_counts_it(losses, patience, threshold):
    """ReduceLROnPlateau's rule: the rate is reduced at the first loss where early stopping ends a training."""
    import torch

    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=patience - 1, threshold=threshold)
    for place, loss in enumerate(losses):
        plateau.step(loss)
        ended = EarlyStopping(patience=patience, threshold=threshold).stops(losses[: place + 1])
        assert ended == (optimizer.param_groups[0]["lr"] < 1)
        if ended:
            break
