"""Recipes of a plan that start from a run, or from a model elsewhere."""

import shutil

import pytest
import yaml
from synthetic_results import make_results
from tests.conftest import shrink
from tests.interop.elsewhere import write_wordpiece

from bakeoff.comparison.execution import compare
from bakeoff.comparison.planning.plan import Plan
from bakeoff.comparison.reporting.cautions import cautions
from bakeoff.comparison.reporting.findings import findings
from bakeoff.comparison.reporting.report import write_report
from bakeoff.comparison.results import Results
from bakeoff.comparison.running.engine import Engine
from bakeoff.errors import UserError
from bakeoff.optimization.budget import Budget
from bakeoff.preparation.prepare import prepare
from bakeoff.runs.run import Run
from bakeoff.tensors import load_tensors
from bakeoff.tokenizer.tokenizer_config import TokenizerConfig
from bakeoff.training.pretrain import pretrain
from bakeoff.tuning.tune import tune

STILL = {"training.optimizer.lr": 1.0e-12, "training.optimizer.weight_decay": 0.0}
"""A training that leaves the weights where they are."""


@pytest.fixture(scope="module")
def mine(corpus, tmp_path_factory):
    """A run, which has its tokenizer from the corpus."""
    out = tmp_path_factory.mktemp("runs") / "mine"
    return pretrain(shrink("bert-tiny"), corpus.path, out, seed=7, budget=Budget(steps=2), device="cpu", progress=False)


@pytest.fixture
def folder(tmp_path, corpus):
    rows = "text\tlabel\n" + "".join(f"the text {number} of two\t{number % 2}\n" for number in range(20))
    (tmp_path / "rows.tsv").write_text(rows)
    return tmp_path


def write_plan(folder, corpus, recipes, **changes):
    files = {"train": "rows.tsv", "dev": "rows.tsv", "test": "rows.tsv", "text_column": "text", "label_column": "label"}
    finetune = {"epochs": 1, "least_steps": 1, "batch": 20, "evaluations": 1, "length": 16}
    values = {"corpus": str(corpus), "budget": "steps=1", "seeds": 1, "device": "cpu", "recipes": recipes}
    values["tasks"] = [{"name": "two", "finetune": finetune, **files}]
    path = folder / "plan.yaml"
    path.write_text(yaml.safe_dump({**values, **changes}))
    return path


def go(plan, **options):
    return compare(plan, plan.parent / "out", **{"jobs": 1, "report": lambda results, path: None, **options})


def worst(run, other):
    """The largest difference between tensors of the same name."""
    one, two = load_tensors(run / "model.safetensors"), load_tensors(other / "model.safetensors")
    assert one.keys() == two.keys()
    return max(float((one[name] - two[name]).abs().max()) for name in one)


def test_a_run_goes_on_from_its_weights_and_from_scratch_does_not(folder, corpus, mine):
    shutil.copytree(mine.path, folder / "runs/mine")
    (folder / "same.yaml").write_text(mine.recipe.to_yaml())
    recipes = [
        {"recipe": "runs/mine", "set": STILL},
        {"recipe": "same.yaml", "start": "./runs/mine", "name": "by file", "set": {**STILL, "training.clip": 0.5}},
        {"recipe": "same.yaml", "name": "from chance", "set": STILL},
    ]
    plan = write_plan(folder, corpus.path, recipes)
    results = go(plan)
    runs = {entry.label: folder / "out" / entry.runs[0].path for entry in results.recipes}
    assert worst(runs["mine"], mine.path) < 1e-9
    assert worst(runs["by file"], mine.path) < 1e-9
    assert worst(runs["from chance"], mine.path) > 1e-3
    # From scratch all three are the same architecture with the same random weights.
    scores = {entry.label: {each.initialisation: each for each in entry.scores} for entry in results.recipes}
    assert {own["scratch"].transferred_tensors for own in scores.values()} == {0}
    scratch = [folder / "out" / own["scratch"].predictions for own in scores.values()]
    assert scratch[0].read_text() == scratch[1].read_text() == scratch[2].read_text()
    assert all(own["pretrained"].transferred_tensors > 0 for own in scores.values())
    start = results.recipes[0].starts[0]
    assert (start.tensors, start.fresh, start.steps) == (start.of, [], 2)
    assert results.recipes[2].starts == {}
    assert Results.read(folder / "out/results.json") == results
    told = cautions(results)
    assert any(f"“mine” starts from {folder / 'runs/mine'} (2 steps)" in line for line in told)
    assert any("“from chance” had the budget alone" in line for line in told)
    assert any("the gain of “mine” and “by file” is that of the first weights" in line for line in told)
    lines = []
    assert go(plan, progress=lines.append).recipes == results.recipes
    assert not [line for line in lines if "pre-training" in line or "fine-tuning" in line]


@pytest.fixture(scope="module")
def of_seeds(corpus, mine, tmp_path_factory):
    """A folder with a run for each of three seeds."""
    out = tmp_path_factory.mktemp("of-seeds")
    common = {"budget": Budget(steps=2), "device": "cpu", "progress": False}
    for seed in range(3):
        pretrain(shrink("bert-tiny"), corpus.path, out / f"bert/seed-{seed}", seed=seed, **common)
    return out


def test_each_seed_starts_from_a_run_of_its_own(folder, corpus, of_seeds):
    """And then a seed is another pre-training, of which the verdict allows for the luck."""
    (folder / "same.yaml").write_text(Run(of_seeds / "bert/seed-0").recipe.to_yaml())
    name = f"{of_seeds}/bert/seed-{{seed}}"
    still = {**STILL, "training.clip": 0.5}
    recipes = [{"recipe": name, "set": STILL}, {"recipe": "same.yaml", "name": "file", "start": name, "set": still}]
    plan = write_plan(folder, corpus.path, recipes, from_scratch=False, seeds=3)
    reports = []
    results = go(plan, report=lambda results, path: reports.append(results))
    assert [entry.label for entry in results.recipes] == ["bert", "file"]
    for each in reports:  # also of the first seeds alone
        assert all({*entry.starts} == {*each.finished_seeds} for entry in each.recipes)
    for entry in results.recipes:
        for run in entry.runs:
            assert worst(folder / "out" / run.path, of_seeds / f"bert/seed-{run.seed}") < 1e-9
        assert {seed: start.source for seed, start in entry.starts.items()} == {
            seed: str(of_seeds / f"bert/seed-{seed}") for seed in range(3)
        }
        assert entry.checkpoint is None
    assert Results.read(folder / "out/results.json") == results
    assert "checkpoint" not in findings(results).headline
    told = "".join(cautions(results))
    assert "same weights" not in told
    assert "each other seed from a run of its own" in told
    with pytest.raises(UserError, match=r"recipes\.0\.recipe: there is no run or model .*\{seed\} for every seed"):
        go(write_plan(folder, corpus.path, recipes, from_scratch=False, seeds=4))
    recipes[0] = {"recipe": "same.yaml", "name": "bert", "start": name, "set": STILL}
    with pytest.raises(UserError, match=r"recipes\.0\.start: there is no run or model .*seed-3, and"):
        go(write_plan(folder, corpus.path, recipes, from_scratch=False, seeds=4))


def test_runs_of_seeds_have_weights_of_their_own_and_one_recipe(folder, corpus, of_seeds):
    shutil.copytree(of_seeds / "bert", folder / "bert")
    shutil.rmtree(folder / "bert/seed-1")
    shutil.copytree(folder / "bert/seed-0", folder / "bert/seed-1")
    arm = [{"recipe": "bert/seed-{seed}"}]
    with pytest.raises(UserError, match="recipe “bert”: start: the seeds 0 and 1 have the same weights, and would be"):
        go(write_plan(folder, corpus.path, arm, seeds=3))
    shutil.rmtree(folder / "bert/seed-1")
    with pytest.raises(UserError, match=r"recipes.0.recipe: there is no run or model bert/seed-"):
        go(write_plan(folder, corpus.path, arm, seeds=3))
    common = {"budget": Budget(steps=2), "device": "cpu", "progress": False}
    pretrain(shrink("albert-tiny"), corpus.path, folder / "bert/seed-1", seed=1, **common)
    with pytest.raises(
        UserError, match="recipe “bert”: start: the runs of the seeds 0 and 1 are of other recipes: model"
    ):
        go(write_plan(folder, corpus.path, arm, seeds=3))
    assert not (folder / "out").exists()


@pytest.mark.slow
def test_seeds_that_start_from_one_run_say_something_about_this_run(folder, corpus, mine):
    shutil.copytree(mine.path, folder / "mine")
    (folder / "same.yaml").write_text(mine.recipe.to_yaml())
    arms = [{"recipe": "./mine", "set": STILL}, {"recipe": "same.yaml", "name": "other", "set": STILL}]
    results = go(write_plan(folder, corpus.path, arms, seeds=3))
    assert [entry.checkpoint is None for entry in results.recipes] == [False, True]
    one = "This is about “mine” as one checkpoint, which all its seeds start from, and not the recipe that made it."
    assert findings(results).headline.endswith(one)
    assert any(line.startswith("All seeds of “mine” start from the same weights.") for line in cautions(results))
    write_report(results, folder / "report.html")
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "A seed of “mine” begins with the same weights as the others" in page
    assert "Of the others a seed is a fresh pre-training" in page
    two = results.model_copy(update={"finished_seeds": [0, 1]})
    assert "checkpoint" not in findings(two).headline  # where nothing is claimed


def test_results_of_older_versions_have_one_start_for_all_seeds():
    values = make_results(names=["bert-mini"], tasks=("SST-2",), rows=50).model_dump(mode="json")
    start = {"source": "runs/a", "run": "/runs/a", "origin": None, "steps": 5, "weights": "ab", "tensors": 3, "of": 3}
    del values["recipes"][0]["starts"]
    values["recipes"][0]["start"] = {**start, "fresh": []}
    assert Results.parse(values, "old").recipes[0].checkpoint.source == "runs/a"
    values["recipes"][0]["start"] = None
    assert Results.parse(values, "old").recipes[0].starts == {}


def test_changed_weights_are_another_comparison(folder, corpus, mine):
    shutil.copytree(mine.path, folder / "mine")
    plan = write_plan(folder, corpus.path, ["./mine"], from_scratch=False)
    go(plan)
    shutil.rmtree(folder / "mine")
    recipe = shrink("bert-tiny")
    pretrain(recipe, corpus.path, folder / "mine", seed=8, budget=Budget(steps=2), device="cpu", progress=False)
    with pytest.raises(UserError, match="pretrain: begun with another start"):
        go(plan)
    write_plan(folder, corpus.path, [{"recipe": "bert-tiny", "name": "mine"}], from_scratch=False)
    with pytest.raises(UserError, match="begun with"):
        go(plan)


@pytest.mark.slow
def test_an_interrupted_training_goes_on_from_its_own_checkpoint(folder, corpus, mine, monkeypatch):
    """The run that it started from is read once, and a call from another folder is the same call."""
    shutil.copytree(mine.path, folder / "mine")
    plan = write_plan(folder, corpus.path, ["./mine"], from_scratch=False, budget="steps=3")
    begun = folder / "out/runs/mine/seed-0/pretrain"
    go(plan)
    whole = load_tensors(begun / "model.safetensors")
    shutil.rmtree(folder / "out/runs")

    class Stopped(Engine):
        def carry_out(self, job, progress, note):
            return super().carry_out(job.model_copy(update={"until": 1}), progress, note)

    with pytest.raises(UserError, match="did not finish"):
        compare(plan, folder / "out", engine=Stopped(), report=lambda results, path: None)
    monkeypatch.chdir(folder)
    compare("plan.yaml", "out", jobs=1, report=lambda results, path: None)
    again = load_tensors(begun / "model.safetensors")
    assert all((again[name] == whole[name]).all() for name in whole)


def test_what_does_not_fit_is_told_before_anything_is_trained(folder, corpus, mine):
    shutil.copytree(mine.path, folder / "mine")
    shutil.copytree(mine.path, folder / "half")
    for name in ("summary.json", "bakeoff.sha256"):
        (folder / "half" / name).unlink()
    (folder / "empty").mkdir()
    wide = {"recipe": "bert-tiny", "start": "./mine"}
    for recipes, message in (
        (["./half"], "recipe “half”: .*half: this run has not finished; continue it with"),
        (["./empty"], "recipe “empty”: .*empty: has no config.json, so it is not a model as transformers saves it"),
        (["./empty", {"recipe": "./empty", "name": "two"}], "^recipes “empty” and “two”: .*empty: has no config.json"),
        (["./nowhere"], r"no recipe '\./nowhere'"),
        ([{"recipe": "bert-tiny", "start": "nowhere"}], r"recipes\.0\.start: there is no run or model .*nowhere"),
        ([{"recipe": "./mine", "start": "./mine/"}], r"recipes\.0: \./mine has weights of its own"),
        ([wide], "recipe bert-tiny: .*mine: .* here, but .* there"),
    ):
        with pytest.raises(UserError, match=message) as caught:
            go(write_plan(folder, corpus.path, recipes))
        assert "\n" not in str(caught.value)
        assert not (folder / "out").exists()
    other = other_tokenizer(folder)
    (folder / "other.txt").unlink()
    with pytest.raises(
        UserError, match=r"recipe “mine”: .*cannot be prepared anew .*its file .*other.txt is not there"
    ):
        go(write_plan(folder, other, ["./mine"]))
    assert not (folder / "out").exists()


def other_tokenizer(folder):
    lines = [f"Sentence {number} of a text. It goes on and on. And on." for number in range(300)]
    (folder / "other.txt").write_text("\n\n".join(lines))
    return prepare(
        folder / "other.txt",
        folder / "other",
        tokenizer=TokenizerConfig(kind="byte_bpe", size=300),
        document_per_line=True,
    ).path


def test_labels_and_names_on_the_hub(folder, corpus, mine):
    shutil.copytree(mine.path, folder / "bert-tiny")
    recipes = ["bert-tiny", {"start": "./bert-tiny", "name": "mine"}, "owner/some-model@v1", {"start": "owner/other"}]
    plan = Plan.read(write_plan(folder, corpus.path, recipes))
    folder_start = str(folder / "bert-tiny")
    assert [(item.name, item.recipe, item.start) for item in plan.recipes] == [
        ("bert-tiny", "bert-tiny", None),  # a recipe's name is a recipe, whatever folders there are
        ("mine", folder_start, folder_start),
        ("some-model", "owner/some-model@v1", "owner/some-model@v1"),
        ("other", "owner/other", "owner/other"),
    ]


def test_a_search_starts_there_too(corpus, mine, tmp_path):
    tune(mine.recipe, corpus.path, tmp_path / "search", trials=2, budget=Budget(steps=2), start=mine.path, jobs=1)
    runs = [Run(path) for path in sorted((tmp_path / "search/trials").iterdir())]
    assert [run.environment["origin"] for run in runs] == [f"from {mine.path}"] * 2
    first = next(line for line in runs[0].metrics() if line["kind"] == "validation")
    assert first["loss"] == pytest.approx(mine.summary["validation"]["loss"], abs=1e-6)


def test_a_model_elsewhere_is_imported_once(folder):
    transformers = pytest.importorskip("transformers")
    theirs = folder / "theirs"
    theirs.mkdir()
    sizes = {"hidden_size": 12, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    config = transformers.BertConfig(vocab_size=write_wordpiece(theirs), max_position_embeddings=40, **sizes)
    transformers.BertForMaskedLM(config).save_pretrained(theirs)
    (folder / "text.txt").write_text("\n\n".join(f"the model reads {n}. a b c. the end." for n in range(200)))
    first = folder / "first"
    prepare(folder / "text.txt", first, workers=1)
    still = {"recipe": "./theirs", "set": STILL}
    lines = []
    plan = write_plan(folder, first, [still, {"recipe": "./theirs", "name": "again"}])
    results = go(plan, progress=lines.append)
    # The text is prepared once with the tokenizer of the model, for both.
    assert [line.partition(" ")[0] for line in lines[:3]] == ["importing", "preparing", "reading"]
    assert len(list((folder / "out/imported").iterdir())) == len(list((folder / "out/corpora").iterdir())) == 1
    imported = next((folder / "out/imported").iterdir())
    assert worst(folder / "out" / results.recipes[0].runs[0].path, imported) < 1e-9
    assert "“theirs” starts from" in "".join(cautions(results))
    assert "(trained elsewhere)" in "".join(cautions(results))
