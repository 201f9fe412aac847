"""A training of vectors before it begins: the run, what was decided, and all inputs on which the result depends."""

from typing import Any, NamedTuple

from bakeoff.contrastive.setting import Setting
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.learner.without_memory import filled
from bakeoff.recipe import Recipe
from bakeoff.runs.run import Run
from bakeoff.stored_tensors import digest_of


class Opened(NamedTuple):
    """A training of vectors as it will be done."""

    run: Run
    """The run that learns."""
    recipe: Recipe
    """Its recipe, with the dropout of this training."""
    setting: Setting
    """What was decided."""

    def asked(self) -> dict[str, Any]:
        """All inputs on which the result depends, by the words with which an error names them."""
        setting = self.setting
        return {
            "recipe": self.run.recipe.model_dump(mode="json"),
            "run_to_start_from": digest_of(self.run.path / "model.safetensors"),
            "setting_of_the_training": setting.config.model_dump(mode="json"),
            "texts": setting.texts.digest,
            "seed": setting.seed,
            "device": setting.placement.device.type,
            "precision": setting.placement.precision,
        }

    def module(self) -> PretrainingModel:
        """The run's model with its heads, on the device."""
        made = filled(lambda: PretrainingModel(self.recipe, self.run.tokenizer.size), self.run.weights_file())
        return made.to(self.setting.placement.device)
