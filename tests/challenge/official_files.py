"""The folder `evaluation_data` of the official pipeline, made small, with all its forms of files."""

import csv
import json

import numpy as np

from bakeoff.conformance.texts import sentences

SENTENCES = sentences(60, seed=12)


def turned(text):
    return " ".join(reversed(text.split()))


def write(folder, name, rows):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def write_official_files(folder, items=4):
    """Write all of it; returns the folder."""
    for part, ending in (("full_eval", "filtered"), ("fast_eval", "fast")):
        place = folder / part
        for field in ("island", "binding"):
            rows = [
                {"sentence_good": text, "sentence_bad": turned(text), "field": "syntax", "UID": field}
                | {"linguistics_term": field}
                for text in SENTENCES[: items + len(field)]
            ]
            write(place / f"blimp_{ending}", f"{field}.jsonl", rows)
        pairs = [{"sentence_good": text, "sentence_bad": turned(text)} for text in SENTENCES[10 : 10 + items]]
        write(place / f"supplement_{ending}", "hypernym.jsonl", pairs)
        couples = list(zip(SENTENCES[20 : 20 + items], SENTENCES[30 : 30 + items], strict=True))
        worlds = [
            {"Domain": "social", "ContextType": "a", "ContextDiff": "b", "TargetDiff": "c", "Context1": one}
            | {"Context2": other, "Target1": other, "Target2": one}
            for one, other in couples
        ]
        write(place / f"ewok_{ending}", "social.jsonl", worlds)
        boxes = [
            {"input_prefix": f"{one} In it is", "options": [f" {word}" for word in other.split()[:4]], "numops": at % 2}
            for at, (one, other) in enumerate(couples)
        ]
        tracking = place / ("entity_tracking_fast" if part == "fast_eval" else "entity_tracking")
        for name in ("regular",) if part == "fast_eval" else ("regular", "ambiref", "move_contents"):
            write(tracking, f"{name}.jsonl", boxes)
        for name, count in (("global_piqa_parallel", 4), ("global_piqa_nonparallel", 2)):
            rows = [
                {"prompt": one, "label": at % count, "example_id": f"eng_{at}"}
                | {f"solution{number}": SENTENCES[(at + number) % 60] for number in range(count)}
                for at, (one, _) in enumerate(couples)
            ]
            write(place / name, "eng_latn.jsonl", rows)
        write_reading(place / "reading" / "reading_data.csv")
    comps = [
        {"prefix_acceptable": one, "prefix_unacceptable": turned(one), "property_phrase": other}
        for one, other in couples
    ]
    for name in ("comps_base", "comps_wugs", "comps_wugs_dist-before", "comps_wugs_dist-in-between"):
        write(folder / "full_eval" / "comps", f"{name}.jsonl", comps)
    contexts = {word: [{"context": text} for text in SENTENCES[:2]] for word in ("river", "stone", "a")}
    (folder / "full_eval" / "aoa").mkdir()
    (folder / "full_eval" / "aoa" / "cdi_childes.json").write_text(json.dumps(contexts), encoding="utf-8")
    ages = [str(age) for age in range(16, 31)]
    shares = {"river": [0.05 * at for at in range(15)], "stone": [*(0.04 * at for at in range(14)), "NA"]}
    lines = [["word", *ages], *([word, *values] for word, values in shares.items())]
    table = "".join(",".join(map(str, line)) + "\n" for line in lines)
    (folder / "full_eval" / "aoa" / "cdi_human.csv").write_text(table, encoding="utf-8")
    write_labels(folder / "full_eval" / "glue_filtered")
    return folder


def write_reading(path):
    """Words after texts with random times; the first of each sentence has no text, and none before it."""
    path.parent.mkdir(parents=True)
    generator = np.random.default_rng(0)
    names = ["RTfirstfix", "RTfirstpass", "RTgopast", "RTrightbound", "self_paced_reading_time"]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(
            [
                "item",
                "word",
                "prev_item",
                "prev_word",
                "length",
                "prev_length",
                "context_length",
                "Subtlex_log10",
                *names,
            ]
        )
        for text in SENTENCES[:6]:
            words = text.split()
            for at, word in enumerate(words):
                before = [" ".join(words[: at - 1]) if at > 1 else "None", words[at - 1]] if at else ["", ""]
                if at == 1:
                    before = ["", ""]
                sizes = [len(word), len(words[at - 1]) if at else "", at]
                times = [f"{value:.3f}" for value in generator.gamma(2, 100, len(names))]
                if at == 2:
                    times[2] = "NaN"
                writer.writerow(
                    [" ".join(words[:at]) or "None", word, *before, *sizes, f"{generator.uniform(1, 5):.3f}", *times]
                )


def write_labels(folder, rows=12):
    """The fine-tuning tasks; the labels of wsc are all the same."""
    columns = {
        "boolq": ("question", "passage"),
        "multirc": ("question", "answer", "paragraph"),
        "rte": ("sentence1", "sentence2"),
        "wsc": ("span1_text", "span2_text", "text"),
        "mrpc": ("sentence1", "sentence2"),
        "qqp": ("question1", "question2"),
        "mnli": ("premise", "hypothesis"),
    }
    for task, names in columns.items():
        for split, first in (("train", 0), ("valid", 20)):
            made = [
                {name: SENTENCES[first + at + place] for place, name in enumerate(names)}
                | {"label": at % (3 if task == "mnli" else 2)}
                for at in range(rows)
            ]
            write(folder, f"{task}.{split}.jsonl", made)
