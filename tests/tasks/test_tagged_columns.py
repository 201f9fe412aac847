"""Words and tags out of files with columns, and columns within columns, as `datasets` writes them; rows one by one."""

from pathlib import Path

import pytest

from bakeoff.errors import UserError
from bakeoff.reading.tables import open_table
from bakeoff.tasks.registry import parse_task

WORDS = [["Ann", "lives", "here"], ["Bonn"], ["it", "rains"]]
TAGS = [["B-PER", "O", "O"], ["B-LOC"], ["O", "O"]]


@pytest.fixture(scope="module")
def datasets():
    return pytest.importorskip("datasets", reason='needs datasets: pip install -e ".[hub]"')


@pytest.fixture(scope="module")
def files(tmp_path_factory, datasets):
    """The same rows as .parquet, as .arrow, and as a data set that is streamed; tags are numbers of classes."""
    folder = tmp_path_factory.mktemp("tagged")
    names = ["O", "B-PER", "B-LOC"]
    features = {
        "tokens": datasets.List(datasets.Value("string")),
        "tags": datasets.List(datasets.ClassLabel(names=names)),
        "kind": datasets.ClassLabel(names=["news", "talk"]),
        "translation": datasets.Translation(languages=["de", "en"]),
    }
    rows = {
        "tokens": WORDS,
        "tags": [[names.index(tag) for tag in tags] for tags in TAGS],
        "kind": [0, 1, -1],
        "translation": [{"de": f"Satz {i}", "en": f"sentence {i}"} for i in range(3)],
    }
    table = datasets.Dataset.from_dict(rows, features=datasets.Features(features))
    (folder / "set").mkdir()
    table.to_parquet(str(folder / "set" / "train.parquet"))
    table.save_to_disk(str(folder / "saved"))
    return {
        "parquet": folder / "set" / "train.parquet",
        "arrow": next((folder / "saved").glob("*.arrow")),
        "hub": Path(f"hub:{folder / 'set'}@train"),
    }


@pytest.mark.parametrize("form", ["parquet", "arrow", "hub"])
def test_words_have_the_names_of_their_classes(files, form):
    config = parse_task(
        {"kind": "tagging", "train": files[form], "text_column": "tokens", "label_column": "tags"}, "task"
    )
    found = list(config.read(files[form]))
    assert [list(each.texts) for each in found] == WORDS
    assert [list(each.tags) for each in found] == TAGS
    assert [each.tags for each in config.read(files[form], labelled=False)] == [None] * 3
    assert config.reads_files(files[form])


@pytest.mark.parametrize("form", ["parquet", "arrow", "hub"])
def test_a_column_within_a_column_and_a_class_that_is_not_known(files, form):
    found = [values for _, values in open_table(files[form]).rows(["translation.en", "kind"])]
    assert found == [["sentence 0", "news"], ["sentence 1", "talk"], ["sentence 2", None]]


@pytest.mark.parametrize("form", ["parquet", "arrow", "hub"])
@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["translation.fr"], "nothing stands under 'fr' of 'translation' \\(here: de, en\\)"),
        (["words"], "no column 'words'"),
    ],
)
def test_what_is_not_there_is_named(files, form, names, message):
    with pytest.raises(UserError, match=message):
        list(open_table(files[form]).rows(names))


def test_unequal_words_and_tags_name_the_row(tmp_path, datasets):
    rows = {"tokens": [["a"], ["b", "c"]], "tags": [["O"], ["O"]]}
    datasets.Dataset.from_dict(rows).to_parquet(str(tmp_path / "x.parquet"))
    config = parse_task(
        {"kind": "tagging", "train": tmp_path / "x.parquet", "text_column": "tokens", "label_column": "tags"}, "task"
    )
    with pytest.raises(UserError, match=r"x\.parquet:2: 2 words and 1 tags"):
        list(config.read(tmp_path / "x.parquet"))
    same = config.model_copy(update={"label_column": "tokens"})
    with pytest.raises(UserError, match=r"need a column each, and both are 'tokens'"):
        list(same.read(tmp_path / "x.parquet"))


def test_the_right_choice_is_named_by_its_column(tmp_path):
    path = tmp_path / "copa.jsonl"
    path.write_text('{"p": "It rained.", "choice1": "wet", "choice2": "dry", "label": "choice2"}\n')
    columns = {"text_column": "p", "choices": ["choice1", "choice2"], "label_column": "label"}
    assert next(parse_task({"kind": "choice", "train": path, **columns}, "task").read(path)).answer == 1


@pytest.mark.parametrize(
    "values", [{"kind": "classification", "label_column": "2"}, {"kind": "sequence_to_sequence", "label_column": "2"}]
)
def test_rows_come_as_they_are_read(tmp_path, values):
    path = tmp_path / "a.csv"
    path.write_text("one,a\ntwo,b\nthree\n")
    config = parse_task({**values, "train": path, "header": False, "text_column": "1"}, "task")
    rows = config.read(path, labelled=False)
    assert [next(rows).texts, next(rows).texts] == [("one",), ("two",)]
    with pytest.raises(UserError, match=r"a\.csv:3: the row has 1 column,"):
        next(rows)
