"""Speed of masked pre-training in tokens a second, against transformers' BertForMaskedLM and the machine's limit.

    python benchmarks/pretrain_speed.py [--shape 4x256] [--precision float32] [--threads 1] [--compiled] [--steps 20]
        [--by-torch]

Bakeoff and transformers train a BERT of the same shape (layers x width, heads of 64, rows of 128 tokens, 32 rows, 8,192
tokens of vocabulary, 15 % masked, dropout 0.1) with torch's fused AdamW in this process. A third model is
laptop-encoder-tiny in that shape, with its own objective (30 % masked), optimizer (Muon) and layers. They take turns,
and medians are printed: tokens a second by the clock and by processor time, which other programs hardly change.

Transformers masks with its usual collator and scores every position; Bakeoff makes its batches ahead in a thread, as in
training. Each is timed from batch to optimizer step. All have the same precision, bfloat16 by autocast. If Bakeoff lets
oneDNN multiply float32, transformers runs once with torch's default and once with oneDNN. With `--by-torch` Bakeoff's
models are there a second time, by torch's operations in place of the kernels in C. The machine's limit is the
rate of a 1024 x 1024 matrix product in that precision, by the library that multiplies for Bakeoff; shares of it are by
processor time.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from pydoc_data.topics import topics
from statistics import median

import torch
import transformers

from bakeoff.batching.batches import prefetch
from bakeoff.corpus.store import Corpus
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.machine.capacity import processor_name
from bakeoff.machine.compiler import Compiled
from bakeoff.ops.cpu import compiled_kernels
from bakeoff.ops.cpu.matrix_products import Float32Products
from bakeoff.preparation.prepare import prepare
from bakeoff.recipe import Recipe
from bakeoff.recipe_files import load_recipe
from bakeoff.resources.device import Placement, autocast, resolve_device, resolve_precision
from bakeoff.tokenizer.tokenizer_config import TokenizerConfig
from bakeoff.trainer.step import optimize
from bakeoff.training.pretraining import Pretraining
from bakeoff.training.stages import make_batches

ROWS, LENGTH, VOCABULARY = 32, 128, 8192
CPU = torch.device("cpu")
SHAPES = {"2x128": (2, 128), "4x256": (4, 256)}
"""Layers and width; heads are 64 wide, and the feed-forward networks four times as wide as the layers."""


def bert(shape: str) -> Recipe:
    return load_recipe(
        {"2x128": "bert-tiny", "4x256": "bert-mini"}[shape],
        {
            "objective": [{"kind": "mlm", "rate": 0.15}],
            "input": {"format": "blocks", "length": LENGTH, "isolate": False},
            "training.batch": ROWS,
        },
    )


def laptop(shape: str) -> Recipe:
    layers, width = SHAPES[shape]
    return load_recipe(
        "laptop-encoder-tiny",
        {
            "model.encoder.layers": layers,
            "model.encoder.width": width,
            "model.encoder.block.mixer.heads": width // 64,
            "model.encoder.block.ffn.width": 4 * width,
            "training.batch": ROWS,
        },
    )


def ours(
    recipe: Recipe, corpus: Corpus, steps: int, precision: str, compiled: bool
) -> tuple[Callable[[], None], float]:
    recipe = recipe.fitted(steps)
    module = PretrainingModel(recipe, VOCABULARY).train()
    if compiled:
        module.model.compile_layers()
    unit = Pretraining(recipe, module, Placement(CPU, precision))
    batches = prefetch(make_batches(recipe, module, corpus, seed=0).step, 0, steps)
    count = iter(range(steps))

    def step() -> None:
        optimize(unit, next(batches), next(count))

    return step, module.flops_per_token()


def as_torch_is(step: Callable[[], None]) -> Callable[[], None]:
    """The step with matrix products by torch's default library."""
    setting = torch.backends.mkldnn.matmul

    def with_defaults() -> None:
        before = setting.fp32_precision
        setting.fp32_precision = "none"
        step()
        setting.fp32_precision = before

    return with_defaults


def by_torch(step: Callable[[], None]) -> Callable[[], None]:
    """The step without kernels in C."""

    def without_kernels() -> None:
        before, compiled_kernels.kernels = compiled_kernels.kernels, lambda: Compiled(None, "left out")
        step()
        compiled_kernels.kernels = before

    return without_kernels


def theirs(shape: str, corpus: Corpus, precision: str, compiled: bool) -> Callable[[], None]:
    layers, width = SHAPES[shape]
    config = transformers.BertConfig(
        vocab_size=VOCABULARY,
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=width // 64,
        intermediate_size=4 * width,
        max_position_embeddings=512,
    )
    model = transformers.BertForMaskedLM(config).train()
    if compiled:
        model.compile()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4, fused=True)
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(corpus.path / "tokenizer.json"),
        mask_token="[MASK]",
        pad_token="[PAD]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        unk_token="[UNK]",
    )
    collator = transformers.DataCollatorForLanguageModeling(tokenizer, mlm_probability=0.15)
    tokens = torch.from_numpy(corpus.train.tokens[:].astype("int64"))
    blocks = tokens[: len(tokens) // LENGTH * LENGTH].view(-1, LENGTH)
    blocks[:, 0], blocks[:, -1] = tokenizer.cls_token_id, tokenizer.sep_token_id
    examples = [{"input_ids": block.tolist()} for block in blocks]
    place = 0

    def step() -> None:
        nonlocal place
        batch = collator([examples[(place + i) % len(examples)] for i in range(ROWS)])
        place += ROWS
        with autocast(CPU, precision):
            loss = model(**batch).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


def matrix_product(precision: str) -> tuple[Callable[[], None], float]:
    a, b = (torch.randn(1024, 1024).to(getattr(torch, precision)) for _ in range(2))

    def step() -> None:
        for _ in range(10):
            a @ b

    return step, 10 * 2 * 1024.0**3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shape", choices=SHAPES, default="4x256", help="layers x width")
    parser.add_argument("--precision", choices=("auto", "float32", "bfloat16"), default="float32", help="of all")
    parser.add_argument("--threads", type=int, help="threads of torch (as many as it takes by itself)")
    parser.add_argument("--steps", type=int, default=20, help="steps to time, after three that warm up")
    parser.add_argument("--compiled", action="store_true", help="compile all, which takes a minute or two")
    parser.add_argument("--by-torch", action="store_true", help="time Bakeoff without its kernels in C, too")
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    resolve_device("cpu")  # flushes denormals, for all
    precision = resolve_precision(options.precision, CPU)
    transformers.utils.logging.set_verbosity_error()
    steps, shape = options.steps + 3, options.shape
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "text.txt").write_text("\n\n".join(topics.values()) * 4, encoding="utf-8")
        config = TokenizerConfig(size=VOCABULARY)
        corpus = prepare(Path(folder) / "text.txt", Path(folder) / "corpus", tokenizer=config, progress=False)
        compiled = options.compiled
        recipes = {"bakeoff": bert(shape), "bakeoff, laptop-encoder": laptop(shape)}
        trained = {name: ours(recipe, corpus, steps, precision, compiled) for name, recipe in recipes.items()}
        product, product_flops = matrix_product(precision)
        contestants = {name: step for name, (step, _) in trained.items()}
        if options.by_torch:
            for name, recipe in recipes.items():
                step, flops = ours(recipe, corpus, steps, precision, compiled)
                trained[f"{name}, by torch"], contestants[f"{name}, by torch"] = (step, flops), by_torch(step)
        contestants["transformers"] = as_torch_is(theirs(shape, corpus, precision, compiled))
        if Float32Products.by_onednn and precision == "float32":
            contestants["transformers by oneDNN"] = theirs(shape, corpus, precision, compiled)
        contestants["matrix product"] = product
        clock, work, first = timed(contestants, steps)
    tokens = ROWS * LENGTH
    limit = product_flops / work["matrix product"]
    mode = "compiled" if options.compiled else "eager"
    print(f"{processor_name()}, {torch.get_num_threads()} threads, torch {torch.__version__}")
    print(f"{shape}, {precision}, {mode}; the product {limit / 1e9:.0f} GFLOP/s")
    print(f"{'':34} {'tokens/s':>9} {'of CPU':>9} {'time':>6} {'of CPU':>6} {'first step':>11} {'limit':>6}")
    for name in list(contestants)[:-1]:
        share = f"{trained[name][1] * tokens / work[name] / limit:6.1%}" if name in trained else ""
        print(
            f"{name:34} {tokens / clock[name]:9,.0f} {tokens / work[name]:9,.0f} {clock[name] / clock['bakeoff']:6.2f} "
            f"{work[name] / work['bakeoff']:6.2f} {first[name]:9.1f} s {share:>6}"
        )


def timed(
    contestants: dict[str, Callable[[], None]], steps: int
) -> tuple[dict[str, float], dict[str, float], dict[str, float]]:
    """Seconds of a step by contestant: medians by the clock and by processor time after three steps, and the first."""
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in contestants}
    for _ in range(steps):
        for name, step in contestants.items():
            began, worked = time.perf_counter(), time.process_time()
            step()
            times[name].append((time.perf_counter() - began, time.process_time() - worked))
    clock, work = ({name: median(own[kind] for own in every[3:]) for name, every in times.items()} for kind in (0, 1))
    return clock, work, {name: own[0][0] for name, own in times.items()}


if __name__ == "__main__":
    main()
