import pytest

from bakeoff.comparison.plan import Plan, directory_name
from bakeoff.errors import UserError

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
        ("budget: minutes=10\n", "", "budget: this key is required"),
        ("minutes=10", "years=10", "budget: unknown unit 'years'"),
        ("minutes=10", "10m", "budget: give a unit and how many, such as tokens=5M"),
        (PLAN[PLAN.index("tasks:") :], "tasks: []", "tasks: nothing given; give at least 1"),
        ("minutes=10", "minutes=ten", "budget: 'ten' is not a positive number"),
        ("seeds: 3", "seeds: 0", "seeds"),
        ("seeds: 3", "seeds: [1, 1]", "distinct"),
        ("seeds: 3", "seeds: many", "seeds"),
        ("mine/wide.yaml", "bert-mini", "two recipes are called 'bert-mini'"),
        ("mine/wide.yaml", "bert/mini", "'bert-mini' and 'bert/mini' would share a directory"),
        ("mine/wide.yaml", "mine/none.yaml", "recipes.2.recipe: there is no file"),
        ("corpus: corpus", "corpus: corpses", "corpus: there is no directory"),
        ("data/dev.tsv", "data/devv.tsv", "tasks.0.dev: there is no file"),
        ("train_rows: 2000", "train_rows: 0", "tasks.0.train_rows"),
        ("pooling: mean", "poling: mean", "tasks.0.finetune: unknown key 'poling'; did you mean 'pooling'"),
        ("train_rows: 2000", "metric: bleu", "tasks.0.metric"),
        ("corpus: corpus", "corpus: [", "line"),
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
