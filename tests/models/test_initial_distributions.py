"""How every parameter of every recipe begins, against a table of rules with their sources."""

import fnmatch
import math
import re
from typing import NamedTuple

import pytest
import torch

from bakeoff.conformance.narrow import ALIKE, narrow
from bakeoff.learner.pretraining_model import PretrainingModel, build_on_meta
from bakeoff.models.blocks.convolution import Convolution

VOCABULARY, LEAST = 1500, 96
MANY = 1000
"""From this many values on a parameter is measured alone."""


class Kind(NamedTuple):
    """What is known of a distribution around zero at scale 1."""

    deviation: float
    fourth: float
    """The fourth moment over the square of the second: how sure a measured deviation is."""
    largest: float


CUT = math.exp(-2) * 2 / math.sqrt(2 * math.pi)  # the density at two deviations, times their distance
KINDS = {
    "normal": Kind(1.0, 3.0, math.inf),
    "truncated": Kind(math.sqrt(1 - 2 * CUT / math.erf(math.sqrt(2))), 2.37, 2.0),
    "uniform": Kind(1 / math.sqrt(3), 1.8, 1.0),
}


class Rule(NamedTuple):
    """How the parameters of these names begin, in these recipes."""

    recipes: str
    """Patterns, one after the other."""
    names: str
    """A regular expression for the end of the name, indices left out."""
    kind: str
    """A kind of distribution, or zeros or ones, or unmeasured where the name and the shape do not say the scale."""
    scale: object
    """Deviation of the normal distribution before it is cut, or bound of the uniform one: a number, or of the shape."""
    source: str


def fan_in(shape):
    """Of (O, K, D) or (O, D)."""
    return math.prod(shape[1:])


RULES = [
    # Tables of tokens
    Rule(
        "transformer-base transformer-base-wmt *-wmt *-iwslt",
        "embedding.tokens.weight",
        "normal",
        lambda shape: shape[1] ** -0.5,
        "tensor2tensor, modality.py: with the factor sqrt(D) as large as the sinusoids; fairseq's Embedding too",
    ),
    Rule("tcn-ptb tcn-wikitext103", "embedding.tokens.weight", "normal", 0.01, "locuslab/TCN, word_cnn/model.py"),
    Rule("tcn-char-ptb", "embedding.tokens.weight", "uniform", 0.1, "locuslab/TCN, char_cnn/model.py"),
    # Gated and temporal convolutional networks
    Rule(
        "gcnn-*",
        "convolutions.direction",
        "normal",
        lambda shape: math.sqrt(2 / fan_in(shape)),
        "Dauphin et al. 2017, section 4.4: He et al. 2015",
    ),
    Rule(
        "gcnn-*",
        "projection.direction",
        "normal",
        lambda shape: math.sqrt(1 / fan_in(shape)),
        "the same for a map without an activation (ours)",
    ),
    Rule("gcnn-*", "(convolutions|projection).bias", "zeros", None, "facebookresearch's fconv: zero"),
    Rule("tcn-*", "projection.direction", "normal", 0.01, "locuslab/TCN, tcn.py, init_weights"),
    Rule(
        "tcn-*",
        "convolutions.direction",
        "uniform",
        lambda shape: fan_in(shape) ** -0.5,
        "torch's default, which weight normalisation leaves in locuslab/TCN",
    ),
    Rule(
        "tcn-*",
        "(convolutions|projection).bias",
        "unmeasured",
        None,
        "locuslab/TCN: torch's default, uniform in (K D)^-0.5 of the map's inputs; see the test of biases",
    ),
    Rule(
        "gcnn-* tcn-*",
        "magnitude",
        "unmeasured",
        None,
        "Salimans and Kingma 2016: see the test of weight normalisation",
    ),
    # Recurrent networks
    Rule(
        "*",
        "cells.[a-z_0-9]+",
        "unmeasured",
        None,
        "torch's default, uniform in (units)^-0.5: see the test of recurrent cells",
    ),
    # Pham's window
    Rule(
        "*cnn-lm* com-lm* mlpconv-lm*",
        "columns.convolutions.weight",
        "normal",
        lambda shape: max(math.sqrt(2 / math.prod(shape)), 0.01),
        "the code of Pham et al. 2016",
    ),
    # genCNN
    Rule(
        "gencnn*",
        "(flow|arrow)",
        "normal",
        lambda shape: math.sqrt(2 / (shape[-3] * shape[-2])),
        "He et al. 2015 (ours: nothing is published)",
    ),
    Rule("gencnn*", "(alpha|beta).layers.gate", "zeros", None, "ours: halves"),
    Rule(
        "gencnn*",
        "(alpha|beta).output.weight",
        "normal",
        lambda shape: 4 * math.sqrt(2 / sum(shape)),
        "Glorot and Bengio 2010, four times for sigmoids (ours)",
    ),
    # Short convolutions
    Rule(
        "*light* laptop-conv-* laptop-hybrid-*",
        "function.taps",
        "uniform",
        lambda shape: math.sqrt(6 / (shape[1] * (1 + shape[0]))),
        "fairseq, lightweight_convolution.py: Xavier over (H, 1, K)",
    ),
    Rule("conv-dense-*", "function.taps", "normal", lambda shape: fan_in(shape) ** -0.5, "ours"),
    Rule("conv-d*", "function.taps", "normal", lambda shape: shape[1] ** -0.5, "ours"),
    # Attention
    Rule(
        "*",
        "convolution.taps",
        "unmeasured",
        None,
        "google-research, primer/t5_models.py, causal_depthwise_conv: see the test of Primer's taps",
    ),
    Rule(
        "*",
        "value_residual.shares",
        "unmeasured",
        None,
        "KellerJordan/modded-nanogpt, 2024-11: see the test of shares",
    ),
    # Relative attention
    Rule(
        "xlnet-* transformer-xl-*",
        "(content|distance|segment)_bias|segments",
        "normal",
        0.02,
        "zihangdai/xlnet and kimiyoung/transformer-xl: the initializer of all that they have",
    ),
    Rule(
        "xlnet-*",
        "model.query",
        "uniform",
        lambda shape: math.sqrt(6 / (1 + shape[0])),
        "zihangdai/xlnet: mask_emb has no initializer, and so TensorFlow's for (1, 1, D)",
    ),
    # GPT-2
    Rule(
        "gpt2-* gpt-bert-tiny",
        "parts.(mixer|ffn).function.output.weight",
        "truncated",
        lambda shape: 0.02 / math.sqrt(2 * 2),
        "Radford et al. 2019, section 2.3: by the root of the number of residual branches, here of two layers",
    ),
    # ModernBERT
    Rule(
        "modernbert-*",
        "parts.(mixer|ffn).function.output.weight",
        "truncated",
        lambda shape: 0.02 / math.sqrt(2 * 5),
        "Warner et al. 2024, appendix A: Megatron's, by the root of the residual branches, here of five layers",
    ),
    # LTG-BERT and GPT-BERT
    Rule(
        "*",
        "weighting.weights",
        "unmeasured",
        None,
        "ltgoslo/gpt-bert, pretraining/model_extra.py, DWAModules: see tests/models/test_layer_weighting.py",
    ),
    Rule(
        "ltg-bert-* gpt-bert-small gpt-bert-base",
        "parts.ffn.function.(input|gate|output).weight|distances.table.weight",
        "unmeasured",
        None,
        "ltgoslo/ltg-bert, babylm/train/model.py, Encoder and Embedding; ltgoslo/gpt-bert, pretraining/model_extra.py: "
        "see tests/models/test_ltg_bert.py and test_gpt_bert.py",
    ),
    *(
        Rule(
            name,
            "embedding.tokens.weight|parts.mixer.function.(query_key|value|gate|output).weight",
            "truncated",
            math.sqrt(2 / (5 * width)),
            "ltgoslo/ltg-bert, babylm/train/model.py, and ltgoslo/gpt-bert, pretraining/model_extra.py, initialize: "
            "sqrt(2 / (5 D)) of the recipe's width",
        )
        for name, width in (
            ("ltg-bert-base", 768),
            ("ltg-bert-small", 384),
            ("ltg-bert-xs", 192),
            ("gpt-bert-base", 768),
            ("gpt-bert-small", 384),
        )
    ),
    # Laptop sizes
    Rule("laptop-*", "embedding.tokens.weight", "normal", 0.05, "ours: docs/learning.md"),
    Rule(
        "laptop-*",
        "parts.(mixer|ffn).function.(query_key_value|gate|value|input|output).weight",
        "truncated",
        lambda shape: fan_in(shape) ** -0.5,
        "LeCun et al. 1998, section 4.6, cut at two deviations (ours); what recipes let begin at zero is not so here",
    ),
    # ELECTRA
    Rule(
        "electra-*",
        "embedding.projection.weight|heads.rtd.output.weight",
        "uniform",
        lambda shape: math.sqrt(6 / sum(shape)),
        "google-research/electra, model/modeling.py and run_pretraining.py: TensorFlow's default (Glorot)",
    ),
    # All others
    Rule("*", "norm.weight", "ones", None, "layer, root-mean-square and batch norms"),
    Rule("*", "norm.bias", "zeros", None, "layer and batch norms"),
    Rule(
        "*",
        "[a-z_]*(embedding|parts|heads|bias|places)[a-z_.]*weight",
        "truncated",
        0.02,
        "Devlin et al. 2019: google-research/bert, modeling.py, create_initializer; where others have none, ours",
    ),
    Rule(
        "*", "bias", "zeros", None, "google-research/bert, modeling.py: dense's default; tensor2tensor and fairseq too"
    ),
]


def rule_of(recipe, name):
    """The first that fits."""
    plain = re.sub(r"\.\d+", "", name)
    for rule in RULES:
        if any(fnmatch.fnmatch(recipe, pattern) for pattern in rule.recipes.split()) and re.search(
            f"(^|[._])({rule.names})$", plain
        ):
            return rule
    raise AssertionError(f"no rule for {name} of {recipe}")


@pytest.mark.parametrize("name", ALIKE)
def test_every_parameter_begins_as_its_rule_says(name):
    recipe = narrow(name, least=LEAST)
    torch.manual_seed(0)
    module = PretrainingModel(recipe, VOCABULARY)
    together: dict[Rule, list[torch.Tensor]] = {}
    for key, parameter in module.named_parameters():
        rule, value = rule_of(name, key), parameter.detach().double()
        if rule.kind == "unmeasured":
            continue
        if rule.kind in ("zeros", "ones"):
            assert bool((value == (rule.kind == "ones")).all()), key
            continue
        scale = rule.scale(tuple(parameter.shape)) if callable(rule.scale) else rule.scale
        together.setdefault(rule, []).append((value / scale).flatten())
        if value.numel() >= MANY:
            assert_distributed(together[rule][-1], rule.kind, key)
    for rule, values in together.items():
        assert_distributed(torch.cat(values), rule.kind, rule.names)


def assert_distributed(values, kind, what):
    """Mean, deviation and largest value, each to five standard errors of so many values."""
    expected, count = KINDS[kind], len(values)
    deviation = float(values.square().mean().sqrt())
    assert abs(float(values.mean())) < 5 * expected.deviation / math.sqrt(count), what
    assert deviation == pytest.approx(expected.deviation, rel=2.5 * math.sqrt((expected.fourth - 1) / count)), what
    largest = float(values.abs().max())
    assert largest <= expected.largest * (1 + 1e-6), what
    if count >= MANY:
        assert largest > min(0.98 * expected.largest, 2.6), what


def test_every_rule_is_needed():
    used = set()
    for name in ALIKE:
        used |= {rule_of(name, key) for key, _ in build_on_meta(narrow(name), 160).named_parameters()}
    assert [rule for rule in RULES if rule not in used] == []


@pytest.mark.parametrize("name", ["gcnn-14", "tcn-ptb", "tcn-char-ptb"])
def test_weight_normalisation_begins_with_the_weights_as_they_are(name):
    for module in PretrainingModel(narrow(name), 160).modules():
        if isinstance(module, Convolution) and module.magnitude is not None:
            length = module.direction.square().sum((1, 2), keepdim=True).sqrt()
            torch.testing.assert_close(module.magnitude, length)
            torch.testing.assert_close(module.weight, module.direction)


@pytest.mark.parametrize("name", ["tcn-ptb", "tcn-char-ptb", "tcn-encoder-tiny"])
def test_biases_of_temporal_convolutions_are_torchs(name):
    module = PretrainingModel(narrow(name, least=LEAST), 160)
    convolutions = [each for each in module.modules() if isinstance(each, Convolution)]
    biases = [each.bias.detach().double() * each.direction[0].numel() ** 0.5 for each in convolutions]
    assert_distributed(torch.cat(biases), "uniform", "bias")


@pytest.mark.parametrize("name", [name for name in ALIKE if "lstm" in name or "gru" in name or "elmo" in name])
def test_recurrent_cells_begin_as_torchs(name):
    module = PretrainingModel(narrow(name, least=LEAST), 160)
    cells = [each for each in module.modules() if isinstance(each, torch.nn.RNNBase)]
    for each in cells:
        values = torch.cat([parameter.detach().double().flatten() for parameter in each.parameters()])
        assert_distributed(values * each.hidden_size**0.5, "uniform", "cells")


def test_primers_taps_begin_near_the_identity():
    """0.5 for a token itself and 0.5 / K for the others, centred in encoders."""
    for name, place in (("bert-base with options", 2), ("gpt2-base with options", 3)):
        for part in PretrainingModel(narrow(name), 160).model.stack.parts["mixer"]:
            taps = torch.full((3 * 32, 4), 0.125)
            taps[:, place] = 0.5
            assert torch.equal(part.function.convolution.taps, taps)


def test_values_begin_as_half_the_first_layers():
    for name in ("bert-base with options", "albert-base with values"):
        connections = PretrainingModel(narrow(name), 160).model.stack.value_residual
        assert [(layer, share.item()) for layer, share in connections.shares.items()] == [("1", 0.5)]
