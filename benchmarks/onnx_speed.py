"""Speed of a classifier in torch, in onnxruntime, and in onnxruntime with weights of eight bits, for the same rows.

    python benchmarks/onnx_speed.py --tokenizer CORPUS/tokenizer.json [--recipe bert-mini] [--texts 128] [--rounds 5]

A recipe is fine-tuned from scratch for a few steps, so that its weights resemble those of a model in use, and exported
twice. Texts have 4 to 120 words, with lengths uniform on a logarithmic scale, and are encoded beforehand. All three
read
the same batches of similar lengths on one thread, in turns. Medians of processor time, which other programs hardly
change, and the number of texts with torch's class are printed.
"""

import argparse
import json
import random
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

import bakeoff
from bakeoff.interop.onnx.conversion import open_session
from bakeoff.interop.onnx.measuring import OnnxHead
from bakeoff.machine.capacity import processor_name
from bakeoff.recipe_files import load_recipe
from bakeoff.resources.device import Placement
from bakeoff.tasks.finetune_config import FinetuneConfig
from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.tasks.predictions.predicting import predictions_of
from bakeoff.tokenizer.tokenizer import Tokenizer

LENGTH = 160
"""Length of the longest row in tokens."""
LONGEST = 120
"""Length of the longest text in words."""


def texts_of(tokenizer: Tokenizer, count: int, draw: random.Random) -> list[str]:
    """`count` texts of random words of the vocabulary, 4 to LONGEST words each."""
    words = [tokenizer.decode([token]).strip() for token in range(300, min(4000, tokenizer.size))]
    words = [word for word in words if word.isascii() and word.isalpha() and len(word) > 2]
    return [" ".join(draw.choices(words, k=round(4 * (LONGEST / 4) ** draw.random()))) for _ in range(count)]


def fitted(recipe: str, tokenizer: Path, folder: Path, draw: random.Random) -> FinetunedRun:
    """Fine-tune a classifier of texts by the first letter of their first word."""
    texts = texts_of(Tokenizer.load(tokenizer), 64, draw)
    rows = folder / "rows.jsonl"
    labelled = [{"text": each, "label": "a-m" if each < "n" else "n-z"} for each in texts]
    rows.write_text("".join(json.dumps(each) + "\n" for each in labelled))
    files = dict.fromkeys(("train", "dev", "test"), rows)
    task = bakeoff.ClassificationConfig(**files, text_column="text", label_column="label")
    config = FinetuneConfig(learning_rate=[1e-4], epochs=1, least_steps=0, evaluations=1, length=LENGTH)
    bakeoff.finetune(
        load_recipe(recipe), task, folder / "run", config=config, tokenizer=tokenizer, device="cpu", progress=False
    )
    return FinetunedRun.open(folder / "run")


def main() -> None:
    """Measure, and print the table as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokenizer", type=Path, required=True, help="a tokenizer.json")
    parser.add_argument("--recipe", default="bert-mini")
    parser.add_argument("--texts", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    torch.set_num_threads(1)
    draw = random.Random(0)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        run = fitted(given.recipe, given.tokenizer, folder, draw)
        plain = bakeoff.export(run.path, folder / "float32", to="onnx")
        small = bakeoff.export(run.path, folder / "int8", to="onnx", quantize="int8")
        files = {"onnxruntime, float32": plain.path, "onnxruntime, int8": small.path}
        heads: dict[str, Any] = {"torch": run.load()}
        heads |= {name: OnnxHead(open_session(path / "model.onnx")) for name, path in files.items()}
        sizes = {name: (path / "model.onnx").stat().st_size for name, path in files.items()}
        sizes["torch"] = (run.path / "model.safetensors").stat().st_size
        format, task = run.format(), run.learned
        examples = [run.task.example((text,)) for text in texts_of(run.tokenizer, given.texts, draw)]
        items, on = task.encode(examples, format), Placement(torch.device("cpu"), "float32")
        seconds: dict[str, list[float]] = {name: [] for name in heads}
        classes: dict[str, list[Any]] = {}
        for turn in range(given.rounds + 1):
            for name, head in heads.items():
                begun = time.process_time()
                answers = predictions_of(head, items, task, format, on).predictions
                if turn:  # the first one fills caches
                    seconds[name].append(time.process_time() - begun)
                classes[name] = [each.class_index for each in answers]
    tokens = sum(len(row) for row in format.framed(format.ids([each.texts[0] for each in examples])).ids)
    print(f"{processor_name()}, one thread, torch {torch.__version__}")
    print(f"{given.recipe}, {given.texts} texts of {tokens} tokens, medians of {given.rounds} rounds\n")
    base = statistics.median(seconds["torch"])
    print("| | ms a text | times torch | MB | torch's class |")
    print("|---|---|---|---|---|")
    for name, found in seconds.items():
        median = statistics.median(found)
        same = sum(one == other for one, other in zip(classes[name], classes["torch"], strict=True))
        print(
            f"| {name} | {median / given.texts * 1e3:.2f} | {base / median:.2f} | {sizes[name] / 1e6:.1f} | "
            f"{same} of {given.texts} |"
        )


if __name__ == "__main__":
    main()
