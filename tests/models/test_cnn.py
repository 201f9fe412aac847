"""Pham's language model against its equations, written out one window at a time in float64."""

import copy

import pytest
import torch
from tests.conftest import shrink
from torch.utils.flop_counter import FlopCounterMode

from bakeoff.errors import UserError
from bakeoff.learner.pretraining_model import PretrainingModel, build_on_meta
from bakeoff.models.blocks.cnn import CnnBlockConfig
from bakeoff.models.context import UNKNOWN, BuildContext, Context

WIDTH, WINDOW = 4, 6
VARIANTS = {
    "plain": {"kernels": [3]},
    "wide": {"kernels": [9]},
    "com": {"kernels": [3, 5]},
    "mlpconv": {"kernels": [3], "mlp": True},
    "multilayer": {"kernels": [3], "convolutions": 2, "mlp": True},
    "pooled": {"kernels": [3], "reduce": "max_pool", "keep": 3},
}


@pytest.fixture(params=VARIANTS)
def parts(request):
    """The block's two parts with random weights and running statistics, in evaluation mode and float64."""
    return build(**VARIANTS[request.param])


def build(**fields):
    torch.manual_seed(0)
    place = BuildContext(width=WIDTH, causal=True, dropout=0.3)
    built = CnnBlockConfig(window=WINDOW, window_dropout=0.0, **fields).build(place)
    for part in built.values():
        part.double().eval().dropout = 0.0
        for column in part.children():
            for each in column if isinstance(column, torch.nn.ModuleList) else []:
                each.dropout = 0.0
        for name, tensor in [*part.named_parameters(), *part.named_buffers()]:
            tensor.data.normal_(std=0.5)
            if name.endswith("variance"):
                tensor.data.abs_().add_(0.5)
    return built


def run(built, x, **signals):
    for part in built.values():
        x, _ = part(x, Context(UNKNOWN._replace(**signals)))
    return x


def window_of(x, place, first):
    """The words of a window as a list, the oldest first; those before `first` are zero."""
    return [x[t] if t >= first else torch.zeros(WIDTH).double() for t in range(place - WINDOW + 1, place + 1)]


def embedded(weights, words):
    places = weights["mixer"]["places.weight"]
    return [0.9 * word + 0.1 * places[slot] for slot, word in enumerate(words)]


def convolve(weight, vectors):
    """Same padding: what lies outside of the window is zero. weight is (tap, channel in, channel out)."""
    reach = weight.shape[0] // 2
    made = []
    for slot in range(len(vectors)):
        total = torch.zeros(WIDTH).double()
        for tap in range(weight.shape[0]):
            source = slot + tap - reach
            if 0 <= source < len(vectors):
                for channel in range(WIDTH):
                    total = total + vectors[source][channel] * weight[tap, channel]
        made.append(total)
    return made


def normalise(x, weights, prefix, statistics):
    mean, variance = statistics or (weights[f"{prefix}.mean"], weights[f"{prefix}.variance"])
    return (x - mean) / torch.sqrt(variance + 1e-3) * weights[f"{prefix}.weight"] + weights[f"{prefix}.bias"]


def column(weights, index, windows, keep, pooled, training=False):
    """One kernel size for a list of windows (they meet in the statistics of training alone)."""
    mixer, prefix, layer = weights["mixer"], f"columns.{index}", 0
    state, last = windows, windows
    while (name := f"{prefix}.convolutions.{layer}.weight") in mixer:
        convolved = [convolve(mixer[name], window) for window in state]
        statistics = None
        if training:
            every = torch.stack([vector for window in convolved for vector in window])
            statistics = every.mean(0), ((every - every.mean(0)) ** 2).mean(0)
        norm = f"{prefix}.convolutions.{layer}.norm"
        last = [[normalise(vector, mixer, norm, statistics) for vector in window] for window in convolved]
        state = [[vector.clamp(min=0) for vector in window] for window in last]
        layer += 1
    flat = []
    for window, activated, scores in zip(windows, state, last, strict=True):
        rows = []
        for word, active, score in zip(window, activated, scores, strict=True):
            gate = 1 / (1 + torch.exp(-(score - 2)))
            rows.append((gate * active + (1 - gate) * word).clamp(min=0))
        flat.append(torch.cat(rows))
    statistics = None
    if training:
        every = torch.stack(flat)
        statistics = every.mean(0), ((every - every.mean(0)) ** 2).mean(0)
    outputs = []
    for vector in flat:
        vector = normalise(vector, mixer, f"{prefix}.norm", statistics)
        if pooled:
            slots, largest = vector.view(WINDOW, WIDTH), []
            for channel in range(WIDTH):
                order = sorted(range(WINDOW), key=lambda slot, c=channel, s=slots: -s[slot, c].item())[:keep]
                largest.append(torch.stack([slots[slot, channel] for slot in sorted(order)]))
            outputs.append(torch.stack(largest, dim=1).flatten())
        else:
            outputs.append((mixer[f"{prefix}.output.weight"] @ vector + mixer[f"{prefix}.output.bias"]).clamp(min=0))
    return outputs


def reference(built, windows, training=False):
    """Outputs of a list of windows of words."""
    weights = {name: part.state_dict(keep_vars=True) for name, part in built.items()}
    embeddings = [embedded(weights, window) for window in windows]
    config = built["mixer"].columns
    made = [
        column(weights, index, embeddings, each.keep, each.output is None, training)
        for index, each in enumerate(config)
    ]
    outputs, highway = [], weights["ffn"]
    for pieces in zip(*made, strict=True):
        x = torch.cat(pieces)
        gate = 1 / (1 + torch.exp(-(highway["gate.weight"] @ x + highway["gate.bias"] - 2)))
        active = (highway["transform.weight"] @ x + highway["transform.bias"]).clamp(min=0)
        outputs.append(gate * active + (1 - gate) * x)
    return torch.stack(outputs)


def assert_same_with_gradients(built, found, expected, x):
    torch.testing.assert_close(found, expected, atol=1e-10, rtol=1e-10)
    parameters = [x, *(parameter for part in built.values() for parameter in part.parameters())]
    weight = torch.randn_like(expected)
    gradients = [torch.autograd.grad((y * weight).sum(), parameters, materialize_grads=True) for y in (found, expected)]
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, atol=1e-9, rtol=1e-9)


def test_outputs_and_gradients_equal_the_equations(parts):
    x = torch.randn(1, 8, WIDTH, dtype=torch.float64, requires_grad=True)
    expected = reference(parts, [window_of(x[0], t, 0) for t in range(8)])
    assert_same_with_gradients(parts, run(parts, x)[0], expected, x)


@pytest.mark.parametrize(
    ("variant", "sizes"),
    [("plain", [[3]]), ("com", [[3], [5]]), ("mlpconv", [[3, 1]]), ("multilayer", [[3, 1, 3, 1]])],
)
def test_each_variant_has_its_convolutions(variant, sizes):
    columns = build(**VARIANTS[variant])["mixer"].columns
    assert [[each.weight.shape[0] for each in column.convolutions] for column in columns] == sizes


def test_a_window_ends_at_its_document(parts):
    documents = torch.tensor([[1, 1, 1, 2, 2, 2, 2, 3]])
    x = torch.randn(1, 8, WIDTH, dtype=torch.float64)
    expected = reference(parts, [window_of(x[0], t, first) for t, first in enumerate([0, 0, 0, 3, 3, 3, 3, 7])])
    torch.testing.assert_close(run(parts, x, documents=documents)[0], expected, atol=1e-10, rtol=1e-10)


@pytest.mark.parametrize("kind", ["documents", "padding_mask"])
def test_training_normalises_by_the_batch_without_its_padding(kind):
    parts = build(**VARIANTS["com"])
    mixer = parts["mixer"].train()
    twin = copy.deepcopy(mixer)
    x = torch.randn(1, 8, WIDTH, dtype=torch.float64, requires_grad=True)
    mask = torch.tensor([[1, 1, 1, 1, 1, 1, 0, 0]])
    found = run(parts, x, documents=mask) if kind == "documents" else run(parts, x, padding_mask=mask.bool())
    expected = reference(parts, [window_of(x[0], t, 0) for t in range(6)], training=True)
    assert_same_with_gradients(parts, found[0, :6], expected, x)
    twin(x[:, :6], Context())
    for (name, value), without_padding in zip(mixer.named_buffers(), twin.buffers(), strict=True):
        torch.testing.assert_close(value, without_padding, atol=1e-10, rtol=1e-10, msg=name)


def test_running_statistics_are_those_of_torch():
    torch.manual_seed(0)
    mixer = build(**VARIANTS["plain"])["mixer"].train()
    norm = mixer.columns[0].convolutions[0].norm
    twin = torch.nn.BatchNorm1d(WIDTH, eps=1e-3).double()
    twin.running_mean.copy_(norm.mean)
    twin.running_var.copy_(norm.variance)
    x = torch.randn(WINDOW, 7, WIDTH, dtype=torch.float64)
    with torch.no_grad():
        twin.weight.copy_(norm.weight)
        twin.bias.copy_(norm.bias)
    torch.testing.assert_close(norm(x, None).flatten(0, 1), twin(x.flatten(0, 1)))
    torch.testing.assert_close(norm.mean, twin.running_mean)
    torch.testing.assert_close(norm.variance, twin.running_var)


def test_counted_flops_equal_those_that_torch_counts(parts):
    x = torch.randn(2, 9, WIDTH, dtype=torch.float64)
    with FlopCounterMode(display=False) as counter:
        run(parts, x)
    assert counter.get_total_flops() == 18 * sum(part.flops_per_token(9) for part in parts.values())


def test_what_a_slot_goes_into_outputs_with_is_the_length_of_its_weights():
    mixer = build(kernels=[3, 5])["mixer"]
    found = mixer.kernels(torch.empty(0), Context())
    weights = torch.cat([column.output.weight.detach() for column in mixer.columns])  # (O, S * D)
    expected = [weights[:, WIDTH * slot : WIDTH * (slot + 1)].norm(dim=1) for slot in range(WINDOW)]
    torch.testing.assert_close(found.detach(), torch.stack(expected, dim=1))
    assert len(mixer.offsets()) == WINDOW
    assert build(**VARIANTS["pooled"])["mixer"].kernels(torch.empty(0), Context()) is None


def test_rows_depend_on_each_other_in_training_alone():
    module = PretrainingModel(shrink("cnn-lm-tiny"), 160)
    assert not module.model.stack.independent_rows
    assert PretrainingModel(shrink("gpt-tiny"), 160).model.stack.independent_rows


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"kernels": [4]}, "block.kernels: 4 is not an odd number"),
        ({"reduce": "max_pool", "keep": 9}, "block.keep: 9 values are more than the 8 slots"),
    ],
)
def test_impossible_sizes_are_refused(fields, reason):
    with pytest.raises(UserError, match=reason):
        build_on_meta(shrink("cnn-lm-tiny", **{f"model.decoder.block.{key}": v for key, v in fields.items()}), 100)


def test_the_window_is_no_encoder():
    with pytest.raises(UserError, match="cnn predicts the next token from a window alone"):
        CnnBlockConfig().build(BuildContext(width=8, causal=False, dropout=0.0))
