"""What the pages assume that their readers have: texts, labelled data, corpora and runs, by the names on the pages.

A file is what a function writes; a corpus or a run is what a command makes of other assumed things.
"""

import csv
import gzip
import io
import json
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

from bakeoff.conformance.texts import digit_pairs, sentences

RECORD = ".assumed"
"""In a page's folder the names of what was assumed there; a command may write to such a place."""

TEXTS = sentences(300)
LABELS = [("good", "bad")["old" in text] for text in TEXTS]
PAIRS = digit_pairs(240)
CONLL = "".join(
    "".join(f"{word} {'NOUN' if at % 2 else 'X'}\n" for at, word in enumerate(text.split())) + "\n"
    for text in TEXTS[:60]
)
CONLLU = "".join(
    "".join(
        f"{at + 1}\t{word}\t_\t{'NOUN' if at % 2 else 'X'}\t_\t_\t0\t_\t_\t_\n" for at, word in enumerate(text.split())
    )
    + "\n"
    for text in TEXTS[:60]
)


def table(header: str, rows: Iterable[Iterable[object]], delimiter: str = "\t") -> str:
    written = io.StringIO()
    writer = csv.writer(written, delimiter=delimiter, lineterminator="\n")
    writer.writerow(header.split())
    writer.writerows(rows)
    return written.getvalue()


def lines(records: Iterable[object]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def squad(first: int) -> str:
    """Articles of one paragraph of four sentences, with a question for its first noun."""
    articles = []
    for at in range(first, first + 80, 4):
        context = " ".join(TEXTS[at : at + 4])
        answer = TEXTS[at].split()[1]
        asked = {"id": str(at), "question": "What is first?", "answers": [{"text": answer, "answer_start": 4}]}
        articles.append({"title": str(at), "paragraphs": [{"context": context, "qas": [asked]}]})
    return json.dumps({"data": articles})


def documents(first: int = 0, last: int = 300) -> str:
    return "\n\n".join(" ".join(TEXTS[at : at + 6]) for at in range(first, last, 6)) + "\n"


LABELLED = table("text sentence label", zip(TEXTS[:120], TEXTS[:120], LABELS, strict=False))
REVIEWS = table("review stars", zip(TEXTS[:120], LABELS, strict=False), ",")
ALIKE = table("sentence1 sentence2 score", [(TEXTS[at], TEXTS[at + 1], at % 6) for at in range(290)])
SST2 = table("sentence label", [(text, int(label == "good")) for text, label in zip(TEXTS[:120], LABELS, strict=False)])
TREC = "".join(f"{('NUM', 'DESC')[at % 2]}:{'count' if at % 2 == 0 else 'manner'} {TEXTS[at]}\n" for at in range(80))
SOURCES, TARGETS = ("".join(f"{line}\n" for line in side) for side in zip(*PAIRS, strict=True))
SPANS = [
    {"text": text, "entities": [{"start": 4, "end": 4 + len(text.split()[1]), "label": "THING"}]} for text in TEXTS[:60]
]
MINIMAL = [
    {
        "sentence_good": text,
        "sentence_bad": " ".join(reversed(text.split())),
        "UID": "adjunct_island",
        "field": "syntax",
    }
    for text in TEXTS[:8]
]

FILES: dict[str, str] = {
    **{f"articles/{at}.txt": documents(at, at + 6) for at in range(220)},
    "notes.txt": documents(0, 60),
    "text.txt": documents(),
    "ptb.train.txt": "".join(f"{text}\n" for text in TEXTS),
    "training-monolingual/news.txt": "".join(f"{text}\n" for text in TEXTS),
    "reviews/a.csv.gz": table("text", ([text] for text in TEXTS[:30])),
    "wiki.train.tokens.txt": documents(),
    "wiki.valid.tokens.txt": documents(0, 60),
    "wiki.test.tokens.txt": documents(60, 120),
    "wiki/a.jsonl.gz": lines({"text": documents(at, at + 6)} for at in range(220)),
    **{f"novels/{at}.txt": documents(at, at + 6) for at in range(220)},
    "train.tsv": LABELLED,
    "dev.tsv": LABELLED,
    "test.tsv": LABELLED,
    **{f"{name}.csv": REVIEWS for name in ("reviews-train", "reviews-dev", "reviews-test", "reviews-2025", "reviews")},
    "stimuli.txt": "".join(f"{text}\n" for text in TEXTS[:3]),
    "reviews.txt": "".join(f"{text}\n" for text in TEXTS[:5]),
    "glue/SST-2/train.tsv": SST2,
    "glue/SST-2/dev.tsv": SST2,
    "TREC/train_5500.label": TREC,
    "TREC/TREC_10.label": TREC,
    **{
        f"mails/{part}/{label}/{at}.txt": f"{TEXTS[at]}\n"
        for part in ("train", "test")
        for label in ("ham", "spam")
        for at in range(30)
    },
    **dict.fromkeys(("train.conll", "test.conll", "eng.train.conll", "eng.testa.conll", "eng.testb.conll"), CONLL),
    **dict.fromkeys(("en_ewt-ud-train.conllu.gz", "en_ewt-ud-dev.conllu.gz"), CONLLU),
    "notes.jsonl": lines(SPANS),
    "train-v1.1.json": squad(0),
    "dev-v1.1.json": squad(80),
    "train-v2.0.json": squad(0),
    "dev-v2.0.json": squad(80),
    "other.json": squad(160),
    "faq.csv": table(
        "question page answer",
        [("What is first?", " ".join(TEXTS[at : at + 3]), TEXTS[at].split()[1]) for at in range(60)],
        ",",
    ),
    "train.de": SOURCES,
    "train.en": TARGETS,
    "a.tsv": table("de en", PAIRS),
    **{f"{name}.de.gz": SOURCES for name in ("train", "val", "test")},
    **{f"{name}.en.gz": TARGETS for name in ("train", "val", "test")},
    "test.de": "".join(f"{source}\n" for source, _ in PAIRS[:4]),
    "new.de": "".join(f"{source}\n" for source, _ in PAIRS[:4]),
    "candidates.en": "".join(f"{target}\n" for _, target in PAIRS[:4]),
    "candidates.txt": "".join(f"{text}\n" for text in TEXTS[:4]),
    "lambada.jsonl": lines({"text": text.rstrip(".")} for text in TEXTS[:4]),
    "blimp.jsonl.gz": lines(MINIMAL),
    "prompts.txt": "The river\nThe house\n",
    "prompts.csv": table("prompt", [["The river"], ["The house"]], ","),
    "articles.jsonl": lines({"body": text, "article": text, "summary": text.split()[1]} for text in TEXTS[:60]),
    "sts-test.tsv": ALIKE,
    "questions.jsonl": lines({"question": TEXTS[at], "answer": TEXTS[at + 1]} for at in range(40)),
    "sst2.tsv": LABELLED,
    "other.tsv": LABELLED,
    "data/test.tsv": LABELLED,
    "data/text.jsonl": lines({"text": documents(at, at + 6)} for at in range(220)),
    "token.txt": "a-token-of-a-test-1\n",
    "reviews.txt.gz": "".join(f"{text}\n" for text in TEXTS[:5]),
    "order.yaml": """
corpus: corpora/mine
recipes: [bert-tiny]
budget: steps=3
seeds: 1
tasks: [{name: order, train: train.tsv, text_column: text, label_column: label}]
""",
    "mine.yaml": "extends: bert-mini\n",
    "my/wide.yaml": "extends: bert-tiny\n",
}
"""Text by name; what ends with .gz is compressed."""

_MINE = "--corpus corpora/mine --out"
_REVIEWS = (
    "--train reviews-train.csv --dev reviews-dev.csv --test reviews-test.csv --text-column review --label-column stars"
)

COMMANDS: dict[str, str] = {
    "corpora/mine": "bakeoff prepare articles --out corpora/mine --vocabulary 300 --validation 10%",
    "corpora/topics": "bakeoff prepare articles --out corpora/topics --vocabulary 300 --validation 10%",
    "corpora/bytes": "bakeoff prepare articles --out corpora/bytes --recipe gpt2-tiny --vocabulary 400",
    "corpora/unigram": "bakeoff prepare articles --out corpora/unigram --recipe t5-tiny --vocabulary 300",
    "corpora/de-en": "bakeoff prepare --source train.de --target train.en --out corpora/de-en --vocabulary 60",
    "corpora/digits": "bakeoff prepare --source train.de --target train.en --out corpora/digits --vocabulary 60",
    "runs/bert": f"bakeoff pretrain bert-tiny {_MINE} runs/bert",
    "runs/small": f"bakeoff pretrain bert-tiny {_MINE} runs/small",
    "runs/other": f"bakeoff pretrain bert-tiny {_MINE} runs/other --seed 1",
    "runs/gpt": f"bakeoff pretrain gpt-tiny {_MINE} runs/gpt",
    "runs/gpt2": "bakeoff pretrain gpt2-tiny --corpus corpora/bytes --out runs/gpt2",
    "runs/t5-unigram": "bakeoff pretrain t5-tiny --corpus corpora/unigram --out runs/t5-unigram",
    "runs/albert": f"bakeoff pretrain albert-tiny {_MINE} runs/albert",
    "runs/conv": f"bakeoff pretrain laptop-conv-tiny {_MINE} runs/conv",
    "runs/t5": f"bakeoff pretrain t5-tiny {_MINE} runs/t5",
    "runs/bart": f"bakeoff pretrain bart-tiny {_MINE} runs/bart",
    "runs/xl": f"bakeoff pretrain transformer-xl-tiny {_MINE} runs/xl",
    "corpora/wt103": "bakeoff prepare wiki.train.tokens.txt --validation wiki.valid.tokens.txt "
    "--test wiki.test.tokens.txt --out corpora/wt103 --recipe transformer-xl-wikitext103",
    "runs/xl-wt103": "bakeoff pretrain transformer-xl-tiny --corpus corpora/wt103 --out runs/xl-wt103",
    "runs/de-en": "bakeoff pretrain transformer-translation-tiny --corpus corpora/de-en --out runs/de-en",
    "runs/bert-reviews": f"bakeoff finetune runs/bert {_REVIEWS} --out runs/bert-reviews",
    "runs/squad": "bakeoff finetune runs/bert --task question-answering --train train-v1.1.json "
    "--dev dev-v1.1.json --out runs/squad",
    "runs/mlm": f"bakeoff pretrain laptop-encoder-tiny {_MINE} runs/mlm",
    **{
        f"runs/{name}": "bakeoff finetune runs/bert --train train.tsv --text-column text --label-column label "
        f"--out runs/{name}"
        for name in ("order", "word-order", "reviews")
    },
    "comparisons/order": "bakeoff compare order.yaml --out comparisons/order",
    "downloads/bert-base-uncased": "bakeoff export runs/bert --out downloads/bert-base-uncased",
    "downloads/sentiment": "bakeoff export runs/bert-reviews --out downloads/sentiment",
    "downloads/entailment": "bakeoff finetune runs/bert --task regression --train sts-test.tsv --text-column sentence1 "
    "--pair-column sentence2 --label-column score --out runs/entailed && "
    "bakeoff export runs/entailed --out downloads/entailment",
    "exported/conv": "bakeoff export runs/conv --out exported/conv",
    "articles.parquet": """python -c "
import json
from pathlib import Path
from pyarrow import Table, parquet
lines = Path('articles.jsonl').read_text().splitlines()
parquet.write_table(Table.from_pylist([json.loads(line) for line in lines]), 'articles.parquet')
\"""",
    "articles.npy": "bakeoff embed runs/bert --texts articles.jsonl --text-column body --out articles.npy",
    "runs/damaged": "cp -r runs/small runs/damaged && "
    "printf x | dd of=runs/damaged/model.safetensors bs=1 seek=20000 conv=notrunc status=none",
    **{
        f"runs/{name}": f"bakeoff --stopped pretrain bert-tiny {_MINE} runs/{name} || test $? = 130"
        for name in ("stopped", "longer", "enough")
    },
}
"""What makes a corpus or a run."""

NAMES = sorted(
    {*COMMANDS, *FILES, *(folder.as_posix() for name in FILES for folder in Path(name).parents)} - {"."}, key=len
)


def named(text: str) -> list[str]:
    """What some lines name of the assumed things, and what is looked for beside these."""
    words = {word.strip("/") for word in _words(text)}
    words |= {word.replace(".de.gz", ".en.gz") for word in words}
    found = [name for name in NAMES if name in words]
    return [*found, *(["wiki"] if "wiki/*" in text else []), *(["reviews"] if "reviews/*" in text else [])]


def corpora(text: str) -> list[str]:
    """The corpora of the runs that some lines name."""
    return [name for run in named(text) for name in named(COMMANDS.get(run, "")) if name.startswith("corpora/")]


def _words(text: str) -> list[str]:
    for sign in "\"'`,()=:<>;[]":
        text = text.replace(sign, " ")
    return text.split()


def put(name: str, folder: Path, store: Path, run: Callable[[str, Path], None]) -> None:
    """Put an assumed thing into a page's folder, made once in `store` by `run(command, folder)`."""
    there = store / name
    if not there.exists():
        if name in COMMANDS:
            for needed in named(COMMANDS[name]):
                if needed != name:
                    put(needed, store, store, run)
            run(COMMANDS[name], store)
        for file, text in FILES.items():
            if file == name or file.startswith(f"{name}/"):
                path = store / file
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(gzip.compress(text.encode()) if file.endswith(".gz") else text.encode())
    if folder != store and not (folder / name).exists():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if there.is_dir():
            shutil.copytree(there, folder / name)
        else:
            shutil.copyfile(there, folder / name)
        with open(folder / RECORD, "a", encoding="utf-8") as record:
            record.write(f"{name}\n")


def clear(arguments: list[str]) -> None:
    """Take away what was assumed where a command is about to write, in the working directory."""
    if "--out" not in arguments or {"--resume", "--finish-now", "--merge"} & set(arguments):
        return
    out = arguments[arguments.index("--out") + 1].rstrip("/")
    record = Path(RECORD)
    assumed = record.read_text(encoding="utf-8").splitlines() if record.exists() else []
    if out in assumed:
        shutil.rmtree(out, ignore_errors=True)
        Path(out).unlink(missing_ok=True)
        record.write_text("".join(f"{name}\n" for name in assumed if name != out), encoding="utf-8")
