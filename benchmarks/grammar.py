"""Accuracy of pre-trained runs on BLiMP's minimal pairs of sentences (Warstadt et al. 2020).

    python benchmarks/grammar.py CORPUS RUN... --pairs blimp.jsonl.gz [--details]

The pairs are a .jsonl, .csv or .tsv file with the columns sentence_good, sentence_bad and UID. The first row of the
table is a baseline that knows the token frequencies of CORPUS's training text alone. Each run is scored in every way
that it has learned: forwards (the sum of log p(next | left), not divided by the length), by the pseudo-log-likelihood
(each token masked alone), and by the same with the later tokens of its word masked, too. Averages are over sub-tasks; a
tie counts as half right. One thread is used.
"""

import argparse
import math
import time
from pathlib import Path

import numpy as np
import torch

from bakeoff.corpus.store import Corpus
from bakeoff.reading.aligned import clean
from bakeoff.runs.run import Run
from bakeoff.scoring.methods import Reading, readings
from bakeoff.scoring.minimal_pairs import MinimalPair, Preferences, judge, preferences, read_minimal_pairs

NAMES: dict[Reading, str] = {
    "forwards": "forwards",
    "pseudo": "pseudo-log-likelihood",
    "pseudo_words": "the same, rest of the word masked",
}
AT_ONCE = 1 << 24
"""Number of tokens that are counted at once."""


def by_frequency(corpus: Corpus, pairs: list[MinimalPair]) -> Preferences:
    """Preferences by token frequencies alone, with add-one smoothing; the order is ignored, so that many pairs tie."""
    counts = np.ones(corpus.tokenizer.size)
    tokens = corpus.train.tokens
    for first in range(0, len(tokens), AT_ONCE):
        counts += np.bincount(tokens[first : first + AT_ONCE], minlength=len(counts))
    logs = np.log(counts / counts.sum())
    texts = [clean(text) for pair in pairs for text in (pair.good, pair.bad)]
    scores = [math.fsum(logs[ids]) for ids, _ in corpus.tokenizer.encode(texts)]
    return preferences(pairs, np.array(scores).reshape(-1, 2))


def main() -> None:
    """Score the runs, and print the tables as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus")
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--pairs", type=Path, required=True)
    parser.add_argument("--details", action="store_true", help="a second table, with a row a sub-task")
    options = parser.parse_intermixed_args()
    torch.set_num_threads(1)
    pairs = read_minimal_pairs(options.pairs)
    frequency = by_frequency(Corpus.open(options.corpus), pairs)
    found = {"frequencies of pieces": frequency}
    print("| run | read | average | ties | processor seconds |\n|---|---|---|---|---|")
    print(f"| frequencies of pieces | | {frequency.accuracy:.1%} | {frequency.ties:,} | |", flush=True)
    for path in options.runs:
        run = Run.open_trained(path)
        for reading in readings(run):
            began = time.process_time()
            result = judge(run, pairs, reading, device="cpu")
            seconds = time.process_time() - began
            name = NAMES[reading]
            found[f"{path.name}, {name}"] = result
            print(f"| {path.name} | {name} | {result.accuracy:.1%} | {result.ties:,} | {seconds:.0f} |", flush=True)
    print(f"\n{len(pairs):,} pairs in {len(frequency.groups)} sub-tasks; chance is 50 %.")
    if options.details:
        print(f"\n| sub-task | {' | '.join(found)} |\n|---|{'---|' * len(found)}")
        for group in frequency.groups:
            print(f"| {group} | {' | '.join(f'{each.groups[group]:.1%}' for each in found.values())} |")


if __name__ == "__main__":
    main()
