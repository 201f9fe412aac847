"""`bakeoff peek`: the first rows of the batches that a recipe's training would see."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import count, islice
from pathlib import Path

from bakeoff.batching.batch import Batch
from bakeoff.batching.batches import Batches
from bakeoff.config import Config, require_seed
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
"""Default number of rows."""


class Drawn(Config):
    """Counts of one objective's targets over the shown rows."""

    objective: str
    """The name of the objective."""
    targets: int
    """Number of predictions for single tokens."""
    share: float
    """Targets as a share of the rows' tokens, without padding and sources; with two directions each token counts
    twice."""
    counts: dict[str, int]
    """Number of masked, replaced and kept tokens; or of rows with each relation between segments; or of positions of
    each
    class."""
    generator_learns: str | None = None
    """The objective whose masked tokens a generator replaces in the step, before targets are known; None: targets are
    known."""


class Peek(Config):
    """Rows of a training, and counts of their targets."""

    recipe: str
    """The recipe's name."""
    corpus: str
    """The path of the corpus."""
    corpus_fingerprint: str
    """The fingerprint of the corpus."""
    held_out: bool
    """Whether the rows are held-out text."""
    seed: int
    """The seed of the training; it does not affect held-out rows, whose targets never change."""
    epoch_rows: int
    """Number of rows of the text in an epoch; each epoch draws its targets anew."""
    source: str | None
    """Description, for the user, of changes to sources that have no marks; None: there are none."""
    rows: list[Row]
    """The first rows of the training, or of the held-out loss."""
    packing: RowUse | None
    """The share of an epoch's positions that hold tokens, and the share of the text that it reads; None: the corpus is
    a
    mixture, or the text is too large to measure and the measured sample has no row of this kind."""
    drawn: list[Drawn]
    """Counts of targets by objective."""


def peek(
    recipe: str | Path | Recipe,
    corpus: str | Path,
    *,
    examples: int = EXAMPLES,
    held_out: bool = False,
    seed: int = 0,
) -> Peek:
    """Read the first rows that a training of a recipe on a corpus would see, or those of its held-out loss.

    The rows are those of the batches that the training itself makes. No model is built.

    Args:
        recipe: a recipe, its name or its file.
        corpus: a directory that `prepare` made; its tokenizer is used.
        examples: number of rows to show; of held-out text at most `training.validation_examples`.
        held_out: show rows of the held-out text instead of the training text.
        seed: seed of everything that is random.

    Raises:
        UserError: there is no such recipe or corpus, `examples` is below 1, or the corpus does not fit the recipe.
    """
    require_seed(seed)
    if examples < 1:
        raise UserError(f"peek: {examples} examples; ask for one at least")
    loaded = recipe if isinstance(recipe, Recipe) else load_recipe(recipe)
    if not held_out:
        loaded = loaded.stages()[0].at(0.0)  # the settings of the first step
    text = open_corpus(corpus)
    module = build_on_meta(loaded, text.tokenizer.size)
    batches = make_batches(loaded, module, text, seed, "validation" if held_out else "train")
    reader = RowReader(loaded, module.objectives, text.tokenizer)
    read = batches.fixed(loaded.training.validation_examples) if held_out else _steps(batches)
    row_indices = ((batch, index) for batch in read for index in range(len(batch.row.ids)))
    rows = [reader.read(batch, index, number) for number, (batch, index) in enumerate(islice(row_indices, examples), 1)]
    return Peek(
        recipe=loaded.name,
        corpus=str(text.path),
        corpus_fingerprint=text.fingerprint,
        held_out=held_out,
        seed=seed,
        epoch_rows=batches.rows_an_epoch,
        source=next((config.about_source for config in loaded.objective if config.about_source is not None), None),
        rows=rows,
        packing=None if isinstance(text, Mixture) else row_use_of(loaded, module, text, seed, held_out),
        drawn=[_drawn(each, rows, loaded.model.directions) for each in loaded.objective],
    )


def _steps(batches: Batches) -> Iterator[Batch]:
    """The micro-batches of all steps, made on demand."""
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
