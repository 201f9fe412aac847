"""Speed of using a run against transformers' pipelines with the same weights, for the same texts, in one process.

    python benchmarks/inference_speed.py --tokenizer CORPUS/tokenizer.json [--texts 64] [--rounds 5] [--threads 1]
        [--only embed predict fill generate sample growth]

The models are a BERT of bert-mini's size and gpt2-tiny with random weights, copied to transformers by the tables of
`equal_models.py`. Texts have 4 to 120 words, with lengths uniform on a logarithmic scale. A pipeline is measured at its
best: the fastest of several batch sizes, with texts in their order or sorted by length. All sides answer in turns;
medians of processor time are printed, which other programs change less than time by the clock. Ratios are between both
in float32. On AMD's processors Bakeoff has oneDNN multiply where torch asks MKL, in the whole process: the pipeline is
measured with torch's own choice, and beside it with Bakeoff's. Also printed are both in bfloat16 (the pipeline's model
converted, as by its `dtype`, at its best batch size of all), and a classifier from `bakeoff export --to onnx --quantize
int8`. Answers are compared first, and the share of answers that bfloat16 leaves unchanged is printed. Generation is
greedy, and once sampled, with 64 tokens for each of 32 prompts of 4 to 40 words. Last, the cost of a token is measured
for a convolutional model and a GPT-2 as the text grows.
"""

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from equal_models import (
    bert_config,
    bert_tensors,
    causal_model,
    filled,
    made_run,
    masked_model,
    renamed,
    their_tokenizer,
)

import bakeoff
from bakeoff.interop.onnx.conversion import open_session
from bakeoff.interop.onnx.measuring import OnnxHead
from bakeoff.machine.capacity import processor_name
from bakeoff.ops.cpu.matrix_products import Float32Products
from bakeoff.recipe_files import load_recipe
from bakeoff.resources.device import Placement
from bakeoff.row import Row
from bakeoff.runs.run import Run
from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.tasks.predictions.predicting import predictions_of
from bakeoff.tensors import load_tensors
from bakeoff.tokenizer.tokenizer import Tokenizer

BATCHES = (1, 4, 16, 64)
"""Batch sizes that are tried for the pipelines."""
TOKENS = 64
"""Number of tokens that are written for a prompt."""
PROMPTS = 32
"""Number of prompts."""
PARTS = ("embed", "predict", "fill", "generate", "sample", "growth")
"""The parts of the benchmark, all by default."""
DEFAULT_PRODUCTS = torch.backends.mkldnn.matmul.fp32_precision  # type: ignore[attr-defined]
"""torch's own setting of the library that multiplies matrices of float32, read before Bakeoff changes it."""
LENGTHS = (64, 256, 1024)
"""Lengths of text in tokens up to which the mean cost of a token is printed."""


def texts_of(tokenizer: Tokenizer, count: int, longest: int, draw: random.Random) -> list[str]:
    """`count` texts of random words of the vocabulary, 4 to `longest` words each."""
    words = [tokenizer.decode([token]).strip() for token in range(300, min(4000, tokenizer.size))]
    words = [word for word in words if word.isascii() and word.isalpha() and len(word) > 2]
    return [" ".join(draw.choices(words, k=round(4 * (longest / 4) ** draw.random()))) for _ in range(count)]


Ask = Callable[[Sequence[str], int], Any]


def as_torch_comes(run: Callable[[], Any]) -> Callable[[], Any]:
    """The same function under torch's own choice of the library that multiplies matrices of float32."""

    def under_defaults() -> Any:
        setting: Any = torch.backends.mkldnn.matmul  # type: ignore[attr-defined]
        chosen = setting.fp32_precision
        setting.fp32_precision = DEFAULT_PRODUCTS
        try:
            return run()
        finally:
            setting.fp32_precision = chosen

    return under_defaults


def at_its_best(ask: Ask, texts: Sequence[str]) -> tuple[Callable[[], Any], str]:
    """A call of a pipeline with its fastest batch size and order of texts, and their description."""
    ways = []
    for by_length in (False, True):
        given = sorted(texts, key=len, reverse=True) if by_length else list(texts)
        for batch in BATCHES:
            begin = time.process_time()
            ask(given, batch)
            ways.append((time.process_time() - begin, batch, given, by_length))
    _, batch, given, by_length = min(ways, key=lambda way: way[0])
    return lambda: ask(given, batch), f"{batch} a batch{', sorted' if by_length else ''}"


def compared(
    name: str,
    ours: Callable[[], Any],
    ask: Ask,
    ask_rounded: Ask,
    texts: Sequence[str],
    rounds: int,
    rounded: dict[str, Callable[[], Any]],
    answer: Callable[[Any], list[Any]] | None,
) -> None:
    """Time all sides in turns, and print medians.

    Args:
        name: the name of the verb.
        ours: a call of our run.
        ask: a call of the pipeline with texts and a batch size.
        ask_rounded: a call of the pipeline in bfloat16.
        texts: the texts for the pipeline.
        rounds: number of turns.
        rounded: calls of our run in bfloat16, by name.
        answer: a function from our results to the answers that are compared with those of float32; None: none are.
    """
    theirs, way = at_its_best(ask, texts)
    theirs_rounded, rounded_way = at_its_best(ask_rounded, texts)
    sides = {"ours": ours, "pipeline": as_torch_comes(theirs), **rounded, "pipeline, bfloat16": theirs_rounded}
    if Float32Products.by_onednn:
        sides["pipeline, oneDNN"] = theirs
    found = {side: run() for side, run in sides.items()}
    seconds: dict[str, list[float]] = {side: [] for side in sides}
    for _ in range(rounds):
        for side, run in sides.items():
            begin = time.process_time()
            run()
            seconds[side].append(time.process_time() - begin)
    medians = {side: statistics.median(own) for side, own in seconds.items()}
    of_bfloat16 = medians["pipeline, bfloat16"] / medians["ours, bfloat16"]
    print(
        f"{name}: pipeline with {way}, in bfloat16 {rounded_way}; ratio {medians['pipeline'] / medians['ours']:.2f}, "
        f"both in bfloat16 {of_bfloat16:.2f}, ours alone {medians['pipeline'] / medians['ours, bfloat16']:.2f}"
    )
    own = [] if answer is None else answer(found["ours"])
    for side, median in medians.items():
        same = ""
        if side in rounded and answer is not None:
            share = np.mean([one == other for one, other in zip(own, answer(found[side]), strict=True)])
            same = f"  same answers {share:.0%}"
        print(f"    {side:<20} {median:.3f} s ({min(seconds[side]):.3f} to {max(seconds[side]):.3f}){same}", flush=True)


def classifier_of(run: Run, texts: Sequence[str], folder: Path) -> tuple[bakeoff.LoadedRun, Any]:
    """A fine-tuned run, loaded, and transformers' model with its weights."""
    file = folder / "rows.tsv"
    file.write_text("text\tlabel\n" + "".join(f"{text}\t{'ab'[place % 2]}\n" for place, text in enumerate(texts[:64])))
    task = bakeoff.ClassificationConfig(train=file, dev=file, test=file, text_column="text", label_column="label")
    quick = bakeoff.FinetuneConfig(learning_rate=[1e-4], epochs=[1], least_steps=0, pooling="cls")
    bakeoff.finetune(run, task, folder / "classifier", config=quick, device="cpu", progress=False)
    loaded = bakeoff.load(folder / "classifier", "cpu")
    ours = load_tensors(folder / "classifier" / "model.safetensors")
    theirs = transformers.BertForSequenceClassification(bert_config(run, num_labels=2)).eval()
    tensors = {f"bert.{n}": t for n, t in bert_tensors(ours, run.recipe.model.encoder.layers).items()}
    tensors |= renamed(ours, "pooler.", "bert.pooler.dense.") | renamed(ours, "output.", "classifier.")
    filled(theirs, tensors)
    return loaded, theirs


def vectors(run: Run, own: Any, texts: Sequence[str], rounds: int) -> None:
    """Compare vectors, which are means of hidden states."""
    loaded, rounded = bakeoff.load(run, "cpu"), bakeoff.load(run, "cpu", "bfloat16")
    features, rounded_features = (
        transformers.pipeline("feature-extraction", model=masked_model(run).bert.to(dtype), tokenizer=own)
        for dtype in (torch.float32, torch.bfloat16)
    )
    # A pipeline returns the states of padding, too, without a mask.
    counts = {text: len(ids) for text, ids in zip(texts, own(list(texts), truncation=True)["input_ids"], strict=True)}

    def embedded(given: Sequence[str], batch: int, features: Any = features) -> Any:
        made = features(list(given), batch_size=batch, return_tensors=True, truncation=True)
        means = [states[0, : counts[text]].float().mean(0) for states, text in zip(made, given, strict=True)]
        return torch.stack(means).numpy()

    np.testing.assert_allclose(loaded.embed(texts[:32]), embedded(texts[:32], 1), atol=1e-3)

    def nearest(made: Any) -> list[int]:
        alike = made @ made.T / np.linalg.norm(made, axis=1)
        np.fill_diagonal(alike, -np.inf)
        return list(alike.argmax(1))

    others = {"ours, bfloat16": lambda: rounded.embed(texts)}
    halved = partial(embedded, features=rounded_features)
    compared("embed", lambda: loaded.embed(texts), embedded, halved, texts, rounds, others, nearest)


def classes(run: Run, own: Any, texts: Sequence[str], rounds: int, folder: Path) -> None:
    """Compare the classes of a fine-tuned run."""
    fine, theirs = classifier_of(run, texts, folder)
    classifying, rounded_classifying = (
        transformers.pipeline("text-classification", model=model, tokenizer=own)
        for model in (theirs, deepcopy(theirs).bfloat16())
    )

    def classified(given: Sequence[str], batch: int, classifying: Any = classifying) -> Any:
        return classifying(list(given), batch_size=batch, truncation=True)

    np.testing.assert_allclose(
        [each["probability"] for each in fine.predict(texts[:32])],
        [each["score"] for each in classified(texts[:32], 1)],
        atol=1e-4,
    )
    opened = FinetunedRun.open(folder / "classifier")
    rounded = bakeoff.load(opened, "cpu", "bfloat16")
    written = bakeoff.export(opened.path, folder / "int8", to="onnx", quantize="int8").path
    exported: Any = OnnxHead(open_session(written / "model.onnx"))
    format, task, on = opened.format(), opened.learned, Placement(torch.device("cpu"), "float32")

    def by_onnx() -> list[dict[str, Any]]:
        examples = [opened.task.example((text,)) for text in texts]
        found = predictions_of(exported, task.encode(examples, format), task, format, on)
        return [task.as_record(*each) for each in zip(examples, found.predictions, strict=True)]

    def labels(made: Any) -> list[str]:
        return [each["label"] for each in made]

    others = {"ONNX, int8": by_onnx}
    others["ours, bfloat16"] = lambda: rounded.predict(texts)
    halved = partial(classified, classifying=rounded_classifying)
    compared("predict", lambda: fine.predict(texts), classified, halved, texts, rounds, others, labels)


def masks(run: Run, own: Any, texts: Sequence[str], rounds: int) -> None:
    """Compare the filling of masks."""
    loaded, rounded = bakeoff.load(run, "cpu"), bakeoff.load(run, "cpu", "bfloat16")
    masked = [" ".join([*text.split()[:-1], "[MASK]"]) for text in texts]
    filling, rounded_filling = (
        transformers.pipeline("fill-mask", model=masked_model(run).to(dtype), tokenizer=own)
        for dtype in (torch.float32, torch.bfloat16)
    )

    def fill(given: Sequence[str], batch: int, filling: Any = filling) -> Any:
        return filling(list(given), batch_size=batch, top_k=5, tokenizer_kwargs={"truncation": True})

    def best(made: Any) -> list[int]:
        return [each[0][0].id for each in made]

    expected = [each[0]["token"] for each in fill(masked[:32], 1)]
    same = [one == other for one, other in zip(best(loaded.fill(masked[:32], 1)), expected, strict=True)]
    assert sum(same) >= 30, same  # ours are never special tokens
    others = {"ours, bfloat16": lambda: rounded.fill(masked)}
    halved = partial(fill, filling=rounded_filling)
    compared("fill", lambda: loaded.fill(masked), fill, halved, masked, rounds, others, best)


def decoders(tokenizer: Tokenizer, rounds: int, folder: Path, ways: Sequence[str]) -> None:
    """Compare generation, greedy (`generate`) and by sampling from all tokens (`sample`)."""
    recipe = load_recipe("gpt2-tiny", {"input.length": 512})
    run = made_run(recipe, tokenizer, folder / "gpt2")
    loaded, own = bakeoff.load(run, "cpu"), their_tokenizer(run, opening=True)
    prompts = texts_of(tokenizer, PROMPTS, 40, random.Random(2))
    writing, rounded_writing = (
        transformers.pipeline("text-generation", model=causal_model(run).to(dtype), tokenizer=own)
        for dtype in (torch.float32, torch.bfloat16)
    )
    others = {"ours, bfloat16": bakeoff.load(run, "cpu", "bfloat16")}

    def written(given: Sequence[str], batch: int, sampled: bool, writing: Any = writing) -> Any:
        options = {"max_new_tokens": TOKENS, "suppress_tokens": tokenizer.special_ids.tolist()}
        options |= {"do_sample": True, "top_k": 0} if sampled else {"do_sample": False}
        return writing(list(given), batch_size=batch, return_tensors=True, **options)

    for way in ways:
        sampled = way == "sample"

        def ours(run: bakeoff.LoadedRun, temperature: float = float(sampled)) -> Callable[[], Any]:
            return lambda: run.generate(prompts, tokens=TOKENS, temperature=temperature)

        theirs = partial(written, sampled=sampled)
        rounded = {name: ours(run) for name, run in others.items()}
        halved = partial(theirs, writing=rounded_writing)
        compared(way, ours(loaded), theirs, halved, prompts, rounds, rounded, None if sampled else list)


def growth(tokenizer: Tokenizer, folder: Path) -> None:
    """Print the cost of a token as the text grows."""
    for name in ("conv-light-lm-tiny", "gpt2-tiny"):
        run = made_run(load_recipe(name, {"model.embedding.length": 2048}), tokenizer, folder / f"{name}-growth")
        model = run.load().model
        state, ids = model.start(8, room=max(LENGTHS)), torch.full((8, 1), 400)
        costs, before, done, begin = [], 0.0, 0, time.process_time()
        with torch.inference_mode():
            for place in range(1, max(LENGTHS) + 1):
                _, state = model(Row(ids), state)
                if place in LENGTHS:
                    now = time.process_time() - begin
                    costs.append(f"to {place}: {1000 * (now - before) / (place - done):.3f} ms")
                    before, done = now, place
        print(f"{name:<20} a token of 8 rows  {'  '.join(costs)}", flush=True)


def main() -> None:
    """Run the parts of the benchmark, and print their results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--texts", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    transformers.logging.set_verbosity_error()
    tokenizer = Tokenizer.load(options.tokenizer)
    print(f"{processor_name()}, {options.threads} threads, torch {torch.__version__}, {transformers.__version__}")
    with tempfile.TemporaryDirectory() as folder:
        run = made_run(load_recipe("bert-mini", {"input.length": 128}), tokenizer, Path(folder) / "bert")
        texts = texts_of(tokenizer, options.texts, 120, random.Random(1))
        own = their_tokenizer(run, opening=False)
        if "embed" in options.only:
            vectors(run, own, texts, options.rounds)
        if "predict" in options.only:
            classes(run, own, texts, options.rounds, Path(folder))
        if "fill" in options.only:
            masks(run, own, texts, options.rounds)
        if ways := [way for way in ("generate", "sample") if way in options.only]:
            decoders(tokenizer, options.rounds, Path(folder), ways)
        if "growth" in options.only:
            growth(tokenizer, Path(folder))


if __name__ == "__main__":
    main()
