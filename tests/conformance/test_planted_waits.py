"""The spy on devices is worth nothing if it cannot fail: each planted wait and each wrong device is noticed."""

import pytest
import torch

from bakeoff.conformance import test_waiting as contract
from bakeoff.conformance.device_spy import META, spying
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.optimization.optimizers import MuonConfig
from bakeoff.row import Row

X = torch.ones(4, 3, device="meta")
HERE = torch.ones(4, 3)
INDEX = torch.zeros(2, dtype=torch.int64)


@pytest.mark.parametrize(
    "waits",
    [
        lambda: X.sum().item(),
        lambda: float(X.sum()),
        lambda: bool(X.any()),
        lambda: 1 if X.sum() > 0 else 0,
        lambda: X.tolist(),
        lambda: torch.equal(X, X),
        lambda: X.cpu(),
        lambda: HERE.clone().copy_(X),
        lambda: X.nonzero(),
        lambda: X[X > 0],
        lambda: X.clone().index_put_((X > 0,), torch.ones(5, device="meta")),
        lambda: X.masked_select(X > 0),
        lambda: X.unique(),
        lambda: X.long().unique_consecutive(),
        lambda: X[:, 0].repeat_interleave(X[:, 0].long()),
        lambda: X + HERE,
        lambda: X[INDEX],
        lambda: X.index_select(0, INDEX),
        lambda: torch.where(HERE > 0, X, 0.0),
        lambda: HERE.to(META),
        lambda: X.clone().copy_(HERE),
        lambda: torch.tensor([1.0], device=META),
        lambda: torch._foreach_add([X, X], [HERE[0, 0], HERE[0, 0]]),
    ],
)
def test_what_a_gpu_is_waited_for_is_noticed(waits):
    with spying(), pytest.raises((AssertionError, RuntimeError, NotImplementedError)):
        waits()


@pytest.mark.parametrize(
    "free",
    [
        lambda: X.sum() * 2 + HERE[0, 0],
        lambda: X[INDEX.to(META, non_blocking=True)],
        lambda: HERE[HERE > 0].sum().item(),
        lambda: X.masked_fill(X > 0, 0.0),
        lambda: torch.where(X > 0, X, 0.0),
        lambda: X.new_zeros(3).index_copy(0, X[:3, 0].long(), X[:3, 0]),
    ],
)
def test_what_is_not_waited_for_is_allowed(free):
    with spying():
        free()


def without_parts(patch):
    """The head of an adaptive softmax looks for the rows of a cluster itself."""
    patch.setattr(PretrainingModel, "with_parts", lambda self, batch: batch)


def without_spans(patch):
    """A recurrent mixer looks for the documents itself."""
    whole = Row._replace
    patch.setattr(Row, "_replace", lambda self, **fields: whole(self, **{**fields, "spans": None}))


def without_device(patch):
    """Muon's counts of steps are loaded to the CPU, as those of optimizers are that do not say they are fused."""
    build = MuonConfig.build

    def built(self, *arguments):
        optimizer = build(self, *arguments)
        for group in optimizer.param_groups:
            group.pop("fused", None)
        return optimizer

    patch.setattr(MuonConfig, "build", built)


@pytest.mark.parametrize(
    ("name", "fault", "noticed"),
    [
        ("gcnn-tiny", without_parts, "_to_copy: a copy to the processor"),
        ("lstm-encoder-tiny", without_spans, "_to_copy: a copy to the processor"),
        ("laptop-conv-tiny", without_device, "a tensor of the CPU among those of the device"),
    ],
)
def test_a_recipe_that_waits_does_not_keep_the_contract(name, fault, noticed, monkeypatch, request):
    fault(monkeypatch)
    corpora = (request.getfixturevalue("corpus"), request.getfixturevalue("parallel_corpus"))
    unit = contract.unit.__wrapped__(name, *corpora)
    with pytest.raises(AssertionError, match=noticed):
        contract.test_a_step_waits_for_nothing_and_mixes_no_devices(unit)
