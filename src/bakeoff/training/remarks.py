"""Remarks at the start of a training on settings that are allowed, but may not be meant."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from bakeoff.corpus.mixture import AnyCorpus, corpora_of
from bakeoff.corpus.split import Split
from bakeoff.corpus.store import Corpus
from bakeoff.display.wording import counted, duration, quantity
from bakeoff.errors import UserError
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.optimization.averages import StochasticAverageConfig
from bakeoff.optimization.budget import Budget
from bakeoff.recipe import Recipe
from bakeoff.tokenizer.hidden import MOST_HIDDEN
from bakeoff.tokenizer.tokenizer_config import TokenizerConfig
from bakeoff.training.pretraining import FEWEST_STEPS_BETWEEN_VALIDATIONS, validation_steps
from bakeoff.training.row_use import row_use_of

LEAST_READ = 0.5
"""Share of the text; rows that read less of it are remarked on."""

_DOCUMENTS = 100_000
"""Number of documents, the first ones, among which those of a single sentence are counted."""


def other_tokenizer(recipe: Recipe, wanted: TokenizerConfig, corpus: AnyCorpus) -> Iterator[str]:
    """A line if a publication's recipe is trained on a corpus with another sort of tokenizer than `wanted`, its own.

    Recipes that reproduce no publication are for the tokenizer that a corpus has, and another size is no other sort.
    """
    if not recipe.reproduces:
        return
    asked = [each.manifest.options["tokenizer"] for each in corpora_of(corpus)]  # settings, or the path of a file
    made = [TokenizerConfig.parse(each, str(corpus.path)) for each in asked if isinstance(each, Mapping)]
    used = corpus.tokenizer.config
    if wanted not in {each.model_copy(update={"size": wanted.size}) for each in (used, *made)}:
        recommended = f"the recipe's own, which `prepare --recipe` trains, would be {wanted}"
        yield f"the corpus's tokenizer, {used}, is used; {recommended}"


def changed_settings(wanted: Recipe, resolved: Recipe) -> Iterator[str]:
    """A line for each setting of a recipe that a training of so many steps cannot have as it was given.

    Args:
        wanted: the recipe as it was given.
        resolved: the recipe that is trained, with its steps.
    """
    steps = resolved.training.budget.steps or 0
    asked, warmup = wanted.training.schedule.warmup, resolved.training.schedule.warmup
    if steps and warmup >= steps:
        yield (
            f"the warm-up takes all {steps:,} steps, so that the learning rate arrives at "
            f"{resolved.training.optimizer.rate:g} at the very end; give training.schedule.warmup less of them"
        )
    elif asked >= 1 and asked != warmup:
        yield (
            f"warm-up of {warmup:,.0f} of the {steps:,} steps, the share that {asked:,.0f} have of the recipe's own "
            "budget; training.schedule.warmup below 1 is a share itself"
        )
    measured, default = wanted.training.validations, type(wanted.training).model_fields["validations"].default
    if measured != default and (fewer := len(validation_steps(measured, steps)) - 1) < measured:
        yield (
            f"the held-out loss is measured {counted(fewer, 'time')} and not {measured:,}: "
            f"{FEWEST_STEPS_BETWEEN_VALIDATIONS} steps lie between two measurements at least"
        )
    average = wanted.training.average
    if (
        isinstance(average, StochasticAverageConfig)
        and steps
        and (made := len(average.ends(steps)) - 1) < average.cycles
    ):
        yield (
            f"the average is of {counted(made, 'cycle')} and not {average.cycles:,}, of a step each, for "
            f"training.average begins so late; give its share more than {average.share:g} of the {steps:,} steps, or "
            "fewer cycles"
        )


def hidden(corpus: AnyCorpus) -> Iterator[str]:
    """A line for each corpus of which the tokenizer hides more than bits per byte allow."""
    for each in corpora_of(corpus):
        counts = each.train.hidden
        if counts is not None and counts.share > MOST_HIDDEN:
            yield f"{each.path}: in the training text {counts}; prepare it with another tokenizer, such as byte_bpe"


def require_known(corpus: AnyCorpus) -> None:
    """Refuse a text in which every token is unknown: nothing can be learned from it.

    Raises:
        UserError: a corpus has unknown tokens alone to train on.
    """
    for each in corpora_of(corpus):
        if each.train.all_unknown:
            raise UserError(
                f"{each.path}: every token of its training text is unknown, so that there is nothing to learn; prepare "
                "the text again with another --tokenizer, such as byte_bpe"
            )


def unread(recipe: Recipe, modules: Sequence[PretrainingModel], corpus: AnyCorpus, seed: int) -> Iterator[str]:
    """A line for each stage, and each corpus, whose rows leave out most of the text."""
    stages = recipe.stages()
    for number, (stage, module) in enumerate(zip(stages, modules, strict=True)):
        for each in corpora_of(corpus):
            packing = row_use_of(stage, module, each, seed, held_out=False)
            if packing is None or packing.read is None or packing.read >= LEAST_READ:
                continue
            key = "input.length" if number == len(stages) - 1 else f"training.curriculum.{number}.length"
            of = "the text" if isinstance(corpus, Corpus) else f"the text of {each.path}"
            text = f"rows of {stage.input.length} tokens read {100 * packing.read:.1f} % of {of}: "
            alone = _alone(each.train)
            if stage.input.pairs and alone > (1 - packing.read) / 2:
                yield text + (
                    f"{100 * alone:.0f} % of it are documents of one sentence, which make no pair; use "
                    "input.format=blocks with objectives that need none, or a text of longer documents"
                )
            else:
                yield text + (
                    f"longer sentences do not fit; raise {key}, or use input.format=blocks where no pairs are needed"
                )


def falls_later(recipe: Recipe) -> Iterator[str]:
    """A line where early stopping may end a training whose learning rate waits for the end of the budget."""
    training, steps = recipe.training, recipe.training.budget.steps or 1
    if training.early_stopping is None:
        return
    last, longer = (training.schedule.factor(steps - 1, whole) for whole in (steps, 2 * steps))
    if last < longer:
        yield (
            f"the schedule {training.schedule.kind} falls until step {steps:,}, the end of the budget; where early "
            "stopping ends the training before, the rate stays higher than it was meant to end. Schedules that know no "
            "end suit it: constant, plateau, inverse_sqrt"
        )


def _alone(split: Split) -> float:
    """The share of the tokens that stand in documents of one sentence."""
    bounds = np.asarray(split.documents[: _DOCUMENTS + 1])
    ends = np.searchsorted(split.sentences, bounds)
    lengths = np.diff(bounds)
    return float(lengths[np.diff(ends) == 1].sum() / max(lengths.sum(), 1))


SMALL_ROWS, SMALL_LENGTH = 8, 128
"""The batch of the recipes for laptops, 1,024 tokens a step."""

FEW_STEPS = 100
"""Steps below which a budget is too small for large batches: models learn by steps more than by tokens."""

DEAR_STEP = 1e12
"""Floating-point operations of a step that is dear on a CPU: some ten seconds of a core."""

OF_A_CORE = 1e11
"""Floating-point operations that a core makes in a second, as an order of magnitude."""


def step_cost(recipe: Recipe, budget: Budget, tokens: float, flops: float, device: str) -> Iterator[str]:
    """A line on what a step costs, and on the settings that make it fit, where it is far larger than it should be.

    Args:
        recipe: the recipe, its budget in steps.
        budget: the budget that was asked for.
        tokens: mean number of tokens of a step.
        flops: mean number of floating-point operations of a step.
        device: cpu, cuda or mps.
    """
    steps, small = recipe.training.budget.steps or 1, SMALL_ROWS * SMALL_LENGTH
    few = budget.steps is None and steps < FEW_STEPS
    if tokens <= 4 * small or not (few or (device == "cpu" and flops > DEAR_STEP)):
        return
    rows = recipe.training.batch
    batch = f"{rows} rows of up to {recipe.input.length} tokens" if isinstance(rows, int) else f"{tokens:,.0f} tokens"
    if budget.minutes is not None:
        time = f", {duration(60 * budget.minutes / steps)} on this machine"
    elif device == "cpu":
        time = f", some {duration(flops / OF_A_CORE)} of a core"
    else:
        time = ""
    paid = f"the budget has {counted(steps, 'step')}"
    settings = f"training.batch={SMALL_ROWS if isinstance(rows, int) else f'{{tokens: {small}}}'}"
    if recipe.input.length > SMALL_LENGTH:
        settings = f"input.length={SMALL_LENGTH} and {settings}"
    many = steps * tokens / small
    more = "" if budget.steps is not None else f", and about {quantity(many).strip()} steps of the budget"
    yield (
        f"a step reads {batch} and costs {quantity(flops)}FLOPs{time}; {paid}. On a small machine or budget "
        f"{settings} (--set, of a run's recipe RUN/recipe.yaml) make steps of about {small:,} tokens{more}"
    )
