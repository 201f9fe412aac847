"""What a corpus's size costs: nothing that grows with it, once its index is made."""

import tracemalloc

import numpy as np
import pytest
from tests.conftest import shrink

from bakeoff.batching.batches import Batches, BatchSizes
from bakeoff.batching.rows import TargetDrawing, TextRows
from bakeoff.corpus.manifest import SplitCounts
from bakeoff.corpus.split import Split, map_array
from bakeoff.learner.pretraining_model import build_on_meta

SENTENCES, EACH = 4_000_000, 20
MOST = 12_000_000
"""Bytes for a batch; the array of sentences alone has 32 million."""

FORMATS = {
    "blocks": {"isolate": False},
    "full_sentences": {},
    "doc_sentences": {},
    "segment_pair": {},
    "sentence_pair": {},
}


class SparseText(Split):
    """Eighty million tokens, all zero, in documents of 2,000 sentences."""

    def __init__(self, folder):
        tokens = SENTENCES * EACH
        for name, size in (("tokens", 2 * tokens), ("words", tokens // 8 + 1)):
            with (folder / name).open("wb") as file:
                file.truncate(size)
        np.arange(0, tokens + 1, EACH).tofile(folder / "sentences")
        self.index_path = folder / "indexes" / "train"
        self.tokens = map_array(folder / "tokens", "uint16", scattered=True)
        self._words = map_array(folder / "words", "uint8", scattered=True)
        self.sentences = map_array(folder / "sentences", "int64", scattered=False)
        self.documents = np.arange(0, tokens + 1, 2000 * EACH)
        self.originals = np.arange(len(self.documents) - 1)
        self.bytes = tokens
        count = {"sentences": SENTENCES, "documents": len(self.originals), "words": 0, "unigram_entropy": 1.0}
        self.counts = SplitCounts(tokens=tokens, bytes=tokens, **count)


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    return SparseText(tmp_path_factory.mktemp("large"))


def batches_of(text, tokenizer, name, format, kinds):
    rows = {"format": format, "length": 64, **FORMATS.get(format, {})}
    recipe = shrink(name, input=rows, objective=[{"kind": kind} for kind in kinds])
    objectives = build_on_meta(recipe, tokenizer.size).objectives
    rows = TextRows(text, tokenizer, recipe.input, TargetDrawing(recipe.objective, objectives), seed=0)
    return Batches([rows], BatchSizes(32, 32), seed=0)


CASES = [("bert-tiny", format, ["mlm"]) for format in FORMATS]
CASES += [("bert-tiny", "segment_pair", ["mlm", kind]) for kind in ("nsp", "sop", "sentence_structure")]
CASES += [("gpt-tiny", "blocks", ["clm"]), ("t5-tiny", "blocks", ["span_corruption"])]


@pytest.mark.parametrize(
    ("name", "format", "kinds"), [*CASES[::2], *(pytest.param(*each, marks=pytest.mark.slow) for each in CASES[1::2])]
)
def test_a_batch_takes_memory_for_itself_alone(text, corpus, name, format, kinds):
    batches_of(text, corpus.tokenizer, name, format, kinds)  # makes the index
    tracemalloc.start()
    try:
        parts = batches_of(text, corpus.tokenizer, name, format, kinds).step(123_456)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(parts[0].row.ids) == 32
    assert peak < MOST
