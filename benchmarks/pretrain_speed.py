"""Tokens per second of masked pre-training against transformers' BertForMaskedLM, and against the machine's own limit.

Both train the same shape (4 layers, 256 wide, 4 heads, rows of 128 tokens, 32 rows, 8,192 tokens of vocabulary, 15 %
masked, dropout 0.1) with torch's fused AdamW in this process; the contestants take turns, and medians are printed.

    python benchmarks/pretrain_speed.py [--compiled] [--steps 20]

Transformers masks with its usual collator and scores every position; Bakeoff makes its batches ahead in a thread, as in
training. Each is timed from batch to optimizer step. The machine's limit is the rate of a float32 matrix product of
1024 x 1024.
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

from bakeoff.corpus.prepare import prepare
from bakeoff.corpus.store import Corpus
from bakeoff.corpus.tokenizer import TokenizerConfig
from bakeoff.objectives.batches import ahead
from bakeoff.recipe import load_recipe
from bakeoff.training.device import processor_name, resolve_device
from bakeoff.training.loop import optimize
from bakeoff.training.pretraining_model import PretrainingModel
from bakeoff.training.stages import make_batches

ROWS, LENGTH, VOCABULARY = 32, 128, 8192


def ours(corpus: Corpus, steps: int, compiled: bool) -> tuple[Callable[[], None], float]:
    recipe = load_recipe(
        "bert-mini",
        {
            "objective": [{"kind": "mlm", "rate": 0.15}],
            "input": {"format": "blocks", "length": LENGTH, "isolate": False},
            "training.batch": ROWS,
        },
    ).fitted(steps)
    module = PretrainingModel(recipe, VOCABULARY).train()
    module.model.stack.compiled = compiled
    optimizer = recipe.training.optimizer.build(module)
    batches = ahead(make_batches(recipe, module, corpus, seed=0).step, 0, steps)
    count = iter(range(steps))

    def step() -> None:
        optimize(module, optimizer, next(batches), recipe, 0, next(count), torch.device("cpu"), "float32")

    return step, module.flops_per_token()


def theirs(corpus: Corpus, compiled: bool) -> Callable[[], None]:
    config = transformers.BertConfig(
        vocab_size=VOCABULARY,
        hidden_size=256,
        num_hidden_layers=4,
        num_attention_heads=4,
        intermediate_size=1024,
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
        loss = model(**batch).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


def matrix_product() -> tuple[Callable[[], None], float]:
    a, b = torch.randn(1024, 1024), torch.randn(1024, 1024)

    def step() -> None:
        for _ in range(10):
            a @ b

    return step, 10 * 2 * 1024.0**3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=20, help="steps to time, behind three that warm up")
    parser.add_argument("--compiled", action="store_true", help="compile both, which takes a minute or two")
    options = parser.parse_args()
    resolve_device("cpu")  # flushes denormals, for both
    transformers.utils.logging.set_verbosity_error()
    steps = options.steps + 3
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "text.txt").write_text("\n\n".join(topics.values()) * 4, encoding="utf-8")
        config = TokenizerConfig(size=VOCABULARY)
        corpus = prepare(Path(folder) / "text.txt", Path(folder) / "corpus", tokenizer=config, progress=False)
        bakeoff, flops = ours(corpus, steps, options.compiled)
        product, product_flops = matrix_product()
        contestants = {"bakeoff": bakeoff, "transformers": theirs(corpus, options.compiled), "matrix product": product}
        times: dict[str, list[float]] = {name: [] for name in contestants}
        first = {}
        for index in range(steps):
            for name, step in contestants.items():
                began = time.perf_counter()
                step()
                seconds = time.perf_counter() - began
                first.setdefault(name, seconds)
                if index >= 3:
                    times[name].append(seconds)
    middle = {name: median(own) for name, own in times.items()}
    tokens = ROWS * LENGTH
    limit = product_flops / middle["matrix product"]
    reached = flops * tokens / middle["bakeoff"]
    mode = "compiled" if options.compiled else "eager"
    print(f"{processor_name()}, {torch.get_num_threads()} threads, torch {torch.__version__}, {mode}")
    for name in ("bakeoff", "transformers"):
        print(f"{name:14} {tokens / middle[name]:10,.0f} tokens/s   first step {first[name]:.1f} s")
    print(f"{'ratio':14} {middle['transformers'] / middle['bakeoff']:10.2f}")
    print(f"{'of the limit':14} {reached / limit:10.1%}   ({reached / 1e9:.0f} of {limit / 1e9:.0f} GFLOP/s)")


if __name__ == "__main__":
    main()
