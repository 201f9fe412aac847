"""All dropouts of a model at once."""

from typing import Any

from bakeoff.models.model import ModelConfig


def with_dropout(model: ModelConfig, rate: float) -> ModelConfig:
    """The model with another rate for its own dropout and for every part's dropout that is not 0, DropConnect included.

    Parts whose dropout is 0 stay without: attention weights of the Transformer, for example.
    """
    values = _replaced(model.model_dump(mode="json"), rate)
    return ModelConfig.parse({**values, "dropout": rate}, "model")


def _replaced(node: Any, rate: float) -> Any:
    if isinstance(node, list):
        return [_replaced(item, rate) for item in node]
    if not isinstance(node, dict):
        return node
    return {
        key: rate if value and isinstance(value, float) and key.endswith("dropout") else _replaced(value, rate)
        for key, value in node.items()
    }
