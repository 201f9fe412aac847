"""The rules of BabyLM's tracks (2026, arXiv:2602.20092): words of text, words read, checkpoints; and its baselines."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from bakeoff.errors import UserError
from bakeoff.objectives.clm import CausalLanguageModelConfig
from bakeoff.reading.files import find_files
from bakeoff.reading.pieces import CONTINUATION
from bakeoff.reading.sources import SourceOptions, TextReader
from bakeoff.recipe import Recipe
from bakeoff.scoring.options import Reading

MILLION = 1_000_000

MOST_EPOCHS = 10
"""The most passes over the text."""


class Published(NamedTuple):
    """The published scores of a model."""

    name: str
    """The model."""
    source: str
    """Where they stand."""
    scores: dict[str, float]
    """In percent, by the keys of parts; glue, global_piqa and overall are means."""


class Track(NamedTuple):
    """A track."""

    words: int
    """The most words of text, those between white space."""
    published: tuple["Published", ...] = ()
    """What others reached on it."""
    multilingual: bool = False
    """Whether words are weighted by language, and the evaluation is that of several languages."""

    @property
    def most_read(self) -> int:
        """The most words that are read in training, those of all passes."""
        return MOST_EPOCHS * self.words

    def checkpoints(self, read: float) -> list[int]:
        """The words after which a checkpoint is due, of those up to `read`: 1 M to 9 M, 10 M to 90 M, 100 M to 1 B."""
        known = [step * size * MILLION for size in (1, 10, 100) for step in range(1, 10)] + [1000 * MILLION]
        return [words for words in known if words <= min(self.most_read, read)]


_README, _ENTITY = "babylm-org/babylm-eval, README.md, April 2026", "entity_tracking"

TRACKS: dict[str, Track] = {
    "strict": Track(
        100 * MILLION,
        (
            Published("GPT-2", _README, {"blimp": 74.53, "blimp_supplement": 65.00, "comps": 55.85, _ENTITY: 23.58}),
            Published(
                "CRADLE", "its report", {"blimp": 74.99, "ewok": 54.70, _ENTITY: 45.89, "glue": 67.72, "aoa": 17.24}
            ),
        ),
    ),
    "strict-small": Track(
        10 * MILLION,
        (
            Published("GPT-2", _README, {"blimp": 65.08, "blimp_supplement": 57.25, "comps": 51.81, _ENTITY: 21.07}),
            Published(
                "Qiushi",
                "the first of the leaderboard on 2026-09-08",
                {"blimp": 68.27, "blimp_supplement": 63.28, "ewok": 49.82, _ENTITY: 29.40, "comps": 52.16}
                | {"glue": 69.05, "global_piqa": 40.05, "reading": 8.20, "aoa": 0.0, "overall": 42.25},
            ),
        ),
    ),
    "multilingual": Track(100 * MILLION, multilingual=True),
}
"""The tracks. Words are those between white space, and in the multilingual track weighted by language."""

Backend = Literal["causal", "mlm"]
"""How the official pipeline reads an export: left to right, or each token with all others in sight."""

READINGS: dict[Backend, Reading] = {"causal": "forwards", "mlm": "pseudo"}
"""The reading of a run by which it scores as the official pipeline scores its export."""


def track_of(name: str) -> Track:
    """The track of a name.

    Raises:
        UserError: there is no such track.
    """
    if name not in TRACKS:
        raise UserError(f"{name}: no such track; there are {', '.join(TRACKS)}")
    return TRACKS[name]


def checkpoint_name(words: int) -> str:
    """The name of a checkpoint after so many words, as the official pipeline has it: chck_1M."""
    return f"chck_{words // MILLION}M"


def words_of(checkpoint: str) -> int:
    """The words after which a checkpoint of a name is kept."""
    return MILLION * int(checkpoint.removeprefix("chck_").removesuffix("M"))


def count_words(texts: Sequence[str | Path], options: SourceOptions) -> int:
    """The number of words of texts between white space; the text is read once.

    Raises:
        UserError: a file does not exist or cannot be read.
    """
    words = 0
    for piece in TextReader(find_files(list(texts), Counter()), options):
        parts = len(piece.text.split())
        within = piece.opens == CONTINUATION and not piece.text.startswith(" ")  # a word that was cut
        words += parts - (within and parts > 0)
    return words


def require_countable(recipe: Recipe) -> None:
    """Refuse a recipe whose words read could not be counted as the track counts them.

    Raises:
        UserError: it takes words out of its rows.
    """
    for stage in recipe.stages():
        causal = [part for part in stage.objective if isinstance(part, CausalLanguageModelConfig)]
        if any(part.noise and part.noise_by == "skip" for part in causal):
            raise UserError(
                f"{recipe.name}: noise_by: skip takes words out of the rows, and all that are passed count as read; "
                "set it to mask"
            )


def backends_of(recipe: Recipe) -> list[Backend]:
    """The backends by which exports of a recipe's models can be scored, that of the first objective first."""
    found: dict[Backend, None] = {}
    for part in recipe.trained:
        if part.scoring == "masked" or part.from_before:
            found["mlm"] = None
        elif part.scoring == "forwards" and recipe.model.directions == 1:
            found["causal"] = None
    return list(found)


def backend_of(recipe: Recipe, asked: str | None) -> Backend:
    """The backend with which a recipe's models are scored; None: that of the first objective that scores texts.

    mntp counts as mlm: the logits of its exports stand at the token that they predict.

    Raises:
        UserError: the recipe cannot be scored so, or its rows are read in the order of the text.
    """
    known = backends_of(recipe)
    if not known:
        kinds = ", ".join(part.kind for part in recipe.objective)
        raise UserError(f"{recipe.name}: trained on {kinds}, which no backend of the track scores")
    if recipe.input.continues:
        raise UserError(
            f"{recipe.name}: its rows continue each other, so that files are read in their order; take a recipe "
            "without a memory between rows"
        )
    if asked is None:
        return known[0]
    wanted = "mlm" if asked == "mntp" else asked
    for each in known:
        if each == wanted:
            return each
    raise UserError(f"{recipe.name}: --backend {asked}: its models are scored by {' or '.join(known)}")
