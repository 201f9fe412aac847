"""How rows use their places and the text, against counts over the batches of a training.

In the text no word comes twice, so that a token says where in the text it stands.
"""

from collections import Counter
from unittest.mock import patch

import numpy as np
import pytest
from tests.conftest import shrink

import bakeoff
from bakeoff.inspection.terminal import print_peek
from bakeoff.learner.pretraining_model import build_on_meta
from bakeoff.preparation.prepare import prepare
from bakeoff.tokenizer.tokenizer_config import TokenizerConfig
from bakeoff.training import row_use
from bakeoff.training.stages import make_batches


@pytest.fixture(scope="module")
def distinct(tmp_path_factory):
    """A corpus of documents of one to ten sentences, with one to fourteen words each, none of which comes twice."""
    folder = tmp_path_factory.mktemp("distinct")
    generator, lines, word = np.random.default_rng(0), [], 0
    for _ in range(90):
        for count in generator.integers(1, 15, generator.integers(1, 11)).tolist():
            lines.append(" ".join(f"w{word + i}" for i in range(count)))
            word += count
        lines.append("=")
    (folder / "text.txt").write_text("\n\n".join(lines), encoding="utf-8")
    config = TokenizerConfig(kind="word", size=word + 5)
    return prepare(
        folder / "text.txt", folder / "corpus", tokenizer=config, document_separator="^=$", validation=0.2, workers=0
    )


SHOWN = [{"kind": "mlm", "mask": 0.0, "random": 0.0}]

RECIPES = {
    "blocks": ("gpt-tiny", {}),
    "context": ("gpt-tiny", {"input.context": 20}),
    "full_sentences": ("roberta-tiny", {"objective": SHOWN}),
    "doc_sentences": ("roberta-tiny", {"objective": SHOWN, "input": {"format": "doc_sentences", "length": 32}}),
    "segment_pair": ("bert-tiny", {"objective": SHOWN}),
    "continued_pair": ("xlnet-tiny", {}),
    "nsp": ("bert-tiny", {"objective": [*SHOWN, {"kind": "nsp"}]}),
    "sop": ("albert-tiny", {"objective": [*SHOWN, {"kind": "sop"}]}),
    "sentence_pair": ("bert-tiny", {"objective": SHOWN, "input": {"format": "sentence_pair", "length": 32}}),
    "span_corruption": ("t5-tiny", {}),
    "denoising": ("bart-tiny", {}),
}
ALL_OF_IT = ["blocks", "context", "full_sentences", "doc_sentences", "span_corruption", "denoising"]


def counted(parts, rows, context=0):
    """Places, tokens, and how often each id stands in the first rows of some parts, by a loop over them."""
    places, tokens, often, number = 0, 0, Counter(), 0
    for part in parts:
        for i in range(min(len(part.row.ids), rows - number)):
            number += 1
            padding_mask = (
                np.ones(part.row.ids.shape[1], bool)
                if part.row.padding_mask is None
                else part.row.padding_mask[i].numpy()
            )
            padding_mask = padding_mask if part.row.documents is None else part.row.documents[i].numpy() > 0
            ids = part.row.ids[i].numpy()
            places, tokens = places + len(ids), tokens + int(padding_mask.sum())
            fresh = part.targets["clm"][0].numpy() if context else None
            shown = padding_mask if fresh is None else np.isin(np.arange(len(ids)) + i * len(ids), fresh)
            often.update(ids[shown].tolist())
            if part.row.source is not None:
                source = part.row.source.ids[i].numpy()
                read = (
                    np.ones(len(source), bool)
                    if part.row.source.padding_mask is None
                    else part.row.source.padding_mask[i].numpy()
                )
                places, tokens = places + len(source), tokens + int(read.sum())
                if "span_corruption" in part.targets:  # of a denoised text the target is all of it
                    often.update(source[read].tolist())
    assert number == rows
    return places, tokens, often


@pytest.mark.parametrize(
    ("name", "held_out"),
    # Of rows that continue each other an epoch has no last step; what is read at random would not be the same.
    [(name, held_out) for name in RECIPES for held_out in (False, True) if held_out or name != "continued_pair"],
)
def test_packing_is_that_of_the_batches(name, held_out, distinct):
    base, changes = RECIPES[name]
    recipe = shrink(base, **changes)
    module = build_on_meta(recipe, distinct.tokenizer.size)
    batches = make_batches(recipe, module, distinct, 1, "validation" if held_out else "train")
    rows = batches.texts[0].format.size
    if held_out:
        rows = min(rows, recipe.training.validation_examples)
        parts = batches.fixed(rows)
    else:
        parts = [part for step in range(-(-rows // 8)) for part in batches.step(step)]
    places, tokens, often = counted(parts, rows, context=20 if name == "context" else 0)
    split = distinct.validation if held_out else distinct.train
    text = set(split.tokens.tolist()) - {distinct.tokenizer.unknown}
    assert len(text) == len(split.tokens)
    found = row_use.row_use_of(recipe, module, distinct, 1, held_out)
    if name != "denoising" or held_out:  # the last rows of an epoch share their padding with the next epoch's first
        assert found.filled == tokens / places
    if name == "continued_pair":
        assert (found.read, found.repeated) == (None, 0.0)
    else:
        assert found.read == len(text & often.keys()) / len(text)
        assert found.repeated == sum(often[token] > 1 for token in text) / len(text)
    assert (found.sampled, found.measured_tokens) == (False, len(text))
    if name in ALL_OF_IT and not held_out:
        assert (found.read, found.repeated) == (1.0, 0.0)


@pytest.mark.parametrize("name", ["segment_pair", "doc_sentences", "sop"])
def test_a_large_text_is_measured_on_a_part(name, distinct, capsys):
    """Nothing but the part's size is told apart from a text of that size; the line says so."""
    base, changes = RECIPES[name]
    recipe = shrink(base, **changes)
    whole = bakeoff.peek(recipe, distinct.path).packing
    with patch.object(row_use, "MEASURED_TOKENS", len(distinct.train.tokens) // 2):
        found = bakeoff.peek(recipe, distinct.path)
    assert found.packing.sampled
    assert 0.45 < found.packing.measured_tokens / len(distinct.train.tokens) <= 0.5
    margin = 5 * np.sqrt(0.25 * recipe.input.length / found.packing.measured_tokens)  # as if rows were all or nothing
    assert found.packing.filled == pytest.approx(whole.filled, abs=margin)
    assert found.packing.read == pytest.approx(whole.read, abs=margin)
    print_peek(found)
    out = " ".join(capsys.readouterr().out.split())
    assert f"an epoch reads {100 * found.packing.read:.1f} % of the text" in out
    assert "k of its tokens)" in out
    with patch.object(row_use, "MEASURED_TOKENS", 8):  # a token a stretch: no pair
        assert (bakeoff.peek(recipe, distinct.path).packing is None) == (name != "doc_sentences")
