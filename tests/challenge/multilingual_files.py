"""The folder `multilingual` of the official pipeline with the Hub's data sets in `zeroshot`, made small."""

import json

import pyarrow as pa
import pyarrow.parquet as parquet

from bakeoff.conformance.texts import sentences
from tests.challenge.official_files import turned, write

SENTENCES = sentences(60, seed=5)
CHINESE = ["老师在学校里读书。", "孩子们喜欢吃苹果。", "今天的天气很好。", "他昨天去了北京。", "我们一起看电影吧。"]


def texts_of(code):
    return CHINESE * 8 if code.startswith("zh") else SENTENCES


def write_table(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pa.Table.from_pylist(rows), path)


def write_multilingual_files(folder, languages=("eng", "nld", "zho"), rows=9):
    """Write all of it for languages, in each of the forms that the Hub has; returns the folder."""
    place = folder / "zeroshot"
    short = {"eng": "en", "nld": "nl", "zho": "zh"}
    for code in languages:
        texts, two = texts_of(code), short[code]
        pairs = [{"sentence_good": text, "sentence_bad": turned(text) + "。" * (code == "zho")} for text in texts[:6]]
        name = {"eng": "blimp_babylm_filtered", "nld": "blimp_nl", "zho": "zhoblimp"}[code]
        write_table(place / name / "island" / "train-00000-of-00001.parquet", pairs[:4])
        write(place / name, "binding.jsonl", pairs[4:])
        if code != "zho":
            lines = ["sen\twrong_sen\tverb", *(f"{text}\t{turned(text)}\tis" for text in texts[:3])]
            (place / f"multiblimp_{code}").mkdir(parents=True)
            (place / f"multiblimp_{code}" / "data.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
        if code != "eng":
            xcomps = [{"acceptable_sent": text, "unacceptable_sent": turned(text) + "吗"} for text in texts[:4]]
            write(place / f"xcomps_{two}", f"comps_{two}.jsonl", xcomps)
        for task, count in (("hellaswag", 4), ("winogrande", 2), ("xstorycloze", 2)):
            choices = [
                {"prompt": texts[at], "choices": texts[at + 1 : at + 1 + count], "label": at % count} for at in range(4)
            ]
            write_table(place / f"{task}_{two}_mubench" / "test.parquet", choices)
        for task, count in (("parallel", 4), ("nonparallel", 2)):
            made = [
                {"prompt": texts[at], "label": at % count, "example_id": f"{two}_{at}"}
                | {f"solution{number}": texts[at + number + 1] for number in range(count)}
                for at in range(3)
            ]
            write(place / f"global_piqa_{task}_{two}", "test.jsonl", made)
        if code == "zho":
            for task in ("hanzi_structure", "hanzi_pinyin"):
                write(place / task, "train.jsonl", [{"id": at, **pair} for at, pair in enumerate(pairs[:3])])
        write_labels(folder / "finetune" / "data" / "multilingual" / two, two, texts, rows)
    write_passages(folder / "meco" / "data")
    return folder


def write_passages(folder):
    """Words of passages at their places, the last of each twice."""
    folder.mkdir(parents=True)
    lines = {"meco_l1": ["lang\titemid\twordnum\tword\tFullTextMarked"]}
    lines["meco_l2"] = ["itemid\twordnum\tword\tFullTextMarked"]
    passages = {"en": SENTENCES[3].split()[:4], "du": SENTENCES[4].split()[:4], "ch_s": ["老师", "在", "学校", "里"]}
    for code, words in passages.items():
        for at in [*range(len(words)), len(words) - 1]:
            space = "" if code == "ch_s" else " "
            before = space.join(words[:at]) + space * (at > 0)
            line = f"1\t{at + 1}.0\t{words[at]}\t{before}*{words[at]}*"
            lines["meco_l1"].append(f"{code}\t{line}")
            if code == "en":
                lines["meco_l2"].append(line)
    for name, each in lines.items():
        (folder / f"{name}_stims.tsv").write_text("\n".join(each) + "\n", encoding="utf-8")


def write_labels(folder, code, texts, rows):
    for task in ("arc", "belebele", "bmlama", "include", "mnli", "sib200", "truthfulqa", "xnli"):
        labels = ("science/technology", "travel") if task == "sib200" else (0, 1, 2) if task == "mnli" else "ABC"
        for split in ("train", "valid"):
            made = [
                {"idx": at, "sentence": texts[at]}
                if task not in ("mnli", "xnli")
                else {"idx": at, "premise": texts[at], "hypothesis": texts[at + 1]}
                for at in range(rows)
            ]
            for at, row in enumerate(made):
                row["label"] = labels[at % len(labels)]
            path = folder / task / f"{task}_{code}.{split}.jsonl"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in made), encoding="utf-8")
