import os

import pytest

from bakeoff.errors import UserError
from bakeoff.interop.export import export
from tests.inference.untrained_runs import untrained


def test_a_pooling_that_the_library_lacks_is_refused(corpus, tmp_path):
    run = untrained("bert-tiny", corpus, tmp_path / "run")
    with pytest.raises(UserError, match="--pooling last"):
        export(run.path, tmp_path / "out", to="sentence-transformers", pooling="last")
    assert os.listdir(tmp_path) == ["run"]


def test_a_causal_model_is_refused(corpus, tmp_path):
    run = untrained("gpt-tiny", corpus, tmp_path / "run")
    with pytest.raises(UserError, match=r"encoders whose rows begin with \[CLS\]"):
        export(run.path, tmp_path / "out", to="sentence-transformers")
    assert os.listdir(tmp_path) == ["run"]


@pytest.mark.slow
@pytest.mark.parametrize("pooling", ["mean", "max", "cls"])
def test_the_library_gives_the_vectors_of_embed(pooling, corpus, tmp_path):
    pytest.importorskip("sentence_transformers")
    run = untrained("bert-tiny", corpus, tmp_path / "run")
    made = export(run.path, tmp_path / "out", to="sentence-transformers", pooling=pooling)
    assert made.largest_difference < 1e-5
