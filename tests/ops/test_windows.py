import pytest
import torch
from tests.ops.naive import last_tokens_naive

from bakeoff.ops.windows import document_ages, last_tokens


def test_ages_count_from_the_start_of_each_document():
    documents = torch.tensor([[1, 1, 1, 2, 2, 3, 0, 0], [4, 5, 5, 5, 5, 5, 5, 5]])
    assert document_ages(documents).tolist() == [[0, 1, 2, 0, 1, 0, 0, 1], [0, 0, 1, 2, 3, 4, 5, 6]]


@pytest.mark.parametrize("slots", [1, 2, 5, 9])
@pytest.mark.parametrize("packed", [False, True])
def test_windows_and_gradients_equal_the_naive_twin(slots, packed):
    x = torch.randn(2, 7, 3, dtype=torch.float64, requires_grad=True)
    ages = document_ages(torch.tensor([[1, 1, 1, 2, 2, 2, 2], [1, 2, 3, 3, 3, 3, 0]])) if packed else None
    found, expected = last_tokens(x, slots, ages), last_tokens_naive(x, slots, ages)
    torch.testing.assert_close(found, expected, atol=0, rtol=0)
    weight = torch.randn_like(expected)
    gradients = [torch.autograd.grad((y * weight).sum(), x)[0] for y in (found, expected)]
    torch.testing.assert_close(*gradients)


def test_windows_go_on_from_what_stands_before():
    x = torch.randn(2, 9, 3)
    torch.testing.assert_close(last_tokens(x[:, 5:], 4, left=x[:, 2:5]), last_tokens(x, 4)[:, :, 5:], atol=0, rtol=0)
