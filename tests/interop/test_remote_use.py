"""Exported models are trained, saved, resized, and given other texts."""

import json

import pytest
import torch

from tests.interop.test_remote_code import exported, program

pytest.importorskip("transformers")


@pytest.mark.slow
def test_models_can_be_trained_saved_and_resized(corpus, tmp_path):
    found = exported(["conv-light-encoder-tiny", "laptop-decoder-tiny"], corpus, tmp_path)
    folders = {name: str(out) for name, (_, out, _) in found.items()}
    encoder, decoder = folders["conv-light-encoder-tiny"], folders["laptop-decoder-tiny"]
    learn = {"do": "learn", "steps": 12}
    answers = program(
        [
            {**learn, "folder": encoder, "auto": "AutoModelForSequenceClassification", "out": str(tmp_path / "a")},
            {**learn, "folder": decoder, "auto": "AutoModelForCausalLM", "out": str(tmp_path / "b")},
            {"do": "resize", "folder": encoder, "auto": "AutoModelForMaskedLM"},
        ],
        tmp_path,
    )
    for answer in answers[:2]:
        assert answer["losses"][-1] < answer["losses"][0]
        assert answer["same"]
        assert answer["half"]
        assert answer["file"]
    assert answers[2][-1] == corpus.tokenizer.size + 7


def test_the_config_names_the_code_and_how_long_rows_are(corpus, tmp_path):
    (run, out, own) = exported(["laptop-encoder-tiny"], corpus, tmp_path)["laptop-encoder-tiny"]
    assert own.config["max_position_embeddings"] == run.recipe.input.length
    assert torch.isfinite(next(iter(own.tensors.values()))).all()
    assert json.loads((out / "config.json").read_text())["auto_map"]["AutoConfig"] == "modeling_bakeoff.BakeoffConfig"
