"""Time of Bakeoff's laptop recipes to a held-out loss, against transformers' own recipe on the same text.

    python benchmarks/time_to_loss.py CORPUS OUT [--kind masked] [--minutes 10] [--rates 5e-5 2e-4 5e-4 1e-3 3e-3]
        [--fractions 0.05 0.1 0.2 0.5] [--shape 2,128] [--batch 8] [--seed 0] [--threads 1]

Theirs is the recipe of transformers' run_mlm.py (BertForMaskedLM) or run_clm.py (GPT2LMHeadModel): rows of 128 tokens,
batches of 8, AdamW without weight decay or warm-up, a learning rate that falls linearly to 0, gradients clipped to norm
1, dropout 0.1. Every rate gets all the minutes, and the best result counts. Ours is laptop-encoder-tiny or
laptop-decoder-tiny in the same shape, with its own rate, trained for several fractions of the minutes, each with its
own
decay; its time is that of the shortest training whose loss is as low as theirs. Corpus, tokenizer, width, depth, heads
and threads are the same. Both losses are on the same held-out rows, and for masked models on the same 15 % of their
tokens. Minutes are of processor time; time by the clock is printed, too. Finished trainings are not repeated, so that
more rates and fractions may be asked for later.
"""

import argparse
import json
import time
from collections.abc import Iterable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
import transformers

import bakeoff
from bakeoff.batching.batch import Batch
from bakeoff.corpus.store import Corpus
from bakeoff.durable import held, remove
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.machine.capacity import processor_name
from bakeoff.optimization.budget import Budget
from bakeoff.randomness.draws import Draws
from bakeoff.recipe import Recipe
from bakeoff.recipe_files import load_recipe
from bakeoff.resources.device import Placement, resolve_device
from bakeoff.runs.run import Run
from bakeoff.training.stages import make_batches
from bakeoff.training.validation import HeldOut, validate

OURS = {"masked": "laptop-encoder-tiny", "causal": "laptop-decoder-tiny"}
RATE_OF_MASKS = 0.15
WARM, TIMED = 3, 12
"""Number of untimed first steps, and of timed steps, from which the number of steps of a training is computed."""


def our_recipe(kind: str, layers: int, width: int) -> Recipe:
    """Our recipe in a shape of layers and width."""
    stack = f"model.{'encoder' if kind == 'masked' else 'decoder'}"
    shape = {"width": width, "layers": layers, "block.mixer.heads": max(1, width // 64), "block.ffn.width": 4 * width}
    return load_recipe(OURS[kind], {f"{stack}.{key}": value for key, value in shape.items()})


def held_out(kind: str, recipe: Recipe, corpus: Corpus, rows: int) -> HeldOut:
    """The held-out rows on which both are measured, with their masks."""
    if kind == "masked":
        recipe = recipe.changed({"objective.0.rate": RATE_OF_MASKS})
    module = PretrainingModel(recipe, corpus.tokenizer.size)
    batches = make_batches(recipe, module, corpus, seed=0, split="validation")
    return HeldOut(corpus.validation, batches.fixed(rows), batches)


def their_model(kind: str, layers: int, width: int, vocabulary: int) -> Any:
    """Transformers' model in this shape, with its other settings at their defaults."""
    heads = max(1, width // 64)
    if kind == "masked":
        return transformers.BertForMaskedLM(
            transformers.BertConfig(
                vocab_size=vocabulary,
                hidden_size=width,
                num_hidden_layers=layers,
                num_attention_heads=heads,
                intermediate_size=4 * width,
            )
        )
    return transformers.GPT2LMHeadModel(
        transformers.GPT2Config(vocab_size=vocabulary, n_embd=width, n_layer=layers, n_head=heads)
    )


class TheirBatches:
    """Batches of training text in a random order, with rows in our layout, masked by transformers' collator."""

    def __init__(self, kind: str, recipe: Recipe, corpus: Corpus, batch: int, seed: int) -> None:
        marks = "ends" if kind == "masked" else "documents"
        self.kind, self.batch, self.corpus = kind, batch, corpus
        self.rows = recipe.input.build(corpus.train, corpus.tokenizer, marks)
        self.generator = np.random.default_rng(seed)
        self.order = np.zeros(0, np.int64)
        tokenizer = transformers.PreTrainedTokenizerFast(
            tokenizer_file=str(corpus.path / "tokenizer.json"),
            **{f"{role}_token": f"[{role.upper()}]" for role in ("mask", "pad", "cls", "sep", "unk")},
        )
        self.collator = transformers.DataCollatorForLanguageModeling(
            tokenizer, mlm=kind == "masked", **({"mlm_probability": RATE_OF_MASKS} if kind == "masked" else {})
        )

    def next(self) -> dict[str, torch.Tensor]:
        """The next batch; a new random order begins when fewer rows than a batch are left."""
        if len(self.order) < self.batch:
            self.order = self.generator.permutation(self.rows.size)
        chosen, self.order = self.order[: self.batch], self.order[self.batch :]
        examples = self.rows.examples(np.sort(chosen), Draws(0, np.zeros_like(chosen), chosen))
        lengths = (examples.row.documents > 0).sum(1)
        return dict(
            self.collator([{"input_ids": row[:n].tolist()} for row, n in zip(examples.row.ids, lengths, strict=True)])
        )


@torch.no_grad()
def their_loss(kind: str, model: Any, batches: Iterable[Batch]) -> float:
    """Loss of their model on the held-out rows, in nats a target."""
    model.eval()
    total, count = 0.0, 0
    for batch in batches:
        padding_mask = (
            torch.ones_like(batch.row.ids) if batch.row.documents is None else (batch.row.documents > 0).long()
        )
        logits = model(input_ids=batch.row.ids, attention_mask=padding_mask).logits.flatten(0, 1)
        ((places, labels),) = batch.targets.values()
        total += float(F.cross_entropy(logits[places], labels, reduction="sum"))
        count += len(labels)
    return total / count


def theirs(
    kind: str, recipe: Recipe, corpus: Corpus, measured: HeldOut, shape: tuple[int, int], options: Any, rate: float
) -> dict[str, float]:
    """Train their model by their recipe for all the minutes, with one learning rate."""
    torch.manual_seed(options.seed)
    source = TheirBatches(kind, recipe, corpus, options.batch, options.seed)

    def step(model: Any, optimizer: torch.optim.Optimizer, factor: float) -> int:
        batch = source.next()
        for group in optimizer.param_groups:
            group["lr"] = rate * factor
        model(**batch).loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return batch["input_ids"].numel()

    def made() -> tuple[Any, torch.optim.Optimizer]:
        model = their_model(kind, *shape, corpus.tokenizer.size).train()
        return model, torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.0, fused=True)

    model, optimizer = made()
    times = []
    for _ in range(WARM + TIMED):
        began = time.process_time()
        step(model, optimizer, 0.0)
        times.append(time.process_time() - began)
    steps = max(1, round(60 * options.minutes / median(times[WARM:])))
    model, optimizer = made()
    began, clock, tokens = time.process_time(), time.perf_counter(), 0
    for number in range(steps):
        tokens += step(model, optimizer, 1 - number / steps)
    seconds, clock = time.process_time() - began, time.perf_counter() - clock
    loss = their_loss(kind, model, measured.batches)
    return {"loss": loss, "seconds": seconds, "clock": clock, "steps": steps, "tokens": tokens}


def ours(
    recipe: Recipe, corpus: Corpus, measured: HeldOut, options: Any, fraction: float, place: Path
) -> dict[str, float]:
    """Train our recipe for a fraction of the minutes, and measure its loss."""
    budget = Budget(minutes=options.minutes * fraction)
    run: Run = bakeoff.pretrain(
        recipe.changed({"training.precision": options.precision}),
        corpus.path,
        place,
        seed=options.seed,
        budget=budget,
        threads=options.threads,
        resume=True,
        progress=False,
        device="cpu",
    )
    found = validate(run.load(), measured, Placement(torch.device("cpu"), "float32"))
    summary = Run(place).summary
    return {
        "loss": next(iter(found["losses"].values())),
        "seconds": summary["work_seconds"],
        "clock": summary["seconds"],
        "steps": summary["steps"],
        "tokens": summary["tokens"],
    }


def main() -> None:
    """Train the missing models, and print the table as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus")
    parser.add_argument("out", type=Path)
    parser.add_argument("--kind", choices=list(OURS), default="masked")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--rates", type=float, nargs="*", default=[5e-5, 2e-4, 5e-4, 1e-3, 3e-3])
    parser.add_argument("--fractions", type=float, nargs="*", default=[0.05, 0.1, 0.2, 0.5])
    parser.add_argument("--shape", default="2,128", help="layers,width")
    parser.add_argument("--batch", type=int, default=8, help="theirs")
    parser.add_argument("--rows", type=int, default=1024, help="held-out rows")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--precision", choices=["float32", "auto"], default="float32", help="ours; theirs is float32")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    resolve_device("cpu")  # flushes denormals, for both
    transformers.utils.logging.set_verbosity_error()
    layers, width = map(int, options.shape.split(","))
    corpus = Corpus.open(options.corpus)
    recipe = our_recipe(options.kind, layers, width)
    measured = held_out(options.kind, recipe, corpus, options.rows)
    setting = f"{options.kind}-{layers}x{width}-{options.minutes:g}min-{options.threads}threads-seed{options.seed}"
    setting += f"-rows{options.rows}-{corpus.fingerprint}"

    def known(name: str, make: Any) -> dict[str, float]:
        """The figures in a file, which are made and written unless it exists."""
        path = options.out / setting / f"{name}.json"
        if not path.is_file():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(make(path.with_suffix(""))))
        found: dict[str, float] = json.loads(path.read_text())
        return found

    def our_training(place: Path, fraction: float) -> dict[str, float]:
        found = ours(recipe, corpus, measured, options, fraction, place)
        remove(place)
        return found

    rows: list[tuple[str, str, dict[str, float]]] = []
    options.out.mkdir(parents=True, exist_ok=True)
    with held(options.out):
        for rate in options.rates:
            name = f"transformers-batch{options.batch}-rate{rate:g}"
            found = known(
                name, lambda _, r=rate: theirs(options.kind, recipe, corpus, measured, (layers, width), options, r)
            )
            rows.append((f"transformers, batches of {options.batch}, rate {rate:g}", "1", found))
        best = min((found for _, _, found in rows), key=lambda found: found["loss"], default=None)
        for fraction in sorted(options.fractions):
            name = f"bakeoff-{options.precision}-fraction{fraction:g}"
            found = known(name, lambda place, f=fraction: our_training(place, f))
            rows.append((recipe.name, f"{fraction:g}", found))
    print(
        f"{processor_name()}, {options.threads} threads, torch {torch.__version__}, transformers "
        f"{transformers.__version__}; {options.kind}, {layers} layers of {width}, {options.minutes:g} minutes\n"
    )
    print("| | share of the minutes | steps | tokens | processor seconds | seconds by the clock | held-out loss |")
    print(f"|---|{'---|' * 6}")
    for name, share, found in rows:
        counts = f"{found['steps']:,.0f} | {found['tokens']:,.0f} | {found['seconds']:.1f} | {found['clock']:.1f}"
        print(f"| {name} | {share} | {counts} | {found['loss']:.4f} |")
    reached = [found for name, _, found in rows if name == recipe.name and best and found["loss"] <= best["loss"]]
    if best is None:
        return
    if not reached:
        print(f"\nNo training of ours reached {best['loss']:.4f}.")
        return
    first = min(reached, key=lambda found: found["seconds"])
    print(
        f"\nTheir best, {best['loss']:.4f}, is reached in {first['seconds']:.1f} of {best['seconds']:.1f} processor "
        f"seconds: {first['seconds'] / best['seconds']:.1%} of the time."
    )


if __name__ == "__main__":
    main()
