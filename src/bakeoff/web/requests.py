"""The requests of the API, one class for each verb: its fields, and how it is answered."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, ClassVar, Literal

from pydantic import ConfigDict, Field, model_validator

from bakeoff.config import LARGEST, Config
from bakeoff.display.wording import counted
from bakeoff.generation.config import LENGTH_PENALTY, require_one_way
from bakeoff.web.limits import Limits
from bakeoff.web.problems import Problem
from bakeoff.web.servable import Servable

SIDES = ("texts", "pairs")
"""Keys of a body that hold texts."""


class Request(Config):
    """Texts for a model."""

    model_config = ConfigDict(strict=True)

    verb: ClassVar[str]
    does: ClassVar[str]
    """What the verb does, for the API's documentation."""
    gives: ClassVar[str]
    """What the answer to one text is, for the API's documentation."""
    streams: ClassVar[bool] = False
    """Whether the answer may be a stream of events."""

    model: str | None = None
    """Name of the model, as `/models` lists it; may be left out where only one model can answer."""
    texts: list[str] = Field(min_length=1)
    """The texts; the answers come in the same order."""

    @property
    def key(self) -> Hashable:
        """The key of a batch: requests with equal keys may go through a model together."""
        return (self.verb, self.model_dump_json(exclude={"model", "texts", "pairs"}))

    @property
    def items(self) -> Sequence[Any]:
        """The items of a batch: one for each text."""
        return self.texts

    def check(self, limits: Limits) -> None:
        """Refuse a request beyond the limits.

        Raises:
            Problem: a text is longer than the server takes (422).
        """
        longest = limits.characters
        for name in SIDES:
            texts = getattr(self, name, None) or []
            for index, text in enumerate(texts):
                if len(text) > longest:
                    raise Problem(422, f"{name}.{index}: {len(text):,} characters; a text may have {longest:,}")

    def answer(self, model: Servable, items: Sequence[Any]) -> Sequence[Any]:
        """The answers to items of this and of other requests with the same key."""
        raise NotImplementedError


def limited(values: Mapping[str, Any], limits: Limits) -> None:
    """Refuse a body with more texts than the server takes, before anything else of it is looked at.

    Raises:
        Problem: there are more (422).
    """
    for name in SIDES:
        texts = values.get(name)
        if isinstance(texts, list) and len(texts) > limits.texts:
            raise Problem(422, f"{name}: {len(texts):,} given; a request may hold {limits.texts}")


class Fill(Request):
    """Texts with `[MASK]` in them."""

    verb = "fill"
    does = "What belongs at each [MASK]"
    gives = "for each mask the likeliest tokens with their probabilities"

    k: int = Field(default=5, ge=1, le=100)
    """Number of likeliest tokens for each mask."""

    def answer(self, model: Servable, items: Sequence[Any]) -> Sequence[Any]:  # noqa: D102
        return list(model.fill(list(items), k=self.k))


class Pairs(Request):
    """Texts, or pairs of texts."""

    pairs: list[str] | None = None
    """The second texts, one for each of `texts`, where the model takes pairs."""

    @model_validator(mode="after")
    def _one_each(self) -> "Pairs":
        if self.pairs is not None and len(self.pairs) != len(self.texts):
            texts, seconds = counted(len(self.texts), "text"), counted(len(self.pairs), "second text")
            raise ValueError(f"pairs: {seconds} for {texts}; give one for each")
        return self

    @property
    def key(self) -> Hashable:  # noqa: D102
        return (super().key, self.pairs is None)

    @property
    def items(self) -> Sequence[Any]:  # noqa: D102
        pairs: Sequence[str | None] = self.pairs or [None] * len(self.texts)
        return list(zip(self.texts, pairs, strict=True))

    def sides(self, items: Sequence[Any]) -> tuple[list[str], list[str] | None]:
        """The first texts and the second texts of items; None instead of the second texts if there are no pairs."""
        return [text for text, _ in items], None if self.pairs is None else [pair for _, pair in items]


class Score(Pairs):
    """A request for the probabilities of texts."""

    verb = "score"
    does = "How probable each text is"
    gives = "its log-probability in nats, of how many tokens, and how many of them are unknown"

    def answer(self, model: Servable, items: Sequence[Any]) -> Sequence[Any]:  # noqa: D102
        texts, pairs = self.sides(items)
        return list(model.score(texts) if pairs is None else model.score(texts, pairs))


class Embed(Request):
    """A request for the vectors of texts."""

    verb = "embed"
    does = "A vector of each text"
    gives = "its D numbers"

    pooling: Literal["mean", "cls", "last", "max"] | None = None
    """Pooling of tokens to one vector: mean or max over all tokens; cls or last for the state at [CLS] or the last
    token; null: that for which `bakeoff contrast` has taught the run, else mean."""

    def answer(self, model: Servable, items: Sequence[Any]) -> Sequence[Any]:  # noqa: D102
        return list(model.embed(list(items), pooling=self.pooling))


class Predict(Pairs):
    """A request for what a fine-tuned model predicts for texts or pairs of texts."""

    verb = "predict"
    does = "What a fine-tuned model says of each text"
    gives = "its task's answer: a label with its probability, a value, tags, or a part of the text"

    probabilities: bool = False
    """Add to each answer the `probabilities` of all classes. For classifiers only."""
    weights: bool = False
    """Add `token_weights` to each answer: how much every token speaks for the label. For classifiers only."""

    def answer(self, model: Servable, items: Sequence[Any]) -> Sequence[Any]:  # noqa: D102
        texts, pairs = self.sides(items)
        answers = list(model.predict(texts, pairs, probabilities=self.probabilities))
        if not self.weights:
            return answers
        weighed = [model.weights_of_tokens(text, pair) for text, pair in items]
        return [{**answer, "token_weights": weights} for answer, weights in zip(answers, weighed, strict=True)]


class Generate(Request):
    """A request to continue texts."""

    verb = "generate"
    does = "What follows each text"
    gives = "a text"
    streams = True

    tokens: int = Field(default=50, ge=1)
    """Largest number of tokens to write for each text."""
    temperature: float = Field(default=1.0, ge=0, le=100)
    """Temperature of sampling: below 1 likely tokens become likelier, above 1 less likely; 0 takes the most likely
    token."""
    top_k: int | None = Field(default=None, ge=1)
    """Sample from this number of most likely tokens alone."""
    top_p: float = Field(default=1.0, gt=0, le=1)
    """Sample from the smallest set of most likely tokens whose probabilities add up to this share; with `top_k`, of
    what these tokens have together."""
    beams: int | None = Field(default=None, ge=1)
    """Search for the likeliest text with this number of candidates (beam search) instead of sampling."""
    length_penalty: float = Field(default=LENGTH_PENALTY, ge=0, le=10)
    """How much a beam search favours long texts; 0: not at all."""
    seed: int = Field(default=0, ge=0, le=LARGEST)
    """Seed of sampling."""
    stream: bool = False
    """Send the text piece by piece while it is written, as server-sent events; for a single prompt."""

    @model_validator(mode="after")
    def _possible(self) -> "Generate":
        require_one_way(self.temperature, self.top_k, self.top_p, self.beams, self.length_penalty)
        if self.stream and len(self.texts) != 1:
            raise ValueError(f"stream: {len(self.texts)} texts given; one text is written at a time")
        if self.stream and (self.beams or 1) > 1:
            raise ValueError("stream: a search has its text only at the end; leave stream or beams out")
        return self

    @property
    def settings(self) -> dict[str, Any]:
        """The request's settings as keyword arguments of `Model.generate`."""
        values = self.model_dump(exclude={"model", "texts", "stream"})
        return {name: value for name, value in values.items() if value is not None}

    @property
    def key(self) -> Hashable:
        """The key of a batch, without the seed, since each text has its own random numbers."""
        return (self.verb, self.model_dump_json(exclude={"model", "texts", "seed"}))

    @property
    def items(self) -> Sequence[Any]:
        """Each text with the key of its random numbers: the request's seed and the text's index."""
        return [(text, (self.seed, index)) for index, text in enumerate(self.texts)]

    def check(self, limits: Limits) -> None:  # noqa: D102
        super().check(limits)
        for name, most in {"tokens": limits.tokens, "beams": limits.beams}.items():
            if (value := getattr(self, name)) is not None and value > most:
                raise Problem(422, f"{name}: {value} asked for; this server writes at most {most}")

    def answer(self, model: Servable, items: Sequence[Any]) -> Sequence[Any]:  # noqa: D102
        texts, seeds = zip(*items, strict=True)
        settings = {name: value for name, value in self.settings.items() if name != "seed"}
        return list(model.generate(list(texts), seeds=seeds, **settings))


REQUESTS: dict[str, type[Request]] = {each.verb: each for each in (Fill, Generate, Predict, Embed, Score)}
"""The classes of requests by verb, in the order of the page."""
