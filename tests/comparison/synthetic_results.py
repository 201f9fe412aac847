"""Synthetic results: what a comparison of four recipes might have found."""

import numpy as np

from bakeoff.comparison.facts import BudgetFacts, CorpusFacts, TaskFacts
from bakeoff.comparison.latency import Latency
from bakeoff.comparison.layer_profiles import KernelProfile, LayerProfile, RecipeLayers
from bakeoff.comparison.pretraining_run import CurvePoint, PretrainingRun
from bakeoff.comparison.results import Baseline, FinetuningScore, RecipeEntry, Results
from bakeoff.comparison.statistics.factors import analyse_factors
from bakeoff.comparison.statistics.groups import Group, moderate
from bakeoff.comparison.statistics.pairs import all_pairs, describe, gains
from bakeoff.comparison.task_analysis import Analysis
from bakeoff.tasks.scores.jackknife import of_classes

OBJECTIVES = {
    "bert": [{"kind": "mlm", "rate": 0.15, "ngram": 1}, {"kind": "nsp"}],
    "albert": [{"kind": "mlm", "rate": 0.15, "ngram": 3}, {"kind": "sop"}],
    "conv": [{"kind": "mlm", "rate": 0.15, "ngram": 1}],
    "gpt": [{"kind": "clm"}],
}
ENTROPY = 6.9
TFIDF = "TF-IDF with logistic regression"


def curve(objectives, seed, steps, tokens, seconds, depth):
    random = np.random.default_rng([seed, steps])
    found = []
    for part in np.linspace(0.02, 1, 40):
        losses, byte, accuracy = {}, {}, {}
        for objective in objectives:
            name = objective["kind"]
            if name in ("mlm", "clm"):
                fall = depth / (1 + np.exp(-(part - 0.25) * 12))
                losses[name] = 7.0 + 2.0 * np.exp(-part * 30) - fall + random.normal(0, 0.03)
                byte = {name: losses[name] * 0.32} if name == "clm" else byte
            else:
                losses[name] = 0.69 - 0.25 * part * (depth / 3) + random.normal(0, 0.01)
            accuracy[name] = 0.5
        place = {"step": round(part * steps), "tokens": round(part * tokens), "seconds": part * seconds}
        found.append(CurvePoint(**place, flops=part * 1e15, losses=losses, bits_per_byte=byte, accuracy=accuracy))
    return found


def layer(number, convolution):
    """A layer, with a kernel of three taps."""
    kernel = KernelProfile(kind="LightConv", offsets=[-1, 0, 1], shares=[0.25, 0.5, 0.25], mean_distance=0.5)
    distances = {"l2_distance": 3.0 * number, "cosine_similarity": 1 - 0.1 * number}
    return LayerProfile(stack="encoder", layer=number, **distances, kernels=[kernel] * convolution)


def as_errors(results, task, scale=1.5):
    """The results with one task's accuracies turned into mean absolute errors; who is better stays."""

    def turned(value):
        return scale * (1 - value)

    def spread(one):
        ends = None if one.interval is None else tuple(sorted(map(turned, one.interval)))
        changes = {"seeds": {seed: turned(value) for seed, value in one.seeds.items()}, "interval": ends}
        changes |= {"low": turned(one.high), "high": turned(one.low), "deviation": scale * (one.deviation or 0)}
        return one.model_copy(update={**changes, "mean": turned(one.mean), "median": turned(one.median)})

    def difference(one):
        ends = None if one.interval is None else tuple(sorted(-scale * each for each in one.interval))
        return one.model_copy(update={"difference": -scale * one.difference, "interval": ends})

    def analysis(one):
        if one.task != task:
            return one
        spreads = {start: {n: spread(s) for n, s in getattr(one, start).items()} for start in ("pretrained", "scratch")}
        made = {"pairs": [*map(difference, one.pairs)], "gains": {n: difference(g) for n, g in one.gains.items()}}
        return one.model_copy(update={**spreads, **made})

    kind = {"kind": "regression", "metric": "mean_absolute_error", "metric_title": "mean absolute error", "unit": ""}
    facts = [
        each.model_copy(update={**kind, "lower_is_better": True, "classes": 0}) if each.name == task else each
        for each in results.tasks
    ]
    names = {"simplest": "mean of train", "learned": "TF-IDF with ridge regression"}
    baselines = [
        each.model_copy(
            update={"name": names[each.kind], "test": {"mean_absolute_error": turned(each.test["accuracy"])}}
        )
        if each.task == task
        else each
        for each in results.baselines
    ]
    analyses = [*map(analysis, results.analyses)]
    return results.model_copy(update={"tasks": facts, "baselines": baselines, "analyses": analyses})


def make_results(
    names=None, seeds=3, tasks=("SST-2", "TREC"), rows=800, baseline=0.78, scratch=True, depths=None, grids=()
):
    names = names or ["bert-mini", "albert-tiny", "conv-light-encoder-tiny", "gpt-tiny"]
    kinds = [list(OBJECTIVES)[i % 4] for i in range(len(names))]
    depths = depths or [2.6, 0.02, 3.0, 2.2]
    skills = [1.05, 0.62, 1.32, 1.0]
    random = np.random.default_rng(0)
    truth = {task: random.integers(2 if i == 0 else 6, size=rows) for i, task in enumerate(tasks)}
    hardness = {task: random.normal(size=rows) for task in tasks}
    entries, groups = [], {task: {"pretrained": {}, "scratch": {}} for task in tasks}
    for i, (name, kind) in enumerate(zip(names, kinds, strict=True)):
        runs, scores = [], []
        steps, tokens = 3000 + 500 * i, 12_000_000 + 2_000_000 * i
        for seed in range(seeds):
            points = curve(OBJECTIVES[kind], seed, steps, tokens, 600 - 3 * i, depths[i % 4])
            common = {"seed": seed, "steps": steps, "tokens": tokens, "flops": 1e15, "unigram_entropy": ENTROPY}
            runs.append(
                PretrainingRun(
                    **common,
                    path=f"runs/{i}/seed-{seed}/pretrain",
                    seconds=600 - 3 * i,
                    tokens_per_second=tokens / 600,
                    peak_memory_bytes=900 * 2**20 + i * 2**28,
                    curve=points,
                )
            )
            for task in tasks:
                for start in ("pretrained", "scratch") if scratch else ("pretrained",):
                    skill = skills[i % 4] if start == "pretrained" else 0.75 + 0.03 * i
                    latent = skill + hardness[task] + random.normal(0, 0.4, rows) + random.normal(0, 0.03)
                    wrong = (truth[task] + 1) % (truth[task].max() + 1)
                    answers = np.where(latent > 0, truth[task], wrong)
                    values = {"accuracy": float((answers == truth[task]).mean())}
                    values |= {"macro_f1": values["accuracy"] - 0.01, "matthews": 2 * values["accuracy"] - 1}
                    scores.append(
                        FinetuningScore(
                            task=task,
                            seed=seed,
                            finetune_seed=0,
                            initialisation=start,
                            learning_rate=1e-4,
                            dev=values,
                            test=values,
                            predictions="p.jsonl",
                            transferred_tensors=52 if start == "pretrained" else 0,
                            best_epoch=3,
                            seconds=40,
                        )
                    )
                    kept = groups[task][start].setdefault(name, {})
                    kept[seed] = [(values["accuracy"], of_classes(truth[task], answers, "accuracy"))]
        recipe = {"name": name, "model": {"encoder": {"layers": 4, "width": 256}}, "objective": OBJECTIVES[kind]}
        cost = {"parameters": 11_200_000 + 900_000 * i, "flops_per_token": 2.6e7 + 4e6 * i, "steps": steps}
        entries.append(RecipeEntry(label=name, recipe=recipe, **cost, runs=runs, scores=scores))
    analyses = []
    for task in tasks:
        made = {start: moderate({n: Group.of(r) for n, r in found.items()}) for start, found in groups[task].items()}
        spreads = {start: {n: describe(g) for n, g in found.items()} for start, found in made.items()}
        tests = {"pairs": all_pairs(made["pretrained"]), "gains": gains(made["pretrained"], made["scratch"])}
        factors = [analyse_factors(grid, made["pretrained"]) for grid in grids]
        analyses.append(Analysis(task=task, **spreads, **tests, factors=factors))
    metrics = {"accuracy": 0.51, "macro_f1": 0.34, "matthews": 0.0}
    baselines = []
    for task in tasks:
        baselines.append(Baseline(task=task, kind="simplest", name="most frequent class", dev=metrics, test=metrics))
        learned = {"accuracy": baseline, "macro_f1": baseline, "matthews": baseline}
        baselines.append(Baseline(task=task, kind="learned", name=TFIDF, dev=learned, test=learned, seconds=5e-4))
    facts = [
        TaskFacts(
            name=task,
            metric="accuracy",
            metric_title="accuracy",
            unit="%",
            classes=2 if i == 0 else 6,
            rows={"train": 2000, "dev": 400, "test": rows},
            files={"train": "train.tsv", "dev": "dev.tsv", "test": "test.tsv"},
        )
        for i, task in enumerate(tasks)
    ]
    latencies = [
        Latency(recipe=name, task=task, seconds=0.004 - 0.0005 * i, parameters=9_000_000 + 900_000 * i, trained="a1")
        for task in tasks
        for i, name in enumerate(names)
    ]
    layers = [
        RecipeLayers(recipe=name, layers=[layer(number, "conv" in name) for number in (1, 2)], trained="a1")
        for name in names
    ]
    return Results(
        title="Which model to pre-train on our encyclopedia",
        created="2025-01-31T12:00:00+00:00",
        planned_seeds=list(range(max(seeds, 3))),
        finished_seeds=list(range(seeds)),
        finetune_seeds=1,
        device="cpu",
        budget=BudgetFacts(
            text="minutes=10",
            steps={entry.label: entry.steps for entry in entries},
            seconds_per_step={entry.label: 0.2 for entry in entries},
        ),
        corpus=CorpusFacts(
            path="corpora/encyclopedia",
            fingerprint="3f9a0c5e77d1",
            tokenizer="wordpiece, 8,192 tokens, lower case",
            tokens=42_000_000,
            documents=61_000,
            unigram_entropy=ENTROPY,
        ),
        tasks=facts,
        recipes=entries,
        baselines=baselines,
        grids=list(grids),
        analyses=analyses,
        latencies=latencies,
        layers=layers,
        machine={"processor": "x86-64, 2 cores", "memory": "8 GiB", "system": "Linux"},
        versions={"bakeoff": "0.1.0", "torch": "2.13.0", "python": "3.11"},
    )
