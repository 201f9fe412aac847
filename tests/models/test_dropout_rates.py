"""Which dropouts act in a published recipe, and at which rates: all of them, and no others.

Of the recipes that have a counterpart in transformers, places and rates are compared there.
"""

import sys

import pytest
import torch
from tests.conftest import shrink
from tests.models.parity import replace_everywhere
from torch import nn

from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.ops.dropout import channel_dropout, dropout
from bakeoff.row import Row, Source

TRANSFORMER = {"embedding": [0.1], "sublayer": [0.1]}
SHORT = {"embedding": [0.3], "sublayer": [0.3], "cross": [0.1], "taps": [0.1], "what is convolved": [0.1]}
LANGUAGE_MODEL = {"embedding": [0.1], "sublayer": [0.1], "taps": [0.1]}
WINDOW = {"window": [0.1, 0.3], "highway": [0.3]}
RATES = {
    # tensor2tensor, transformer_base_v3: layer_prepostprocess_dropout alone; the paper's section 5.4
    "transformer-base": TRANSFORMER,
    "transformer-base-wmt": TRANSFORMER,
    "transformer-big": {"embedding": [0.3], "sublayer": [0.3]},
    "transformer-big-wmt": {"embedding": [0.3], "sublayer": [0.3]},
    # fairseq, examples/pay_less_attention_paper: --dropout 0.3 --attention-dropout 0.1 --weight-dropout 0.1, and
    # input_dropout of lightconv_wmt_en_de_big
    "light-wmt": SHORT,
    "dynamic-wmt": SHORT,
    "conv-light-lm": LANGUAGE_MODEL,
    "conv-dynamic-lm": LANGUAGE_MODEL,
    "conv-dilated-lm": {"embedding": [0.1], "sublayer": [0.1]},
    # Tay et al. 2021, section 4: no dropout in pre-training
    "conv-light-base": {},
    "conv-dynamic-base": {},
    "conv-dilated-base": {},
    "transformer-12x12-base": {},
    # kimiyoung/transformer-xl, run_wt103_base.sh: --dropout 0.1 --dropatt 0.0
    "transformer-xl-wikitext103": TRANSFORMER | {"distances": [0.1], "inner": [0.1], "output": [0.1]},
    "gcnn-13": {"gated convolutions": [0.2]},
    "gcnn-14": {"gated convolutions": [0.2]},
    "gcnn-8b": {"gated convolutions": [0.2]},
    # Bai et al. 2018, table 2; locuslab/TCN's emb_dropout
    "tcn-ptb": {"embedding": [0.25], "temporal convolutions": [0.5]},
    "tcn-char-ptb": {"embedding": [0.1], "temporal convolutions": [0.1]},
    "tcn-wikitext103": {"embedding": [0.1], "temporal convolutions": [0.4]},
    # the code of Pham et al. 2016
    "cnn-lm": WINDOW,
    "com-lm": WINDOW,
    "mlpconv-lm": WINDOW,
    "multilayer-cnn-lm": WINDOW,
    "gencnn": {"summary": [0.1]},
    # Zaremba et al. 2014, medium
    "lstm-lm": {"embedding": [0.5], "layer": [0.5]},
    # allenai/bilm-tf: dropout 0.1
    "elmo": {"embedding": [0.1], "layer": [0.1]},
}
PLACES = {
    ("Embedding", "vectors"): "embedding",
    ("Sublayer", "forward"): "sublayer",
    ("Attention", "forward"): "weights",
    ("RelativeAttention", "forward"): "weights",
    ("RelativeAttention", "_vectors"): "distances",
    ("CrossAttention", "forward"): "cross",
    ("FeedForward", "forward"): "inner",
    ("Stack", "output"): "output",
    ("LightConv", "weight"): "taps",
    ("DynamicConv", "weight"): "taps",
    ("LightConv", "convolved"): "what is convolved",
    ("DynamicConv", "convolved"): "what is convolved",
    ("GatedConvolutions", "forward"): "gated convolutions",
    ("TemporalConvolutions", "forward"): "temporal convolutions",
    ("Column", "forward"): "window",
    ("Highway", "forward"): "highway",
    ("GenCnn", "forward"): "summary",
    ("Plain", "forward"): "layer",
}
"""What stands where dropout is called from: the nearest method of a module."""


def caller():
    frame = sys._getframe(2)
    while not isinstance(frame.f_locals.get("self"), nn.Module):
        frame = frame.f_back
    return type(frame.f_locals["self"]).__name__, frame.f_code.co_name


@pytest.mark.parametrize("name", RATES)
def test_a_recipe_has_the_dropouts_of_its_paper_and_no_others(monkeypatch, name):
    acting = {}

    def noted(x, rate, training):
        if training and rate:
            acting.setdefault(PLACES[caller()], set()).add(rate)
        return x

    for function in (dropout, channel_dropout):
        replace_everywhere(monkeypatch, function, noted)
    recipe = shrink(name)
    model = PretrainingModel(recipe, 160).model
    ids = torch.randint(5, 160, (2, 9))
    source = Source(ids) if recipe.model.sequence_to_sequence else None
    model.eval()(Row(ids, source=source))
    assert acting == {}
    model.train()(Row(ids, source=source))
    assert {place: sorted(rates) for place, rates in acting.items()} == RATES[name]
