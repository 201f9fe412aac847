"""The smallest languages to learn: sentences with some regularity, and digits with their names."""

import numpy as np

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


def sentences(count: int, seed: int = 0) -> list[str]:
    """Sentences with some regularity: the adjective depends on the noun, the verb on the subject."""
    generator = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        subject, target = generator.integers(len(NOUNS), size=2)
        adjective = ADJECTIVES[target * 7 % len(ADJECTIVES)]
        verb = VERBS[(subject * 5 + generator.integers(2)) % len(VERBS)]
        made.append(f"The {NOUNS[subject]} {verb} the {adjective} {NOUNS[target]}.")
    return made


DIGITS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]


def digit_pairs(count: int, longest: int = 6, seed: int = 0) -> list[tuple[str, str]]:
    """Pairs of digits and their names, such as `3 1` and `three one`: the smallest language to translate."""
    generator = np.random.default_rng(seed)
    rows = [generator.integers(10, size=generator.integers(1, longest + 1)).tolist() for _ in range(count)]
    return [(" ".join(map(str, row)), " ".join(DIGITS[digit] for digit in row)) for row in rows]
