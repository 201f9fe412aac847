"""How fast trainings on a GPU are, and how near to what it can do; a part of gpu.py."""

import statistics
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import torch
from gpu_checks import wait_for
from gpu_peaks import share_of_peak

from bakeoff.batching.batches import Batches, BatchSizes, prefetch
from bakeoff.batching.rows import TargetDrawing, TextRows
from bakeoff.conformance.narrow import narrow
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.recipe import Recipe
from bakeoff.recipe_files import load_recipe
from bakeoff.resources.device import Placement, peak_memory, reset_peak_memory
from bakeoff.resources.first_line import first_line
from bakeoff.throughput.cell import Cell, RandomText, numbered_tokenizer
from bakeoff.trainer.step import NORM, optimize
from bakeoff.training.pretraining import Pretraining

MASKED = {"objective": [{"kind": "mlm", "rate": 0.15}]}
TRAININGS: dict[str, tuple[str, int, int, dict[str, Any]]] = {  # recipe, rows of a step, tokens of a row, changes
    "bert-base at 128": ("bert-base", 512, 128, MASKED),
    "bert-base at 512": ("bert-base", 128, 512, MASKED),
    "gpt2-base at 1024": ("gpt2-base", 64, 1024, {}),
    "laptop-hybrid-small": ("laptop-hybrid-small", 512, 128, {}),
}
GOALS = {"bert-base at 128": 850_000, "bert-base at 512": 780_000, "gpt2-base at 1024": 550_000}
"""Tokens a second on one H100 SXM."""
AGAINST_LENGTH = ("laptop-conv-small", "laptop-encoder-small")
TOKENS = 65_536
"""Tokens of a step where speed is measured against length."""
STEPS = 1_000_000


def rate_of(work: Callable[[], Any], amount: float, device: torch.device, seconds: float) -> float:
    """The amount of work a second."""
    work()
    wait_for(device)
    began, count = time.perf_counter(), 0
    while time.perf_counter() - began < seconds:
        for _ in range(10):
            work()
        wait_for(device)
        count += 10
    return amount * count / (time.perf_counter() - began)


def limits(device: torch.device, size: int, seconds: float) -> dict[str, Any]:
    """What the device can do at most: products in bfloat16, and copies."""
    a, b = (torch.randn(size, size, device=device, dtype=torch.bfloat16) for _ in range(2))
    long, copied = (torch.empty(size * size * 4, device=device) for _ in range(2))
    return {
        "products, TFLOP/s": round(rate_of(lambda: a @ b, 2 * size**3, device, seconds) / 1e12, 2),
        "copies, TB/s": round(rate_of(lambda: copied.copy_(long), 2 * long.nbytes, device, seconds) / 1e12, 3),
    }


def timed(step: Callable[[int], Any], device: torch.device, seconds: float, warm: int) -> tuple[float, int]:
    """Seconds of a step, the median of pairs of steps, and the number of steps that were timed.

    Of pairs, because a batch with padding, which comes later than the steps that warm up, makes torch compile anew.
    """
    for number in range(warm):
        step(number)
    wait_for(device)
    began, pairs = time.perf_counter(), []
    while not pairs or time.perf_counter() - began < seconds:
        before = time.perf_counter()
        for one in range(2):
            step(warm + 2 * len(pairs) + one)
        wait_for(device)
        pairs.append(time.perf_counter() - before)
    return statistics.median(pairs) / 2, 2 * len(pairs)


def recipe_of(name: str, smoke: bool) -> Recipe:
    """The recipe of a measured training, in whole rows of one document and without dropout; smaller for `smoke`."""
    recipe_name, rows, length, changes = TRAININGS[name]
    rows, length = (4, 32) if smoke else (rows, length)
    recipe = narrow(recipe_name) if smoke else load_recipe(recipe_name)
    whole = {"input": {"format": "blocks", "length": length, "isolate": False}, "model.dropout": 0.0}
    sizes = {
        "training.batch": rows,
        "training.micro_batch": None,
        "training.first_batch": 1.0,
        "training.curriculum": [],
    }
    return recipe.changed({**whole, **sizes, **changes}).fitted(STEPS)


def unit_of(recipe: Recipe, vocabulary: int, device: torch.device) -> tuple[Any, Iterator[Any]]:
    """A training of random text, and its batches, which are made ahead."""
    rows, length = recipe.training.batch, recipe.input.length
    assert isinstance(rows, int)
    torch.manual_seed(0)
    placement = Placement(device, "bfloat16" if device.type == "cuda" else "float32")
    module = PretrainingModel(recipe, vocabulary).to(device)
    drawing = TargetDrawing(recipe.objective, module.objectives)
    text = TextRows(RandomText(8 * rows, length, vocabulary), numbered_tokenizer(vocabulary), recipe.input, drawing, 0)
    batches = Batches([text], BatchSizes(rows, recipe.training.at_once, STEPS), seed=0)
    stages = SimpleNamespace(step=batches.step, pad=0, dropouts=None)
    unit: Any = Pretraining(recipe, module, placement, stages=stages)  # type: ignore[arg-type]
    unit.begin()
    return unit, prefetch(unit.batches, 0, STEPS)


def training(name: str, device: torch.device, seconds: float, smoke: bool, peak: float | None) -> dict[str, Any]:
    """The speed of a training's steps, its batches made as in training, and its share of the device's peak."""
    recipe = recipe_of(name, smoke)
    rows, length = recipe.training.rows_at_once(recipe.input.length), recipe.input.length
    vocabulary = 160 if smoke else recipe.tokenizer.size
    placement = Placement(device, "bfloat16" if device.type == "cuda" else "float32")
    reset_peak_memory(device)
    unit, coming = unit_of(recipe, vocabulary, device)
    module, waited = unit.module, []
    if not smoke:
        module.compile_layers()

    def step(number: int) -> None:
        began = time.perf_counter()
        batch = next(coming)
        waited.append(time.perf_counter() - began)
        optimize(unit, batch, number)

    each, count = timed(step, device, seconds, warm=2 if smoke else 8)
    coming.close()  # type: ignore[attr-defined]
    rate, flops = rows * length / each, module.flops_per_token()
    return {
        "on": first_line(module.model, placement),
        "tokens/s": round(rate),
        "FLOPs a token": flops,
        "share of the peak": None if peak is None else round(share_of_peak(rate, flops, peak), 4),
        "ms a step": round(1000 * each, 2),
        "ms waiting for a batch": round(1000 * sum(waited[-count:]) / count, 3),
        "GB at most": round(peak_memory(device) / 1e9, 2),
    }


SMALL_ROWS = {"laptop-decoder-mini": (16, 128), "laptop-decoder-small": (32, 128)}
"""Recipes, rows and tokens where launches decide."""


def replayed(device: torch.device, seconds: float, smoke: bool) -> dict[str, Any]:
    """Tokens a second of small models, their layers compiled, and compiled and replayed as CUDA graphs.

    Both take the same steps, without dropout, after which their losses have to be the same, to the precision of
    bfloat16. On a CPU layers are neither compiled nor replayed.
    """
    results: dict[str, Any] = {}
    wrong = []
    for name, (rows, length) in SMALL_ROWS.items():
        rows, length = (4, 32) if smoke else (rows, length)
        rates, losses = [], []
        for graphs in (False, True):
            recipe = narrow(name) if smoke else load_recipe(name)
            whole = {"input": {"format": "blocks", "length": length, "isolate": False}, "model.dropout": 0.0}
            parts = {"training.batch": 2 * rows, "training.micro_batch": rows, "training.first_batch": 1.0}
            recipe = recipe.changed({**whole, **parts, "training.curriculum": []}).fitted(STEPS)
            unit, coming = unit_of(recipe, 160 if smoke else recipe.tokenizer.size, device)
            if device.type == "cuda":
                unit.module.compile_layers(replayed=graphs)
                unit.replayed = graphs
            seen = [optimize(unit, next(coming), step) for step in range(8)]
            losses.append([sum(float(each) for key, each in step.items() if key != NORM) for step in seen])
            each, _ = timed(lambda step: optimize(unit, next(coming), 8 + step), device, seconds, warm=1)  # noqa: B023
            coming.close()  # type: ignore[attr-defined]
            rates.append(round(2 * rows * length / each))
        results[name] = {"compiled, tokens/s": rates[0], "graphs, tokens/s": rates[1], "losses": losses}
        if not all(abs(one - other) <= 0.02 * abs(one) for one, other in zip(*losses, strict=True)):
            wrong.append(name)
    return {**results, "wrong": wrong}


def transformers_training(name: str, device: torch.device, seconds: float, smoke: bool) -> dict[str, Any]:
    """The same shape by transformers, compiled, in bfloat16, with FlashAttention where it is installed, else SDPA."""
    from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, BertConfig, GPT2Config
    from transformers.utils import is_flash_attn_2_available

    causal = name.startswith("gpt2")
    rows, length = (4, 32) if smoke else TRAININGS[name][1:3]
    small = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2} if smoke else {}
    no_dropout = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    config = (
        GPT2Config(resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, n_layer=2 if smoke else 12)
        if causal
        else BertConfig(**no_dropout, **small)
    )
    flash = device.type == "cuda" and is_flash_attn_2_available()
    attention = "flash_attention_2" if flash else "sdpa"
    of = AutoModelForCausalLM if causal else AutoModelForMaskedLM
    reset_peak_memory(device)
    model: Any = of.from_config(config, attn_implementation=attention).to(device).train()
    run = model if smoke else torch.compile(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    ids = torch.randint(5, config.vocab_size, (rows, length), device=device)
    labels = ids.clone()
    if not causal:
        labels[torch.rand(rows, length, device=device) > 0.15] = -100

    def step(number: int) -> None:
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=device.type == "cuda"):
            loss = run(input_ids=ids, labels=labels).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    each, _ = timed(step, device, seconds, warm=2 if smoke else 8)
    memory = round(peak_memory(device) / 1e9, 2)
    return {"attention": attention, "tokens/s": round(rows * length / each), "GB at most": memory}


def against_length(length: int, device: torch.device, smoke: bool) -> dict[str, Any]:
    """Tokens a second of a training step with convolutions and with attention, not compiled, and their ratio."""
    rates: dict[str, Any] = {}
    for name in AGAINST_LENGTH:
        recipe = narrow(name) if smoke else load_recipe(name, {"model.dropout": 0.0})
        rows, vocabulary = (2, 160) if smoke else (max(1, TOKENS // length), recipe.tokenizer.size)
        cell = Cell(recipe, length, rows, vocabulary, device, most_seconds=20)
        cell.prepare()
        turns = sorted(cell.time("training", turn) for turn in range(1, 6))
        cell.seconds = {"training": turns[2]}
        measured = cell.result()
        rates[name] = measured.problem or round(measured.training_tokens_per_second or 0)
    one, other = rates.values()
    return {**rates, "ratio": round(one / other, 2) if isinstance(one, int) and isinstance(other, int) else None}
