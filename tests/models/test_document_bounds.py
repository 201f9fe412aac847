"""Attention by the bounds of documents: what a mask gives, and what each document gives that is read alone."""

from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.ops.naive import varlen_attn_naive

from bakeoff.batching.batch import Batch
from bakeoff.batching.widths import widened
from bakeoff.conformance.built_models import LAYOUTS, assert_close, built, layout_of, length_of, random_ids
from bakeoff.conformance.narrow import ALIKE, narrow
from bakeoff.models import attention_needs
from bakeoff.models.layer import apply_layer
from bakeoff.models.mixers.cross_attention import CrossAttention
from bakeoff.models.model import Model
from bakeoff.ops import varlen_kernels
from bakeoff.row import Row, Source
from bakeoff.spans import bounds_of_padded, bounds_of_rows, spans_of


def attends_by_bounds(name):
    stacks = built(name).model.stacks().values()
    return any(stack.attention_needs.attends and stack.attention_needs.mask_reason is None for stack in stacks)


NAMES = [name for name in ALIKE if attends_by_bounds(name) and not narrow(name).model.two_streams]


def refused(device, products, demands):
    """The kernel here has no dropout."""
    return "dropout" if demands.dropout else None


@pytest.fixture
def by_bounds(monkeypatch):
    """Attention by bounds on this CPU; the result counts its calls."""
    calls = []

    def attend(*arguments, scale=None, window_size=(-1, -1)):
        calls.append(window_size)
        return varlen_attn_naive(*arguments, scale=scale, window_size=window_size)

    def use(used):
        kernels = {False: varlen_kernels.adapted(attend), True: None}
        monkeypatch.setattr(varlen_kernels, "_KERNELS", kernels)
        monkeypatch.setattr(attention_needs, "why_not", refused if used else lambda *_: "not asked for")
        return calls

    return use


def read(module, row):
    torch.manual_seed(5)
    return module.model(row)[0]


def row_of(module, ids, options):
    source = None
    if module.model.config.sequence_to_sequence:
        source = Source(random_ids(13, 9, len(ids)), torch.arange(13) < torch.tensor([[13], [9], [4]])[: len(ids)])
    owners = options.get("documents", options.get("padding_mask"))
    return Row(ids, source=source, spans=None if owners is None else spans_of(owners.contiguous()), **options)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", NAMES)
def test_tokens_have_the_states_and_gradients_that_masks_give(name, layout, by_bounds):
    module = built(name).eval()
    length = length_of(module)
    placed = layout_of(layout, length)
    ids, states, gradients = random_ids(length), [], []
    upstream = placed.padding_mask[..., None] * torch.randn(module.model.config.output_width)
    for used in (False, True):
        calls = by_bounds(used)
        hidden = read(module, row_of(module, ids, placed.options))
        module.zero_grad()
        (hidden * upstream).sum().backward()
        states.append(hidden.detach()[placed.padding_mask])
        gradients.append({key: each.grad.clone() for key, each in module.named_parameters() if each.grad is not None})
    module.zero_grad()
    windows = any(stack.attention_needs.demands.windows for stack in module.model.stacks().values())
    attends = layout != "plain" or windows or module.model.config.sequence_to_sequence
    assert bool(calls) == attends
    assert_close(states[1], states[0])
    largest = max(gradient.norm() for gradient in gradients[0].values())  # some are 0 but for rounding
    for key, gradient in gradients[0].items():
        assert (gradients[1][key] - gradient).norm() <= 1e-4 * gradient.norm() + 1e-9 * largest, key


@pytest.mark.parametrize("name", [name for name in NAMES if not narrow(name).model.sequence_to_sequence])
def test_a_packed_document_is_what_it_is_alone(name, by_bounds):
    """Positions of the embedding go on over the row, so that only recipes without them can tell."""
    module = built(name).eval()
    if module.model.config.embedding.positions != "none":
        module = None
        pytest.skip("positions of the embedding go on over the row")
    calls = by_bounds(True)
    placed = layout_of("packed", length_of(module))
    ids = random_ids(length_of(module))
    packed = read(module, row_of(module, ids, placed.options))
    assert calls
    for number in (1, 2, 3):
        inside = placed.documents[0] == number
        assert_close(packed[:, inside], read(module, Row(ids[:, inside])))


@pytest.mark.parametrize("name", ["t5-base", "transformer-base", "bart-base"])
def test_a_padded_source_is_attended_to_without_its_mask(name, by_bounds, monkeypatch):
    """Also where a bias by distance makes masks for the rows themselves."""
    module = built(name).eval()
    states, to_source = [], []
    forward = CrossAttention.forward
    monkeypatch.setattr(
        CrossAttention,
        "forward",
        lambda self, x, context, *rest: to_source.append(context.source_bounds) or forward(self, x, context, *rest),
    )
    for used in (False, True):
        to_source.clear()
        by_bounds(used)
        states.append(read(module, row_of(module, random_ids(11), {})).detach())
        assert to_source
        assert all((each is not None) == used for each in to_source)
    assert_close(states[1], states[0])


@pytest.mark.parametrize("training", [True, False])
def test_a_mask_is_made_where_bounds_are_not_enough(training, by_bounds, monkeypatch):
    """Dropout of the weights, biases by distance, and rows whose documents only the device knows."""
    by_bounds(True)
    masks = []
    whole = Model._mask
    monkeypatch.setattr(Model, "_mask", lambda self, *told: masks.append(told) or whole(self, *told))
    ids = random_ids(24)
    packed = layout_of("packed", 24).options
    for name, row, masked in (
        ("bert-base", row_of(built("bert-base"), ids, packed), training),  # by dropout
        ("bert-base", Row(ids, **packed), True),
        ("t5-base", row_of(built("t5-base"), ids, packed), True),
    ):
        masks.clear()
        read(built(name).train(training), row)
        assert bool(masks) == masked, name
        built(name).eval()


OWNERS = st.lists(st.lists(st.integers(0, 3), min_size=6, max_size=6), min_size=1, max_size=4)


@given(OWNERS)
def test_spans_are_the_runs_of_equal_numbers(owners):
    owners = torch.tensor(owners)
    spans = spans_of(owners)
    runs = []
    for row, numbers in enumerate(owners.tolist()):
        for place, number in enumerate(numbers):
            if place == 0 or number != numbers[place - 1]:
                runs.append([row * 6 + place, 0, number == 0])
            runs[-1][1] = row * 6 + place + 1
    assert spans.starts.tolist() == [begin for begin, _, _ in runs]
    assert spans.ends().tolist() == [end for _, end, _ in runs]
    assert spans.padding.tolist() == [padding for _, _, padding in runs]
    bounds = spans.bounds(torch.device("cpu")).tolist()
    assert bounds[: len(runs)] == spans.starts.tolist()
    assert set(bounds[len(runs) :]) == {owners.numel()}
    assert (len(bounds) - 1).bit_count() == 1
    turned, expected = spans.turned(), spans_of(owners.flip(1))
    assert torch.equal(turned.starts, expected.starts)
    assert torch.equal(turned.padding, expected.padding)


@pytest.mark.parametrize("padded", [True, False])
def test_rows_that_are_widened_have_the_spans_of_the_wider_rows(padded):
    owners = torch.tensor([[1, 1, 2, 0], [1, 2, 3, 3]])
    own = {"padding_mask": owners > 0} if padded else {"documents": owners}
    row = Row(torch.ones_like(owners), spans=spans_of(owners > 0 if padded else owners), **own)
    wider = widened(Batch(row, {}), (7, 0, 0), pad=0, directions=1).row
    expected = spans_of(wider.owners)
    assert wider.ids.shape == (2, 7)
    assert torch.equal(wider.spans.starts, expected.starts)
    assert torch.equal(wider.spans.padding, expected.padding)
    assert wider.spans.length == 7


@given(OWNERS)
def test_documents_side_by_side_are_their_first_tokens_then_their_second(owners):
    owners = torch.tensor(owners)
    positions, sizes = spans_of(owners).side_by_side()
    assert sorted(positions.tolist()) == owners.flatten().nonzero()[:, 0].tolist()
    assert sizes.sum() == len(positions)
    columns = positions.split(sizes.tolist())
    for before, after in pairwise(columns):
        assert torch.equal(after, before[: len(after)] + 1)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=4))
def test_bounds_of_padded_rows_are_those_of_their_spans(sides):
    """A row has padding before its tokens, behind them, on both sides, or nothing else."""
    positions = torch.arange(6)
    real = torch.stack([(positions >= min(each)) & (positions < max(each)) for each in sides])
    bounds = bounds_of_padded(real)
    assert bounds.dtype == torch.int32
    found = sorted({*bounds.tolist()})
    assert found == [*sorted({*spans_of(real).starts.tolist(), *range(0, len(sides) * 6, 6)}), len(sides) * 6]
    assert bounds.diff().min() >= 0


def test_bounds_of_whole_rows_are_where_rows_begin():
    assert bounds_of_rows(3, 5, torch.device("cpu")).tolist() == [0, 5, 10, 15]


@pytest.mark.slow
@torch.no_grad()
def test_a_compiled_layer_sees_one_graph_whatever_the_documents(by_bounds):
    """With the same number of spans, up to a power of two, nothing is compiled anew, and no graph breaks."""
    by_bounds(True)
    plain = varlen_kernels.Kernel(lambda q, k, v, within: q * within.scale + v, True)
    varlen_kernels._KERNELS[False] = plain
    model, graphs = built("modernbert-base").model.eval(), []
    compiled = torch.compile(
        apply_layer, backend=lambda graph, _: graphs.append(graph) or graph.forward, fullgraph=True
    )
    for seed in range(3):
        drawn = torch.randint(1, 4, (3, 24), generator=torch.Generator().manual_seed(seed))
        documents = drawn.sort(1).values
        x, context = model.stack_inputs(Row(random_ids(24), documents=documents, spans=spans_of(documents)))
        for layer in model.stack.layers:
            expected = apply_layer(layer, x, context)[0]
            x = compiled(layer, x, context, None)[0]
            assert torch.equal(x, expected)
    assert len(graphs) == 3  # the first layer has no norm, and others differ by their windows
