"""Measures of a plan, which need no fine-tuning: held-out text, minimal pairs."""

import csv
import json
import math

import numpy as np
import pytest
import yaml
from test_starts import STILL
from tests.conftest import shrink

from bakeoff.comparison.execution import compare
from bakeoff.comparison.forecast import forecast_comparison
from bakeoff.comparison.planning.plan import Plan
from bakeoff.comparison.reporting.cautions import cautions
from bakeoff.comparison.reporting.findings import findings
from bakeoff.comparison.reporting.report import write_report
from bakeoff.comparison.reporting.terminal import print_results
from bakeoff.comparison.results import Results
from bakeoff.corpus.store import Corpus
from bakeoff.corpus.trigram import trigram_bits
from bakeoff.errors import UserError
from bakeoff.json_files import read_json
from bakeoff.preparation.prepare import prepare
from bakeoff.runs.run import Run
from bakeoff.tasks.evaluate import evaluate
from bakeoff.tasks.measures.fresh_heads import FreshHeadsConfig
from bakeoff.tasks.measures.held_out_text import HeldOutTextConfig, documents_of
from bakeoff.tokenizer.tokenizer_config import TokenizerConfig

SHOWN = ("bits per byte", "perplexity a word")
NAMES = ("gpt-tiny", "conv-light-lm-tiny", "lstm-lm-tiny", "laptop-encoder-tiny", "bert-tiny", "elmo-tiny")


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """A corpus, recipes and minimal pairs."""
    folder = tmp_path_factory.mktemp("measured")
    lines = [f"The river {n} is {'old' if n % 3 else 'new'}. A bank, {n % 7} boats. It goes up." for n in range(250)]
    (folder / "text.txt").write_text("\n\n".join(lines))
    common = {"document_per_line": True, "workers": 1, "validation": 0.2}
    prepare(folder / "text.txt", folder / "corpus", tokenizer=TokenizerConfig(size=90), **common)
    for name in NAMES:
        (folder / f"{name}.yaml").write_text(shrink(name).to_yaml())
    pairs = [
        {"sentence_good": f"The river {n} is old.", "sentence_bad": f"River the {n} old is.", "UID": f"u{n % 4}"}
        for n in range(14)
    ]
    (folder / "pairs.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
    return folder


def go(texts, out, recipes, progress=None, **changes):
    values = {"corpus": str(texts / "corpus"), "budget": "steps=2", "seeds": 2, "device": "cpu", "recipes": recipes}
    plan = texts / f"{out.name}.yaml"
    plan.write_text(yaml.safe_dump({**values, **changes}))
    return compare(plan, out, jobs=1, report=lambda results, path: None, progress=progress)


@pytest.mark.slow
def test_without_tasks_the_held_out_text_is_measured(texts, tmp_path, capsys):
    out = tmp_path / "out"
    arms = [
        *(f"{name}.yaml" for name in NAMES),
        {"recipe": "laptop-encoder-tiny.yaml", "name": "same loss", "set": {"training.optimizer.lr": 1e-5}},
        {"recipe": "gpt-tiny.yaml", "name": "bytes", "tokenizer": {"kind": "byte_bpe", "size": 270}},
        {"recipe": "gpt-tiny.yaml", "name": "short rows", "set": {"input.length": 16}},
    ]
    results = go(texts, out, arms)
    of = {analysis.task: [*analysis.pretrained] for analysis in results.analyses}
    causal = ["gpt-tiny", "conv-light-lm-tiny", "lstm-lm-tiny", "bytes", "short rows"]
    assert of == {
        "held-out text: masked tokens (mlm), rate 0.3": ["laptop-encoder-tiny", "same loss"],
        "held-out text: masked tokens (mlm), rate 0.15": ["bert-tiny"],
        "held-out text: next sentence (nsp)": ["bert-tiny"],
        "held-out text: next token (clm), bits per byte": causal,
        "held-out text: next token (clm), perplexity a word": causal,
        **{name: ["elmo-tiny"] for name in of if "bilm" in name},
    }
    # The numbers are those of `evaluate` on the same text.
    for entry in results.recipes:
        corpus = entry.corpus.path if entry.corpus else texts / "corpus"
        measured = entry.measurements[0]
        figures = evaluate(out / entry.runs[0].path, corpus=corpus, device="cpu")
        for name, loss in figures["losses"].items():
            assert measured.scores[f"loss:{name}"] == pytest.approx(loss, rel=2e-3), entry.label  # there in bfloat16
        for name, word in figures.get("perplexity_per_word", {}).items():
            assert measured.scores[f"word_perplexity:{name}"] == pytest.approx(word, rel=2e-2)
            assert measured.scores[f"bits_per_byte:{name}"] == pytest.approx(figures["bits_per_byte"][name], rel=2e-3)
    assert Results.read(out / "results.json") == results
    header, *rows = csv.reader((out / "results.csv").read_text(encoding="utf-8").splitlines())
    assert len(rows) == 2 * len(arms)
    assert (
        float(rows[0][header.index("test_bits_per_byte:clm")])
        == results.recipes[0].measurements[0].scores["bits_per_byte:clm"]
    )
    write_report(results, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "perplexity a word" in page
    print_results(results, out)
    assert "held-out text: next token (clm), bits per byte" in capsys.readouterr().out
    lines = []
    assert go(texts, out, arms, lines.append).recipes == results.recipes
    assert not [line for line in lines if "training" in line or "measuring" in line or "preparing" in line]
    forecast = forecast_comparison(texts / "out.yaml", out, jobs=1)
    assert sum(work.jobs for work in forecast.works) == 0
    assert sum(work.done for work in forecast.works if work.what == "measurement") == 2 * len(arms)


def test_losses_that_do_not_compare_are_not_compared(texts, tmp_path):
    results = go(texts, tmp_path / "unlike", ["laptop-encoder-tiny.yaml", "gpt-tiny.yaml"], tasks=[], seeds=1)
    assert {analysis.task: len(analysis.pairs) for analysis in results.analyses} == {
        "held-out text: masked tokens (mlm)": 0,
        "held-out text: next token (clm), bits per byte": 0,
        "held-out text: next token (clm), perplexity a word": 0,
    }
    assert "Nothing is compared: no two recipes have losses of one kind" in findings(results).headline


def test_what_counts_the_text_stands_beside_the_losses(texts, tmp_path):
    """Models of two steps have learned less than counts: the page says so, and draws the line in the causal panel."""
    results = go(texts, tmp_path / "anchors", ["laptop-encoder-tiny.yaml", "gpt-tiny.yaml"], tasks=[], seeds=1)
    corpus = Corpus.open(texts / "corpus")
    assert {each.task: (each.kind, *each.test.values()) for each in results.baselines} == {
        "held-out text: masked tokens (mlm)": ("learned", corpus.manifest.splits["validation"].unigram_entropy),
        "held-out text: next token (clm), bits per byte": ("learned", trigram_bits(corpus)),
    }
    assert results.corpus.trigram_bits_per_byte == trigram_bits(corpus)
    worse = [each for each in cautions(results) if "counts of three tokens (Kneser-Ney)" in each]
    assert len(worse) == 1
    assert "“held-out text: next token (clm), bits per byte”" in worse[0]
    write_report(results, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert '"trigram"' in page
    assert "The line “trigram” is" in page


def test_stretches_of_a_text_are_the_same_whatever_the_rows(texts, tmp_path):
    """The mean over stretches is the metric, and equal models differ nowhere, though their rows are unlike."""
    arms = ["gpt-tiny.yaml", {"recipe": "gpt-tiny.yaml", "name": "again", "set": {"training.validations": 1}}]
    results = go(texts, tmp_path / "twice", arms, seeds=3)
    for analysis in results.analyses:
        (pair,) = analysis.pairs
        assert pair.difference == 0
        assert not pair.real
    facts = {task.name: task for task in results.tasks}
    assert all((each.rows["test"] > 10 and each.clusters is None) or each.clusters > 10 for each in facts.values())


def test_minimal_pairs_are_judged_without_fine_tuning(texts, tmp_path):
    out = tmp_path / "pairs"
    task = {"kind": "minimal_pairs", "test": "pairs.jsonl", "name": "BLiMP"}
    (texts / "sop.yaml").write_text(shrink("albert-tiny").changed({"objective": [{"kind": "sop"}]}).to_yaml())
    arms = ["gpt-tiny.yaml", "laptop-encoder-tiny.yaml", {"recipe": "sop.yaml", "name": "sop alone"}]
    results = go(texts, out, arms, tasks=[task], seeds=3)
    (analysis,), (facts,) = results.analyses, results.tasks
    assert [*analysis.pretrained] == ["gpt-tiny", "laptop-encoder-tiny"]
    assert (facts.metric, facts.unit, facts.rows, facts.clusters) == ("accuracy", "%", {"test": 14}, 4)
    assert [(each.name, each.test) for each in results.baselines] == [("chance", {"accuracy": 0.5})]
    assert [entry.scores for entry in results.recipes] == [[], [], []]
    for entry in results.recipes[:2]:
        figures = evaluate(out / entry.runs[1].path, minimal_pairs=texts / "pairs.jsonl", device="cpu")
        assert entry.measurements[1].scores["accuracy"] == pytest.approx(figures["accuracy"])
        assert entry.measurements[1].facts["reading"] == figures["reading"]
        rows = [json.loads(line) for line in (out / entry.measurements[1].rows).read_text().splitlines()]
        means = [np.mean([row["right"] for row in rows if row["group"] == f"u{n}"]) for n in range(4)]
        assert np.mean(means) == pytest.approx(figures["accuracy"])
    told = "\n".join(cautions(results))
    assert "“sop alone” gives sentences no probability, and is left out" in told
    assert "sentences were read forwards by gpt-tiny; with each token hidden in turn by laptop-encoder-tiny" in told
    settings = read_json(out / "runs/gpt-tiny/seed-0/BLiMP/pretrained-0.settings.json")
    assert settings["kind"] == "minimal_pairs"
    (texts / "pairs.jsonl").rename(texts / "kept.jsonl")
    (texts / "pairs.jsonl").write_text((texts / "kept.jsonl").read_text().replace("old", "new"))
    with pytest.raises(UserError, match=r"BLiMP/pretrained-0: begun with another content of test"):
        go(texts, out, arms, tasks=[task], seeds=3)
    (texts / "kept.jsonl").rename(texts / "pairs.jsonl")
    with pytest.raises(UserError, match="task BLiMP: “sop alone” gives sentences no probability"):
        go(texts, tmp_path / "none", arms[2:], tasks=[task])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tasks": [{"kind": "minimal_pairs"}]}, r"tasks\.0: test: this key is required"),
        ({"tasks": [{"kind": "minimal_pairs", "test": "none.jsonl"}]}, r"tasks\.0\.test: there is no file .*none"),
        ({"tasks": [{"kind": "minimal_pairs", "test": "pairs.jsonl", "finetune": {}}]}, "unknown key 'finetune'"),
        ({"tasks": [{"kind": "held_out_text"}, {"kind": "held_out_text"}]}, "two tasks are called 'held-out text'"),
        ({"measures": [{"kind": "held_out"}]}, "measures.0.kind: there is no 'held_out'; did you mean 'held_out_text'"),
        ({"latency": {"batch": 2}}, "latency: would have no effect: nothing is fine-tuned"),
        ({"from_scratch": True}, "from_scratch: would have no effect: nothing is fine-tuned"),
        ({"finetune_seeds": 2}, "finetune_seeds: would have no effect: nothing is fine-tuned"),
        ({"recipes": [{"recipe": "gpt-tiny", "finetune": {"batch": 2}}]}, "finetune: would have no effect: nothing is"),
    ],
)
def test_mistakes_are_one_line(texts, changes, message):
    values = {"corpus": "corpus", "budget": "steps=2", "recipes": ["gpt-tiny"], **changes}
    (texts / "wrong.yaml").write_text(yaml.safe_dump(values))
    with pytest.raises(UserError, match=message) as error:
        Plan.read(texts / "wrong.yaml")
    assert "\n" not in str(error.value)


def test_a_perplexity_is_that_of_the_losses_of_all_words(texts, tmp_path):
    results = go(texts, tmp_path / "words", ["gpt-tiny.yaml"], seeds=1)
    (measured,) = results.recipes[0].measurements
    rows = [json.loads(line) for line in (tmp_path / "words" / measured.rows).read_text().splitlines()]
    text = (texts / "corpus/corpus.json").read_text()
    words = json.loads(text)["splits"]["validation"]["words"]
    nats = math.fsum(row["values"]["clm"] for row in rows)
    assert measured.scores["word_perplexity:clm"] == pytest.approx(math.exp(nats / words))


def test_a_part_of_the_text_has_the_words_and_bytes_of_a_token_that_the_whole_has(texts, tmp_path):
    results = go(texts, tmp_path / "part", ["gpt-tiny.yaml"], seeds=1)
    run = Run.open(tmp_path / "part" / results.recipes[0].runs[0].path)
    whole, part = (HeldOutTextConfig(rows=rows).measure(run, str(texts / "corpus"), "cpu") for rows in (4096, 8))
    assert part.facts["rows"] == 8 < whole.facts["rows"] == whole.facts["of_rows"]
    assert part.facts["factors"]["clm"] == pytest.approx(whole.facts["factors"]["clm"])


def test_words_are_as_uncertain_as_the_bytes_that_they_are_made_of(texts, tmp_path):
    """The noise of a perplexity is that of the loss of a word, along the tangent: d exp(f x) = f exp(f x) dx."""
    results = go(texts, tmp_path / "intervals", ["gpt-tiny.yaml", "conv-light-lm-tiny.yaml"], seeds=3)
    bits, words = ({each.task.rpartition(", ")[2]: each for each in results.analyses}[name] for name in SHOWN)
    factors = results.recipes[0].measurements[0].facts["factors"]["clm"]
    slope = words.pretrained["gpt-tiny"].mean * factors["word_perplexity"] / factors["bits_per_byte"]
    of_bits, of_words = (each.pairs[0].noise for each in (bits, words))
    assert of_bits.anew + of_bits.rows > 0
    ratio = (of_words.anew + of_words.rows) / (of_bits.anew + of_bits.rows)
    assert ratio == pytest.approx(slope**2, rel=0.3)


def test_a_stretch_is_of_the_document_in_its_middle(texts):
    split = Corpus.open(texts / "corpus").validation
    starts, numbers = split.documents.tolist(), split.originals.tolist()
    for count in range(2, len(split.tokens), 7):
        found = documents_of(str(texts / "corpus"), count)
        middles = [(2 * stretch + 1) * len(split.tokens) / (2 * count) for stretch in range(count)]
        of_each = [numbers[sum(start <= middle for start in starts) - 1] for middle in middles]
        if len({*of_each}) == count:
            assert found == []  # each has its own
        else:
            assert found == [sorted({*of_each}).index(number) for number in of_each]


def test_each_objective_is_asked_of_each_run_by_a_fresh_head(texts, tmp_path):
    objective = [{"kind": "mlm"}, {"kind": "sop"}]
    (texts / "sop.yaml").write_text(shrink("albert-tiny").changed({"objective": objective}).to_yaml())
    (texts / "none.yaml").write_text(shrink("albert-tiny").changed({"objective": objective[:1]}).to_yaml())
    arms = ["sop.yaml", "none.yaml", "gpt-tiny.yaml", {"recipe": "none.yaml", "name": "same", "set": STILL}]
    arms.append({**arms[3], "name": "same again", "set": {**STILL, "training.clip": 0.5}})
    task = {"kind": "fresh_heads", "objectives": ["mlm", "nsp", "sop"], "steps": 3, "rows": 40}
    results = go(texts, tmp_path / "heads", arms, tasks=[task], seeds=1)
    titles = ["masked tokens (mlm)", "next sentence (nsp)", "sentence order (sop)"]
    assert [analysis.task for analysis in results.analyses] == [f"fresh heads: {title}" for title in titles]
    for analysis in results.analyses:
        assert [*analysis.pretrained] == ["sop", "none", "same", "same again"]
        assert analysis.pretrained["same"] == analysis.pretrained["same again"]
        assert all(0 <= spread.mean <= 1 for spread in analysis.pretrained.values())
    assert [(each.task, each.test) for each in results.baselines] == [
        (f"fresh heads: {title}", {f"accuracy:{name}": 0.5})
        for title, name in zip(titles[1:], ["nsp", "sop"], strict=True)
    ]
    assert any("gpt-tiny can do none of these objectives (" in note for task in results.tasks for note in task.notes)
    # Heads are fresh: more steps do better at what the text allows, and the run keeps its weights.
    run = Run.open(tmp_path / "heads" / results.recipes[0].runs[0].path)
    before = (run.path / "model.safetensors").read_bytes()
    measure = FreshHeadsConfig(objectives=["mlm"], steps=60, learning_rate=0.02, rows=40)
    learned = measure.measure(run, str(texts / "corpus"), "cpu").scores["accuracy:mlm"]
    assert learned > results.recipes[0].measurements[0].scores["accuracy:mlm"] + 0.05
    assert (run.path / "model.safetensors").read_bytes() == before
    with pytest.raises(UserError, match=r"tasks\.0: objectives\.0.*there is no 'nps'"):
        go(texts, tmp_path / "wrong", arms, tasks=[{"kind": "fresh_heads", "objectives": ["nps"]}])
    objectives = [{"kind": "mlm", "rate": 0.15}, {"kind": "mlm", "rate": 0.4}]  # their scores would have one name
    with pytest.raises(UserError, match="objectives: mlm is given twice; leave one out"):
        go(texts, tmp_path / "wrong", arms, tasks=[{"kind": "fresh_heads", "objectives": objectives}])


@pytest.mark.slow
def test_a_margin_in_bits_is_none_in_perplexity(texts, tmp_path):
    recipes = [str(texts / f"{name}.yaml") for name in NAMES[:2]]
    results = go(texts, tmp_path / "out", recipes, seeds=3, margin={"held-out text": 0.02})
    margins = {each.task.rpartition(", ")[2]: each.pairs[0].margin for each in results.analyses}
    assert len(margins) == 2
    assert margins.pop("perplexity a word") is None
    assert [*margins.values()] == [0.02]
