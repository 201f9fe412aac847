r"""The sentences of a prepared text, one a line, for training on sentences that each begin after a separator.

    python benchmarks/sentences.py CORPUS TEXT.jsonl.gz OUT
    bakeoff prepare OUT/train.txt --validation OUT/held-out.txt --document-per-line \
        --tokenizer CORPUS/tokenizer.json --out SENTENCES

A document is held out if CORPUS, which was prepared from the same file, holds it out: its first tokens are looked up
there. Documents of fewer than 24 tokens may stay in train.
"""

import argparse
import gzip
import json
from pathlib import Path

import numpy as np

from bakeoff.corpus.store import Corpus
from bakeoff.text.sentences import split_sentences

FIRST = 24
"""Number of tokens by which a document is recognised."""
CHARACTERS = 600
"""Number of characters that hold so many tokens."""


def main() -> None:
    """Write the sentences of train and of the held-out documents."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus")
    parser.add_argument("text", type=Path)
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    corpus = Corpus.open(options.corpus)
    held_out = corpus.validation
    known = {tuple(held_out.tokens[begin : begin + FIRST].tolist()) for begin in np.asarray(held_out.documents[:-1])}
    options.out.mkdir(parents=True, exist_ok=True)
    with (
        gzip.open(options.text, "rt", encoding="utf-8") as lines,
        (options.out / "train.txt").open("w", encoding="utf-8") as train,
        (options.out / "held-out.txt").open("w", encoding="utf-8") as others,
    ):
        for line in lines:
            text = json.loads(line)["text"]
            ((ids, _),) = corpus.tokenizer.encode([text[:CHARACTERS]])
            out = others if tuple(ids[:FIRST].tolist()) in known else train
            for paragraph in text.split("\n"):
                out.writelines(
                    f"{' '.join(sentence.split())}\n" for sentence in split_sentences(paragraph) if sentence.strip()
                )


if __name__ == "__main__":
    main()
