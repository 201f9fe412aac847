"""The reasons why a recipe cannot be trained, in a line each, before anything runs."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from bakeoff.display.wording import listed
from bakeoff.errors import UserError
from bakeoff.formats.blocks import BlocksConfig
from bakeoff.objectives.clm import CausalLanguageModelConfig
from bakeoff.objectives.legality import memory_refusal, refusal
from bakeoff.objectives.mlm import MaskedLanguageModelConfig
from bakeoff.objectives.objective import ObjectiveConfig
from bakeoff.objectives.registry import OBJECTIVES
from bakeoff.optimization.curriculum import curriculum_refusals
from bakeoff.optimization.early_stopping import unit_refusals

if TYPE_CHECKING:
    from bakeoff.recipe import Recipe


def recipe_refusals(recipe: "Recipe") -> list[str]:
    """All reasons why a recipe cannot be trained; empty where it can."""
    model, rows, training = recipe.model, recipe.input, recipe.training
    reasons = [reason for part in recipe.objective if (reason := refusal(part, model, rows))]
    if (reason := memory_refusal(model, rows)) is not None:
        reasons.append(reason)
    kinds = [part.kind for part in recipe.objective]
    if rows.pairs and model.embedding.segments == 1:
        reasons.append("model.embedding.segments: 1, but the rows have two; set it to 2, or to 0 for none")
    reasons += _unfit_together(recipe, kinds)
    reasons += _ungenerated(recipe, kinds)
    reasons += curriculum_refusals(training.curriculum, recipe.weights, rows.length, rows.continues)
    reasons += _unfit_stages(recipe)
    reasons += _unfit_settings(recipe)
    reasons += _rows_left(recipe, kinds)
    reasons += _causal_rows(recipe)
    reasons += _unchanging_batches(recipe)
    reasons += _uncountable(recipe)
    reasons += _not_cut_anew(recipe)
    without = [part.kind for part in recipe.trained if not part.whole_text]
    reasons += unit_refusals(training.early_stopping, without)
    reasons += _skipped_tokens(recipe)
    reasons += _untaught(recipe)
    reasons += _bounds_beside_others(recipe)
    unmarked = [part.kind for part in recipe.objective if part.row_marks == "none"]
    if isinstance(rows, BlocksConfig) and rows.separate_sentences and unmarked:
        reasons.append(f"input.separate_sentences: rows of {unmarked[0]} have no separators; set it to 0")
    batch = training.batch
    if isinstance(batch, int) and batch % rows.directions:
        reasons.append(
            f"training.batch: {batch} rows cannot be shared between two directions; give an even number, or set "
            "input.backwards to false"
        )
    for key, schedule in training.schedules.items():
        if schedule.warmup > 1 and training.budget.steps is None:
            reasons.append(f"training.{key}.warmup: {schedule.warmup:g} steps, but the budget has none; give a share")
    longest = model.longest_input
    if longest is not None and rows.length > longest:
        reasons.append(f"input.length: {rows.length} is more than model.embedding.length, {longest}")
    return reasons


def _unfit_together(recipe: "Recipe", kinds: Sequence[str]) -> list[str]:
    """The reasons why objectives cannot stand beside each other."""
    reasons = [f"objective: {kind} is listed twice" for kind in sorted({k for k in kinds if kinds.count(k) > 1})]
    related = [part.kind for part in recipe.objective if part.relates_segments]
    if len(related) > 1:
        reasons.append(f"objective: {' and '.join(related)} both arrange the segments; keep one of them")
    rewriting = [part.kind for part in recipe.objective if part.rewrites]
    if rewriting and len(recipe.objective) > 1:
        reasons.append(f"objective: {rewriting[0]} makes its own source and target; it stands alone")
    if recipe.reads_prefix and len(recipe.objective) > 1:
        kind = next(part.kind for part in recipe.objective if part.reads_prefix)
        reasons.append(f"objective: {kind} shows tokens what another one would predict from; it stands alone")
    return reasons


class _Stage(NamedTuple):
    """What the objectives are in a stage of the curriculum, or in what follows the last one."""

    key: str | None
    """Where the stage stands in the recipe; None: what follows the last one."""
    weights: Mapping[str, float]
    """The weight of each objective, by its kind."""
    settings: Mapping[str, Mapping[str, Any]]
    """The settings of objectives that the stage changes, by their kinds."""

    def setting(self, part: ObjectiveConfig, key: str, otherwise: Any) -> Any:
        """An objective's setting in the stage."""
        return self.settings.get(part.kind, {}).get(key, otherwise)


def _stages(recipe: "Recipe") -> list[_Stage]:
    """All stages, and what follows the last one."""
    stages = [
        _Stage(f"training.curriculum.{index}", recipe.weights | stage.weights, stage.settings)
        for index, stage in enumerate(recipe.training.curriculum)
    ]
    return [*stages, _Stage(None, recipe.weights, {})]


def _rows_left(recipe: "Recipe", kinds: Sequence[str]) -> list[str]:
    """The reasons why rows are left to an objective that is not trained, or none to one that is, at some time."""
    reasons = []
    for stage in _stages(recipe):
        where, weights = stage.key or "objective", stage.weights
        for part in recipe.objective:
            other = part.rows_left_for
            if other is None or weights[part.kind] == 0:
                continue
            left = stage.setting(part, "causal", part.rows_left)
            if left and other not in kinds:
                reasons.append(f"{where}: {part.kind} leaves rows to {other}; add that, or set causal to 0")
            elif left and weights[other] == 0:
                reasons.append(
                    f"{where}: {part.kind} leaves rows to {other}, whose weight is 0; set causal to 0, or give it one"
                )
            elif not left and weights.get(other, 0) > 0:
                reasons.append(f"{where}: {part.kind} leaves no rows to {other}; set causal, to 0.0625 for example")
    return reasons


def _causal_rows(recipe: "Recipe") -> list[str]:
    """The reasons why an encoder cannot read some rows causally, where the recipe asks for that."""
    part = next((part for part in recipe.objective if isinstance(part, MaskedLanguageModelConfig)), None)
    if part is None or refusal(part, recipe.model, recipe.input) is not None:
        return []
    if not any(stage.setting(part, "causal", part.causal) for stage in _stages(recipe)):
        return []
    reasons = []
    if (kind := recipe.model.looking_ahead) is not None:
        reasons.append(
            f"objective: causal: {kind} always looks ahead; use mixers that can hide what is ahead, or set it to 0"
        )
    if len(recipe.objective) > 1:
        others = " and ".join(other.kind for other in recipe.objective if other is not part)
        reasons.append(
            f"objective: causal: rows that are read causally are for mlm alone, without {others}; set it to 0"
        )
    if recipe.input.continues:
        reasons.append("objective: causal: rows that continue each other are read alike; set it to 0")
    return reasons


def _skipped_tokens(recipe: "Recipe") -> list[str]:
    """The reasons why tokens cannot be skipped in the input of a causal model, where the recipe asks for that."""
    part = next((part for part in recipe.objective if isinstance(part, CausalLanguageModelConfig)), None)
    if part is None:
        return []
    stages = _stages(recipe)
    forms = [stage.setting(part, "noise_by", part.noise_by) for stage in stages]
    noises = [stage.setting(part, "noise", part.noise) for stage in stages]
    if "skip" in forms and not any(noises):
        return ["objective: noise_by: skip is the form of tokens that noise hides, and noise is 0; set that, or mask"]
    if recipe.input.continues and any(form == "skip" and noise for form, noise in zip(forms, noises, strict=True)):
        return [
            "objective: noise_by: skip makes rows shorter, and rows that continue each other keep their length; set it "
            "to mask"
        ]
    return []


def _bounds_beside_others(recipe: "Recipe") -> list[str]:
    """The reasons why a bound of the text's likelihood would not be one, because another objective changes the text."""
    reasons = []
    for stage in _stages(recipe):
        where = "objective" if stage.key is None else f"{stage.key}.weights"
        trained = [part for part in recipe.objective if stage.weights[part.kind] > 0]
        bound = next((part.kind for part in trained if part.bounds), None)
        other = next((part.kind for part in trained if not part.bounds and not part.relates_segments), None)
        if bound is not None and other is not None:
            reasons.append(
                f"{where}: {bound} is a bound for the text as it is, which {other} changes; train them in different "
                f"stages, one with weight 0 in those of the other, or leave {other} out"
            )
    return reasons


def _unfit_settings(recipe: "Recipe") -> list[str]:
    """The settings of stages that objectives do not have, or cannot change."""
    reasons = []
    for index, stage in enumerate(recipe.training.curriculum):
        for part in (part for part in recipe.objective if part.kind in stage.settings):
            where = f"training.curriculum.{index}.settings.{part.kind}"
            settings, able = stage.settings[part.kind], sorted(part.set_by_stage)
            kept = [key for key in settings if key in type(part).model_fields and key not in able]
            if kept:
                may = f"a stage may change {listed(able)}" if able else "a stage changes none of its settings"
                reasons.append(f"{where}.{kept[0]}: it stays what it is in all stages; {may}")
                continue
            try:
                part.parse({**part.model_dump(), **settings}, where)
            except UserError as error:
                reasons.append(str(error))
    return reasons


def _ungenerated(recipe: "Recipe", kinds: Sequence[str]) -> list[str]:
    """The reasons why an objective with a generator cannot be trained with this recipe."""
    reasons = []
    for part in recipe.objective:
        learns = part.generator_learns
        if learns is None or refusal(part, recipe.model, recipe.input) is not None:
            continue
        if learns not in kinds:
            reasons.append(f"objective: {part.kind} replaces what {learns} has hidden; add {learns}")
        others = [each.kind for each in recipe.objective if each.kind not in (part.kind, learns)]
        taking = [kind for kind in others if not OBJECTIVES[kind].relates_segments]
        if taking:
            reasons.append(
                f"objective: {part.kind} stands beside {learns} and one that relates segments, not {taking[0]}"
            )
    return reasons


def _unfit_stages(recipe: "Recipe") -> list[str]:
    """The stages of the curriculum whose rows are too short for their format, as errors."""
    reasons = []
    for index, stage in enumerate(recipe.training.curriculum):
        where, rows = f"training.curriculum.{index}.length", recipe.input
        try:
            rows.parse({**rows.model_dump(), "length": stage.length or rows.length}, where)
        except UserError as error:
            reasons.append(str(error).replace(f"{where}: length: ", f"{where}: "))
    return reasons


def _unchanging_batches(recipe: "Recipe") -> list[str]:
    """The reasons why batches cannot change their size, where the recipe asks for that."""
    training = recipe.training
    keys = [f"curriculum.{index}.batch_factor" for index, each in enumerate(training.curriculum)]
    asked = [key for key, each in zip(keys, training.curriculum, strict=True) if each.batch_factor != 1]
    if training.first_batch != 1:
        asked.append("first_batch")
    if isinstance(training.batch, int) and recipe.input.directions == 1 and not recipe.input.continues:
        return []
    if not isinstance(training.batch, int):
        why = "a batch of so many tokens has one size; give training.batch as a number of rows"
    else:
        why = "rows that continue each other stay as many"
    return [f"training.{key}: {why}, or leave it out" for key in asked]


def _uncountable(recipe: "Recipe") -> list[str]:
    """The reasons why batches cannot be counted in tokens, where the recipe asks for that."""
    batch, rows = recipe.training.batch, recipe.input
    if isinstance(batch, int):
        return []
    related = [part.kind for part in recipe.objective if part.relates_segments]
    if not rows.uneven:
        return [f"training.batch: rows of {rows.format} are all as long as input.length; give their number, not tokens"]
    if related:
        return [f"training.batch: {related[0]} changes the lengths of rows; give their number, not tokens"]
    if batch.tokens < rows.length:
        return [f"training.batch.tokens: {batch.tokens} are fewer than one row may have, {rows.length}"]
    return []


def _untaught(recipe: "Recipe") -> list[str]:
    """The reasons why a recipe cannot learn from other runs, where it asks for that."""
    if recipe.training.distillation is None:
        return []
    if recipe.input.continues:
        return [
            "training.distillation: rows continue each other, and teachers read each by itself; give a recipe whose "
            "rows stand alone"
        ]
    generating = [part.kind for part in recipe.objective if part.generator_learns]
    if generating:
        return [
            f"training.distillation: a generator fills the rows of {generating[0]}, where teachers have no part; "
            "give a recipe without a generator"
        ]
    if not any(part.token_targets for part in recipe.objective):
        return [
            "training.distillation: no objective predicts tokens, which is what teachers teach; give a recipe with one"
        ]
    return []


def _not_cut_anew(recipe: "Recipe") -> list[str]:
    """The reasons why rows cannot be cut anew in every epoch, where the recipe asks for that."""
    reasons = []
    if recipe.input.cuts_anew and not isinstance(recipe.training.batch, int):
        reasons.append(
            "input.cut_anew: batches of tokens are made of rows that keep their lengths; give training.batch as a "
            "number of rows, or set cut_anew to false"
        )
    static = [part.kind for part in recipe.objective if part.versions is not None]
    if recipe.input.cuts_anew and static:
        reasons.append(
            f"input.cut_anew: the static masks of {static[0]} belong to rows that stay; set its masking to dynamic, or "
            "cut_anew to false"
        )
    return reasons
