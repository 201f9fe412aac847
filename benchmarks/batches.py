"""Speed of making batches for each objective, in tokens a second on one core, from a real corpus.

    python benchmarks/batches.py CORPUS [--seconds 5] [--large]

Rows have 512 tokens, batches 32 rows, made in chunks of 256 rows as in training; the corpus is in the system's cache.
With --large, the first batch of a corpus of ten billion tokens (zeros in sparse files, half a billion sentences, in a
temporary folder of 5 GB) and a batch far into a training are timed, too. The index of rows of whole sentences, which is
made once and kept beside the corpus, is timed separately.
"""

import argparse
import itertools
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bakeoff.batching.batches import Batches, BatchSizes
from bakeoff.batching.rows import TargetDrawing, TextRows
from bakeoff.batching.token_batches import TokenBatch
from bakeoff.corpus.manifest import SplitCounts
from bakeoff.corpus.split import Split, map_array
from bakeoff.corpus.store import Corpus
from bakeoff.learner.pretraining_model import build_on_meta
from bakeoff.machine.capacity import processor_name
from bakeoff.preparation.prepare_pairs import prepare_pairs
from bakeoff.recipe import Recipe
from bakeoff.recipe_files import load_recipe
from bakeoff.tokenizer.tokenizer import Tokenizer

BATCH = 32
PAIRS = 100_000
"""Number of pairs of sentences for translation."""
ROWS = {"blocks": {"format": "blocks", "length": 512, "isolate": False}}
ROWS |= {
    name: {"format": name, "length": 512}
    for name in ("full_sentences", "doc_sentences", "segment_pair", "sentence_pair")
}
ROWS["continued_pair"] = {"format": "continued_pair", "length": 512, "reuse": 256}

CASES: dict[str, tuple[str, str, list[dict[str, Any]]]] = {
    "mlm": ("bert-tiny", "blocks", [{"kind": "mlm"}]),
    "mlm, whole words": ("bert-tiny", "blocks", [{"kind": "mlm", "whole_word": True}]),
    "mlm, n-grams": ("bert-tiny", "blocks", [{"kind": "mlm", "ngram": 3}]),
    "mlm on full_sentences": ("bert-tiny", "full_sentences", [{"kind": "mlm"}]),
    "mlm on doc_sentences": ("bert-tiny", "doc_sentences", [{"kind": "mlm"}]),
    "mlm and nsp": ("bert-tiny", "segment_pair", [{"kind": "mlm"}, {"kind": "nsp"}]),
    "mlm and sop": ("bert-tiny", "segment_pair", [{"kind": "mlm"}, {"kind": "sop"}]),
    "mlm and sentence_structure": ("bert-tiny", "segment_pair", [{"kind": "mlm"}, {"kind": "sentence_structure"}]),
    "mlm and nsp on sentence_pair": ("bert-tiny", "sentence_pair", [{"kind": "mlm"}, {"kind": "nsp"}]),
    "mlm and word_structure": ("bert-tiny", "blocks", [{"kind": "mlm"}, {"kind": "word_structure"}]),
    "clm": ("gpt-tiny", "blocks", [{"kind": "clm"}]),
    "bilm": ("elmo-tiny", "blocks", [{"kind": "bilm"}]),
    "permutation": ("xlnet-tiny", "segment_pair", [{"kind": "permutation"}]),
    "permutation on continued_pair": ("xlnet-tiny", "continued_pair", [{"kind": "permutation"}]),
    "span_corruption": ("t5-tiny", "blocks", [{"kind": "span_corruption"}]),
    "denoising": ("t5-tiny", "blocks", [{"kind": "denoising"}]),
    "prefix_lm": ("t5-tiny", "blocks", [{"kind": "prefix_lm"}]),
}


def recipe_of(case: str) -> Recipe:
    name, rows, objective = CASES[case]
    changes = {"objective": objective, "input": ROWS[rows], "training.batch": BATCH}
    return load_recipe(name, {**changes, "model.embedding.length": 512})


def batches_of(recipe: Recipe, split: Split, tokenizer: Tokenizer) -> Batches:
    objectives = build_on_meta(recipe, tokenizer.size).objectives
    drawing = TargetDrawing(recipe.objective, objectives)
    return Batches([TextRows(split, tokenizer, recipe.input, drawing, 0)], BatchSizes(BATCH, BATCH), 0)


def translation(corpus: Corpus, folder: Path) -> Batches:
    """Batches of 25,000 tokens of pairs of successive sentences, which are as fast to make as translations."""
    bounds = np.asarray(corpus.train.sentences[: 2 * PAIRS + 1])
    lines = [
        " ".join(corpus.tokenizer.decode(corpus.train.tokens[first:last]).split())
        for first, last in itertools.pairwise(bounds)
    ]
    for name, own in (("source", lines[::2]), ("target", lines[1::2])):
        (folder / name).write_text("".join(f"{line}\n" for line in own), encoding="utf-8")
    pairs = prepare_pairs(
        folder / "source", folder / "target", folder / "pairs", tokenizer=corpus.path / "tokenizer.json"
    )
    recipe = load_recipe("transformer-translation-tiny")
    objectives, size = build_on_meta(recipe, pairs.tokenizer.size).objectives, TokenBatch(tokens=25_000)
    drawing = TargetDrawing(recipe.objective, objectives)
    return Batches([TextRows(pairs.train, pairs.tokenizer, recipe.input, drawing, 0)], BatchSizes(size, size), 0)


def tokens_a_second(batches: Batches, seconds: float) -> float:
    """Tokens a second, measured for some seconds after one chunk to warm up."""
    chunk = max(1, 256 // BATCH)
    batches.step(0)
    tokens, step, began = 0, chunk, time.perf_counter()
    while (passed := time.perf_counter() - began) < seconds:
        for place in range(step, step + chunk):
            tokens += sum(part.tokens for part in batches.step(place))
        step += chunk
    return tokens / passed


class SparseText(Split):
    """Ten billion tokens, all zero, in documents of 2,000 with sentences of 8, 31, 17 and 24 tokens."""

    def __init__(self, folder: Path, tokens: int) -> None:
        for name, bytes_each in (("tokens", 2), ("words", 1 / 8)):
            with (folder / name).open("wb") as file:
                file.truncate(int(tokens * bytes_each))
        with (folder / "sentences").open("wb") as file:
            for first in range(0, tokens, 80_000_000):
                starts = np.arange(first, min(first + 80_000_000, tokens), 80, dtype=np.int64)
                (starts[:, None] + np.array([0, 8, 39, 56])).tofile(file)
            np.array([tokens], np.int64).tofile(file)
        self.index_path = folder / "indexes" / "train"
        self.tokens = map_array(folder / "tokens", "uint16", scattered=True)
        self._words = map_array(folder / "words", "uint8", scattered=True)
        self.sentences = map_array(folder / "sentences", "int64", scattered=False)
        self.documents = np.arange(0, tokens + 1, 2000, dtype=np.int64)
        documents = len(self.documents) - 1
        self.originals = np.arange(documents)
        self.bytes = tokens
        self.counts = SplitCounts(
            tokens=tokens,
            sentences=len(self.sentences) - 1,
            documents=documents,
            words=0,
            bytes=tokens,
            unigram_entropy=1.0,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus")
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--large", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    corpus = Corpus.open(options.corpus)
    for file in corpus.path.glob("train.*"):  # into the system's cache, since the disk is not measured
        file.read_bytes()
    print(
        f"{processor_name()}, {len(corpus.train.tokens):,} tokens\n\n| objective | million tokens a second |\n|---|---|"
    )
    for case in CASES:
        rate = tokens_a_second(batches_of(recipe_of(case), corpus.train, corpus.tokenizer), options.seconds)
        print(f"| {case} | {rate / 1e6:.2f} |", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        rate = tokens_a_second(translation(corpus, Path(folder)), options.seconds)
    print(f"| translation, 25,000 tokens a batch | {rate / 1e6:.2f} |", flush=True)
    if not options.large:
        return
    print("\n| ten billion tokens | index, s | first batch, s | step 1,000,000, s |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        text = SparseText(Path(folder), 10_000_000_000)
        for case in ("mlm", "clm", "span_corruption", "mlm on full_sentences", "mlm and nsp", "mlm and sop"):
            began = time.perf_counter()
            if ROWS[CASES[case][1]] != ROWS["blocks"]:
                batches_of(recipe_of(case), text, corpus.tokenizer)
            seconds = [time.perf_counter() - began]
            for step in (0, 1_000_000):
                began = time.perf_counter()
                batches_of(recipe_of(case), text, corpus.tokenizer).step(step)
                seconds.append(time.perf_counter() - began)
            print(f"| {case} | " + " | ".join(f"{each:.2f}" for each in seconds) + " |", flush=True)
            print(f"peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.1f} GB", file=sys.stderr)


if __name__ == "__main__":
    main()
