"""Fine-tuned runs of a few sentences, exported for transformers."""

import json
import random

from bakeoff.interop.export import export
from bakeoff.tasks.finetune import finetune
from bakeoff.tasks.finetune_config import FinetuneConfig

QUICK = FinetuneConfig(learning_rate=[3e-3], epochs=2, least_steps=0, evaluations=1, length=32)
WORDS = ["one", "two", "river", "stone", "green", "window"]


def sentences(count, seed=0):
    draw = random.Random(seed)
    return [" ".join(draw.choices(WORDS, k=draw.randint(2, 7))) for _ in range(count)]


def files(folder, make, count=48):
    """The same rows as train, dev and test."""
    rows = [make(number, text) for number, text in enumerate(sentences(count))]
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return dict.fromkeys(("train", "dev", "test"), path)


def fitted(recipe, task, corpus, folder, **changes):
    """A run, and what is exported of it."""
    config = QUICK.model_copy(update=changes)
    finetune(recipe, task, folder / "run", config=config, tokenizer=corpus.path, device="cpu", progress=False)
    done = export(folder / "run", folder / "out")
    assert done.largest_difference < 1e-3
    return folder / "run", {"folder": str(folder / "out"), "texts": sentences(5, seed=1)}
