"""Published data sets in small: for each the files of the form in which it is published, a few rows in each."""

import json

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
