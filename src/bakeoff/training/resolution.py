"""Decisions on a recipe that depend on the machine and the corpus."""

import math

from bakeoff.corpus.mixture import AnyCorpus
from bakeoff.distributed.processes import ALONE, Processes
from bakeoff.errors import UserError
from bakeoff.learner.pretraining_model import build_on_meta
from bakeoff.optimization.budget import Budget
from bakeoff.recipe import Recipe
from bakeoff.resources.device import resolve_device, resolve_precision
from bakeoff.resources.enough_memory import require_memory
from bakeoff.resources.micro_batch import fitting_micro_batch, plain_size
from bakeoff.resources.replays import require_replays
from bakeoff.training.speed import step_times
from bakeoff.training.stages import Stages
from bakeoff.training.teachers import teachers_of

COMPILE_FROM_FLOPS = {"cuda": 2e16}
"""Floating-point operations of a training from which on compilation pays, by device. On a CPU it does not: code that
torch generates is no faster than its operations in float32, and slower than the kernels in C in bfloat16
(docs/results.md). Work decides, not the clock, so that all seeds of a recipe are made alike."""


def resolve_recipe(
    recipe: Recipe,
    corpus: AnyCorpus,
    budget: Budget | None = None,
    device: str = "auto",
    processes: Processes = ALONE,
    before: int = 0,
    tokens_before: int = 0,
) -> Recipe:
    """The recipe with everything that depends on machine and corpus decided.

    Decided are the steps, the warm-up, a rate and a decay that follow the length, the precision, the compilation, the
    micro-batch, and the tokenizer.

    Args:
        recipe: as written.
        corpus: the text.
        budget: replaces the recipe's budget; None: the recipe's.
        device: device of the training.
        processes: the processes that train together, whose common speed makes steps of minutes.
        before: the steps that have trained the first weights.
        tokens_before: tokens of the texts that have trained the first weights, without the corpus's.

    Returns:
        A recipe whose training is the same whenever it is run on such a machine.
    """
    budget, on = budget or recipe.training.budget, resolve_device(device)
    require_replays(recipe, on, processes)
    if recipe.training.micro_batch == "auto":
        vocabulary, parts = corpus.tokenizer.size, processes.size
        teachers = [each.run.recipe for each in teachers_of(recipe, corpus)]
        fitting = processes.once(lambda: plain_size(fitting_micro_batch(recipe, vocabulary, on, parts, teachers)))
        recipe = recipe.changed({"training.micro_batch": fitting})
    module = build_on_meta(recipe, corpus.tokenizer.size)
    require_memory(recipe, module.parameter_count(), on)
    stages = Stages(recipe, module, corpus, seed=0)
    tokens, flops = stages.means()
    seconds = None if budget.minutes is None else step_times([recipe], corpus, device, processes=processes)[0].seconds
    steps = budget.steps_for(tokens, flops, seconds, stages.tokens_a_pass, _words_per_token(budget, corpus))
    compiled = recipe.training.compile
    if compiled == "auto":
        compiled = steps * flops > COMPILE_FROM_FLOPS.get(on.type, math.inf)
    changes = {
        "training.compile": compiled,
        "training.precision": resolve_precision(recipe.training.precision, on),
        "tokenizer": corpus.tokenizer.config.model_dump(),
    }
    return recipe.fitted(steps, changes, (tokens_before + stages.tokens_a_pass) / tokens, before)


def _words_per_token(budget: Budget, corpus: AnyCorpus) -> float:
    """Words that the training text has a token.

    Raises:
        UserError: the budget is in words, and the text has none.
    """
    if budget.words is not None and not corpus.words_per_token:
        raise UserError(f"{corpus.path}: holds no words between white space; give the budget in another unit")
    return corpus.words_per_token
