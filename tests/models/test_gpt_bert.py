"""GPT-BERT against the equations of its paper and its published code, written out naively in float64."""

import math

import numpy as np
import pytest
import torch
from tests.conftest import shrink, without_dropout
from tests.models.test_ltg_bert import naive_scores, published_bucket, with_any_weights

from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.optimization.schedules import CosineConfig
from bakeoff.recipe_files import load_recipe
from bakeoff.row import Row

VOCABULARY, LENGTH, HEADS, SIZE, LONGEST = 60, 40, 2, 6, 30


def normed(x, epsilon=1e-5):
    """A layer norm without scale and shift."""
    return (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True, unbiased=False) + epsilon).sqrt()


def gelu(x):
    return x * (1 + torch.erf(x / math.sqrt(2))) / 2


def gelu_tanh(x):
    return x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2


def linear(x, part):
    return x @ part.weight.T + (0 if part.bias is None else part.bias)


def naive_attention(attention, x, vectors, allowed):
    """(T, D) what Attention adds, where (T, T) says which token a token may see."""
    read = normed(x)
    scores = naive_scores(attention, read, vectors, HEADS, SIZE, LONGEST)
    weights = scores.masked_fill(~allowed, -math.inf).softmax(-1)
    value = linear(read, attention.value).unflatten(-1, (HEADS, -1)).transpose(0, 1)
    mixed = (weights @ value).transpose(0, 1).flatten(-2)
    return linear(normed(mixed * gelu(linear(read, attention.gate))), attention.output)


def naive_feed_forward(ffn, x):
    """(T, D) what FeedForward adds."""
    read = normed(x)
    return linear(normed(gelu_tanh(linear(read, ffn.input)) * linear(read, ffn.gate)), ffn.output)


def naive_scores_of_tokens(module, ids, allowed):
    """(T, V) of one row; after every half of a layer a sum over all outputs so far."""
    model, head = module.model, module.heads["mntp"]
    stack, table = model.decoder, model.embedding.weight
    vectors = normed(stack.distances.table.weight) * stack.distances.norm.weight + stack.distances.norm.bias
    weights = iter(stack.weighting.weights)
    x = normed(table[ids])
    outputs = [x]
    for mixer, ffn in stack.layers:
        for half in (0, 1):
            part = mixer.function if half == 0 else ffn.function
            outputs.append(
                x + (naive_attention(part, x, vectors, allowed) if half == 0 else naive_feed_forward(part, x))
            )
            own = next(weights)[0]
            x = sum(own[place] * output for place, output in enumerate(outputs))
    return normed(gelu(linear(normed(x), head.transform))) @ table.T + head.bias


@pytest.fixture
def module():
    recipe = without_dropout(shrink("gpt-bert-small", **{"input.length": LENGTH, "model.decoder.layers": 3}))
    recipe = recipe.changed({"model.decoder.block.mixer.buckets": SIZE, "model.decoder.block.mixer.distance": LONGEST})
    return with_any_weights(recipe, VOCABULARY)


@torch.no_grad()
def test_scores_are_those_of_the_published_equations(module):
    """Rows of several documents: one seen from both sides, one causally, one whose second half is padding."""
    ids = torch.randint(VOCABULARY, (3, LENGTH), generator=torch.Generator().manual_seed(0))
    documents = torch.tensor([[1] * 15 + [2] * 25, [1] * 30 + [2] * 10, [1] * 12 + [2] * 8 + [0] * 20])
    prefix = torch.tensor([LENGTH, 0, 20])
    hidden = module.model(Row(ids, documents=documents, prefix=prefix))[0]
    found = module.heads["mntp"].scores(hidden.flatten(0, 1), module.model.embedding.weight).unflatten(0, (3, -1))
    for row in range(3):
        length = int((documents[row] > 0).sum())
        allowed = torch.zeros(length, length, dtype=torch.bool)
        for i in range(length):
            for j in range(length):
                allowed[i, j] = documents[row, i] == documents[row, j] and (bool(prefix[row] > 0) or j <= i)
        expected = naive_scores_of_tokens(module, ids[row, :length], allowed)
        torch.testing.assert_close(found[row, :length], expected, atol=1e-8, rtol=1e-8)
    assert published_bucket(LONGEST, SIZE, LONGEST) == SIZE - 1  # rows reach over the farthest distance


def test_weights_begin_as_published():
    """All of sqrt(2 / (5 D)), cut at two deviations; maps of feed-forward networks smaller by layer."""
    torch.manual_seed(0)
    recipe = load_recipe("gpt-bert-small", {"model.decoder.layers": 3})
    stack = PretrainingModel(recipe, 500).model.decoder
    deviation = math.sqrt(2 / (5 * 384)) * 0.8796256610342398  # what the cut leaves of it
    for layer, (mixer, ffn) in enumerate(stack.layers):
        own = mixer.function
        for each in (own.query_key, own.value, own.gate, own.output):
            assert float(each.weight.detach().std()) == pytest.approx(deviation, rel=0.02)
        for each in (ffn.function.input, ffn.function.gate, ffn.function.output):
            smaller = deviation / math.sqrt(2 * (1 + layer))
            assert float(each.weight.detach().std()) == pytest.approx(smaller, rel=0.02)
    assert float(stack.distances.table.weight.detach().std()) == pytest.approx(deviation, rel=0.05)
    for count, weights in enumerate(stack.weighting.weights, start=1):
        assert weights.tolist() == [[0.0] * count + [1.0]]


def published_factor(step, steps, warmup=0.016, cooldown=0.016, final=0.1):
    """cosine_schedule_with_warmup_cooldown of pretraining/utils.py, whose first step is not 0 here but the second's."""
    rise, fall = int(steps * warmup), round(steps * cooldown)
    if step < rise:
        return (step + 1) / rise
    if step >= steps - fall:
        return final * (steps - step) / fall
    return final + (1 - final) * (1 + math.cos(math.pi * (step - rise) / (steps - rise))) / 2


@pytest.mark.parametrize("name", ["gpt-bert-small", "gpt-bert-base"])
def test_the_course_of_the_training_is_the_published_one(name):
    """Learning rate, rows, tokens, masks and the running average's decay at every step."""
    recipe = load_recipe(name)
    training, steps = recipe.training, recipe.training.budget.steps
    assert isinstance(training.schedule, CosineConfig)
    found = [training.schedule.factor(step, steps) for step in range(steps)]
    np.testing.assert_allclose(found, [published_factor(step, steps) for step in range(steps)], rtol=1e-9)
    places = [(0.7, 128, 32768), (0.9, 256, 16384), (1.0, 512, 8192)]
    for stage, (_, length, rows) in zip(recipe.stages(), places, strict=True):
        assert (stage.input.length, stage.training.batch) == (length, rows)
        assert stage.at(0.0).training.batch == rows // 4
    assert [stage.until for stage in training.curriculum] == [0.7, 0.9]
    assert recipe.at(0.5).objective[0].rate == pytest.approx(0.225)
    assert 1 - training.average.rate(1, steps) == pytest.approx(0.999, abs=1e-6)
