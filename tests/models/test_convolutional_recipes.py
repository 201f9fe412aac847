"""The recipes of gated and temporal convolutional networks against the chain of their papers' equations, in float64.

What the papers fix is written here, not read from the recipe. Where dropout acts is tested elsewhere.
"""

import pytest
import torch
from tests.models.test_gated_cnn import reference as gated_reference
from tests.models.test_tcn import reference as temporal_reference

from bakeoff.conformance.narrow import narrow
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.row import Row

VOCABULARY, LENGTH = 110, 7


def far_from_the_start(name):
    torch.manual_seed(0)
    module = PretrainingModel(narrow(name), VOCABULARY).double().eval()
    for parameter in module.parameters():
        parameter.data = parameter.data + torch.randn_like(parameter) * 0.1
    return module


KERNELS = {
    "gcnn-13": [[4], [4, 4], [4, 4]],
    "gcnn-14": [[6], [6], [6], [1], [5], [5], [1], [4], [4], [4], [4]],
    "gcnn-8": [[4], [4], [4]],
    "gcnn-14b": [[5], *[[1, 5, 1]] * 7],
}
"""Table 1 of Dauphin et al. 2017, of equal layers the first two."""


@pytest.mark.parametrize("name", KERNELS)
def test_gated_convolutional_networks(name):
    """A chain of blocks on embeddings alone, each but the first with what comes in added."""
    module = far_from_the_start(name)
    ids = torch.randint(5, VOCABULARY, (1, LENGTH))
    layers = [layer[0] for layer in module.model.stack.layers]
    assert [[each.kernel for each in part.convolutions] for part in layers] == KERNELS[name]
    with torch.no_grad():
        embedding = module.model.embedding
        x = embedding.tokens.weight[ids[0]]
        if embedding.projection.state_dict():
            x = x @ embedding.projection.weight.T + embedding.projection.bias
        for layer, part in enumerate(layers):
            x = gated_reference(part, x, scale=1.0, residual=layer > 0)
        torch.testing.assert_close(module.model(Row(ids))[0][0], x, atol=1e-11, rtol=1e-9)


DILATIONS = {"tcn-ptb": 4, "tcn-char-ptb": 3, "tcn-wikitext103": 5}
"""How many layers, table 2 of Bai et al. 2018; the dilation doubles from layer to layer."""


@pytest.mark.parametrize("name", DILATIONS)
def test_temporal_convolutional_networks(name):
    """A chain of residual blocks on embeddings alone; the scores are those of the same table, with a bias."""
    module = far_from_the_start(name)
    length = 2 ** DILATIONS[name] + 3
    ids = torch.randint(5, VOCABULARY, (1, length))
    layers = [layer[0] for layer in module.model.stack.layers]
    assert len(layers) == DILATIONS[name]
    with torch.no_grad():
        table = module.model.embedding.tokens.weight
        x = table[ids[0]]
        for layer, part in enumerate(layers):
            assert [each.kernel for each in part.convolutions] == [3, 3]
            x = temporal_reference(part, x, dilation=2**layer)
        hidden = module.model(Row(ids))[0]
        torch.testing.assert_close(hidden[0], x, atol=1e-11, rtol=1e-9)
        head = module.heads["clm"]
        torch.testing.assert_close(head.scores(hidden[0], table), x @ table.T + head.bias, atol=1e-11, rtol=1e-9)
