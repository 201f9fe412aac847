"""The options of `prepare` and `prepare_pairs` are declared once; the command line offers all of them as they are."""

import inspect

import pytest

import bakeoff
from bakeoff.cli.prepare import prepare
from bakeoff.cli.shared.corpus_options import parse_size
from bakeoff.errors import UserError
from bakeoff.preparation.options import PrepareOptions, PreparePairsOptions


@pytest.mark.parametrize("config", [PrepareOptions, PreparePairsOptions])
def test_the_command_line_offers_every_option_with_its_default(config):
    shown = {name: each.default for name, each in inspect.signature(prepare).parameters.items()}
    for name, field in config.model_fields.items():
        assert name in shown
        typed = parse_size(shown[name]) if name == "tokenizer_sample" else shown[name]
        if typed is not None:  # what shows no default, or several kinds of values
            assert typed == field.default, name


def test_a_misspelt_option_of_pairs_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"prepare: unknown key 'longest_pairs'.*longest_pair"):
        bakeoff.prepare_pairs("a", "b", tmp_path / "c", longest_pairs=5)


def test_options_of_pairs_out_of_their_range_are_refused(tmp_path):
    for wrong in ({"validation": 0.0}, {"validation": 1.0}, {"tokenizer_sample": 0}, {"ratio": 0.5}, {"seed": "a"}):
        with pytest.raises(UserError, match=f"prepare: .*{next(iter(wrong))}"):
            bakeoff.prepare_pairs("a", "b", tmp_path / "c", **wrong)
