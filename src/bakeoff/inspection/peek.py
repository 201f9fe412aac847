"""Examples as a recipe would be trained on them: the rows of the very batches that the training makes."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import count, islice
from pathlib import Path

from bakeoff.batching.batch import Batch
from bakeoff.batching.batches import Batches
from bakeoff.config import Config
from bakeoff.corpus.mixture import Mixture, open_corpus
from bakeoff.errors import UserError
from bakeoff.inspection.rows import Row, RowReader
from bakeoff.learner.pretraining_model import build_on_meta
from bakeoff.objectives.objective import ObjectiveConfig
from bakeoff.recipe import Recipe
from bakeoff.recipe_files import load_recipe
from bakeoff.training.row_use import RowUse, row_use_of
from bakeoff.training.stages import make_batches

EXAMPLES = 3
"""Rows that are shown where nobody says how many."""


class Drawn(Config):
    """Counts of one objective over all rows that are shown."""

    objective: str
    """Its name."""
    targets: int
    """How many predictions of tokens it makes."""
    share: float
    """The same as a share of the rows' tokens, padding and sources not counted; with two directions each token counts
    twice."""
    counts: dict[str, int]
    """How many of them are masked, replaced, kept; or how many rows have which relation between their segments; or
    how many places are of which class."""
    generator_learns: str | None = None
    """The objective whose hidden tokens a generator fills before this one's targets are known; None: they are known."""


class Peek(Config):
    """Some rows, and what was drawn for them."""

    recipe: str
    """The recipe's name."""
    corpus: str
    """The corpus."""
    corpus_fingerprint: str
    """Its fingerprint."""
    held_out: bool
    """Whether the rows are held-out text."""
    seed: int
    """The training's seed; without effect on held-out text, where what is drawn never changes."""
    epoch_rows: int
    """How many rows this text has; a training goes over them again and again, drawn anew."""
    source: str | None
    """In words, what was done to the sources and cannot be seen from their marks; None: nothing."""
    rows: list[Row]
    """The rows: the first ones of the training, or of those that the held-out loss is measured on."""
    packing: RowUse | None
    """How much of a whole epoch's places hold tokens, and how much of the text it reads, whatever rows are shown; None
    for a mixture, and where the text is too large to measure it all and what stands for it has no row of this kind."""
    drawn: list[Drawn]
    """What was drawn, by objective."""


def peek(
    recipe: str | Path | Recipe,
    corpus: str | Path,
    *,
    examples: int = EXAMPLES,
    held_out: bool = False,
    seed: int = 0,
) -> Peek:
    """Read the first examples that a training of a recipe on a corpus would see, or those of its held-out loss.

    They are taken from the batches that the training itself makes. No model is made.

    Args:
        recipe: a recipe, its name or its file.
        corpus: a directory that `prepare` made; its tokenizer is used.
        examples: how many rows; of held-out text at most `training.validation_examples`.
        held_out: the held-out text in place of the training's.
        seed: the training's seed.

    Raises:
        UserError: no such recipe or corpus, or the corpus has nothing for this recipe.
    """
    if examples < 1:
        raise UserError(f"peek: {examples} examples; ask for one at least")
    loaded = recipe if isinstance(recipe, Recipe) else load_recipe(recipe)
    idle: frozenset[str] = frozenset()
    if not held_out:
        idle, loaded = loaded.idle()[0], loaded.stages()[0].at(0.0)  # what training begins with
    text = open_corpus(corpus)
    module = build_on_meta(loaded, text.tokenizer.size)
    batches = make_batches(loaded, module, text, seed, "validation" if held_out else "train", idle)
    reader = RowReader(loaded, module.objectives, text.tokenizer)
    read = batches.fixed(loaded.training.validation_examples) if held_out else _steps(batches)
    places = ((batch, index) for batch in read for index in range(len(batch.ids)))
    rows = [reader.read(batch, index, number) for number, (batch, index) in enumerate(islice(places, examples), 1)]
    return Peek(
        recipe=loaded.name,
        corpus=str(text.path),
        corpus_fingerprint=text.fingerprint,
        held_out=held_out,
        seed=seed,
        epoch_rows=batches.rows_an_epoch,
        source=next((config.about_source for config in loaded.objective if config.about_source is not None), None),
        rows=rows,
        packing=None if isinstance(text, Mixture) else row_use_of(loaded, module, text, seed, held_out, idle),
        drawn=[_drawn(each, rows, loaded.model.directions) for each in loaded.objective],
    )


def _steps(batches: Batches) -> Iterator[Batch]:
    """The micro-batches of all steps, made when they are asked for."""
    for step in count():
        yield from batches.step(step)


def _drawn(config: ObjectiveConfig, rows: Sequence[Row], directions: int) -> Drawn:
    objective = config.kind
    targets = sum(row.targets.get(objective, 0) for row in rows)
    pieces = (piece for row in rows for line in row.lines for piece in line.pieces)
    kinds = Counter(each.kind for each in pieces if each.objective == objective)
    counts = {kind: kinds[kind] for kind in ("masked", "replaced", "kept") if kinds[kind]}
    relations = Counter(row.relations[objective] for row in rows if objective in row.relations)
    classes = (Counter(row.classes[objective]) for row in rows if objective in row.classes)
    return Drawn(
        objective=objective,
        targets=targets,
        share=targets / (directions * sum(row.tokens for row in rows)),
        counts={**counts, **dict(sorted(relations.items())), **dict(sum(classes, Counter[str]()))},
        generator_learns=config.generator_learns,
    )
