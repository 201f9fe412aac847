"""`hub:` names through the libraries' own code, against a stand-in for the Hub on this machine.

The libraries read HF_ENDPOINT when they are imported, so that each command is a process of its own.
"""

import json
import os
import subprocess
import sys

import pytest
from hub_server import Repository, serving

pytestmark = pytest.mark.slow

CARD = """---
configs:
- config_name: cola
  data_files: [{{split: train, path: cola/train-*}}]
- config_name: sst2
  data_files: [{{split: train, path: sst2/train-*}}, {{split: validation, path: sst2/validation-*}}]
---
# {0}
"""


@pytest.fixture(scope="module")
def reviews(tmp_path_factory):
    """Two commits of a data set in GLUE's columns, with two configs, in three files of Parquet."""
    datasets = pytest.importorskip("datasets", reason='needs datasets: pip install -e ".[hub]"')
    columns = {"sentence": datasets.Value("string"), "label": datasets.ClassLabel(names=["negative", "positive"])}
    commits = []
    for commit in ("first", "second"):
        folder = tmp_path_factory.mktemp(commit)
        for name in ("cola", "sst2"):
            (folder / name).mkdir()
        (folder / "README.md").write_text(CARD.format(commit))
        for file, count in (("train-00000-of-00002", 60), ("train-00001-of-00002", 50), ("validation-00000", 30)):
            rows = {
                "sentence": [f"A {('bad', 'good')[i % 2]} film, {i} of {file}, {commit}." for i in range(count)],
                "label": [i % 2 for i in range(count)],
            }
            table = datasets.Dataset.from_dict(rows, features=datasets.Features(columns))
            table.to_parquet(str(folder / "sst2" / f"{file}.parquet"))
        table.to_parquet(str(folder / "cola" / "train-00000.parquet"))
        commits.append(folder)
    return Repository("datasets", "nyu-mll/glue", commits)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A small BERT as transformers saves it, and a file that nobody asked for."""
    transformers = pytest.importorskip("transformers", reason='needs transformers: pip install -e ".[hub]"')
    folder = tmp_path_factory.mktemp("model")
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    config = transformers.BertConfig(vocab_size=60, max_position_embeddings=64, **sizes)
    transformers.BertForMaskedLM(config).save_pretrained(folder)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(chr(code) for code in range(97, 123))]
    words += [f"##{chr(code)}" for code in range(97, 123)] + [".", ",", "!"]
    (folder / "vocab.txt").write_text("\n".join(words) + "\n")
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "BertTokenizer", "do_lower_case": true}')
    (folder / "pytorch_model.bin").write_bytes(b"never fetched")
    return Repository("models", "tester/tiny", [folder])


@pytest.fixture(scope="module")
def others(tmp_path_factory):
    """Data sets in the columns that they have on the Hub: one that is a program, with the Parquet made of it."""
    datasets = pytest.importorskip("datasets", reason='needs datasets: pip install -e ".[hub]"')
    value, listed, classes = datasets.Value("string"), datasets.List, datasets.ClassLabel
    tags = classes(names=["O", "B-PER", "I-PER", "B-ORG", "I-ORG", "B-LOC", "I-LOC", "B-MISC", "I-MISC"])
    types = classes(names=["ABBR", "ENTY", "DESC", "HUM", "LOC", "NUM"])
    sides = classes(names=["choice1", "choice2"])
    copa = dict.fromkeys(("premise", "choice1", "choice2", "question"), value) | {"label": sides}
    made = {
        "eriktks/conll2003": (
            "conll2003",
            {"tokens": listed(value), "ner_tags": listed(tags)},
            lambda i: {"tokens": ["Ann", f"w{i}"], "ner_tags": [1, 5 * (i % 2)]},
        ),
        "CogComp/trec": (
            "default",
            {"text": value, "coarse_label": types},
            lambda i: {"text": f"What is {i}?", "coarse_label": i % 6},
        ),
        "aps/super_glue": (
            "copa",
            copa,
            lambda i: {"premise": f"p{i}", "choice1": "a", "choice2": "b", "question": "cause", "label": i % 2},
        ),
        "bbaaaa/iwslt14-de-en": (
            "default",
            {"translation": datasets.Translation(languages=["de", "en"])},
            lambda i: {"translation": {"de": f"Haus {i}", "en": f"house {i}"}},
        ),
        "peoples-daily-ner/peoples_daily_ner": (
            "peoples_daily_ner",
            {"id": value, "tokens": listed(value), "ner_tags": listed(classes(names=tags.names[:7]))},
            lambda i: {"id": str(i), "tokens": ["北", "京", str(i)], "ner_tags": [5, 6, 0]},
        ),
    }
    found = []
    for name, (config, features, row) in made.items():
        program, converted = tmp_path_factory.mktemp("program"), tmp_path_factory.mktemp("converted")
        (program / f"{name.partition('/')[2]}.py").write_text("raise SystemExit('never run')\n")
        for split, count in (("train", 60), ("validation", 30), ("test", 30)):
            (converted / config / split).mkdir(parents=True)
            table = datasets.Dataset.from_list([row(i) for i in range(count)], features=datasets.Features(features))
            table.to_parquet(str(converted / config / split / "0000.parquet"))
        found.append(Repository("datasets", name, [program], converted))
    return found


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Data sets whose files of Parquet or .csv the libraries find by their names, without a card."""
    datasets = pytest.importorskip("datasets", reason='needs datasets: pip install -e ".[hub]"')
    reviews, questions, comments = (tmp_path_factory.mktemp(name) for name in ("reviews", "questions", "comments"))
    for split, count in (("train", 60), ("validation", 20), ("test", 30)):
        rows = {"text": [f"好 {split} {i}" for i in range(count)], "label": [i % 2 for i in range(count)]}
        (reviews / "data").mkdir(exist_ok=True)
        datasets.Dataset.from_dict(rows).to_parquet(str(reviews / f"data/{split}-00000-of-00001-0a1b.parquet"))
        rows = {"sentence1": rows["text"], "sentence2": ["好"] * count, "score": rows["label"]}
        (questions / "data").mkdir(exist_ok=True)
        datasets.Dataset.from_dict(rows).to_parquet(str(questions / f"data/{split}-00000-of-00001-0a1b.parquet"))
    kinds = "toxic,severe_toxic,obscene,threat,insult,identity_hate"
    lines = [f'a{i},"two\nlines, {i}",{i % 2},0,{i % 3 // 2},0,0,0' for i in range(60)]
    (comments / "train.csv").write_text("\n".join([f"id,comment_text,{kinds}", *lines, ""]))
    (comments / "test.csv").write_text("id,comment_text\nb0,no labels here\n")
    (comments / "test_labels.csv").write_text(f"id,{kinds}\nb0,-1,-1,-1,-1,-1,-1\n")
    return [
        Repository("datasets", "lansinuote/ChnSentiCorp", [reviews]),
        Repository("datasets", "C-MTEB/LCQMC", [questions]),
        Repository("datasets", "thesofakillers/jigsaw-toxic-comment-classification-challenge", [comments]),
    ]


@pytest.fixture(scope="module")
def hub(reviews, model, others, tables):
    with serving([reviews, model, *others, *tables]) as server:
        yield server
    assert not [each for each in server.unanswered if "/nyu-mll/" in each or "/tester/" in each]


@pytest.fixture
def bakeoff(hub, tmp_path):
    """Runs a command whose Hub is the stand-in, with a cache of its own; returns status, output and errors."""

    def ran(*arguments):
        environment = {
            **os.environ,
            "HF_ENDPOINT": hub.url,
            "HF_HOME": str(tmp_path / "cache"),
            "NO_PROXY": "127.0.0.1",
        }
        command = [sys.executable, "-m", "bakeoff", *map(str, arguments)]
        done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    return ran


def test_text_of_the_hub_is_that_of_its_files_at_one_commit(bakeoff, hub, reviews, tmp_path):
    form = ("--field", "sentence", "--tokenizer", "character")
    asked = len(hub.asked)
    status, _, err = bakeoff("prepare", "hub:nyu-mll/glue:sst2", "--out", "stream", *form)
    assert status == 0, err
    read = [each for each in hub.asked[asked:] if each.endswith(".parquet")]
    assert read
    assert all(f"/{reviews.newest}/sst2/train-" in each for each in read)
    files = sorted((reviews.commits[reviews.newest] / "sst2").glob("train-*"))
    assert bakeoff("prepare", *files, "--out", "files", *form)[0] == 0
    for name in ("train.tokens", "tokenizer.json"):
        assert (tmp_path / "stream" / name).read_bytes() == (tmp_path / "files" / name).read_bytes()
    sources = json.loads((tmp_path / "stream" / "corpus.json").read_text())["sources"]
    assert {each["revision"] for each in sources} == {reviews.newest}
    assert [each["bytes"] for each in sources] == [file.stat().st_size for file in files]


def test_a_named_data_set_is_read_from_where_the_hub_has_it(bakeoff):
    status, out, err = bakeoff("check", "--dataset", "sst2", "--data", "hub:", "--json")
    assert status == 0, err
    found = json.loads(out)
    splits = {each["split"]: each for each in found["splits"]}
    assert {name: split["examples"] for name, split in splits.items()} == {"train": 99, "dev": 11, "test": 30}
    assert {each["label"]: each["count"] for each in splits["test"]["labels"]} == {"0": 15, "1": 15}
    assert "second." in splits["train"]["labels"][0]["example"]


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        ("conll2003", {"B-PER": 30, "O": 15, "B-LOC": 15}),
        ("trec", dict.fromkeys(["ABBR", "ENTY", "DESC", "HUM", "LOC", "NUM"], 5)),
        ("copa", {"0": 15, "1": 15}),
        ("iwslt14_de_en", {}),
        ("peopledaily", {"B-LOC": 30, "I-LOC": 30, "O": 30}),
    ],
)
def test_what_is_a_program_on_the_hub_is_read_from_the_parquet_that_was_made_of_it(bakeoff, name, labels):
    status, out, err = bakeoff("check", "--dataset", name, "--data", "hub:", "--json")
    assert status == 0, err
    splits = {each["split"]: each for each in json.loads(out)["splits"]}
    assert splits["test"]["examples"] == 30
    assert {each["label"]: each["count"] for each in splits["test"]["labels"]} == labels


@pytest.mark.parametrize(
    ("name", "examples", "labels"),
    [
        ("chnsenticorp", [60, 20, 30], {"0": 15, "1": 15}),
        ("lcqmc", [60, 20, 30], {"0": 15, "1": 15}),
        ("wiki_toxic_kinds", [42, 6, 12], {"toxic": 6, "obscene": 4}),
    ],
)
def test_tables_of_the_hub_are_read_in_their_columns(bakeoff, name, examples, labels):
    status, out, err = bakeoff("check", "--dataset", name, "--data", "hub:", "--json")
    assert status == 0, err
    splits = json.loads(out)["splits"]
    assert [each["examples"] for each in splits] == examples
    assert {each["label"]: each["count"] for each in splits[2]["labels"] if each["count"]} == labels


def test_a_model_of_the_hub_is_that_of_its_folder(bakeoff, hub, model, tmp_path):
    asked = len(hub.asked)
    status, _, err = bakeoff("import", "tester/tiny", "--out", "fetched")
    assert status == 0, err
    assert not [each for each in hub.asked[asked:] if each.endswith(".bin")]
    assert bakeoff("import", model.commits[model.newest], "--out", "given")[0] == 0
    for name in ("model.safetensors", "tokenizer.json"):
        assert (tmp_path / "fetched" / name).read_bytes() == (tmp_path / "given" / name).read_bytes()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["prepare", "hub:tester/none", "--out", "out"], "hub:tester/none: cannot be read (401 Client Error)"),
        (["prepare", "hub:nyu-mll/glue:mnli", "--out", "out"], "BuilderConfig 'mnli' not found"),
        (["prepare", "hub:nyu-mll/glue:sst2@test", "--out", "out"], "no split 'test' (splits here: train, validation)"),
        (["import", "tester/none", "--out", "out"], "tester/none: no such folder, and the Hub does not give it"),
        (
            ["import", "tester/tiny@v2", "--out", "out"],
            "tester/tiny@v2: no such folder, and the Hub does not give it",
        ),
    ],
)
def test_what_the_hub_does_not_have_is_one_line(bakeoff, tmp_path, arguments, message):
    status, out, err = bakeoff(*arguments)
    assert (status, out) == (2, "")
    assert message in err
    assert len(err.strip().splitlines()) == 1
    assert not (tmp_path / "out").exists()
