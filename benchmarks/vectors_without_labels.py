"""Vectors that a run is taught without labels, on STS-B, beside the run as it is and the counting of words.

    python benchmarks/vectors_without_labels.py STSB CORPUS OUT RUN [RUN ...] [--steps 800] [--seeds 3] [--part dev]
        [--option KEY=VALUE ...]

STSB has sts-train.tsv, sts-dev.tsv and sts-test.tsv as published. Each RUN is taught three ways, with each seed: from
the documents of CORPUS; from the sentences of STS-B's train part, without their scores; and from the documents, but
whitened over these sentences. The first two rows of a run are its vectors as they are, and whitened over the part that
is measured, as `similarity --whiten` does. Each taught run is measured again together with TF-IDF of characters, by the
mean of both cosines, as `similarity` has it. Spearman's correlation of cosines with the scores of the part; intervals
are of the difference to the cosine of TF-IDF of characters, of 2,000 bootstraps of the pairs. Settings were chosen on
dev; test is measured once. Trainings that are done or were stopped are gone on with when OUT is the same.
"""

import argparse
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

import bakeoff
from bakeoff.contrastive.config import ContrastConfig
from bakeoff.optimization.budget import Budget
from bakeoff.overrides import parse_override
from bakeoff.vectors.baselines import OF_CHARACTERS, baselines

SCORE, FIRST, SECOND = 4, 5, 6
"""The columns of the published files."""
BOOTSTRAPS = 2000

Figures = NDArray[np.float64]


def pairs(folder: Path, part: str) -> tuple[list[str], list[str], Figures]:
    """The first and the second sentences of a part, and their scores."""
    lines = (folder / f"sts-{part}.tsv").read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in lines]
    scores = np.array([float(row[SCORE]) for row in rows])
    return [row[FIRST] for row in rows], [row[SECOND] for row in rows], scores


def cosines(run: str | Path, one: list[str], other: list[str], **how: Any) -> Figures:
    """The cosine of each pair."""
    vectors = [bakeoff.embed(run, texts, device="cpu", **how).astype(np.float64) for texts in (one, other)]
    first, second = (each / np.linalg.norm(each, axis=1, keepdims=True) for each in vectors)
    products: Figures = (first * second).sum(1)
    return products


def correlation(found: Figures, scores: Figures) -> float:
    """Spearman's."""
    return float(stats.spearmanr(found, scores).statistic)


def interval(found: Figures, base: Figures, scores: Figures) -> tuple[float, float]:
    """The 95 % interval of the difference of two correlations, by bootstraps of the pairs."""
    draw = np.random.default_rng(0)
    differences = []
    for _ in range(BOOTSTRAPS):
        rows = draw.integers(0, len(scores), len(scores))
        differences.append(correlation(found[rows], scores[rows]) - correlation(base[rows], scores[rows]))
    low, high = np.quantile(differences, [0.025, 0.975])
    return float(low), float(high)


def taught(run: str, options: argparse.Namespace) -> Iterator[tuple[str, list[Path]]]:
    """The runs that are made of a run, one for each seed, by what they learn from."""
    first, second, _ = pairs(options.stsb, "train")
    sentences = list(dict.fromkeys([*first, *second]))
    settings = dict(parse_override(text, "--option") for text in options.option)
    config = ContrastConfig.parse({**settings, "budget": {"steps": options.steps}}, "--option")
    assert config.budget == Budget(steps=options.steps)
    ways: dict[str, dict[str, Any]] = {
        "documents": {"corpus": options.corpus},
        "sentences": {"texts": sentences},
        "documents, for sentences": {"corpus": options.corpus, "texts": sentences},
    }
    for name in options.ways or ways:
        made = []
        for seed in range(options.seeds):
            out = options.out / f"{Path(run).name}-{name.replace(', ', '-').replace(' ', '-')}-{seed}"
            given = {"seed": seed, "config": config, "device": "cpu", "threads": 1, "resume": True, "progress": False}
            made.append(bakeoff.contrast(run, out, **ways[name], **given).path)
        yield name, made


def main() -> None:
    """Teach and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stsb", type=Path)
    parser.add_argument("corpus")
    parser.add_argument("out", type=Path)
    parser.add_argument("run", nargs="+")
    parser.add_argument("--steps", type=int, default=800)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--part", choices=["dev", "test"], default="dev")
    parser.add_argument("--ways", action="append", help="one of the three ways; all by default")
    parser.add_argument("--option", action="append", default=[])
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    one, other, scores = pairs(options.stsb, options.part)
    counted = {name: each.of_pairs(one, other) for name, each in baselines(list(dict.fromkeys([*one, *other]))).items()}
    base = counted[OF_CHARACTERS]
    print(f"\nSpearman's correlation on {options.part}, {len(scores):,} pairs:\n")
    print("| run | vectors | correlation | by seed | minus tf-idf of characters |\n|---|---|---|---|---|")
    for name, found in counted.items():
        print(f"| | {name} | {correlation(found, scores):.4f} | | |")
    for run in options.run:
        print(row(run, "as they are", [cosines(run, one, other)], base, scores), flush=True)
        figures = bakeoff.similarity(run, written(options, one, other, scores), device="cpu", whiten=True, **COLUMNS)
        print(row(run, "whitened over the part", [np.array(figures["cosines"])], base, scores), flush=True)
        for name, made in taught(run, options):
            found = [cosines(path, one, other) for path in made]
            print(row(run, name, found, base, scores), flush=True)
            both = [(each + base) / 2 for each in found]
            print(row(run, f"{name}, with {OF_CHARACTERS}", both, base, scores), flush=True)


COLUMNS = {"text_column": "sentence1", "pair_column": "sentence2", "label_column": "score"}


def written(options: argparse.Namespace, one: list[str], other: list[str], scores: Figures) -> Path:
    """The part as a file with names of columns."""
    path: Path = options.out / f"sts-{options.part}.tsv"
    lines = [f"{first}\t{second}\t{score}\n" for first, second, score in zip(one, other, scores, strict=True)]
    path.write_text("\t".join(COLUMNS.values()) + "\n" + "".join(lines), encoding="utf-8")
    return path


def row(run: str, name: str, found: list[Figures], base: Figures, scores: Figures) -> str:
    """A row of the table; the interval is that of the first seed."""
    each = [correlation(one, scores) for one in found]
    low, high = interval(found[0], base, scores)
    seeds = ", ".join(f"{value:.4f}" for value in each) if len(each) > 1 else ""
    return f"| {Path(run).name} | {name} | {statistics.fmean(each):.4f} | {seeds} | {low:+.4f} to {high:+.4f} |"


if __name__ == "__main__":
    main()
