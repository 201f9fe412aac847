"""ALBERT's table of sentence losses: what mlm alone, mlm with nsp and mlm with sop learn about pairs of sentences.

    python benchmarks/sentence_heads.py CORPUS OUT [--tokens 5M] [--train 8000] [--test 2000]

laptop-encoder-tiny, with segment embeddings and rows of segment pairs, is pre-trained three times on the same number of
tokens: OUT/mlm, OUT/mlm-nsp and OUT/mlm-sop. Finished runs are not repeated. The runs are then frozen. A new linear
head (standardised features, logistic regression) learns nsp and sop from unmasked pairs of the training text, and is
measured on pairs of the held-out text. It reads one of two vectors:

- pooler: tanh(W_p h) with the pooler of pre-training and the state h of [CLS]. mlm alone trains no pooler, so that it
  has no such row.
- [CLS]: h itself, for all three runs, and for random weights as a baseline.

The pairs are the same for all runs: whole sentences, spread evenly over the text. Intervals are binomial 95 % intervals
for the held-out pairs; another pre-training would differ by more.
"""

import argparse
import math
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import bakeoff
from bakeoff.corpus.store import Corpus
from bakeoff.learner.pretraining_model import PretrainingModel, build_on_meta
from bakeoff.objectives.heads import SentenceHead
from bakeoff.optimization.budget import Budget
from bakeoff.recipe import Recipe
from bakeoff.recipe_files import load_recipe
from bakeoff.row import Row
from bakeoff.runs.run import Run
from bakeoff.training.stages import make_batches

PROBED = ("nsp", "sop")
OBJECTIVES = {"mlm": ["mlm"], "mlm-nsp": ["mlm", "nsp"], "mlm-sop": ["mlm", "sop"]}
PUBLISHED = {"mlm": (54.9, 52.4, 53.3), "mlm-nsp": (54.5, 90.5, 52.0), "mlm-sop": (54.0, 78.9, 86.5)}
"""Published accuracy of mlm, nsp and sop in percent, by sentence loss: Lan et al. 2020, table 5, ALBERT-base."""

Vectors = dict[str, NDArray[np.float32]]


def recipe_of(kinds: list[str], length: int) -> Recipe:
    """laptop-encoder-tiny with objectives of these kinds, on segment pairs of `length` tokens."""
    objectives = [{"kind": kind, **({"rate": 0.3} if kind == "mlm" else {})} for kind in kinds]
    pairs = {"input": {"format": "segment_pair", "length": length}, "model.embedding.segments": 2}
    return load_recipe("laptop-encoder-tiny", {**pairs, "objective": objectives})


@torch.inference_mode()
def vectors(module: PretrainingModel, corpus: Corpus, kind: str, pairs: int, held_out: bool) -> tuple[Vectors, Vectors]:
    """The (N, D) vectors of N = `pairs` pairs by name, and their (N,) labels under the key `kind`."""
    probe = recipe_of([kind], module.row_lengths[1])
    batches = make_batches(
        probe, build_on_meta(probe, corpus.tokenizer.size), corpus, seed=0, split="validation" if held_out else "train"
    )
    poolers = [head.pooler for head in module.heads.values() if isinstance(head, SentenceHead)]
    found: dict[str, list[torch.Tensor]] = {"[CLS]": [], **({"pooler": []} if poolers else {})}
    labels = []
    for batch in batches.fixed(pairs):
        state = module.model(Row(batch.row.ids, batch.row.segments, batch.row.padding_mask))[0][:, 0]  # (B, D)
        found["[CLS]"].append(state)
        for pooler in poolers:
            found["pooler"].append(pooler(state).tanh())
        labels.append(batch.targets[kind][1])
    return {name: torch.cat(parts).numpy() for name, parts in found.items()}, {kind: torch.cat(labels).numpy()}


def accuracies(module: PretrainingModel, corpus: Corpus, kind: str, train: int, test: int) -> dict[str, str]:
    """The held-out accuracy of a new head in percent, by name of the vector."""
    seen, answers = vectors(module, corpus, kind, train, held_out=False)
    unseen, expected = vectors(module, corpus, kind, test, held_out=True)
    made = {}
    for name in seen:
        head = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
        head.fit(seen[name], answers[kind])
        made[name] = percent(float(head.score(unseen[name], expected[kind])), len(expected[kind]))
    return made


def percent(share: float, count: int) -> str:
    """A share of `count` in percent, with half of its 95 % interval."""
    return f"{100 * share:.1f} ± {196 * math.sqrt(share * (1 - share) / count):.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--tokens", default="5M", help="budget of each pre-training")
    parser.add_argument("--length", type=int, default=128, help="tokens of a row")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--train", type=int, default=8000, help="pairs that a head learns from")
    parser.add_argument("--test", type=int, default=2000, help="held-out pairs")
    options = parser.parse_args()
    corpus = Corpus.open(options.corpus)
    budget = Budget.parse_text(f"tokens={options.tokens}")
    lines, own = [], []
    torch.manual_seed(options.seed)
    module = PretrainingModel(recipe_of(["mlm"], options.length), corpus.tokenizer.size).eval()
    probed = {kind: accuracies(module, corpus, kind, options.train, options.test) for kind in PROBED}
    lines.append(f"| nothing | [CLS] | | {probed['nsp']['[CLS]']} | {probed['sop']['[CLS]']} | |")
    for name, kinds in OBJECTIVES.items():
        recipe = recipe_of(kinds, options.length)
        run = bakeoff.pretrain(
            recipe, options.corpus, options.out / name, seed=options.seed, budget=budget, resume=True
        )
        module = run.load()
        probed = {kind: accuracies(module, corpus, kind, options.train, options.test) for kind in PROBED}
        validation = run.summary["validation"]
        masked = f"{100 * validation['accuracy']['mlm']:.1f}"
        papers = " / ".join(f"{value:.1f}" for value in PUBLISHED[name])
        for vector in ("pooler", "[CLS]"):
            if vector in probed["nsp"]:
                cells = [masked, *(probed[kind][vector] for kind in PROBED), papers]
                lines.append(f"| {name.replace('-', ' + ')} | {vector} | " + " | ".join(cells) + " |")
        own.append(described(run))
    print("\nHeld-out accuracy in percent:\n")
    print("| trained on | head on | mlm | nsp | sop | ALBERT-base: mlm / nsp / sop |\n|---|---|---|---|---|---|")
    print("\n".join([*lines, "", "What the runs themselves say, each on its own held-out rows:", "", *own]))


def described(run: Run) -> str:
    """A line about a run: tokens, time, and the last held-out loss and accuracy of each objective."""
    summary = run.summary
    validation = summary["validation"]
    losses = [
        f"{kind} {loss:.3f} nats, {100 * validation['accuracy'][kind]:.1f} %"
        for kind, loss in validation["losses"].items()
    ]
    spent = f"{summary['tokens'] / 1e6:.2f} M tokens, {summary['seconds'] / 60:.1f} minutes"
    return f"- {run.path.name}: {spent}; " + "; ".join(losses)


if __name__ == "__main__":
    main()
