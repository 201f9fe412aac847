"""The settings with which a model is fine-tuned."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, FieldSerializationInfo, ValidationInfo, field_serializer, field_validator, model_validator

from bakeoff.config import Config
from bakeoff.optimization.averages import AveragedConfig
from bakeoff.optimization.optimizers import OptimizerConfig
from bakeoff.optimization.optimizers.adamw import AdamWConfig
from bakeoff.optimization.schedules import LinearConfig, ScheduleBaseConfig, ScheduleConfig
from bakeoff.tasks.pooling import Pooling

SEARCHED_RATES = (0.5, 1.0, 2.0, 4.0)
"""Learning rates that a search tries, as multiples of the default one."""
SEARCHED_EPOCHS = (3, 10)
"""Numbers of epochs that a search tries with each learning rate."""
EPOCHS = (10,)
"""The number of epochs of a training where none is given."""
LEAST_STEPS = 300
"""The fewest steps of a training whose number of epochs is not given."""

BESIDE = {
    "optimizer": {"lr": "learning_rate", "weight_decay": "weight_decay"},
    "schedule": {"warmup": "warmup"},
}
"""Keys of parts of recipes that fine-tuning has beside the part, with the names that it has for them."""

LayerDecayRule = Literal["ulmfit", "electra", "xlnet"]
"""The ways in which published code lets lower layers learn less."""


class FinetuneConfig(AveragedConfig):
    """The settings of the training of a model and its head."""

    learning_rate: list[float] = Field(default=[])
    """Learning rate at the end of the warm-up; where several are given each is tried, and dev decides. Absent: 5e-5 *
    768 / width."""
    batch: int = Field(default=32, gt=0)
    """Rows of a batch."""
    micro_batch: Annotated[int, Field(gt=0)] | Literal["auto"] | None = None
    """Rows that go through the model at once; gradients of a batch's micro-batches are added. auto: as many of the
    longest as fit the device's memory by count, and half as many from the step on that runs out of it; the run says how
    many. Absent: the whole batch."""
    search: bool = False
    """Try half, one, two and four times the default learning rate, each with 3 and with 10 epochs; dev decides.
    Learning rates that are given replace these, and so do numbers of epochs."""
    epochs: list[Annotated[int, Field(gt=0)]] = Field(default=[])
    """The most passes over train; where several are given each is tried with each learning rate, and dev decides.
    Absent: 10, or more where `least_steps` asks for more."""
    least_steps: int | None = Field(default=None, ge=0)
    """The fewest steps of a training: with few rows there are more epochs; 0: no minimum. Absent: 300 where `epochs` is
    absent, else 0."""
    warmup: float = Field(default=0.1, ge=0, lt=1)
    """Share of the steps in which the learning rate rises linearly."""
    schedule: ScheduleConfig = LinearConfig()
    """The learning rate after the warm-up: any schedule of recipes, by its name or as `{kind: cosine, final: 0.1}`,
    without its `warmup`, which stands beside it. `plateau` follows the losses on dev."""
    optimizer: OptimizerConfig = AdamWConfig(lr=1.0)
    """Any optimizer of recipes, by its name or as `{kind: lamb, betas: [0.9, 0.98]}`, without `lr` and `weight_decay`,
    which stand beside it as `learning_rate` and `weight_decay`; with another than adamw `learning_rate` has to be
    given."""
    layer_decay: float = Field(default=1.0, gt=0, le=1)
    """Factor of the learning rate from each layer to the layer below it; `layer_decay_rule` says where it begins and
    ends."""
    layer_decay_rule: LayerDecayRule = "ulmfit"
    """The powers of `layer_decay` of the head, of L layers from the topmost down, and of the embedding. ulmfit: 0, 1 to
    L, L + 1 (Howard and Ruder 2018, arXiv:1801.06146, section 3.2; BEiT's code). electra: 0, 2 to L + 1, L + 2
    (ELECTRA's code). xlnet: 0, 0 to L - 1, 0, of the clipped gradients and not of the rates (XLNet's code)."""
    freeze: Annotated[int, Field(ge=0)] | Literal["model"] | None = None
    """What keeps its weights: model (all but the head; the model has no dropout then), or a number N (the embedding and
    the lowest N layers); null: nothing."""
    reinitialise_last: int = Field(default=0, ge=0)
    """Number of topmost layers that start with new random weights; the pooler does, too (Zhang et al. 2021,
    arXiv:2006.05987)."""
    layers: Annotated[int, Field(gt=0)] | Literal["weighted"] = 1
    """The layers that the head reads: the states of the N last layers, side by side (BERT's features: 4), or a learned
    weighting of all layers and the embedding (ELMo: Peters et al. 2018, arXiv:1802.05365, equation 1)."""
    language_model: float = Field(default=0.0, ge=0)
    """Weight of the next-token loss on the same texts beside the task's (GPT: Radford et al. 2018, section 3.2: 0.5);
    for models with the objective clm."""
    weight_decay: float = Field(default=0.01, ge=0)
    """Weight decay, decoupled in all optimizers but sgd; norms and biases have none, and adafactor has none at all."""
    clip: float = Field(default=1.0, gt=0)
    """Largest norm of the gradient, over all parameters."""
    evaluations: int = Field(default=20, gt=0)
    """The number of evaluations on dev, evenly spread over all steps."""
    patience: int | None = Field(default=6, gt=0)
    """Stop after this many evaluations without a better one; null: never."""
    dropout: float = Field(default=0.1, ge=0, lt=1)
    """The dropout of the head's input."""
    model_dropout: float | None = Field(default=None, ge=0, lt=1)
    """Dropout of the model, and of each part of it whose own dropout is not 0."""
    unshare: bool = False
    """Give layers that share weights copies of their own before training: at first the same function, then free to
    differ."""
    pooling: Literal["auto"] | Pooling = "auto"
    """How a row becomes one vector: its first position through a layer, the mean or maximum of all, or its last
    position; auto: cls where the recipe has an objective of sentence pairs, last for causal models, mean otherwise."""
    pooler: Literal["tanh", "relu", "gelu"] = "tanh"
    """The activation of the layer over the first position, for the pooling cls: tanh as in BERT, relu as in DistilBERT,
    gelu as in ELECTRA."""
    transform: bool = False
    """Whether the linear layer, the activation and the norm of mlm's head stand before the last linear layer, as in
    ModernBERT; they begin with the weights of pre-training. The pooling cls has no layer of its own then."""
    separators: Literal[1, 2] = 1
    """Separators between the texts of a pair; RoBERTa's pairs have 2."""
    length: int | None = Field(default=None, gt=0)
    """The most tokens of a row; longer rows are cut. Absent: the input length of the recipe."""
    truncate: Literal["head", "head+tail", "windows"] = "head"
    """The part of a long text that is read: its beginning; a quarter of the room from its beginning and the rest from
    its end (Sun et al. 2019, arXiv:1905.05583); or all, in windows, whose predictions are averaged."""

    @field_validator("micro_batch", mode="before")
    @classmethod
    def _known_size(cls, value: Any) -> Any:
        """Say in one line what a size may be."""
        number = isinstance(value, int) and not isinstance(value, bool) and value > 0
        if not (value is None or value == "auto" or number):
            raise ValueError("give a number of rows above 0, or auto")
        return value

    @field_validator("optimizer", "schedule", mode="before")
    @classmethod
    def _by_name(cls, value: Any, info: ValidationInfo) -> Any:
        """A part by its name alone, or with its settings, without those that stand beside it."""
        part = value.model_dump(exclude_unset=True) if isinstance(value, Config) else value
        part = {"kind": part} if isinstance(part, str) else part
        if not isinstance(part, Mapping):
            return part
        assert info.field_name is not None
        beside = BESIDE[info.field_name]
        for key in part:
            if key in beside:
                raise ValueError(f"{key}: it stands beside `{info.field_name}`, as `{beside[key]}`")
        return {**part, "lr": 1.0} if info.field_name == "optimizer" else part

    @field_serializer("optimizer", "schedule")
    def _without_beside(self, part: Config, info: FieldSerializationInfo) -> dict[str, Any]:
        return part.model_dump(mode=info.mode, exclude={*BESIDE[info.field_name]})

    @field_validator("learning_rate", "epochs", mode="before")
    @classmethod
    def _one_or_several(cls, value: Any) -> Any:
        values = list(value) if isinstance(value, list | tuple) else [] if value is None else [value]
        if (odd := next((each for each in values if isinstance(each, bool)), None)) is not None:
            raise ValueError(f"a number is wanted, not {str(odd).lower()}")
        if (again := next((each for each in values if values.count(each) > 1), None)) is not None:
            raise ValueError(f"{again} is given twice; leave one out")
        return values

    @field_validator("learning_rate")
    @classmethod
    def _positive(cls, value: list[float]) -> list[float]:
        if any(not rate > 0 for rate in value):
            raise ValueError(f"{value} holds a learning rate that is not positive")
        return value

    @model_validator(mode="after")
    def _averages_after_the_rise(self) -> Self:
        schedule = self.schedule.model_copy(update={"warmup": self.warmup})
        if self.average is not None and (why := self.average.refusal(schedule.rise_share(None), None)):
            raise ValueError(why)
        return self

    def epoch_steps(self, items: int) -> int:
        """The steps of a pass over `items` items."""
        return -(-items // self.batch)

    def optimizer_at(self, learning_rate: float) -> OptimizerConfig:
        """The optimizer of a training with a learning rate."""
        settings = {"lr": learning_rate, "weight_decay": self.weight_decay}
        return self.optimizer.model_copy(
            update={k: v for k, v in settings.items() if k in type(self.optimizer).model_fields}
        )

    def schedule_of(self, steps: int) -> ScheduleBaseConfig:
        """The schedule of a training of so many steps."""
        return self.schedule.model_copy(update={"warmup": self.warmup}).fitted(steps, None)
