"""Comparisons of tasks of every kind: real tasks and their baselines, with answers that are right now and then."""

import json
import random
from pathlib import Path

import numpy as np
import pytest
from test_execution import FakeEngine

from bakeoff.comparison.execution import compare
from bakeoff.comparison.planning.plan import Plan
from bakeoff.comparison.reporting.baseline_findings import BaselineStanding
from bakeoff.comparison.results import Results
from bakeoff.errors import UserError
from bakeoff.json_files import read_json_lines
from bakeoff.tasks.data import load_task
from bakeoff.tasks.kinds.choice import Chosen
from bakeoff.tasks.kinds.classification import PredictedClass
from bakeoff.tasks.task_config import TaskConfig

ROWS = 30
SHARES = {"pretrained": 0.9, "scratch": 0.5}


def right_answers(task, examples):
    """What a perfect model would answer."""
    return {
        "classification": lambda each: PredictedClass(task.indices.get(each.label), np.ones(task.outputs)),
        "regression": lambda each: each.value,
        "tagging": lambda each: list(each.tags),
        "choice": lambda each: Chosen(each.answer, np.ones(len(each.choices))),
    }[task.config.kind], examples


class Answering(FakeEngine):
    """Reads tasks as Bakeoff does. Of its answers some are right, and the others are those to other examples."""

    def share(self, out, start):
        """The share of right answers."""
        return SHARES[start]

    def task(self, task):
        self.calls.append(("read", task.name))
        return load_task(task.data)

    def finetune(self, source, task, out, *, seed, corpus, device, progress):
        super().finetune(source, task, out, seed=seed, corpus=corpus, device=device, progress=progress)
        data = load_task(task.data)
        draw = random.Random("".join(out.parts[-4:]))
        share = self.share(out, "pretrained" if isinstance(source, Path) else "scratch")
        of, examples = right_answers(data.task, data.test)
        answers = []
        for each in examples:
            like = [other for other in examples if len(other.texts) == len(each.texts)]
            answers.append(of(each if draw.random() < share else draw.choice(like)))
        lines = [data.task.line(*pair) for pair in zip(examples, answers, strict=True)]
        (out / "predictions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        scores = data.task.score(examples, answers)
        found = json.loads((out / "results.json").read_text())
        (out / "results.json").write_text(json.dumps({**found, "scores": {"dev": scores, "test": scores}}))


class Divided(Answering):
    """The recipe `one` is always right, the other by chance."""

    def share(self, out, start):
        return float("one" in out.parts)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "corpus").mkdir()
    draw = random.Random(0)
    words = [draw.choice(["good", "bad", "old", "new"]) for _ in range(3 * ROWS)]
    texts = [" ".join(words[3 * i : 3 * i + 3]) for i in range(ROWS)]
    table = [f"{text}\t{text.count('good') + i / 50}\t{'good' in text}" for i, text in enumerate(texts)]
    (tmp_path / "rows.tsv").write_text("\n".join(["text\tnumber\tclass", *table]) + "\n")
    sentences = [[f"{word}\t{'B-X' if word == 'good' else 'O'}" for word in text.split()] for text in texts]
    (tmp_path / "rows.conll").write_text("".join("\n".join(each) + "\n\n" for each in sentences))
    rows = [{"c": text, "o": ["one", "two", "three"], "a": draw.randrange(3)} for text in texts]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def plan_of(folder, **changes):
    def task(name, file, **settings):
        return {"name": name, **dict.fromkeys(("train", "dev", "test"), folder / file), **settings}

    columns = {"text_column": "text", "label_column": "number"}
    tasks = [
        task("tags", "rows.conll", kind="tagging"),
        task("numbers", "rows.tsv", kind="regression", **columns),
        task("errors", "rows.tsv", kind="regression", metric="mean_absolute_error", **columns),
        task("classes", "rows.tsv", text_column="text", label_column="class"),
        task("choices", "rows.jsonl", kind="choice", text_column="c", choices="o", label_column="a"),
    ]
    values = {"corpus": folder / "corpus", "recipes": ["one", "two"], "budget": "steps=5", "seeds": 3, "tasks": tasks}
    return Plan.parse({**values, **changes}, "plan")


def go(folder, plan):
    engine = Answering()
    return compare(plan, folder / "out", engine=engine, report=lambda results, path: None), engine


def test_a_comparison_of_every_kind(folder):
    results, _ = go(folder, plan_of(folder))
    facts = {task.name: (task.kind, task.metric, task.unit, task.lower_is_better) for task in results.tasks}
    assert facts == {
        "tags": ("tagging", "f1", "%", False),
        "numbers": ("regression", "spearman", "× 100", False),
        "errors": ("regression", "mean_absolute_error", "", True),
        "classes": ("classification", "accuracy", "%", False),
        "choices": ("choice", "accuracy", "%", False),
    }
    assert [(baseline.task, baseline.kind) for baseline in results.baselines] == [
        ("tags", "simplest"),
        *((name, kind) for name in ("numbers", "errors", "classes") for kind in ("simplest", "learned")),
        ("choices", "simplest"),
    ]
    for analysis in results.analyses:
        (pair,) = analysis.pairs
        better = pair.difference < 0 if analysis.task == "errors" else pair.difference > 0
        assert better or pair.difference == 0
        assert pair.p is not None
        for gain in analysis.gains.values():
            assert (gain.difference < 0) == (analysis.task == "errors")
        for label, spread in analysis.pretrained.items():
            metric = facts[analysis.task][1]
            scores = [each for entry in results.recipes if entry.label == label for each in entry.scores]
            of = [s.test[metric] for s in scores if (s.task, s.initialisation) == (analysis.task, "pretrained")]
            assert spread.mean == pytest.approx(np.mean(of))
    assert Results.read(folder / "out/results.json") == results
    lines = (folder / "out/results.csv").read_text().splitlines()
    assert len(lines) == 1 + 2 * 3 * 2 * 5
    assert {"test_f1", "test_spearman", "test_mean_absolute_error"} <= set(lines[0].split(","))
    again, engine = go(folder, plan_of(folder))
    assert engine.calls == []
    assert again.analyses == results.analyses


def test_a_comparison_from_before_tasks_had_a_key_goes_on_and_another_kind_is_refused(folder):
    plan = plan_of(folder, seeds=1)
    go(folder, plan)
    for path in (folder / "out" / "runs").rglob("pretrained-0.settings.json"):
        settings = json.loads(path.read_text())
        del settings["finetune"]["unshare"], settings["split_seed"]
        path.write_text(json.dumps(settings))
        (path.parent / "bakeoff.sha256").unlink()
    _, engine = go(folder, plan)
    assert engine.of("finetune") == []
    changed = [
        task.model_copy(update={"data": task.data.model_copy(update={"split_seed": 1})}) if i == 0 else task
        for i, task in enumerate(plan.tasks)
    ]
    with pytest.raises(UserError, match="split_seed 0, not 1"):
        go(folder, plan.model_copy(update={"tasks": changed}))
    columns = {"text_column": "text", "label_column": "class", "name": "numbers"}
    other = {**columns, **dict.fromkeys(("train", "dev", "test"), folder / "rows.tsv")}
    with pytest.raises(UserError, match='begun with kind "regression", not "classification"'):
        go(folder, plan_of(folder, seeds=1, tasks=[other]))


def test_what_needs_no_model_is_tested_on_the_same_rows(folder):
    """Whether it is the best baseline of its task or not, and so that its own rows count as noise."""
    results, _ = go(folder, plan_of(folder))
    kept = {each.task: each for each in results.baselines if each.kind == "simplest" and each.predictions}
    assert kept.keys() == {"tags", "errors", "classes", "choices"}  # one number for all correlates with nothing
    for task in results.tasks:
        if task.name in kept:
            lines = read_json_lines(folder / "out" / kept[task.name].predictions)
            config = next(each.data for each in plan_of(folder).tasks if each.name == task.name)
            mean = config.contributions(lines, task.metric).mean()
            assert mean == pytest.approx(kept[task.name].test[task.metric], abs=1e-6)
    for name in ("tags", "choices"):
        (analysis,) = [each for each in results.analyses if each.task == name]
        for label, tested in analysis.against_baseline.items():
            assert tested.second == kept[name].name
            measure = next(each.metric for each in results.tasks if each.name == name)
            apart = analysis.pretrained[label].mean - kept[name].test[measure]
            assert tested.difference == pytest.approx(apart, abs=1e-6)
            standing = BaselineStanding.of(results, analysis)
            assert standing.tested is not None


def test_predictions_of_another_kind_are_refused(folder):
    go(folder, plan_of(folder, seeds=1))
    path = folder / "out/runs/one/seed-0/tags/pretrained-0/predictions.jsonl"
    path.write_text('{"label": "a", "prediction": "b"}\n' * ROWS)
    with pytest.raises(UserError, match=r"predictions\.jsonl:1: not what Bakeoff writes there: words: this key"):
        go(folder, plan_of(folder, seeds=1))


def test_a_kind_that_does_not_say_what_examples_contribute_has_scores_but_no_claims(folder, monkeypatch):
    plan = plan_of(folder)
    monkeypatch.setattr(type(plan.tasks[0].data), "contributions", TaskConfig.contributions)
    results, _ = go(folder, plan.model_copy(update={"tasks": plan.tasks[:1]}))
    (analysis,) = results.analyses
    assert analysis.pairs[0].p is analysis.pairs[0].real is analysis.pretrained["one"].interval is None
    assert analysis.pretrained["one"].deviation is not None
