"""Runs with random weights, and transformers' models and tokenizers that compute the same, for other benchmarks."""

from pathlib import Path
from typing import Any

import tokenizers
import torch
import transformers

from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.recipe import Recipe
from bakeoff.runs.run import Run
from bakeoff.tokenizer.tokenizer import Tokenizer

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
"""Our names of tensors by theirs."""


def made_run(recipe: Recipe, tokenizer: Tokenizer, path: Path) -> Run:
    """A run with random weights, large enough that tokens differ in their states."""
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
    run.finish(module.state_dict(), {**figures, "validation": losses})
    return run


def renamed(ours: dict[str, torch.Tensor], own: str, theirs: str) -> dict[str, torch.Tensor]:
    """The tensors whose names begin with `own`, under names that begin with `theirs` instead."""
    return {theirs + name.removeprefix(own): tensor for name, tensor in ours.items() if name.startswith(own)}


def bert_tensors(ours: dict[str, torch.Tensor], layers: int) -> dict[str, torch.Tensor]:
    """Our tensors under the names of transformers' BertModel."""
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
    """Transformers' BertForMaskedLM with the weights of a run."""
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
    """A run's sizes as transformers' BertConfig."""
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
    """Transformers' GPT2LMHeadModel with the weights of a run; its linear layers are transposed."""
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
    """Load tensors into a model; only tied ones may be missing."""
    missing, unexpected = model.load_state_dict(tensors, strict=False)
    left = [name for name in missing if "decoder" not in name and "lm_head" not in name and "position_ids" not in name]
    assert not left, left
    assert not unexpected, unexpected
    model.tie_weights()


def their_tokenizer(run: Run, opening: bool) -> transformers.PreTrainedTokenizerFast:
    """A run's tokenizer for transformers, with [CLS] and [SEP] around a text, or with [SEP] before it (`opening`)."""
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
