"""Recipes of a plan with settings of their own, trained: runs as they are, other texts, budgets and depths."""

import json
import shutil

import pytest
from test_starts import STILL, go, worst, write_plan
from tests.conftest import shrink

from bakeoff.comparison.comparable import comparable_losses
from bakeoff.comparison.forecast import forecast_comparison
from bakeoff.comparison.reporting.cautions import cautions
from bakeoff.comparison.reporting.report import write_report
from bakeoff.comparison.reporting.unequal import budget_text
from bakeoff.comparison.results import Results
from bakeoff.corpus.store import Corpus
from bakeoff.errors import UserError
from bakeoff.json_files import read_json
from bakeoff.optimization.budget import Budget
from bakeoff.preparation.prepare import prepare
from bakeoff.runs.run import Run
from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.tokenizer.tokenizer_config import TokenizerConfig
from bakeoff.training.pretrain import pretrain


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """A corpus, whose text is there, and a run with another tokenizer."""
    folder = tmp_path_factory.mktemp("texts")
    lines = [f"The river {n} is old. A bank, {n % 7} boats. It goes on." for n in range(300)]
    (folder / "text.txt").write_text("\n\n".join(lines))
    common = {"document_per_line": True, "workers": 1}
    prepare(folder / "text.txt", folder / "corpus", tokenizer=TokenizerConfig(size=90), validation=0.2, **common)
    elsewhere = TokenizerConfig(kind="byte_bpe", size=300)
    prepare(folder / "text.txt", folder / "elsewhere", tokenizer=elsewhere, validation=0.2, **common)
    recipe, options = shrink("bert-tiny"), {"device": "cpu", "progress": False}
    pretrain(recipe, folder / "elsewhere", folder / "runs/theirs", budget=Budget(steps=2), **options)
    return folder


@pytest.fixture
def folder(tmp_path, texts):
    rows = "text\tlabel\n" + "".join(f"the river {number} of two\t{number % 2}\n" for number in range(20))
    (tmp_path / "rows.tsv").write_text(rows)
    (tmp_path / "tiny.yaml").write_text(shrink("bert-tiny").to_yaml())
    shutil.copytree(texts / "runs/theirs", tmp_path / "theirs")
    return tmp_path


@pytest.mark.slow
def test_a_model_as_it_is_further_trained_and_from_scratch_stand_in_one_table(folder, texts):
    """What a company asks first; the model has another tokenizer than the company's corpus."""
    arms = [
        {"recipe": "./theirs", "name": "as it is", "budget": 0},
        {"recipe": "./theirs", "name": "further"},
        {"recipe": "./theirs", "name": "from scratch", "start": "random"},
    ]
    plan, lines = write_plan(folder, texts / "corpus", arms, seeds=2), []
    results = go(plan, progress=lines.append)
    as_it_is, further, scratch = results.recipes
    assert (as_it_is.as_it_is, as_it_is.runs, as_it_is.steps) == (True, [], 0)
    assert [len(entry.scores) for entry in results.recipes] == [4, 4, 4]
    assert {seed: (each.tensors, each.of) for seed, each in as_it_is.starts.items()} == {
        seed: (further.starts[seed].of, further.starts[seed].of) for seed in (0, 1)
    }
    assert scratch.starts == {}
    # The run is fine-tuned where it stands, and nothing in it is changed.
    tuned = FinetunedRun.open(folder / "out" / as_it_is.scores[0].predictions.rpartition("/")[0])
    assert tuned.results.source == str((folder / "theirs").resolve())
    assert worst(folder / "theirs", texts / "runs/theirs") == 0
    assert not (folder / "out/runs/as-it-is/seed-0/pretrain").exists()
    # Further training reads the corpus's text in the model's tokens, and the same text is held out.
    trained = Run.open(folder / "out" / further.runs[0].path)
    assert trained.tokenizer.to_string() == Run.open(folder / "theirs").tokenizer.to_string()
    mine, anew = Corpus.open(texts / "corpus"), Corpus.open(trained.environment["corpus"]["path"])
    assert anew.manifest.splits["validation"].bytes == mine.manifest.splits["validation"].bytes
    assert anew.manifest.splits["train"].words == mine.manifest.splits["train"].words
    # Random weights have the corpus's own tokenizer.
    assert Run.open(folder / "out" / scratch.runs[0].path).tokenizer.to_string() == mine.tokenizer.to_string()
    told = "\n".join(cautions(results))
    assert "“as it is” is compared as it is, without a training here" in told
    assert "Other tokenizers than the corpus's" in told
    assert [[entry.label for entry in panel.entries] for panel in comparable_losses(results)] == [
        ["further"],
        ["from scratch"],
    ] * len(further.runs[0].curve[0].losses)
    write_report(results, folder / "report.html")
    assert Results.read(folder / "out/results.json") == results
    again = []
    assert go(plan, progress=again.append).recipes == results.recipes
    assert not [line for line in again if "training" in line or "tuning" in line or "preparing" in line]
    forecast = forecast_comparison(plan, folder / "new", jobs=1)
    of = {(work.what, work.of): work.jobs for work in forecast.works}
    assert ("pre-training", "as it is") not in of
    assert of["pre-training", "further"] == of["pre-training", "from scratch"] == 2
    assert of["fine-tuning", "as it is"] == 4
    assert not (folder / "new").exists()


@pytest.mark.slow
def test_budgets_may_be_unequal_and_the_report_says_so(folder, texts):
    arms = ["tiny.yaml", {"recipe": "tiny.yaml", "name": "longer", "budget": "steps=3"}]
    plan = write_plan(folder, texts / "corpus", arms, from_scratch=False)
    results = go(plan)
    assert [entry.runs[0].steps for entry in results.recipes] == [1, 3]
    assert budget_text(results) == "unequal budgets"
    told = "\n".join(cautions(results))
    assert "Budgets are unequal: “tiny” 1 steps and “longer” 3 steps. Differences between these are also" in told
    assert "was not spent as planned" not in told
    write_report(results, folder / "report.html")
    assert "unequal budgets" in (folder / "report.html").read_text(encoding="utf-8")
    changed = [arms[0], {**arms[1], "budget": "steps=4"}]
    with pytest.raises(UserError, match=r'pretrain: begun with budget "steps=3", not "steps=4"'):
        go(write_plan(folder, texts / "corpus", changed, from_scratch=False))


@pytest.mark.slow
def test_minutes_of_one_recipe_become_steps_beside_steps_of_another(folder, texts):
    arms = ["tiny.yaml", {"recipe": "tiny.yaml", "name": "longer", "budget": "minutes=0.001"}]
    results = go(write_plan(folder, texts / "corpus", arms, from_scratch=False))
    assert [*results.budget.steps] == ["longer"]
    assert results.recipes[0].runs[0].steps == 1
    arms[1]["budget"] = "minutes=0.002"
    with pytest.raises(UserError, match=r'begun with budget of longer "minutes=0\.001", not "minutes=0\.002"'):
        go(write_plan(folder, texts / "corpus", arms, from_scratch=False))


def test_a_recipe_may_have_another_corpus_a_text_or_a_tokenizer_of_its_own(folder, texts):
    more = [{"text": f"More of {n} boats, {n % 3} rivers. The end."} for n in range(300)]
    (folder / "more.jsonl").write_text("".join(json.dumps(each) + "\n" for each in more))
    arms = [
        "tiny.yaml",
        {"recipe": "tiny.yaml", "name": "elsewhere", "corpus": str(texts / "elsewhere")},
        {"recipe": "tiny.yaml", "name": "more", "corpus": "more.jsonl"},
        {"recipe": "tiny.yaml", "name": "bytes", "set": {"tokenizer.kind": "byte_bpe", "tokenizer.size": 280}},
        {"recipe": "tiny.yaml", "name": "the same bytes", "tokenizer": {"kind": "byte_bpe", "size": 280}, "set": STILL},
    ]
    results = go(write_plan(folder, texts / "corpus", arms, from_scratch=False))
    runs = {entry.label: Run.open(folder / "out" / entry.runs[0].path) for entry in results.recipes}
    kinds = {label: (run.tokenizer.config.kind, run.tokenizer.size) for label, run in runs.items()}
    assert kinds["more"] == kinds["tiny"] != kinds["bytes"] == kinds["the same bytes"]
    assert kinds["elsewhere"] == ("byte_bpe", 300)
    corpora = {label: run.environment["corpus"]["path"] for label, run in runs.items()}
    assert corpora["bytes"] == corpora["the same bytes"]
    assert len({*corpora.values()}) == 4
    told = "\n".join(cautions(results))
    assert f"Trained on other texts than {texts / 'corpus'}: “more” on" in told
    assert all(entry.recipe["tokenizer"]["kind"] == kinds[entry.label][0] for entry in results.recipes)
    for settings in ({"tokenizer": {"size": 90}}, {"tokenizer": str(texts / "corpus")}):
        with pytest.raises(UserError, match=r"recipe “same”: tokenizer would have no effect: .* has it already"):
            go(write_plan(folder, texts / "corpus", [{"recipe": "tiny.yaml", "name": "same", **settings}]))


@pytest.mark.slow
def test_a_start_may_grow_and_share_no_longer(folder, texts):
    (folder / "albert.yaml").write_text(shrink("albert-tiny").to_yaml())
    recipe = shrink("albert-tiny")
    options = {"budget": Budget(steps=1), "device": "cpu", "progress": False}
    pretrain(recipe, texts / "corpus", folder / "shallow", **options)
    depth = recipe.model.encoder.layers
    arms = [
        {"recipe": "./shallow", "name": "grown", "grow": 2 * depth},
        {"recipe": "albert.yaml", "name": "by set", "start": "./shallow", "set": {"model.encoder.layers": 2 * depth}},
        {"recipe": "./shallow", "name": "apart", "grow": 2 * depth, "grow_by": "interleave", "unshare": True},
    ]
    arms = [{**arm, "set": {**arm.get("set", {}), **STILL}} for arm in arms]
    results = go(write_plan(folder, texts / "corpus", arms, from_scratch=False))
    whole, before = (Run.open(folder / "out" / entry.runs[0].path) for entry in results.recipes[:2])
    assert whole.recipe.model.encoder.layers == before.recipe.model.encoder.layers == 2 * depth
    assert worst(whole.path, before.path) < 1e-9
    apart = Run.open(folder / "out" / results.recipes[2].runs[0].path)
    assert apart.recipe.model.encoder.share == "none"
    assert [entry.starts[0].grow for entry in results.recipes] == [2 * depth] * 3
    assert f"grown to {2 * depth} layers by interleave" in "\n".join(cautions(results))
    for settings, message in (
        ({"grow": depth}, "grow would have no effect: .*shallow has as many layers already"),
        ({"grow_by": "interleave"}, "grow_by would have no effect: .*shallow has as many layers already"),
        ({"grow": depth - 1}, "layers already, and they only become more"),
        ({"recipe": "./theirs", "unshare": True}, "unshare would have no effect: no layers share weights"),
    ):
        with pytest.raises(UserError, match=message):
            go(write_plan(folder, texts / "corpus", [{"recipe": "./shallow", "name": "no", **settings}]))
    arm = {"recipe": "./shallow", "name": "grown", "grow": 2 * depth}
    shutil.rmtree(folder / "out")
    with pytest.raises(UserError, match="a start that grows is not searched; give it `search: false`"):
        go(write_plan(folder, texts / "corpus", [arm], search={}, budget="steps=600"))


def test_a_level_of_a_tokenizers_factor_may_be_that_of_the_corpus(folder, texts):
    had = Corpus.open(texts / "corpus").tokenizer.size
    sizes = {"recipe": "tiny.yaml", "grid": {"tokenizer.size": [had, 60]}}
    plan = write_plan(folder, texts / "corpus", [sizes], from_scratch=False)
    results = go(plan)
    assert [entry.corpus and entry.corpus.tokenizer for entry in results.recipes] == [None, "wordpiece of 60, cased"]


def test_a_recipe_may_be_fine_tuned_in_its_own_way(folder, texts):
    arms = ["tiny.yaml", {"recipe": "tiny.yaml", "name": "frozen", "finetune": {"freeze": "model"}}]
    results = go(write_plan(folder, texts / "corpus", arms))
    for entry in results.recipes:
        for score in entry.scores:
            settings = FinetunedRun.open(folder / "out" / score.predictions.rpartition("/")[0]).config
            assert settings.freeze == ("model" if entry.label == "frozen" else None)
            assert settings.length == 16  # the task's
    kept = read_json(folder / "out/runs/frozen/seed-0/two/pretrained-0.settings.json")
    assert kept["finetune"]["freeze"] == "model"
    assert "Fine-tuned otherwise than the others: “frozen” with freeze: model." in cautions(results)
