"""ELECTRA's two models over one embedding, against transformers'."""

import numpy as np
import pytest
import torch
from tests.conftest import gathered_of
from tests.models.parity import SIZES, VOCABULARY, Links, assert_equal, loss_of, randomise, sized

from bakeoff.batching.batch import Batch
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.row import Row

LENGTH = 11


def fill_by_hand(ids, chosen, logits, words):
    """For each place in turn the first token up to which the probabilities exceed the number that was drawn."""
    filled = ids.clone()
    for place, scores in zip(chosen.tolist(), logits, strict=True):
        probabilities = np.exp(scores.numpy() - scores.numpy().max())
        share = (float(words[place]) + 0.5) / 2**32 * probabilities.sum()
        filled.view(-1)[place] = next(
            token for token in range(len(probabilities)) if probabilities[: token + 1].sum() >= share
        )
    return filled


@pytest.mark.usefixtures("double", "marked_dropout")
@pytest.mark.parametrize("training", [False, True], ids=["evaluation", "training"])
def test_generator_and_model_are_those_of_transformers_over_one_embedding(training):
    transformers = pytest.importorskip("transformers")
    sizes = {
        "vocab_size": VOCABULARY,
        "embedding_size": 21,
        "num_hidden_layers": SIZES["layers"],
        "attn_implementation": "eager",
    }
    own = {"hidden_size": 35, "num_attention_heads": 5, "intermediate_size": 51}
    narrow = {"hidden_size": 9, "num_attention_heads": 1, "intermediate_size": 13}
    detector = transformers.ElectraForPreTraining(transformers.ElectraConfig(**sizes, **own)).train(training)
    generator = transformers.ElectraForMaskedLM(transformers.ElectraConfig(**sizes, **narrow)).train(training)
    randomise(detector)
    randomise(generator)
    for name in ("word_embeddings", "position_embeddings", "token_type_embeddings", "LayerNorm"):
        setattr(generator.electra.embeddings, name, getattr(detector.electra.embeddings, name))
    generator.generator_lm_head.weight = detector.electra.embeddings.word_embeddings.weight

    ours = PretrainingModel(sized("electra-small", **SIZES, **{"model.embedding.width": 21}), VOCABULARY)
    ours.train(training)
    links = Links(ours)
    tables, theirs = ours.model.embedding, detector.electra.embeddings
    links.tensor(tables.tokens.weight, theirs.word_embeddings.weight)
    links.tensor(tables.positions.weight, theirs.position_embeddings.weight)
    links.tensor(tables.segments.weight, theirs.token_type_embeddings.weight)
    links.linear(tables.norm, theirs.LayerNorm)
    for model, electra in ((ours.model, detector.electra), (ours.generator, generator.electra)):
        links.linear(model.embedding.projection, electra.embeddings_project)
        for (mixer, network), layer in zip(model.stack.layers, electra.encoder.layer, strict=True):
            attention = layer.attention.self
            links.linear(mixer.function.query_key_value, attention.query, attention.key, attention.value)
            links.linear(mixer.function.output, layer.attention.output.dense)
            links.linear(mixer.norm, layer.attention.output.LayerNorm)
            links.linear(network.function.input, layer.intermediate.dense)
            links.linear(network.function.output, layer.output.dense)
            links.linear(network.norm, layer.output.LayerNorm)
    links.linear(ours.heads["mlm"].transform, generator.generator_predictions.dense)
    links.linear(ours.heads["mlm"].norm, generator.generator_predictions.LayerNorm)
    links.tensor(ours.heads["mlm"].bias, generator.generator_lm_head.bias)
    links.linear(ours.heads["rtd"].transform, detector.discriminator_predictions.dense)
    links.linear(ours.heads["rtd"].output, detector.discriminator_predictions.dense_prediction)

    randomly = torch.Generator().manual_seed(1)
    ids = torch.randint(5, VOCABULARY, (3, LENGTH), generator=randomly)
    padding_mask = torch.arange(LENGTH) < torch.tensor([[LENGTH], [7], [4]])
    segments = (torch.arange(LENGTH) > 5).long().expand(3, -1)
    chosen = (padding_mask & (torch.rand(ids.shape, generator=randomly) < 0.5)).flatten().nonzero()[:, 0]
    originals = torch.randint(5, VOCABULARY, chosen.shape, generator=randomly)
    words = torch.randint(2**32, (3 * LENGTH,), generator=randomly)
    places = padding_mask.flatten().nonzero()[:, 0]
    targets = {"mlm": (chosen, originals), "rtd": (places, words[places])}
    batch = Batch(Row(ids, segments, padding_mask), targets, tokens=int(padding_mask.sum()))

    labels = torch.full_like(ids, -100).flatten().index_copy(0, chosen, originals).view_as(ids)
    proposed = generator(ids, padding_mask.long(), segments, labels=labels)
    filled = fill_by_hand(ids, chosen, proposed.logits.detach().flatten(0, 1)[chosen], words)
    replaced = torch.zeros_like(ids).flatten().index_copy(0, chosen, (filled.flatten()[chosen] != originals).long())
    detected = detector(filled, padding_mask.long(), segments, labels=replaced.view_as(ids))
    assert 0 < replaced.sum() <= len(chosen)

    gathered, _ = gathered_of(ours, batch)
    assert gathered["rtd"][1].tolist() == replaced[places].tolist()
    scores = ours.heads["rtd"].scores(gathered["rtd"][0], tables.weight)
    assert_equal(scores[:, 1] - scores[:, 0], detected.logits.flatten()[places], "rtd")
    assert_equal(
        ours.heads["mlm"].scores(gathered["mlm"][0], tables.weight), proposed.logits.flatten(0, 1)[chosen], "mlm"
    )
    loss, expected = loss_of(ours, batch), proposed.loss + detected.loss
    assert_equal(loss, expected, "loss")
    loss.backward()
    expected.backward()
    links.check_gradients()
