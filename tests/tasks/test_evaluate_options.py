"""The options of `evaluate` and `similarity` are declared once; the command line offers them as they are."""

import inspect

import pytest

import bakeoff
from bakeoff.cli import evaluate, similarity
from bakeoff.errors import UserError
from bakeoff.tasks.evaluate_options import EvaluateOptions
from bakeoff.vectors.options import SimilarityOptions

SEQUENCES = {"at": "1,5,10"}
"""What the command line has as a text."""


@pytest.mark.parametrize(
    ("verb", "config"), [(evaluate.evaluate, EvaluateOptions), (similarity.similarity, SimilarityOptions)]
)
def test_the_command_line_has_the_defaults_of_the_options(verb, config):
    typed = {name: each.default for name, each in inspect.signature(verb).parameters.items()}
    shared = [name for name in config.model_fields if name in typed and not config.model_fields[name].is_required()]
    assert len(shared) >= 7
    for name in shared:
        shown = None if typed[name] == [] else typed[name]  # nothing named
        assert shown == SEQUENCES.get(name, config.model_fields[name].default), name


def test_misspelt_options_are_refused_with_the_nearest():
    with pytest.raises(UserError, match="evaluate: unknown key 'corpas'; did you mean 'corpus'"):
        bakeoff.evaluate("run", corpas="text")
    with pytest.raises(UserError, match="similarity: unknown key 'pool'; did you mean 'pooling'"):
        bakeoff.similarity("run", "file", text_column="a", pair_column="b", pool="max")


def test_options_that_contradict_each_other_are_refused():
    columns = {"text_column": "a", "pair_column": "b"}
    with pytest.raises(UserError, match="least-score is a number, and needs --label-column"):
        bakeoff.similarity("run", "file", **columns, least_score=1)
    with pytest.raises(UserError, match="recall is measured at numbers from 1 on"):
        bakeoff.similarity("run", "file", **columns, at=[0])
