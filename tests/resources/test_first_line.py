"""The first line of a training names its device, its precision and its attention, and why that is not quicker."""

import pytest
import torch
from tests.conftest import shrink

from bakeoff.conformance.narrow import ALIKE, narrow
from bakeoff.conformance.test_waiting import on_meta
from bakeoff.machine.capacity import processor_name
from bakeoff.models.mixers.cross_attention import CrossAttention
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


@pytest.mark.parametrize("kernel", [False, True])
def test_on_a_cpu_in_bfloat16_it_says_whether_there_is_a_kernel(kernel, monkeypatch):
    monkeypatch.setattr(lines, "multiplies_matrices", lambda x: kernel)
    there, placement = "attention by one kernel", Placement(CPU, "bfloat16")
    assert lines.attention_used(model("bert-tiny"), placement).startswith(there) == kernel
    assert "one kernel" not in lines.attention_used(model("bert-tiny"), Placement(CPU, "float32"))
    assert "one kernel" not in lines.attention_used(model("t5-tiny"), placement)  # a bias by distance
    in_layers = model("bert-tiny")
    in_layers.compile_layers()
    assert "one kernel" not in lines.attention_used(in_layers, placement)


@pytest.mark.parametrize(
    ("name", "changes", "precision", "expected"),
    [
        ("bert-tiny", {"dropout": 0.0}, "bfloat16", "bfloat16; FlashAttention, within documents and without masks"),
        ("bert-tiny", {"dropout": 0.1}, "bfloat16", "bfloat16; FlashAttention, within documents and without masks"),
        ("t5-tiny", {"dropout": 0.0}, "bfloat16", "with masks, because of T5's bias by distance"),
        ("xlnet-tiny", {"dropout": 0.0}, "bfloat16", "with masks, because of a second stream"),
        ("conv-light-encoder-tiny", {}, "bfloat16", "no layer attends"),
        ("lstm-lm-tiny", {}, "float32", "float32, products in TF32; no layer attends"),
        ("ltg-bert-small", {}, "bfloat16", "with masks, because of disentangled_attention"),
        ("transformer-xl-tiny", {}, "bfloat16", "with masks, because of relative_attention"),
        ("t5-tiny", {}, "bfloat16", "T5's bias by distance; to the source FlashAttention"),
        ("bart-tiny", {}, "bfloat16", "bfloat16; FlashAttention, within documents and without masks, to the source as"),
        (
            "bart-tiny",
            {"decoder.block.cross": {"heads": 2, "key_width": 12, "value_width": 12}},
            "bfloat16",
            "without masks; to the source with a mask where it is padded, because of heads of 12 channels",
        ),
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


def test_prefixes_and_a_generator_are_named(gpu):
    placement = Placement(H100, "bfloat16")
    assert "because of prefixes that are read from both sides" in lines.attention_used(
        model("gpt-tiny"), placement, prefixes=True
    )
    line = lines.first_line(model("bert-tiny"), placement, generator=model("t5-tiny", dropout=0.0))
    assert line.endswith("to the source FlashAttention")
    assert "without masks; of the generator: attention with masks, because of T5's bias" in line
    assert "generator" not in lines.first_line(model("bert-tiny"), placement, generator=model("bert-tiny"))


QUICK = ["bert-base", "gpt2-base", "t5-base", "bart-base", "transformer-base", "gpt-bert-small", "prefix-lm-base"]


@pytest.mark.parametrize(
    "name", [each if each in QUICK else pytest.param(each, marks=pytest.mark.slow) for each in sorted(ALIKE)]
)
def test_no_mask_is_silent(name, corpus, parallel_corpus, gpu, monkeypatch):
    """In a step of every recipe on a GPU each mask, whatever needs it, is one that the first line speaks of."""
    recipe = narrow(name)
    unit = on_meta(recipe, corpus, parallel_corpus, torch.bfloat16)
    made, to_source = [], []
    mask, cross = Model._mask, CrossAttention.forward
    monkeypatch.setattr(Model, "_mask", lambda self, *told: made.append(mask(self, *told)) or made[-1])

    def noted(self, x, context, *rest):
        to_source.append(context.source_mask is not None and context.source_bounds is None)
        return cross(self, x, context, *rest)

    monkeypatch.setattr(CrossAttention, "forward", noted)
    unit.begin()
    batch = unit.batches(0)[0]
    unit.losses(batch, unit.counts([batch]))
    module = unit.module
    line = lines.first_line(
        module.model, Placement(H100, "bfloat16"), generator=module.generator, prefixes=recipe.reads_both_sides
    )
    biased = any(stack.bias is not None or stack.distances is not None for stack in module.model.stacks().values())
    if biased or any(each is not None for each in made):
        assert "attention with masks, because" in line
    if any(to_source):
        assert "to the source with a mask" in line
    if line.endswith(lines.FAST) or line.endswith("to the source as well"):
        assert not any(each is not None for each in made)
