import pytest
import torch
from tests.conftest import shrink
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from bakeoff.models.context import Context
from bakeoff.training.pretraining_model import PretrainingModel
from bakeoff.training.stages import make_batches


@pytest.mark.parametrize(("name", "error"), [("bert-tiny", 0.02), ("albert-tiny", 0.02), ("xlnet-tiny", 0.002)])
def test_counted_flops_equal_those_that_torch_counts(name, error, corpus):
    """Forward and backward of full rows; torch counts matrix products, which is all that these models have.

    XLNet's vectors of the distances are made once a batch, which is not counted for its tokens.
    """
    rows = {"format": "blocks", "length": 32, "isolate": False}
    alone = {"input": rows, "model.encoder.block.mixer.memory": 0} if name == "xlnet-tiny" else {}
    recipe = shrink(name, **{"model.dropout": 0.0, **alone})
    module = PretrainingModel(recipe, corpus.tokenizer.size)
    (batch,) = make_batches(recipe, module, corpus, seed=0).step(0)
    # Torch counts no operations of the fused attention on a CPU.
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        sum(module(batch).values()).backward()
    rows, length = batch.ids.shape
    targets = {objective: len(batch.targets[objective][0]) for objective in batch.targets}
    heads = sum(module.heads[objective].flops_per_row * count for objective, count in targets.items())
    queries = 0 if batch.queries is None else batch.queries.positions.shape[1]
    vectors = 2 * 2 * (2 * length - 1) * 32**2 if name == "xlnet-tiny" else 0  # of both layers
    counted = 3 * (rows * module.model.row_flops(length, queries=queries) + heads + vectors)
    assert counter.get_total_flops() == pytest.approx(counted, rel=error)


def test_causal_attention_counts_half_the_square():
    full = PretrainingModel(shrink("bert-tiny"), 100).model.stack.flops_per_token(64)
    causal = PretrainingModel(shrink("gpt-tiny"), 100).model.stack.flops_per_token(64)
    width, layers = 32, 2
    assert full - causal == layers * round(2 * 2 * width * (64 - 65 / 2))


def test_a_convolution_costs_its_taps_and_projections():
    module = PretrainingModel(shrink("conv-light-encoder-tiny"), 100)
    mixer = module.model.stack.parts["mixer"][0].function
    with FlopCounterMode(display=False) as counter:
        mixer(torch.zeros(1, 50, 32), Context())
    assert mixer.flops_per_token(50) * 50 == pytest.approx(counter.get_total_flops(), rel=0.01)
