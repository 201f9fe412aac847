"""Settings of a fine-tuning that depend on the model and the task: their decision, and refusals."""

from bakeoff.errors import UserError
from bakeoff.recipe import Recipe
from bakeoff.tasks.finetune_config import (
    EPOCHS,
    LEAST_STEPS,
    SEARCHED_EPOCHS,
    SEARCHED_RATES,
    FinetuneConfig,
)
from bakeoff.tasks.heads.depths import require_layers
from bakeoff.tasks.heads.heads import writing_objective
from bakeoff.tasks.heads.layer_reading import require_readable
from bakeoff.tasks.heads.transform import transform_of
from bakeoff.tasks.pooling import natural_pooling
from bakeoff.tasks.rows.inputs import check_length
from bakeoff.tasks.task_config import TaskConfig

UNUSED_BY_WRITERS = {"layers": 1, "language_model": 0.0, "truncate": "head", "transform": False}
"""Settings for which a model that writes has no use, with the values that they must have."""


def resolve_finetuning(config: FinetuneConfig, recipe: Recipe, task: TaskConfig) -> FinetuneConfig:
    """The config with everything decided that depends on the model: pooling, length, learning rates, epochs.

    Raises:
        UserError: a setting that is not for this model, or not for this kind of task.
    """
    require_settings_of(task, config)
    require_layers(recipe.model, config)
    require_readable(recipe.model, config.layers)
    if config.transform:
        transform_of(recipe)
        if config.layers != 1:
            raise UserError("transform: it reads the last layer alone; leave it out, or layers at 1")
    if config.language_model:
        writing_objective(recipe)
    length = config.length or recipe.input.length
    check_length(recipe.model, length)
    if config.pooling == "last" and not recipe.model.causal:
        raise UserError("pooling: last is for causal models; this one sees both sides, use cls, mean or max")
    if config.pooling == "cls" and recipe.model.causal and not recipe.reads_both_sides:
        raise UserError("pooling: the first position of a causal model has seen nothing; use last, mean or max")
    if config.pooling == "cls" and recipe.model.directions == 2:
        raise UserError("pooling: at the first position one of the two directions has seen nothing; use mean or max")
    _require_rates(config)
    rates = SEARCHED_RATES if config.search else (1.0,)
    least_steps = config.least_steps
    if least_steps is None:  # what is given is what is trained
        least_steps = 0 if config.epochs else LEAST_STEPS
    default = default_learning_rate(recipe)
    return config.model_copy(
        update={
            "pooling": natural_pooling(recipe) if config.pooling == "auto" else config.pooling,
            "length": length,
            "learning_rate": config.learning_rate or [default * factor for factor in rates],
            "epochs": config.epochs or list(SEARCHED_EPOCHS if config.search else EPOCHS),
            "least_steps": least_steps,
            "search": False,
        }
    )


def idle_settings(config: FinetuneConfig, recipe: Recipe, task: TaskConfig) -> dict[str, str]:
    """Settings that are not the default and change nothing for this model or task, by key, with the reasons."""
    found = {}
    if config.unshare and all(stack.share == "none" for stack in recipe.model.stacks().values()):
        found["unshare"] = "no layers share weights"
    if task.input_sides == 1:
        found["separators"] = "there are no pairs of texts"
    if config.layer_decay == 1:
        found["layer_decay_rule"] = "there is no layer_decay"
    if config.freeze == "model":
        found |= dict.fromkeys(("layer_decay", "layer_decay_rule", "model_dropout"), "the model is frozen")
    changed = config.model_dump(exclude_defaults=True)
    return {key: reason for key, reason in found.items() if key in changed}


def _require_rates(config: FinetuneConfig) -> None:
    """Refuse an optimizer without a learning rate, or with a weight decay that it has no use for."""
    kind = config.optimizer.kind
    if not config.learning_rate and kind != "adamw":
        raise UserError(f"learning_rate: no default is known for the optimizer {kind}; give one, or several to try")
    default = FinetuneConfig.model_fields["weight_decay"].default
    if config.weight_decay != default and "weight_decay" not in type(config.optimizer).model_fields:
        raise UserError(f"weight_decay: the optimizer {kind} has none; leave it out")


def lengthened(config: FinetuneConfig, items: int) -> FinetuneConfig:
    """The config with the epochs that `items` items need for `least_steps`; numbers that become equal stand once.

    Args:
        config: the result of `resolve_finetuning`.
        items: the number of items to learn from.
    """
    assert config.least_steps is not None
    fewest = -(-config.least_steps // config.epoch_steps(items))
    return config.model_copy(update={"epochs": list(dict.fromkeys(max(each, fewest) for each in config.epochs))})


def require_settings_of(task: TaskConfig, config: FinetuneConfig) -> None:
    """Refuse settings for which a kind of task has no use.

    Raises:
        UserError: such a setting is given.
    """
    if config.truncate == "windows" and not task.reads_windows:
        raise UserError(
            f"truncate: texts of a task of the kind {task.kind} are not averaged over windows; leave it out"
        )
    if task.head == "writing":
        for name, value in UNUSED_BY_WRITERS.items():
            if getattr(config, name) != value:
                raise UserError(f"{name}: a model that writes has no use for it; leave it out")
        if config.freeze == "model":
            raise UserError("freeze: a model that writes has no head but its own; give a number of layers")


def default_learning_rate(recipe: Recipe) -> float:
    """5e-5 for a width of 768, as for BERT base, and in inverse proportion to the width for others."""
    return float(f"{5e-5 * 768 / recipe.model.stack.output_width:.1e}")
