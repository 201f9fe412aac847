"""Recurrent mixers against torch's cells, stepped by hand over each document."""

import pytest
import torch
from torch import nn

from bakeoff.errors import UserError
from bakeoff.models.context import UNKNOWN, BuildContext, Context
from bakeoff.models.mixers.gru import GruConfig
from bakeoff.models.mixers.lstm import LstmConfig

WIDTH, LENGTH = 6, 7
PADDING_MASK = [[1, 1, 1, 1, 1, 1, 1], [0, 1, 1, 1, 0, 0, 0]]
DOCUMENTS = [[1, 1, 2, 2, 2, 3, 3], [1, 2, 2, 2, 2, 0, 0]]
KINDS = {
    "lstm": (LstmConfig(), nn.LSTMCell),
    "projected": (LstmConfig(units=8), None),
    "gru": (GruConfig(), nn.GRUCell),
}


def built(kind, causal):
    torch.manual_seed(0)
    return KINDS[kind][0].build(BuildContext(width=WIDTH, causal=causal, dropout=0.0)).double()


def stepped(kind, mixer, tokens, suffix):
    """The outputs for (S, D) tokens, one at a time."""
    if kind == "projected":
        return stepped_and_projected(mixer, tokens, suffix)
    cell = KINDS[kind][1](WIDTH, mixer.cells.hidden_size).double()
    cell.load_state_dict({name: getattr(mixer.cells, f"{name}_l0{suffix}") for name in cell.state_dict()})
    state, outputs = None, []
    for token in tokens:
        state = cell(token[None], state)
        outputs.append((state[0] if kind == "lstm" else state)[0])
    return torch.stack(outputs)


def stepped_and_projected(mixer, tokens, suffix):
    """Sak et al. 2014: c = f * c + i * g, h = W_h (o * tanh(c)), where the gates see the projected h."""
    names = ("weight_ih", "weight_hh", "weight_hr", "bias_ih", "bias_hh")
    of_input, of_state, projection, *biases = (getattr(mixer.cells, f"{name}_l0{suffix}") for name in names)
    h, c, outputs = torch.zeros_like(projection[:, 0]), torch.zeros_like(projection[0]), []
    for token in tokens:
        i, f, g, o = (of_input @ token + of_state @ h + sum(biases)).chunk(4)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = projection @ (o.sigmoid() * c.tanh())
        outputs.append(h)
    return torch.stack(outputs)


def by_document(kind, mixer, x, owners, causal):
    expected = torch.zeros_like(x)
    for b, row in enumerate(owners):
        for owner in set(row) - {0}:
            places = [t for t in range(LENGTH) if row[t] == owner]
            sides = [stepped(kind, mixer, x[b, places], "")]
            if not causal:
                sides.append(stepped(kind, mixer, x[b, places].flip(0), "_reverse").flip(0))
            expected[b, places] = torch.cat(sides, dim=-1).detach()
    return expected


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_every_document_is_a_sequence_of_its_own(kind, causal):
    mixer = built(kind, causal)
    x = torch.randn(2, LENGTH, WIDTH, dtype=torch.float64)
    for context, owners in (
        (Context(), [[1] * LENGTH] * 2),
        (Context(UNKNOWN._replace(padding_mask=torch.tensor(PADDING_MASK).bool())), PADDING_MASK),
        (Context(UNKNOWN._replace(documents=torch.tensor(DOCUMENTS))), DOCUMENTS),
    ):
        found = mixer(x, context)[0]
        expected = by_document(kind, mixer, x, owners, causal)
        torch.testing.assert_close(found, expected, atol=1e-10, rtol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_do_not_cross_documents(kind):
    mixer = built(kind, causal=False)
    x = torch.randn(2, LENGTH, WIDTH, dtype=torch.float64, requires_grad=True)
    y, _ = mixer(x, Context(UNKNOWN._replace(documents=torch.tensor(DOCUMENTS))))
    y[0, 3].sum().backward()
    assert x.grad.abs().sum(-1).nonzero().tolist() == [[0, 2], [0, 3], [0, 4]]


@pytest.mark.parametrize("kind", KINDS)
def test_operations_are_those_of_the_matrix_products(kind):
    for causal in (True, False):
        mixer = built(kind, causal)
        matrices = sum(parameter.numel() for parameter in mixer.parameters() if parameter.dim() == 2)
        assert mixer.flops_per_token(LENGTH) == 2 * matrices


def test_two_directions_need_an_even_width():
    with pytest.raises(UserError, match="odd width 5"):
        LstmConfig().build(BuildContext(width=5, causal=False, dropout=0.0))


def test_a_projection_leads_to_fewer_outputs_than_there_are_units():
    cells = LstmConfig(units=8).build(BuildContext(width=6, causal=False, dropout=0.0)).cells
    assert (cells.hidden_size, cells.proj_size) == (8, 3)  # of each direction
    with pytest.raises(UserError, match=r"mixer.units: 6 units cannot be projected down to 6 outputs"):
        LstmConfig(units=6).build(BuildContext(width=6, causal=True, dropout=0.0))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bias", [True, False])
def test_biases_are_there_unless_the_model_has_none(kind, bias):
    mixer = KINDS[kind][0].build(BuildContext(width=WIDTH, causal=True, dropout=0.0, bias=bias))
    assert any("bias" in name for name, _ in mixer.named_parameters()) == bias
