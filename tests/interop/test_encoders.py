"""Encoders of transformers come in with the same numbers, and go out again to the last bit."""

import pytest
import torch
from safetensors.torch import load_file, save_file

import bakeoff
from bakeoff.row import Row
from tests.interop.elsewhere import randomise, write_byte_bpe, write_unigram, write_wordpiece

transformers = pytest.importorskip("transformers")

BERT_SIZES = {
    "hidden_size": 35,
    "num_hidden_layers": 3,
    "num_attention_heads": 5,
    "intermediate_size": 51,
    "max_position_embeddings": 77,
}
DISTILBERT_SIZES = {"dim": 35, "n_layers": 3, "n_heads": 5, "hidden_dim": 51, "max_position_embeddings": 77}
ALBERT_SIZES = BERT_SIZES | {"num_hidden_layers": 4, "num_hidden_groups": 2, "embedding_size": 21}
MODELS = {
    "bert": ("BertForPreTraining", "BertConfig", BERT_SIZES, write_wordpiece),
    "bert masked": ("BertForMaskedLM", "BertConfig", BERT_SIZES | {"hidden_act": "relu"}, write_wordpiece),
    "bert body": ("BertModel", "BertConfig", BERT_SIZES | {"type_vocab_size": 3}, write_wordpiece),
    "bert sentences": ("BertForNextSentencePrediction", "BertConfig", BERT_SIZES, write_wordpiece),
    "bert tagger": ("BertForTokenClassification", "BertConfig", BERT_SIZES | {"num_labels": 4}, write_wordpiece),
    "roberta": (
        "RobertaForMaskedLM",
        "RobertaConfig",
        BERT_SIZES | {"type_vocab_size": 1, "layer_norm_eps": 1e-5, "pad_token_id": 1},
        write_byte_bpe,
    ),
    "albert": ("AlbertForPreTraining", "AlbertConfig", ALBERT_SIZES, write_unigram),
    "albert masked": ("AlbertForMaskedLM", "AlbertConfig", ALBERT_SIZES | {"hidden_act": "gelu"}, write_unigram),
    "distilbert": ("DistilBertForMaskedLM", "DistilBertConfig", DISTILBERT_SIZES, write_wordpiece),
    "electra": ("ElectraForPreTraining", "ElectraConfig", BERT_SIZES | {"embedding_size": 21}, write_wordpiece),
    "electra generator": ("ElectraForMaskedLM", "ElectraConfig", BERT_SIZES | {"embedding_size": 35}, write_wordpiece),
}
LOGITS = {
    "mlm": ("prediction_logits", "logits"),
    "nsp": ("seq_relationship_logits", "logits"),
    "sop": ("sop_logits",),
    "rtd": ("logits",),
}


def saved(folder, name, rows_more=0, **changes):
    """A random model with its tokenizer in a folder."""
    architecture, config, sizes, tokenizer = MODELS[name]
    folder.mkdir(exist_ok=True)
    rows = tokenizer(folder) + rows_more
    model = getattr(transformers, architecture)(getattr(transformers, config)(vocab_size=rows, **sizes, **changes))
    randomise(model.eval())
    model.save_pretrained(folder)
    return model


@pytest.fixture(autouse=True)
def _no_bars():
    transformers.utils.logging.disable_progress_bar()


@pytest.fixture(params=MODELS)
def name(request):
    return request.param


def batch(model, segments):
    """(3, 60) ids, real, segments, padded on the right."""
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(5, model.config.vocab_size - 1, (3, 60), generator=generator)
    padding_mask = torch.arange(60) < torch.tensor([[60], [31], [2]])
    ids = ids.masked_fill(~padding_mask, model.config.pad_token_id or 0)
    return ids, padding_mask, (torch.arange(60) > 12).long().expand(3, -1) if segments > 1 else None


@pytest.mark.parametrize("rows_more", [0, pytest.param(3, marks=pytest.mark.slow)])
def test_same_numbers_and_the_same_bits_again(name, rows_more, tmp_path):
    theirs = saved(tmp_path / "theirs", name, rows_more)
    run = bakeoff.import_model(tmp_path / "theirs", tmp_path / "run", head=False)
    ids, padding_mask, segments = batch(theirs, run.recipe.model.embedding.segments)
    given = {"input_ids": ids, "attention_mask": padding_mask.long()} | (
        {} if segments is None else {"token_type_ids": segments}
    )
    ours, theirs = run.load().double(), theirs.double()
    with torch.no_grad():
        hidden = ours.model(Row(ids, segments, padding_mask))[0]
        answers = theirs(**given, output_hidden_states=True)
        last = answers.hidden_states[-1]
        torch.testing.assert_close(
            hidden[padding_mask], last[padding_mask], rtol=1e-12, atol=1e-12 * float(last.abs().max())
        )
        seen = 0
        for objective in ours.objectives:
            key = next((key for key in LOGITS[objective.name] if key in answers), None)
            known = objective.name == "nsp" if "sentences" in name else "tagger" not in name
            if key is None or not known or (objective.name == "mlm" and name == "electra"):
                continue
            expected = answers[key]
            rows = hidden if expected.dim() == 3 or objective.name == "rtd" else hidden[:, 0]
            found = objective.head.scores(rows, ours.model.embedding.weight)
            if objective.name == "rtd":
                found = found[..., 1] - found[..., 0]
            kept = padding_mask if found.dim() == 3 or objective.name == "rtd" else torch.ones(3, dtype=torch.bool)
            scale = float(expected.abs().max())
            torch.testing.assert_close(found[kept], expected[kept], rtol=1e-12, atol=1e-12 * scale)
            seen += 1
    assert seen == {"bert": 2, "albert": 2, "bert body": 0, "bert tagger": 0}.get(name, 1)
    done = bakeoff.export(run.path, tmp_path / "again")
    assert done.largest_difference < 1e-3
    before, after = load_file(tmp_path / "theirs/model.safetensors"), load_file(done.path / "model.safetensors")
    assert set(before) <= set(after) or name == "bert body"
    for key, tensor in before.items():
        key = key if key in after else f"bert.{key}"
        assert torch.equal(tensor, after[key]), key


def test_norms_with_the_names_of_tensorflow_are_the_same_norms(tmp_path):
    """Where a scale is gamma and a shift beta, as in BERT's first files."""
    saved(tmp_path / "theirs", "bert")
    wanted = bakeoff.import_model(tmp_path / "theirs", tmp_path / "run").load().state_dict()
    path = tmp_path / "theirs/model.safetensors"
    old = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
    tensors = load_file(path)
    renamed = {name.replace(ours, old[ours]): each for name, each in tensors.items() for ours in old if ours in name}
    kept = {name: each for name, each in tensors.items() if "LayerNorm" not in name}
    assert len(renamed) + len(kept) == len(tensors)
    save_file(renamed | kept, path, {"format": "pt"})
    found = bakeoff.import_model(tmp_path / "theirs", tmp_path / "again").load().state_dict()
    assert all(torch.equal(found[name], each) for name, each in wanted.items())


def test_half_precision_stays(tmp_path):
    saved(tmp_path / "theirs", "bert").bfloat16().save_pretrained(tmp_path / "theirs")
    run = bakeoff.import_model(tmp_path / "theirs", tmp_path / "run")
    done = bakeoff.export(run.path, tmp_path / "again")
    before, after = load_file(tmp_path / "theirs/model.safetensors"), load_file(done.path / "model.safetensors")
    assert all(after[key].dtype == torch.bfloat16 and torch.equal(each, after[key]) for key, each in before.items())


def test_several_files(tmp_path):
    model = saved(tmp_path / "theirs", "bert")
    (tmp_path / "theirs/model.safetensors").unlink()
    model.save_pretrained(tmp_path / "theirs", max_shard_size="20KB")
    assert (tmp_path / "theirs/model.safetensors.index.json").is_file()
    run = bakeoff.import_model(tmp_path / "theirs", tmp_path / "run")
    own = run.load().state_dict()["model.embedding.tokens.weight"]
    assert torch.equal(own, model.bert.embeddings.word_embeddings.weight)
