"""A model that answers at once, or when it is let."""

import threading
import time
from types import SimpleNamespace

import numpy as np

from bakeoff.errors import UserError
from bakeoff.signals import go_on


class FakeModel:
    """Answers by simple rules, and notes what went through it together."""

    def __init__(self, *capabilities, path="/secret/place/run", weights=True):
        able = capabilities or ("fill", "generate", "stream", "predict", "embed", "score")
        self.capabilities = frozenset([*able, *(["weights_of_tokens"] if weights else [])])
        self.recipe = SimpleNamespace(name="fake-tiny")
        self.path = path
        self.batches = []
        self.gate = threading.Event()
        self.gate.set()
        self.written = 0
        self.looks = 0

    @property
    def tokens_written(self):
        return self.written

    def _through(self, texts):
        self.batches.append(list(texts))
        assert self.gate.wait(20)
        if "endless" in texts:  # layer for layer
            while True:
                self.looks += 1
                time.sleep(0.002)
                go_on()
        for text in texts:
            if text == "bad":
                raise UserError(f"{self.path}: text 1 ('bad'): has no [MASK]")
            if text == "broken":
                raise ValueError("a mistake\nof ours")

    def fill(self, texts, k=5):
        self._through(texts)
        candidates = [{"token": f"t{i}", "id": i, "probability": 1 / (i + 2)} for i in range(k)]
        return [[candidates] * text.count("[MASK]") for text in texts]

    def score(self, texts, pairs=None):
        self._through(texts)
        return [{"log_probability": -float(len(text)), "tokens": len(text.split()), "unknown": 0} for text in texts]

    def embed(self, texts, pooling="mean"):
        self._through(texts)
        return np.array([[len(text), {"mean": 0, "cls": 1}[pooling]] for text in texts], np.float32)

    def predict(self, texts, pairs=None, *, probabilities=False):
        self._through(texts)
        more = {"probabilities": {"long": 0.75, "short": 0.25}} if probabilities else {}
        return [{"label": "long" if len(text) > 8 else "short", "probability": 0.75, **more} for text in texts]

    def generate(self, prompts, seeds, **settings):
        self._through(prompts)
        both = zip(prompts, seeds, strict=True)
        return ["".join(self.stream(prompt, seed=seed, **settings)) for prompt, (seed, _) in both]

    def stream(self, prompt, tokens=50, seed=0, **settings):
        if prompt == "bad":
            raise UserError(f"{self.path}: text 1 ('bad'): too long")
        for number in range(tokens):
            if prompt == "slow":
                time.sleep(0.02)
            self.written += 1
            yield f" {number + seed}"

    def weights_of_tokens(self, text, pair=None):
        places = [(word, 0, text.index(word), text.index(word) + len(word), 0.5) for word in text.split()]
        weights = [dict(zip(("token", "side", "begin", "end", "weight"), each, strict=True)) for each in places]
        return {"label": "long", "probability": 0.75, "baseline": 0.5, "weights": weights}
