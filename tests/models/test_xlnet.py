"""The recipe of XLNet against transformers': segments, memory, padding on either side, two streams, loss, gradients."""

import pytest
import torch
from tests.models.parity import VOCABULARY, Links, assert_equal, loss_of, randomise, sized

from bakeoff.batching.batch import Batch
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.models.context import Context
from bakeoff.row import Queries, Row

transformers = pytest.importorskip("transformers")

pytestmark = pytest.mark.usefixtures("double", "marked_dropout")

WIDTH, HEADS, LAYERS, LENGTH, REMEMBERED, TARGETS = 30, 5, 3, 11, 5, 4  # the waves need an even width


class Pair:
    """Our model and theirs with the same random weights."""

    def __init__(self) -> None:
        # Its own "gelu" is the exact one; zihangdai/xlnet, from which its weights come, computes the one with tanh.
        config = transformers.XLNetConfig(
            vocab_size=VOCABULARY, d_model=WIDTH, n_layer=LAYERS, n_head=HEADS, d_inner=51, ff_activation="gelu_new"
        )
        self.head = transformers.XLNetLMHeadModel(config).eval()
        randomise(self.head, deviation=0.15)
        self.head.lm_loss.bias.data.zero_()  # we have none (docs/fidelity.md)
        self.theirs = self.head.transformer
        recipe = sized("xlnet-base", width=WIDTH, heads=HEADS, layers=LAYERS, inner=51)
        self.module = PretrainingModel(recipe, VOCABULARY).eval()
        self.ours = self.module.model
        self.links = Links(self.module)
        self.links.tensor(self.ours.embedding.tokens.weight, self.theirs.word_embedding.weight)
        self.links.tensor(self.ours.query, self.theirs.mask_emb, join=lambda each: each[0].flatten())
        for layer, (mixer, network) in zip(self.theirs.layer, self.ours.stack.layers, strict=True):
            self.link_layer(mixer, network, layer)

    def link_layer(self, mixer, network, layer):
        links, own, attention = self.links, mixer.function, layer.rel_attn

        def maps(each):
            return torch.cat([tensor.reshape(WIDTH, WIDTH).T for tensor in each])

        def biases(each):
            return each[0][:, None]

        links.tensor(own.query.weight, attention.q, join=maps)
        links.tensor(own.key_value.weight, attention.k, attention.v, join=maps)
        links.tensor(own.distance.weight, attention.r, join=maps)
        links.tensor(own.output.weight, attention.o, join=lambda each: each[0].reshape(WIDTH, WIDTH))
        links.tensor(own.content_bias, attention.r_w_bias, join=biases)
        links.tensor(own.distance_bias, attention.r_r_bias, join=biases)
        links.tensor(own.segment_bias, attention.r_s_bias, join=biases)
        links.tensor(own.segments, attention.seg_embed, join=lambda each: each[0].transpose(0, 1).contiguous())
        links.linear(mixer.norm, attention.layer_norm)
        links.linear(network.function.input, layer.ff.layer_1)
        links.linear(network.function.output, layer.ff.layer_2)
        links.linear(network.norm, layer.ff.layer_norm)


@pytest.fixture
def pair(marked_dropout):
    return Pair()


@pytest.fixture
def rows():
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(5, VOCABULARY, (3, LENGTH), generator=generator)
    padding_mask = torch.ones(3, LENGTH, dtype=torch.bool)
    padding_mask[1, 7:] = False
    padding_mask[2, :4] = False  # on the left, as XLNet is padded
    segments = (torch.arange(LENGTH) > 5).long().expand(3, -1)
    return ids, segments, padding_mask


def test_both_sides_with_padding_and_segments(pair, rows):
    ours, theirs = pair.ours, pair.theirs
    ids, segments, padding_mask = rows
    with torch.no_grad():
        expected = theirs(
            input_ids=ids, attention_mask=padding_mask.double(), token_type_ids=segments
        ).last_hidden_state
        assert_equal(ours(Row(ids, segments, padding_mask))[0][padding_mask], expected[padding_mask])
        assert_equal(ours(Row(ids))[0], theirs(input_ids=ids).last_hidden_state)


def test_memory_is_taken_and_returned(pair, rows):
    ours, theirs = pair.ours, pair.theirs
    ids, segments, _ = rows
    generator = torch.Generator().manual_seed(2)
    memory = [torch.randn(3, REMEMBERED, WIDTH, generator=generator) for _ in range(LAYERS)]
    with torch.no_grad():
        mems = [part.transpose(0, 1).contiguous() for part in memory]
        expected = theirs(input_ids=ids, token_type_ids=segments, mems=mems, use_mems=True)
        state = tuple((part, None) for part in memory)
        found, after = ours.stack(ours.embedding(Row(ids)), Context(Row(ids, segments)), state)
    assert_equal(found, expected.last_hidden_state)
    for (part, _), their in zip(after, expected.mems, strict=True):
        assert_equal(part, their.transpose(0, 1))


def permuted(rows, count, seed=3):
    """A factorisation order over all places, and what each row sees of it; the first query sees nothing."""
    generator = torch.Generator().manual_seed(seed)
    order = torch.stack([torch.randperm(LENGTH, generator=generator) for _ in range(count)])
    rank = order.argsort(1)
    before = rank[:, None, :] < rank[:, :, None]  # (B, T, T) place j comes before place i
    positions = order[:, :TARGETS]
    visible = torch.cat([before, before.gather(1, positions[:, :, None].expand(-1, -1, LENGTH))], dim=1)
    mapping = torch.nn.functional.one_hot(positions, LENGTH).double()
    return Queries(positions, visible), (~before).double(), mapping


@pytest.mark.parametrize("mode", ["evaluation", "training"])
@pytest.mark.parametrize("padded", [False, True])
def test_two_streams_are_a_longer_query(pair, rows, padded, mode):
    """Scores and loss of the targets, and the gradient of every parameter."""
    ids, segments, padding_mask = rows
    queries, mask, mapping = permuted(rows, 3)
    options = {"attention_mask": padding_mask.double()} if padded else {}
    labels = torch.randint(5, VOCABULARY, (3, TARGETS), generator=torch.Generator().manual_seed(4))
    pair.module.train(mode == "training")
    pair.head.train(mode == "training")
    expected = pair.head(
        input_ids=ids,
        token_type_ids=segments,
        perm_mask=mask,
        target_mapping=mapping,
        use_mems=False,
        labels=labels,
        **options,
    )
    places = torch.arange(3)[:, None] * (LENGTH + TARGETS) + LENGTH + torch.arange(TARGETS)
    targets = {"permutation": (places.flatten(), labels.flatten())}
    batch = Batch(Row(ids, segments, padding_mask if padded else None, queries=queries), targets, tokens=ids.numel())
    hidden = pair.ours(batch.row)[0][:, LENGTH:]
    assert_equal(pair.module.heads["permutation"].scores(hidden, pair.ours.embedding.weight), expected.logits)
    loss = loss_of(pair.module, batch)
    assert_equal(loss, expected.loss)
    loss.backward()
    expected.loss.backward()
    pair.links.check_gradients()


@pytest.mark.parametrize("remembered", [0, REMEMBERED])
def test_rows_read_backwards_have_the_distances_of_the_text(pair, monkeypatch, remembered):
    """Their half of a batch that reads backwards is the second one; with two streams, and a memory."""
    ours, theirs = pair.ours, pair.theirs
    monkeypatch.setattr(theirs, "bi_data", True)
    generator = torch.Generator().manual_seed(5)
    ids = torch.randint(5, VOCABULARY, (4, LENGTH), generator=generator)
    queries, mask, mapping = permuted(ids, 4, seed=6)
    memory = [torch.randn(4, remembered, WIDTH, generator=generator) for _ in range(LAYERS)]
    mems = [part.transpose(0, 1).contiguous() for part in memory] if remembered else None
    backwards = torch.tensor([False, False, True, True])
    state = ours.start(4)._replace(layers=tuple((part, None) for part in memory))
    with torch.no_grad():
        options = {"perm_mask": mask, "target_mapping": mapping, "mems": mems, "use_mems": True}
        expected = theirs(input_ids=ids, **options).last_hidden_state
        found, _ = ours(Row(ids, queries=queries, backwards=backwards), state)
        forwards, _ = ours(Row(ids, queries=queries), state)
    assert_equal(found[:, LENGTH:], expected)
    assert_equal(found[:2], forwards[:2])
    assert (found - forwards)[2:].abs().amax((1, 2)).min() > 0.01


def test_a_row_read_backwards_is_the_text_turned_round(pair, rows):
    ids = rows[0]
    with torch.no_grad():
        turned = pair.ours(Row(ids.flip(1), backwards=torch.ones(3, dtype=torch.bool)))[0].flip(1)
        assert_equal(turned, pair.ours(Row(ids))[0])
