"""The README.md of an ONNX export: inputs, outputs, and lines of Python that use the model."""

from collections.abc import Sequence
from typing import Any

from bakeoff.display import markdown
from bakeoff.display.wording import capitalised

SESSION = """session = onnxruntime.InferenceSession("model.onnx")
"""
SESSIONS = """session, decoder = (onnxruntime.InferenceSession(f"{name}.onnx") for name in ("encoder", "decoder"))
"""

OPENING = f"""import json
import pathlib
import unicodedata
import numpy as np, onnxruntime, tokenizers
config = json.loads(pathlib.Path("config.json").read_text(encoding="utf-8"))
tokenizer = tokenizers.Tokenizer.from_file("tokenizer.json")
tokenizer.encode_special_tokens = True  # their names in a text are text
{SESSION}def ids_of(text):
    return tokenizer.encode(" ".join(unicodedata.normalize("NFC", text).split()), add_special_tokens=False).ids
"""

OF_SOURCES = """room = config["length"] - len(config["before"]) - len(config["behind"])
texts = ["The first text.", "A second one, which is longer."]
rows = [config["before"] + ids_of(text)[:room] + config["behind"] for text in texts]
"""

OF_TEXTS = f"""{OF_SOURCES}second = [len(row) for row in rows]
"""

ENDS = """def kept(ids):  # of what is too long the beginning and the end
    return ids if len(ids) <= room else ids[: room // 4] + ids[room // 4 - room :]
"""

OF_PAIRS = """pairs = [("Where is the town?", "The town is behind the hill.")]
opened = [config["before"] + ids_of(first) + config["between"] for first, _ in pairs]
second = [len(row) for row in opened]
rows = [row + ids_of(other) + config["behind"] for row, (_, other) in zip(opened, pairs)]
assert max(map(len, rows)) <= config["length"], "a pair is longer than a row"
"""

RUN = """width = max(map(len, rows))
ids = np.array([row + [config["special_ids"]["pad"]] * (width - len(row)) for row in rows])
mask = (np.arange(width) < np.array([[len(row)] for row in rows])).astype(np.int64)
types = (np.arange(width) >= np.array(second)[:, None]) * mask
feeds = {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}
outputs = session.run(None, {each.name: feeds[each.name] for each in session.get_inputs()})
"""

START_LAST = """types[np.arange(len(rows)), mask.sum(1) - 1] = 2
"""

OF_ENCODER = "print(outputs[0].shape)  # hidden states; where there is a second output: scores of each token"
"""The line that shows the outputs of a pre-trained encoder; for a fine-tuned run the kind of its task has one."""

CAUSAL = """ids = np.array([config["before"] + ids_of("The town") + config["behind"]])
def empty(axes):
    return np.zeros([1 if a == "batch" else 0 if a == "past" else a for a in axes], np.float32)
given = {each["name"]: each["axes"] for each in config["inputs"]}
state = {name: empty(axes) for name, axes in given.items() if name.startswith("past.")}
read, written = ids[:, :0], []
for _ in range(20):
    feeds = {"input_ids": ids, "past_ids": read, **state}
    logits, *after = session.run(None, {name: feeds[name] for name in given})
    state = dict(zip(state, after))
    logits[..., config["never_written"]] = -np.inf
    read, ids = np.concatenate([read, ids], 1), logits[:, -1:].argmax(-1)
    if ids[0, 0] == config["end"]:
        break
    written.append(int(ids[0, 0]))
print(tokenizer.decode(written))
"""

OF_TWO = """target = tokenizers.Tokenizer.from_file("target_tokenizer.json")
def decode(ids):  # of targets, whose ids follow those of sources
    return target.decode([each - config["target_begins"] for each in ids])
"""

OF_GAPS = """from itertools import groupby
marks = {token: f"[{number}]" for number, token in enumerate(config["marks"], 1)}
def decode(ids):  # the marks of gaps as their numbers
    if marks.keys().isdisjoint(ids):
        return tokenizer.decode(ids)
    runs = [(marked, list(run)) for marked, run in groupby(ids, key=marks.__contains__)]
    return " ".join(" ".join(map(marks.get, run)) if marked else tokenizer.decode(run).strip() for marked, run in runs)
"""

WRITING = """width = max(map(len, rows))
source = np.array([row + [config["special_ids"]["pad"]] * (width - len(row)) for row in rows])
mask = (np.arange(width) < np.array([[len(row)] for row in rows])).astype(np.int64)
def empty(axes):
    return np.zeros([len(rows) if a == "batch" else 0 if a == "past" else a for a in axes], np.float32)
names = [each["name"] for each in config["encoder"]["outputs"]]
sources = dict(zip(names, session.run(None, {"input_ids": source, "attention_mask": mask})))
given = {each["name"]: each["axes"] for each in config["decoder"]["inputs"]}
state = {name: empty(axes) for name, axes in given.items() if name.startswith("past.")}
ids = np.array([config["prompt"]] * len(rows))
read, written = ids[:, :0], []
for _ in range(20):
    feeds = {"input_ids": ids, "past_ids": read, "encoder_attention_mask": mask, **sources, **state}
    logits, *after = decoder.run(None, {name: feeds[name] for name in given})
    state = dict(zip(state, after))
    logits[..., config["never_written"]] = -np.inf
    read, ids = np.concatenate([read, ids], 1), logits[:, -1:].argmax(-1)
    written.append(ids[:, 0].tolist())
    if all(config["end"] in row for row in zip(*written)):
        break
for row in zip(*written):
    row = list(row)
    print(tokenizer.decode(row[:row.index(config["end"])] if config["end"] in row else row))
"""


def snippet(settings: dict[str, Any], ending: str) -> str:
    """Lines of Python that use the model in the current folder without Bakeoff.

    Args:
        settings: the export's config.json.
        ending: the last line, which shows the outputs of a model that does not generate text.
    """
    if "decoder" in settings:
        decoding = OF_TWO if settings["target_begins"] else OF_GAPS if settings["marks"] else ""
        writing = WRITING.replace("tokenizer.decode(", "decode(") if decoding else WRITING
        return OPENING.replace(SESSION, SESSIONS) + decoding + _as_the_task(OF_SOURCES + writing, settings)
    if "end" in settings:
        return OPENING + _as_the_task(CAUSAL, settings)
    run = RUN
    if settings["start_last"]:
        run = run.replace("feeds = ", START_LAST + "feeds = ", 1)
    texts = OF_PAIRS if settings["pairs"] else OF_TEXTS
    if settings["truncate"] == "head+tail" and not settings["pairs"]:
        texts = ENDS + texts.replace("ids_of(text)[:room]", "kept(ids_of(text))")
    return OPENING + texts + run + f"{ending}\n"


def _as_the_task(lines: str, settings: dict[str, Any]) -> str:
    """The lines with the prefix and the lengths that a run was fine-tuned to write with; without a task as they are."""
    if "prefix" not in settings:
        return lines
    if 'config["prompt"]' not in lines:  # a decoder alone
        room = OF_SOURCES.splitlines(keepends=True)[0]
        lines = room + lines.replace('ids_of("The town")', 'ids_of(config["prefix"] + "The town")[:room]')
    lines = lines.replace("ids_of(text)", 'ids_of(config["prefix"] + text)')
    if "longest" in settings:
        lines = lines.replace("range(20)", 'range(config["longest"])')
        lines = lines.replace('config["length"]', 'config["longest_source"]')
    return lines


def readme(name: str, settings: dict[str, Any], ending: str, remarks: Sequence[str] = ()) -> str:
    """The text of the README.md.

    Args:
        name: the recipe's name.
        settings: the export's config.json.
        ending: as of `snippet`.
        remarks: what else than the run the lines of Python do.
    """
    files = {"": settings} if "inputs" in settings else {name: settings[name] for name in ("encoder", "decoder")}
    rows = "".join(
        f"| {f'{file}.onnx, ' if file else ''}{side[:-1]} | {each['name']} | {' x '.join(map(str, each['axes']))} |\n"
        for file, graph in files.items()
        for side in ("inputs", "outputs")
        for each in graph[side]
    )
    small = "".join(f"- {line}\n" for line in settings["int8"] or [])
    return f"""# {markdown.text(name)} as ONNX

Written by Bakeoff; the largest difference from torch on random rows was {settings["largest_difference"]:.1e} of the
largest number{" before the weights were made int8" if small else ""}. Rows and lengths may be any, up to \
{settings["length"]} tokens; `attention_mask` is 1 for tokens and 0 for padding, which stands after them.
{"" if not small else chr(10) + small}
| | name | shape |
|---|---|---|
{rows}
With `pip install onnxruntime tokenizers`, in this folder:

```python
{snippet(settings, ending)}```
{"".join(f"{chr(10)}{capitalised(each)}.{chr(10)}" for each in remarks)}"""
