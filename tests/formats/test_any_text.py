"""Every objective on every format that it can read, whatever the text: short, empty, endless, of any script.

What a batch promises is checked on batches as a training makes them, and what an epoch promises on all rows of one.
"""

import json
import re
from tempfile import TemporaryDirectory
from unittest.mock import patch

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conftest import shrink
from tests.formats.invariants import check_batch, check_epoch, check_originals, joined

from bakeoff.batching import order
from bakeoff.batching.batches import Batches, BatchSizes
from bakeoff.batching.rows import TargetDrawing, TextRows
from bakeoff.errors import UserError
from bakeoff.formats.registry import FORMATS
from bakeoff.objectives.legality import memory_refusal, refusal
from bakeoff.objectives.registry import OBJECTIVES
from bakeoff.preparation.prepare import prepare
from bakeoff.tokenizer.tokenizer import Tokenizer
from bakeoff.tokenizer.tokenizer_config import TokenizerConfig

# Pairs of texts are another kind of corpus, with tests of their own.
FORMATS = {name: config for name, config in FORMATS.items() if not config.parallel}
OBJECTIVES = {kind: config for kind, config in OBJECTIVES.items() if kind != "translation"}

OBJECTIVE_OPTIONS = {
    "mlm": [{}, {"ngram": 3}, {"whole_word": True, "rate": 0.9}, {"masking": "static"}],
    "mntp": [
        {},
        {"causal": 0.5, "ngram": 3, "runs": "tokens", "replace": "run"},
        {"causal": 0.5, "rate": 0.9, "masking": "static"},
    ],
    "permutation": [{}, {"ngram": 1, "rate": 0.9}],
    "word_structure": [{"rate": 0.05}, {"rate": 1 / 3}],
    "span_corruption": [{}, {"rate": 0.9, "span": 1.0, "marks": 7}],
    "denoising": [
        {},
        {"rate": 0.9, "span": 0.5},
        {"permute": False},
        {"noise": "masking"},
        {"noise": "deletion", "rate": 0.9},
        {"noise": "none", "permute": False, "rotate": True},
        {"permute": False, "rotate": True},
    ],
}
FORMAT_OPTIONS = {
    "blocks": [{"isolate": isolate, "context": context} for isolate in (False, True) for context in (0, 5)]
    + [{"isolate": False, "recurrent": True}],
    "continued_pair": [{"reuse": 1}, {"reuse": 1, "unrelated": 1.0, "backwards": False}],
    "full_sentences": [{"isolate": False}, {"isolate": True}],
    "segment_pair": [{}, {"short": 0.3}],
}
NAMES = ("bert-tiny", "xlnet-tiny", "gpt-tiny", "transformer-xl-tiny", "elmo-tiny", "t5-tiny")
MODELS = {name: shrink(name).model for name in NAMES}


def legal(kind):
    """All formats that an objective can read, each with a model that it can train."""
    for name, config in FORMATS.items():
        for options in FORMAT_OPTIONS.get(name, [{}]):
            rows = config(length=12, **options)
            part = OBJECTIVES[kind]()
            reasons = ((model, refusal(part, model, rows) or memory_refusal(model, rows)) for model in MODELS.values())
            model = next((model for model, reason in reasons if reason is None), None)
            if model is not None:
                yield model, name, options


LEGAL = {kind: list(legal(kind)) for kind in OBJECTIVES}

SCRIPTS = [
    "The river finds the old stone.",
    "No end in sight and no full stop either",
    "河上的橋很老。",
    "他說：「好！」然後走了。",
    "ذهب الولد إلى المدرسة.",
    "הילד הלך לבית הספר.",
    "👩‍👩‍👧 👍🏽 🇩🇪!",
    "né Łódź, ŷ̈ ﬁ Ⅷ.",
    "[MASK] [SEP] <s>.",
    "x.",
    "?",
    "word " * 60,
    "a" * 90,
    "字" * 70,
]
sentences = st.sampled_from(SCRIPTS) | st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
paragraphs = st.lists(sentences, max_size=6).map(" ".join)
documents = st.lists(paragraphs, max_size=4).map("\n\n".join)
texts = st.lists(documents, min_size=1, max_size=7)


@pytest.fixture(scope="module")
def characters(tmp_path_factory):
    """A tokenizer that knows the characters above; those of random text are unknown to it."""
    config = TokenizerConfig(kind="character", size=1000)
    path = tmp_path_factory.mktemp("characters") / "tokenizer.json"
    Tokenizer.train(config, SCRIPTS).save(path)
    return path


def refused(error, reasons):
    """A refusal is one line that gives one of these reasons."""
    assert "\n" not in str(error)
    assert re.search(reasons, str(error)), str(error)


def corpus_of(text, folder, tokenizer):
    """A corpus of the text; None where that is too small for one, which is said so."""
    with open(f"{folder}/text.jsonl", "w", encoding="utf-8") as file:
        file.writelines(json.dumps({"text": document}) + "\n" for document in text)
    try:
        return prepare(f"{folder}/text.jsonl", f"{folder}/corpus", tokenizer=tokenizer, validation=0.2, workers=0)
    except UserError as error:
        refused(error, "nothing is left to train on|nothing is left to hold out|there is no text here")
        return None


def batches_of(corpus, rows, configs, model, seed, micro_batch=8):
    """The batches of a training of some objectives; None where the text has no rows for them."""
    vocabulary = corpus.tokenizer.size + sum(config.extra_tokens for config in configs)
    with torch.device("meta"):
        objectives = [config.build(model, vocabulary) for config in configs]
    try:
        drawing, sizes = TargetDrawing(configs, objectives), BatchSizes(8, micro_batch)
        found = Batches([TextRows(corpus.train, corpus.tokenizer, rows, drawing, seed)], sizes, seed)
        found.step(0)
        return found
    except UserError as error:
        few = "no example of two tokens or more"
        pairs = "no two sentences of one document that fit|takes text from other documents"
        streams = "8 rows go through the text side by side"
        refused(error, "|".join([few, *[pairs] * rows.pairs, *[streams] * rows.continues]))
        return None


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(texts, st.data())
def test_all_objectives_on_any_text(characters, text, data):
    # Fewer rows at once, because those of a tiny text belong to hundreds of epochs.
    with TemporaryDirectory() as folder, patch.object(order, "EXAMPLES_AT_ONCE", 16):
        corpus = corpus_of(text, folder, characters)
        if corpus is None:
            return
        for kind in OBJECTIVES:
            model, name, options = data.draw(st.sampled_from(LEGAL[kind]))
            rows = FORMATS[name](length=data.draw(st.sampled_from([6, 7, 12, 40])), **options)
            configs = [OBJECTIVES[kind](**data.draw(st.sampled_from(OBJECTIVE_OPTIONS.get(kind, [{}]))))]
            if kind not in ("mlm", "permutation") and refusal(OBJECTIVES["mlm"](), model, rows) is None:
                configs.insert(data.draw(st.integers(0, 1)), OBJECTIVES["mlm"]())
            if kind == "mntp":
                configs.insert(data.draw(st.integers(0, 1)), OBJECTIVES["clm"]())
            made = batches_of(corpus, rows, configs, model, seed=3)
            if made is None:
                continue
            check_epoch(made, rows, corpus)
            for step in (0, 6):
                whole, slots = joined(made.step(step), model.directions)
                check_batch(whole, slots, rows, configs, corpus.tokenizer, model.directions)
                check_originals(made, step, whole, slots, [config.kind for config in configs], model.directions)
            again = batches_of(corpus, rows, configs, model, 3, micro_batch=3).step(6)
            assert [len(part.row.ids) for part in again] == [3, 3, 2]
            again, _ = joined(again, model.directions)
            assert again.keys() == whole.keys()
            assert all(np.array_equal(again[key], whole[key]) for key in whole)
