"""Relative attention against transformers' XLNet: segments, memory, padding on either side, two streams, gradients."""

import pytest
import torch
from tests.models.test_against_transformers import copy_linear, randomise

from bakeoff.models.context import Context
from bakeoff.models.inputs import Queries
from bakeoff.models.model import ModelConfig

transformers = pytest.importorskip("transformers")

WIDTH, HEADS, LAYERS, LENGTH, REMEMBERED = 36, 3, 3, 11, 5


@pytest.fixture(scope="module")
def pair():
    """Our model and theirs with the same random weights."""
    config = transformers.XLNetConfig(
        vocab_size=97, d_model=WIDTH, n_layer=LAYERS, n_head=HEADS, d_inner=50, use_mems_eval=True, mem_len=None
    )
    theirs = transformers.XLNetModel(config).eval()
    randomise(theirs, deviation=0.15)
    block = {
        "norm": "post",
        "mixer": {"kind": "relative_attention", "heads": HEADS, "segments": True},
        "ffn": {"width": 50, "activation": "gelu"},
    }
    values = {
        "embedding": {"positions": "none", "norm": False},
        "encoder": {"width": WIDTH, "layers": LAYERS, "block": block},
    }
    ours = ModelConfig.parse(values, "test").build(97).eval()
    ours.embedding.tokens.weight.data = theirs.word_embedding.weight.data
    ours.query.data = theirs.mask_emb.data.flatten()
    for layer, (mixer, network) in zip(theirs.layer, ours.stack.layers, strict=True):
        copy_layer(mixer, network, layer)
    return ours, theirs


def copy_layer(mixer, network, layer):
    own, attention = mixer.function, layer.rel_attn

    def flat(tensor):
        return tensor.data.reshape(WIDTH, WIDTH)

    own.query.weight.data = flat(attention.q).T.contiguous()
    own.key_value.weight.data = torch.cat([flat(attention.k).T, flat(attention.v).T])
    own.distance.weight.data = flat(attention.r).T.contiguous()
    own.output.weight.data = flat(attention.o)
    own.content_bias.data = attention.r_w_bias.data[:, None]
    own.distance_bias.data = attention.r_r_bias.data[:, None]
    own.segment_bias.data = attention.r_s_bias.data[:, None]
    own.segments.data = attention.seg_embed.data.transpose(0, 1).contiguous()
    mixer.norm.load_state_dict(attention.layer_norm.state_dict())
    copy_linear(network.function.input, layer.ff.layer_1)
    copy_linear(network.function.output, layer.ff.layer_2)
    network.norm.load_state_dict(layer.ff.layer_norm.state_dict())


@pytest.fixture
def rows():
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(5, 97, (3, LENGTH), generator=generator)
    real = torch.ones(3, LENGTH, dtype=torch.bool)
    real[1, 7:] = False
    real[2, :4] = False  # on the left, as XLNet is padded
    segments = (torch.arange(LENGTH) > 5).long().expand(3, -1)
    return ids, segments, real


def close(found, expected):
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)


def test_both_sides_with_padding_and_segments(pair, rows):
    ours, theirs = pair
    ids, segments, real = rows
    with torch.no_grad():
        expected = theirs(input_ids=ids, attention_mask=real.float(), token_type_ids=segments).last_hidden_state
        close(ours(ids, segments, real)[real], expected[real])
        close(ours(ids), theirs(input_ids=ids).last_hidden_state)


def test_memory_is_taken_and_returned(pair, rows):
    ours, theirs = pair
    ids, segments, _ = rows
    generator = torch.Generator().manual_seed(2)
    memory = [torch.randn(3, REMEMBERED, WIDTH, generator=generator) for _ in range(LAYERS)]
    with torch.no_grad():
        mems = [part.transpose(0, 1).contiguous() for part in memory]
        expected = theirs(input_ids=ids, token_type_ids=segments, mems=mems, use_mems=True)
        state = tuple((part, None) for part in memory)
        found, after = ours.stack(ours.embedding(ids), Context(segments=segments), state)
    close(found, expected.last_hidden_state)
    for (part, _), their in zip(after, expected.mems, strict=True):
        close(part, their.transpose(0, 1))


def permuted(rows, targets=4):
    """A factorisation order over all places, and what each row sees of it; the first query sees nothing."""
    generator = torch.Generator().manual_seed(3)
    order = torch.stack([torch.randperm(LENGTH, generator=generator) for _ in range(3)])
    rank = order.argsort(1)
    before = rank[:, None, :] < rank[:, :, None]  # (B, T, T) place j comes before place i
    positions = order[:, :targets]
    visible = torch.cat([before, before.gather(1, positions[:, :, None].expand(-1, -1, LENGTH))], dim=1)
    mapping = torch.nn.functional.one_hot(positions, LENGTH).float()
    return Queries(positions, visible), (~before).float(), mapping


@pytest.mark.parametrize("padded", [False, True])
def test_two_streams_are_a_longer_query(pair, rows, padded):
    ours, theirs = pair
    ids, segments, real = rows
    queries, mask, mapping = permuted(rows)
    options = {"attention_mask": real.float()} if padded else {}
    ours.zero_grad()
    theirs.zero_grad()
    expected = theirs(
        input_ids=ids, token_type_ids=segments, perm_mask=mask, target_mapping=mapping, use_mems=False, **options
    ).last_hidden_state
    found = ours(ids, segments, real if padded else None, queries=queries)[:, LENGTH:]
    close(found, expected)
    upstream = torch.randn(expected.shape, generator=torch.Generator().manual_seed(4))
    (found * upstream).sum().backward()
    (expected * upstream).sum().backward()
    for layer, (mixer, _) in zip(theirs.layer, ours.stack.layers, strict=True):
        own, attention = mixer.function, layer.rel_attn
        for mine, their in (
            (own.query.weight.grad, attention.q.grad.reshape(WIDTH, WIDTH).T),
            (own.distance.weight.grad, attention.r.grad.reshape(WIDTH, WIDTH).T),
            (own.output.weight.grad, attention.o.grad.reshape(WIDTH, WIDTH)),
            (own.segments.grad, attention.seg_embed.grad.transpose(0, 1)),
            (own.distance_bias.grad[:, 0], attention.r_r_bias.grad),
        ):
            torch.testing.assert_close(mine, their, atol=2e-5, rtol=1e-4)
    torch.testing.assert_close(ours.query.grad, theirs.mask_emb.grad.flatten(), atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("remembered", [0, REMEMBERED])
def test_rows_read_backwards_have_the_distances_of_the_text(pair, monkeypatch, remembered):
    """Their half of a batch that reads backwards is the second one; with two streams, and a memory."""
    ours, theirs = pair
    monkeypatch.setattr(theirs, "bi_data", True)
    generator = torch.Generator().manual_seed(5)
    ids = torch.randint(5, 97, (4, LENGTH), generator=generator)
    order = torch.stack([torch.randperm(LENGTH, generator=generator) for _ in ids])
    rank = order.argsort(1)
    before = rank[:, None, :] < rank[:, :, None]
    places = order[:, -4:]
    visible = torch.cat([before, before.gather(1, places[:, :, None].expand(-1, -1, LENGTH))], dim=1)
    mapping = torch.nn.functional.one_hot(places, LENGTH).float()
    memory = [torch.randn(4, remembered, WIDTH, generator=generator) for _ in range(LAYERS)]
    mems = [part.transpose(0, 1).contiguous() for part in memory] if remembered else None
    backwards = torch.tensor([False, False, True, True])
    state = ours.start(4)._replace(layers=tuple((part, None) for part in memory))
    with torch.no_grad():
        options = {"perm_mask": (~before).float(), "target_mapping": mapping, "mems": mems, "use_mems": True}
        expected = theirs(input_ids=ids, **options).last_hidden_state
        found, _ = ours.extend(ids, state, queries=Queries(places, visible), backwards=backwards)
        forwards, _ = ours.extend(ids, state, queries=Queries(places, visible))
    close(found[:, LENGTH:], expected)
    close(found[:2], forwards[:2])
    assert (found - forwards)[2:].abs().amax((1, 2)).min() > 0.01


def test_a_row_read_backwards_is_the_text_turned_round(pair, rows):
    ours, _ = pair
    ids = rows[0]
    with torch.no_grad():
        close(ours(ids.flip(1), backwards=torch.ones(3, dtype=torch.bool)).flip(1), ours(ids))
