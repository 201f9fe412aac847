import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import yaml
from pydantic import BaseModel
from tests.jobs.threads import Threads

from bakeoff import durable
from bakeoff.comparison.execution import compare
from bakeoff.comparison.facts import CorpusFacts
from bakeoff.comparison.layer_profiles import LayerProfile
from bakeoff.comparison.planning.plan import Plan
from bakeoff.comparison.reporting.cautions import cautions
from bakeoff.comparison.reporting.spending import spending
from bakeoff.comparison.results import Results
from bakeoff.comparison.running.correction import Corrected, FirstTenth
from bakeoff.comparison.running.engine import Engine
from bakeoff.comparison.running.equal_trainings import CopiedTraining
from bakeoff.comparison.running.spendable import Spendable
from bakeoff.comparison.running.work import LOOKED, ComparedFinetuning
from bakeoff.errors import Diverged, Interrupted, UserError
from bakeoff.full_disk import DiskFull
from bakeoff.jobs.job import Outcome
from bakeoff.optimization.budget import Budget
from bakeoff.preparation.prepare import prepare
from bakeoff.recipe_files import load_recipe
from bakeoff.tasks.data import TaskData
from bakeoff.tasks.kinds.classification import Classification, LabelledText
from bakeoff.tasks.scores.label_scores import score
from bakeoff.tokenizer.tokenizer_config import TokenizerConfig

ROWS = 40


class FakeRecipe(BaseModel):
    name: str
    model: dict = {"width": 8}
    objective: list = [{"kind": "mlm"}]
    training: dict = {}


class FakeEngine:
    """Writes what training would write, in no time; remembers what it was asked, and fails where told to."""

    def __init__(self, fail_at=None, speeds=(0.5, 0.25, 1.0), diverging=(), works=None):
        self.works = works or {}  # seconds of work of a step, by recipe, in training
        self.calls, self.fail_at, self.speeds, self.fingerprint = [], fail_at, speeds, "abc"
        self.diverging = diverging

    def recipe(self, name, overrides, device):
        return FakeRecipe(name=name, model={"width": 8, "of": name}, training=overrides)

    def teachers(self, recipe):
        return {}

    def idle_settings(self, recipe, task):
        return {}

    def check(self, recipe, task):
        if task.finetune.length == 7:
            raise UserError("length: 7 is too short")

    def require_coolable(self, recipe, corpus, budget, shares, device):
        pass

    def corpus(self, path, recipes, device):
        return CorpusFacts(path=str(path), fingerprint=self.fingerprint, tokenizer="100 tokens", tokens=25)

    def task(self, task):
        labels = [i % 2 for i in range(ROWS)]
        part = [LabelledText(0, ("good" if label else "bad",), str(label)) for label in labels]
        self.calls.append(("read", task.name))
        return TaskData(Classification(task.data, ["0", "1"]), part[: task.data.train_rows], part, part, [])

    def hidden(self, corpus, data):
        return []

    def step_times(self, recipes, corpus, device):
        self.calls.append(("measure", *(recipe.name for recipe in recipes)))
        return [(seconds, 2 * seconds) for seconds in self.speeds[: len(recipes)]]

    def _call(self, *call):
        self.calls.append(call)
        if len([call for call in self.calls if call[0] in ("pretrain", "finetune")]) == self.fail_at:
            raise Interrupted("stopped at step 5; the same command with --resume continues it", 2)
        if call[:3] in self.diverging:
            raise Diverged("the loss is not a finite number at step 3")

    def pretrain(self, recipe, corpus, out, *, seed, budget, device, progress, watch=None):
        out.mkdir(parents=True, exist_ok=True)
        resumed = (out / "checkpoint").exists()
        (out / "checkpoint").touch()
        (out / "recipe.yaml").touch()
        self._call("pretrain", recipe.name, seed, str(budget), resumed)
        if watch is not None and recipe.name in self.works:
            work = 7.0  # the first step takes longer
            for step in range(1, budget.steps + 1):
                work += self.works[recipe.name]
                watch(step, work)
        line = {"kind": "validation", "step": 5, "tokens": 50, "seconds": 1.5, "flops": 1e6, "losses": {"mlm": 4.0}}
        extra = {"loss": 4.0, "perplexity": {"mlm": 54.6}, "accuracy": {"mlm": 0.2}, "bits_per_byte": {}}
        better = {**line, **extra, "step": 3, "tokens": 30, "loss": 3.0, "losses": {"mlm": 3.0}}
        lines = [{"kind": "train", "step": 1}, better, {**line, **extra}]
        (out / "metrics.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))
        summary = {"seed": seed, "steps": 5, "tokens": 50, "seconds": 1.5, "flops": 1e6, "parameters": 99}
        summary |= {
            "flops_per_token": 600.0,
            "tokens_per_second": 33.0,
            "peak_memory_bytes": 10,
            "unigram_entropy": 5.0,
            "validation": {**line, **extra},
        }
        (out / "summary.json").write_text(json.dumps(summary))

    def finetune(self, source, task, out, *, seed, corpus, device, progress):
        kind = "pretrained" if isinstance(source, Path) else "scratch"
        if kind == "pretrained":
            assert (source / "summary.json").is_file()
        assert not out.exists()
        out.mkdir(parents=True)
        (out / "half").touch()
        (out / "recipe.yaml").touch()
        self._call("finetune", kind, task.name, seed)
        random = np.random.default_rng([seed, *map(ord, "".join(out.parts[-4:]))])
        labels = [i % 2 for i in range(ROWS)]
        right = random.random(ROWS) < (0.9 if kind == "pretrained" else 0.7)
        guesses = [label if good else 1 - label for label, good in zip(labels, right, strict=True)]
        rows = [{"label": f"c{a}", "prediction": f"c{b}"} for a, b in zip(labels, guesses, strict=True)]
        (out / "predictions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        values = score(labels, guesses, 2)
        found = {"scores": {"dev": values, "test": values}, "transferred_tensors": 3 * (kind == "pretrained")}
        found |= {"learning_rate": 1e-4, "best_epoch": 2.0, "seconds": 1.0}
        found["trials"] = [{"learning_rate": rate, "score": 0.5} for rate in (1e-4, 3e-5)]
        (out / "results.json").write_text(json.dumps(found))

    def carry_out(self, job, progress, note):
        if isinstance(job, CopiedTraining):
            self.calls.append(("copy", job.title))
            return job.carry_out(progress, note)
        common = {"seed": job.seed, "device": job.device, "progress": progress}
        recipe = self.parse(job.recipe)
        try:
            if isinstance(job, ComparedFinetuning):
                source = job.source or recipe
                self.finetune(source, job.task, job.out, corpus=Path(job.corpus), **common)
                return Outcome()
            watch = None if job.pace is None else FirstTenth(job.pace, lambda: note(LOOKED))
            budget = Budget.parse_text(job.budget)
            self.pretrain(recipe, Path(job.corpus), job.out, budget=budget, watch=watch, **common)
        except Diverged as error:
            return Outcome(diverged=str(error))
        except Corrected as found:
            return Outcome(work_seconds=found.work_seconds)
        return Outcome()

    def parse(self, recipe):
        return FakeRecipe(**recipe)

    def latencies(self, folders, task, asked, device):
        self.calls.append(("latencies", task.name, *(folder.parts[-4] for folder in folders)))
        return [(0.001 * len(folder.parts[-4]), 99) for folder in folders]

    def layers(self, folder, corpus, device):
        self.calls.append(("layers", folder.parts[-3]))
        return [LayerProfile(stack="encoder", layer=1, l2_distance=2.0, cosine_similarity=0.5)]

    def similarities(self, base, others, corpus, device):
        self.calls.append(("similarities", base.parts[-3], *(each.parts[-3] for each in others)))
        return [[[1.0, 0.5], [0.25, 0.9]] for _ in others]

    def environment(self, device):
        return {"processor": "fake"}, {"bakeoff": "0"}

    def of(self, kind):
        return [call[1:] for call in self.calls if call[0] == kind]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "corpus").mkdir()
    for name in ("train", "dev", "test"):
        (tmp_path / f"{name}.tsv").write_text(name)
    return tmp_path


def plan(folder, **changes):
    task = {"name": "mood", "text_column": "a", "label_column": "b", "finetune": {"epochs": 3}}
    task |= {name: folder / f"{name}.tsv" for name in ("train", "dev", "test")}
    values = {"corpus": folder / "corpus", "recipes": ["one", "two"], "budget": "steps=5", "seeds": 3, "tasks": [task]}
    return Plan.parse({**values, **changes}, "plan")


def go(folder, engine, reports=None, only=(), **changes):
    reports = [] if reports is None else reports
    options = {"engine": engine, "only": only, "report": lambda results, path: reports.append(results)}
    return compare(plan(folder, **changes), folder / "out", **options)


def test_complete_recipes_have_the_tokenizer_of_the_corpus(folder, corpus):
    facts = Engine().corpus(corpus.path, {}, "cpu")
    used = corpus.tokenizer.config
    assert (facts.tokenizer, facts.tokenizer_config) == (str(used), used.model_dump())
    assert facts.tokens == len(corpus.train.tokens)

    class Prepared(FakeEngine):
        def corpus(self, path, recipes, device):
            return facts

    for entry in go(folder, Prepared()).recipes:
        fake = FakeEngine().recipe(entry.label, {}, "cpu")
        assert entry.recipe == {**fake.model_dump(), "tokenizer": used.model_dump()}


def test_everything_runs_interleaved_by_seed(folder):
    engine, reports = FakeEngine(), []
    results = go(folder, engine, reports)
    assert [(name, seed) for name, seed, *_ in engine.of("pretrain")] == [
        (name, seed) for seed in range(3) for name in ("one", "two")
    ]
    assert len(engine.of("finetune")) == 2 * 3 * 2
    assert engine.calls[0] == ("read", "mood")  # mistakes in the data come out before anything is trained
    assert [len(item.finished_seeds) for item in reports] == [1, 2, 3]
    assert [item.real for item in reports[1].analyses[0].pairs] == [None]
    assert results.analyses[0].pairs[0].p is not None
    assert set(results.analyses[0].gains) == {"one", "two"}
    assert [baseline.kind for baseline in results.baselines] == ["simplest", "learned"]
    run = results.recipes[0].runs[2]
    assert ([point.losses for point in run.curve], run.validation_loss) == ([{"mlm": 3.0}, {"mlm": 4.0}], 4.0)
    assert Results.read(folder / "out/results.json") == results
    assert len((folder / "out/results.csv").read_text().splitlines()) == 1 + 12


def test_finished_runs_are_not_run_again(folder):
    first = go(folder, FakeEngine())
    again, reports = FakeEngine(), []
    second = go(folder, again, reports)
    assert again.calls == []
    assert len(reports) == 1
    assert second.model_copy(update={"created": first.created}) == first


@pytest.mark.parametrize("fail_at", [1, 2, 3, 8, 18])
def test_a_failure_in_the_middle_is_resumed(folder, fail_at):
    broken = FakeEngine(fail_at=fail_at)
    with pytest.raises(Interrupted, match="interrupted; what is done is kept, and the same command goes on"):
        go(folder, broken)
    rest = FakeEngine()
    results = go(folder, rest)
    jobs = [call for call in broken.calls + rest.calls if call[0] in ("pretrain", "finetune")]
    assert len(jobs) == 18 + 1
    assert sum(call[-1] is True for call in jobs if call[0] == "pretrain") == (broken.calls[-1][0] == "pretrain")
    assert results.finished_seeds == [0, 1, 2]
    whole = folder / "whole"
    whole.mkdir()
    straight = compare(plan(folder), whole, engine=FakeEngine(), report=lambda results, path: None)
    assert straight.recipes == results.recipes
    assert straight.analyses == results.analyses


@pytest.mark.parametrize("where", ["task", "step_times", "pretrain", "finetune"])
def test_ctrl_c_says_how_to_go_on_whatever_is_being_done(folder, where, monkeypatch):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    engine = FakeEngine()
    with monkeypatch.context() as patch:
        patch.setattr(engine, where, interrupted)
        with pytest.raises(Interrupted, match=r"out: interrupted; .* the same command goes on") as caught:
            go(folder, engine, budget="minutes=1")
    assert caught.value.signal_number == 2
    go(folder, FakeEngine(), budget="minutes=1")


@pytest.mark.parametrize("where", [("pretrain", "two", 1), ("finetune", "scratch", "mood")])
def test_a_recipe_that_diverges_is_left_out_and_named(folder, where):
    engine = FakeEngine(diverging=[where])
    go(folder, FakeEngine(), recipes=["one"])  # the fake fine-tuning does not know its recipe
    results = go(folder, engine)
    assert [entry.label for entry in results.recipes] == ["one"]
    assert [(failure.recipe, failure.seed) for failure in results.failures] == [("two", int(where[0] == "pretrain"))]
    what = "pre-training “two”" if where[0] == "pretrain" else "fine-tuning “two” on “mood” from scratch"
    assert any(f"because a training diverged: “two” ({what}, seed" in line for line in cautions(results))
    assert [seed for _, seed, *_ in engine.of("pretrain")] == ([0, 1] if where[0] == "pretrain" else [0])
    again = FakeEngine()
    assert go(folder, again, recipes=["one", "two"]).failures == results.failures
    assert again.calls == []  # it would diverge again


def test_what_diverged_is_tried_again_with_other_settings_or_when_deleted(folder):
    diverging = [("pretrain", "two", 0)]
    go(folder, FakeEngine(diverging=diverging), seeds=1)
    tamer = ["one", {"recipe": "two", "set": {"lr": 2}}]
    assert len(go(folder, FakeEngine(diverging=diverging), recipes=tamer, seeds=1).failures) == 1
    shutil.rmtree(folder / "out/runs/two/seed-0/pretrain")
    results = go(folder, FakeEngine(), recipes=tamer, seeds=1)
    assert [entry.label for entry in results.recipes] == ["one", "two"]
    assert results.failures == []


def test_a_finetuning_that_a_recipe_cannot_have_is_refused_before_anything_runs(folder):
    engine = FakeEngine()
    task = {"name": "mood", "text_column": "a", "label_column": "b", "finetune": {"length": 7}}
    task |= {name: folder / f"{name}.tsv" for name in ("train", "dev", "test")}
    with pytest.raises(UserError, match="task “mood”, recipes “one” and “two”: length: 7 is too short"):
        go(folder, engine, tasks=[task])
    assert engine.calls == []


def test_nothing_is_reported_where_every_recipe_diverges(folder):
    engine = FakeEngine(diverging=[("pretrain", "one", 0), ("pretrain", "two", 0)])
    with pytest.raises(UserError, match="every recipe diverged: the loss is not a finite number at step 3"):
        go(folder, engine)


def test_minutes_become_steps_once(folder):
    first = FakeEngine(fail_at=4)
    with pytest.raises(Interrupted, match="interrupted; what is done is kept, and the same command goes on"):
        go(folder, first, budget="minutes=2")
    second = FakeEngine(speeds=(9.0, 9.0))
    results = go(folder, second, budget="minutes=2")
    assert first.of("measure") == [("one", "two")]
    assert second.of("measure") == []
    assert {budget for _, _, budget, _ in first.of("pretrain") + second.of("pretrain")} == {"steps=240", "steps=480"}
    assert results.budget.steps == {"one": 240, "two": 480}
    assert json.loads((folder / "out/budget.json").read_text())["text"] == "minutes=2"


def test_steps_are_corrected_once_by_the_first_training(folder):
    """One takes half as long as measured, two 3 % longer, which is let pass."""
    engine = FakeEngine(works={"one": 0.5, "two": 0.515})
    results = go(folder, engine, budget="minutes=2")
    assert results.budget.steps == {"one": 480, "two": 480}
    assert results.budget.seconds_per_step == {"one": 0.25, "two": 0.25}
    assert results.budget.work_seconds_per_step == {"one": 0.5, "two": 0.5}
    made = [("one", 0, "steps=240", False), ("one", 0, "steps=480", False), ("two", 0, "steps=480", False)]
    made += [(name, seed, "steps=480", False) for seed in (1, 2) for name in ("one", "two")]
    assert engine.of("pretrain") == made
    again = FakeEngine(works={"one": 5.0, "two": 5.0})
    assert go(folder, again, budget="minutes=2").budget == results.budget
    assert again.of("pretrain") == []
    added = go(folder, again, budget="minutes=2", recipes=["one", "two", "three"])
    assert added.budget.steps["three"] == 240


def test_a_correction_is_kept_where_the_comparison_is_stopped(folder):
    with pytest.raises(Interrupted):
        go(folder, FakeEngine(fail_at=2, works={"one": 0.5}), budget="minutes=2")  # as it begins anew
    engine = FakeEngine(works={"one": 0.25})
    assert go(folder, engine, budget="minutes=2").budget.steps == {"one": 480, "two": 480}
    assert engine.of("pretrain")[0] == ("one", 0, "steps=480", True)


@pytest.mark.parametrize("killed_at", ["rmtree", "looked"])
def test_a_kill_while_a_training_makes_room_for_a_corrected_one_blocks_nothing(killed_at, folder, monkeypatch):
    class Killed(BaseException):
        pass

    def dies(path, *args, **kwargs):
        if killed_at == "rmtree":
            if not path.exists():
                return
            (path / "recipe.yaml").unlink()
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(*((durable.shutil, "rmtree") if killed_at == "rmtree" else (Spendable, "looked")), dies)
        with pytest.raises(Killed):
            go(folder, FakeEngine(works={"one": 0.5}), budget="minutes=2")
    engine = FakeEngine(works={"one": 0.5})
    assert go(folder, engine, budget="minutes=2").budget.steps["one"] == 480
    assert [resumed for *_, resumed in engine.of("pretrain")] == [False] * len(engine.of("pretrain"))
    assert not any((folder / "out").rglob(".*"))


def test_what_was_spent_stands_beside_what_was_planned(folder):
    results = go(folder, FakeEngine(), budget="minutes=2")

    def changed(**seconds):
        """What the runs of the two took, by work and by the clock."""
        entries = []
        for entry, (work, clock) in zip(results.recipes, seconds.values(), strict=True):
            runs = [run.model_copy(update={"work_seconds": work, "seconds": clock}) for run in entry.runs]
            entries.append(entry.model_copy(update={"runs": runs}))
        return results.model_copy(update={"recipes": entries})

    def warned(results):
        return [line for line in cautions(results) if "planned" in line]

    assert warned(changed(one=(240.0, 120.0), two=(250.0, 131.0))) == []
    (unequal,) = warned(changed(one=(240.0, 120.0), two=(40.0, 20.0)))
    assert "not spent as planned: “two” 17 % of the 2 minutes that were planned by the work done." in unequal
    (busy,) = warned(changed(one=(240.0, 240.0), two=(250.0, 180.0)))
    assert busy.startswith(
        "By the clock, “one” 200 % and “two” 150 % of the 2 minutes that were planned were spent, for"
    )
    unknown = changed(one=(240.0, 120.0), two=(None, 60.0))
    assert [spending(unknown, entry) for entry in unknown.recipes] == [(1.0, 1.0), (0.5, None)]


def test_a_comparison_from_before_recipes_had_a_key_goes_on(folder):
    class Real(FakeEngine):
        def recipe(self, name, overrides, device):
            recipe = load_recipe("gpt-tiny", {"training.clip": 1.0 if name == "one" else 2.0, **overrides})
            return recipe.model_copy(update={"name": name})

    go(folder, Real(), seeds=1)
    for path in (folder / "out" / "runs").rglob("pretrain.settings.json"):
        settings = json.loads(path.read_text())
        del settings["recipe"]["model"]["initial"], settings["recipe"]["objective"][0]["z_loss"]
        path.write_text(json.dumps(settings))
        (path.parent / "bakeoff.sha256").unlink()
    again = Real()
    assert go(folder, again).finished_seeds == [0, 1, 2]
    assert [seed for _, seed, *_ in again.of("pretrain")] == [1, 1, 2, 2]
    with pytest.raises(UserError, match=r"begun with recipe\.model\.dropout 0\.1, not 0\.2"):
        go(folder, Real(), recipes=["one", {"recipe": "two", "set": {"model.dropout": 0.2}}])


def test_a_full_disk_is_told_with_how_to_go_on(folder):
    class Full(FakeEngine):
        def pretrain(self, recipe, corpus, out, **options):
            if options["seed"] == 1:
                raise DiskFull(f"{out}/checkpoints: cannot be written", "continue it with `bakeoff pretrain`")
            super().pretrain(recipe, corpus, out, **options)

    with pytest.raises(DiskFull, match=r"checkpoints: cannot be written; what was trained is kept: .* same command"):
        go(folder, Full())
    engine = FakeEngine()
    go(folder, engine)
    assert [seed for _, seed, *_ in engine.of("pretrain")] == [1, 1, 2, 2]


def test_a_budget_of_epochs_is_told_by_the_tokens_to_train_on(folder):
    results = go(folder, FakeEngine(), budget="epochs=2", seeds=1)  # which makes 50 tokens of the corpus's 25
    assert [spending(results, entry) for entry in results.recipes] == [(1.0, None), (1.0, None)]
    assert not [line for line in cautions(results) if "planned" in line]


def test_other_budgets_are_not_measured(folder):
    engine = FakeEngine()
    results = go(folder, engine, budget="tokens=5M", seeds=1)
    assert engine.of("measure") == []
    assert results.budget.steps == {}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"budget": "steps=6"}, 'begun with budget "steps=5", not "steps=6"'),
        ({"recipes": [{"recipe": "one", "set": {"lr": 2}}, "two"]}, "recipe.training.lr null, not 2"),
        ({"device": "cuda"}, 'device "auto", not "cuda"'),
    ],
)
def test_changed_settings_are_refused_before_anything_runs(folder, changes, message):
    go(folder, FakeEngine(), seeds=1)
    engine = FakeEngine()
    with pytest.raises(UserError) as error:
        go(folder, engine, **changes)
    assert message in str(error.value)
    assert engine.calls == []


def test_a_changed_task_file_or_setting_is_refused(folder):
    go(folder, FakeEngine(), seeds=1)
    (folder / "test.tsv").write_text("other rows")
    with pytest.raises(UserError, match="another content of test"):
        go(folder, FakeEngine(), seeds=1)
    (folder / "test.tsv").write_text("test")
    task = {"name": "mood", "text_column": "a", "label_column": "b", "finetune": {"epochs": 4}}
    task |= {name: folder / f"{name}.tsv" for name in ("train", "dev", "test")}
    with pytest.raises(UserError, match=r"epochs \[3\], not \[4\]"):
        go(folder, FakeEngine(), seeds=1, tasks=[task])


def test_another_corpus_is_refused(folder):
    go(folder, FakeEngine(), seeds=1)
    engine = FakeEngine()
    engine.fingerprint = "def"
    with pytest.raises(UserError, match="begun with another corpus"):
        go(folder, engine, seeds=1)


def test_a_plan_may_grow(folder):
    go(folder, FakeEngine(), seeds=1, budget="minutes=2")
    engine = FakeEngine(speeds=(1.0,))
    results = go(folder, engine, recipes=["one", "two", "three"], seeds=2, finetune_seeds=2, budget="minutes=2")
    assert engine.of("measure") == [("three",)]
    assert len(engine.of("pretrain")) == 1 + 3
    assert results.budget.steps == {"one": 240, "two": 480, "three": 120}
    seeds = {score.finetune_seed for score in results.recipes[2].scores}
    assert seeds == {0, 1}
    assert len(results.recipes[0].scores) == 2 * 2 * 2


def test_without_scratch(folder):
    engine = FakeEngine()
    results = go(folder, engine, from_scratch=False, seeds=1)
    assert {kind for kind, *_ in engine.of("finetune")} == {"pretrained"}
    assert results.analyses[0].gains == results.analyses[0].scratch == {}


@pytest.mark.parametrize("name", ["report.html", "results.csv", "results.json", "figures", "runs"])
def test_results_that_no_comparison_has_written_are_not_replaced(name, folder):
    (folder / "out").mkdir()
    mine = folder / "out" / name
    mine.write_text("mine", encoding="utf-8")
    with pytest.raises(UserError, match=f"{name}: is there already, and not from a comparison; choose another --out"):
        go(folder, FakeEngine())
    assert [path.read_text(encoding="utf-8") for path in mine.parent.iterdir()] == ["mine"]


def test_a_foreign_directory_is_not_touched(folder):
    foreign = folder / "out/runs/one/seed-0/pretrain"
    foreign.mkdir(parents=True)
    (foreign / "mine.txt").touch()
    with pytest.raises(UserError, match="not made by a comparison"):
        go(folder, FakeEngine())
    assert (foreign / "mine.txt").exists()


def test_progress_is_told(folder):
    lines = []
    compare(
        plan(folder, seeds=1),
        folder / "out",
        progress=lines.append,
        engine=FakeEngine(),
        report=lambda results, path: None,
    )
    assert "seed 0: pre-training “one”" in lines
    assert "seed 0: fine-tuning “two” on “mood” from scratch" in lines
    assert lines[-1].startswith("1 of 1 seeds done")


def test_the_real_report_of_a_fake_run(folder, every_chart):
    compare(plan(folder), folder / "out", engine=FakeEngine())
    assert "accuracy" in (folder / "out/report.html").read_text(encoding="utf-8")
    assert list((folder / "out/figures").glob("*.png"))


def test_what_a_recipe_cannot_be_trained_on_is_told_before_anything_is_trained(tmp_path):
    """nsp takes text from other documents, and this text is one; gpt-tiny, which comes first, could be trained."""
    (tmp_path / "a.txt").write_text("\n\n".join(f"Sentence {i} of a text. It goes on." for i in range(400)))
    prepare(tmp_path / "a.txt", tmp_path / "corpus", tokenizer=TokenizerConfig(kind="byte_bpe", size=300))
    rows = "text\tlabel\n" + "".join(f"text {i}\t{i % 2}\n" for i in range(20))
    (tmp_path / "rows.tsv").write_text(rows)
    files = {"train": "rows.tsv", "test": "rows.tsv", "text_column": "text", "label_column": "label"}
    plan = {
        "corpus": "corpus",
        "budget": "steps=3",
        "recipes": ["gpt-tiny", {"recipe": "bert-tiny", "set": {"objective": [{"kind": "mlm"}, {"kind": "nsp"}]}}],
        "tasks": [{"name": "a task", **files}],
    }
    (tmp_path / "plan.yaml").write_text(yaml.safe_dump(plan))
    with pytest.raises(UserError, match=r"corpus, recipe bert-tiny: nsp takes text from other documents"):
        compare(tmp_path / "plan.yaml", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_workers_of_the_callers_train_side_by_side_each_on_a_device(folder):
    alone, engine = FakeEngine(), FakeEngine()
    expected = go(folder, alone)
    devices = []

    def carry_out(job, progress, note):
        devices.append(job.device)
        return engine.carry_out(job, progress, note)

    workers = Threads(["cuda:0", "cuda:1"], carry_out)
    results = compare(plan(folder), folder / "several", engine=engine, workers=workers, report=lambda *_: None)
    assert results.analyses == expected.analyses
    assert sorted(map(str, engine.calls)) == sorted(map(str, alone.calls))
    assert set(devices) == {"cuda:0", "cuda:1"}
    for path in (folder / "out/runs").rglob("*.settings.json"):
        assert (folder / "several" / path.relative_to(folder / "out")).read_bytes() == path.read_bytes()
