"""What an export makes of each tensor, an import makes undone."""

import pytest
import torch

from bakeoff.interop.hugging_face.family_choice import FamilyChoice, choose
from bakeoff.interop.links import behind, zero_row
from bakeoff.learner.pretraining_model import build_on_meta
from tests.conftest import shrink

FAMILIES = {
    "bert-tiny": "bert",
    "albert-tiny": "albert",
    "electra-tiny": "electra",
    "modernbert-base": "modernbert",
    "xlnet-tiny": "xlnet",
    "gpt2-tiny": "gpt2",
    "bart-tiny": "bart",
    "t5-tiny": "t5",
}


@pytest.mark.parametrize("name", FAMILIES)
def test_tensors_come_back_as_they_went(name, corpus):
    recipe = shrink(name)
    chosen = choose(recipe, corpus.tokenizer, FAMILIES[name])
    assert isinstance(chosen, FamilyChoice), chosen
    assert chosen.family.model_types[0] == FAMILIES[name]
    draw = torch.Generator().manual_seed(0)
    shapes = {key: each.shape for key, each in build_on_meta(recipe, corpus.tokenizer.size).state_dict().items()}
    ours = {key: torch.randn(shape, generator=draw) for key, shape in shapes.items()}
    links = [link for link in chosen.links if not link.tied]
    for link in links:
        own = [ours[key] for key in link.ours]
        theirs = link.to_theirs(own)
        assert len(theirs) == len(link.theirs)
        if any(each.any() for each in theirs):  # a table of zeros says nothing
            back = link.to_ours([each.contiguous() for each in theirs])
            assert all(torch.equal(one, other) for one, other in zip(own, back, strict=True)), link.ours
    names = [key for link in links for key in link.theirs]
    assert len(set(names)) == len(names)


def test_rows_that_ours_lack_are_zeros_in_theirs():
    table = torch.randn(3, 4)
    (theirs,) = behind("ours", "theirs", 2).to_theirs([table])
    assert torch.equal(theirs, torch.cat([torch.zeros(2, 4), table]))
    (row,) = zero_row("theirs", "ours").to_theirs([torch.randn(4)])
    assert torch.equal(row, torch.zeros(1, 4))
