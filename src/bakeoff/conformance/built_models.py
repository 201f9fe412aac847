"""Small models of every recipe, their inputs, and the dependence of their outputs on the inputs."""

from functools import cache
from typing import NamedTuple

import pytest
import torch

from bakeoff.conformance.narrow import narrow
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.row import Row, Source

VOCABULARY = 160


ROWS, CUT = 3, 15


@cache
def built(name):
    """The model of a recipe, shared by all tests; a test that changes the model takes a `fresh` one."""
    torch.manual_seed(0)
    return PretrainingModel(narrow(name), VOCABULARY)


def fresh(name):
    """A new model of a recipe with the weights of the shared one."""
    torch.manual_seed(0)
    return PretrainingModel(narrow(name), VOCABULARY).eval()


def length_of(module):
    """A length of rows in tokens at which the outermost taps of every layer lie inside the row, on both sides."""
    parts = [part for stack in module.model.stacks().values() for layer in stack.layers for part in layer]
    return 24 + int(max(0, *(side for part in parts for side in part.reach() if side != float("inf"))))


def random_ids(length, seed=0, rows=ROWS):
    return torch.randint(5, VOCABULARY, (rows, length), generator=torch.Generator().manual_seed(seed))


def read(module, ids, source_seed=9, **options):
    """The hidden states of rows, for a random source if the model reads one. Dropout draws the same masks in each call.

    States that are compared to the last bit are both computed with gradients: without, torch may use other kernels.
    """
    if module.model.config.sequence_to_sequence:
        options.setdefault("source", Source(random_ids(13, source_seed, len(ids))))
    torch.manual_seed(5)
    return module.model(Row(ids, **options))[0]


def assert_close(found, expected):
    torch.testing.assert_close(found, expected, atol=2e-6, rtol=1e-5)


def embedded(module, call, source=False):
    """The result of a call, and the embeddings of the source or the text as a leaf for its gradient."""
    embedding = module.model.embedding if source else module.model.target_embedding or module.model.embedding
    leaves = []

    def cut(*arguments):
        leaves.append(arguments[-1].detach().requires_grad_())
        return leaves[-1]

    handle = embedding.register_forward_hook(cut)
    try:
        return call(), leaves[0]
    finally:
        handle.remove()


def gradient(hidden, of, leaf):
    """(B, T) size of the gradient by each embedding, for the states at the places where `of`, (B, T), is True."""
    upstream = torch.randn(hidden.shape, generator=torch.Generator().manual_seed(6)) * of[..., None]
    return torch.autograd.grad(hidden, leaf, upstream)[0].abs().sum(-1)


def in_mode(module, mode):
    """The model in the mode training or evaluation; skips recipes whose rows depend on each other in training."""
    if mode == "training" and not module.model.independent_rows:
        pytest.skip("the recipe declares that rows depend on each other in training")
    return module.train(mode == "training")


class Layout(NamedTuple):
    """Padding and documents of a batch."""

    options: dict
    """Arguments of the model's inputs."""
    padding_mask: torch.Tensor
    """(B, T) padding mask, True for tokens."""
    documents: torch.Tensor
    """(B, T) document ids, 0 for padding."""


LAYOUTS = ["plain", "padded", "packed"]


def layout_of(kind, length):
    """Rows without padding (plain), with padding behind (padded), or of three documents with padding (packed)."""
    padding_mask = torch.ones(ROWS, length, dtype=torch.bool)
    if kind == "packed":
        documents = torch.tensor([1] * 9 + [2] * (length - 14) + [3] * 3 + [0] * 2).expand(ROWS, -1)
        return Layout({"documents": documents}, documents > 0, documents)
    if kind == "padded":
        padding_mask = torch.arange(length) < torch.tensor([[length], [length - 3], [length - 7]])
        return Layout({"padding_mask": padding_mask}, padding_mask, padding_mask.long())
    return Layout({}, padding_mask, padding_mask.long())
