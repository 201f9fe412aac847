"""Where kernels in C do the work, that threads change no bit, and that everything works without them."""

import multiprocessing
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils.flop_counter import FlopCounterMode

from bakeoff.machine.compiler import Compiled
from bakeoff.ops import linear_cross_entropy as ops
from bakeoff.ops.attention import attention
from bakeoff.ops.attention_heads import attention_heads, split_heads
from bakeoff.ops.cpu import compiled_kernels
from bakeoff.ops.cpu.compiled_kernels import VARIABLE, kernels, runs_kernels
from bakeoff.ops.cpu.linear import multiplies_by_onednn
from bakeoff.ops.dropout import dropout
from bakeoff.ops.gelu import gelu
from bakeoff.ops.linear import linear
from bakeoff.ops.mixed_values import given_values, mixed_values
from bakeoff.ops.norm import norm_beside, norm_of_sum
from bakeoff.ops.projected_heads import ProjectedHeads
from bakeoff.ops.self_attention import self_attention_at_once
from bakeoff.ops.short_convolution import short_convolution
from bakeoff.resources.threads import using_threads

pytestmark = pytest.mark.skipif(kernels().library is None, reason=kernels().origin)


def test_they_run_for_bfloat16_in_memory_alone():
    x = torch.ones(3)
    assert runs_kernels(x.bfloat16())
    assert not runs_kernels(x)
    assert not runs_kernels(x.bfloat16().to("meta"))
    assert not runs_kernels(torch.nn.Parameter(x.bfloat16()))


def test_they_do_not_run_where_operations_are_traced_transformed_or_counted():
    x, seen = torch.ones(3).bfloat16(), []

    def look(y):
        seen.append(runs_kernels(y))
        return y * 2

    torch.func.vmap(look)(x)
    torch.func.grad(lambda y: look(y).sum())(x)
    torch.jit.trace(look, x, check_trace=False)
    with FlopCounterMode(display=False):
        look(x)
    with FakeTensorMode():
        look(torch.ones(3).bfloat16())
    assert seen
    assert not any(seen)
    look(x)
    assert seen[-1]


def loss_and_gradients():
    torch.manual_seed(0)
    rows, weight = torch.randn(97, 16).bfloat16().requires_grad_(), torch.randn(1003, 16).requires_grad_()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = ops.linear_cross_entropy(rows, weight, None, torch.randint(1003, (97,)))
    return loss.detach(), *torch.autograd.grad(loss, (rows, weight))


class Inputs:
    """What the operations are made of."""

    def __init__(self):
        torch.manual_seed(0)
        self.x, self.y, self.wide = (torch.randn(3, 67, size).bfloat16().requires_grad_() for size in (48, 48, 144))
        self.taps, self.gains = torch.randn(4, 3).requires_grad_(), torch.rand(2, 12).requires_grad_()
        self.heads = ProjectedHeads(4, (12, 12, 12), (self.gains[0], self.gains[1]), 1e-6, 0, 1e4)
        self.rows, self.weight = torch.randn(97, 16).bfloat16().requires_grad_(), torch.randn(1003, 16).requires_grad_()
        self.states, self.matrix = torch.randn(97, 32).bfloat16().requires_grad_(), torch.randn(64, 32).requires_grad_()
        self.bias = torch.randn(64).requires_grad_()
        self.labels = torch.randint(1003, (97,))
        self.norms = nn.LayerNorm(48), nn.RMSNorm(48, 1e-6)


def values_given_and_mixed(of):
    first, values = given_values(of.wide, 48)
    return first, mixed_values(of.wide * 1, values, of.taps.flatten()[:1])


OPERATIONS = {
    "norm of a sum": lambda of: (norm_of_sum(of.x, of.y, 0.3, True, of.norms[0]),),
    "norm beside": lambda of: norm_beside(of.x, of.norms[1]),
    "dropout": lambda of: (dropout(of.y, 0.5, True),),
    "gelu": lambda of: (gelu(of.y, gate=of.x),),
    "short convolution": lambda of: (
        short_convolution(of.x, of.taps, causal=True, documents=torch.arange(67).expand(3, -1) // 20),
    ),
    "heads": lambda of: attention_heads(of.wide, of.heads),
    "attention": lambda of: (
        attention(*split_heads(of.wide, 4, (12, 12, 12)), dropout=0.3),
        self_attention_at_once(of.wide, of.heads),
    ),
    "values": values_given_and_mixed,
    "linear": lambda of: (linear(of.states, of.matrix, of.bias),),
    "cross-entropy": lambda of: (ops.linear_cross_entropy(of.rows, of.weight, None, of.labels),),
}
"""Every operation that has a kernel, with dropout."""


def values_and_gradients(of):
    torch.manual_seed(0)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        made = [each for operation in OPERATIONS.values() for each in operation(of) if each is not None]
    wanted = of.x, of.y, of.wide, of.taps, of.gains, of.rows, of.weight, of.states, of.matrix, of.bias
    return *made, *torch.autograd.grad(made, wanted, list(map(torch.sin, made)))


def test_the_number_of_threads_changes_no_bit(monkeypatch):
    monkeypatch.setattr(compiled_kernels, "LEAST_NUMBERS", 1)
    results = []
    for count in (1, 2, 3):
        with using_threads(count):
            results.append(values_and_gradients(Inputs()))
    assert all(torch.equal(one, other) for each in results[1:] for one, other in zip(each, results[0], strict=True))


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_torchs_default_type_changes_no_bit(dtype):
    wanted, of, before = values_and_gradients(Inputs()), Inputs(), torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        given = values_and_gradients(of)
    finally:
        torch.set_default_dtype(before)
    assert all(torch.equal(one, other) for one, other in zip(given, wanted, strict=True))


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_second_derivative_is_refused(name):
    if name == "linear" and not multiplies_by_onednn():
        pytest.skip("this processor has no product of its own here, and torch's has second derivatives")
    of = Inputs()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        made = [each.float().square().sum() for each in OPERATIONS[name](of) if each is not None]
    wanted = of.x, of.y, of.wide, of.rows, of.states
    first = torch.autograd.grad(sum(made), wanted, create_graph=True, allow_unused=True)
    for each in first:
        if each is not None:
            with pytest.raises(RuntimeError, match="once_differentiable"):
                each.float().square().sum().backward(retain_graph=True)


def test_labels_may_be_of_any_whole_type():
    of = Inputs()
    for dtype in (torch.int32, torch.uint8):
        labels = of.labels.clamp(max=255)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            one, other = (
                ops.linear_cross_entropy(of.rows, of.weight, None, each) for each in (labels, labels.to(dtype))
            )
        assert torch.equal(one, other)


def test_an_interruption_waits_for_what_was_begun(monkeypatch):
    monkeypatch.setattr(compiled_kernels, "LEAST_NUMBERS", 1)
    done = []

    def work(begin, end):
        time.sleep(0.05)
        done.append(begin)

    setattr(work, "argtypes", ())  # noqa: B010

    class Pool(ThreadPoolExecutor):
        def submit(self, *given):
            if given[1] == 2:
                raise KeyboardInterrupt
            return super().submit(*given)

    monkeypatch.setattr(compiled_kernels, "kernels", lambda: Compiled(SimpleNamespace(work=work), ""))
    with using_threads(3), Pool(2) as pool:
        monkeypatch.setattr(compiled_kernels, "_pool", lambda *_: pool)
        with pytest.raises(KeyboardInterrupt):
            compiled_kernels.run("work", 3, 1)
        assert done == [1]


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own(monkeypatch):
    monkeypatch.setattr(compiled_kernels, "LEAST_NUMBERS", 1)
    scores, labels, losses = torch.randn(8, 64).bfloat16(), torch.zeros(8, dtype=torch.long), torch.empty(8)

    def work(pipe=None):
        compiled_kernels.run("cross_entropy", 8, 64, scores, labels, losses, 64)
        if pipe is not None:
            pipe.send(True)

    with using_threads(2):
        work()
        context = multiprocessing.get_context("fork")
        here, there = context.Pipe()
        process = context.Process(target=work, args=(there,))
        process.start()
        assert here.poll(60)
        process.join()


PROGRAM = """
import torch
from bakeoff.ops.cpu.compiled_kernels import kernels
from tests.ops.test_compiled_kernels import loss_and_gradients
print(kernels().library is not None, kernels().origin)
print([round(each.double().abs().sum().item(), 6) for each in loss_and_gradients()])
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", ["no compiler", "switched off"])
def test_without_them_torch_does_the_work(how, tmp_path, monkeypatch):
    if how == "no compiler":
        monkeypatch.setenv("PATH", str(tmp_path))
    else:
        monkeypatch.setenv(VARIABLE, "0")
    made = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True).stdout
    there, numbers = made.splitlines()
    assert there in ("False no C compiler (cc, gcc, clang)", f"False switched off by {VARIABLE}=0")
    wanted = [each.double().abs().sum().item() for each in loss_and_gradients()]
    assert [float(each) for each in numbers.strip("[]").split(",")] == pytest.approx(wanted, rel=1e-2)
