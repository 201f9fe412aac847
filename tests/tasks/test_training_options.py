"""What a fine-tuning trains: depths, frozen and fresh layers, what is read of the layers, rates and other losses."""

import math

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tests.conftest import shrink, without_dropout

from bakeoff.errors import UserError
from bakeoff.recipe_files import load_recipe
from bakeoff.resources.device import Placement
from bakeoff.row import Row
from bakeoff.tasks.data import load_task
from bakeoff.tasks.finetune import finetune
from bakeoff.tasks.finetune_config import FinetuneConfig
from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.tasks.fitting.fitting import Fitting, Setting, TaskSplit
from bakeoff.tasks.fitting.resolution import default_learning_rate, resolve_finetuning
from bakeoff.tasks.fitting.starting_point import StartingPoint, new_head
from bakeoff.tasks.fitting.trial import FittingTrial
from bakeoff.tasks.heads.depths import depths, fresh_tensors
from bakeoff.tasks.heads.heads import RowHead
from bakeoff.tasks.heads.layer_reading import layer_states
from bakeoff.tasks.rows.batches import collate
from bakeoff.tasks.rows.inputs import InputFormat
from bakeoff.tokenizer.tokenizer import Tokenizer
from bakeoff.trainer.loop import steps
from bakeoff.trainer.position import Position
from bakeoff.trainer.step import optimize

QUIET = {"device": "cpu", "progress": False}
BRIEF = {"learning_rate": [1e-3], "epochs": 1, "least_steps": 0, "evaluations": 2}
CPU = torch.device("cpu")


def inputs_of(vocabulary=40, length=9):
    ids = torch.randint(5, vocabulary, (3, length), generator=torch.Generator().manual_seed(0))
    return Row(ids, None, None)


def head_of(recipe, **settings):
    torch.manual_seed(0)
    return RowHead(recipe, 40, 3, FinetuneConfig(pooling="mean", **settings))


def setting_of(recipe, corpus, task, **settings):
    """A training on the task of keywords."""
    from bakeoff.tokenizer.tokenizer import Tokenizer

    tokenizer, data = Tokenizer.load(corpus), load_task(task)
    config = FinetuneConfig(**{**BRIEF, "pooling": "mean", "length": 32, **settings})
    setting = Setting(config, data.task, InputFormat(tokenizer, recipe, 32), 0, Placement(CPU, "float32"))
    part = TaskSplit(data.train, data.task.encode(data.train, setting.format))
    return setting, part, StartingPoint(recipe, tokenizer, None)


def test_depths_go_from_the_embedding_to_the_head():
    head = head_of(load_recipe("bert-tiny"))
    found, layers = depths(head)
    assert layers == 2
    assert {found[name] for name in found if name.startswith("model.embedding")} == {0}
    for name, depth in found.items():
        if name.startswith("model.encoder.parts"):
            assert depth == int(name.split(".")[4]) + 1
    assert found["output.weight"] == 3


@pytest.mark.parametrize(("name", "layers"), [("albert-tiny", 2), ("bart-tiny", 4), ("elmo-tiny", 2), ("t5-tiny", 4)])
def test_depths_of_shared_layers_of_two_stacks_and_of_two_directions(name, layers):
    head = head_of(shrink(name), layers=1)
    found, count = depths(head)
    assert count == layers
    of_encoder = {depth for name, depth in found.items() if name.startswith("model.encoder.parts")}
    of_decoder = {depth for name, depth in found.items() if ".decoder.parts" in name}
    if name == "albert-tiny":
        assert of_encoder == {layers}  # a shared part belongs to the topmost of its layers
    elif name == "elmo-tiny":
        backward = {depth for name, depth in found.items() if "backward_decoder.parts" in name}
        assert backward == {1, 2} == of_decoder - backward | backward
    else:
        assert (of_encoder, of_decoder) == ({1, 2}, {3, 4})


@pytest.mark.parametrize("frozen", [0, 1, "model"])
def test_what_is_frozen_keeps_the_weights_of_the_run(run, task, tmp_path, frozen):
    result = finetune(run, task, tmp_path / "out", config=FinetuneConfig(**BRIEF, freeze=frozen), **QUIET)
    before, after = load_file(run.path / "model.safetensors"), load_file(result.path / "model.safetensors")
    highest = 2 if frozen == "model" else frozen
    head = FinetunedRun.open(result.path).load()
    for name, depth in depths(head)[0].items():
        if name.startswith("model."):
            assert torch.equal(before[name], after[name]) == (depth <= highest), name


def first_loss(source, setting, part):
    """The loss of the first step, over all of train."""
    fitting = Fitting(new_head(source, setting)[0], part, part, FittingTrial(1e-9, 1), setting)
    fitting.begin()
    means = optimize(fitting, fitting.batches(0), 0)
    return sum(fitting.weights(0)[name] * float(mean) for name, mean in means.items() if name != "gradient_norm")


WHOLE = {"batch": 240, "evaluations": 1, "dropout": 0.0}


def test_features_of_a_frozen_model_have_no_dropout(recipe, corpus, task):
    for frozen, same in (("model", True), (1, False)):
        setting, part, source = setting_of(recipe, corpus, task, freeze=frozen, **WHOLE)
        scores = new_head(source, setting)[0].eval()(collate(part.items.encoded, np.arange(240), setting.format))
        expected = torch.nn.functional.cross_entropy(scores, torch.tensor(part.items.targets)).item()
        assert (first_loss(source, setting, part) == pytest.approx(expected, abs=1e-5)) == same


def test_the_last_layers_begin_anew_and_the_others_with_the_weights_of_the_run(run, recipe, corpus, task):
    setting, _, scratch = setting_of(recipe, corpus, task, reinitialise_last=1, pooling="cls")
    fresh, _ = new_head(scratch, setting)
    found, count = new_head(StartingPoint(recipe, run.tokenizer, run), setting)
    before = load_file(run.path / "model.safetensors")
    levels, _ = depths(found)
    for name, tensor in found.state_dict().items():
        if levels[name] >= 2:
            assert torch.equal(tensor, fresh.state_dict()[name]), name
        else:
            assert torch.equal(tensor, before[name]), name
    assert count == sum(level < 2 for level in levels.values())


def test_layers_that_share_cannot_begin_anew_alone():
    with pytest.raises(UserError, match=r"share parts, so the last 1 cannot begin anew alone; give --unshare"):
        fresh_tensors(head_of(shrink("albert-tiny")), 1)
    assert fresh_tensors(head_of(shrink("albert-tiny")), 2)


@pytest.mark.parametrize(
    "name", ["bert-tiny", "laptop-encoder-tiny", "elmo-tiny", "conv-light-encoder-tiny", "gpt-tiny"]
)
def test_the_last_state_is_what_the_model_gives_and_those_before_what_shallower_ones_give(name):
    recipe = without_dropout(load_recipe(name))
    torch.manual_seed(0)
    model = recipe.model.build(40 + recipe.extra_tokens).eval()
    states = layer_states(model, inputs_of())
    assert len(states) == recipe.model.stack.layers + 1
    torch.testing.assert_close(states[-1], model(inputs_of())[0], rtol=0, atol=0)
    if model.backward_decoder is None:
        side = "decoder" if recipe.model.encoder is None else "encoder"
        shallow = recipe.changed({f"model.{side}.layers": 1}).model.build(40 + recipe.extra_tokens).eval()
        shallow.load_state_dict(model.state_dict(), strict=False)  # with the last norm, where there is one
        torch.testing.assert_close(states[1], shallow(inputs_of())[0])


def test_a_head_reads_several_layers_or_their_weighting():
    recipe = without_dropout(load_recipe("bert-tiny"))
    several, weighted = head_of(recipe, layers=2).eval(), head_of(recipe, layers="weighted").eval()
    batch = Row(*inputs_of()[:3])
    states = layer_states(several.model, inputs_of())
    assert torch.equal(several.hidden(batch), torch.cat([states[1], states[2]], -1))
    assert several.output.in_features == 2 * recipe.model.output_width
    with torch.no_grad():
        weighted.reading.weights.copy_(torch.tensor([0.3, -1.0, 2.0]))
        weighted.reading.gamma.copy_(torch.tensor(0.7))
    states = layer_states(weighted.model, inputs_of())
    powers = [math.exp(value) for value in (0.3, -1.0, 2.0)]
    expected = 0.7 * sum(power / sum(powers) * state for power, state in zip(powers, states, strict=True))
    torch.testing.assert_close(weighted.hidden(batch), expected)


def test_weights_of_layers_are_learned_and_saved(run, task, tmp_path):
    result = finetune(
        run, task, tmp_path / "out", config=FinetuneConfig(**BRIEF, layers="weighted", freeze="model"), **QUIET
    )
    saved = load_file(result.path / "model.safetensors")
    assert saved["reading.weights"].abs().sum() > 0
    assert FinetunedRun.open(result.path).load().reading.weights.tolist() == saved["reading.weights"].tolist()


@pytest.mark.parametrize("schedule", ["linear", "cosine", "constant"])
def test_the_rate_follows_the_schedule(recipe, corpus, task, schedule):
    settings = {"warmup": 0.25, "schedule": schedule, "epochs": 2, "batch": 20, "evaluations": 100, "patience": None}
    setting, part, source = setting_of(recipe, corpus, task, **settings, layer_decay=0.5)
    head, _ = new_head(source, setting)
    fitting = Fitting(head, part, part, FittingTrial(0.1, 2), setting)
    rates = [
        {group["factor"]: group["lr"] for group in fitting.optimizer.param_groups}
        for _ in steps(fitting, Position(), fitting.steps)
    ]
    assert len(rates) == 24
    assert all(each[0.125] == pytest.approx(each[1.0] / 8) for each in rates)
    for step, rate in enumerate(each[1.0] for each in rates):
        done = (step - 6) / 18
        behind = {"linear": 1 - done, "cosine": (1 + math.cos(math.pi * done)) / 2, "constant": 1.0}[schedule]
        assert rate == pytest.approx(0.1 * ((step + 1) / 6 if step < 6 else behind))


def test_the_next_token_of_the_texts_is_learned_beside_the_task(causal_recipe, corpus, task):
    recipe = without_dropout(causal_recipe)
    setting, part, source = setting_of(recipe, corpus, task, pooling="last", language_model=0.5, dropout=0.0)
    head, _ = new_head(source, setting)
    batch = collate(part.items.encoded, np.array([0, 5, 7]), setting.format)
    assert batch.padding_mask is not None
    hidden = head.hidden(batch)
    scores = (hidden @ head.model.embedding.weight.T).log_softmax(-1)
    said = [
        -scores[row, place, batch.ids[row, place + 1]].item()
        for row in range(3)
        for place in range(int(batch.padding_mask[row].sum()) - 1)
    ]
    assert head.language_model_loss(hidden, batch).item() == pytest.approx(sum(said) / len(said), rel=1e-5)
    whole = setting.config.model_copy(update=WHOLE)
    alone, both = (
        first_loss(source, setting._replace(config=whole.model_copy(update={"language_model": weight})), part)
        for weight in (0.0, 0.5)
    )
    batch = collate(part.items.encoded, np.arange(240), setting.format)
    assert both - alone == pytest.approx(0.5 * head.language_model_loss(head.hidden(batch), batch).item(), rel=1e-4)


def test_who_cannot_learn_the_next_token_is_refused(recipe, corpus, task, run, tmp_path):
    config = FinetuneConfig(language_model=0.5)
    for source in (recipe, shrink("bart-tiny"), shrink("gpt-bert-tiny")):
        with pytest.raises(UserError, match="read forwards and predict all tokens"):
            finetune(source, task, tmp_path / "out", config=config, tokenizer=corpus, **QUIET)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"freeze": 3}, "freeze: 3 layers, and the model has 2"),
        ({"reinitialise_last": 3}, "reinitialise_last: 3 layers, and the model has 2"),
        ({"reinitialise_last": 1, "freeze": 2}, "some of these layers are frozen, and would stay random"),
        ({"layers": 3}, "layers: the last 3 are to be read, and the model has 2"),
        ({"layers": 2, "transform": True}, "transform: it reads the last layer alone"),
    ],
)
def test_more_layers_than_there_are(run, task, tmp_path, settings, message):
    with pytest.raises(UserError, match=message):
        finetune(run, task, tmp_path / "out", config=FinetuneConfig(**BRIEF, **settings), **QUIET)
    assert list(tmp_path.iterdir()) == []


def test_a_transform_is_for_models_that_have_learnt_hidden_tokens(corpus, task, tmp_path):
    config = FinetuneConfig(transform=True)
    with pytest.raises(UserError, match="transform: it is a part of the head of mlm, and gpt2-tiny learns clm"):
        finetune(shrink("gpt2-tiny"), task, tmp_path / "out", config=config, tokenizer=corpus, **QUIET)


@pytest.mark.parametrize(("width", "rate"), [(768, 5e-5), (1024, 3.8e-5), (384, 1e-4), (128, 3e-4)])
def test_wider_models_learn_at_a_lower_rate(width, rate):
    """That of BERT base (Devlin et al. 2019, appendix A.3) in inverse proportion to the width."""
    recipe = load_recipe("bert-base", {"model.encoder.width": width, "model.encoder.block.mixer.heads": 4})
    assert default_learning_rate(recipe) == rate


def test_a_search_tries_what_is_given_and_else_its_own_rates_and_epochs(recipe, task):
    default = default_learning_rate(recipe)
    for given, rates, epochs in (
        ({}, [default / 2, default, 2 * default, 4 * default], [3, 10]),
        ({"learning_rate": [1e-3, 5e-3]}, [1e-3, 5e-3], [3, 10]),
        ({"epochs": [2, 7]}, [default / 2, default, 2 * default, 4 * default], [2, 7]),
    ):
        found = resolve_finetuning(FinetuneConfig(search=True, **given), recipe, task)
        assert (found.learning_rate, found.epochs) == (pytest.approx(rates), epochs)
    assert resolve_finetuning(FinetuneConfig(), recipe, task).learning_rate == [default]


@pytest.mark.parametrize("settings", [{"epochs": [1, 2, 1]}, {"learning_rate": [1e-3, 0.001]}])
def test_what_a_search_would_try_twice_is_refused(settings):
    with pytest.raises(UserError, match="is given twice; leave one out"):
        FinetuneConfig.parse(settings, "--option")


def test_a_head_that_goes_on_keeps_its_settings_but_for_those_that_are_given(recipe, corpus):
    before = FinetuneConfig(pooling="cls", pooler="relu", transform=True, separators=2, dropout=0.3, batch=7)
    source = StartingPoint(recipe, Tokenizer.load(corpus), None, config=before)
    kept = {"pooling": "cls", "pooler": "relu", "transform": True, "separators": 2}
    for given in ({}, {"separators": 1}, {"pooling": "max", "transform": False, "batch": 9}):
        found = source.continued(FinetuneConfig(**given))
        expected = {**FinetuneConfig().model_dump(), **kept, **given}
        assert found.model_dump() == expected
