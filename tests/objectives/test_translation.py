import numpy as np
import pytest
import torch
from tests.conftest import digit_pairs, gathered_of, shrink

import bakeoff
from bakeoff.errors import UserError
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.preparation.prepare_pairs import prepare_pairs
from bakeoff.tokenizer.tokenizer_config import TokenizerConfig
from bakeoff.training.stages import make_batches

NAME = "transformer-translation-tiny"


def module_and_batch(corpus, **changes):
    recipe = shrink(NAME, **changes)
    torch.manual_seed(0)
    module = PretrainingModel(recipe, corpus.tokenizer.size).eval()
    (batch,) = make_batches(recipe, module, corpus, seed=0).step(0)
    return module, batch


def test_the_decoder_reads_the_target_one_token_late_and_the_encoder_the_source(parallel_corpus):
    _, batch = module_and_batch(parallel_corpus)
    tokenizer = parallel_corpus.tokenizer
    known = {"".join(source.split()): "".join(target.split()) for source, target in digit_pairs(600, longest=10)}
    labels = torch.full(batch.row.ids.shape, tokenizer.pad).flatten()
    rows, wanted = batch.targets["translation"]
    labels[rows] = wanted
    labels = labels.view(batch.row.ids.shape)
    for source, read, written in zip(batch.row.source.ids, batch.row.ids, labels, strict=True):
        length = int((written != tokenizer.pad).sum())
        assert written[length - 1] == tokenizer.separator
        assert read[0] == tokenizer.start
        assert torch.equal(read[1:length], written[: length - 1])
        text = "".join(tokenizer.decode(source[source != tokenizer.pad]).split())
        assert "".join(tokenizer.decode(written[:length]).split()) == known[text]


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.6])
def test_smoothed_labels_are_those_of_torch(parallel_corpus, smoothing):
    objective = [{"kind": "translation", "label_smoothing": smoothing}]
    module, batch = module_and_batch(parallel_corpus, objective=objective)
    table = module.model.embedding.weight
    found = module(batch)[0]["translation"]
    found.backward()
    gradient, table.grad = table.grad, None
    rows, labels = gathered_of(module, batch)[0]["translation"]
    scores = rows @ table.T
    expected = torch.nn.functional.cross_entropy(scores, labels, label_smoothing=smoothing, reduction="sum")
    expected.backward()
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(gradient, table.grad, atol=1e-5, rtol=1e-4)
    head = module.heads["translation"]  # what is held out is measured without smoothing
    torch.testing.assert_close(head.log_probabilities(rows, table), scores.log_softmax(-1))


@pytest.mark.parametrize(
    ("name", "which", "message"),
    [
        (NAME, "corpus", r"holds a text, but translation needs pairs; prepare them with `bakeoff prepare --source A"),
        ("t5-tiny", "parallel_corpus", "holds pairs, on which translation is trained; span_corruption needs a text"),
        ("gpt-tiny", "parallel_corpus", "holds pairs, on which translation is trained; clm needs a text"),
    ],
)
def test_the_wrong_corpus_is_refused_before_anything_else(name, which, message, request, tmp_path):
    corpus = request.getfixturevalue(which)
    with pytest.raises(UserError, match=message):
        bakeoff.pretrain(shrink(name), corpus.path, tmp_path / "run", device="cpu", progress=False)
    assert not (tmp_path / "run").exists()


def test_pairs_that_are_longer_than_a_row_are_refused(parallel_corpus, tmp_path):
    longest = int(np.diff(parallel_corpus.train.sentences).max()) + 1
    message = rf"input.length: 8 tokens with \[SEP\], but the corpus has pairs of {longest}; set it to {longest}"
    with pytest.raises(UserError, match=message):
        bakeoff.pretrain(shrink(NAME, **{"input.length": 8}), parallel_corpus.path, tmp_path / "run", progress=False)


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    """A run that has learned to write digits in words; the two sides have vocabularies of their own."""
    folder = tmp_path_factory.mktemp("digits")
    for name, side in (("digits", 0), ("words", 1)):
        (folder / name).write_text("".join(f"{pair[side]}\n" for pair in digit_pairs(1500, 3)), encoding="utf-8")
    corpus = prepare_pairs(
        folder / "digits",
        folder / "words",
        folder / "corpus",
        tokenizer=TokenizerConfig(kind="word", size=60),
        separate_vocabularies=True,
        validation=0.05,
        workers=0,
    )
    changes = {
        "training.batch": {"tokens": 512},
        "training.budget": {"steps": 150},
        "training.optimizer.lr": 1e-2,
        "model.dropout": 0.0,
        "model.embedding.positions": "learned",
        "model.encoder.block.norm": "pre",
        "model.decoder.block.norm": "pre",
    }
    run = bakeoff.pretrain(shrink(NAME, **changes), corpus.path, folder / "run", device="cpu", progress=False)
    return run, corpus


def test_a_run_translates_as_it_has_learned(learned):
    run, _ = learned
    sources, targets = zip(*digit_pairs(30, 3, seed=5), strict=True)
    for config in ({"temperature": 0}, {"beams": 3}):
        written = bakeoff.generate(run, sources, bakeoff.GenerationConfig(tokens=8, **config), device="cpu")
        assert sum(a == b for a, b in zip(written, targets, strict=True)) >= 25
    assert bakeoff.generate(run, ["", "  7 "], bakeoff.GenerationConfig(beams=2), device="cpu") == ["", "seven"]


def test_held_out_pairs_of_another_corpus_are_evaluated(learned, tmp_path):
    run, corpus = learned
    (tmp_path / "d").write_text("".join(f"{pair[0]}\n" for pair in digit_pairs(90, 3, seed=6)), encoding="utf-8")
    (tmp_path / "w").write_text("".join(f"{pair[1]}\n" for pair in digit_pairs(90, 3, seed=6)), encoding="utf-8")
    own = run.path / "tokenizer.json"
    other = prepare_pairs(tmp_path / "d", tmp_path / "w", tmp_path / "c", tokenizer=own, validation=0.9, workers=0)
    found = bakeoff.evaluate(run.path, corpus=other.path, device="cpu")
    loss = found["losses"]["translation"]
    assert loss < 0.5 * corpus.validation.unigram_entropy()
    assert found["accuracy"]["translation"] > 0.9
    assert found["bits_per_byte"]["translation"] == pytest.approx(
        loss / 0.6931471805599453 * other.validation.tokens_per_byte
    )


def test_every_pair_is_read_to_its_last_token(parallel_corpus):
    """The last one ends where the text does."""
    recipe = shrink(NAME)
    batches = make_batches(recipe, PretrainingModel(recipe, parallel_corpus.tokenizer.size), parallel_corpus, seed=0)
    split, size = parallel_corpus.train, batches.texts[0].format.size
    indices = np.array([0, size // 2, size - 1])
    found = batches.texts[0].format.examples(indices, None)
    bounds = np.asarray(split.sentences)
    for row, index in enumerate(indices):
        for ids, side in ((found.row.source.ids, 2 * index), (found.row.ids, 2 * index + 1)):
            text = split.tokens[bounds[side] : bounds[side + 1]].tolist()
            assert ids[row, : len(text) + 1].tolist() == [*text, parallel_corpus.tokenizer.separator]
            assert (ids[row, len(text) + 1 :] == parallel_corpus.tokenizer.pad).all()
