"""Named data sets: each is read from small files of the form in which it is published."""

import gzip
import json
import re
from pathlib import Path

import pytest

from bakeoff.errors import UserError
from bakeoff.tasks.data import load_task
from bakeoff.tasks.datasets.dataset import dataset_names, load_dataset
from bakeoff.tasks.datasets.named import dataset_task, named_task
from bakeoff.tasks.registry import parse_task

GLUE = ("cola", "sst2", "mrpc", "stsb", "qqp", "mnli", "mnli_mismatched", "qnli", "rte", "wnli")
ROWS = 40
BOTH = [0, 1]
GLUE_PAIR = "index\t{0}\t{1}\tlabel\n"


def table(header, row, labels=BOTH, rows=ROWS):
    """A header, and rows with their number n and a label in turn."""
    return header + "".join(row.format(n=n, label=labels[n % len(labels)]) for n in range(rows))


def glue(header, row, labels=BOTH, test="test without labels\n"):
    return {"train.tsv": table(header, row, labels), "dev.tsv": table(header, row, labels, 10), "test.tsv": test}


def objects(row, labels, rows=ROWS):
    return "".join(
        json.dumps({key: labels[n % len(labels)] if value == "LABEL" else f"{value} {n}" for key, value in row.items()})
        + "\n"
        for n in range(rows)
    )


def conll(rows):
    return "-DOCSTART- -X- -X- O\n\n" + "".join(f"Ann{n} NNP I-NP I-PER\nran VBD I-VP O\n\n" for n in range(rows))


def conllu(rows):
    return "".join(
        f"# sent_id = {n}\n1\tDogs{n}\tdog\tNOUN\tNNS\t_\t2\tnsubj\t_\t_\n2\trun\trun\tVERB\tVBP\t_\t0\troot\t_\t_\n\n"
        for n in range(rows)
    )


MNLI = "index\tpromptID\tpairID\tgenre\tsentence1\tsentence2\tlabel1\tgold_label\n"
MNLI_ROW = "{n}\t1\t1e\tfiction\ta {n}\tb {n}\t{label}\t{label}\n"
THREE = ["entailment", "neutral", "contradiction"]
COLA = 'gj04\t{label}\t*\tThe sentence "{n}.\n'
STSB = "main\tMSRvid\t2012test\t{n}\t{label}\ta plane {n}\tan air plane\n"
STSB_GLUE = "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\tscore\n"
MRPC = "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n"
MRPC_ROW = '{label}\t1\t2\tHe said "{n}.\tShe did.\n'
QQP = "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n"
ARTICLE = {"article": "A", "questions": ["q", "r"], "options": [["a", "b", "c", "d"]] * 2, "answers": ["A", "D"]}
TOXIC = "id,{0},comment_text\n"
RACE = {
    f"{part}/high/{n}.txt": json.dumps(ARTICLE | {"article": f"{part} {n}"})
    for part in ("train", "dev", "test")
    for n in range(5)
}
TREES = table("", "({label} (2 It) (2 {n}))\n", range(5))
BOOLQ = {"question": "is it", "passage": "It is."}
REVIEWS = {
    f"aclImdb/{part}/{label}/{n}_1.txt": f"{part} {label} {n}"
    for part in ("train", "test")
    for label in ("neg", "pos")
    for n in range(15)
}

KINDS = ("toxic", "severe_toxic", "obscene", "threat", "insult", "identity_hate")
TRANSLATIONS = [
    ("multi30k_en_de", ("en", "de"), ("train", "val", "test_2016_flickr")),
    ("multi30k_de_en", ("de", "en"), ("train", "val", "test_2016_flickr")),
    ("wmt14_en_de", ("en", "de"), ("train", "newstest2013", "newstest2014")),
    ("wmt14_de_en", ("de", "en"), ("train", "newstest2013", "newstest2014")),
    ("iwslt14_de_en", ("de", "en"), ("train", "valid", "test")),
    ("iwslt14_en_de", ("en", "de"), ("train", "valid", "test")),
    ("iwslt15_en_vi", ("en", "vi"), ("train", "tst2012", "tst2013")),
]


def lines(side):
    return table("", f"{side} {{n}}\n")


def squad():
    """Articles of a question each, of a context of its own."""
    asked = [
        {"id": f"q{n}", "question": f"What is {n}?", "answers": [{"text": f"word{n}", "answer_start": 3}]}
        for n in range(ROWS)
    ]
    articles = [
        {"title": f"title {n}", "paragraphs": [{"context": f"It word{n} is.", "qas": [each]}]}
        for n, each in enumerate(asked)
    ]
    return json.dumps({"version": "1.1", "data": articles})


PUBLISHED = [
    ("cola", glue("", COLA), ("matthews", ["0", "1"], ROWS * 0.9, 10)),
    (
        "cola",
        {
            f"raw/{name}.tsv": table("", COLA, rows=10)
            for name in ("in_domain_train", "in_domain_dev", "out_of_domain_dev")
        },
        ("matthews", ["0", "1"], 10, 10),
    ),
    (
        "sst2",
        glue("sentence\tlabel\n", 'fine " {n} \t{label}\n', test="index\tsentence\n0\tx\n"),
        ("accuracy", ["0", "1"], 36, 10),
    ),
    (
        "sst2",
        {
            **glue(
                "sentence\tlabel\n",
                "fine {n}\t{label}\n",
                test=table("sentence\tlabel\r\n", "x {n}\t{label}\r\n", rows=6),
            )
        },
        ("accuracy", ["0", "1"], ROWS, 6),
    ),
    (
        "mrpc",
        {f"msr_paraphrase_{part}.txt": table(MRPC, MRPC_ROW) for part in ("train", "test")},
        ("f1", ["0", "1"], 36, 40),
    ),
    (
        "mrpc",
        glue(MRPC, MRPC_ROW, test="index\t#1 ID\t#2 ID\t#1 String\t#2 String\n0\t1\t2\ta\tb\n"),
        ("f1", ["0", "1"], 36, 10),
    ),
    (
        "stsb",
        {
            f"sts-{part}.csv": table("", STSB, ["1.5", "5.000"]) + "m\tM\t2\t7\t3\ta\tb\tmore\tmore\n"
            for part in ("train", "dev", "test")
        },
        ("spearman", [], 41, 41),
    ),
    ("stsb", glue(STSB_GLUE, "{n}\tg\tf\ty\to\tn\tn\ta {n}\tb\t{label}\n", ["1.5", "2"]), ("spearman", [], 36, 10)),
    (
        "qqp",
        glue(QQP, "{n}\t1\t2\tq {n}\tr\t{label}\n")
        | {"train.tsv": table(QQP, "{n}\t1\t2\tq {n}\tr\t{label}\n") + "7\tcut\n"},
        ("f1", ["0", "1"], 36, 10),
    ),
    (
        "mnli",
        {"train.tsv": table(MNLI, MNLI_ROW, THREE), "dev_matched.tsv": table(MNLI, MNLI_ROW, [*THREE, "-"])},
        ("accuracy", sorted(THREE), 36, 30),
    ),
    (
        "mnli_mismatched",
        {"train.tsv": table(MNLI, MNLI_ROW, THREE), "dev_mismatched.tsv": table(MNLI, MNLI_ROW, THREE, 9)},
        ("accuracy", sorted(THREE), 36, 9),
    ),
    (
        "qnli",
        glue(GLUE_PAIR.format("question", "sentence"), "{n}\tq {n}\ts\t{label}\n", ["entailment", "not_entailment"]),
        ("accuracy", ["entailment", "not_entailment"], 36, 10),
    ),
    (
        "rte",
        glue(GLUE_PAIR.format("sentence1", "sentence2"), "{n}\tq {n}\ts\t{label}\n", ["entailment", "not_entailment"]),
        ("accuracy", ["entailment", "not_entailment"], 36, 10),
    ),
    (
        "wnli",
        glue(GLUE_PAIR.format("sentence1", "sentence2"), "{n}\tq {n}\ts\t{label}\n"),
        ("accuracy", ["0", "1"], 36, 10),
    ),
    (
        "boolq",
        {f"{part}.jsonl": objects(BOOLQ | {"label": "LABEL"}, [True, False]) for part in ("train", "val")},
        ("accuracy", ["no", "yes"], 36, 40),
    ),
    (
        "boolq",
        {
            f"{part}.jsonl": objects(BOOLQ | {"title": "t", "answer": "LABEL"}, [True, False])
            for part in ("train", "dev")
        },
        ("accuracy", ["no", "yes"], 36, 40),
    ),
    (
        "copa",
        {
            f"{part}.jsonl": objects(
                {"premise": "p", "choice1": "a", "choice2": "b", "question": "cause", "label": "LABEL"}, BOTH
            )
            for part in ("train", "val")
        },
        ("accuracy", [], 36, 40),
    ),
    ("imdb", REVIEWS, ("accuracy", ["neg", "pos"], 27, 30)),
    (
        "imdb",
        {f"{part}.jsonl": objects({"text": "t", "label": "LABEL"}, BOTH) for part in ("train", "test")},
        ("accuracy", ["neg", "pos"], 36, 40),
    ),
    (
        "sst5",
        {f"trainDevTestTrees_PTB/trees/{part}.txt": TREES for part in ("train", "dev", "test")},
        ("accuracy", ["negative", "neutral", "positive", "very negative", "very positive"], 40, 40),
    ),
    (
        "trec",
        {
            "train_5500.label": table("", "{label}:x Caf\xe9 {n} ?\n", ["HUM", "LOC"]).encode("latin-1"),
            "TREC_10.label": table("", "{label}:x What {n} ?\n", ["HUM", "LOC"], 10),
        },
        ("accuracy", ["HUM", "LOC"], 36, 10),
    ),
    (
        "ag_news",
        {
            f"{part}.csv": table("Class Index,Title,Description\n", "{label},Title {n},Text\n", [1, 2, 3, 4])
            for part in ("train", "test")
        },
        ("accuracy", ["Business", "Sci/Tech", "Sports", "World"], 36, 40),
    ),
    (
        "ag_news",
        {
            f"{part}.csv": table("", '"{label}","Title, {n}","A ""quoted"" text"\n', [1, 2, 3, 4])
            for part in ("train", "test")
        },
        ("accuracy", ["Business", "Sci/Tech", "Sports", "World"], 36, 40),
    ),
    (
        "sentiment140",
        {
            "training.1600000.processed.noemoticon.csv": table(
                "", '"{label}","1","day","NO_QUERY","me","caf\xe9 {n}"\n', [0, 4]
            ).encode("latin-1"),
            "testdata.manual.2009.06.14.csv": table("", '"{label}","1","day","kindle","me","x {n}"\n', [0, 2, 4], 9),
        },
        ("accuracy", ["negative", "positive"], 36, 6),
    ),
    (
        "civil_comments",
        {"train.csv": table(TOXIC.format("target"), '{n},{label},"a, {n}"\n', ["0.0", "0.5"])},
        ("spearman", [], 28, 8),
    ),
    (
        "wiki_toxic",
        {"train.csv": table("id,comment_text,toxic,threat\n", '{n},"two\nlines {n}",{label},0\n')},
        ("f1", ["not toxic", "toxic"], 28, 8),
    ),
    (
        "wiki_toxic_kinds",
        {"train.csv": table(f"id,comment_text,{','.join(KINDS)}\n", '{n},"two\nlines {n}",{label},0,1,0,0,0\n')},
        ("auc", sorted(KINDS), 28, 8),
    ),
    (
        "chnsenticorp",
        glue("label\ttext_a\n", "{label}\t好 {n}\n", test=table("label\ttext_a\n", "{label}\t好 {n}\n", rows=6)),
        ("accuracy", ["0", "1"], 40, 6),
    ),
    (
        "lcqmc",
        glue(
            "text_a\ttext_b\tlabel\n",
            "好 {n}\t好\t{label}\n",
            test=table("text_a\ttext_b\tlabel\n", "好\t好 {n}\t{label}\n"),
        ),
        ("accuracy", ["0", "1"], 40, 40),
    ),
    (
        "lcqmc",
        glue("", "好 {n}\t好\t{label}\n", test=table("", "好\t好 {n}\t{label}\n")),
        ("accuracy", ["0", "1"], 40, 40),
    ),
    (
        "tnews",
        {
            f"{part}.json": objects(
                {"label": "LABEL", "label_desc": "LABEL", "sentence": "好", "keywords": ""}, ["news_a", "news_b"]
            )
            for part in ("train", "dev", "test")
        },
        ("accuracy", ["news_a", "news_b"], 36, 40),
    ),
    (
        "conll2003",
        {name: conll(ROWS) for name in ("eng.train", "eng.testa", "eng.testb")},
        ("f1", ["I-PER", "O"], 40, 40),
    ),
    (
        "conll2003",
        {name: conll(ROWS) for name in ("train.txt", "valid.txt", "test.txt")},
        ("f1", ["I-PER", "O"], 40, 40),
    ),
    (
        "universal_dependencies",
        {f"xx_y-ud-{part}.conllu": conllu(ROWS) for part in ("train", "dev", "test")},
        ("accuracy", ["NOUN", "VERB"], 40, 40),
    ),
    (
        "peopledaily",
        {f"example.{part}": conll(ROWS) for part in ("train", "dev", "test")},
        ("f1", ["I-PER", "O"], 40, 40),
    ),
    ("peopledaily", {f"{part}.txt": conll(ROWS) for part in ("train", "dev")}, ("f1", ["I-PER", "O"], 36, 40)),
    ("race", {f"RACE/{name}": text for name, text in RACE.items()}, ("accuracy", [], 10, 10)),
    ("squad", {f"{part}-v1.1.json": squad() for part in ("train", "dev")}, ("f1", [], 36, 40)),
    ("squad_v2", {f"{part}-v2.0.json": squad() for part in ("train", "dev")}, ("f1", [], 36, 40)),
    ("cmrc2018", {f"cmrc2018_{part}.json": squad() for part in ("train", "dev")}, ("f1", [], 36, 40)),
    ("drcd", {f"DRCD_{part}.json": squad() for part in ("training", "dev", "test")}, ("f1", [], 40, 40)),
    *(
        (name, {f"{part}.{side}": lines(side) for part in parts for side in sides}, ("loss", [], 40, 40))
        for name, sides, parts in TRANSLATIONS
    ),
]


def laid(folder, files):
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


@pytest.mark.parametrize(
    ("name", "files", "expected"), PUBLISHED, ids=lambda value: value if isinstance(value, str) else ""
)
def test_a_data_set_is_read_as_it_is_published(name, files, expected, tmp_path):
    metric, classes, train, test = expected
    data = load_task(dataset_task(name, laid(tmp_path, files)))
    assert (data.task.metric, data.task.classes) == (metric, classes)
    assert (len(data.train), len(data.test)) == (train, test)
    assert data.task.config.title == name


def test_every_data_set_is_tried():
    assert set(dataset_names()) == {row[0] for row in PUBLISHED}


@pytest.mark.parametrize("name", dataset_names())
def test_the_settings_of_each_form_are_those_of_its_kind(name):
    known = load_dataset(name)
    for form in known.forms:
        parts = {part: form.names(part)[0] for part in ("train", "dev", "test") if form.names(part)}
        parse_task({"kind": known.kind, **known.settings, **form.settings, **parts}, name)
    config = parse_task(named_task(name, "hub:"), name)
    assert str(config.train) == f"hub:{known.hub.repository}@{known.hub.splits['train']}"
    assert str(parse_task(named_task(name, "hub:me/mine"), name).train).startswith("hub:me/mine@")


def test_notes_say_what_dev_and_test_are(tmp_path):
    folder = laid(tmp_path, glue("sentence\tlabel\n", "fine {n}\t{label}\n"))
    assert (
        load_task(dataset_task("sst2", folder))
        .notes[0]
        .startswith("the official test has no labels: test is the official")
    )
    data = load_task(dataset_task("sst2", folder, dev=folder / "dev.tsv"))
    assert not any("official" in note for note in data.notes)


def test_what_is_given_replaces_what_is_known(tmp_path):
    folder = laid(
        tmp_path, glue("sentence\tlabel\n", "fine {n}\t{label}\n") | {"mine.tsv": "a\tsentence\tlabel\nx\ty\t0\n"}
    )
    task = dataset_task(
        "sst2", folder, train=folder / "mine.tsv", text_column="a", metric="matthews", label_column=None
    )
    assert (task.train.name, task.test.name, task.text_column, task.label_column) == (
        "mine.tsv",
        "dev.tsv",
        "a",
        "label",
    )
    assert task.metric == "matthews"
    alone = dataset_task("sst2", None, train=folder / "mine.tsv")
    assert (alone.dev, alone.test, alone.text_column) == (None, None, "sentence")


def test_compressed_files_are_found(tmp_path):
    files = glue("sentence\tlabel\n", "fine {n}\t{label}\n")
    laid(tmp_path, {f"{name}.gz": gzip.compress(text.encode()) for name, text in files.items()})
    assert dataset_task("sst2", tmp_path).train.name == "train.tsv.gz"


@pytest.mark.parametrize(
    ("name", "folder", "message"),
    [
        ("sst", "", r"dataset: there is no 'sst'; did you mean 'sst\d'\?"),
        (
            "stsb",
            "",
            r"not the files of stsb: looked for sts-train\.csv or .*; or train\.tsv with dev\.tsv \(each also",
        ),
        ("sst2", "none", r"none: no such folder; --data is the folder with the files of sst2"),
        ("sst2", None, r"sst2: give --data FOLDER with its files, or --train FILE"),
        ("universal_dependencies", "", r"2 files are called \*-ud-train\.conllu \(a-ud-train\.conllu, b-ud"),
    ],
)
def test_what_is_not_there_is_one_line(name, folder, message, tmp_path):
    laid(tmp_path, {"a-ud-train.conllu": conllu(1), "b-ud-train.conllu": conllu(1)})
    data = None if folder is None else tmp_path / folder
    with pytest.raises(UserError, match=message) as caught:
        named_task(name, data)
    assert "\n" not in str(caught.value)


MINE = """
title: Support tickets of 2026
kind: classification
settings: {text_column: ticket, label_column: team}
forms:
  - train: [tickets.tsv]
    test: [later.tsv]
    remark: test is of the month after
"""


def test_a_data_set_of_ones_own_is_a_file(tmp_path):
    rows = table("ticket\tteam\n", "printer {n}\t{label}\n")
    laid(tmp_path, {"tickets.yaml": MINE, "tickets.tsv": rows, "later.tsv": rows})
    data = load_task(dataset_task(str(tmp_path / "tickets.yaml"), tmp_path))
    assert (data.task.config.title, data.task.classes, len(data.test)) == ("tickets", ["0", "1"], ROWS)
    assert "test is of the month after" in data.notes


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, r"dataset: .*mine\.yaml: no such file$"),
        (MINE + "colour: red\n", r"mine\.yaml: unknown key 'colour'"),
        (MINE + "hub: {repositry: a/b, splits: {train: train}}", r"unknown key 'repositry'; did you mean 'repository'"),
        (MINE.replace("train:", "trane:"), r"mine\.yaml: forms\.0: unknown key 'trane'; did you mean 'train'"),
        (MINE.replace("[tickets.tsv]", "[]"), r"mine\.yaml: forms\.0\.train: nothing given; give at least 1"),
        (MINE.replace("classification", "sorting"), r"mine\.yaml: kind: there is no kind of task 'sorting'; there are"),
        (MINE.replace("ticket,", "ticket, colour: red,"), r"mine\.yaml: unknown key 'colour'"),
    ],
)
def test_mistakes_in_the_file_of_a_data_set_are_one_line(content, message, tmp_path):
    laid(tmp_path, {} if content is None else {"mine.yaml": content, "tickets.tsv": "", "later.tsv": ""})
    with pytest.raises(UserError, match=message) as caught:
        dataset_task(str(tmp_path / "mine.yaml"), tmp_path)
    assert "\n" not in str(caught.value)


def test_a_data_set_that_is_not_known_on_the_hub(tmp_path):
    laid(tmp_path, {"mine.yaml": MINE})
    with pytest.raises(UserError, match="mine: --data hub:a/b: the data set is not known on the Hub"):
        named_task(str(tmp_path / "mine.yaml"), "hub:a/b")


def test_the_guide_lists_every_data_set_with_its_name_on_the_hub():
    guide = (Path(__file__).parents[2] / "docs" / "datasets.md").read_text(encoding="utf-8")
    table = guide.partition("## Other forms")[0]
    rows = re.findall(r"^\| `(\w+)` \|.*\| `(\S+)`[^|]*\|$", table, re.MULTILINE)
    assert dict(rows) == {name: load_dataset(name).hub.repository for name in dataset_names()}


def test_each_task_of_glue_is_scored_as_its_paper_says():
    """Wang et al. 2019, table 1: the first metric of two, and for F1 that of paraphrases."""
    glue = {name: load_dataset(name) for name in GLUE}
    metrics = {name: each.settings.get("metric", "accuracy") for name, each in glue.items()}
    others = {"cola": "matthews", "mrpc": "f1", "qqp": "f1", "stsb": "spearman"}
    assert metrics == {name: others.get(name, "accuracy") for name in GLUE}
    positive = {
        name: {own: called for called, own in each.hub.settings["label_names"].items()}[each.settings["positive"]]
        for name, each in glue.items()
        if "positive" in each.settings
    }
    assert positive == {"mrpc": "equivalent", "qqp": "duplicate"}
