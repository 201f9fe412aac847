"""Text, corpora and recipes that many tests use; all of it is made here, nothing is downloaded."""

import numpy as np
import pytest

from bakeoff.models.dropouts import with_dropout
from bakeoff.preparation.prepare import prepare
from bakeoff.preparation.prepare_pairs import prepare_pairs
from bakeoff.recipe_files import load_recipe
from bakeoff.tokenizer.tokenizer import TokenizerConfig

NOUNS = [
    "river",
    "stone",
    "house",
    "garden",
    "winter",
    "engine",
    "letter",
    "window",
    "doctor",
    "market",
    "island",
    "forest",
    "mirror",
    "table",
    "captain",
]
VERBS = [
    "finds",
    "breaks",
    "paints",
    "follows",
    "remembers",
    "carries",
    "opens",
    "watches",
    "builds",
    "leaves",
    "repairs",
    "measures",
]
ADJECTIVES = ["old", "quiet", "green", "heavy", "bright", "strange", "narrow", "golden", "wooden", "distant"]


def sentences(count, seed=0):
    """Sentences with some order in them: the adjective depends on the noun, the verb on the subject."""
    generator = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        subject, target = generator.integers(len(NOUNS), size=2)
        adjective = ADJECTIVES[target * 7 % len(ADJECTIVES)]
        verb = VERBS[(subject * 5 + generator.integers(2)) % len(VERBS)]
        made.append(f"The {NOUNS[subject]} {verb} the {adjective} {NOUNS[target]}.")
    return made


@pytest.fixture(scope="session")
def text_folder(tmp_path_factory):
    """A folder with 240 documents of 3 to 12 sentences, one a file's line."""
    folder = tmp_path_factory.mktemp("text")
    generator = np.random.default_rng(1)
    all_sentences = iter(sentences(240 * 12))
    counts = generator.integers(3, 13, size=240)
    lines = [" ".join(next(all_sentences) for _ in range(count)) for count in counts]
    (folder / "documents.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def corpus(text_folder, tmp_path_factory):
    """A small prepared corpus."""
    out = tmp_path_factory.mktemp("corpora") / "small"
    return prepare(
        [text_folder], out, tokenizer=TokenizerConfig(size=160), validation=0.1, document_per_line=True, workers=0
    )


@pytest.fixture(scope="session")
def other(corpus, tmp_path_factory):
    """Another corpus with the same tokenizer."""
    folder = tmp_path_factory.mktemp("other")
    made = sentences(400, seed=9)
    lines = [" ".join(made[start : start + 8]) for start in range(0, len(made), 8)]
    (folder / "text.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    tokenizer = corpus.path / "tokenizer.json"
    return prepare([folder], folder / "corpus", tokenizer=tokenizer, document_per_line=True, workers=0, validation=0.1)


@pytest.fixture(scope="session")
def mixture(corpus, other):
    """Both in one, as a training names it."""
    return f"{corpus.path}:0.7,{other.path}:0.3"


DIGITS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]


def digit_pairs(count, longest=6, seed=0):
    """Digits, and the same in words: the smallest language that can be translated."""
    generator = np.random.default_rng(seed)
    rows = [generator.integers(10, size=generator.integers(1, longest + 1)).tolist() for _ in range(count)]
    return [(" ".join(map(str, row)), " ".join(DIGITS[digit] for digit in row)) for row in rows]


@pytest.fixture(scope="session")
def parallel_corpus(tmp_path_factory):
    """A small corpus of pairs of several lengths."""
    folder = tmp_path_factory.mktemp("parallel")
    for name, side in (("digits.txt", 0), ("words.txt", 1)):
        text = "".join(pair[side] + "\n" for pair in digit_pairs(600, longest=10))
        (folder / name).write_text(text, encoding="utf-8")
    config = TokenizerConfig(size=100)
    out = folder / "corpus"
    return prepare_pairs(folder / "digits.txt", folder / "words.txt", out, tokenizer=config, validation=0.1, workers=0)


SMALL = {
    "input.length": 32,
    "training.batch": 8,
    "training.micro_batch": None,
    "training.first_batch": 1.0,
    "training.curriculum": [],
    "training.budget": {"steps": 12},
    "training.schedule": {"kind": "linear", "warmup": 0.2},
    "training.optimizer.lr": 1e-3,
    "training.validation_examples": 16,
    "training.compile": False,
}


SIZES = {"width": 32, "heads": 2, "layers": 2, "window": 8, "units": 40}
"""What `shrink` makes of a recipe's numbers, wherever they stand in the model; smaller ones stay."""


PLAIN = {"training.optimizer": {"kind": "adamw", "lr": 1e-3}}
"""An optimizer whose rate another length leaves as it is, and which keeps two numbers for each weight."""


def shrink(name, **changes):
    """A registered recipe with its own shape of parts, but 32 wide, two layers, and quick to train."""
    values = load_recipe(name).model_dump(mode="json")
    values["model"] = _shrunk(values["model"])
    for side in ("encoder", "decoder"):
        if (stack := values["model"][side]) is not None:
            stack["block"] = _first_and_last(stack["block"])
    for objective in values["objective"]:
        if objective.get("cutoffs"):
            objective["cutoffs"] = [40, 100]
    if values["model"]["embedding"]["width"] is not None:
        values["model"]["embedding"]["width"] = 16
    if "context" in values["input"]:
        values["input"]["context"] = min(values["input"]["context"], 8)
    if "reuse" in values["input"]:
        values["input"]["reuse"] = min(values["input"]["reuse"], 12)
    recipe = type(load_recipe(name)).parse({**values, "name": name}, name)
    return recipe.changed(SMALL | changes)


def _shrunk(node):
    if isinstance(node, list):
        return [_shrunk(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {
        key: min(value, SIZES[key]) if key in SIZES and isinstance(value, int) else _shrunk(value)
        for key, value in node.items()
    }


def _first_and_last(block):
    """Of a list of blocks two, each for one layer."""
    alone = {"repeat": 1, "at": None}
    return [{**block[0], **alone}, {**block[-1], **alone}] if isinstance(block, list) else block


def without_dropout(recipe):
    """The recipe with every dropout of its model at zero, that of weights too."""
    return recipe.changed({"model": with_dropout(recipe.model, 0.0).model_dump(mode="json")})
