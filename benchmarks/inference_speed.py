"""Using a run against transformers' pipelines with the same weights: seconds for the same texts, in one process.

    python benchmarks/inference_speed.py --tokenizer CORPUS/tokenizer.json [--texts 64] [--rounds 3] [--threads 1]

Random weights, written over by the tables below, a BERT and a GPT-2 of the sizes of bert-mini; texts of 4 to 120
words, short ones as frequent as long ones on a logarithmic scale. A pipeline is measured at its best: of several batch
sizes, with the texts as they come and sorted by length, the quickest. Both sides answer in turns; what is told are
medians of processor time, which other work on the machine hardly changes. The answers are compared before. Generation
is greedy, 64 tokens for each of 32 prompts of 4 to 40 words. Last, what a token costs a convolutional model and a GPT-2
as the text grows.
"""

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers
import torch
import transformers

import bakeoff
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.recipe import Recipe
from bakeoff.recipe_files import load_recipe
from bakeoff.resources.device import processor_name
from bakeoff.runs.run import Run
from bakeoff.tokenizer.tokenizer import Tokenizer

BATCHES = (1, 4, 16, 64)
"""Batch sizes of the pipelines."""
TOKENS = 64
"""Tokens that are written for a prompt."""
PROMPTS = 32
"""Prompts."""
LENGTHS = (64, 256, 1024)
"""Tokens at which the cost of a token is told."""
BERT = {
    "embeddings.word_embeddings.weight": "model.embedding.tokens.weight",
    "embeddings.position_embeddings.weight": "model.embedding.positions.weight",
    "embeddings.token_type_embeddings.weight": "model.embedding.segments.weight",
    "embeddings.LayerNorm.": "model.embedding.norm.",
}
BERT_LAYER = {
    "attention.output.dense.": "mixer.{}.function.output.",
    "attention.output.LayerNorm.": "mixer.{}.norm.",
    "intermediate.dense.": "ffn.{}.function.input.",
    "output.dense.": "ffn.{}.function.output.",
    "output.LayerNorm.": "ffn.{}.norm.",
}
GPT_LAYER = {
    "ln_1.": "mixer.{}.norm.",
    "attn.c_attn.": "mixer.{}.function.query_key_value.",
    "attn.c_proj.": "mixer.{}.function.output.",
    "ln_2.": "ffn.{}.norm.",
    "mlp.c_fc.": "ffn.{}.function.input.",
    "mlp.c_proj.": "ffn.{}.function.output.",
}
"""Their names of tensors, and ours."""


def made_run(recipe: Recipe, tokenizer: Tokenizer, path: Path) -> Run:
    """A run whose weights are random, and large enough that no token is like the other."""
    torch.manual_seed(0)
    module = PretrainingModel(recipe, tokenizer.size)
    for parameter in module.parameters():
        if parameter.dim() > 1:
            parameter.data *= 2
    values = {"versions": {"bakeoff": "0"}, "device_name": "none", "corpus": {"path": "", "fingerprint": ""}}
    values |= {"recipe": recipe.model_dump(mode="json"), "seed": 0, "budget": None, "device": "cpu", "threads": 1}
    run = Run.create(path, recipe, tokenizer, values)
    figures = dict.fromkeys(("parameters", "tokens", "seconds", "seed", "flops", "flops_per_token"), 0)
    figures |= {"steps": 1, "tokens_per_second": 0, "peak_memory_bytes": None, "unigram_entropy": None}
    losses = {"loss": 0.0} | {name: {} for name in ("losses", "accuracy", "perplexity", "bits_per_byte")}
    run.finish(module, {**figures, "validation": losses})
    return run


def renamed(ours: dict[str, torch.Tensor], own: str, theirs: str) -> dict[str, torch.Tensor]:
    """The tensors whose names begin so, by their names, or the one that is called so."""
    return {theirs + name.removeprefix(own): tensor for name, tensor in ours.items() if name.startswith(own)}


def bert_tensors(ours: dict[str, torch.Tensor], layers: int) -> dict[str, torch.Tensor]:
    """Ours as those of transformers' BertModel."""
    found: dict[str, torch.Tensor] = {}
    for theirs, own in BERT.items():
        found |= renamed(ours, own, theirs)
    for layer in range(layers):
        at, stack = f"encoder.layer.{layer}.", "model.encoder.parts."
        for theirs, own in BERT_LAYER.items():
            found |= renamed(ours, stack + own.format(layer), at + theirs)
        for kind in ("weight", "bias"):
            joint = ours[f"{stack}mixer.{layer}.function.query_key_value.{kind}"].chunk(3)
            for name, part in zip(("query", "key", "value"), joint, strict=True):
                found[f"{at}attention.self.{name}.{kind}"] = part
    return found


def masked_model(run: Run) -> transformers.BertForMaskedLM:
    """The model of transformers with a run's weights."""
    module = run.load()
    ours, encoder = module.state_dict(), run.recipe.model.encoder
    theirs = transformers.BertForMaskedLM(bert_config(run)).eval()
    tensors = {f"bert.{name}": tensor for name, tensor in bert_tensors(ours, encoder.layers).items()}
    tensors |= renamed(ours, "heads.mlm.transform.", "cls.predictions.transform.dense.")
    tensors |= renamed(ours, "heads.mlm.norm.", "cls.predictions.transform.LayerNorm.")
    tensors |= {"cls.predictions.bias": ours["heads.mlm.bias"]}
    filled(theirs, tensors)
    return theirs


def bert_config(run: Run, **more: Any) -> transformers.BertConfig:
    """The same sizes in transformers' terms."""
    encoder = run.recipe.model.encoder
    return transformers.BertConfig(
        vocab_size=run.tokenizer.size,
        hidden_size=encoder.width,
        num_hidden_layers=encoder.layers,
        num_attention_heads=encoder.block.mixer.heads,
        intermediate_size=encoder.block.ffn.width,
        **more,
    )


def causal_model(run: Run) -> transformers.GPT2LMHeadModel:
    """The same of a GPT-2, whose maps stand transposed."""
    module = run.load()
    ours, decoder = module.state_dict(), run.recipe.model.decoder
    theirs = transformers.GPT2LMHeadModel(
        transformers.GPT2Config(
            vocab_size=run.tokenizer.size,
            n_embd=decoder.width,
            n_layer=decoder.layers,
            n_head=decoder.block.mixer.heads,
            n_inner=decoder.block.ffn.width,
            n_positions=run.recipe.model.embedding.length,
            eos_token_id=run.tokenizer.separator,
            bos_token_id=run.tokenizer.separator,
        )
    ).eval()
    tensors = {
        "transformer.wte.weight": ours["model.embedding.tokens.weight"],
        "transformer.wpe.weight": ours["model.embedding.positions.weight"],
        **renamed(ours, "model.decoder.norm.", "transformer.ln_f."),
    }
    for layer in range(decoder.layers):
        for name, own in GPT_LAYER.items():
            part = renamed(ours, f"model.decoder.parts.{own.format(layer)}", f"transformer.h.{layer}.{name}")
            tensors |= {key: tensor.T if ".c_" in key and tensor.dim() == 2 else tensor for key, tensor in part.items()}
    filled(theirs, tensors)
    return theirs


def filled(model: torch.nn.Module, tensors: dict[str, torch.Tensor]) -> None:
    """Put tensors into a model, all of it but what is tied."""
    missing, unexpected = model.load_state_dict(tensors, strict=False)
    left = [name for name in missing if "decoder" not in name and "lm_head" not in name and "position_ids" not in name]
    assert not left, left
    assert not unexpected, unexpected
    model.tie_weights()


def their_tokenizer(run: Run, opening: bool) -> transformers.PreTrainedTokenizerFast:
    """A run's tokenizer, with the special tokens of rows around a text, or one before it."""
    inner = tokenizers.Tokenizer.from_file(str(run.path / "tokenizer.json"))
    name = inner.id_to_token
    own = run.tokenizer
    start, separator = name(own.start), name(own.separator)
    single = f"{separator} $A" if opening else f"{start} $A {separator}"
    special = [(separator, own.separator), (start, own.start)]
    inner.post_processor = tokenizers.processors.TemplateProcessing(single=single, special_tokens=special)
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=inner,
        pad_token=name(own.pad),
        mask_token=name(own.mask),
        unk_token=name(own.unknown),
        eos_token=separator,
        padding_side="left" if opening else "right",
        model_max_length=run.recipe.input.length,
    )


def texts_of(tokenizer: Tokenizer, count: int, longest: int, draw: random.Random) -> list[str]:
    """Texts of words of the vocabulary, from 4 tokens on."""
    words = [tokenizer.decode([token]).strip() for token in range(300, min(4000, tokenizer.size))]
    words = [word for word in words if word.isascii() and word.isalpha() and len(word) > 2]
    return [" ".join(draw.choices(words, k=round(4 * (longest / 4) ** draw.random()))) for _ in range(count)]


Ask = Callable[[Sequence[str], int], Any]


def at_its_best(ask: Ask, texts: Sequence[str]) -> tuple[Callable[[], Any], str]:
    """The quickest way to put texts to a pipeline, and what it is."""
    ways = []
    for by_length in (False, True):
        given = sorted(texts, key=len, reverse=True) if by_length else list(texts)
        for batch in BATCHES:
            begin = time.process_time()
            ask(given, batch)
            ways.append((time.process_time() - begin, batch, given, by_length))
    _, batch, given, by_length = min(ways, key=lambda way: way[0])
    return lambda: ask(given, batch), f"{batch} a batch{', sorted' if by_length else ''}"


def compared(name: str, ours: Callable[[], Any], ask: Ask, texts: Sequence[str], rounds: int) -> None:
    """Print medians of both sides in turns."""
    theirs, way = at_its_best(ask, texts)
    ours()
    seconds: dict[str, list[float]] = {"ours": [], "theirs": []}
    for _ in range(rounds):
        for side, run in (("ours", ours), ("theirs", theirs)):
            begin = time.process_time()
            run()
            seconds[side].append(time.process_time() - begin)
    own, other = (statistics.median(seconds[side]) for side in ("ours", "theirs"))
    print(f"{name:<10} {own:8.3f} s  transformers {other:8.3f} s ({way})  ratio {other / own:.2f}", flush=True)


def classifier_of(run: Run, texts: Sequence[str], folder: Path) -> tuple[bakeoff.LoadedRun, Any]:
    """A fine-tuned run, and transformers' model with its weights."""
    file = folder / "rows.tsv"
    file.write_text("text\tlabel\n" + "".join(f"{text}\t{'ab'[place % 2]}\n" for place, text in enumerate(texts[:64])))
    task = bakeoff.ClassificationConfig(train=file, dev=file, test=file, text_column="text", label_column="label")
    quick = bakeoff.FinetuneConfig(learning_rate=[1e-4], epochs=[1], least_steps=0, pooling="cls")
    bakeoff.finetune(run, task, folder / "classifier", config=quick, device="cpu", progress=False)
    loaded = bakeoff.load(folder / "classifier", "cpu")
    ours = bakeoff_head(folder / "classifier")
    theirs = transformers.BertForSequenceClassification(bert_config(run, num_labels=2)).eval()
    tensors = {f"bert.{n}": t for n, t in bert_tensors(ours, run.recipe.model.encoder.layers).items()}
    tensors |= renamed(ours, "pooler.", "bert.pooler.dense.") | renamed(ours, "output.", "classifier.")
    filled(theirs, tensors)
    return loaded, theirs


def bakeoff_head(path: Path) -> dict[str, torch.Tensor]:
    """The tensors of a fine-tuned run."""
    from bakeoff.tensors import load_tensors

    return load_tensors(path / "model.safetensors")


def encoders(tokenizer: Tokenizer, count: int, rounds: int, folder: Path) -> None:
    """Vectors, classes and masks."""
    recipe = load_recipe("bert-mini", {"input.length": 128})
    run = made_run(recipe, tokenizer, folder / "bert")
    texts = texts_of(tokenizer, count, 120, random.Random(1))
    loaded, model, own = bakeoff.load(run, "cpu"), masked_model(run), their_tokenizer(run, opening=False)
    features = transformers.pipeline("feature-extraction", model=model.bert, tokenizer=own)

    def vectors(given: Sequence[str], batch: int) -> Any:
        made = features(list(given), batch_size=batch, return_tensors=True, truncation=True)
        # A pipeline gives states of padding, too, and does not say where it is.
        counts = [len(ids) for ids in own(list(given), truncation=True)["input_ids"]]
        return torch.stack([states[0, :length].mean(0) for states, length in zip(made, counts, strict=True)]).numpy()

    np.testing.assert_allclose(loaded.embed(texts[:32]), vectors(texts[:32], 1), atol=1e-3)
    compared("embed", lambda: loaded.embed(texts), vectors, texts, rounds)

    fine, theirs = classifier_of(run, texts, folder)
    classes = transformers.pipeline("text-classification", model=theirs, tokenizer=own)

    def classified(given: Sequence[str], batch: int) -> Any:
        return classes(list(given), batch_size=batch, truncation=True)

    np.testing.assert_allclose(
        [each["probability"] for each in fine.predict(texts[:32])],
        [each["score"] for each in classified(texts[:32], 1)],
        atol=1e-4,
    )
    compared("predict", lambda: fine.predict(texts), classified, texts, rounds)

    masked = [" ".join([*text.split()[:-1], "[MASK]"]) for text in texts]
    filling = transformers.pipeline("fill-mask", model=model, tokenizer=own)

    def fill(given: Sequence[str], batch: int) -> Any:
        return filling(list(given), batch_size=batch, top_k=5, tokenizer_kwargs={"truncation": True})

    ours, expected = loaded.fill(masked[:32], 1), fill(masked[:32], 1)
    same = [one[0][0].id == other[0]["token"] for one, other in zip(ours, expected, strict=True)]
    assert sum(same) >= 30, same  # special tokens are never ours
    compared("fill", lambda: loaded.fill(masked), fill, masked, rounds)


def decoders(tokenizer: Tokenizer, rounds: int, folder: Path) -> None:
    """Texts that are written."""
    recipe = load_recipe("gpt2-tiny", {"input.length": 512})
    run = made_run(recipe, tokenizer, folder / "gpt2")
    loaded, model, own = bakeoff.load(run, "cpu"), causal_model(run), their_tokenizer(run, opening=True)
    prompts = texts_of(tokenizer, PROMPTS, 40, random.Random(2))
    writing = transformers.pipeline("text-generation", model=model, tokenizer=own)

    def written(given: Sequence[str], batch: int) -> Any:
        return writing(
            list(given),
            batch_size=batch,
            max_new_tokens=TOKENS,
            do_sample=False,
            return_tensors=True,
            suppress_tokens=tokenizer.special_ids.tolist(),
        )

    compared("generate", lambda: loaded.generate(prompts, tokens=TOKENS, temperature=0), written, prompts, rounds)


def growth(tokenizer: Tokenizer, folder: Path) -> None:
    """What a token costs as the text grows."""
    for name in ("conv-light-lm-tiny", "gpt2-tiny"):
        run = made_run(load_recipe(name, {"model.embedding.length": 2048}), tokenizer, folder / f"{name}-growth")
        model = run.load().model
        state, ids = model.start(8, in_place=True), torch.full((8, 1), 400)
        costs, before, done, begin = [], 0.0, 0, time.process_time()
        with torch.inference_mode():
            for place in range(1, max(LENGTHS) + 1):
                _, state = model.extend(ids, state)
                if place in LENGTHS:
                    now = time.process_time() - begin
                    costs.append(f"to {place}: {1000 * (now - before) / (place - done):.3f} ms")
                    before, done = now, place
        print(f"{name:<20} a token of 8 rows  {'  '.join(costs)}", flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--texts", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    transformers.logging.set_verbosity_error()
    tokenizer = Tokenizer.load(options.tokenizer)
    print(f"{processor_name()}, {options.threads} threads, torch {torch.__version__}, {transformers.__version__}")
    with tempfile.TemporaryDirectory() as folder:
        encoders(tokenizer, options.texts, options.rounds, Path(folder))
        decoders(tokenizer, options.rounds, Path(folder))
        growth(tokenizer, Path(folder))


if __name__ == "__main__":
    main()
