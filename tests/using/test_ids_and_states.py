"""Logits, states and vectors of a run in memory, of each row alone; what is counted and kept."""

import numpy as np
import pytest
import torch
from tests.conftest import shrink
from tests.untrained_runs import untrained

import bakeoff
from bakeoff.errors import UserError
from bakeoff.generation.generator import Generator
from bakeoff.row import Row, Source
from bakeoff.vectors.options import VectorConfig


def test_sources_of_other_lengths_are_read_as_each_is_alone(corpus, tmp_path):
    run = bakeoff.load(untrained("bart-tiny", corpus, tmp_path / "run"), device="cpu")
    module, pad = bakeoff.Run.open(run.path).load(), run.tokenizer.pad
    sources, targets = [[7, 8, 9, 10, 11], [12], [13, 14, 15]], [[20], [21, 22, 23], [24, 25]]
    expected = []
    for source, target in zip(sources, targets, strict=True):
        with torch.no_grad():
            hidden = module.model(Row(torch.tensor([target]), source=Source(torch.tensor([source]))))[0][0]
            expected.append(module.objectives[0].head.scores(hidden, module.model.embedding.weight))
    arrays = [np.array([row + [pad] * (6 - len(row)) for row in rows]) for rows in (targets, sources)]
    for found in (run.logits(targets, source=sources), run.logits(arrays[0], source=arrays[1])):
        for row, own in enumerate(expected):
            torch.testing.assert_close(found[row, : len(own)], own, atol=1e-3, rtol=1e-4)
    for source in sources:
        with torch.no_grad():
            states = module.model.encode(Source(torch.tensor([source])))[0][0]
        torch.testing.assert_close(run.hidden([source])[0], states, atol=1e-4, rtol=1e-4)
    for padded in (run.hidden(arrays[1]), run.hidden(sources)):
        torch.testing.assert_close(padded[1, :1], run.hidden([sources[1]])[0], atol=1e-4, rtol=1e-4)


def test_the_last_token_and_the_last_position_are_the_models(corpus, tmp_path):
    run = bakeoff.load(untrained("bert-tiny", corpus, tmp_path / "run"), device="cpu")
    size, longest = len(run._model.embedding.weight), run.recipe.model.longest_input
    assert run.logits([[size - 1]]).shape == (1, 1, size)
    assert run.hidden([[7] * longest]).shape[1] == longest
    with pytest.raises(UserError, match=f"there is no token {size}; the vocabulary has {size}"):
        run.logits([[size]])
    with pytest.raises(UserError, match=rf"row 2: {longest + 1:,} tokens; the model has {longest:,} positions"):
        run.hidden([[7], [7] * (longest + 1)])


@pytest.mark.parametrize(("name", "segments"), [("bert-tiny", 2), ("xlnet-tiny", 3)])
def test_segments_reach_logits_and_states_of_their_own_row(name, segments, corpus, tmp_path):
    run = bakeoff.load(untrained(name, corpus, tmp_path / "run"), device="cpu")
    rows, own = [[7, 8, 9], [10, 11]], [[0, 1, segments - 1], [1, 0]]
    for read in (run.logits, run.hidden):
        found = read(rows, segments=own)
        for row, (ids, numbers) in enumerate(zip(rows, own, strict=True)):
            torch.testing.assert_close(found[row, : len(ids)], read([ids], segments=[numbers])[0], atol=1e-3, rtol=1e-4)
        assert not torch.allclose(found[0], read(rows)[0], atol=1e-3)
        with pytest.raises(UserError, match=f"the model tells {segments} apart"):
            read([[7, 8]], segments=[[0, segments]])


def test_logits_are_those_of_the_first_objective_that_predicts_tokens(corpus, tmp_path):
    relation = next(each.kind for each in shrink("bert-tiny").objective if not each.token_targets)
    objectives = [{"kind": relation}, {"kind": "mlm"}]
    run = bakeoff.load(untrained("bert-tiny", corpus, tmp_path / "a", objective=objectives), device="cpu")
    assert {"logits", "fill", "score"} <= run.capabilities
    assert run.logits([[7, 8]]).shape == (1, 2, len(run._model.embedding.weight))
    kinds = [{"kind": kind} for kind in ("mlm", "permutation")]
    both = untrained("xlnet-tiny", corpus, tmp_path / "b", objective=kinds)
    module = both.load()
    head = next(each.head for each in module.objectives if each.name == "mlm")
    with torch.no_grad():
        expected = head.scores(module.model(Row(torch.tensor([[7, 8, 9]])))[0][0], module.model.embedding.weight)
    torch.testing.assert_close(bakeoff.load(both, device="cpu").logits([[7, 8, 9]])[0], expected, atol=1e-3, rtol=1e-4)


def test_a_model_of_two_directions_predicts_forwards(corpus, tmp_path):
    """What stands after changes nothing; each row is what all of it before gives."""
    run = bakeoff.load(untrained("elmo-tiny", corpus, tmp_path / "run"), device="cpu")
    one, other = run.logits([[7, 8, 9, 10], [7, 8, 11, 12]])
    torch.testing.assert_close(one[:2], other[:2])
    assert not torch.allclose(one[2], other[2], atol=1e-3)


def test_every_prompt_has_the_seed_of_its_place_and_every_token_is_counted(corpus, tmp_path, monkeypatch):
    run = bakeoff.load(untrained("gpt2-tiny", corpus, tmp_path / "run"), device="cpu")
    written, write = [], Generator.write

    def watched(self, *arguments, **options):
        written.extend(found := write(self, *arguments, **options))
        return found

    monkeypatch.setattr(Generator, "write", watched)
    seeds = list(range(100, 175))  # more than are read at once
    found = run.generate(["The river"] * 75, seeds=seeds, tokens=6)
    assert len(set(found)) > 60
    assert [found[place] for place in (0, 31, 32, 40, 74)] == [
        run.generate("The river", seed=seeds[place], tokens=6) for place in (0, 31, 32, 40, 74)
    ]
    assert run.tokens_written == sum(map(len, written))
    before = run.tokens_written
    assert len("".join(run.stream("The river", tokens=6, seed=1))) > 0
    assert before < run.tokens_written <= before + 6


def test_vectors_have_the_settings_that_are_asked_for(corpus, tmp_path):
    run = bakeoff.load(untrained("bert-tiny", corpus, tmp_path / "run"), device="cpu")
    texts = ["The river finds the old stone and the river.", "river"]
    for settings in ({}, {"pooling": "max"}, {"layers": (0,)}, {"length": 9}, {"layers": (0, 1), "length": 8}):
        expected = bakeoff.embed(run.path, texts, device="cpu", **settings)
        np.testing.assert_allclose(run.embed(texts, **settings), expected, atol=1e-5)
    plain, first, short = (run.embed_words(texts, **each)[0].vectors for each in ({}, {"layers": (0,)}, {"length": 9}))
    assert not np.allclose(plain, first, atol=1e-3)
    assert not np.allclose(plain, short, atol=1e-3)
    assert run.embedder(VectorConfig()) is run.embedder(VectorConfig())
    assert run.embedder(VectorConfig()) is not run.embedder(VectorConfig(length=9))
