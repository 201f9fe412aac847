import pytest
import torch
from tests.conftest import shrink
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.models.context import Context
from bakeoff.row import Row, Source
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
        sum(module(batch)[0].values()).backward()
    rows, length = batch.row.ids.shape
    targets = {objective: len(batch.targets[objective][0]) for objective in batch.targets}
    heads = sum(module.heads[objective].flops_per_row * count for objective, count in targets.items())
    queries = 0 if batch.row.queries is None else batch.row.queries.positions.shape[1]
    vectors = 2 * 2 * (2 * length - 1) * 32**2 if name == "xlnet-tiny" else 0  # of both layers
    counted = 3 * (rows * module.model.row_flops(length, queries=queries) + heads + vectors)
    assert counter.get_total_flops() == pytest.approx(counted, rel=error)


def test_a_translation_costs_both_stacks_and_the_attention_between_them():
    model = PretrainingModel(shrink("transformer-translation-tiny"), 100).model.eval()
    rows, source_length, length, width = 2, 17, 9, 32
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        model(Row(torch.zeros(rows, length).long(), source=Source(torch.zeros(rows, source_length).long())))
    unseen = len(model.stack.layers) * 2 * 2 * width * (length - (length + 1) / 2)  # torch counts the whole square
    counted = model.row_flops(length, source_length) + length * unseen
    assert counter.get_total_flops() == pytest.approx(rows * counted, rel=1e-3)


@pytest.mark.parametrize(
    "name", ["average-encoder-tiny", "tcn-encoder-tiny", "gcnn-14", "cnn-lm", "gencnn", "conv-light-encoder-tiny"]
)
def test_layers_cost_what_torch_counts(name):
    """Forward; torch counts matrix products and convolutions, which is what these layers are made of."""
    model = PretrainingModel(shrink(name), 100).model.eval()
    with FlopCounterMode(display=False) as counter:
        model(Row(torch.zeros(1, 24).long()))
    assert counter.get_total_flops() == model.row_flops(24)


def test_a_factorised_embedding_costs_its_linear_map():
    embedding = PretrainingModel(shrink("albert-tiny"), 100).model.embedding
    with FlopCounterMode(display=False) as counter:
        embedding(Row(torch.zeros(1, 24).long()))
    assert counter.get_total_flops() == 24 * embedding.flops_per_token(24) > 0


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
