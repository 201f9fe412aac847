"""Which objectives can train which models on which rows. docs/recipes.md shows this table."""

from collections.abc import Mapping

from bakeoff.models.model import ModelConfig
from bakeoff.objectives.input_config import InputBaseConfig

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
"""What a model and an input format can be; an objective that has nothing against any of theirs can be trained."""

WRITING = "span_corruption, denoising, deshuffling, prefix_lm, translation"


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


def refusal(kind: str, model: ModelConfig, rows: InputBaseConfig) -> str | None:
    """Why an objective cannot train a model on such rows, or None."""
    reasons = REFUSALS[kind]
    return next((reasons[trait] for trait in traits_of(model, rows) if trait in reasons), None)


def memory_refusal(model: ModelConfig, rows: InputBaseConfig) -> str | None:
    """Why a model cannot remember the rows that a row continues, or None."""
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


def _starts_anew(kind: str) -> dict[str, str]:
    return {"recurrent rows": f"{kind} starts anew in every row; set input.recurrent to false"}


def _sees_both_sides(kind: str) -> dict[str, str]:
    return {
        "decoder": f"{kind} predicts from both sides, but a model with 'decoder' sees only what comes before; use "
        "'encoder'",
        "decoder with directions: 2": f"{kind} needs layers that see both sides, and 'directions: 2' has two that "
        "never meet; use bilm",
        "encoder and decoder": f"{kind} leaves the decoder without anything to write; use one of {WRITING}",
        **_predicts_all(kind),
    }


def _predicts_all(kind: str) -> dict[str, str]:
    return {"context": f"{kind} has no use for tokens that are only read; set input.context to 0", **_reads_text(kind)}


def _reads_text(kind: str) -> dict[str, str]:
    return {"parallel": f"{kind} needs a text, but input.format is parallel; use translation, or another format"}


def _relates_segments(kind: str) -> dict[str, str]:
    formats = ("blocks", "full_sentences", "doc_sentences", "continued_pair")
    without = {
        each: f"{kind} needs two segments, but input.format is {each}; use segment_pair or sentence_pair"
        for each in formats
    }
    return _sees_both_sides(kind) | without


def _reads_running_text(kind: str) -> dict[str, str]:
    formats = ("full_sentences", "doc_sentences", "segment_pair", "sentence_pair", "continued_pair")
    needed = {each: f"{kind} needs running text, but input.format is {each}; use blocks" for each in formats}
    return needed | _reads_text(kind)


def _has_a_source(kind: str) -> dict[str, str]:
    families = ("encoder", "decoder", "decoder with directions: 2")
    return dict.fromkeys(families, f"{kind} has a source and a target; give the model both 'encoder' and 'decoder'")


def _writes_for_a_source(kind: str) -> dict[str, str]:
    isolated = {"isolated documents": f"{kind} reads rows as one text; set input.isolate to false"}
    texts = _reads_running_text(kind) | isolated
    return _has_a_source(kind) | texts | _predicts_all(kind) | _starts_anew(kind)


def _translates(kind: str) -> dict[str, str]:
    formats = ("blocks", "full_sentences", "doc_sentences", "segment_pair", "sentence_pair", "continued_pair")
    needed = {
        each: f"{kind} needs pairs of a source and a target, but input.format is {each}; use parallel"
        for each in formats
    }
    return _has_a_source(kind) | needed | _starts_anew(kind)


REFUSALS: Mapping[str, Mapping[str, str]] = {
    "mlm": _sees_both_sides("mlm"),
    "word_structure": _sees_both_sides("word_structure"),
    "permutation": _sees_both_sides("permutation")
    | {
        "mixers without a second stream": "permutation needs mixers that attend over two streams: "
        "relative_attention can, no other, and not where model.second_stream is false",
        "absolute positions": "permutation has queries, to which the embedding would add no position; set "
        "positions to none",
    },
    "nsp": _relates_segments("nsp"),
    "sop": _relates_segments("sop"),
    "sentence_structure": _relates_segments("sentence_structure"),
    "clm": {
        "encoder": "clm predicts the next token, which a model with 'encoder' can see; use 'decoder'",
        "decoder with directions: 2": "clm reads in one direction, and the model has 'directions: 2'; use bilm, or set "
        "it to 1",
        "encoder and decoder": f"clm leaves the encoder without anything to read; use one of {WRITING}",
        **_reads_running_text("clm"),
    },
    "prefix_clm": {
        "encoder": "prefix_clm predicts the next token, which a model with 'encoder' can see; use 'decoder'",
        "decoder with directions: 2": "prefix_clm reads in one direction, and the model has 'directions: 2'; use bilm, "
        "or set it to 1",
        "encoder and decoder": "prefix_clm leaves the encoder without anything to read; use prefix_lm",
        "mixers that do not attend": "prefix_clm shows tokens of a prefix what is ahead of them: attention of any "
        "kind can look there, no other mixer",
        "t5 positions of one side": "prefix_clm shows tokens what is ahead of them, where this decoder's t5 positions "
        "tell no distances; set two_sided of its mixers to true",
        **_reads_running_text("prefix_clm"),
        **_predicts_all("prefix_clm"),
        **_starts_anew("prefix_clm"),
    },
    "mntp": {
        "encoder": "mntp predicts a hidden token at the place before it, as a model with 'decoder' predicts the next "
        "one; use 'decoder', or mlm",
        "decoder with directions: 2": "mntp needs layers that see both sides, and 'directions: 2' has two that never "
        "meet; use bilm, or set it to 1",
        "encoder and decoder": "mntp leaves the encoder without anything to read; leave it out, or use denoising",
        "mixers that do not attend": "mntp shows tokens of a row what is ahead of them: attention of any kind can "
        "look there, no other mixer",
        "t5 positions of one side": "mntp shows tokens what is ahead of them, where this decoder's t5 positions tell "
        "no distances; set two_sided of its mixers to true",
        **_reads_running_text("mntp"),
        **_predicts_all("mntp"),
        **_starts_anew("mntp"),
    },
    "bilm": {
        **dict.fromkeys(
            ("encoder", "decoder", "encoder and decoder"),
            "bilm predicts from either side alone; give the model 'decoder' with 'directions: 2'",
        ),
        **_reads_running_text("bilm"),
        **_predicts_all("bilm"),
        **_starts_anew("bilm"),
    },
    "span_corruption": _writes_for_a_source("span_corruption"),
    "denoising": _writes_for_a_source("denoising"),
    "deshuffling": _writes_for_a_source("deshuffling"),
    "prefix_lm": _writes_for_a_source("prefix_lm")
    | {
        "decoder": "prefix_lm has a source and a target; give the model both 'encoder' and 'decoder', or use prefix_clm"
    },
    "translation": _translates("translation"),
}
"""For each objective the traits that rule it out, with the reason."""


def legality_table() -> str:
    """The table in Markdown: traits down, objectives across, each cell yes or the number of its reason below."""
    numbers: dict[str, int] = {}
    lines = ["| | " + " | ".join(f"`{kind}`" for kind in REFUSALS) + " |", "|---" * (len(REFUSALS) + 1) + "|"]
    for trait in TRAITS:
        cells = []
        for kind, reasons in REFUSALS.items():
            if trait not in reasons:
                cells.append("yes")
                continue
            reason = reasons[trait].removeprefix(kind).strip()
            reason = reason.replace(f"input.format is {trait}", "input.format is another")
            cells.append(f"no ({numbers.setdefault(reason, len(numbers) + 1)})")
        lines.append(f"| {trait} | " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", *(f"{number}. It {reason}." for reason, number in numbers.items())])
