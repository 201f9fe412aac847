"""Speed of `bakeoff prepare` against the bare `tokenizers` library on the same text, in the same run.

    python benchmarks/prepare_speed.py [TEXT ...] [--kind wordpiece] [--rounds 3] [--megabytes 40]

Prints medians over interleaved rounds. "bare" is `encode_batch` of the trained tokenizer over all paragraphs, which
uses all cores by itself; what prepare does besides (reading, sentences, word starts, hashes, writing) is its overhead.
The target is 0.8 of the bare rate for the encoding phase.
"""

import argparse
import statistics
import tempfile
import time
from collections import Counter
from pathlib import Path
from pydoc_data.topics import topics

import tokenizers

from bakeoff.corpus.files import find_files
from bakeoff.corpus.prepare import prepare
from bakeoff.corpus.sources import SourceOptions, TextReader
from bakeoff.corpus.tokenizer import TokenizerConfig


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", nargs="*", help="text files (default: the language reference that ships with Python)")
    parser.add_argument("--kind", default="wordpiece")
    parser.add_argument("--size", type=int, default=8192)
    parser.add_argument("--field", default="text")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--megabytes", type=float, default=40, help="size of the default text")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        texts = arguments.texts or [_default_text(Path(folder), arguments.megabytes)]
        run(texts, Path(folder), arguments)


def _default_text(folder: Path, megabytes: float) -> Path:
    """The topics again and again: repetition makes words better known than they are in other text."""
    text = "\n\n".join(topics[name] for name in sorted(topics)) + "\n\n"
    file = folder / "topics.txt"
    with file.open("w", encoding="utf-8") as stream:
        for _ in range(max(1, round(megabytes * 1e6 / len(text)))):
            stream.write(text)
    return file


def run(texts: list[str | Path], folder: Path, arguments: argparse.Namespace) -> None:
    config = TokenizerConfig(kind=arguments.kind, size=arguments.size)
    corpus = prepare(texts, folder / "trained", tokenizer=config, field=arguments.field)
    bare = tokenizers.Tokenizer.from_file(str(corpus.path / "tokenizer.json"))
    reader = TextReader(find_files(texts, Counter()), SourceOptions(field=arguments.field))
    paragraphs = [piece.text for piece in reader]
    rates: dict[str, list[float]] = {"bare": [], "encoding phase": [], "prepare with training": []}
    for i in range(arguments.rounds):
        began = time.perf_counter()
        tokens = 0
        for first in range(0, len(paragraphs), 1000):
            batch = bare.encode_batch(paragraphs[first : first + 1000], add_special_tokens=False)
            tokens += sum(len(encoding.ids) for encoding in batch)
        rates["bare"].append(tokens / (time.perf_counter() - began))

        phases: dict[str, float] = {}
        began = time.perf_counter()
        made = prepare(
            texts,
            folder / f"round{i}",
            tokenizer=config,
            field=arguments.field,
            progress=lambda phase, done, total, times=phases: times.setdefault(phase, time.perf_counter()),
        )
        ended = time.perf_counter()
        tokens = int(made.summary()["tokens"])
        rates["encoding phase"].append(tokens / (ended - phases["encoding"]))
        rates["prepare with training"].append(tokens / (ended - began))
    reference = statistics.median(rates["bare"])
    print(f"{config.kind}, vocabulary {corpus.tokenizer.size}, {tokens / 1e6:.2f} M tokens, {arguments.rounds} rounds")
    for name, values in rates.items():
        median = statistics.median(values)
        print(f"{name:22} {median / 1e6:6.2f} M tokens/s   {median / reference:5.2f} of bare")


if __name__ == "__main__":
    main()
