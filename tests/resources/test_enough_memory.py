import pytest
import torch
from tests.conftest import crossed, shrink

from bakeoff.errors import UserError
from bakeoff.learner.pretraining_model import build_on_meta
from bakeoff.recipe_files import load_recipe
from bakeoff.resources import enough_memory as needs
from bakeoff.resources.enough_memory import require_memory
from bakeoff.resources.memory_need import memory_need
from bakeoff.training.pretrain import pretrain

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model.encoder.width": 2**20}, "weights and gradients of .* parameters take .* GB, and cpu has .* GB; give"),
        ({"training.batch": 10**9}, r"a batch of 1,000,000,000 rows of 32 tokens takes .* smaller training\.batch"),
        ({"training.batch": 10**9, "training.micro_batch": 8}, r"a batch of 1,000,000,000 rows"),
    ],
)
def test_what_cannot_fit_is_refused_before_anything_is_made(changes, message, corpus, tmp_path):
    with pytest.raises(UserError, match=message):
        pretrain(shrink("bert-tiny", **changes), corpus.path, tmp_path / "run", device="cpu", progress=False)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "name",
    crossed(["bert-tiny", "gpt-tiny", "transformer-tiny", "conv-light-encoder-tiny"], ["transformer-tiny"]),
)
def test_what_fits_by_the_whole_count_is_not_refused(name, monkeypatch):
    recipe = load_recipe(name)
    need, parameters = memory_need(recipe, 300, CPU), build_on_meta(recipe, 300).parameter_count()
    monkeypatch.setattr(needs, "memory_of", lambda device: need.total)
    require_memory(recipe, parameters, CPU)
    monkeypatch.setattr(needs, "memory_of", lambda device: need.weights)
    with pytest.raises(UserError, match="weights and gradients"):
        require_memory(recipe, parameters, CPU)
