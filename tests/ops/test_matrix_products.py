import pytest
import torch

from bakeoff.ops.cpu import matrix_products
from bakeoff.ops.cpu.matrix_products import Float32Products, laid_out_for_few_rows


@pytest.fixture(autouse=True)
def _as_before(monkeypatch):
    before = torch.backends.mkldnn.matmul.fp32_precision
    torch.set_float32_matmul_precision("highest")
    torch.backends.mkldnn.matmul.fp32_precision = "none"
    monkeypatch.setattr(Float32Products, "by_onednn", False)
    yield
    torch.set_float32_matmul_precision("medium" if before == "bf16" else "highest")
    torch.backends.mkldnn.matmul.fp32_precision = before


@pytest.mark.parametrize("shapes", [((3, 700), (700, 50)), ((2, 40, 300), (2, 300, 20)), ((65, 64), (64, 1))])
def test_products_stay_those_of_float32(shapes):
    torch.manual_seed(0)
    Float32Products.ask_onednn()
    x, y = (torch.randn(shape) for shape in shapes)
    exact = x.double() @ y.double()
    bound = x.double().abs() @ y.double().abs() * x.shape[-1] * 2.0**-24  # of summing up in float32, in any order
    assert ((x @ y - exact).abs() <= bound).all()


def test_nothing_is_changed_where_onednn_would_round_to_bfloat16(monkeypatch):
    before = torch.backends.mkldnn.matmul.fp32_precision
    rounded = torch.Tensor.__matmul__

    def with_matrix_units(x, y):
        allowed = torch.backends.mkldnn.matmul.fp32_precision == "bf16"
        return rounded(x.bfloat16().float(), y.bfloat16().float()) if allowed else rounded(x, y)

    monkeypatch.setattr(torch.Tensor, "__matmul__", with_matrix_units)
    Float32Products.ask_onednn()
    assert not Float32Products.by_onednn
    assert torch.backends.mkldnn.matmul.fp32_precision == before


@pytest.mark.parametrize("gpu", [False, True])
@pytest.mark.parametrize("kept", [False, True])
def test_other_libraries_may_ask_torch_for_its_precision(monkeypatch, gpu, kept):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpu)
    monkeypatch.setattr(matrix_products, "_float32_is_kept", lambda: kept)
    Float32Products.ask_onednn()
    Float32Products.ask_onednn()
    assert (torch.backends.mkldnn.matmul.fp32_precision == "bf16") == kept
    assert torch.backends.cuda.matmul.allow_tf32 == (kept and not gpu)
    if not gpu:
        assert torch.get_float32_matmul_precision() == ("medium" if kept else "highest")


def test_a_gpu_that_multiplies_in_tf32_already_goes_on_so(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(matrix_products, "_float32_is_kept", lambda: True)
    torch.set_float32_matmul_precision("high")
    Float32Products.ask_onednn()
    assert torch.get_float32_matmul_precision() == "medium"
    assert torch.backends.cuda.matmul.allow_tf32


def test_weights_laid_out_for_few_rows_are_the_same_in_another_order():
    torch.manual_seed(0)
    weight, x = torch.randn(30, 40), torch.randn(5, 40)
    found = laid_out_for_few_rows(weight)
    assert found.t().is_contiguous()
    assert torch.equal(found, weight)
    torch.testing.assert_close(x @ found.t(), x @ weight.t())
