"""The weights of a run in memory, and what the run is capable of."""

from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any, Literal

from bakeoff.errors import UserError
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.models.part import Part
from bakeoff.recipe import Recipe
from bakeoff.resources.device import Placement, Precision
from bakeoff.resources.inference import for_inference
from bakeoff.runs.run import Run
from bakeoff.scoring.texts import scoring_objective
from bakeoff.signals import go_on
from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.tasks.heads.heads import HeadedModel
from bakeoff.tokenizer.tokenizer import Tokenizer
from bakeoff.using.filling import filling_objective
from bakeoff.using.rows import IdReader
from bakeoff.vectors.embedder import Embedder
from bakeoff.vectors.options import VectorConfig

Capability = Literal["embed", "fill", "generate", "hidden", "logits", "predict", "score", "stream", "weights_of_tokens"]
"""The name of a method of `LoadedRun`."""

NEED_FLOAT32: frozenset[Capability] = frozenset({"score", "weights_of_tokens"})
"""Methods whose numbers are compared or added up, which rounding to bfloat16 would spoil."""


class LoadedWeights:
    """A run whose weights are loaded once, the base of `LoadedRun`; arguments and attributes are the same."""

    def __init__(self, run: Run | FinetunedRun, device: str = "auto", precision: Precision = "float32") -> None:
        self.path: Path = run.path
        placement = Placement.of(device, precision)
        self.device, self.precision = placement
        self._run = run
        self._pretrained: tuple[Run, PretrainingModel] | None = None
        self._finetuned: tuple[FinetunedRun, HeadedModel] | None = None
        # Cached properties are read now, so that no two threads read them at once, and none after the folder has gone.
        if isinstance(run, FinetunedRun):
            head = for_inference(run.load(self.device), placement)
            self._finetuned, self._model = (run, head), head.model
            run.learned, run.config, run.task  # noqa: B018
        else:
            module = for_inference(run.load(self.device), placement)
            run.imported, run.vectors  # noqa: B018
            self._pretrained, self._model = (run, module), module.model
        self.tokenizer: Tokenizer = run.tokenizer
        """The run's tokenizer: `encode` maps texts to ids, `decode` maps ids to texts."""
        self.recipe: Recipe = run.recipe
        """The complete recipe of the model."""
        self._embedders: dict[VectorConfig, Embedder] = {}
        self._lock = Lock()
        self.tokens_written = 0
        """Number of tokens that `generate` and `stream` have written so far."""
        for stack in self._model.stacks().values():
            for part in stack.modules():
                if isinstance(part, Part):  # a generation or a batch of long rows takes minutes
                    part.register_forward_pre_hook(_go_on)
        self._rows = IdReader(self._model, self.recipe.model, self.tokenizer.pad, placement)

    def __repr__(self) -> str:
        """The run's path, recipe, device, capabilities, and its precision where that is not float32."""
        able = ", ".join(sorted(self.capabilities))
        how = "" if self.precision == "float32" else f" in {self.precision}"
        return f"LoadedRun({str(self.path)!r}): {self.recipe.name} on {self.device}{how}, {able}"

    @cached_property
    def capabilities(self) -> frozenset[Capability]:
        """Names of the methods that work for this run.

        Every run has `embed` and `hidden`. A pre-trained run has those of `fill`, `generate`, `stream`, `logits` and
        `score` that its objectives taught. A fine-tuned run has `predict` if its task reads texts, and a classifier has
        `weights_of_tokens`, too. In bfloat16 there is neither `score` nor `weights_of_tokens`.
        """
        return capabilities_of(self._run) - (NEED_FLOAT32 if self.precision == "bfloat16" else frozenset())

    def embedder(self, config: VectorConfig) -> Embedder:
        """The embedder with these settings and the weights of this object; it is made once for equal settings."""
        with self._lock:
            if config not in self._embedders:
                self._embedders[config] = Embedder(self._run, config, loaded=self._model, precision=self.precision)
            return self._embedders[config]

    def _count_tokens(self, count: int) -> None:
        with self._lock:
            self.tokens_written += count

    def _require_float32(self, verb: Capability) -> None:
        if self.precision != "float32":
            raise UserError(f"{self.path}: {verb}: not in {self.precision}; load the run with precision float32")

    def _require_pretrained(self, verb: str) -> tuple[Run, PretrainingModel]:
        if self._pretrained is None:
            raise UserError(
                f"{self.path}: {verb}: a fine-tuned run has no head for that; give the run that it came from"
            )
        return self._pretrained

    def _require_finetuned(self, verb: str) -> tuple[FinetunedRun, HeadedModel]:
        if self._finetuned is None:
            raise UserError(f"{self.path}: {verb}: a pre-trained run; make a fine-tuned one with `bakeoff finetune`")
        return self._finetuned


def _go_on(part: Any, inputs: Any) -> None:
    """End the work before a part of a layer, where somebody has asked for it."""
    go_on()


def capabilities_of(run: Run | FinetunedRun) -> frozenset[Capability]:
    """The methods of `LoadedRun` that work for a run."""
    capabilities: set[Capability] = {"embed", "hidden"}
    if isinstance(run, FinetunedRun):
        if run.task.input_sides is not None:
            capabilities.add("predict")
        if run.task.one_class:
            capabilities.add("weights_of_tokens")
        return frozenset(capabilities)
    recipe: Recipe = run.recipe
    if any(each.token_targets for each in recipe.objective):
        capabilities.add("logits")
    if any(each.generates for each in recipe.objective):
        capabilities |= {"generate", "stream"}
    if filling_objective(run) is not None:
        capabilities.add("fill")
    try:
        scoring_objective(run)
        capabilities.add("score")
    except UserError:
        pass
    return frozenset(capabilities)
