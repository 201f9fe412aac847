import json
import os

import pytest

from bakeoff.errors import UserError
from bakeoff.interop import sentence_transformers
from bakeoff.interop.export import export
from bakeoff.preparation.prepare import prepare
from bakeoff.reading.aligned import clean
from bakeoff.tokenizer.tokenizer_config import TokenizerConfig
from bakeoff.vectors.embedder import Embedder
from bakeoff.vectors.options import VectorConfig
from tests.interop.elsewhere import ODD
from tests.untrained_runs import untrained


def test_a_pooling_that_the_library_lacks_is_refused(corpus, tmp_path):
    run = untrained("bert-tiny", corpus, tmp_path / "run")
    with pytest.raises(UserError, match="--pooling middle"):
        export(run.path, tmp_path / "out", to="sentence-transformers", pooling="middle")
    assert os.listdir(tmp_path) == ["run"]


@pytest.mark.parametrize("name", ["bart-tiny", "xlnet-tiny"])
def test_rows_that_the_library_would_not_make_are_refused(name, corpus, tmp_path):
    run = untrained(name, corpus, tmp_path / "run")
    with pytest.raises(UserError, match="whose vectors sentence-transformers would not give"):
        export(run.path, tmp_path / "out", to="sentence-transformers")
    assert os.listdir(tmp_path) == ["run"]


@pytest.mark.parametrize("pooling", ["mean", "max", "cls"])
def test_the_library_is_told_one_pooling_and_the_length_of_rows(pooling, corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(sentence_transformers, "find_spec", lambda name: None)  # as if there were none to compare with
    run = untrained("bert-tiny", corpus, tmp_path / "run")
    made = export(run.path, tmp_path / "out", to="sentence-transformers", pooling=pooling)
    said = json.loads((made.path / "1_Pooling/config.json").read_text())
    modes = sentence_transformers.POOLINGS
    assert [key for key, value in said.items() if value is True] == [modes[pooling]]
    assert said["word_embedding_dimension"] == run.recipe.model.output_width
    rows = json.loads((made.path / "0_Transformer/sentence_bert_config.json").read_text())
    assert rows == {"max_seq_length": run.recipe.input.length, "do_lower_case": False}


@pytest.mark.parametrize("name", ["gpt2-tiny", "laptop-encoder-tiny"])
def test_odd_texts_are_read_there_as_here(name, text_folder, tmp_path, monkeypatch):
    transformers = pytest.importorskip("transformers")
    monkeypatch.setattr(sentence_transformers, "find_spec", lambda name: None)
    tokenizer = TokenizerConfig(kind="byte_bpe", size=300)
    run = untrained(name, prepare([text_folder], tmp_path / "corpus", tokenizer=tokenizer), tmp_path / "run")
    made = export(run.path, tmp_path / "out", to="sentence-transformers")
    theirs = transformers.AutoTokenizer.from_pretrained(made.path / "0_Transformer")(ODD)["input_ids"]
    ours = Embedder(run, VectorConfig(), "cpu").format.encode([*map(clean, ODD)]).ids
    assert [each.tolist() for each in ours] == theirs


@pytest.mark.slow
def test_a_difference_is_no_export(corpus, tmp_path, monkeypatch):
    """The files are read back without Bakeoff, and what gives other vectors is not kept."""
    pytest.importorskip("transformers")
    run = untrained("bert-tiny", corpus, tmp_path / "run")
    write = sentence_transformers.write_json

    def other(path, values):
        if path.parent.name == "1_Pooling":
            values = {**values, "pooling_mode_mean_tokens": False, "pooling_mode_max_tokens": True}
        write(path, values)

    monkeypatch.setattr(sentence_transformers, "write_json", other)
    with pytest.raises(UserError, match="gives other vectors than `bakeoff embed`"):
        export(run.path, tmp_path / "out", to="sentence-transformers")
    assert os.listdir(tmp_path) == ["run"]


FORMS = [("bert-tiny", "mean"), ("gpt2-tiny", "last"), ("laptop-hybrid-tiny", "mean"), ("laptop-decoder-tiny", "max")]
"""Runs that transformers has a class for, and others, with a pooling."""


@pytest.mark.parametrize(
    ("name", "pooling"), [FORMS[0], *(pytest.param(*each, marks=pytest.mark.slow) for each in FORMS[1:])]
)
def test_what_is_read_back_gives_the_vectors_of_embed(name, pooling, corpus, tmp_path):
    pytest.importorskip("transformers")
    run = untrained(name, corpus, tmp_path / "run", **{"training.precision": "float32"})
    made = export(run.path, tmp_path / "out", to="sentence-transformers", pooling=pooling)
    assert made.largest_difference < 1e-5
    code = (made.path / "0_Transformer" / "modeling_bakeoff.py").is_file()
    assert ("trust_remote_code" in made.loads_with) == code == name.startswith("laptop")
    assert "vectors differ from those of `bakeoff embed` by" in made.remarks[-1]


@pytest.mark.slow
@pytest.mark.parametrize("pooling", ["mean", "max", "cls"])
def test_the_library_gives_the_vectors_of_embed(pooling, corpus, tmp_path):
    pytest.importorskip("sentence_transformers")
    run = untrained("bert-tiny", corpus, tmp_path / "run")
    made = export(run.path, tmp_path / "out", to="sentence-transformers", pooling=pooling)
    assert made.largest_difference < 1e-5
