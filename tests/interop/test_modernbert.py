"""ModernBERT of transformers comes in with the same numbers, and goes out again to the last bit."""

import json

import pytest
import torch
from safetensors.torch import load_file

import bakeoff
from bakeoff.row import Row
from tests.interop.elsewhere import randomise, write_byte_bpe
from tests.interop.finetuned_models import MODERNBERT

transformers = pytest.importorskip("transformers")
theirs_of = pytest.importorskip("transformers.models.modernbert.modeling_modernbert")

BIASES = dict.fromkeys(("attention_bias", "mlp_bias", "norm_bias", "classifier_bias"), True)
BASES = {
    "full_attention": {"rope_type": "default", "rope_theta": 900.0},
    "sliding_attention": {"rope_type": "default", "rope_theta": 30.0},
}
MODELS = {
    "as published": ("ModernBertForMaskedLM", {}),
    "with biases and other rates": ("ModernBertForMaskedLM", BIASES | {"rope_parameters": BASES}),
    "with biases of the feed-forward network": (
        "ModernBertForMaskedLM",
        {"mlp_bias": True, "attention_dropout": 0.1, "embedding_dropout": 0.2, "mlp_dropout": 0.3},
    ),
    "in another order": (
        "ModernBertForMaskedLM",
        {
            "layer_types": [f"{kind}_attention" for kind in ("sliding", "sliding", "full", "sliding", "full")],
            "classifier_activation": "relu",
        },
    ),
    "everywhere": ("ModernBertForMaskedLM", {"layer_types": ["full_attention"] * 5}),
    "of one layer": ("ModernBertForMaskedLM", {"num_hidden_layers": 1}),
    "body": ("ModernBertModel", {}),
}


@pytest.fixture(autouse=True)
def _no_bars():
    transformers.utils.logging.disable_progress_bar()


@pytest.fixture
def in_double(monkeypatch):
    """Their rotations in float64, where they ask for single precision."""

    def rotated(query, key, cosine, sine, unsqueeze_dim=1):
        cosine, sine = cosine.unsqueeze(unsqueeze_dim), sine.unsqueeze(unsqueeze_dim)
        half = theirs_of.rotate_half
        return query * cosine + half(query) * sine, key * cosine + half(key) * sine

    monkeypatch.setattr(theirs_of, "apply_rotary_pos_emb", rotated)


def saved(folder, name, size=1.0, **changes):
    architecture, settings = MODELS[name]
    folder.mkdir()
    rows = write_byte_bpe(folder)
    config = transformers.ModernBertConfig(vocab_size=rows, **{**MODERNBERT, **settings, **changes})
    model = getattr(transformers, architecture)(config)
    randomise(model.eval())
    for weight in model.parameters():
        weight.data *= size if weight.dim() > 1 else 1.0
    model.save_pretrained(folder)
    return model


@pytest.mark.parametrize("name", MODELS)
def test_same_numbers_and_the_same_bits_again(name, tmp_path, in_double):
    theirs = saved(tmp_path / "theirs", name)
    run = bakeoff.import_model(tmp_path / "theirs", tmp_path / "run")
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(5, theirs.config.vocab_size, (3, 160), generator=generator)
    padding_mask = torch.arange(160) < torch.tensor([[160], [31], [2]])
    ours, theirs = run.load().double(), theirs.double()
    with torch.no_grad():
        hidden = ours.model(Row(ids, padding_mask=padding_mask))[0]
        answers = theirs(input_ids=ids, attention_mask=padding_mask.long(), output_hidden_states=True)
        last = answers.hidden_states[-1]
        torch.testing.assert_close(
            hidden[padding_mask], last[padding_mask], rtol=1e-12, atol=1e-12 * float(last.abs().max())
        )
        if name != "body":
            scores = ours.objectives[0].head.scores(hidden, ours.model.embedding.weight)
            scale = float(answers.logits.abs().max())
            torch.testing.assert_close(
                scores[padding_mask], answers.logits[padding_mask], rtol=1e-12, atol=1e-12 * scale
            )
    done = bakeoff.export(run.path, tmp_path / "again")
    assert "ModernBertForMaskedLM" in done.loads_with
    assert done.largest_difference < 1e-3
    before, after = load_file(tmp_path / "theirs/model.safetensors"), load_file(done.path / "model.safetensors")
    for key, tensor in before.items():
        assert torch.equal(tensor, after[key if key in after else f"model.{key}"]), key
    again = json.loads((done.path / "config.json").read_text())
    for key, value in json.loads((tmp_path / "theirs/config.json").read_text()).items():
        if key not in ("architectures", "tie_word_embeddings", "transformers_version", "id2label", "label2id"):
            assert again[key] == value, key


@pytest.mark.parametrize(
    "changes",
    [
        {"sliding_window": 2},
        {"sliding_window": 9, "local_attention": 6},
        {"rope_parameters": {"full_attention": {"rope_type": "default"}}, "global_rope_theta": 50.0},
        {"rope_parameters": {"full_attention": {"rope_theta": 50.0}}, "local_rope_theta": 20.0},
    ],
    ids=str,
)
def test_other_keys_for_the_window_and_the_rotations(changes, tmp_path):
    # Of weights as large as elsewhere rounding alone may be more than an export allows.
    saved(tmp_path / "theirs", "as published", size=0.5)
    path = tmp_path / "theirs/config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    theirs = transformers.ModernBertForMaskedLM.from_pretrained(tmp_path / "theirs").eval()
    run = bakeoff.import_model(tmp_path / "theirs", tmp_path / "run")
    ids = torch.randint(5, theirs.config.vocab_size, (1, 60), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        hidden = run.load().model(Row(ids))[0]
        last = theirs(input_ids=ids, output_hidden_states=True).hidden_states[-1]
    torch.testing.assert_close(hidden, last, rtol=1e-4, atol=1e-4 * float(last.abs().max()))
    assert bakeoff.export(run.path, tmp_path / "again").largest_difference < 1e-3


def test_a_config_of_transformers_4(tmp_path):
    """As the published ones are: layers by a number, rates of rotations by two keys."""
    theirs = saved(tmp_path / "theirs", "as published")
    path = tmp_path / "theirs/config.json"
    values = json.loads(path.read_text())
    del values["layer_types"], values["rope_parameters"]
    values |= {"global_attn_every_n_layers": 2, "global_rope_theta": 700.0, "local_rope_theta": None}
    path.write_text(json.dumps(values))
    run = bakeoff.import_model(tmp_path / "theirs", tmp_path / "run")
    mixers = [block.mixer for block in run.recipe.model.encoder.layer_blocks()]
    assert [mixer.window for mixer in mixers] == [None, 3, None, 3, None]
    assert {mixer.rotary_base for mixer in mixers} == {700.0}
    done = bakeoff.export(run.path, tmp_path / "again")
    again = json.loads((done.path / "config.json").read_text())
    assert (again["global_attn_every_n_layers"], again["global_rope_theta"]) == (2, 700.0)
    own = transformers.ModernBertConfig.from_pretrained(done.path)
    assert [each == "full_attention" for each in own.layer_types] == [True, False, True, False, True]
    assert own.rope_parameters["sliding_attention"]["rope_theta"] == 700.0
    assert theirs.config.vocab_size == own.vocab_size
