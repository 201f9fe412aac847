"""The first line of a training names its device, its precision and its attention, and why that is not quicker."""

import pytest
import torch
from tests.conftest import shrink

from bakeoff.machine.capacity import processor_name
from bakeoff.models.model import Model
from bakeoff.resources import first_line as lines
from bakeoff.resources.device import Placement

CPU = torch.device("cpu")
H100 = torch.device("cuda", 1)


@pytest.fixture
def gpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _: "NVIDIA H100 80GB HBM3")
    monkeypatch.setattr(lines, "runs_on", lambda device, products, _: device == H100 and products == torch.bfloat16)


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
        ("bert-tiny", {"dropout": 0.1}, "bfloat16", "with masks, because of dropout of the attention weights"),
        ("t5-tiny", {"dropout": 0.0}, "bfloat16", "with masks, because of T5's bias by distance"),
        ("xlnet-tiny", {"dropout": 0.0}, "bfloat16", "with masks, because of relative_attention"),
        ("conv-light-encoder-tiny", {}, "bfloat16", "no layer attends"),
        ("lstm-lm-tiny", {}, "float32", "float32, products in TF32; no layer attends"),
    ],
)
def test_on_a_gpu_it_says_what_keeps_from_the_quickest_attention(name, changes, precision, expected, gpu):
    line = lines.first_line(model(name, **changes), Placement(H100, precision))
    assert line.startswith("cuda:1 (NVIDIA H100 80GB HBM3), ")
    assert expected in line


def test_a_gpu_or_a_precision_without_it_is_named(gpu):
    other = torch.device("cuda", 0)
    found = [
        lines.attention_used(model("bert-tiny", dropout=0.0), Placement(other, each))
        for each in ("float32", "bfloat16")
    ]
    assert [line.rpartition(" is not for ")[2] for line in found] == ["float32", "this GPU or this version of torch"]
