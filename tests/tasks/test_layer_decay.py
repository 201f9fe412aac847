"""Rates that fall from layer to layer: the multiples of each published rule, and what they act on."""

import copy
import re

import numpy as np
import pytest
import torch
from tests.conftest import shrink, without_dropout
from tests.tasks.test_training_options import head_of, setting_of

from bakeoff.tasks.fitting.fitting import Fitting
from bakeoff.tasks.fitting.starting_point import new_head
from bakeoff.tasks.fitting.trial import FittingTrial
from bakeoff.tasks.heads.depths import with_rates
from bakeoff.trainer.step import optimize

LAYERS = 12
PUBLISHED = {
    "ulmfit": {"head": 1.0, "embedding": 0.8**13, **{layer: 0.8 ** (12 - layer) for layer in range(12)}},
    # google-research/electra, model/optimization.py, _get_layer_lrs
    "electra": {"head": 1.0, "embedding": 0.8**14, **{layer: 0.8 ** (14 - (layer + 1)) for layer in range(12)}},
    # zihangdai/xlnet, model_utils.py, get_train_op
    "xlnet": {"head": 1.0, "embedding": 1.0, **{layer: 0.8 ** (12 - 1 - layer) for layer in range(12)}},
}
"""Multiples by part, the layers counted from 0."""
OUTSIDE = ("content_bias", "distance_bias", "segment_bias", "segments")
"""r_w_bias, r_r_bias, r_s_bias and seg_embed of XLNet's modeling.py, which have no layer_N in their names."""


def part_of(name, rule):
    layer = re.fullmatch(r"model\.encoder\.parts\.\w+\.(\d+)\..*", name)
    if layer is None:
        return "embedding" if name.startswith("model.") else "head"
    return "head" if rule == "xlnet" and name.endswith(OUTSIDE) else int(layer[1])


@pytest.mark.parametrize("rule", PUBLISHED)
@pytest.mark.parametrize("name", ["bert-base", "electra-small", "xlnet-base"])
def test_multiples_of_twelve_layers_are_those_of_the_published_code(name, rule):
    head = head_of(shrink(name, **{"model.encoder.layers": LAYERS}))
    optimizer = with_rates(torch.optim.SGD(head.parameters(), lr=1.0), head, 0.8, rule)
    acted_on, other = ("gradient_factor", "factor") if rule == "xlnet" else ("factor", "gradient_factor")
    found = {parameter: group[acted_on] for group in optimizer.param_groups for parameter in group["params"]}
    assert {group[other] for group in optimizer.param_groups} == {1.0}
    assert len(found) == len(list(head.parameters()))
    parts = {each: part_of(each, rule) for each, _ in head.named_parameters()}
    assert set(parts.values()) == set(PUBLISHED[rule])
    for each, parameter in head.named_parameters():
        assert found[parameter] == pytest.approx(PUBLISHED[rule][parts[each]]), each


@pytest.mark.parametrize("rule", PUBLISHED)
@pytest.mark.parametrize("clip", [1e-6, 1.0])
def test_a_step_is_adams_of_the_multiplied_gradient_or_of_the_multiplied_rate(recipe, corpus, task, rule, clip):
    """Gradients clipped to almost nothing are smaller than Adam's epsilon, so that the two differ."""
    options = {
        "schedule": "constant",
        "warmup": 0.0,
        "clip": clip,
        "weight_decay": 0.0,
        "layer_decay": 0.5,
        "layer_decay_rule": rule,
        "dropout": 0.0,
    }
    setting, part, source = setting_of(without_dropout(recipe), corpus, task, **options)
    head = new_head(source, setting)[0].double()
    fitting = Fitting(head, part, part, FittingTrial(0.01, 1), setting)
    fitting.begin()
    (micro_batch,) = fitting.batches(0)
    twin, chosen = copy.deepcopy(head), micro_batch.chosen
    batch = setting.task.collate(part.items, chosen, setting.format)
    setting.task.loss(twin.read(batch, False)[0], part.items, chosen).backward()
    gradients = {name: each.grad.numpy() for name, each in twin.named_parameters()}
    norm = np.sqrt(sum((gradient**2).sum() for gradient in gradients.values()))
    before = {name: each.detach().numpy().copy() for name, each in head.named_parameters()}
    optimize(fitting, [micro_batch], 0)
    layers = recipe.model.stack.layers
    powers = {
        "ulmfit": {"head": 0, "embedding": layers + 1, **{layer: layers - layer for layer in range(layers)}},
        "electra": {"head": 0, "embedding": layers + 2, **{layer: layers + 1 - layer for layer in range(layers)}},
        "xlnet": {"head": 0, "embedding": 0, **{layer: layers - 1 - layer for layer in range(layers)}},
    }[rule]
    for name, after in head.named_parameters():
        multiple = 0.5 ** powers[part_of(name, rule)]
        gradient = gradients[name] * min(1.0, clip / norm) * (multiple if rule == "xlnet" else 1.0)
        step = 0.01 * gradient / (np.abs(gradient) + 1e-6) * (1.0 if rule == "xlnet" else multiple)
        np.testing.assert_allclose(after.detach().numpy(), before[name] - step, rtol=0, atol=1e-8, err_msg=name)
