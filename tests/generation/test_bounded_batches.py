"""Texts are answered in batches of a bounded size: no answer depends on its batch, and memory not on their number."""

import subprocess
import sys

import pytest
from tests.conftest import sentences, shrink
from tests.generation import answering
from tests.generation.answering import traced
from tests.untrained_runs import untrained

from bakeoff.errors import UserError
from bakeoff.generation import generate as generating
from bakeoff.generation import generator
from bakeoff.generation.config import GenerationConfig
from bakeoff.reading import text_files
from bakeoff.reading.text_files import TextFile, in_memory, read_ahead
from bakeoff.scoring import texts as scoring
from bakeoff.tasks import predict as predicting
from bakeoff.tasks.finetune import finetune
from bakeoff.tasks.finetune_config import FinetuneConfig
from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.tasks.kinds.classification import ClassificationConfig
from bakeoff.tasks.language import open_scores

VERBS = ["predict", "generate", "evaluate"]


@pytest.fixture(scope="module")
def runs(corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    rows = [f"{'yes' if 'river' in text else 'no'}\t{text}\n" for text in sentences(40)]
    (folder / "rows.tsv").write_text("label\ttext\n" + "".join(rows), encoding="utf-8")
    task = ClassificationConfig(train=folder / "rows.tsv", text_column="text", label_column="label")
    config = FinetuneConfig(epochs=10, least_steps=1, learning_rate=[1e-2])
    options = {"config": config, "tokenizer": corpus.path, "device": "cpu", "progress": False}
    gpt = untrained("gpt-tiny", corpus, folder / "gpt")
    predict = finetune(shrink("bert-tiny"), task, folder / "task", **options)
    return {"predict": predict.path, "generate": gpt.path, "evaluate": gpt.path}


def lines(count):
    """Texts of many lengths, some of them blank."""
    made = [text[: 4 * (i % 9)].rstrip() for i, text in enumerate(sentences(min(count, 2000), seed=5))]
    return [made[i % len(made)] for i in range(count)]


def written(path, texts):
    path.write_text("".join(text + "\n" for text in texts), encoding="utf-8")
    return path


@pytest.fixture
def windows(monkeypatch):
    def of(most, places=generator.POSITIONS):
        monkeypatch.setattr(predicting, "TEXTS_AT_ONCE", most)
        monkeypatch.setattr(generating, "PROMPTS_AT_ONCE", most)
        monkeypatch.setattr(scoring, "TEXTS_AT_ONCE", most)
        monkeypatch.setattr(generator, "POSITIONS", places)

    return of


def answers(verb, run, file):
    """What is said of each text: a number, or a text."""
    if verb == "predict":
        parts = predicting.predict_parts(FinetunedRun.open(run), TextFile(file, ["text"]), device="cpu")
        return [each.prediction.probabilities.max() for part in parts for each in part]
    if verb == "generate":
        config = GenerationConfig(tokens=6, top_p=0.9, seed=7)
        return [
            each.output
            for part in generating.write(run, TextFile(file, ["text"]), config, device="cpu")
            for each in part
        ]
    return [each.log_probability for each in open_scores(generating.Run.open(run), file, device="cpu")]


@pytest.mark.parametrize("verb", VERBS)
def test_an_answer_does_not_depend_on_its_batch(verb, runs, windows, tmp_path):
    file = written(tmp_path / "texts.txt", lines(60))
    together = answers(verb, runs[verb], file)
    assert len(set(together)) > 20
    for most, places in ((1, 1), (7, 40), (60, 100)):
        windows(most, places)
        found = answers(verb, runs[verb], file)
        assert found == (together if verb == "generate" else pytest.approx(together, abs=1e-4))


def test_what_is_sampled_follows_the_number_of_the_text_and_the_seed_alone(runs, tmp_path):
    texts = ["The river"] * 40
    found = answers("generate", runs["generate"], written(tmp_path / "texts.txt", texts))
    assert len(set(found)) > 20
    others = [f"{text} finds the old stone" for text in texts[:30]] + texts[30:]
    assert answers("generate", runs["generate"], written(tmp_path / "others.txt", others))[30:] == found[30:]
    config = GenerationConfig(tokens=6, top_p=0.9, seed=7)
    assert generating.generate(runs["generate"], texts[:3], config, device="cpu") == found[:3]


def test_the_largest_seed_draws(runs):
    config = GenerationConfig(tokens=6, seed=2**63 - 1)  # a million times as much is beyond what torch takes
    first = generating.generate(runs["generate"], ["The river"], config, device="cpu")
    assert first == generating.generate(runs["generate"], ["The river"], config, device="cpu")


def test_extreme_temperatures_are_the_limits(runs):
    greedy = GenerationConfig(tokens=6, temperature=0)
    cold = GenerationConfig(tokens=6, temperature=5e-324)
    assert generating.generate(runs["generate"], ["The river"], cold, device="cpu") == generating.generate(
        runs["generate"], ["The river"], greedy, device="cpu"
    )
    hot = GenerationConfig(tokens=6, temperature=1e308)
    assert generating.generate(runs["generate"], ["The river"], hot, device="cpu") != [""]


def test_windows_begin_small_and_are_bounded(monkeypatch):
    texts = in_memory([str(i) for i in range(500)])
    sizes = [len(part) for part in read_ahead(texts, 100)]
    assert sizes == [32, 64, 100, 100, 100, 100, 4]
    assert [text for part in read_ahead(texts, 100) for text in part] == texts
    monkeypatch.setattr(text_files, "CHARACTERS_AT_ONCE", 50)
    assert max(len(part) for part in read_ahead(in_memory(["x" * 30] * 10), 100)) == 2


def test_a_text_that_is_too_long_is_named_by_its_number(runs, windows):
    windows(4)
    texts = ["The river"] * 9 + ["river " * 600]
    with pytest.raises(UserError, match=r"^text 10 \('river river .*tokens are too long for this model, which has 512"):
        generating.generate(runs["generate"], texts, device="cpu")


@pytest.mark.parametrize("verb", VERBS)
def test_memory_does_not_grow_with_the_texts(verb, runs, windows, tmp_path):
    windows(64)
    few, many = (written(tmp_path / f"{count}.txt", lines(count)) for count in (200, 1000))
    traced(verb, runs[verb], few)  # what is made once is made
    small, count = traced(verb, runs[verb], few)
    assert count == 200
    large, count = traced(verb, runs[verb], many)
    assert count == 1000
    assert large < small + 64_000  # 80 bytes a text


@pytest.mark.slow
@pytest.mark.parametrize("verb", VERBS)
def test_the_memory_of_the_process_is_that_of_a_short_file(verb, runs, tmp_path):
    taken = {}
    for count in (10_000, 200_000):
        file = written(tmp_path / f"{count}.txt", lines(count))
        command = [sys.executable, answering.__file__, verb, str(runs[verb]), str(file)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found, taken[count] = map(int, done.stdout.split())
        assert found == count
    assert taken[200_000] < 1.05 * taken[10_000]
