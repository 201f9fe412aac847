"""Prefixes that a causal model sees from both sides: against encoders with the same weights, which see everything."""

import pytest
import torch

from bakeoff.errors import UserError
from bakeoff.models.distances import RelativeBias
from bakeoff.models.mixers.attention import AttentionConfig
from bakeoff.models.model import ModelConfig
from bakeoff.row import Row

VOCABULARY, LENGTH, WIDTH = 50, 13, 36
MIXERS = {
    "none": {"kind": "attention", "heads": 3},
    "rotary": {"kind": "attention", "heads": 3, "positions": "rotary"},
    "t5": {"kind": "attention", "heads": 3, "positions": "t5", "two_sided": True, "buckets": 8, "distance": 9},
    "relative": {"kind": "relative_attention", "heads": 3},
}
CAUSAL = {
    "convolution": {"kind": "attention", "heads": 3, "positions": "rotary", "convolution": 3},
}
"""Within a prefix, too, something of them looks back alone, so that they do not read it as an encoder would."""


def model(side, mixer):
    """A model in double precision, with weights that make hidden states depend much on what is seen."""
    block = {"norm": "pre", "mixer": mixer, "ffn": {"width": 50}}
    positions = {"positions": "learned", "length": 40} if mixer.get("positions", "none") == "none" else {}
    values = {
        "embedding": {"positions": "none", **positions},
        side: {"width": WIDTH, "layers": 2, "block": block},
        "second_stream": False,
    }
    torch.manual_seed(0)
    made = ModelConfig.parse(values, "test").build(VOCABULARY).double().eval()
    for parameter in made.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return made


@pytest.fixture(params=MIXERS)
def pair(request):
    """A decoder and an encoder with the same weights."""
    decoder, encoder = (model(side, MIXERS[request.param]) for side in ("decoder", "encoder"))
    weights = {name.replace("decoder.", "encoder."): value for name, value in decoder.state_dict().items()}
    encoder.load_state_dict(weights)
    return decoder, encoder


@pytest.fixture(params=MIXERS | CAUSAL)
def decoder(request):
    return model("decoder", (MIXERS | CAUSAL)[request.param])


def random_ids(rows=4, length=LENGTH, seed=0):
    return torch.randint(VOCABULARY, (rows, length), generator=torch.Generator().manual_seed(seed))


def close(found, expected, error=1e-11):
    torch.testing.assert_close(found, expected, atol=error, rtol=1e-9)


@torch.no_grad()
def test_a_prefix_is_read_as_an_encoder_reads_it(pair):
    """Whatever follows it, and whatever the prefixes of the other rows."""
    decoder, encoder = pair
    ids, prefix = random_ids(), torch.tensor([1, 5, 12, LENGTH])
    hidden = decoder(Row(ids, prefix=prefix))[0]
    for row, length in enumerate(prefix.tolist()):
        close(hidden[row, :length], encoder(Row(ids[row : row + 1, :length]))[0][0])
    assert (hidden - decoder(Row(ids))[0]).abs().amax((1, 2)).gt(1e-3).tolist() == [False, True, True, True]


@torch.no_grad()
def test_a_prefix_of_one_token_or_none_changes_nothing(decoder):
    ids = random_ids()
    for length in (0, 1):
        close(decoder(Row(ids, prefix=torch.full((4,), length)))[0], decoder(Row(ids))[0])


@torch.no_grad()
def test_behind_the_prefix_nothing_sees_ahead(decoder):
    """A token after it sees the whole prefix and all up to itself: it is what an encoder's last token would be."""
    ids = random_ids()
    prefix = torch.tensor([1, 5, 8, 12])
    hidden = decoder(Row(ids, prefix=prefix))[0]
    for place in range(LENGTH):
        others = ids.clone()
        others[:, place] = (others[:, place] + 1) % VOCABULARY
        moved = (decoder(Row(others, prefix=prefix))[0] - hidden).abs().amax(-1)
        moved = moved > 1e-9  # (B, T) what depends on the place
        sees = torch.arange(LENGTH) >= place
        assert torch.equal(moved, (place < prefix)[:, None] | sees)


@torch.no_grad()
def test_padding_and_other_documents_are_not_seen(decoder):
    ids, prefix = random_ids(3), torch.tensor([4, 9, 7])
    lengths = torch.tensor([LENGTH, 10, 7])
    padding_mask = torch.arange(LENGTH) < lengths[:, None]
    hidden = decoder(Row(ids, padding_mask=padding_mask, prefix=prefix))[0]
    for row, length in enumerate(lengths.tolist()):
        close(hidden[row, :length], decoder(Row(ids[row : row + 1, :length], prefix=prefix[row : row + 1]))[0][0])
    documents = torch.tensor([1] * 6 + [2] * 5 + [0] * 2).expand(3, -1)
    hidden = decoder(Row(ids, documents=documents, prefix=prefix))[0]
    if decoder.config.embedding.positions == "none":  # where a document begins in the row changes nothing
        for row, length in enumerate(prefix.tolist()):
            for part, own in ((slice(0, 6), min(length, 6)), (slice(6, 11), max(0, length - 6))):
                alone = decoder(Row(ids[row : row + 1, part], prefix=torch.tensor([own])))[0][0]
                close(hidden[row, part], alone, 1e-6)  # rotations are made in single precision
    others = torch.where(documents == 1, ids, random_ids(3, seed=1))
    close(decoder(Row(others, documents=documents, prefix=prefix))[0][:, :6], hidden[:, :6])
    assert hidden.isfinite().all()


@pytest.mark.parametrize("sizes", [[1] * 6, [6], [2, 3, 1]], ids=str)
@torch.no_grad()
def test_a_prefix_and_chunks_behind_it_give_what_the_whole_gives(decoder, sizes):
    ids, prefix = random_ids(), torch.tensor([7, 7, 5, 1])  # the first chunk may hold more than the prefix
    expected = decoder(Row(ids, prefix=prefix))[0]
    hidden, state = decoder(Row(ids[:, :7], prefix=prefix), decoder.start(4))
    found = [hidden]
    for chunk in ids[:, 7:].split(sizes, dim=1):
        hidden, state = decoder(Row(chunk), state)
        found.append(hidden)
    close(torch.cat(found, dim=1), expected)
    with pytest.raises(AssertionError, match="read in one go"):
        decoder(Row(ids[:, :1], prefix=prefix), state)


def test_a_decoders_table_tells_what_is_ahead_where_it_is_two_sided():
    """Half of the buckets for either side, as in an encoder; one side alone takes all that is ahead for itself."""
    config = AttentionConfig(heads=2, positions="t5", two_sided=True)
    distance = torch.arange(-200, 201)
    both = RelativeBias(config, causal=True).bucket(distance)
    assert torch.equal(both, RelativeBias(config, causal=False).bucket(distance))
    assert both[:201].max() < 16 <= both[201:].min()
    one = RelativeBias(config.model_copy(update={"two_sided": False}), causal=True).bucket(distance)
    assert (one[200:] == 0).all()
    assert one.max() == 31


def test_two_sides_are_those_of_t5s_table():
    with pytest.raises(UserError, match="two_sided: it is about T5's table, and positions is rotary; leave it out"):
        model("decoder", {"kind": "attention", "heads": 3, "positions": "rotary", "two_sided": True})
