"""The first line of a training names its device, its precision and its attention, and why that is not quicker."""

import pytest
import torch
from tests.conftest import shrink

from bakeoff.machine.capacity import processor_name
from bakeoff.models.model import Model
from bakeoff.ops import document_attention
from bakeoff.resources import first_line as lines
from bakeoff.resources.device import Placement

CPU = torch.device("cpu")
H100 = torch.device("cuda", 1)


@pytest.fixture
def gpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _: "NVIDIA H100 80GB HBM3")
    ask = document_attention.why_not
    meta = torch.device("meta")
    answers = {H100: lambda *rest: ask(meta, *rest)}
    other = "this GPU has no FlashAttention"
    monkeypatch.setattr(lines, "why_not", lambda device, *rest: answers.get(device, lambda *_: other)(*rest))


def model(name, **changes) -> Model:
    return shrink(name, **{f"model.{key}": value for key, value in changes.items()}).model.build(160)


def test_on_a_cpu_it_names_the_processor_and_the_threads():
    torch.set_num_threads(1)
    line = lines.first_line(model("bert-tiny", dropout=0.0), Placement(CPU, "float32"))
    assert line.startswith(f"cpu ({processor_name()}), 1 thread, float32; attention by ")
    assert lines.attention_used(model("bert-tiny", dropout=0.1), Placement(CPU, "float32")).startswith(
        "attention by plain products, and in evaluation"
    )
    assert lines.attention_used(model("lstm-lm-tiny"), Placement(CPU, "float32")) == "no layer attends"


@pytest.mark.parametrize(
    ("name", "changes", "precision", "expected"),
    [
        ("bert-tiny", {"dropout": 0.0}, "bfloat16", "bfloat16; FlashAttention, within documents and without masks"),
        ("bert-tiny", {"dropout": 0.1}, "bfloat16", "bfloat16; FlashAttention, within documents and without masks"),
        ("t5-tiny", {"dropout": 0.0}, "bfloat16", "with masks, because of T5's bias by distance"),
        ("xlnet-tiny", {"dropout": 0.0}, "bfloat16", "with masks, because of a second stream"),
        ("conv-light-encoder-tiny", {}, "bfloat16", "no layer attends"),
        ("lstm-lm-tiny", {}, "float32", "float32, products in TF32; no layer attends"),
    ],
)
def test_on_a_gpu_it_says_what_keeps_from_the_quickest_attention(name, changes, precision, expected, gpu):
    line = lines.first_line(model(name, **changes), Placement(H100, precision))
    assert line.startswith("cuda:1 (NVIDIA H100 80GB HBM3), ")
    assert expected in line


def test_a_gpu_or_a_precision_without_it_is_named(gpu):
    found = [
        lines.attention_used(model("bert-tiny"), Placement(device, precision))
        for device, precision in ((H100, "float32"), (torch.device("cuda", 0), "bfloat16"))
    ]
    assert [line.partition("because ")[2].partition(";")[0] for line in found] == [
        "FlashAttention within documents multiplies in bfloat16",
        "this GPU has no FlashAttention",
    ]
