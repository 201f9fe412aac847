"""Refusals that objectives share: reasons why they cannot train a model on some rows, by trait of model or rows."""

from bakeoff.display.wording import listed

GENERATES_FOR_A_SOURCE = "an objective that writes a target for a source, such as span_corruption"
"""Advice for models with an encoder and a decoder."""


def starts_anew(kind: str) -> dict[str, str]:
    """Refusals of an objective whose rows do not continue each other."""
    return {"recurrent rows": f"{kind} starts anew in every row; set input.recurrent to false"}


def sees_both_sides(kind: str) -> dict[str, str]:
    """Refusals of an objective that predicts a token from both sides."""
    return {
        "decoder": f"{kind} predicts from both sides, but a model with 'decoder' sees only what comes before; use "
        "'encoder'",
        "decoder with directions: 2": f"{kind} needs layers that see both sides, and 'directions: 2' has two that "
        "never meet; use bilm",
        "encoder and decoder": f"{kind} leaves the decoder without anything to write; use {GENERATES_FOR_A_SOURCE}",
        **predicts_all(kind),
    }


def predicts_all(kind: str) -> dict[str, str]:
    """Refusals of an objective that predicts, or may predict, every token of a row."""
    return {"context": f"{kind} has no use for tokens that are only read; set input.context to 0", **reads_text(kind)}


def reads_text(kind: str) -> dict[str, str]:
    """Refusals of an objective that reads a text, not pairs of a source and a target."""
    return {"parallel": f"{kind} needs a text, but input.format is parallel; use translation, or another format"}


def relates_segments(kind: str) -> dict[str, str]:
    """Refusals of an objective that tells how two segments relate."""
    formats = ("blocks", "full_sentences", "doc_sentences", "continued_pair")
    without = {
        each: f"{kind} needs two segments, but input.format is {each}; use segment_pair or sentence_pair"
        for each in formats
    }
    return sees_both_sides(kind) | without


def reads_in_order(kind: str) -> dict[str, str]:
    """Refusals of an objective that reads running text or rows of whole sentences, from one side."""
    return _reads(kind, "blocks", "full_sentences", "doc_sentences")


def reads_running_text(kind: str) -> dict[str, str]:
    """Refusals of an objective that reads running text."""
    return _reads(kind, "blocks")


def _reads(kind: str, *able: str) -> dict[str, str]:
    """Refusals of an objective that reads running text in some formats alone."""
    formats = ("full_sentences", "doc_sentences", "segment_pair", "sentence_pair", "continued_pair")
    why, use = f"{kind} needs running text, but input.format is", listed(able, "or")
    return {each: f"{why} {each}; use {use}" for each in formats if each not in able} | reads_text(kind)


def has_a_source(kind: str) -> dict[str, str]:
    """Refusals of an objective that writes a target for a source."""
    families = ("encoder", "decoder", "decoder with directions: 2")
    return dict.fromkeys(families, f"{kind} has a source and a target; give the model both 'encoder' and 'decoder'")


def generates_for_a_source(kind: str) -> dict[str, str]:
    """Refusals of an objective that makes a source and a target of a row of text."""
    isolated = {"isolated documents": f"{kind} reads rows as one text; set input.isolate to false"}
    texts = reads_running_text(kind) | isolated
    return has_a_source(kind) | texts | predicts_all(kind) | starts_anew(kind)
