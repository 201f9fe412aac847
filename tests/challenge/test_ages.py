"""Ages of acquisition, of words whose curves are given: the points at which they are learned are known exactly."""

import numpy as np
import pytest

from bakeoff.challenge.acquisition import AGES, AgeScore, WordInContext, age_score, read_ages
from bakeoff.errors import UserError
from bakeoff.tokenizer.tokenizer import Tokenizer
from bakeoff.tokenizer.tokenizer_config import TokenizerConfig
from tests.conftest import sentences

transformers = pytest.importorskip("transformers")

STEPS = {f"chck_{words}M": words * 1e6 for words in [*range(1, 10), *range(10, 101, 10)]}


@pytest.fixture(scope="module", params=["wordpiece", "byte_bpe"])
def tokenizer(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    Tokenizer.train(TokenizerConfig(kind=request.param, size=500), sentences(200)).save(path)
    return path


def logistic(x, a, b, c, d):
    return a / (1 + np.exp(-b * (x - c))) + d


def where(y, a, b, c, d):
    return c - np.log(a / (y - d) - 1) / b


def write_children(path, curves, ages=AGES):
    """Shares of children by age, of words with curves of their own."""
    rows = [["word", *ages], *([word, *(logistic(age, *curve) for age in ages)] for word, curve in curves.items())]
    path.write_text("".join(",".join(map(str, row)) + "\n" for row in rows), encoding="utf-8")
    return path


def test_half_of_the_children_say_a_word_at_the_age_that_its_curve_has(tmp_path):
    curves = {"dog": (1.0, 0.4, 20.0, 0.0), "stone": (0.8, 0.6, 22.0, 0.1), "late": (1.0, 0.3, 60.0, 0.0)}
    path = write_children(tmp_path / "cdi_human.csv", curves)
    rows = path.read_text(encoding="utf-8").splitlines()
    dog = rows[1].split(",")
    rows += [f"dog,{','.join(['1'] * 15)}", ",".join(["gaps", "NA", "", *dog[3:]]), f"two,0.1,0.9{',' * 13}"]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    expected = {"dog": 20.0, "stone": where(0.5, *curves["stone"]), "gaps": 20.0}
    assert read_ages(path) == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("token,16,17,18\na,0,0,0\n", "has no column word"),
        (
            "word,12,16,17\na,0,0,0\n",
            "has no shares of children by their age; its columns should be word, 16, 17, ... 30",
        ),
        ("word,16,17,18\na,0,few,0\n", ":2: column 17: 'few' is not a number"),
    ],
)
def test_a_file_of_another_form_is_refused(text, message, tmp_path):
    path = tmp_path / "cdi_human.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UserError) as error:
        read_ages(path)
    assert str(error.value).startswith(str(path))
    assert str(error.value).endswith(message)


def planted(tokenizer, words, points, generator):
    """Surprisals of two contexts each, on curves from chance down, and where each is halfway, by hand."""
    theirs = transformers.PreTrainedTokenizerFast(tokenizer_file=str(tokenizer))
    x = np.log10(np.array([*STEPS.values()]) + 1)
    rows, contexts, halves = [], [], []
    for word, point in zip(words, points, strict=True):
        tokens = len(theirs(f"The {word}", add_special_tokens=False)["input_ids"])
        tokens -= len(theirs("The", add_special_tokens=False)["input_ids"])
        chance = tokens * np.log(theirs.vocab_size)
        curve = (chance - 2.0, 6.0, point, -chance - 0.5)
        surprisal = -logistic(x, *curve)
        halves.append(where(-(chance + surprisal.min()) / 2, *curve))
        apart = generator.uniform(0.1, 0.5, len(x))
        rows += [surprisal + apart, surprisal - apart]
        contexts += [WordInContext(word, number, "context") for number in range(2)]
    return contexts, dict(zip(STEPS, np.array(rows).T.tolist(), strict=True)), np.array(halves)


@pytest.mark.parametrize("sign", [1, -1])
def test_the_score_is_the_correlation_of_the_points_at_which_curves_are_halfway(sign, tokenizer, tmp_path):
    generator = np.random.default_rng(1)
    words = ["river", "stone", "garden", "zebra", "unbelievable", "of", "morning", "xylophone"]
    points = np.linspace(6.6, 7.6, len(words)) + generator.uniform(-0.1, 0.1, len(words))
    contexts, surprisals, halves = planted(tokenizer, words, points, generator)
    ages = 23 + sign * np.linspace(-4, 4, len(words)) + generator.uniform(-1, 1, len(words))
    curves = {word: (1.0, 0.5, age, 0.0) for word, age in zip(words, ages, strict=True)}
    children = read_ages(write_children(tmp_path / "cdi_human.csv", curves))
    found = age_score(contexts, surprisals, children, tokenizer)
    assert found.words == len(words)
    assert found.correlation == pytest.approx(np.corrcoef(halves, ages)[0, 1], abs=2e-3)
    assert found.official == 100 * found.correlation
    assert sign * found.official > 80
    in_another_order = dict(reversed(surprisals.items()))
    assert age_score(contexts, in_another_order, children, tokenizer) == found
    few = {word: children[word] for word in words[:2]} | {"unheard": 20.0}
    alone = age_score(contexts, surprisals, few, tokenizer)
    assert (alone.words, alone.correlation, alone.official) == (2, None, 0.0)


def test_words_that_are_learned_outside_of_the_checkpoints_do_not_count(tokenizer):
    generator = np.random.default_rng(2)
    words = ["river", "stone", "garden", "early", "late"]
    contexts, surprisals, _ = planted(tokenizer, words, [6.8, 7.1, 7.4, 5.0, 9.5], generator)
    surprisals = {step: [*values] for step, values in surprisals.items()}
    children = dict(zip(words, [18.0, 20.0, 23.0, 17.0, 29.0], strict=True))
    assert age_score(contexts, surprisals, children, tokenizer).words == 3
    two = dict([*surprisals.items()][:2])
    assert age_score(contexts, two, children, tokenizer).words == 0


def test_a_correlation_that_may_be_chance_counts_as_none():
    assert AgeScore(correlation=0.3, p=0.11, words=9).official == 0.0
    assert AgeScore(correlation=-0.3, p=0.1, words=30).official == pytest.approx(-30.0)
