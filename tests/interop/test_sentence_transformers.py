import json
import os

import pytest

from bakeoff.errors import UserError
from bakeoff.interop.export import export
from tests.untrained_runs import untrained


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


@pytest.mark.parametrize("pooling", ["mean", "max", "cls"])
def test_the_library_is_told_one_pooling_and_the_length_of_rows(pooling, corpus, tmp_path):
    run = untrained("bert-tiny", corpus, tmp_path / "run")
    made = export(run.path, tmp_path / "out", to="sentence-transformers", pooling=pooling)
    said = json.loads((made.path / "1_Pooling/config.json").read_text())
    modes = {"cls": "pooling_mode_cls_token", "mean": "pooling_mode_mean_tokens", "max": "pooling_mode_max_tokens"}
    assert [key for key, value in said.items() if value is True] == [modes[pooling]]
    assert said["word_embedding_dimension"] == run.recipe.model.output_width
    rows = json.loads((made.path / "0_Transformer/sentence_bert_config.json").read_text())
    assert rows == {"max_seq_length": run.recipe.input.length, "do_lower_case": False}


@pytest.mark.slow
@pytest.mark.parametrize("pooling", ["mean", "max", "cls"])
def test_the_library_gives_the_vectors_of_embed(pooling, corpus, tmp_path):
    pytest.importorskip("sentence_transformers")
    run = untrained("bert-tiny", corpus, tmp_path / "run")
    made = export(run.path, tmp_path / "out", to="sentence-transformers", pooling=pooling)
    assert made.largest_difference < 1e-5
