"""Every recipe that scores texts, by the definition of its scores; so does every one that fills masks."""

import math

import pytest
import torch
from tests.scoring.naive_scores import Naive
from tests.untrained_runs import untrained

import bakeoff
from bakeoff.recipe_files import load_recipe, recipe_names
from bakeoff.scoring.methods import WordStarts, readings
from bakeoff.scoring.options import ScoreOptions
from bakeoff.scoring.windows import windows_around
from bakeoff.tasks.language import open_scores
from bakeoff.using.filling import filling_objective

TINY = [name for name in recipe_names() if name.endswith("-tiny")]
SCORING = [name for name in TINY if any(each.scoring for each in load_recipe(name).objective)]
FILLING = [name for name in SCORING if not load_recipe(name).model.sequence_to_sequence]
TEXT = "The river finds the old stone."
SHORT = "stone the"


def ids_of(run, text):
    return run.tokenizer.encode([text])[0][0].tolist()


@pytest.mark.parametrize("name", SCORING)
def test_every_token_has_its_log_probability(name, corpus, parallel_corpus, tmp_path):
    parallel = load_recipe(name).input.parallel
    run = untrained(name, parallel_corpus if parallel else corpus, tmp_path / "run")
    loaded = bakeoff.load(run, device="cpu")
    objective = next(each for each in run.recipe.objective if each.scoring)
    naive = Naive(run, objective)
    if objective.scoring == "target":
        pairs = [("1 2 3", "one two"), ("4", "five six seven")] if parallel else [(TEXT, SHORT), (SHORT, TEXT)]
        expected = [naive.of_target(*pair) for pair in pairs]
        found = loaded.score(*zip(*pairs, strict=True), per="token")
    else:
        ids = [own.tolist() for own, _ in run.tokenizer.encode([TEXT, SHORT])]
        expected = [naive.of_text(own) for own in ids]
        found = loaded.score([TEXT, SHORT], per="token")
    for own, score in zip(expected, found, strict=True):
        assert [-each.surprisal * math.log(2) for each in score.parts] == pytest.approx(own, abs=2e-3)
        assert score.log_probability == pytest.approx(math.fsum(own), abs=5e-3)


def likeliest(run, scores, count):
    """The likeliest tokens that a text may contain, with their share of all."""
    shares = scores.exp()
    shares[torch.from_numpy(run.tokenizer.special_ids)] = -1.0
    best, tokens = shares[: run.tokenizer.size].topk(count)
    return tokens.tolist(), best.tolist()


def filled(naive, text):
    """The distribution at each mask of a text."""
    tokenizer = naive.tokenizer
    parts = [own.tolist() for own, _ in tokenizer.encode([part.rstrip() for part in text.split("[MASK]")])]
    if naive.objective.scoring == "forwards":
        return [naive.after([tokenizer.opening, *parts[0]])]
    ids = [token for part in parts for token in (*part, tokenizer.mask)][:-1]
    places = [place for place, token in enumerate(ids) if token == tokenizer.mask]
    return [naive.at(ids, place, places) for place in places]


@pytest.mark.parametrize("name", FILLING)
def test_every_mask_has_the_likeliest_tokens_and_their_share(name, corpus, tmp_path):
    run = untrained(name, corpus, tmp_path / "run")
    naive = Naive(run, filling_objective(run))
    texts = ["The [MASK] finds the old [MASK] and a", "[MASK]", "stone and the [MASK] river"]
    if naive.objective.scoring == "forwards":
        texts = ["The river finds the old [MASK]", "[MASK]", "stone and the [MASK] "]
    for text, found in zip(texts, bakeoff.load(run, device="cpu").fill(texts, k=3), strict=True):
        expected = [likeliest(run, scores, 3) for scores in filled(naive, text)]
        assert [[each.id for each in own] for own in found] == [tokens for tokens, _ in expected]
        for own, (tokens, shares) in zip(found, expected, strict=True):
            assert [each.probability for each in own] == pytest.approx(shares, rel=5e-3)
            assert [each.token for each in own] == [run.tokenizer.decode([token]).strip() for token in tokens]


@pytest.mark.parametrize("name", ["gpt2-tiny", "lstm-lm-tiny", "elmo-tiny"])
def test_behind_a_long_text_its_end_is_read(name, corpus, tmp_path):
    run = untrained(name, corpus, tmp_path / "run", **{"input.length": 8})
    naive, loaded = Naive(run, filling_objective(run)), bakeoff.load(run, device="cpu")
    ids = run.tokenizer.encode([text := f"{TEXT} {TEXT} The river"])[0][0].tolist()
    ((best, *_),) = loaded.fill(f"{text} [MASK]")
    ((token, *_), (share, *_)) = likeliest(run, naive.after([run.tokenizer.opening, *ids[-7:]]), 1)
    assert (best.id, best.probability) == (token, pytest.approx(share, rel=5e-3))


@pytest.mark.parametrize("whole_words", [False, True])
@pytest.mark.parametrize("stride", [None, 3])
@pytest.mark.parametrize("name", ["bert-tiny", "xlnet-tiny", "gpt-bert-tiny", "electra-tiny"])
def test_in_a_long_text_each_token_is_scored_in_its_window(name, stride, whole_words, corpus, tmp_path):
    changes = {"input.length": 12} | ({"input.reuse": 4} if name == "xlnet-tiny" else {})
    run = untrained(name, corpus, tmp_path / "run", **changes)
    reading = "pseudo_words" if whole_words else "pseudo"
    text = f"gardening forests finds. {TEXT} {TEXT}"
    options = ScoreOptions(stride=stride, per="token", reading=reading)
    (found,) = open_scores(run, [(text,)], options, device="cpu")
    naive, expected = Naive(run, readings(run)[reading]), []
    ids, starts = run.tokenizer.encode([text])[0]
    opens = WordStarts(run.tokenizer).starts(ids, starts).tolist()
    room = 11 if name == "gpt-bert-tiny" else 10  # a separator, or [CLS] and [SEP]
    for begin, end, scored, until in windows_around(len(ids), room, stride):
        for place in range(scored, until):
            last = place + 1
            while whole_words and last < end and not opens[last]:
                last += 1
            own, hidden = ids[begin:end].tolist(), range(place - begin, last - begin)
            expected.append(float(naive.at(own, place - begin, hidden)[ids[place]]))
    assert len(ids) > 20
    assert [-each.surprisal * math.log(2) for each in found.parts] == pytest.approx(expected, abs=2e-3)


@pytest.mark.parametrize("kinds", [("mlm", "permutation"), ("permutation", "mlm")])
def test_of_several_objectives_the_first_scores(kinds, corpus, tmp_path):
    run = untrained("xlnet-tiny", corpus, tmp_path / "run", objective=[{"kind": kind} for kind in kinds])
    first, other = (Naive(run, objective) for objective in run.recipe.objective)
    ids = ids_of(run, SHORT)
    expected = math.fsum(first.of_text(ids))
    assert expected != pytest.approx(math.fsum(other.of_text(ids)), abs=1e-2)
    assert {each.kind for each in readings(run).values()} == {kinds[0]}
    for reading in (None, "pseudo"):
        (found,) = bakeoff.load(run, device="cpu").score([SHORT], reading=reading)
        assert found.log_probability == pytest.approx(expected, abs=2e-3)
    assert filling_objective(run).kind == kinds[0]


def test_a_last_classifier_token_has_a_segment_of_its_own(corpus, tmp_path):
    """Where segments have vectors, the third one; relative attention only tells it from those of the text."""
    changes = {"objective": [{"kind": "mlm"}], "model.embedding.segments": 3}
    run = untrained("xlnet-tiny", corpus, tmp_path / "run", **changes)
    ids = ids_of(run, TEXT)
    loaded = bakeoff.load(run, device="cpu")
    found, short = loaded.score([TEXT, "river"])
    naive = Naive(run, run.recipe.objective[0])
    assert found.log_probability == pytest.approx(math.fsum(naive.of_text(ids)), abs=2e-3)
    assert short.log_probability == pytest.approx(math.fsum(naive.of_text(ids_of(run, "river"))), abs=2e-3)
