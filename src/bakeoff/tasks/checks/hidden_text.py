"""Unknown tokens of labelled texts, and the characters that they hide from a model."""

from collections.abc import Mapping, Sequence

from bakeoff.reading.aligned import clean
from bakeoff.tasks.examples import Example
from bakeoff.tokenizer.hidden import HiddenText
from bakeoff.tokenizer.tokenizer import Tokenizer


def hidden_in(tokenizer: Tokenizer, examples: Sequence[Example]) -> HiddenText:
    """The counts over the texts of examples, each text once, normalised as a corpus is."""
    return tokenizer.hidden([clean(text) for text in dict.fromkeys(text for each in examples for text in each.as_read)])


def hidden_notes(tokenizer: Tokenizer, splits: Mapping[str, Sequence[Example]]) -> list[str]:
    """A note for each split, by its name, with unknown tokens or hidden characters."""
    counts = {name: hidden_in(tokenizer, examples) for name, examples in splits.items()}
    return [f"{name}: {count}" for name, count in counts.items() if str(count)]
