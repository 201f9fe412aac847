"""What a device has to give as the CPU does; each check raises an AssertionError where it does not.

They need no pytest, so that `benchmarks/gpu.py` may call them on a machine that has none. On the CPU itself they show
that they run.
"""

import contextlib
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import torch
from safetensors.torch import load_file

from bakeoff.batching.batch import Batch
from bakeoff.conformance.narrow import narrow, without_dropout
from bakeoff.conformance.texts import digit_pairs, sentences
from bakeoff.generation.config import GenerationConfig
from bakeoff.generation.generator import Generator
from bakeoff.generation.writer import writer_of
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.models import attention_needs
from bakeoff.ops.attention import attention
from bakeoff.ops.document_attention import Demands, document_attention, source_attention, why_not
from bakeoff.preparation.prepare import prepare
from bakeoff.preparation.prepare_pairs import prepare_pairs
from bakeoff.recipe import Recipe
from bakeoff.recipe_files import load_recipe, recipe_names
from bakeoff.resources.device import Placement
from bakeoff.row import Row
from bakeoff.runs.run import Run
from bakeoff.spans import bounds_of_source, spans_of
from bakeoff.tasks.language import evaluate_texts, open_scores
from bakeoff.tokenizer.tokenizer_config import TokenizerConfig
from bakeoff.training.pretrain import pretrain
from bakeoff.training.stages import make_batches


class Corpora:
    """A small text and small pairs of texts, and runs that were trained on them on the CPU."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._runs: dict[str, Run] = {}

    @cached_property
    def text(self) -> Any:
        """A corpus of 200 documents."""
        lines = [" ".join(sentences(6, seed=seed)) for seed in range(200)]
        (self.folder / "text.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
        return prepare([self.folder / "text.txt"], self.folder / "text", document_per_line=True, **_SMALL)

    @cached_property
    def pairs(self) -> Any:
        """A corpus of 600 pairs."""
        for side, name in enumerate(("one.txt", "other.txt")):
            texts = [pair[side] for pair in digit_pairs(600, longest=10)]
            (self.folder / name).write_text("\n".join(texts) + "\n", encoding="utf-8")
        return prepare_pairs(self.folder / "one.txt", self.folder / "other.txt", self.folder / "pairs", **_SMALL)

    def of(self, recipe: Any) -> Any:
        """The corpus on which a recipe is trained."""
        return self.pairs if recipe.input.parallel else self.text

    def run(self, name: str) -> Run:
        """A run of a recipe after a few steps on the CPU."""
        if name not in self._runs:
            recipe = without_dropout(narrow(name))
            out = self.folder / f"run of {name}"
            self._runs[name] = pretrain(recipe, self.of(recipe).path, out, device="cpu", progress=False)
        return self._runs[name]


_SMALL: dict[str, Any] = {"tokenizer": TokenizerConfig(size=160), "validation": 0.1, "workers": 0}


@contextlib.contextmanager
def exact_products() -> Any:
    """A context in which products of float32 are not made in TF32."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def begun(recipe: Recipe, corpora: Corpora) -> tuple[PretrainingModel, Batch]:
    """A recipe's model with fresh weights, on the CPU, and its first batch."""
    corpus = corpora.of(recipe)
    torch.manual_seed(0)
    module = PretrainingModel(recipe, corpus.tokenizer.size)
    return module, make_batches(recipe, module, corpus, seed=0).step(0)[0]


def losses_on(
    device: torch.device, precision: str, recipe: Recipe, module: PretrainingModel, batch: Batch
) -> dict[str, torch.Tensor]:
    """The summed losses of a batch by a model that is on a device."""
    with Placement(device, precision).autocast():
        state = module.model.start(len(batch.row.ids)) if recipe.input.continues else None
        sums: dict[str, torch.Tensor] = module(batch.to(device), state)[0]
    return sums


def gradients(name: str, device: torch.device, corpora: Corpora) -> None:
    """Losses and gradients of a recipe's first batch, in float32 without dropout."""
    recipe = without_dropout(narrow(name))
    module, batch = begun(recipe, corpora)
    losses, found = [], []
    with exact_products():
        for on in (torch.device("cpu"), device):
            module = module.to(on).train()
            module.zero_grad()
            sums = losses_on(on, "float32", recipe, module, batch)
            torch.stack(list(sums.values())).sum().backward()
            losses.append({key: float(each.detach()) for key, each in sums.items()})
            named = module.named_parameters()
            found.append({key: each.grad.cpu().double() for key, each in named if each.grad is not None})
    for key, loss in losses[0].items():
        assert abs(losses[1][key] - loss) <= 1e-3 * abs(loss) + 1e-6, (
            f"loss {key}: {losses[1][key]} and {loss} on a CPU"
        )
    assert found[0].keys() == found[1].keys()
    whole = sum(float(each.square().sum()) for each in found[0].values()) ** 0.5
    for key, gradient in found[0].items():
        difference = float((found[1][key] - gradient).norm())
        assert difference <= 1e-2 * float(gradient.norm()) + 1e-5 * whole, f"gradient of {key} differs by {difference}"


def precise_steps(name: str, device: torch.device, corpora: Corpora) -> None:
    """Losses of a recipe's first rows, in their whole size and in bfloat16, and that all gradients are finite.

    Kernels are chosen by widths and lengths, so that narrow models do not show what wide ones do.
    """
    whole = {"training.batch": 4, "training.micro_batch": None, "training.first_batch": 1.0, "training.curriculum": []}
    recipe = without_dropout(load_recipe(name)).changed(whole)
    module, batch = begun(recipe, corpora)
    losses = []
    for on, precision in ((torch.device("cpu"), "float32"), (device, "bfloat16")):
        module = module.to(on).train()
        sums = losses_on(on, precision, recipe, module, batch)
        losses.append({key: float(each.detach()) for key, each in sums.items()})
    torch.stack(list(sums.values())).sum().backward()
    for key, loss in losses[0].items():
        assert abs(losses[1][key] - loss) <= 0.03 * abs(loss), f"loss {key}: {losses[1][key]}, in float32 {loss}"
    named = module.named_parameters()
    wrong = [key for key, each in named if each.grad is not None and not bool(each.grad.isfinite().all())]
    assert not wrong, f"gradients of {len(wrong)} parameters are not finite, {wrong[0]} first"


def resumed(name: str, device: torch.device, corpora: Corpora) -> None:
    """A training that was stopped and resumed, to the last bit."""
    deterministic = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)  # some sums have no fixed order on a GPU
    try:
        recipe, options = narrow(name), {"progress": False, "device": str(device)}
        whole, stopped = (corpora.folder / f"{name} {word} on {device.type}" for word in ("whole", "stopped"))
        text = corpora.of(recipe).path
        runs = [pretrain(recipe, text, whole, **options)]
        pretrain(recipe, text, stopped, until=5, **options)
        runs.append(pretrain(recipe, text, stopped, resume=True, **options))
    finally:
        torch.use_deterministic_algorithms(deterministic)
    one, other = (load_file(run.weights_file()) for run in runs)
    unlike = [key for key in one if not torch.equal(one[key], other[key])]
    assert not unlike, f"{len(unlike)} of {len(one)} tensors differ, {unlike[0]} first"


def generation(name: str, device: torch.device, corpora: Corpora) -> None:
    """Tokens that a decoder writes on the device one by one are the likeliest by a pass on the CPU."""
    prompts = [[7, 8, 9], [11, 12], [20, 21, 22, 23, 24]]
    with exact_products():
        module = corpora.run(name).load(device)
        config = GenerationConfig(tokens=6, temperature=0.0)
        written = Generator(module, None).write(prompts, config)
        writer = writer_of(corpora.run(name).load(torch.device("cpu")))
        for prompt, tokens in zip(prompts, written, strict=True):
            assert len(tokens) == 6
            for count, token in enumerate(tokens):
                ids = torch.tensor([[*prompt, *tokens[:count]]])
                with torch.inference_mode():
                    (scores,), _ = writer(Row(ids), writer.model.start(1))
                lost = float(scores.max() - scores[token])
                assert lost <= 1e-2, f"token {count + 1} is {lost} nats below the likeliest on a CPU"


def scoring(name: str, device: torch.device, corpora: Corpora) -> None:
    """Log-probabilities of texts."""
    texts: list[tuple[str, ...]] = [(text,) for text in sentences(7, seed=3)]
    if narrow(name).input.parallel:
        texts = [tuple(pair) for pair in digit_pairs(7, longest=6)]
    with exact_products():
        one, other = (
            evaluate_texts(open_scores(corpora.run(name), texts, device=on))["results"] for on in ("cpu", str(device))
        )
    for expected, found in zip(one, other, strict=True):
        wanted, got = expected["log_probability"], found["log_probability"]
        assert abs(got - wanted) <= 1e-3 * abs(wanted) + 1e-3, f"{got} and {wanted} on a CPU"


KINDS = ("document", "causal", "window", "causal window", "source")
"""Attention by the kernels for documents, by what is seen."""


def kernels(name: str, device: torch.device, corpora: Corpora) -> None:
    """Attention within documents, or to sources, against masks, in bfloat16; on a CPU there is no such kernel."""
    window = 16 if "window" in name else None
    reason = why_not(device, torch.bfloat16, Demands(window is not None, False, 64, source=name == "source"))
    if device.type == "cpu":
        assert reason is not None
        return
    assert reason is None, reason
    rows, length = 2, 256
    generator = torch.Generator().manual_seed(0)
    drawn = [torch.randn(rows, 4, length, 64, generator=generator).to(device, torch.bfloat16) for _ in range(3)]
    if name == "source":
        there = (torch.arange(length) < torch.tensor([[length], [length - 77]])).to(device)
        found, mask = source_attention(*drawn, bounds_of_source(there, length)), there[:, None, None]
    else:
        owners, causal = (torch.arange(length) * 7 // length + 1).repeat(rows, 1), name.startswith("causal")
        distance = torch.arange(length) - torch.arange(length)[:, None]
        mask = (owners[:, :, None] == owners[:, None]) & (distance.abs() <= (window or length))
        mask = (mask & (distance <= 0) if causal else mask)[:, None].to(device)
        found = document_attention(*drawn, spans_of(owners).bounds(device), causal=causal, window=window)
    expected = attention(*[each.float() for each in drawn], mask=mask)
    worst = float((found.float() - expected).abs().max())
    assert worst < 0.03, f"the largest difference is {worst}"


def attention_of_a_model(name: str, device: torch.device, corpora: Corpora) -> None:
    """Hidden states of a batch in bfloat16, by whatever attention the device has, against attention with masks."""
    module, batch = begun(without_dropout(narrow(name)), corpora)
    module, batch = module.to(device).eval(), batch.to(device)
    there = batch.row.padding_mask
    states = []
    for refused in (None, lambda *_: "not asked for"):
        chosen = contextlib.nullcontext() if refused is None else mock.patch.object(attention_needs, "why_not", refused)
        with chosen, torch.no_grad(), torch.autocast(device.type, torch.bfloat16):
            hidden = module.model(batch.row)[0].float()
            states.append(hidden if there is None else hidden[there])
    difference = float((states[0] - states[1]).norm() / states[1].norm())
    assert difference < 0.03, f"hidden states differ by {difference} of their length"


class Check(NamedTuple):
    """A check, and what it is made of."""

    function: Callable[[str, torch.device, Corpora], None]
    """Raises an AssertionError."""
    names: list[str]
    """Recipes, or kinds, on a GPU."""
    on_cpu: list[str]
    """Those that show on a CPU that it runs."""


TINY = [name for name in recipe_names() if name.endswith("-tiny")]
DECODERS = ["gpt-tiny", "conv-light-lm-tiny", "gru-lm-tiny", "tcn-tiny", "transformer-xl-tiny", "laptop-decoder-tiny"]
SCORED = ["bert-tiny", "gpt-tiny", "xlnet-tiny", "elmo-tiny", "transformer-xl-tiny", "transformer-translation-tiny"]
ATTENDING = ["bert-tiny", "gpt2-base", "modernbert-base", "bart-tiny", "t5-tiny", "transformer-translation-tiny"]
RESUMED = ["bert-tiny", "laptop-hybrid-tiny", "transformer-xl-tiny", "electra-tiny"]
"""Recipes with AdamW without bias correction, Muon, a memory, and a generator."""

CHECKS = (
    Check(kernels, list(KINDS), list(KINDS)),
    Check(attention_of_a_model, ATTENDING, ATTENDING[:1]),
    Check(gradients, TINY, TINY[:1]),
    Check(precise_steps, TINY, TINY[:1]),
    Check(resumed, RESUMED, []),  # tests/training has them for a CPU
    Check(generation, DECODERS, DECODERS[:1]),
    Check(scoring, SCORED, SCORED[:1]),
)
