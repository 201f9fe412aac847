"""The demo's text and plan; `.ci/run` runs the demo itself at a tenth of its budget."""

import csv
import inspect
import json
from collections import Counter

import pytest

from bakeoff.cli import run
from bakeoff.comparison.planning.plan import Plan
from bakeoff.demo import data
from bakeoff.demo.docstrings import prose
from bakeoff.demo.plan import demo_plan
from bakeoff.recipe_files import load_recipe
from bakeoff.text.sentences import split_sentences


def rows(path):
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    return folder, data.write_files(folder)


def test_prose_is_sentences_without_markup():
    docstring = """Compute the sum along an axis of ``a`` and return :class:`~numpy.ndarray` of it.

    Parameters
    ----------
    a : array_like
        Elements to sum.

    >>> np.sum([0.5, 1.5])
    2.0

    Arithmetic is modular when using integer types, and no error is raised on overflow.
    """
    assert prose(inspect.cleandoc(docstring)) == [
        "Compute the sum along an axis of a and return numpy.ndarray of it.",
        "Arithmetic is modular when using integer types, and no error is raised on overflow.",
    ]


def test_the_tasks_do_not_overlap_with_the_text(files):
    folder, classes = files
    assert len(classes) >= 8
    lines = (folder / "text.jsonl").read_text(encoding="utf-8").splitlines()
    paragraphs = [paragraph for line in lines for paragraph in json.loads(line)["text"].split("\n")]
    known = {sentence.strip() for paragraph in paragraphs for sentence in split_sentences(paragraph)}
    for part in ("train", "dev", "test"):
        labelled = rows(folder / f"package-{part}.tsv")
        assert {row["label"] for row in labelled} == set(classes)
        ordered = [row for row in rows(folder / f"word-order-{part}.tsv") if row["label"] == "intact"]
        for row in labelled + ordered:
            assert known.isdisjoint(sentence.strip() for sentence in split_sentences(row["text"]))


def test_word_order_is_balanced_and_only_the_order_tells(files):
    folder, _ = files
    for part, count in data.ORDER_ROWS.items():
        labelled = rows(folder / f"word-order-{part}.tsv")
        assert len(labelled) == count
        shares = Counter(row["label"] for row in labelled)
        assert shares["swapped"] == pytest.approx(count / 2, rel=0.02)


@pytest.mark.slow
def test_the_files_are_the_same_each_time(files, tmp_path):
    folder, _ = files
    data.write_files(tmp_path)
    for file in sorted(tmp_path.iterdir()):
        assert file.read_bytes() == (folder / file.name).read_bytes()


@pytest.mark.parametrize("scale", [1.0, 0.1])
def test_the_plan_is_legal(scale):
    plan = Plan.parse(demo_plan(scale), "demo")
    assert plan.seeds == [0, 1, 2]
    assert len(plan.recipes) == 4
    for entry in plan.recipes:
        recipe = load_recipe(entry.recipe, entry.set)
        assert (recipe.model.stack.width, recipe.model.stack.layers) == (128, 2)
    assert [task.finetune.learning_rate for task in plan.tasks] == [[1e-3], [3e-3, 6e-3]]


@pytest.fixture
def quick_files(monkeypatch):
    """The demo's files, in no time."""

    def write(folder):
        (folder / "text.jsonl").write_text('{"text": "A text."}\n', encoding="utf-8")
        (folder / "word-order-dev.tsv").write_text("label\ttext\nintact\tA text.\n", encoding="utf-8")

    monkeypatch.setattr("bakeoff.demo.run.write_files", write)


def test_the_files_alone(quick_files, tmp_path, capsys):
    out = tmp_path / "files"
    assert run(["demo", "--files-only", "--out", str(out)]) == 0
    assert {path.name for path in tmp_path.iterdir()} == {"files"}
    assert {path.name for path in out.iterdir()} == {"text.jsonl", "word-order-dev.tsv"}
    first, second = capsys.readouterr().out.splitlines()
    assert first == f"{out / 'text.jsonl'}  0.00 MB, a document a line"
    assert second.endswith("columns label and text")


def test_files_are_written_over_nothing(quick_files, tmp_path, capsys):
    kept = tmp_path / "notes.txt"
    kept.write_text("mine", encoding="utf-8")
    assert run(["demo", "--files-only", "--out", str(kept)]) == 2
    assert kept.read_text(encoding="utf-8") == "mine"
    assert capsys.readouterr().err == f"bakeoff: {kept}: is there already; choose another --out\n"


def test_files_are_whole_or_not_there(quick_files, tmp_path, monkeypatch):
    def broken(folder):
        (folder / "text.jsonl").write_text("half", encoding="utf-8")
        raise OSError(28, "No space left on device", str(folder))

    monkeypatch.setattr("bakeoff.demo.run.write_files", broken)
    assert run(["demo", "--files-only", "--out", str(tmp_path / "files")]) == 2
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "told"), [(["--files-only"], "nothing was kept"), ([], "with more space the same")]
)
def test_a_full_disk_is_named(options, told, tmp_path, monkeypatch, capsys):
    def full(folder):
        raise OSError(28, "No space left on device")  # what a write to an open file says names no file

    monkeypatch.setattr("bakeoff.demo.run.write_files", full)
    out = tmp_path / "demo"
    assert run(["demo", *options, "--out", str(out)]) == 2
    assert f"bakeoff: {out}: cannot be written: No space left on device; {told}" in capsys.readouterr().err
