import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.conftest import shrink, without_dropout

from bakeoff.corpus.mixture import open_corpus
from bakeoff.errors import UserError
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.models.blocks.feed_forward import activate
from bakeoff.recipe_files import load_recipe
from bakeoff.resources.device import Placement
from bakeoff.row import Row
from bakeoff.tasks.finetune import open_source
from bakeoff.tasks.finetune_config import FinetuneConfig
from bakeoff.tasks.fitting.fitting import Setting
from bakeoff.tasks.fitting.resolution import resolve_finetuning
from bakeoff.tasks.fitting.starting_point import new_head
from bakeoff.tasks.heads.heads import RowHead, pooled, transfer
from bakeoff.tasks.kinds.classification import Classification, ClassificationConfig, LabelledText
from bakeoff.tasks.pooling import natural_pooling
from bakeoff.tasks.predictions.predicting import predictions_of
from bakeoff.tasks.rows.batches import collate
from bakeoff.tasks.rows.inputs import InputFormat
from bakeoff.tokenizer.tokenizer import Tokenizer
from bakeoff.training.stages import make_batches

TASK = ClassificationConfig(train="train.tsv", text_column="text", label_column="label")


def test_natural_pooling(recipe, causal_recipe, convolution_recipe):
    assert natural_pooling(recipe) == "cls"
    assert natural_pooling(load_recipe("albert-tiny")) == "cls"
    assert natural_pooling(causal_recipe) == "last"
    assert natural_pooling(convolution_recipe) == "mean"
    assert natural_pooling(load_recipe("elmo-tiny")) == "mean"


def test_both_directions_reach_the_classes():
    recipe = shrink("elmo-tiny")
    classifier = RowHead(recipe, 50, 3, FinetuneConfig(pooling="max", dropout=0.0)).eval()
    assert classifier.output.in_features == 64
    ids = torch.randint(5, 50, (2, 6))
    classifier(Row(ids, None, None)).sum().backward()
    assert (classifier.output.weight.grad.abs().sum(0) > 0).all()
    for pooling, reason in (("cls", "one of the two directions has seen nothing"), ("last", "sees both sides")):
        with pytest.raises(UserError, match=reason):
            resolve_finetuning(FinetuneConfig(pooling=pooling), recipe, TASK)


@pytest.mark.parametrize(("name", "pooled"), [("prefix-lm-tiny", "last"), ("gpt-bert-tiny", "mean")])
@torch.no_grad()
def test_a_decoder_that_has_learnt_to_reads_rows_from_both_sides(name, pooled):
    """Its first position depends on the last token, and no position on padding."""
    recipe = shrink(name)
    assert natural_pooling(recipe) == pooled
    torch.manual_seed(0)
    classifiers = {
        pooling: RowHead(recipe, 50, 3, FinetuneConfig(pooling=pooling, dropout=0.0)).eval()
        for pooling in ("cls", "mean", "last")
    }
    ids = torch.randint(5, 50, (2, 6))
    others = ids.clone()
    others[:, -1] = 54 - others[:, -1]
    padding_mask = torch.arange(9) < 6
    padded = torch.cat([ids, torch.randint(5, 50, (2, 3))], dim=1)
    for pooling, classifier in classifiers.items():
        assert resolve_finetuning(FinetuneConfig(pooling=pooling), recipe, TASK).pooling == pooling
        for parameter in classifier.parameters():
            torch.nn.init.normal_(parameter, std=0.2)
        scores = classifier(Row(ids, None, None))
        assert (classifier(Row(others, None, None)) - scores).abs().amax() > 1e-3
        found = classifier(Row(padded, None, padding_mask.expand(2, -1)))
        torch.testing.assert_close(found, scores, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("pooling", ["cls", "mean", "max", "last"])
def test_pooling_sees_real_positions_only(recipe, pooling):
    classifier = RowHead(recipe, 50, 3, FinetuneConfig(pooling=pooling, dropout=0.0))
    hidden = torch.randn(2, 5, 32)
    padding_mask = torch.tensor([[True] * 5, [True, True, True, False, False]])
    pooled = classifier.pool(hidden, padding_mask)
    alone = classifier.pool(hidden[1:, :3], None)
    torch.testing.assert_close(pooled[1:], alone)
    expected = {"mean": hidden[1, :3].mean(0), "max": hidden[1, :3].amax(0), "last": hidden[1, 2]}
    if pooling in expected:
        torch.testing.assert_close(pooled[1], expected[pooling])


def test_dropout_stands_between_the_pooled_vector_and_the_classes(recipe):
    torch.manual_seed(0)
    classifier = RowHead(without_dropout(recipe), 50, 32, FinetuneConfig(pooling="cls", dropout=0.5))
    torch.nn.init.eye_(classifier.output.weight)
    batch = Row(torch.randint(5, 50, (200, 6)), None, None)
    pooled = classifier.eval()(batch)
    scores = classifier.train()(batch)
    dropped = scores == 0
    assert 0.48 < dropped.float().mean() < 0.52
    torch.testing.assert_close(scores[~dropped], 2 * pooled[~dropped])


def probabilities(head, texts, pairs, format):
    """(N, 3) the probabilities of three classes."""
    config = ClassificationConfig(train="train.tsv", text_column="text", label_column="label")
    task = Classification(config, ["a", "b", "c"])
    sides = [(text,) for text in texts] if pairs is None else zip(texts, pairs, strict=True)
    items = task.encode([LabelledText(0, tuple(each)) for each in sides], format)
    found = predictions_of(head, items, task, format, Placement(torch.device("cpu"), "float32"))
    return np.stack([each.probabilities for each in found.predictions])


@pytest.mark.parametrize("training", [True, False])
def test_predictions_have_no_dropout_and_leave_the_mode_as_it_is(recipe, corpus, training):
    tokenizer = Tokenizer.load(corpus)
    torch.manual_seed(0)
    classifier = RowHead(recipe, tokenizer.size, 3, FinetuneConfig(pooling="cls", dropout=0.5)).train(training)
    format = InputFormat(tokenizer, recipe, 32)
    texts = ["saw", "apple " * 5, "town " * 17]
    first, second = (probabilities(classifier, texts, None, format) for _ in range(2))
    assert (first == second).all()
    assert classifier.training == classifier.model.training == training


@pytest.mark.parametrize("name", ["recipe", "causal_recipe", "convolution_recipe", "sequence_to_sequence_recipe"])
def test_other_rows_of_a_batch_change_nothing(request, corpus, name):
    recipe, tokenizer = request.getfixturevalue(name), Tokenizer.load(corpus)
    torch.manual_seed(0)
    classifier = RowHead(recipe, tokenizer.size, 3, FinetuneConfig(pooling=natural_pooling(recipe), dropout=0.1)).eval()
    for parameter in classifier.parameters():  # far from zero, so that a leak would show
        torch.nn.init.normal_(parameter, std=0.2)
    format = InputFormat(tokenizer, recipe, 32)
    texts = ["saw", "apple " * 5, "town " * 17, "plum " * 40]
    pairs = ["drill " * 4, "pear", "coast " * 3, "hammer"]

    def log_probabilities(texts, pairs):
        return torch.from_numpy(probabilities(classifier, texts, pairs, format)).log()

    for others in (None, pairs):
        together = log_probabilities(texts, others)
        for row in range(len(texts)):
            alone = log_probabilities(texts[row : row + 1], others and others[row : row + 1])
            torch.testing.assert_close(alone[0], together[row], atol=1e-5, rtol=0)


def test_all_tensors_of_the_model_and_the_pooler_arrive(run):
    classifier = RowHead(run.recipe, run.tokenizer.size, 3, FinetuneConfig(pooling="cls", dropout=0.1))
    weights = run.path / "model.safetensors"
    count = transfer(classifier, weights, run.recipe)
    file, own = load_file(weights), classifier.state_dict()
    assert count == len(own) - 2  # all but the output's weight and bias
    assert count == sum(name.startswith("model.") for name in file) + 2
    for name, tensor in file.items():
        if name.startswith("model."):
            assert torch.equal(own[name], tensor)
    assert torch.equal(own["pooler.weight"], file["heads.nsp.pooler.weight"])
    mean = RowHead(run.recipe, run.tokenizer.size, 3, FinetuneConfig(pooling="mean", dropout=0.1))
    assert transfer(mean, weights, run.recipe) == len(mean.state_dict()) - 2


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_the_transform_begins_as_mlm_has_left_it(run, pooling, tmp_path):
    config = FinetuneConfig(pooling=pooling, dropout=0.1, transform=True)
    classifier = RowHead(run.recipe, run.tokenizer.size, 3, config).eval()
    weights = run.path / "model.safetensors"
    count = transfer(classifier, weights, run.recipe)
    file, own = load_file(weights), classifier.state_dict()
    assert count == len(own) - 2
    assert not any(name.startswith("pooler.") for name in own)
    for name in ("weight", "bias"):
        assert torch.equal(own[f"transform.map.{name}"], file[f"heads.mlm.transform.{name}"])
        assert torch.equal(own[f"transform.norm.{name}"], file[f"heads.mlm.norm.{name}"])
    head = next(each.head for each in run.load().objectives if each.name == "mlm")
    ids = torch.randint(5, run.tokenizer.size, (2, 9))
    with torch.no_grad():
        vectors = pooled(classifier.model(Row(ids))[0], None, pooling, False)
        between = head.norm(activate(head.transform(vectors), head.activation))
        torch.testing.assert_close(classifier(Row(ids, None, None)), classifier.output(between))
    save_file(own, tmp_path / "tuned.safetensors")
    again = RowHead(run.recipe, run.tokenizer.size, 4, config)
    assert transfer(again, tmp_path / "tuned.safetensors", run.recipe) == count


def test_weights_of_another_model_are_refused(run, tmp_path):
    classifier = RowHead(run.recipe, run.tokenizer.size, 3, FinetuneConfig(pooling="cls", dropout=0.1))
    tensors = load_file(run.path / "model.safetensors")
    del tensors["model.embedding.tokens.weight"]
    save_file(tensors, tmp_path / "model.safetensors")
    with pytest.raises(UserError, match=r"model.embedding.tokens.weight is missing"):
        transfer(classifier, tmp_path / "model.safetensors", run.recipe)


def test_sharing_models_transfer_each_part_once(corpus):
    recipe = load_recipe(
        "albert-tiny",
        {"model.encoder.width": 32, "model.encoder.block.ffn.width": 64, "model.embedding.width": 16},
    )
    classifier = RowHead(recipe, 60, 2, FinetuneConfig(pooling="cls", dropout=0.0))
    assert sum(name.startswith("model.encoder.parts.mixer") for name in classifier.state_dict()) == 6
    batch = Row(torch.randint(60, (2, 7)), None, None)
    assert classifier(batch).shape == (2, 2)


def test_layers_copied_apart_are_the_same_function(recipe, tmp_path):
    shared = recipe.changed({"model.encoder.share": "all"})
    pretrained = PretrainingModel(shared, 60).eval()
    save_file(pretrained.state_dict(), tmp_path / "model.safetensors")
    apart = RowHead(recipe, 60, 2, FinetuneConfig(pooling="cls", dropout=0.0)).eval()
    assert transfer(apart, tmp_path / "model.safetensors", shared) == len(apart.state_dict()) - 2
    ids = torch.randint(60, (2, 7))
    assert torch.equal(apart.model(Row(ids))[0], pretrained.model(Row(ids))[0])


@pytest.mark.parametrize("name", ["bart-tiny", "t5-tiny"])
def test_a_source_is_read_as_in_pre_training(name, corpus, monkeypatch):
    """The text and [SEP] for the encoder, which never met [CLS]; [CLS], the text and [SEP] for the decoder."""
    recipe, opened = shrink(name, **{"input.length": 24}), open_corpus(corpus)
    tokenizer = opened.tokenizer
    torch.manual_seed(0)
    classifier = RowHead(recipe, tokenizer.size, 3, FinetuneConfig(pooling="last", dropout=0.0)).eval()
    read = []
    exact = type(classifier.model).encode
    monkeypatch.setattr(
        type(classifier.model), "encode", lambda self, source: (read.append(source), exact(self, source))[1]
    )
    format = InputFormat(tokenizer, recipe, 24)
    encoded = format.encode(["The river", "The old doctor opens"])
    batch = collate(encoded, np.arange(2), format)
    classifier(batch)
    source = read.pop()
    for row, text in enumerate(["The river", "The old doctor opens"]):
        ids = tokenizer.encode([text])[0][0].tolist()
        assert source.ids[row][source.padding_mask[row]].tolist() == [*ids, tokenizer.separator]
        assert batch.ids[row][batch.padding_mask[row]].tolist() == [tokenizer.start, *ids, tokenizer.separator]
    module = PretrainingModel(recipe, tokenizer.size)
    trained = make_batches(recipe, module, opened, seed=0).step(0)[0]
    assert not (trained.row.source.ids == tokenizer.start).any()
    assert (trained.row.ids[:, 0] == tokenizer.start).all()


def test_the_last_layer_is_that_of_a_fine_tuned_run_for_the_same_classes_alone(fitted, task):
    """Other classes, though as many, have one of their own."""
    source = open_source(fitted.path, None)
    own = load_file(fitted.path / "model.safetensors")
    other = Classification(task, ["animal", "plant", "stone"])
    for learned, taught in ((source.learned, True), (other, False)):
        format = InputFormat(source.tokenizer, source.recipe, 32)
        setting = Setting(source.config, learned, format, 0, Placement(torch.device("cpu"), "float32"))
        head, count = new_head(source, setting)
        assert torch.equal(head.output.weight, own["output.weight"]) == taught
        assert torch.equal(head.pooler.weight, own["pooler.weight"])
        assert count == len(own) - (0 if taught else 2)
