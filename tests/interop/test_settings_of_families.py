"""Every key of a config.json of others: its value is read, its absence is their library's default, and it is written.

The library's own configurations say which keys there are and what their defaults are.
"""

import contextlib
import json

import pytest

from bakeoff.errors import UserError
from bakeoff.interop.config_reader import ConfigReader
from bakeoff.interop.hugging_face.importing import TRAINING, family_of
from bakeoff.recipe import Recipe

transformers = pytest.importorskip("transformers")

CONFIGS = {
    "bert": "BertConfig",
    "roberta": "RobertaConfig",
    "albert": "AlbertConfig",
    "electra": "ElectraConfig",
    "distilbert": "DistilBertConfig",
    "modernbert": "ModernBertConfig",
    "xlnet": "XLNetConfig",
    "gpt2": "GPT2Config",
    "openai-gpt": "OpenAIGPTConfig",
    "bart": "BartConfig",
    "t5": "T5Config",
}
OF_OTHERS = ("classifier_", "summary_", "qa_", "seq_classif_", "initializer_", "sparse_", "use_", "start_n_", "end_n_")
"""The beginnings of keys of task heads, of first weights and of ways to run the same model."""
NOT_READ = {"vocab_size", "init_std", "sinusoidal_pos_embds", "deterministic_flash_attn", "reorder_and_upcast_attn"}
"""The tokenizer or the tensors say it, or it changes how the same numbers are computed."""
DERIVED = {"is_gated_act", "dense_act_fn"}
"""What transformers computes from `feed_forward_proj`."""
OF_BOTH_SIDES = {"bart": {"is_decoder"}, "t5": {"is_decoder"}}
"""A key that makes the others' encoders decoders, and says nothing of a model that has both."""
TELLS_OF_A_TABLE = ("gpt2", "openai-gpt", "t5", "modernbert")
"""Families in which `tie_word_embeddings` is read; in others the tensor of a head with its own table is refused."""
WITHOUT_A_DEFAULT = {"mem_len"}
"""XLNet's published configs have null, and its memory was 384 tokens; the library's default is another."""
WIDTHS = {"hidden_size", "dim", "d_model", "n_embd"}
"""Sizes that the number of heads has to divide."""
FAIRSEQ = {"model_type": "lightconv", "vocab_size": 9, "encoder_conv_type": "lightweight"} | {
    f"{side}_{key}": value
    for side in ("encoder", "decoder")
    for key, value in {"embed_dim": 8, "conv_dim": 8, "ffn_embed_dim": 16, "attention_heads": 2, "layers": 2}.items()
}
RATES_OF_FAIRSEQ = {
    "dropout": ("model.dropout",),
    "attention_dropout": ("model.decoder.block.cross.dropout",),
    "relu_dropout": ("model.encoder.block.ffn.dropout", "model.decoder.block.ffn.dropout"),
    "weight_dropout": ("model.encoder.block.mixer.weight_dropout", "model.decoder.block.mixer.weight_dropout"),
    "input_dropout": ("model.encoder.block.mixer.input_dropout", "model.decoder.block.mixer.input_dropout"),
    "label_smoothing": ("objective.0.label_smoothing",),
}
"""Where a recipe has each of fairseq's rates, which transformers has no configuration for."""


def read(values):
    """The recipe's values of a config.json whose model has all heads."""
    config = ConfigReader(values, "config.json")
    return family_of(config).recipe(config, ())


def defaults(name):
    """The library's default configuration."""
    return json.loads(getattr(transformers, CONFIGS[name])().to_json_string(use_diff=False))


def of_the_model(name):
    """The keys that say what the model computes, here and in training."""
    left = set(transformers.PretrainedConfig().to_dict()) | NOT_READ | DERIVED | OF_BOTH_SIDES.get(name, set())
    left = left - {"tie_word_embeddings"} if name in TELLS_OF_A_TABLE else left | {"tie_word_embeddings"}
    return [key for key in defaults(name) if key not in left and not key.startswith(OF_OTHERS) and "_token_" not in key]


def another(value):
    """Another value of the same type."""
    if isinstance(value, bool):
        return not value
    return abs(value) // 9 or abs(value) + 1 if isinstance(value, int) else round(value / 2 + 0.0117, 5)


def leaves(tree, path=""):
    """All values of a tree by their paths."""
    if not isinstance(tree, dict | list):
        return {path[1:]: tree}
    items = tree.items() if isinstance(tree, dict) else enumerate(tree)
    return {own: value for key, each in items for own, value in leaves(each, f"{path}.{key}").items()}


@pytest.mark.parametrize("name", CONFIGS)
def test_every_key_of_the_model_is_read_or_refused(name):
    values, unread = defaults(name), []
    for key in of_the_model(name):
        if type(values[key]) in (bool, int, float):
            with contextlib.suppress(UserError):
                unread += [key] if read(values | {key: another(values[key])}) == read(values) else []
    assert not unread


@pytest.mark.parametrize("name", CONFIGS)
def test_a_key_that_is_left_out_has_the_default_of_the_library_or_is_missed_by_its_name(name):
    values, missed = defaults(name), {}
    for key in set(of_the_model(name)) - WITHOUT_A_DEFAULT:
        for left_out in ({each: value for each, value in values.items() if each != key}, values | {key: None}):
            try:
                assert read(left_out) == read(values), key
            except UserError as error:
                missed[key] = str(error)
    assert missed == {key: f"config.json: {key} is missing" for key in missed}
    assert len(missed) < len(of_the_model(name))


@pytest.mark.parametrize("name", CONFIGS)
def test_what_was_read_is_written(name):
    values = {key: value for key, value in defaults(name).items() if key not in ("layer_types", "rope_parameters")}
    family, written = family_of(ConfigReader(values, "config.json")), 0
    for key in set(of_the_model(name)) - WIDTHS:
        if type(values.get(key)) not in (int, float):
            continue
        changed = values | {key: another(values[key])}
        with contextlib.suppress(UserError):  # such as heads that do not divide the width
            recipe = Recipe.parse({"training": TRAINING, "name": "theirs", **read(changed)}, "config.json")
            found = family.config(recipe)
            assert found.get(key, changed[key]) == changed[key], key
            written += key in found
    assert written >= 3


def test_each_rate_of_fairseq_has_its_place():
    rates = {key: round(0.011 * (number + 1), 3) for number, key in enumerate(RATES_OF_FAIRSEQ)}
    found, without = leaves(read(FAIRSEQ | rates)), leaves(read(FAIRSEQ | dict.fromkeys(rates, 0.0)))
    wanted = {place: rates[key] for key, places in RATES_OF_FAIRSEQ.items() for place in places}
    assert {place: value for place, value in found.items() if value != without[place]} == wanted
