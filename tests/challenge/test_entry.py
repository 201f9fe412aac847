"""`bakeoff babylm` from the text to the submission, small: what it makes, and that it goes on wherever it stopped."""

import json
import os
import shutil
import signal
from collections import Counter
from types import SimpleNamespace

import pytest

from bakeoff.challenge import asking, entry, evaluation, labelled, rules
from bakeoff.challenge.acquisition import AgeScore
from bakeoff.challenge.asking import ask
from bakeoff.challenge.choosing import SuiteScores
from bakeoff.challenge.entry import babylm
from bakeoff.challenge.evaluation import READING, Part
from bakeoff.challenge.folder import EntryFolder
from bakeoff.challenge.forecast import forecast_entry
from bakeoff.challenge.labelled import SEEDS, TASKS
from bakeoff.challenge.reading_times import ReadingScores
from bakeoff.challenge.submission import lacking, official_key, submission_of
from bakeoff.challenge.suites import SUITES
from bakeoff.cli import run as command
from bakeoff.display.wording import number
from bakeoff.errors import Interrupted, UserError
from tests.challenge.official_files import write_official_files
from tests.conftest import sentences, shrink

transformers = pytest.importorskip("transformers")

WORDS = 1100
NAMES = ["chck_1M", "chck_2M"]


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    folder = tmp_path_factory.mktemp("text")
    made, lines, words = iter(sentences(1000)), [], 0
    while words < WORDS:
        lines.append(" ".join(next(made) for _ in range(3)))
        words += len(lines[-1].split())
    (folder / "text.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def official(tmp_path_factory):
    return write_official_files(tmp_path_factory.mktemp("official") / "evaluation_data")


@pytest.fixture
def small(monkeypatch):
    """A million is a thousand, and the only fine-tuning task is short."""
    monkeypatch.setattr(rules, "MILLION", 1000)
    short = [task._replace(epochs=2) for task in TASKS if task.name == "wsc"]
    monkeypatch.setattr(asking, "TASKS", short)
    recipe = shrink("gpt2-tiny", **{"training.budget": {"steps": 3}, "training.validation_examples": 4})
    return recipe.changed({"tokenizer.size": 300, "training.checkpoint_minutes": 1e-9})


OPTIONS = {"epochs": 2, "document_per_line": True, "device": "cpu", "progress": False}


class Calls:
    """Counts finished stages, and stops after one of them as Ctrl-C does."""

    STAGES = ((entry, "prepare"), (entry, "pretrain"), (entry, "export"), (evaluation, "score_choices"))
    STAGES += ((labelled, "finetune"), (entry, "write_submission"))

    def __init__(self, monkeypatch):
        self.done, self.stop, self.signal = Counter(), {}, {}
        for module, name in self.STAGES:
            monkeypatch.setattr(module, name, self.counted(name, getattr(module, name)))

    def counted(self, name, original):
        def call(*arguments, **options):
            result = original(*arguments, **options)
            self.done[name] += 1
            if self.signal.get(name) == self.done[name]:
                os.kill(os.getpid(), signal.SIGINT)
            if self.stop.get(name) == self.done[name]:
                raise KeyboardInterrupt
            return result

        return call


def content(folder):
    return {name: json.loads((folder / name).read_text(encoding="utf-8")) for name in FILES}


FILES = ["babylm.json", "all_full_preds_and_fast_scores_causal.json"]


@pytest.mark.slow
def test_an_entry_is_the_same_wherever_it_was_stopped_and_nothing_is_done_twice(
    text, official, small, tmp_path, monkeypatch
):
    whole = babylm("strict-small", small, text, tmp_path / "whole", evaluation=official, **OPTIONS)
    calls, out = Calls(monkeypatch), tmp_path / "stopped"
    calls.signal = {"score_choices": 2}  # while the training goes on, which answers it
    stops = [{"prepare": 1}, {}, {"pretrain": 1}, {"export": 2}, {"score_choices": 14}, {"finetune": 2}]
    for stop in [*stops, {"write_submission": 1}]:
        calls.stop = stop
        with pytest.raises(Interrupted):
            babylm("strict-small", small, text, out, evaluation=official, **OPTIONS)
        assert stop or calls.done["score_choices"] == 2  # the signal ended the scoring, too
    calls.stop = {}
    found = babylm("strict-small", small, text, out, evaluation=official, **OPTIONS)
    suites = len(NAMES) * sum(suite.fast is not None for suite in SUITES) + len(SUITES)
    expected = {"prepare": 1, "pretrain": 1, "export": 3, "score_choices": suites + 1}  # that one was not kept
    assert calls.done == {**expected, "finetune": len(SEEDS), "write_submission": 2}
    assert content(out) == content(tmp_path / "whole")
    assert found.model_dump() == whole.model_dump()
    assert found.checkpoints == [1000, 2000]
    assert set(found.scores) == {*NAMES, "main"}
    assert found.ages == AgeScore(correlation=None, p=None, words=0)  # no curve goes through two checkpoints
    assert babylm("strict-small", small, text, out, evaluation=official, **OPTIONS) == found
    assert calls.done == {**expected, "finetune": len(SEEDS), "write_submission": 3}
    with pytest.raises(UserError, match=r": begun with epochs 2, not 3; go on with what it was begun with"):
        babylm("strict-small", small, text, out, **{**OPTIONS, "epochs": 3})


def test_an_entry_may_learn_from_entries_of_the_same_text_alone(text, small, tmp_path, monkeypatch):
    monkeypatch.setattr(asking, "TASKS", [])
    monkeypatch.setattr(entry, "export", lambda run, out, to: None)
    babylm("strict-small", small, text, tmp_path / "first", **OPTIONS)
    teacher = tmp_path / "first" / "run"
    taught = small.changed({"training.distillation": {"teachers": [str(teacher)]}})
    given = {each: OPTIONS[each] for each in ("epochs", "document_per_line", "device")} | {"seed": 1}
    forecast_entry(ask("strict-small", taught, text, tmp_path / "second", **given))
    found = babylm("strict-small", taught, text, tmp_path / "second", seed=1, **OPTIONS)
    assert found.checkpoints == [1000, 2000]
    tokenizers = [(tmp_path / name / "corpus/tokenizer.json").read_bytes() for name in ("first", "second")]
    assert tokenizers[0] == tokenizers[1]
    shutil.copytree(text, tmp_path / "others")
    with pytest.raises(UserError, match=r"first/run: .* the text that it has read counts, too: give ENTRY/run of an"):
        babylm("strict-small", taught, tmp_path / "others", tmp_path / "third", **OPTIONS)
    assert not (tmp_path / "third").exists()


def test_scores_come_while_the_training_goes_on_which_does_not_learn_of_it(
    text, official, small, tmp_path, monkeypatch
):
    monkeypatch.setattr(asking, "TASKS", [])
    monkeypatch.setattr(entry, "export", lambda run, out, to: None)
    folder, lines, results = tmp_path / "evaluation_data", [], []
    (folder / "fast_eval").mkdir(parents=True)
    (folder / "fast_eval" / "blimp_fast").symlink_to(official / "fast_eval" / "blimp_fast")
    pretrain = entry.pretrain

    def trained(*arguments, **options):
        run = pretrain(*arguments, **options)
        results.append((tmp_path / "scored" / "babylm.json").is_file())
        lines.append("trained")
        return run

    monkeypatch.setattr(entry, "pretrain", trained)
    scored = babylm("strict-small", small, text, tmp_path / "scored", evaluation=folder, say=lines.append, **OPTIONS)
    values = {name: f"{name}: blimp {number(scored.scores[name]['blimp'].official, 2)}" for name in NAMES}
    assert [lines.index(line) < lines.index("trained") for line in values.values()] == [True, True]
    assert results == [True]
    babylm("strict-small", small, text, tmp_path / "plain", **OPTIONS)
    for part in ("model.safetensors", "saved/words-2k/model.safetensors"):
        assert (tmp_path / "scored/run" / part).read_bytes() == (tmp_path / "plain/run" / part).read_bytes()


def test_what_is_missing_is_said_and_scored_once_it_is_there(text, official, small, tmp_path, monkeypatch, capsys):
    folder, out, recipe = tmp_path / "evaluation_data", tmp_path / "out", tmp_path / "recipe.yaml"
    recipe.write_text(small.to_yaml(), encoding="utf-8")
    (folder / "full_eval").mkdir(parents=True)
    typed = ["babylm", "strict-small", recipe, "--data", text, "--out", out, "--epochs", "2", "--document-per-line"]
    typed = [*map(str, typed), "--device", "cpu", "--evaluation", str(folder)]
    assert command([*typed[:7], "--dry-run"]) == 0
    assert "10,000,000 allowed; 11," in capsys.readouterr().out
    assert command([*typed, "--dry-run"]) == 0
    shown = capsys.readouterr().out
    assert "missing: blimp: no fast_eval/blimp_fast/*.jsonl" in shown
    assert "missing: wsc: no full_eval/glue_filtered/wsc.train.jsonl and .valid.jsonl" in shown
    assert "missing: aoa: no full_eval/aoa/cdi_childes.json\nmissing: aoa: no full_eval/aoa/cdi_human.csv\n" in shown
    assert "ms, measured now" in shown
    assert not out.exists()
    assert command(typed) == 0
    shown = capsys.readouterr().out
    assert "not scored: blimp: no full_eval/blimp_filtered/*.jsonl" in shown
    assert "the submission is not whole: blimp: no predictions" in shown
    assert content(out)["babylm.json"]["scores"] == {}
    (folder / "full_eval" / "blimp_filtered").symlink_to(official / "full_eval" / "blimp_filtered")
    calls = Calls(monkeypatch)
    assert command(typed) == 0
    assert calls.done == {"score_choices": 1, "write_submission": 1}
    shown = capsys.readouterr().out
    assert "the submission is not whole: blimp: 2 fields, officially 67" in shown
    assert "| BLiMP |" in (out / "babylm.md").read_text(encoding="utf-8")
    model = transformers.AutoModelForCausalLM.from_pretrained(out / "models" / "chck_1M")
    assert model.config.vocab_size > 0


def of_official_sizes():
    """A submission of the official sizes, and the words of its checkpoints."""
    names = [f"chck_{number}M" for number in [*range(1, 10), *range(10, 101, 10)]]
    made = {}
    for suite in SUITES:
        fields = suite.sizes.fields or 1
        counts = [1] * (fields - 1) + [(suite.sizes.items or fields) - fields + 1]
        made[official_key(suite.key)] = {str(at): {"predictions": [{}] * count} for at, count in enumerate(counts)}
    made["reading"] = {"reading": {"predictions": [{}] * 1726}}
    made["glue"] = {task.name: {"predictions": [{}] * task.rows} for task in TASKS}
    made["aoa_surprisals"] = {"results": [{"step": name} for name in names for _ in range(8005)]}
    fast = [suite.key for suite in SUITES if suite.fast is not None]
    made["fast_eval_results"] = {official_key(key): [{}] * len(names) for key in [*fast, "reading"]}
    return made, [rules.words_of(name) for name in names]


def test_scores_of_checkpoints_are_fractions_under_their_official_names(tmp_path):
    reading = ReadingScores(eye_tracking=3.0, self_paced=7.0, surprisals=[], before=[])
    choices = SuiteScores(accuracy=40.0, tie_safe=40.0, ties=0, items=5, fields={"0": 1.0, "1": 0.0}, predictions={})
    piqa = next(each for each in SUITES if each.per_token)
    blimp = next(each for each in SUITES if each.key == "blimp")
    known = {READING: (reading, None), piqa.key: (choices, piqa), blimp.key: (choices, blimp)}
    parts = [Part("chck_1M", key, (), "", suite) for key, (_, suite) in known.items()]
    stub = SimpleNamespace(parts=parts, scores=lambda part: known[part.key][0])
    assert submission_of(EntryFolder(tmp_path), stub, {}, "model") == {
        "fast_eval_results": {
            READING: [{"spr": 0.07, "rt": 0.03}],
            piqa.key: [{piqa.key: 0.4}],
            blimp.key: [{"0": 1.0, "1": 0.0}],
        }
    }


def test_a_submission_of_the_official_sizes_lacks_nothing_and_each_difference_is_told():
    made, words = of_official_sizes()
    assert lacking(made, words) == []
    del made["glue"]["rte"], made["comps"]
    made["blimp"]["0"]["predictions"] = [{}] * 3
    made["aoa_surprisals"]["results"] = made["aoa_surprisals"]["results"][8005:-1]
    made["fast_eval_results"]["ewok"].pop()
    assert lacking(made, words) == [
        "blimp: 59,877 predictions, officially 59,875",
        "comps: no predictions",
        "rte: no predictions",
        "fast ewok: scores of 18 checkpoints, the track has 19",
        "aoa: no surprisals of chck_1M",
        "aoa: 8,004 surprisals of chck_100M, officially 8,005",
    ]
