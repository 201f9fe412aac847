import json

import pytest

from bakeoff.comparison.planning.names import directory_name
from bakeoff.comparison.planning.plan import Plan
from bakeoff.comparison.planning.task_plan import TaskPlan
from bakeoff.errors import UserError
from bakeoff.tasks.finetune_config import FinetuneConfig
from bakeoff.tasks.kinds.classification import ClassificationConfig

PLAN = """
corpus: corpus
recipes:
  - bert-mini
  - {recipe: albert-tiny, name: "ALBERT, faster", set: {training.optimizer.lr: 3.0e-4}}
  - mine/wide.yaml
budget: minutes=10
seeds: 3
tasks:
  - name: sst2
    train: data/train.tsv
    dev: data/dev.tsv
    test: data/test.tsv
    text_column: sentence
    label_column: label
    train_rows: 2000
    finetune: {learning_rate: 1e-4, pooling: mean}
"""


@pytest.fixture
def folder(tmp_path):
    for name in ("corpus", "data", "mine"):
        (tmp_path / name).mkdir()
    for name in ("data/train.tsv", "data/dev.tsv", "data/test.tsv", "mine/wide.yaml"):
        (tmp_path / name).touch()
    return tmp_path


def read(folder, text):
    (folder / "plan.yaml").write_text(text)
    return Plan.read(folder / "plan.yaml")


def test_a_whole_plan(folder):
    plan = read(folder, PLAN)
    assert [item.name for item in plan.recipes] == ["bert-mini", "ALBERT, faster", "wide"]
    assert plan.recipes[1].set == {"training.optimizer.lr": 3.0e-4}
    assert plan.recipes[2].recipe == str(folder / "mine/wide.yaml")
    assert plan.seeds == [0, 1, 2]
    assert plan.corpus == folder / "corpus"
    assert plan.tasks[0].data.train == folder / "data/train.tsv"
    assert plan.tasks[0].finetune.learning_rate == [1e-4]
    assert plan.tasks[0].data.metric == "accuracy"
    assert plan.from_scratch
    assert plan.finetune_seeds == 1


CLASSES = ClassificationConfig(train="train.tsv", text_column="text", label_column="label")
KINDS = """
  - {name: words, kind: tagging, train: data/train.tsv, metric: accuracy, legal: true, finetune: {epochs: 2}}
  - {name: likeness, kind: regression, train: data/train.tsv, text_column: a, pair_column: b, label_column: c}
  - {name: story, kind: choice, train: data/train.tsv, text_column: a, choices: [b, c], label_column: d}
"""


def test_tasks_of_every_kind(folder):
    """And what they are written down as is read as the same: another process is told of them in this way."""
    plan = read(folder, PLAN + KINDS[1:])
    assert [task.data.kind for task in plan.tasks] == ["classification", "tagging", "regression", "choice"]
    words, likeness, story = plan.tasks[1:]
    assert (words.data.legal, words.data.text_column, words.finetune.epochs) == (True, None, [2])
    assert (likeness.data.pair_column, likeness.data.metric) == ("b", "spearman")
    assert story.data.choices == ["b", "c"]
    assert words.files == {"train": folder / "data/train.tsv", "dev": None, "test": None}
    for task in plan.tasks:
        assert task.data.name == task.name
        assert TaskPlan.parse(json.loads(json.dumps(task.model_dump(mode="json"))), "task") == task
        assert TaskPlan(name=task.name, finetune=task.finetune, data=task.data) == task


def test_what_a_task_of_classification_is_written_down_as_is_what_it_always_was(folder):
    """Comparisons that were begun before other kinds were there go on."""
    written = read(folder, PLAN).tasks[0].model_dump(mode="json")
    then = {
        **{part: str(folder / f"data/{part}.tsv") for part in ("train", "dev", "test")},
        **{"kind": "classification", "name": "sst2", "text_column": "sentence", "pair_column": None},
        **{"label_column": "label", "metric": "accuracy", "train_rows": 2000, "errors": "strict"},
        **{"dev_share": 0.1, "test_share": 0.2, "split_seed": 0},
        "finetune": FinetuneConfig(learning_rate=[1e-4], pooling="mean").model_dump(mode="json"),
    }
    added = {key: value for key, value in written.items() if key not in then}
    assert written == {**then, **added}
    defaults = {key: field.get_default(call_default_factory=True) for key, field in type(CLASSES).model_fields.items()}
    assert added == {key: defaults[key] for key in added}


def test_published_data_sets_by_name(folder):
    glue = folder / "glue"
    glue.mkdir()
    for name in ("train", "dev"):
        (glue / f"{name}.tsv").write_text("sentence\tlabel\nfine\t1\n")
    own = "{dataset: sst2, data: glue, name: films, metric: matthews, finetune: {epochs: 2}}"
    task = read(folder, f"{PLAN}  - {own}\n").tasks[1]
    assert (task.name, task.data.kind, task.data.text_column, task.data.metric) == (
        "films",
        "classification",
        "sentence",
        "matthews",
    )
    assert (task.data.train, task.data.test) == (glue / "train.tsv", glue / "dev.tsv")
    assert task.finetune.epochs == [2]
    (folder / "mine.tsv").write_text("sentence\tlabel\nfine\t1\n")
    own = "{dataset: sst2, data: glue, name: films, train: mine.tsv}"  # beside the plan, wherever one stands
    assert read(folder, f"{PLAN}  - {own}\n").tasks[1].data.train == folder / "mine.tsv"
    for wrong, message in (
        ("{dataset: sst3, data: glue}", r"plan.yaml: tasks.1: dataset: there is no 'sst3'; did you mean 'sst"),
        ("{dataset: sst2, data: none}", r"plan.yaml: tasks.1: .*none: no such folder"),
        ("{dataset: 3, data: glue}", r"plan.yaml: tasks.1.dataset: a name is wanted, not 3"),
    ):
        with pytest.raises(UserError, match=message):
            read(folder, f"{PLAN}  - {wrong}\n")


def test_a_mixture_of_corpora(folder):
    (folder / "other").mkdir()
    plan = read(folder, PLAN.replace("corpus: corpus", "corpus: corpus:0.7,other:0.3"))
    assert str(plan.corpus) == f"{folder / 'corpus'}:0.7,{folder / 'other'}:0.3"
    with pytest.raises(UserError, match=r"there is no directory .*third"):
        read(folder, PLAN.replace("corpus: corpus", "corpus: corpus:0.7,third:0.3"))


def test_seeds_by_name_and_rates_in_a_list(folder):
    plan = read(folder, PLAN.replace("seeds: 3", "seeds: [7, 11, 13, 17]").replace("1e-4", "[1e-4, 3e-4]"))
    assert plan.seeds == [7, 11, 13, 17]
    assert plan.tasks[0].finetune.learning_rate == [1e-4, 3e-4]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("budget:", "budgett:", "unknown key 'budgett'; did you mean 'budget'"),
        (
            "label_column",
            "lable_column",
            "tasks.0: a task of the kind classification has no key 'lable_column'; did you",
        ),
        ("budget: minutes=10\n", "", "budget: this key is required, unless every recipe has a budget"),
        ("minutes=10", "years=10", "budget: unknown unit 'years'"),
        ("minutes=10", "60", "budget: give a unit and how many, such as tokens=5M"),
        (
            "minutes=10",
            "loss=5.0",
            "a plan's budget lasts until a loss as {held_out: 5.0, at_most: steps=1000}",
        ),
        ("minutes=10", "{steps: 24}", "budget: in a plan it is a text: steps=24"),
        ("minutes=10", "held_out=5.0", "budget lasts until a loss as {held_out: 5.0, at_most: steps=1000}"),
        (
            "  - bert-mini",
            "  - {recipe: bert-mini, budget: {held_out: 5, at_most: steps=9}}",
            "the plan's budget alone",
        ),
        ("budget:", "b\u200budget:", "unknown key 'b\u200budget', which has U+200B in it; did you mean 'budget'?"),
        ("budget:", "b\u0443dget:", "', which has U+0443 in it; did you mean 'budget'?"),
        ("seeds: 3", "seeds: 3\ntitle: 2026", 'title: input should be a valid string, not 2026; quote it, "2026"'),
        ("minutes=10", "10m", "budget: give a unit and how many, such as tokens=5M"),
        (PLAN[PLAN.index("tasks:") :], "tasks: {}", "tasks"),
        ("minutes=10", "minutes=ten", "budget: 'ten' is not a positive number"),
        ("seeds: 3", "seeds: 0", "seeds: 0 is no number of seeds such as 3, and no list of them"),
        ("seeds: 3", "seeds: 2.0", "seeds: 2.0 is no number of seeds such as 3"),
        ("seeds: 3", "seeds: two", 'seeds: "two" is no number of seeds such as 3'),
        ("seeds: 3", "seeds: true", "seeds: true is no number of seeds such as 3"),
        ("seeds: 3", "seeds: [1, 1]", "seeds: [1, 1] are not all different, or below 0; give others"),
        ("seeds: 3", "seeds: 1000000000000", "seeds: 1000000000000 are too many; give 10,000 at most, or a list"),
        ("mine/wide.yaml", "bert-mini", "two recipes are called 'bert-mini'"),
        (
            "mine/wide.yaml",
            "{recipe: gpt-tiny, name: bert/mini}",
            "'bert-mini' and 'bert/mini' would share a directory",
        ),
        ("mine/wide.yaml", "{recipe: gpt-tiny, name: ' '}", "recipes: ' ' is no name; give one of visible characters"),
        ("mine/wide.yaml", '{recipe: gpt-tiny, name: "a\\nb"}', "is no name; give one of visible characters, on one"),
        ("mine/wide.yaml", f"{{recipe: gpt-tiny, name: {'名' * 100}}}", "a directory's name of 300 bytes; give a"),
        ("seeds: 3", "seeds: 3\nmargin: {}", "margin: no task is named; give {sst2: ...}, or leave it out"),
        ("seeds: 3", "seeds: 3\nmargin: 100", "margin: within 100 points are all scores; give fewer"),
        (
            PLAN[PLAN.index("seeds: 3") :],
            "margin: 1",
            "margin: 1 would have no effect: no score is in points; give one for each task in its own unit, {held-out",
        ),
        (
            PLAN[PLAN.index("recipes:") : PLAN.index("budget:")],
            "recipes: [{recipe: bert-mini, search: false}]\nsearch: {}\n",
            "search: would have no effect: none is to be searched",
        ),
        ("name: sst2", "name: Pretrain", "a task 'Pretrain' would share a directory with the pre-training"),
        ("name: sst2", "name: after 10 percent", "would share a directory with the pre-training"),
        ("seeds: 3", "seeds: [1, 9223372036854775808]", "seeds: 9223372036854775808 is beyond the whole numbers"),
        ("mine/wide.yaml", "mine/none.yaml", "recipes.2.recipe: there is no file"),
        ("corpus: corpus", "corpus: corpses", "corpus: there is no directory"),
        ("data/dev.tsv", "data/devv.tsv", "tasks.0.dev: there is no file"),
        ("train_rows: 2000", "train_rows: 0", "tasks.0.train_rows"),
        ("pooling: mean", "poling: mean", "tasks.0.finetune: unknown key 'poling'; did you mean 'pooling'"),
        ("train_rows: 2000", "metric: bleu", "tasks.0.metric"),
        ("train_rows: 2000", "metric: [accuracy, macro_f1]", "tasks.0: metric: give one, by which epochs are chosen"),
        ("text_column: sentence", "kind: tagger", "tasks.0.kind: there is no 'tagger'; did you mean 'tagging'"),
        ("text_column: sentence", "kind: [tagging]", "tasks.0"),
        ("text_column: sentence", "kind: regression", "tasks.0.text_column: this key is required"),
        ("train_rows: 2000", "kind: tagging\n    pair_column: b", "kind tagging has no key 'pair_column'"),
        ("finetune: {", "finetun: {", "classification has no key 'finetun'; did you mean 'finetune'"),
        ("name: sst2", "name: ''", "tasks.0.name"),
        ("- name: sst2\n    train", "- train", "tasks.0.name: this key is required"),
        (PLAN[PLAN.index("  - name: sst2") :], "  - word\n", "tasks.0"),
        ("corpus: corpus", "corpus: [", "line"),
        ("  - bert-mini", "  - {recipe: bert-mini, seeds: 5}", "unknown key 'seeds'; did you mean 'seeds' at the top"),
        ("  - bert-mini", "  - {recipe: bert-mini, set: {training.budget.steps: 5}}", "training.budget.steps would"),
        ("  - bert-mini", "  - {recipe: bert-mini, set: {training.average_last: 5}}", "training.average_last would"),
        ("  - bert-mini", "  - {recipe: bert-mini, set: {name: mine}}", "recipes.0.set: name would have no effect"),
        (
            "seeds: 3",
            "seeds: 3\nsearch: {over: {training.optimizer.lr: 1e-4..1e-2}}",
            "recipes.1.set: training.optimizer.lr would have no effect: the plan searches it",
        ),
        (
            "seeds: 3",
            "seeds: 3\nsearch: {over: {training.optimizer: [a]}}",
            "training.optimizer.lr would have no effect",
        ),
        (
            "budget: minutes=10",
            "budget: minutes=10\ntitle: RoBERTa: kinds",
            'if a text has a colon in it, quote it, "like',
        ),
        ("mine/wide.yaml", "{recipe: gpt-tiny, name: a: b}", 'if a text has a colon in it, quote it, "like: this"'),
        (PLAN, "- a\n- b\n", "expected keys and values, found list"),
        (PLAN, "", "expected keys and values, found nothing"),
    ],
)
def test_mistakes_are_one_line_with_file_and_key(folder, old, new, message):
    with pytest.raises(UserError) as error:
        read(folder, PLAN.replace(old, new))
    text = str(error.value)
    assert message in text
    assert str(folder / "plan.yaml") in text
    assert "\n" not in text


@pytest.mark.parametrize(
    ("search", "item"),
    [
        ("", "{recipe: bert-mini, set: {training.optimizer.lr: 1e-3}}"),
        ("search: {}", "{recipe: bert-mini, set: {training.optimizer.lr: 1e-3}}"),  # is searched around it
        (
            "search: {over: {training.optimizer.lr: 1e-4..1e-2}}",
            "{recipe: bert-mini, search: false, set: {training.optimizer.lr: 1}}",
        ),
        (
            "search: {over: {training.optimizer.lr: 1e-4..1e-2}}",
            "{recipe: bert-mini, set: {training.optimizer.lr_decay: 1}}",
        ),
        ("", "{recipe: bert-mini, set: {model.dropout: 0.1, training.schedule.warmup: 0.1}}"),
    ],
)
def test_overrides_with_an_effect_are_taken(folder, search, item):
    """Also such as say what the recipe says itself: an arm of a grid is one of these."""
    text = PLAN.replace("bert-mini", item, 1).replace("set: {training.optimizer.lr: 3.0e-4}", "set: {model.dropout: 0}")
    assert read(folder, f"{text}{search}\n").recipes[0].set


def test_files_that_cannot_be_read(folder):
    with pytest.raises(UserError, match="No such file"):
        Plan.read(folder / "none.yaml")
    with pytest.raises(UserError, match="directory"):
        Plan.read(folder)
    (folder / "plan.yaml").write_bytes(b"\xff\xfe")
    with pytest.raises(UserError, match="not UTF-8"):
        Plan.read(folder / "plan.yaml")


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("bert-mini", "bert-mini"),
        ("ALBERT, lr 3e-4", "ALBERT-lr-3e-4"),
        ("../x", "x"),
        ("<b>", "b"),
        ("中文 一", "中文-一"),
    ],
)
def test_directory_names(label, name):
    assert directory_name(label) == name


@pytest.mark.parametrize("changes", ["{training.distillation: {teachers: %s}}", "{training.distillation.teachers: %s}"])
def test_teachers_are_relative_to_the_plan(folder, changes):
    """Those that are not in its folder are left to the recipe, whose paths are relative to that of the command."""
    (folder / "mine/teacher").mkdir()
    text = PLAN.replace("  - bert-mini", f"  - {{recipe: bert-mini, set: {changes % '[mine/teacher, runs/other]'}}}")
    (value,) = read(folder, text).recipes[0].set.values()
    teachers = value["teachers"] if isinstance(value, dict) else value
    assert teachers == [str(folder / "mine/teacher"), "runs/other"]


def test_teachers_of_a_grid_are_relative_to_the_plan(folder):
    (folder / "mine/teacher").mkdir()
    grid = "{teacher: {one: {training.distillation.teachers: [mine/teacher]}, none: {training.distillation: null}}}"
    plan = read(folder, PLAN.replace("  - bert-mini", f"  - {{recipe: bert-mini, grid: {grid}}}"))
    changes = [list(item.set.values()) for item in plan.recipes[:2]]
    assert changes == [[[str(folder / "mine/teacher")]], [None]]
