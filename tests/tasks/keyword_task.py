"""A task that one word among fillers decides, and files of its rows."""

import json
import random

FILLERS = [
    f"{first}{second}" for first in ("ba", "do", "ki", "lu", "me", "no") for second in ("ran", "sel", "tip", "vor")
]
KEYWORDS = {
    "fruit": ["apple", "pear", "plum"],
    "tool": ["hammer", "saw", "drill"],
    "place": ["town", "valley", "coast"],
}


def sentence(draw, keyword=None, shortest=3, longest=12):
    words = draw.choices(FILLERS, k=draw.randint(shortest, longest))
    if keyword:
        words.insert(draw.randrange(len(words) + 1), keyword)
    return " ".join(words)


def labelled(rows, seed):
    """Rows whose label is decided by one word among fillers."""
    draw = random.Random(seed)
    made = []
    for row in range(rows):
        label = sorted(KEYWORDS)[row % 3]
        made.append({"text": sentence(draw, draw.choice(KEYWORDS[label])), "label": label})
    return made


def write_tsv(path, rows):
    columns = list(rows[0])
    path.write_text("".join("\t".join(map(str, cells)) + "\n" for cells in [columns, *(r.values() for r in rows)]))
    return path


def write_jsonl(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path
