"""Trainings that start from other runs: the same function at step 0, grown or not, and nothing else needed later."""

import shutil

import pytest
import torch
from safetensors.torch import load_file
from tests.conftest import shrink
from tests.interrupting import interrupt_at

from bakeoff.errors import Interrupted, UserError
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.optimization.budget import Budget
from bakeoff.preparation.prepare import prepare
from bakeoff.recipe import Recipe
from bakeoff.row import Row, Source
from bakeoff.tokenizer.tokenizer_config import TokenizerConfig
from bakeoff.trainer import loop
from bakeoff.training.initial_weights import Start, options_as
from bakeoff.training.pretrain import pretrain


def train(recipe, corpus, out, **options):
    path = None if corpus is None else corpus.path
    return pretrain(recipe, path, out, progress=False, device="cpu", **options)


def validations(run):
    return [line["losses"] for line in run.metrics() if line["kind"] == "validation"]


def interrupted(monkeypatch, step, call):
    """A training that SIGINT reaches while that step is made."""
    with monkeypatch.context() as patch:
        interrupt_at(patch, step)
        with pytest.raises(Interrupted):
            call()


@pytest.fixture(scope="module")
def albert(corpus, tmp_path_factory):
    recipe = shrink("albert-tiny", **{"model.encoder.share": "all"})
    return train(recipe, corpus, tmp_path_factory.mktemp("runs") / "albert")


def test_what_was_asked_of_a_run_is_asked_again_of_one_that_starts_from_it(corpus, tmp_path):
    """And not what it had become on its machine, in its length and for its text."""
    recipe = shrink("bert-tiny", **{"training.compile": "auto", "training.budget": {"steps": 1}})
    run = train(recipe, corpus, tmp_path / "run")
    asked, had = recipe.training, run.recipe.training
    again = Start(run=run.path).recipe().training
    for key in ("precision", "compile", "optimizer"):
        assert getattr(again, key) == getattr(asked, key)
    assert (asked.precision, asked.compile) == ("auto", "auto")
    assert "auto" not in (had.precision, had.compile)


@pytest.fixture(scope="module")
def bert(corpus, tmp_path_factory):
    return train(shrink("bert-tiny"), corpus, tmp_path_factory.mktemp("runs") / "bert")


@pytest.fixture(scope="module")
def gpt(corpus, tmp_path_factory):
    return train(shrink("gpt-tiny"), corpus, tmp_path_factory.mktemp("runs") / "gpt")


def test_it_goes_on_from_the_runs_loss_with_the_runs_recipe(albert, corpus, tmp_path):
    run = train(None, corpus, tmp_path / "run", start=Start(run=albert.path))
    assert validations(run)[0] == validations(albert)[-1]
    assert validations(run)[-1] != validations(albert)[-1]
    assert run.recipe == albert.recipe
    taken = run.environment["initial_weights"]
    assert taken == {
        "tensors": taken["of"],
        "of": len(load_file(run.path / "model.safetensors")),
        "fresh": [],
        "unused": [],
    }
    assert run.environment["origin"] == f"from {albert.path}"
    assert f"| begun | from {albert.path} |" in (run.path / "README.md").read_text()
    assert "begun |" not in (albert.path / "README.md").read_text()


def test_one_killed_before_its_first_checkpoint_does_not_go_on_from_chance(albert, corpus, tmp_path, monkeypatch):
    start, out = Start(run=albert.path), tmp_path / "run"
    interrupted(monkeypatch, 0, lambda: train(None, corpus, out, start=start))
    shutil.rmtree(out / "checkpoints")  # as a kill leaves it
    (out / "metrics.jsonl").unlink(missing_ok=True)
    with pytest.raises(UserError, match=f"begun from {albert.path}, and stopped before its first checkpoint; give"):
        train(None, None, out, resume=True)
    run = train(None, corpus, out, start=start, resume=True)
    assert validations(run)[0] == validations(albert)[-1]


def test_unsharing_by_the_recipe_keeps_the_loss(albert, corpus, tmp_path):
    recipe = albert.recipe.changed({"model.encoder.share": "none"})
    run = train(recipe, corpus, tmp_path / "run", start=Start(run=albert.path))
    assert validations(run)[0] == validations(albert)[-1]
    assert len(load_file(run.path / "model.safetensors")) > len(load_file(albert.path / "model.safetensors"))


@pytest.mark.parametrize("by", ["repeat", "interleave"])
def test_growing_a_shared_run_is_applying_its_layer_more_often(albert, by, corpus, tmp_path):
    start = Start(run=albert.path, grow=3, grow_by=by)
    run = train(None, corpus, tmp_path / "run", start=start, budget=Budget(steps=1))
    assert run.recipe.model.encoder.layers == 3
    assert run.environment["origin"] == f"from {albert.path}, grown to 3 layers by {by}"
    module = albert.load()
    module.model.stack.layers = (module.model.stack.layers[0],) * 3
    torch.manual_seed(1)
    deep = PretrainingModel(run.recipe, run.tokenizer.size).eval()
    assert start.load(deep, corpus)["fresh"] == []
    ids = torch.arange(5, 25).view(2, 10)
    assert torch.equal(deep.model(Row(ids))[0], module.model(Row(ids))[0])


def test_a_generator_is_taken_but_by_a_model_that_grows(corpus, tmp_path):
    """Since a generator is a narrow copy of the model, which then has other layers than the run's."""
    electra = train(shrink("electra-tiny", **{"training.budget": {"steps": 2}}), corpus, tmp_path / "electra")
    for start in (Start(run=electra.path), Start(run=electra.path, grow=3)):
        module = PretrainingModel(start.recipe(), corpus.tokenizer.size)
        taken = start.load(module, corpus)
        old, new = (each.generator.state_dict() for each in (electra.load(), module))
        kept = [name for name in old if torch.equal(old[name], new[name])]
        if start.grow is None:
            assert (taken["fresh"], taken["unused"], set(kept)) == ([], [], set(new))
        else:
            assert (taken["fresh"], taken["unused"]) == (["generator"], ["generator"])
            assert all("norm" in name or name.endswith("bias") for name in kept)  # which begin alike in all models


def test_heads_of_other_objectives_are_fresh(albert, corpus, tmp_path):
    recipe = albert.recipe.changed({"objective": [{"kind": "mlm", "ngram": 3}, {"kind": "nsp"}]})
    run = train(recipe, corpus, tmp_path / "run", start=Start(run=albert.path))
    assert run.environment["initial_weights"]["fresh"] == ["heads.nsp"]
    assert run.environment["initial_weights"]["unused"] == ["heads.sop"]


def test_parts_that_only_the_run_has_are_named(bert, corpus):
    """Without biases the model is another function than the run's: its first loss is not the run's last."""
    module = PretrainingModel(bert.recipe.changed({"model.bias": False}), corpus.tokenizer.size)
    taken = Start(run=bert.path).load(module, corpus)
    assert taken["fresh"] == []
    biases = [name for name in load_file(bert.path / "model.safetensors") if name.endswith(".bias")]
    assert "model.encoder.parts.ffn.*.function.output.bias" in taken["unused"]
    assert all(each.endswith(".bias") for each in taken["unused"])
    assert len(taken["unused"]) < len(biases)


def test_a_resumed_training_does_not_need_the_run_it_came_from(bert, corpus, tmp_path, monkeypatch):
    source = tmp_path / "source"
    shutil.copytree(bert.path, source)
    start = Start(run=source, grow=3)
    whole = train(None, corpus, tmp_path / "whole", start=start)
    interrupted(monkeypatch, 5, lambda: train(None, corpus, tmp_path / "later", start=start))

    def killed(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:  # before there is a checkpoint of any step
        patch.setattr(loop, "optimize", killed)
        with pytest.raises(KeyboardInterrupt):
            train(None, corpus, tmp_path / "early", start=start)
    shutil.rmtree(source)
    for name in ("later", "early"):
        parts = train(None, corpus, tmp_path / name, start=start, resume=True)
        expected = load_file(whole.path / "model.safetensors")
        for key, value in load_file(parts.path / "model.safetensors").items():
            assert torch.equal(value, expected[key]), key
        assert validations(parts) == validations(whole)
    with pytest.raises(UserError, match=r'begun with first weights "from .*, not "random"; --resume goes on'):
        train(whole.recipe, corpus, tmp_path / "later", resume=True)


def sequence_to_sequence(objective="denoising"):
    """A recipe whose stacks are those of shrunk bert-tiny and gpt-tiny."""
    values = shrink("bert-tiny").model_dump(mode="json")
    values["model"]["decoder"] = shrink("gpt-tiny").model_dump(mode="json")["model"]["decoder"]
    values["model"]["decoder"]["block"] |= {"cross": {"heads": 2}}
    values |= {"objective": [{"kind": objective}], "input": {"format": "blocks", "length": 32, "isolate": False}}
    return Recipe.parse(values, "both")


def test_encoder_and_decoder_start_from_runs_of_their_own(bert, gpt, corpus):
    torch.manual_seed(1)
    module = PretrainingModel(sequence_to_sequence(), corpus.tokenizer.size).eval()
    fresh = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    taken = Start(encoder=bert.path, decoder=gpt.path).load(module, corpus)
    own = ["model.target_embedding.norm", "model.target_embedding.segments"]  # GPT's embedding has neither
    assert taken["fresh"] == ["model.decoder.parts.cross", *own]
    ids = torch.arange(5, 25).view(2, 10)
    assert torch.equal(module.model.encode(Source(ids))[0], bert.load().model(Row(ids))[0])
    found, there = module.state_dict(), load_file(gpt.path / "model.safetensors")
    counted = 0
    for name, tensor in found.items():
        if name.startswith(tuple(taken["fresh"])):
            continue
        source = name.replace("target_embedding", "embedding")
        expected = there[source] if source != name or "decoder" in name else None
        assert expected is None or torch.equal(tensor, expected), name
        counted += expected is not None
    assert counted == sum(name.startswith("model.decoder.") for name in there) + 1
    cross = "model.decoder.parts.cross.0.function.output.weight"
    assert torch.equal(found[cross], fresh[cross])


def test_marks_of_the_objective_stay_fresh_in_the_table(bert, corpus):
    module = PretrainingModel(sequence_to_sequence("span_corruption"), corpus.tokenizer.size)
    before = module.model.embedding.weight.detach().clone()
    Start(encoder=bert.path).load(module, corpus)
    table, size = module.model.embedding.weight, corpus.tokenizer.size
    assert torch.equal(table[:size], bert.load().model.embedding.weight)
    assert torch.equal(table[size:], before[size:])
    assert len(table) == size + 100


def test_a_sequence_to_sequence_run_that_starts_from_others_trains(bert, gpt, corpus, tmp_path):
    start = Start(encoder=bert.path, decoder=gpt.path)
    run = train(sequence_to_sequence("span_corruption"), corpus, tmp_path / "run", start=start)
    assert run.finished
    assert run.environment["initial_weights"]["tensors"] > 0


def test_an_encoder_alone_leaves_the_decoder_fresh(bert, corpus):
    module = PretrainingModel(sequence_to_sequence(), corpus.tokenizer.size)
    fresh = Start(encoder=bert.path).load(module, corpus)["fresh"]
    parts = [f"model.decoder.parts.{name}" for name in ("cross", "ffn", "mixer")]
    assert fresh == [*parts, *(f"model.target_embedding.{name}" for name in ("norm", "positions", "segments"))]


def test_what_does_not_fit_is_one_line_and_leaves_nothing(bert, gpt, corpus, tmp_path):
    def refused(message, recipe, **start):
        with pytest.raises(UserError, match=message) as caught:
            train(recipe, corpus, tmp_path / "run", start=Start.parse(start, "pretrain"))
        assert "\n" not in str(caught.value)
        assert not (tmp_path / "run").exists()

    own = bert.recipe
    narrow = own.changed({"model.encoder.block.ffn.width": 48})
    refused(
        r"bert: model\.encoder\.parts\.ffn\S+input.weight is \(48, 32\) here, but \(32, 32\) there; give .* --set, or",
        narrow,
        run=bert.path,
    )
    before = own.changed({"model.encoder.block.norm": "pre"})
    refused(
        "this model needs model.encoder.norm.weight, which the run's does not have; begin from", before, run=bert.path
    )
    refused("has 3 layers, but the run's has 2; --grow 3", own.changed({"model.encoder.layers": 3}), run=bert.path)
    refused("--grow 1: the encoder has 2 layers already", None, run=bert.path, grow=1)
    refused("--grow 2: .*bert has 2 layers already", None, run=bert.path, grow=2)
    refused("this model has a decoder, but the run's has none", gpt.recipe, run=bert.path)
    refused("no such run", None, run=tmp_path / "absent")
    refused("is not sequence-to-sequence; start it with --from", own, encoder=bert.path)
    refused("name the recipe of the sequence-to-sequence model", None, encoder=bert.path)
    refused("give either --from or --encoder-from, not both", own, run=bert.path, encoder=bert.path)
    refused("give either --from or --encoder-from, to which --grow", own, grow=4)
    refused("--grow is for --from", own, encoder=bert.path, grow=4)
    refused("--decoder-from needs --encoder-from", own, run=bert.path, decoder=gpt.path)
    with pytest.raises(UserError, match="give a recipe, or a run to start from"):
        train(None, corpus, tmp_path / "run")
    module = PretrainingModel(sequence_to_sequence(), corpus.tokenizer.size)
    with pytest.raises(UserError, match=r"--encoder-from .*gpt: that run's model has no encoder"):
        Start(encoder=gpt.path).load(module, corpus)
    with pytest.raises(UserError, match=r"--decoder-from .*bert: that run's model has no decoder"):
        Start(encoder=bert.path, decoder=bert.path).load(module, corpus)


def test_the_words_of_a_start_say_how_a_command_begins_in_its_way():
    for start, options in (
        (Start(run="a"), "--from RUN"),
        (Start(run="a", grow=12, grow_by="interleave"), "--from RUN --grow 12 --grow-by interleave"),
        (Start(encoder="a"), "--encoder-from RUN"),
        (Start(encoder="a", decoder="b"), "--encoder-from RUN --decoder-from RUN"),
    ):
        assert options_as(str(start)) == options


def test_the_corpus_must_have_the_runs_tokenizer(bert, text_folder, tmp_path):
    settings = {"document_per_line": True, "validation": 0.1, "workers": 0}
    other = prepare([text_folder], tmp_path / "corpus", tokenizer=TokenizerConfig(size=150), **settings)
    with pytest.raises(UserError, match=r"prepared with another tokenizer than .*bert; prepare it with --tokenizer"):
        train(None, other, tmp_path / "run", start=Start(run=bert.path))
    assert not (tmp_path / "run").exists()
