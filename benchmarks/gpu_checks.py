"""Whether trainings on a GPU are right: losses, waits, attention within documents, stops; a part of gpu.py."""

import time
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from bakeoff.conformance.narrow import narrow, without_dropout
from bakeoff.conformance.texts import digit_pairs, sentences
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.ops.attention import attention
from bakeoff.ops.document_attention import Demands, document_attention, why_not
from bakeoff.preparation.prepare import prepare
from bakeoff.preparation.prepare_pairs import prepare_pairs
from bakeoff.recipe import Recipe
from bakeoff.resources.device import Placement, resolve_precision
from bakeoff.spans import spans_of
from bakeoff.tokenizer.tokenizer_config import TokenizerConfig
from bakeoff.trainer.step import optimize
from bakeoff.training.pretrain import pretrain
from bakeoff.training.pretraining import Pretraining
from bakeoff.training.stages import Stages, make_batches

RESUMED = ("bert-tiny", "laptop-hybrid-tiny", "transformer-xl-tiny", "electra-tiny")
"""Recipes with AdamW without bias correction, Muon, a memory, and a generator."""


def wait_for(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


class Corpora:
    """Two small corpora: a text, and pairs of texts."""

    def __init__(self, folder: Path) -> None:
        lines = [" ".join(sentences(6, seed=seed)) for seed in range(200)]
        (folder / "text.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
        for side, name in enumerate(("one.txt", "other.txt")):
            pairs = [pair[side] for pair in digit_pairs(600, longest=10)]
            (folder / name).write_text("\n".join(pairs) + "\n", encoding="utf-8")
        small = {"tokenizer": TokenizerConfig(size=160), "validation": 0.1, "workers": 0}
        self.text = prepare([folder / "text.txt"], folder / "text", document_per_line=True, **small)
        self.pairs = prepare_pairs(folder / "one.txt", folder / "other.txt", folder / "pairs", **small)

    def of(self, recipe: Recipe) -> Any:
        """The corpus on which a recipe is trained."""
        return self.pairs if recipe.input.parallel else self.text


def losses_against_cpu(corpora: Corpora, device: torch.device, names: list[str], ends: float) -> dict[str, Any]:
    """The largest relative difference of a recipe's first losses in float32, and the recipes beyond a thousandth."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    differences, left_out = {}, []
    for name in names:
        if time.monotonic() > ends:
            left_out.append(name)
            continue
        recipe = without_dropout(narrow(name))
        corpus = corpora.of(recipe)
        torch.manual_seed(0)
        module = PretrainingModel(recipe, corpus.tokenizer.size)
        (batch, *_) = make_batches(recipe, module, corpus, seed=0).step(0)
        found = []
        for on in (torch.device("cpu"), device):
            module = module.to(on).eval()
            state = module.model.start(len(batch.row.ids)) if recipe.input.continues else None
            with torch.no_grad():
                found.append({key: float(loss) for key, loss in module(batch.to(on), state)[0].items()})
        cpu, other = found
        differences[name] = max(abs(other[key] - cpu[key]) / max(1e-6, abs(cpu[key])) for key in cpu)
    torch.set_float32_matmul_precision(before)
    wrong = [name for name, difference in differences.items() if not difference < 1e-3]
    worst = max(differences.values(), default=0.0)
    return {"recipes": len(differences), "largest difference": worst, "wrong": wrong, "left out": left_out}


def steps_without_waits(corpora: Corpora, device: torch.device, names: list[str], ends: float) -> dict[str, Any]:
    """The recipes whose third step waits for the device; torch itself raises the error."""
    wrong, seen, left_out = {}, 0, []
    for name in names:
        if time.monotonic() > ends:
            left_out.append(name)
            continue
        recipe, seen = narrow(name), seen + 1
        corpus = corpora.of(recipe)
        module = PretrainingModel(recipe, corpus.tokenizer.size).to(device)
        placement = Placement(device, resolve_precision("auto", device))
        unit = Pretraining(recipe, module, placement, stages=Stages(recipe, module, corpus, seed=0))
        unit.begin()
        for step in range(3):
            batches = unit.batches(step)
            wait_for(device)
            if device.type == "cuda" and step == 2:
                torch.cuda.set_sync_debug_mode("error")
            try:
                optimize(unit, batches, step)
            except RuntimeError as error:
                wrong[name] = str(error).splitlines()[0]
            finally:
                if device.type == "cuda":
                    torch.cuda.set_sync_debug_mode("default")
    return {"recipes": seen, "wrong": wrong, "left out": left_out}


def documents_against_masks(device: torch.device, rows: int, length: int) -> dict[str, Any]:
    """The largest difference of attention within documents from attention with a mask, in bfloat16."""
    reasons = {
        f"dropout {dropout}": why_not(device, torch.bfloat16, Demands(windows=True, dropout=dropout, width=64))
        for dropout in (False, True)
    }
    if any(reasons.values()):
        return {"wrong": reasons if device.type == "cuda" else [], "kernels": reasons}
    owners = (torch.arange(length) * 7 // length + 1).repeat(rows, 1)
    drawn = [torch.randn(rows, 4, length, 64, device=device, dtype=torch.bfloat16) for _ in range(3)]
    worst = {}
    for causal in (False, True):
        for window in (None, 16):
            distance = torch.arange(length) - torch.arange(length)[:, None]
            mask = (owners[:, :, None] == owners[:, None]) & (distance.abs() <= (window or length))
            mask = (mask & (distance <= 0) if causal else mask)[:, None].to(device)
            bounds = spans_of(owners).bounds(device)
            found = document_attention(*drawn, bounds, causal=causal, window=window)
            expected = attention(*[each.float() for each in drawn], mask=mask)
            worst[f"causal {causal}, window {window}"] = float((found.float() - expected).abs().max())
    return {"differences": worst, "wrong": [key for key, value in worst.items() if not value < 0.03]}


def resumed(corpora: Corpora, device: torch.device, folder: Path, smoke: bool) -> dict[str, Any]:
    """The recipes that are not the same to the last bit when they were stopped and resumed."""
    torch.use_deterministic_algorithms(True, warn_only=True)  # some sums have no fixed order on a GPU
    wrong, names = [], RESUMED[:2] if smoke else RESUMED
    for name in names:
        recipe, options = narrow(name), {"progress": False, "device": str(device)}
        whole, stopped = folder / f"{name}-whole", folder / f"{name}-stopped"
        runs = [pretrain(recipe, corpora.text.path, whole, **options)]
        pretrain(recipe, corpora.text.path, stopped, until=5, **options)
        runs.append(pretrain(recipe, corpora.text.path, stopped, resume=True, **options))
        one, other = (load_file(run.weights_file()) for run in runs)
        if not all(torch.equal(one[key], other[key]) for key in one):
            wrong.append(name)
    torch.use_deterministic_algorithms(False)
    return {"recipes": list(names), "wrong": wrong}
