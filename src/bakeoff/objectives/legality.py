"""The table of legal combinations: objectives, models and formats of rows. docs/recipes.md shows it."""

from collections.abc import Mapping

from bakeoff.formats.input_config import InputBaseConfig
from bakeoff.models.model import ModelConfig
from bakeoff.objectives.objective import ObjectiveConfig

TRAITS = (
    "encoder",
    "decoder",
    "decoder with directions: 2",
    "encoder and decoder",
    "mixers that do not attend",
    "t5 positions of one side",
    "mixers without a second stream",
    "absolute positions",
    "blocks",
    "full_sentences",
    "doc_sentences",
    "segment_pair",
    "sentence_pair",
    "continued_pair",
    "parallel",
    "isolated documents",
    "context",
    "recurrent rows",
)
"""The traits that a model and an input format can have. An objective can be trained if it refuses none of those
present.
"""


def traits_of(model: ModelConfig, rows: InputBaseConfig) -> list[str]:
    """The traits of a model and of the format of its rows, in the order of `TRAITS`."""
    if model.sequence_to_sequence:
        family = "encoder and decoder"
    elif model.directions == 2:
        family = "decoder with directions: 2"
    else:
        family = "decoder" if model.causal else "encoder"
    has = {
        family: True,
        "mixers that do not attend": not model.attends,
        "t5 positions of one side": any(mixer.blind_ahead for mixer in model.mixers),
        "mixers without a second stream": not model.two_streams,
        "absolute positions": model.embedding.positions != "none",
        rows.format: True,
        "isolated documents": rows.isolates,
        "context": rows.context_tokens > 0,
        "recurrent rows": rows.continues,
    }
    return [trait for trait in TRAITS if has.get(trait, False)]


def refusal(part: ObjectiveConfig, model: ModelConfig, rows: InputBaseConfig) -> str | None:
    """The reason why an objective cannot train a model on these rows, or None if it can."""
    return next((part.refused[trait] for trait in traits_of(model, rows) if trait in part.refused), None)


def memory_refusal(model: ModelConfig, rows: InputBaseConfig) -> str | None:
    """The reason why a model cannot remember earlier rows that these rows continue, or None if it can."""
    if not rows.continues or model.sequence_to_sequence or model.directions == 2:  # of which the objectives speak
        return None
    if model.embedding.positions != "none":
        return (
            "input: recurrent rows begin where others end, but the embedding's positions begin anew in each; set "
            "model.embedding.positions to none"
        )
    if model.encoder is not None and not all(mixer.remembers_in_encoders for mixer in model.mixers):
        return "input: recurrent rows need an encoder that remembers; its mixers can only be relative_attention"
    if not all(mixer.forgets for mixer in model.mixers):
        return (
            "input: recurrent rows would be remembered without end; use mixers of kind relative_attention, and set "
            "their memory"
        )
    if rows.start_last and 0 < model.embedding.segments < 3:
        return "input: [CLS] has a third segment of its own in these rows; set model.embedding.segments to 0, or to 3"
    return None


def legality_table(objectives: Mapping[str, type[ObjectiveConfig]]) -> str:
    """The table in Markdown: a row for each trait, a column for each objective, in cells yes or a reason's number."""
    numbers: dict[str, int] = {}
    lines = ["| | " + " | ".join(f"`{kind}`" for kind in objectives) + " |", "|---" * (len(objectives) + 1) + "|"]
    for trait in TRAITS:
        cells = []
        for kind, config in objectives.items():
            if trait not in config.refused:
                cells.append("yes")
                continue
            reason = config.refused[trait].removeprefix(kind).strip()
            reason = reason.replace(f"input.format is {trait}", "input.format is another")
            cells.append(f"no ({numbers.setdefault(reason, len(numbers) + 1)})")
        lines.append(f"| {trait} | " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", *(f"{number}. It {reason}." for reason, number in numbers.items())])
