"""The plans of the repository's `plans`: each opens and passes all checks of a dry run, on data of a few rows."""

import json
import re
from pathlib import Path

import pytest
import yaml
from tests.published_files import PUBLISHED, conllu, laid
from tests.untrained_runs import untrained_of

from bakeoff.comparison import forecast as of_comparison
from bakeoff.comparison.forecast import forecast_comparison
from bakeoff.comparison.planning.plan import Plan
from bakeoff.learner.pretraining_model import build_on_meta
from bakeoff.recipe_files import load_recipe, recipe_names
from bakeoff.training.speed import StepTime

PLANS = Path(__file__).parents[2] / "plans"
NAMES = [path.relative_to(PLANS).with_suffix("").as_posix() for path in sorted(PLANS.glob("*/*.yaml"))]
VOCABULARY = 300
PARTS = ("Question", "Claim", "Chosen", "Hours")
"""What the comment of each plan has."""

RUNS = {
    "two-layers": ("laptop-encoder-tiny", {"model.encoder.share": "all"}),
    "two-unshared": ("laptop-encoder-tiny", {}),
    "albert-12": ("albert-large", {"model.encoder.layers": 12}),
    "tcn-short": ("tcn-tiny", {"input.length": 32}),
    "lstm-short": ("lstm-lm-tiny", {"input.length": 32}),
}
"""The runs that plans/README.md has its readers make, by their folders."""

PUBLISHED_MODELS = {
    "albert/albert-base-v2": "albert-tiny",
    "google-bert/bert-base-cased": "bert-mini",
    "openai-community/gpt2": "gpt2-tiny",
}
"""A recipe in the place of each model on the Hub, which no test reads."""

SHORT = {r"epochs=\d+": "steps=1000", r"training\.batch: \d+": "training.batch: 2"}
"""What a text of a few sentences is too short for, and what stands in its place."""

PAIRS = ("wmt14-en-de", "iwslt14-de-en")
"""The corpora of pairs."""


def rows_of(task):
    """More rows than a task learns from, a tenth of which may be held out, each with its number and a label of two."""
    given = task.get("train_rows", 0)
    count = max([40, *(each for each in (given if isinstance(given, list) else [given]) if each != "all")]) * 5 // 4
    texts = [key for key in ("text_column", "pair_column") if key in task]
    return [{task[key]: f"the river {n}" for key in texts} | {task["label_column"]: "ab"[n % 2]} for n in range(count)]


def write_task(task, folder):
    """Write the files of a task where the plan looks for them."""
    if "dataset" in task:
        laid(folder / task["data"], next(files for name, files, _ in PUBLISHED if name == task["dataset"]))
        return
    paths = [folder / task[part] for part in ("train", "dev", "test") if part in task]
    for path in (each for each in paths if not each.exists()):
        path.parent.mkdir(parents=True, exist_ok=True)
        if task.get("kind") == "tagging":
            path.write_text(conllu(task["train_rows"] + 40))
        elif task.get("kind") == "minimal_pairs":
            pair = {"sentence_good": "the river is", "sentence_bad": "is the river", "UID": "order"}
            path.write_text(json.dumps(pair) + "\n")
        elif path.suffix == ".jsonl":
            path.write_text("".join(json.dumps(row) + "\n" for row in rows_of(task)))
        else:
            rows = rows_of(task)
            path.write_text("".join("\t".join(row) + "\n" for row in [list(rows[0]), *(row.values() for row in rows)]))


@pytest.fixture(scope="module")
def lay(corpus, other, parallel_corpus):
    """A function that lays a plan, with all that it names and is not there yet, into a folder: the plan's path.

    Only if `fitting` the weights of runs are of the recipes that start from them.
    """

    def untrained_once(recipe, run, seed=0):
        if not run.exists():
            untrained_of(recipe, corpus, run, seed)

    def lay(name, folder, fitting=False):
        text = (PLANS / f"{name}.yaml").read_text()
        for model, recipe in PUBLISHED_MODELS.items():
            if model in text:
                text = text.replace(model, f"../runs/{recipe}")
                untrained_once(load_recipe(recipe), folder / "runs" / recipe)
        for long, short in SHORT.items():
            text = re.sub(long, short, text)
        plan = yaml.safe_load(text)
        path = folder / f"{name}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        texts = {plan["corpus"]: parallel_corpus if Path(plan["corpus"]).name in PAIRS else corpus}
        items = [each for each in plan["recipes"] if isinstance(each, dict)]
        texts |= {each["corpus"]: other for each in items if "corpus" in each}
        (folder / "corpora").mkdir(exist_ok=True)
        for place, made in texts.items():
            if not (path.parent / place).exists():
                (path.parent / place).symlink_to(made.path)
        for run in {Path(each.get("start") or each["recipe"]).parent.name for each in items if "{seed}" in str(each)}:
            recipe, changes = RUNS[run] if fitting else ("laptop-encoder-tiny", {})
            for seed in range(plan["seeds"]):
                untrained_once(load_recipe(recipe).changed(changes), folder / f"runs/{run}/seed-{seed}", seed)
        for task in plan.get("tasks", ()):
            if "dataset" in task or "test" in task:
                write_task(task, path.parent)
        return path

    return lay


@pytest.mark.slow  # a batch of each recipe is made, and of large ones as well
@pytest.mark.parametrize("name", NAMES)
def test_a_plan_passes_its_dry_run(name, lay, tmp_path, monkeypatch):
    """Only the measurements of speed are left out: a step of a large model takes long here."""
    monkeypatch.setattr(of_comparison, "step_times", lambda recipes, *args: [StepTime(1.0, 1.0)] * len(recipes))
    monkeypatch.setattr(of_comparison, "expected_seconds", lambda *args: 1.0)
    forecast = forecast_comparison(lay(name, tmp_path, fitting=True), tmp_path / "out", jobs=1)
    assert sum(work.jobs for work in forecast.works) > 0
    assert not (tmp_path / "out").exists()


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """One folder for all plans, and the recipes of which a model has been made, whatever the plan."""
    return tmp_path_factory.mktemp("plans"), set()


@pytest.mark.parametrize("name", NAMES)
def test_a_plan_opens(name, lay, shared):
    """With every recipe that it names, and a model of each."""
    folder, made = shared
    plan = Plan.read(lay(name, folder))
    recipes = [load_recipe(item.recipe, item.of_recipe) for item in plan.recipes if item.recipe in recipe_names()]
    for recipe in recipes:
        model = recipe.model.model_dump_json()
        if model not in made:
            build_on_meta(recipe, VOCABULARY)
            made.add(model)
    assert plan.seeds == [0, 1, 2] or not recipes  # or all are models of others, and seeds are of fine-tuning


@pytest.mark.parametrize("name", NAMES)
def test_a_plan_says_what_it_asks(name):
    comment = [line for line in (PLANS / f"{name}.yaml").read_text().splitlines() if line.startswith("# ")]
    assert [part for part in PARTS if any(line.startswith(f"# {part}: ") for line in comment)] == [*PARTS]


def test_the_guide_names_every_plan():
    guide = (PLANS / "README.md").read_text()
    assert [name for name in NAMES if f"({name}.yaml)" not in guide] == []
