"""Tensors that stand in files of several processes are read as those of a single file, whole and in regions."""

import json

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file

from bakeoff.checksums import Damaged
from bakeoff.stored_tensors import OFFSETS, OFFSETS_OF_ALL, StoredTensors
from bakeoff.tensors import fill, load_tensors, save_tensors, shapes


def write_parts(folder, tensors, cuts, file="model"):
    """Write the rows of each tensor between its cuts into a file for each process; other tensors into the first."""
    for rank in range(max(len(each) for each in cuts.values()) + 1):
        parts, offsets = {}, {}
        for name, tensor in tensors.items():
            bounds = [0, *cuts[name], len(tensor) if tensor.dim() else 1]
            if rank + 1 < len(bounds) and (tensor.dim() or rank == 0):
                part = tensor[bounds[rank] : bounds[rank + 1]] if tensor.dim() else tensor
                parts[f"{file}.{name}"] = part.contiguous()
                first = [bounds[rank], *([0] * (tensor.dim() - 1))] if tensor.dim() else []
                offsets[f"{file}.{name}"] = {OFFSETS: first}
        save_file(parts, folder / f"shard-{rank:05d}.safetensors", {OFFSETS_OF_ALL: json.dumps(offsets)})


@st.composite
def divided(draw):
    """Tensors, with the rows at which they are cut; a process may have none."""
    tensors, cuts = {}, {}
    for index in range(draw(st.integers(1, 3))):
        shape = draw(st.lists(st.integers(1, 5), max_size=3))
        type_ = draw(st.sampled_from([torch.float32, torch.bfloat16, torch.int64, torch.bool]))
        name = f"layer.{index}"
        tensors[name] = torch.arange(torch.Size(shape).numel()).reshape(shape).to(type_)
        rows = shape[0] if shape else 0
        cuts[name] = sorted(draw(st.lists(st.integers(0, rows), max_size=3))) if shape else []
    return tensors, cuts


@settings(max_examples=30)
@given(divided(), st.data())
def test_parts_are_read_as_a_whole_file(tmp_path_factory, example, data):
    folder, (tensors, cuts) = tmp_path_factory.mktemp("parts"), example
    write_parts(folder, tensors, cuts)
    path = folder / "model.safetensors"
    stored = StoredTensors(path)
    assert {*stored} == {*tensors}
    assert shapes(path) == {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    for name, tensor in load_tensors(path).items():
        assert tensor.dtype == tensors[name].dtype
        assert torch.equal(tensor, tensors[name])
        spans = [sorted(data.draw(st.tuples(st.integers(0, size), st.integers(0, size)))) for size in tensor.shape]
        region = stored.region(name, [start for start, _ in spans], [end - start for start, end in spans])
        assert torch.equal(region, tensors[name][tuple(slice(*span) for span in spans)])


def test_a_file_stands_before_parts_of_it(tmp_path):
    save_tensors({"weight": torch.ones(2)}, tmp_path / "model.safetensors")
    write_parts(tmp_path, {"weight": torch.zeros(2)}, {"weight": [1]})
    assert torch.equal(load_tensors(tmp_path / "model.safetensors")["weight"], torch.ones(2))


def test_a_module_is_filled_from_parts(tmp_path):
    wanted, module = torch.nn.Linear(3, 4), torch.nn.Linear(3, 4)
    tensors = {name: each.detach() for name, each in wanted.named_parameters()}
    write_parts(tmp_path, tensors, {"weight": [1], "bias": [3]})
    fill(module, tmp_path / "model.safetensors")
    assert torch.equal(module.weight, wanted.weight)
    assert torch.equal(module.bias, wanted.bias)


@pytest.mark.parametrize("harm", ["lost", "no offsets", "no numbers", "negative", "far away", "another rank"])
def test_parts_that_are_not_whole_are_told(harm, tmp_path):
    write_parts(tmp_path, {"weight": torch.ones(6)}, {"weight": [2, 4]})
    part = tmp_path / "shard-00001.safetensors"
    about = {
        "no offsets": {},
        "no numbers": {OFFSETS_OF_ALL: json.dumps({"model.weight": {OFFSETS: ["x"]}})},
        "far away": {OFFSETS_OF_ALL: json.dumps({"model.weight": {OFFSETS: [1 << 60]}})},
        "another rank": {OFFSETS_OF_ALL: json.dumps({"model.weight": {OFFSETS: [2, 0]}})},
        "negative": {OFFSETS_OF_ALL: json.dumps({"model.weight": {OFFSETS: [-2]}})},
    }
    if harm == "lost":
        part.unlink()
    else:
        weight = torch.ones(2, 1) if harm == "another rank" else torch.ones(2)
        save_file({"model.weight": weight}, part, about[harm])
    with pytest.raises(Damaged, match=r"a part of weight is missing|does not say which parts"):
        load_tensors(tmp_path / "model.safetensors")
