"""What relative attention remembers from chunk to chunk."""

import pytest
import torch

from bakeoff.models.context import BuildContext, Context
from bakeoff.models.mixers.relative_attention import RelativeAttentionConfig

WIDTH, CHUNKS = 8, [5, 4, 3]


@pytest.mark.parametrize(("memory", "kept"), [(None, 12), (12, 12), (4, 4), (0, 0)])
def test_the_last_inputs_are_remembered_as_many_as_the_memory_holds(memory, kept):
    torch.manual_seed(0)
    mixer = (
        RelativeAttentionConfig(heads=2, memory=memory)
        .build(BuildContext(width=WIDTH, causal=True, dropout=0.0))
        .double()
    )
    x = torch.randn(2, sum(CHUNKS), WIDTH, dtype=torch.float64)
    state, found = mixer.start(2, x), []
    for chunk in x.split(CHUNKS, dim=1):
        y, state = mixer(chunk, Context(), state)
        found.append(y)
    assert torch.equal(state, x[:, sum(CHUNKS) - kept :])
    whole = mixer(x, Context())[0]
    assert torch.allclose(torch.cat(found, dim=1), whole, atol=1e-12) == (kept == sum(CHUNKS))
