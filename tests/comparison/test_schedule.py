"""The order of jobs: whatever ends first, the outcome is that of one job at a time."""

import json
import random
from pathlib import Path

import pytest

from bakeoff import checksums
from bakeoff.comparison.planning.plan import Plan
from bakeoff.comparison.running.planned import PlannedTrainings
from bakeoff.comparison.running.schedule import Schedule
from bakeoff.errors import UserError


@pytest.fixture
def jobs(tmp_path):
    for name in ("train", "dev", "test"):
        (tmp_path / f"{name}.tsv").write_text(name)
    task = {"name": "mood", "text_column": "a", "label_column": "b"}
    task |= {name: tmp_path / f"{name}.tsv" for name in ("train", "dev", "test")}
    values = {
        "corpus": tmp_path,
        "recipes": ["one", "two", "three"],
        "budget": "minutes=5",
        "seeds": 3,
        "tasks": [task],
    }
    plan = Plan.parse(values, "plan")
    recipes = {item.name: {"model": item.name} for item in plan.recipes}
    return PlannedTrainings(plan, tmp_path / "out", recipes, "abc", dict.fromkeys(recipes, "minutes=5"))


def finish(job):
    """Leave what a job that has finished leaves."""
    job.begin()
    job.directory.mkdir(parents=True)
    (job.directory / job.marker).touch()


def run(jobs, out, slots, order, diverging):
    """Simulate: jobs of a schedule end in a random order; returns what was published, and when each job began."""
    jobs = PlannedTrainings(jobs.plan, out, jobs.recipes, jobs.corpus, jobs.budgets)
    looked = set()

    def settled(job):
        return job.seed == 0 or job.recipe.name in looked

    seeds = jobs.plan.seeds
    schedule = Schedule(jobs.all(), seeds, {}, settled)
    running, began, published = [], [], []
    while True:
        while len(running) < slots and (place := schedule.next(longest_first=slots > 1)) is not None:
            running.append(place)
            began.append(place)
            job = schedule.trainings[place]
            if hasattr(job, "initialisation") and job.initialisation == "pretrained":
                assert job.begins_from.finished
        for last in range(len(published) + 1, len(seeds) + 1):
            if not schedule.is_over(seeds[:last]):
                break
            failures = schedule.failures(seeds[:last])
            published.append({name: (each.seed, each.training) for name, each in failures.items()})
        if not running:
            assert schedule.waiting == []
            assert len(published) == len(seeds)
            return published, [schedule.trainings[place] for place in began]
        place = running.pop(order.randrange(len(running)))
        job = schedule.trainings[place]
        if place in diverging:
            schedule.diverged(place, "not a number")
        else:
            finish(job)
            schedule.finished(place)
        looked.add(job.recipe.name)


@pytest.mark.parametrize("number", range(30))
def test_however_many_run_side_by_side_the_same_is_published(jobs, tmp_path, number):
    order = random.Random(number)
    every = list(jobs.all())
    diverging = set(order.sample(range(len(every)), order.randrange(9)))
    one, began = run(jobs, tmp_path / "one", 1, order, diverging)
    assert [every.index(_same(job, every)) for job in began] == sorted(every.index(_same(job, every)) for job in began)
    for slots in (2, 3, 8):
        several, _ = run(jobs, tmp_path / f"several-{slots}", slots, order, diverging)
        assert several == one


def _same(job, every):
    """The job with the same title and seed, wherever it writes."""
    return next(each for each in every if (each.title, each.seed) == (job.title, job.seed))


def test_pretrainings_of_a_seed_come_before_what_is_short(jobs, tmp_path):
    _, began = run(jobs, tmp_path / "out", 2, random.Random(0), set())
    kinds = [(job.seed, Path(job.directory).name == "pretrain") for job in began]
    assert kinds[:2] == [(0, True), (0, True)]
    first_of = {seed: min(i for i, kind in enumerate(kinds) if kind == (seed, False)) for seed in range(3)}
    for seed in range(1, 3):
        last = max(i for i, kind in enumerate(kinds) if kind == (seed, True))
        assert last < first_of[seed] + 3


def test_what_is_left_out_is_done_in_nobodys_place(jobs, tmp_path):
    """Of three recipes that are one training the second is done where the first diverged; the third is its copy."""
    same = PlannedTrainings(
        jobs.plan, tmp_path / "out", {name: {"model": "one"} for name in jobs.recipes}, "abc", jobs.budgets
    )
    trainings = [each for each in same.all() if each.seed == 0]
    firsts = [index for index, each in enumerate(trainings) if each.title.startswith("pre-training")]
    assert [trainings[index].recipe.name for index in firsts] == ["one", "two", "three"]
    schedule = Schedule(trainings, [0], {}, lambda job: True)
    assert [schedule.equals.get(index) for index in firsts] == [None, firsts[0], firsts[0]]
    index = schedule.next(longest_first=False)
    assert index == firsts[0]
    schedule.diverged(index, "the loss is nan")
    assert [schedule.equals.get(index) for index in firsts] == [None, None, firsts[1]]
    assert all(trainings[first].recipe.name != "one" for first in schedule.equals.values())
    trainings[firsts[0]].fail("the loss is nan")
    assert Schedule(trainings, [0], {}, lambda job: True).equals == schedule.equals


def test_a_fine_tuning_from_scratch_that_read_another_recipe_is_refused(jobs, tmp_path):
    """The length of rows and the precision decide it, beside the model; older versions did not keep them."""

    def planned(length):
        recipes = {name: {"model": "one", "input": {"length": length}} for name in jobs.recipes}
        all = PlannedTrainings(jobs.plan, tmp_path / "out", recipes, "abc", jobs.budgets).all()
        return next(each for each in all if "from scratch" in each.title)

    before = planned(128)
    finish(before)
    before.check()
    with pytest.raises(UserError, match=r"begun with pretraining\.from_scratch\.input\.length 128, not 64; .*delete"):
        planned(64).check()
    file = before.directory.with_name(f"{before.directory.name}.settings.json")
    kept = json.loads(file.read_text())
    del kept["pretraining"]["from_scratch"]
    checksums.write(file, json.dumps(kept))
    planned(64).check()


@pytest.mark.parametrize("asked", [{"epochs": 10, "least_steps": 300}, {"epochs": 10}, {"least_steps": 300}, {}])
def test_what_a_plan_asks_of_fine_tuning_is_what_was_begun(jobs, tmp_path, asked):
    """Also where it is what older versions wrote for the defaults, which are the defaults still."""

    def planned(finetune):
        tasks = [
            {**json.loads(task.model_dump_json(exclude_unset=True)), "finetune": finetune} for task in jobs.plan.tasks
        ]
        plan = Plan.parse({**json.loads(jobs.plan.model_dump_json(exclude_unset=True)), "tasks": tasks}, "plan")
        all = PlannedTrainings(plan, tmp_path / "out", jobs.recipes, "abc", jobs.budgets).all()
        return next(each for each in all if "from scratch" in each.title)

    finish(planned(asked))
    planned(asked).check()
    other = {"epochs": 11, "least_steps": 300}
    with pytest.raises(UserError, match=r"begun with finetune\.epochs"):
        planned(other).check()
    if asked == {"epochs": 10, "least_steps": 300}:
        planned({}).check()
