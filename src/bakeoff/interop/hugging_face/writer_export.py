"""Export of a run that was fine-tuned to generate text for a source, in the class of its pre-trained model."""

from collections.abc import Mapping
from typing import Any

from bakeoff.generation.generate import never_written
from bakeoff.interop.hugging_face.family_choice import FamilyChoice, choose
from bakeoff.tasks.finetuned_run import FinetunedRun


def chosen_writer(run: FinetunedRun, preferred: str | None) -> FamilyChoice | dict[str, str]:
    """The family that can express the run's model and head, or the reason against each family.

    Args:
        run: a run that generates text.
        preferred: the `model_type` that the run was imported with; None: it was not imported.
    """
    recipe = run.recipe
    if not recipe.model.sequence_to_sequence or len(recipe.objective) > 1:
        return {"any family": "it is no encoder with a decoder that has learnt to write alone"}
    chosen = choose(recipe, run.tokenizer, preferred)
    if not isinstance(chosen, FamilyChoice):
        return chosen
    head = chosen.family.writing(chosen.config["architectures"][0], recipe)
    return chosen._replace(links=[*chosen.family.body(recipe), *head.links], head=head)


def generation_of_task(run: FinetunedRun, named: Mapping[str, int]) -> dict[str, Any]:
    """Keys of generation_config.json: the largest length of an answer, and tokens that are never written.

    Args:
        run: a run that generates text.
        named: ids of the tokens that the decoder begins with, by transformers' keys.
    """
    size = run.tokenizer.size
    marks = range(size, size + run.recipe.extra_tokens)
    banned = {*never_written(run.tokenizer), *marks} - {named.get("forced_bos_token_id")}
    longest = run.task.written.longest
    limit = {} if longest is None else {"max_new_tokens": longest}
    return {**limit, "suppress_tokens": sorted(banned)}


def remarks_of_task(run: FinetunedRun) -> list[str]:
    """Remarks for users, who have to write the task's prefix before sources, since the tokenizer does not."""
    prefix = run.task.written.prefix
    return [f"each source is to begin with {prefix!r} and a space"] if prefix else []
