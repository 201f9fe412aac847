"""Speed of `bakeoff prepare` against the bare `tokenizers` library on the same text, in the same run.

    python benchmarks/prepare_speed.py [TEXT ...] [--kind wordpiece] [--rounds 3] [--megabytes 40]

Medians over interleaved rounds are printed. "bare encoding" is `encode_batch` of a trained tokenizer over all
paragraphs, which are in memory already and whose ids are discarded; it uses all cores by itself. "bare training and
encoding" first trains such a tokenizer on the same paragraphs. prepare also reads, decompresses, finds sentences and
starts of words, holds text out, hashes and writes. With a given
tokenizer it is compared with bare encoding, else with bare training and encoding; the target is a ratio of 0.8.
"""

import argparse
import shutil
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from pydoc_data.topics import topics

import tokenizers

from bakeoff.preparation.prepare import prepare
from bakeoff.reading.files import find_files
from bakeoff.reading.sources import SourceOptions, TextReader
from bakeoff.tokenizer.tokenizer_config import TokenizerConfig


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", nargs="*", help="text files (default: the language reference that ships with Python)")
    parser.add_argument("--kind", default="wordpiece")
    parser.add_argument("--size", type=int, default=8192)
    parser.add_argument("--field", default="text")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--megabytes", type=float, default=40, help="size of the default text")
    arguments = parser.parse_intermixed_args()
    with tempfile.TemporaryDirectory() as folder:
        texts = arguments.texts or [_default_text(Path(folder), arguments.megabytes)]
        run(texts, Path(folder), arguments)


def _default_text(folder: Path, megabytes: float) -> Path:
    """A file of Python's topics, repeated, so that the tokenizer knows its words better than those of other texts."""
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
    given = folder / "tokenizer.json"
    shutil.copy(corpus.path / "tokenizer.json", given)

    def bare_encoding() -> None:
        for first in range(0, len(paragraphs), 1000):
            bare.encode_batch(paragraphs[first : first + 1000], add_special_tokens=False)

    def bare_training() -> None:
        trained = tokenizers.Tokenizer.from_file(str(given))
        trainer = trained.model.get_trainer()
        trainer.vocab_size, trainer.show_progress = arguments.size, False
        trained.train_from_iterator(paragraphs, trainer)

    def ours(tokenizer: Path | TokenizerConfig) -> None:
        prepare(texts, folder / "made", tokenizer=tokenizer, field=arguments.field, overwrite=True)

    contestants: dict[str, list[Callable[[], None]]] = {
        "bare encoding": [bare_encoding],
        "prepare, tokenizer given": [lambda: ours(given)],
        "bare training and encoding": [bare_training, bare_encoding],
        "prepare": [lambda: ours(config)],
    }
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(arguments.rounds):
        for name, parts in contestants.items():
            began = time.perf_counter()
            for part in parts:
                part()
            seconds[name].append(time.perf_counter() - began)
    middle = {name: statistics.median(values) for name, values in seconds.items()}
    tokens = int(corpus.summary()["tokens"])
    print(f"{config.kind}, vocabulary {corpus.tokenizer.size}, {tokens / 1e6:.2f} M tokens, {arguments.rounds} rounds")
    for name, reference in zip(contestants, ["bare encoding"] * 2 + ["bare training and encoding"] * 2, strict=True):
        ratio = middle[reference] / middle[name]
        print(f"{name:28} {tokens / middle[name] / 1e6:6.2f} M tokens/s   {ratio:5.2f} of {reference}")


if __name__ == "__main__":
    main()
