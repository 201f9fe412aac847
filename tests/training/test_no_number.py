"""A figure over nothing is no number: not in metrics, lists and cards, and not the best of a search."""

import math
import random

import pytest
from tests.conftest import shrink

from bakeoff.cli import run as bakeoff
from bakeoff.corpus.store import Corpus
from bakeoff.errors import UserError
from bakeoff.optimization.budget import Budget
from bakeoff.overview.listing import list_runs
from bakeoff.preparation.prepare import prepare
from bakeoff.reading.text_files import in_memory
from bakeoff.scoring.minimal_pairs import MinimalPair, judge
from bakeoff.scoring.texts import TextScores
from bakeoff.scoring.totals import Totals
from bakeoff.tasks.evaluate import evaluate
from bakeoff.tokenizer.tokenizer import Tokenizer
from bakeoff.tokenizer.tokenizer_config import TokenizerConfig
from bakeoff.training.pretrain import pretrain
from bakeoff.training.validation import ALL_UNKNOWN
from bakeoff.tuning.tune import tune

ENGLISH = "the old city lies behind the hill and the river runs below it"


def foreign(lines: int) -> str:
    draw = random.Random(lines)
    return "\n".join(" ".join(draw.choice(["Жизнь", "Город", "Река"]) for _ in range(12)) for _ in range(lines))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Corpora of a tokenizer for English: one whose held-out text is unknown, and one that is unknown as a whole."""
    path = tmp_path_factory.mktemp("unknown")
    Tokenizer.train(TokenizerConfig(kind="wordpiece", size=200), [ENGLISH] * 3).save(path / "tokenizer.json")
    (path / "english.txt").write_text("\n".join([ENGLISH] * 100))
    (path / "foreign.txt").write_text(foreign(100))
    (path / "held_out.txt").write_text(foreign(30))
    options = {"tokenizer": path / "tokenizer.json", "document_per_line": True, "workers": 0}
    prepare(path / "english.txt", path / "c", validation=[path / "held_out.txt"], **options)
    prepare(path / "foreign.txt", path / "all", validation=[path / "held_out.txt"], **options)
    return path


@pytest.fixture(scope="module", params=["bert-tiny", "gpt-tiny"])
def run(folder, request):
    """Runs of a masked model, for which nothing held out is a target, and of a causal one, with targets all unknown."""
    recipe = shrink(request.param, objective=[{"kind": "mlm" if request.param == "bert-tiny" else "clm"}])
    recipe = recipe.changed({"input": {"format": "blocks", "length": 32}})
    return pretrain(recipe, folder / "c", folder / request.param, budget=Budget(steps=2), progress=False)


def test_a_loss_over_nothing_is_no_number_anywhere(run, folder, capsys):
    (name,) = run.summary["validation"]["losses"]
    for line in [line for line in run.metrics() if line["kind"] == "validation"] + [run.summary["validation"]]:
        assert line["loss"] is None
        for figure in ("losses", "accuracy", "perplexity", "bits_per_byte"):
            assert line[figure] == {name: None}
        assert line["no_number"] == {name: ALL_UNKNOWN}
    assert "NaN" not in (run.path / "metrics.jsonl").read_text()
    assert "no number" in (run.path / "README.md").read_text()
    (entry,) = [each for each in list_runs(folder) if each.path == run.path]
    assert entry.loss is None
    figures = evaluate(run.path, corpus=folder / "c", device="cpu")
    assert (figures["losses"], figures["perplexity"]) == ({name: None}, {name: None})
    assert "perplexity_per_word" not in figures
    assert bakeoff(["evaluate", str(run.path), "--corpus", str(folder / "c"), "--device", "cpu"]) == 0
    shown = capsys.readouterr().out
    assert f"validation {name}  no number: {ALL_UNKNOWN}" in shown
    assert "0.0000" not in shown
    assert "360 of 360 tokens (100.0 %) are unknown and hide" in shown


def test_what_is_partly_hidden_has_no_bits_per_byte(folder, tmp_path):
    (tmp_path / "half.txt").write_text("\n".join([ENGLISH] * 20) + "\n" + foreign(5))
    options = {"tokenizer": folder / "tokenizer.json", "document_per_line": True, "workers": 0}
    prepare(folder / "english.txt", tmp_path / "c", validation=[tmp_path / "half.txt"], **options)
    run = pretrain(shrink("gpt-tiny"), tmp_path / "c", tmp_path / "run", budget=Budget(steps=2), progress=False)
    figures = run.summary["validation"]
    assert figures["losses"]["clm"] > 0
    assert figures["bits_per_byte"] == {"clm": None}
    assert "are hidden by unknown tokens" in figures["no_number"]["bits_per_byte"]


def test_a_text_of_unknown_tokens_alone_is_not_trained_on(folder, tmp_path):
    with pytest.raises(UserError, match=r"every token of its training text is unknown.*byte_bpe"):
        pretrain(shrink("bert-tiny"), folder / "all", tmp_path / "run", budget=Budget(steps=2), progress=False)
    assert not (tmp_path / "run").exists()


def test_no_search_takes_a_loss_that_is_none_for_the_best(folder, tmp_path):
    with pytest.raises(UserError, match="no number, because there was no target"):
        tune(shrink("gpt-tiny"), folder / "c", tmp_path / "s", budget=Budget(steps=2), trials=2, device="cpu", jobs=1)


def test_scores_of_unknown_texts_are_no_numbers(run):
    sentences = ["the old city", "Жизнь Город", "the Ж city", ""]
    scores = list(TextScores(run, in_memory(sentences), device="cpu"))
    assert [score.log_probability is None for score in scores] == [False, True, False, False]
    assert [score.unknown for score in scores] == [0, 2, 1, 0]
    totals = Totals(last_words=False)
    for score in scores:
        totals.add(score)
    figures = totals.figures()
    assert (figures["no_number"], figures["unknown"], figures["hidden_characters"]) == (1, 1, 11)
    assert figures["log_probability"] == pytest.approx(scores[0].log_probability + scores[2].log_probability)
    assert figures["bits_per_byte"] is None
    totals = Totals(last_words=False)
    totals.add(scores[0])
    assert totals.figures()["bits_per_byte"] == pytest.approx(
        -scores[0].log_probability / math.log(2) / len("the old city")
    )


def test_pairs_of_unknown_sentences_tie_and_are_counted(run):
    reading = "forwards" if run.recipe.name == "gpt-tiny" else "pseudo"
    pairs = [MinimalPair("the old city", "city the old", "order"), MinimalPair("the city", "Жизнь", "words")]
    found = judge(run, pairs, reading, device="cpu")
    assert (found.unknown, found.groups["words"], found.ties) == (1, 0.5, 1)
    with pytest.raises(UserError, match="no pair can be judged"):
        judge(run, pairs[1:], reading, device="cpu")


def test_four_letters_drawn_evenly_have_two_bits_each(tmp_path):
    draw = random.Random(1)
    (tmp_path / "dna.txt").write_text("\n".join("".join(draw.choices("ACGT", k=300)) for _ in range(200)))
    prepare(tmp_path / "dna.txt", tmp_path / "c", document_per_line=True, validation=0.2, workers=0)
    corpus = Corpus.open(tmp_path / "c")
    assert corpus.manifest.splits["train"].hidden.unknown == 0
    assert corpus.train.counts.bytes + corpus.validation.counts.bytes == 200 * 300
    for name in ("gpt-tiny", "bert-tiny"):
        objective = [{"kind": "mlm" if name == "bert-tiny" else "clm"}]
        recipe = shrink(name).changed({"objective": objective, "input": {"format": "blocks", "length": 32}})
        run = pretrain(recipe, corpus.path, tmp_path / name, budget=Budget(steps=40), progress=False)
        (bits,) = run.summary["validation"]["bits_per_byte"].values()
        assert 1.95 < bits < 4
