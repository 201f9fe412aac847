"""A run that was fine-tuned to write for a source, in the class of a family that its pre-trained model has."""

from collections.abc import Mapping
from typing import Any

from bakeoff.inference.generate import never_written
from bakeoff.interop.hugging_face.family_choice import FamilyChoice, choose
from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.tasks.kinds.sequence_to_sequence import SequenceToSequenceConfig


def chosen_writer(run: FinetunedRun, preferred: str | None) -> FamilyChoice | dict[str, str]:
    """The family that has the run's model and its head, or the reasons why there is none.

    Args:
        run: a run that writes.
        preferred: the model_type that it was imported from, if any.
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
    """How far it writes, and which tokens never: keys of generation_config.json.

    Args:
        run: a run that writes.
        named: what the decoder begins with, by transformers' keys.
    """
    assert isinstance(run.task, SequenceToSequenceConfig)
    size = run.tokenizer.size
    marks = range(size, size + run.recipe.extra_tokens)
    banned = {*never_written(run.tokenizer), *marks} - {named.get("forced_bos_token_id")}
    return {"max_new_tokens": run.task.longest, "suppress_tokens": sorted(banned)}


def remarks_of_task(run: FinetunedRun) -> list[str]:
    """What a user of the written model has to do: the text before sources is not the tokenizer's."""
    assert isinstance(run.task, SequenceToSequenceConfig)
    return [f"each source is to begin with {run.task.prefix!r} and a space"] if run.task.prefix else []
