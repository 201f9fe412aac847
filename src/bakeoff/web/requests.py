"""What requests hold, and what is done with them: one class a verb."""

from collections.abc import Hashable, Sequence
from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from bakeoff.config import LARGEST, Config
from bakeoff.web.limits import Limits
from bakeoff.web.problems import Problem
from bakeoff.web.servable import Servable


class Request(Config):
    """Texts for a model."""

    verb: ClassVar[str]
    does: ClassVar[str]
    """What the verb does, in the documentation."""
    gives: ClassVar[str]
    """What an answer is."""

    model: str | None = None
    """Name of the model, as `/models` lists it; may be left out where one alone can do it."""
    texts: list[str] = Field(min_length=1)
    """Texts; the answers are in their order."""

    @property
    def key(self) -> Hashable:
        """What requests share that may go through a model together."""
        return (self.verb, self.model_dump_json(exclude={"model", "texts", "pairs"}))

    @property
    def items(self) -> Sequence[Any]:
        """What a batch is put together from."""
        return self.texts

    def check(self, limits: Limits) -> None:
        """Refuse what asks for too much.

        Raises:
            Problem: more or longer texts than the server takes (422).
        """
        most, longest = limits.texts, limits.characters
        for name in ("texts", "pairs"):
            given = getattr(self, name, None) or []
            if len(given) > most:
                raise Problem(422, f"{name}: {len(given)} given; a request may hold {most}")
            for place, text in enumerate(given):
                if len(text) > longest:
                    raise Problem(422, f"{name}.{place}: {len(text):,} characters; a text may have {longest:,}")
                if any("\ud800" <= character <= "\udfff" for character in text):
                    raise Problem(422, f"{name}.{place}: half of a surrogate pair, which is no character")

    def answer(self, model: Servable, items: Sequence[Any]) -> Sequence[Any]:
        """The answers to items of this and of other requests with the same key."""
        raise NotImplementedError


class Fill(Request):
    """Texts with `[MASK]` in them."""

    verb = "fill"
    does = "What belongs at each [MASK]"
    gives = "for each mask the likeliest tokens with their probabilities"

    k: int = Field(default=5, ge=1, le=100)
    """How many tokens for each mask."""

    def answer(self, model: Servable, items: Sequence[Any]) -> Sequence[Any]:  # noqa: D102
        return list(model.fill(list(items), k=self.k))


class Pairs(Request):
    """Texts, or pairs of texts."""

    pairs: list[str] | None = None
    """Second texts, one for each, where the model takes pairs."""

    @model_validator(mode="after")
    def _one_each(self) -> "Pairs":
        if self.pairs is not None and len(self.pairs) != len(self.texts):
            raise ValueError(f"pairs: {len(self.pairs)} second texts for {len(self.texts)} texts; give one for each")
        return self

    @property
    def key(self) -> Hashable:  # noqa: D102
        return (super().key, self.pairs is None)

    @property
    def items(self) -> Sequence[Any]:  # noqa: D102
        pairs: Sequence[str | None] = self.pairs or [None] * len(self.texts)
        return list(zip(self.texts, pairs, strict=True))

    def sides(self, items: Sequence[Any]) -> tuple[list[str], list[str] | None]:
        """First and second texts of items."""
        return [text for text, _ in items], None if self.pairs is None else [pair for _, pair in items]


class Score(Pairs):
    """Texts whose probability is asked."""

    verb = "score"
    does = "How probable each text is"
    gives = "its log-probability in nats, of how many tokens, and how many of them are unknown"

    def answer(self, model: Servable, items: Sequence[Any]) -> Sequence[Any]:  # noqa: D102
        texts, pairs = self.sides(items)
        return list(model.score(texts) if pairs is None else model.score(texts, pairs))


class Embed(Request):
    """Texts whose vectors are asked."""

    verb = "embed"
    does = "A vector of each text"
    gives = "its D numbers"

    pooling: Literal["mean", "cls", "last", "max"] = "mean"
    """Mean or max over all tokens of a text; cls or last, the state at its first or last token."""

    def answer(self, model: Servable, items: Sequence[Any]) -> Sequence[Any]:  # noqa: D102
        return list(model.embed(list(items), pooling=self.pooling))


class Predict(Pairs):
    """Texts, or pairs of texts, of which a fine-tuned model says something."""

    verb = "predict"
    does = "What a fine-tuned model says of each text"
    gives = "its task's answer: a label with its probability, a value, tags, or a part of the text"

    weights: bool = False
    """Whether each answer has `token_weights`: how much every token speaks for the label; of classifiers."""

    def answer(self, model: Servable, items: Sequence[Any]) -> Sequence[Any]:  # noqa: D102
        texts, pairs = self.sides(items)
        answers = list(model.predict(texts, pairs))
        if not self.weights:
            return answers
        weighed = [model.weights_of_tokens(text, pair) for text, pair in items]
        return [{**answer, "token_weights": own} for answer, own in zip(answers, weighed, strict=True)]


class Generate(Request):
    """Texts to go on with."""

    verb = "generate"
    does = "What follows each text"
    gives = "a text"

    tokens: int = Field(default=50, ge=1)
    """The most tokens to write."""
    temperature: float = Field(default=1.0, ge=0, le=100)
    """Below 1 the likely becomes likelier; 0 always takes the most likely token."""
    top_k: int | None = Field(default=None, ge=1)
    """Sample from the so many most likely tokens."""
    top_p: float = Field(default=1.0, gt=0, le=1)
    """Sample from the fewest most likely tokens that have this share together."""
    beams: int | None = Field(default=None, ge=1)
    """Search for the likeliest text with so many candidates instead."""
    length_penalty: float = Field(default=0.6, ge=0, le=10)
    """How much a search favours long texts."""
    seed: int = Field(default=0, ge=0, le=LARGEST)
    """Seed of sampling."""
    stream: bool = False
    """Send the text of a single prompt as it is written, as server-sent events."""

    @model_validator(mode="after")
    def _possible(self) -> "Generate":
        if self.beams is not None and (self.top_k is not None or self.top_p < 1 or self.temperature not in (0, 1)):
            raise ValueError("beams: a search does not sample; leave temperature, top_k and top_p out")
        if self.stream and len(self.texts) != 1:
            raise ValueError(f"stream: {len(self.texts)} texts given; one text is written at a time")
        if self.stream and (self.beams or 1) > 1:
            raise ValueError("stream: a search knows its text at the end alone; leave stream or beams out")
        return self

    @property
    def settings(self) -> dict[str, Any]:
        """As `generate` takes them."""
        values = self.model_dump(exclude={"model", "texts", "stream"})
        return {name: value for name, value in values.items() if value is not None}

    @property
    def key(self) -> Hashable:
        """A sampled text's random numbers are those of its place among the texts: it goes alone."""
        if self.beams is None and self.temperature > 0:
            return object()
        return super().key

    def check(self, limits: Limits) -> None:  # noqa: D102
        super().check(limits)
        for name, most in {"tokens": limits.tokens, "beams": limits.beams}.items():
            if (given := getattr(self, name)) is not None and given > most:
                raise Problem(422, f"{name}: {given} asked for; this server writes at most {most}")

    def answer(self, model: Servable, items: Sequence[Any]) -> Sequence[Any]:  # noqa: D102
        return list(model.generate(list(items), **self.settings))


REQUESTS: dict[str, type[Request]] = {each.verb: each for each in (Fill, Generate, Predict, Embed, Score)}
"""By verb, as the page has them."""
