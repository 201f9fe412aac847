"""Parts of others: files that the user names, and installed packages."""

import json
import os
import pickle
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from tokenizers import Tokenizer

import bakeoff
from bakeoff import plugins
from bakeoff.cli import run
from bakeoff.conformance.plugin_recipes import plugin_recipes
from bakeoff.errors import UserError
from bakeoff.inspection.terminal import print_peek
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.recipe_files import load_recipe
from bakeoff.tasks.registry import TASKS, parse_task
from bakeoff.training.stages import make_batches
from tests.conftest import shrink

DOCS = Path(__file__).parents[1] / "docs" / "plugins.md"

OBJECTIVE = '''
"""Names each token that it sees, for a model that would pass on what it reads."""

from typing import ClassVar, Literal

import numpy as np

from bakeoff.objectives.heads import transformed_head
from bakeoff.objectives.objective import Targets, TokenObjectiveConfig
from bakeoff.objectives.refusals import sees_both_sides


class CopyConfig(TokenObjectiveConfig):
    kind: Literal["copy"] = "copy"
    share: float
    title: ClassVar[str] = "What stands there (copy)"
    refused: ClassVar = sees_both_sides("copy")
    examples: ClassVar = ({"share": 1.0}, {"share": 0.5})

    def build(self, model, vocabulary):
        return Copy(self, model, vocabulary)


class Copy:
    name = "copy"

    def __init__(self, config, model, vocabulary):
        self.share = self.targets_per_token = config.share
        self.head = transformed_head(model, vocabulary, "gelu")

    def targets(self, examples, split, tokenizer, draws):
        free = (examples.row.documents > 0) & ~np.isin(examples.row.ids, tokenizer.special_ids)
        rows = np.flatnonzero(free & (draws.uniform("copied", examples.row.ids.shape[1]) < self.share))
        return Targets(rows, examples.row.ids.ravel()[rows])
'''


CLASSES = '''
"""Tells odd ids from even ones."""

from typing import ClassVar, Literal

import numpy as np

from bakeoff.objectives.heads import SentenceHead
from bakeoff.objectives.objective import ObjectiveConfig, Targets
from bakeoff.objectives.refusals import sees_both_sides


class ParityConfig(ObjectiveConfig):
    kind: Literal["parity"] = "parity"
    title: ClassVar[str] = "Odd or even (parity)"
    refused: ClassVar = sees_both_sides("parity")
    classes: ClassVar = ("even", "odd")

    def build(self, model, vocabulary):
        return Parity(model)


class Parity:
    name = "parity"
    targets_per_token = 1.0

    def __init__(self, model):
        self.head = SentenceHead(model.stack.output_width, 2)

    def targets(self, examples, split, tokenizer, draws):
        rows = np.flatnonzero(examples.row.documents > 0)
        return Targets(rows, examples.row.ids.ravel()[rows] % 2)
'''


def blocks_of(language):
    """What docs/plugins.md shows in a language."""
    return re.findall(rf"```{language}\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The files of docs/plugins.md in the working directory; what a test registers is gone after it."""
    (tmp_path / "min_gru.py").write_text(blocks_of("python")[0], encoding="utf-8")
    (tmp_path / "min-gru-tiny.yaml").write_text(blocks_of("yaml")[0], encoding="utf-8")
    (tmp_path / "copying.py").write_text(OBJECTIVE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    for registry in plugins.REGISTRIES:
        monkeypatch.setattr(registry, "_configs", dict(registry))
    monkeypatch.setattr(plugins, "_LOADED", {})
    monkeypatch.setenv(plugins.VARIABLE, "")
    return tmp_path


def commands():
    """The commands of docs/plugins.md."""
    lines = DOCS.read_text(encoding="utf-8").splitlines()
    return [line.removeprefix("bakeoff ") for line in lines if line.startswith("bakeoff ")]


def test_the_worked_example(folder, corpus, capsys):
    """Its commands as they stand but for the corpus, with a small budget."""
    shown = [shlex.split(each.replace("corpora/mine", str(corpus.path))) for each in commands()]
    show, pretrain, generate = shown[:3]
    assert run(show) == 0
    assert "min_gru" in capsys.readouterr().out
    assert run([*pretrain, "--budget", "steps=3", "--set", "input.length=16"]) == 0
    assert run([*generate, "--tokens", "3"]) == 0
    versions = json.loads(Path("runs/min-gru/environment.json").read_text(encoding="utf-8"))["versions"]
    assert versions["plugin min_gru.py"].startswith("sha256 ")
    assert versions == bakeoff.Run("runs/min-gru").environment["versions"]


def test_a_run_says_which_plugin_it_needs(folder, corpus, capsys):
    bakeoff.load_plugin("min_gru.py")
    recipe = load_recipe("min-gru-tiny.yaml", {"training.budget": {"steps": 1}, "input.length": 16})
    bakeoff.pretrain(recipe, corpus.path, "trained")
    without = {**os.environ, plugins.VARIABLE: ""}
    command = [sys.executable, "-m", "bakeoff", "generate", "trained", "The"]
    ended = subprocess.run(command, env=without, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    needed = "this run was trained with the plugin min_gru.py; give --plugin FILE, or install the package"
    assert ended.stderr == f"bakeoff: trained: {needed}\n"


@pytest.mark.slow
def test_other_processes_have_the_parts(folder):
    """Those of this one's environment, when they unpickle a recipe as well as when they read one."""
    bakeoff.load_plugin("min_gru.py")
    (folder / "recipe").write_bytes(pickle.dumps(load_recipe("min-gru-tiny.yaml")))
    code = "import pickle; print(type(pickle.load(open('recipe', 'rb')).model.decoder.block.mixer).__name__)"
    command = [sys.executable, "-W", "error", "-c", code]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "MinGruConfig\n"


@pytest.mark.slow
def test_an_installed_package_has_parts(folder):
    site = folder / "site"
    (site / "grus-1.2.dist-info").mkdir(parents=True)
    (site / "grus").mkdir()
    (site / "grus" / "__init__.py").write_text("from grus.min_gru import MinGruConfig\n", encoding="utf-8")
    (folder / "min_gru.py").rename(site / "grus" / "min_gru.py")
    (site / "grus-1.2.dist-info" / "METADATA").write_text("Name: grus\nVersion: 1.2\n", encoding="utf-8")
    for value in ("grus", "grus.min_gru", "grus.min_gru:MinGruConfig"):
        entry = f"[bakeoff.parts]\ngru of ours = {value}\n"
        (site / "grus-1.2.dist-info" / "entry_points.txt").write_text(entry, encoding="utf-8")
        code = "import bakeoff; print(bakeoff.load_recipe('min-gru-tiny.yaml').model.decoder.block.mixer.kind)"
        code += "; from bakeoff.plugins import plugin_versions; print(plugin_versions())"
        environment = {**os.environ, "PYTHONPATH": str(site)}
        ended = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
        )
        assert ended.stdout == "min_gru\n{'plugin gru of ours': '1.2'}\n"


def test_all_parts_are_put_into_recipes(folder):
    loaded = [bakeoff.load_plugin(name) for name in ("min_gru.py", "copying.py")]
    made = plugin_recipes(loaded)
    mixers = {name: recipe for name, recipe in made.items() if name.startswith("min_gru")}
    assert {recipe.model.causal for recipe in mixers.values()} == {False, True}
    copying = [each for recipe in made.values() for each in recipe.objective if each.kind == "copy"]
    assert {each.share for each in copying} == {0.5, 1.0}
    assert any(len(recipe.objective) > 1 for recipe in made.values())


def test_classes_of_tokens_are_counted_and_are_no_relations_of_segments(folder, corpus, capsys):
    (folder / "parity.py").write_text(CLASSES, encoding="utf-8")
    bakeoff.load_plugin("parity.py")
    recipe = load_recipe("roberta-tiny", {"objective": [{"kind": "parity"}]})
    found = bakeoff.peek(recipe, corpus.path, examples=5)
    batches = make_batches(recipe, PretrainingModel(recipe, corpus.tokenizer.size), corpus, seed=0).step(0)
    texts = [
        ids[padding_mask]
        for batch in batches
        for ids, padding_mask in zip(batch.row.ids, batch.row.padding_mask, strict=True)
    ]
    odd = [(ids % 2).sum().item() for ids in texts[:5]]
    for row, count in zip(found.rows, odd, strict=True):
        assert row.classes == {"parity": {"even": row.tokens - count, "odd": count}}
        assert row.targets == {"parity": row.tokens}
        assert row.relations == {}
    total = sum(row.tokens for row in found.rows)
    assert found.drawn[0].counts == {"even": total - sum(odd), "odd": sum(odd)}
    print_peek(found)
    assert f"parity: {found.rows[0].tokens - odd[0]} even, {odd[0]} odd" in capsys.readouterr().out


@pytest.mark.slow
def test_the_contracts_run_on_plugins(folder):
    """Few of them here, and one that a fault breaks."""
    source = (folder / "min_gru.py").read_text(encoding="utf-8")
    leaking = source.replace("keep * goes_on(owners), added)), None", "keep, added)), None")
    assert leaking != source
    (folder / "leaking.py").write_text(leaking, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "--pyargs", "bakeoff.conformance", "-p", "no:cacheprovider"]
    chosen = ["-k", "(packed or finite) and not compiled"]
    for file, status in (("min_gru.py", 0), ("leaking.py", 1)):
        environment = {**os.environ, plugins.VARIABLE: file}
        ended = subprocess.run([*command, *chosen], env=environment, capture_output=True, text=True, check=False)
        assert ended.returncode == status, ended.stdout
        assert " passed" in ended.stdout
    failed = set(re.findall(r"FAILED .*::(\w+)\[", ended.stdout))
    assert failed == {"test_a_packed_document_does_not_depend_on_its_neighbours"}


@pytest.mark.slow
def test_the_contracts_of_optimizers_and_schedules_run_on_plugins(lion, folder):
    """One whose rate is not the training's, one that counts too little, and one that forgets what it saw."""
    source = (folder / "lion.py").read_text(encoding="utf-8")
    faults = {
        "lion.py": ("", ""),
        "eager.py": ('alpha=-group["lr"]', "alpha=-1e-4"),
        "small.py": ("return 1", "return 0"),
        "forgets.py": ("self.state[parameter]", "self.unsaved[parameter]"),
        "negative.py": ("return self.fall **", "return -self.fall **"),
    }
    failed = {}
    for file, (old, new) in faults.items():
        assert old in source
        broken = source.replace(old, new).replace(
            "\n    @torch", "\n    unsaved = collections.defaultdict(dict)\n\n    @torch"
        )
        (folder / file).write_text(f"import collections\n{broken}", encoding="utf-8")
        command = [sys.executable, "-m", "pytest", "-q", "--pyargs", "bakeoff.conformance.test_training"]
        environment = {**os.environ, plugins.VARIABLE: file}
        ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert " passed" in ended.stdout
        failed[file] = set(re.findall(r"FAILED .*::(\w+)\[", ended.stdout))
    assert failed == {
        "lion.py": set(),
        "eager.py": {"test_an_optimizer_moves_every_parameter_by_its_rate"},
        "small.py": {"test_an_optimizer_keeps_as_many_numbers_as_it_counts"},
        "forgets.py": {
            "test_a_stopped_training_goes_on_exactly",
            "test_an_optimizer_keeps_as_many_numbers_as_it_counts",  # what it has is not in its state
        },
        "negative.py": {"test_a_schedule_has_a_factor_in_every_step_of_any_training"},
    }


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "there is no such file"),
        ("\n1 / 0\n", "line 2: ZeroDivisionError: division by zero"),
        ("\n\ndef broken(:\n", "line 3: SyntaxError: invalid syntax"),
        ("import nothing_of_that_name\n", "line 1: ModuleNotFoundError: No module named 'nothing_of_that_name'"),
        ("x = 1\n", "there is no part: no config with a name"),
        ("raise SystemExit\n", None),
    ],
)
def test_wrong_files_are_refused(folder, capsys, content, message):
    if content is not None:
        (folder / "wrong.py").write_text(content, encoding="utf-8")
    if message is None:
        with pytest.raises(SystemExit):
            bakeoff.load_plugin("wrong.py")
        return
    assert run(["show", "gpt-tiny", "--plugin", "wrong.py"]) == 2
    assert capsys.readouterr().err.startswith(f"bakeoff: --plugin wrong.py: {message}")


def test_a_name_that_is_taken_is_refused(folder):
    source = (folder / "min_gru.py").read_text(encoding="utf-8")
    (folder / "again.py").write_text(source, encoding="utf-8")
    (folder / "ours.py").write_text(source.replace("min_gru", "gru"), encoding="utf-8")
    first = bakeoff.load_plugin("min_gru.py")
    assert bakeoff.load_plugin(folder / "min_gru.py") is first  # once is enough
    with pytest.raises(UserError, match=r"again.py: MinGruConfig: there is a mixer 'min_gru' already"):
        bakeoff.load_plugin("again.py")
    with pytest.raises(UserError, match=r"there is a mixer 'gru' already, bakeoff.models.mixers.gru.GruConfig; take"):
        bakeoff.load_plugin("ours.py")


def test_keys_of_a_plugin_are_hinted_at(folder):
    bakeoff.load_plugin("copying.py")
    with pytest.raises(UserError, match="unknown key 'shere'; did you mean 'share'"):
        load_recipe("roberta-tiny", {"objective": [{"kind": "copy", "shere": 1}]})
    with pytest.raises(UserError, match="there is no 'copi'; did you mean 'copy'"):
        load_recipe("roberta-tiny", {"objective": [{"kind": "copi"}]})


def test_the_tokenizer_of_the_page(folder, text_folder):
    (folder / "text.txt").write_text((text_folder / "documents.txt").read_text(encoding="utf-8"), encoding="utf-8")
    exec(blocks_of("python")[-1], {})
    assert Tokenizer.from_file("syllables.json").encode("the river").tokens == ["the", "ri", "ve", "r"]
    corpus = bakeoff.prepare("text.txt", "made", tokenizer="syllables.json", workers=0)
    assert corpus.tokenizer.config.kind == "word"


@pytest.fixture
def lion(folder):
    """The optimizer and the schedule of docs/plugins.md in a file, loaded, and a small recipe that has both."""
    (code,) = (block for block in blocks_of("python") if "class LionConfig" in block)
    (folder / "lion.py").write_text(code, encoding="utf-8")
    (folder / "lion-tiny.yaml").write_text(blocks_of("yaml")[1], encoding="utf-8")
    bakeoff.load_plugin("lion.py")
    training = load_recipe("lion-tiny.yaml").training
    parts = {f"training.{part}": getattr(training, part).model_dump(mode="json") for part in ("optimizer", "schedule")}
    recipe = shrink("gpt-tiny", **{**parts, "training.budget": {"steps": 8}, "training.average_last": 0})
    (folder / "small.yaml").write_text(recipe.to_yaml(), encoding="utf-8")
    return recipe


def test_an_optimizer_and_a_schedule_of_a_plugin_train_and_go_on_exactly(lion, corpus):
    options = {"progress": False, "device": "cpu"}
    whole = bakeoff.pretrain(lion, corpus.path, "whole", **options)
    bakeoff.pretrain(lion, corpus.path, "run", until=5, **options)
    run = bakeoff.pretrain(lion, corpus.path, "run", resume=True, **options)
    assert run.weights_file().read_bytes() == whole.weights_file().read_bytes()
    rates = [line["learning_rate"] for line in run.metrics() if line["kind"] == "train"]
    assert rates == pytest.approx([3e-4] * 5 + [3e-5] * 2 + [3e-6])  # of 7 steps after the warm-up half, then a fourth
    with pytest.raises(UserError, match=r"training.optimizer: unknown key 'decay'; did you mean 'weight_decay'"):
        lion.changed({"training.optimizer.decay": 1.0})


@pytest.mark.slow
def test_an_optimizer_and_a_schedule_of_a_plugin_are_searched_and_compared(lion, corpus):
    over = {"training.optimizer.lr": [1e-4, 1e-3], "training.schedule.fall": [0.1, 0.5]}
    found = bakeoff.tune(lion, corpus.path, "searched", trials=2, budget=bakeoff.Budget(steps=8), over=over)
    assert load_recipe("searched/recipe.yaml").training.schedule.kind == "staircase"
    assert found.winner.values.keys() == over.keys()
    plan = {"corpus": str(corpus.path), "budget": "steps=3", "seeds": 1, "recipes": ["small.yaml"], "device": "cpu"}
    rows = "".join(f"{'warm' if i % 3 else 'cold'} {i % 7}\t{i % 3 > 0}\n" for i in range(30))
    for name in ("train", "dev", "test"):
        Path(f"{name}.tsv").write_text(f"text\tlabel\n{rows}", encoding="utf-8")
    files = {name: f"{name}.tsv" for name in ("train", "dev", "test")}
    task = {"name": "warmth", **files, "text_column": "text", "label_column": "label", "finetune": {"epochs": 1}}
    Path("plan.yaml").write_text(json.dumps({**plan, "tasks": [task]}), encoding="utf-8")
    (entry,) = bakeoff.compare("plan.yaml", "out", report=lambda results, path: None).recipes
    assert entry.recipe["training"]["optimizer"]["kind"] == "lion"


def test_an_optimizer_and_a_schedule_of_a_plugin_fine_tune(lion, corpus):
    lines = [f"{'good ' * (row % 2)}river {row % 7}\t{row % 2}" for row in range(40)]
    Path("rows.tsv").write_text("\n".join(["text\tlabel", *lines]) + "\n", encoding="utf-8")
    task = bakeoff.ClassificationConfig(train="rows.tsv", text_column="text", label_column="label")
    given = {"optimizer": "lion", "schedule": "staircase", "learning_rate": 1e-3, "epochs": 1, "length": 16}
    config = bakeoff.FinetuneConfig.parse({**given, "layer_decay": 0.9}, "here")
    result = bakeoff.finetune(lion, task, "tuned", config=config, tokenizer=corpus.path, device="cpu", progress=False)
    assert (result.learning_rate, result.epochs) == (1e-3, 1.0)
    settings = Path("tuned/task.yaml").read_text(encoding="utf-8")
    assert "lion" in settings
    assert "staircase" in settings


def test_optimizers_and_schedules_are_put_into_recipes(lion):
    made = plugin_recipes([bakeoff.load_plugin("lion.py")])
    parts = [{recipe.training.optimizer.kind, recipe.training.schedule.kind} for recipe in made.values()]
    assert sum("lion" in each for each in parts) == 4  # two examples in two models
    assert sum("staircase" in each for each in parts) == 2


@pytest.fixture
def graded(folder):
    """The kind of task of docs/plugins.md in a file, and rows whose grade is the number of times that a word stands."""
    (code,) = (block for block in blocks_of("python") if "class GradesConfig" in block)
    (folder / "grades.py").write_text(code, encoding="utf-8")
    for name, rows in (("train", 60), ("dev", 20), ("test", 25)):
        lines = [f"{'good ' * (1 + row % 3)}river {row % 7}\t{1 + row % 3}" for row in range(rows)]
        (folder / f"{name}.tsv").write_text("\n".join(["text\tstars", *lines]) + "\n", encoding="utf-8")
    return folder


FILES = ["--train", "train.tsv", "--dev", "dev.tsv", "--test", "test.tsv"]
COLUMNS = ["--text-column", "text", "--label-column", "stars"]


def test_a_kind_of_task_is_checked_trained_evaluated_and_predicted(graded, corpus, capsys):
    plugin = ["--plugin", "grades.py"]
    asked = ["--task", "grades", *FILES, *COLUMNS, "--option", "top=3", *plugin]
    assert run(["check", *asked]) == 0
    assert capsys.readouterr().out.startswith("train: grades, by distance\n")
    quick = [word for each in ("epochs=1", "length=16", "patience=null") for word in ("--option", each)]
    (graded / "small.yaml").write_text(shrink("bert-tiny").to_yaml(), encoding="utf-8")
    trained = ["finetune", "small.yaml", "--corpus", str(corpus.path), *asked, *quick, "--out", "stars", "--json"]
    assert run(trained) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["kind"], result["metric"]) == ("grades", "distance")
    assert result["simplest"] == {"distance": pytest.approx(17 / 25), "accuracy": pytest.approx(8 / 25)}
    assert run(["evaluate", "stars", "--data", "test.tsv", "--json", *plugin]) == 0
    assert json.loads(capsys.readouterr().out)["scores"] == pytest.approx(result["scores"]["test"])
    assert run(["predict", "stars", "a good river", "--json", *plugin]) == 0
    (answer,) = json.loads(capsys.readouterr().out)
    assert answer["grade"] in (1, 2, 3)
    assert run(["finetune", "stars", *asked, *quick, "--out", "again"]) == 0
    assert "median grade of train  distance 0.6800  accuracy 0.3200" in capsys.readouterr().out
    (graded / "test.tsv").write_text("text\tstars\na\t9\n", encoding="utf-8")
    assert run(["evaluate", "stars", "--data", "test.tsv", *plugin]) == 2
    assert capsys.readouterr().err == "bakeoff: test.tsv:2: '9' is no grade from 1 to 3\n"


@pytest.fixture
def graded_run(graded, corpus):
    """A run of the kind, fine-tuned, and its answers to texts."""
    bakeoff.load_plugin("grades.py")
    files = {name: f"{name}.tsv" for name in ("train", "dev", "test")}
    values = {"kind": "grades", **files, "text_column": "text", "label_column": "stars", "top": 3}
    quick = bakeoff.FinetuneConfig(epochs=1, length=16, pooling="cls")
    bakeoff.finetune(
        shrink("bert-tiny"), parse_task(values, "here"), "stars", config=quick, tokenizer=corpus.path, progress=False
    )
    return bakeoff.predict("stars", TEXTS)


TEXTS = ["a good river", "good good good river 3", "the water"]


def test_a_kind_of_task_is_exported_and_imported_again(graded_run):
    """In the class of transformers that it names, without another word about it anywhere."""
    transformers = pytest.importorskip("transformers")
    assert bakeoff.export("stars", "exported", to="hf").loads_with.startswith(
        "transformers.BertForSequenceClassification"
    )
    config = json.loads(Path("exported/config.json").read_text(encoding="utf-8"))
    assert config["id2label"] == {"0": "LABEL_0", "1": "LABEL_1"}
    assert config["problem_type"] == "multi_label_classification"
    model = transformers.AutoModelForSequenceClassification.from_pretrained("exported")
    tokenizer = transformers.AutoTokenizer.from_pretrained("exported")
    above = model(**tokenizer(TEXTS, padding=True, return_tensors="pt")).logits > 0
    assert (1 + above.sum(1)).tolist() == [answer["grade"] for answer in graded_run]
    bakeoff.import_model("exported", "again")
    assert bakeoff.predict("again", TEXTS) == graded_run
    assert (
        bakeoff.evaluate("again", data="test.tsv", text_column="text", label_column="stars")["scores"]
        == (bakeoff.evaluate("stars", data="test.tsv")["scores"])
    )


def test_an_exported_kind_of_task_is_not_imported_as_another(graded_run, monkeypatch, capsys):
    pytest.importorskip("transformers")
    bakeoff.export("stars", "exported", to="hf")
    TASKS._configs.pop("grades")
    monkeypatch.setattr(plugins, "_LOADED", {})
    assert run(["import", "exported", "--out", "again"]) == 2
    assert "there is no kind of task 'grades'" in capsys.readouterr().err


@pytest.mark.slow
def test_a_kind_of_task_is_exported_as_onnx(graded_run, monkeypatch, capsys):
    for name in ("onnx", "onnxscript", "onnxruntime"):
        pytest.importorskip(name)
    bakeoff.export("stars", "exported", to="onnx")
    (program,) = re.findall(r"```python\n(.*?)```", Path("exported/README.md").read_text(encoding="utf-8"), re.DOTALL)
    monkeypatch.chdir("exported")
    shown = '["The first text.", "A second one, which is longer."]'
    assert shown in program
    capsys.readouterr()
    exec(compile(program.replace(shown, repr(TEXTS)), "README.md", "exec"), {})
    assert capsys.readouterr().out == f"[{' '.join(str(answer['grade']) for answer in graded_run)}]\n"


@pytest.mark.slow
def test_a_kind_of_task_is_exported_with_code_where_no_family_has_the_model(graded, corpus):
    pytest.importorskip("transformers")
    bakeoff.load_plugin("grades.py")
    values = {"kind": "grades", "train": "train.tsv", "text_column": "text", "label_column": "stars", "top": 3}
    quick = bakeoff.FinetuneConfig(epochs=1, length=16)
    recipe, task = shrink("conv-light-encoder-tiny"), parse_task(values, "here")
    bakeoff.finetune(recipe, task, "stars", config=quick, tokenizer=corpus.path, progress=False)
    assert "trust_remote_code" in bakeoff.export("stars", "exported", to="hf").loads_with
    bakeoff.import_model("exported", "again")
    assert bakeoff.predict("again", TEXTS) == bakeoff.predict("stars", TEXTS)


def test_a_kind_of_task_that_names_no_class_of_transformers_is_refused(graded_run, monkeypatch, capsys):
    monkeypatch.setattr(TASKS["grades"], "exported", None)
    assert run(["export", "stars", "--to", "hf", "--out", "exported"]) == 2
    assert "transformers has nothing like a run for grades; --to onnx can take it" in capsys.readouterr().err
    assert not Path("exported").exists()


def test_a_run_of_another_kind_of_task_names_its_plugin(graded, corpus, monkeypatch):
    bakeoff.load_plugin("grades.py")
    task = parse_task({"kind": "grades", "train": "train.tsv", "text_column": "text", "label_column": "stars"}, "here")
    quick = bakeoff.FinetuneConfig(epochs=1, length=16)
    bakeoff.finetune(shrink("bert-tiny"), task, "stars", config=quick, tokenizer=corpus.path, progress=False)
    TASKS._configs.pop("grades")
    monkeypatch.setattr(plugins, "_LOADED", {})
    with pytest.raises(UserError, match=r"stars: this run was trained with the plugin grades.py; give --plugin FILE"):
        bakeoff.predict("stars", ["a"])


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_kind_of_task_is_compared(graded, corpus, jobs):
    """With its baselines and its noise, in this process and in others."""
    (graded / "small.yaml").write_text(shrink("bert-tiny").to_yaml(), encoding="utf-8")
    files = {name: f"{name}.tsv" for name in ("train", "dev", "test")}
    task = {"name": "stars", "kind": "grades", **files, "text_column": "text", "label_column": "stars", "top": 3}
    plan = {
        "corpus": str(corpus.path),
        "budget": "steps=2",
        "seeds": 3,
        "recipes": ["small.yaml"],
        "tasks": [{**task, "finetune": {"epochs": 1, "length": 16}}],
        "from_scratch": False,
        "device": "cpu",
    }
    (graded / "plan.yaml").write_text(json.dumps(plan), encoding="utf-8")
    with pytest.raises(UserError, match="'grades'"):
        bakeoff.compare("plan.yaml", "out")
    bakeoff.load_plugin("grades.py")
    results = bakeoff.compare("plan.yaml", "out", jobs=jobs, report=lambda results, path: None)
    (facts,) = results.tasks
    assert (facts.kind, facts.metric_title, facts.lower_is_better) == ("grades", "mean distance in grades", True)
    assert [baseline.name for baseline in results.baselines] == [
        "median grade of train",
        "TF-IDF with logistic regression",
    ]
    assert results.analyses[0].pretrained["small"].interval is not None


LATER = [pytest.param(name, marks=pytest.mark.slow) for name in ("comparison.planning.plan", "runs.run", "recipe")]


@pytest.mark.parametrize("first", ["tasks.task", *LATER])
def test_a_kind_of_task_is_known_whatever_is_imported_first(graded, first):
    values = "{'kind': 'grades', 'train': 'train.tsv', 'text_column': 'text', 'label_column': 'stars'}"
    parsed = f"print(parse_task({values}, 'here').kind)"
    code = f"import bakeoff.{first}; from bakeoff.tasks.registry import parse_task; {parsed}"
    environment = {**os.environ, plugins.VARIABLE: str(graded / "grades.py")}
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert done.stdout == "grades\n"
