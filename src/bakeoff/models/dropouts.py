"""All dropouts of a model at once."""

from typing import Any

from bakeoff.models.model import ModelConfig


def with_dropout(model: ModelConfig, rate: float) -> ModelConfig:
    """The model with rate `rate` for every dropout that is not 0, its own, its parts' and DropConnect.

    A dropout of 0 stays 0, for example that of the Transformer's attention weights.
    """
    values = _replaced(model.model_dump(mode="json"), rate)
    return ModelConfig.parse({**values, "dropout": rate}, "model")


def has_dropout(model: ModelConfig) -> bool:
    """Whether some dropout of the model is not 0, its own, one of its parts' or DropConnect."""
    return _any(model.model_dump(mode="json"))


def _any(node: Any) -> bool:
    if isinstance(node, list):
        return any(map(_any, node))
    if not isinstance(node, dict):
        return False
    return any(bool(value) if key.endswith("dropout") else _any(value) for key, value in node.items())


def _replaced(node: Any, rate: float) -> Any:
    if isinstance(node, list):
        return [_replaced(item, rate) for item in node]
    if not isinstance(node, dict):
        return node
    return {
        key: rate if value and isinstance(value, float) and key.endswith("dropout") else _replaced(value, rate)
        for key, value in node.items()
    }
