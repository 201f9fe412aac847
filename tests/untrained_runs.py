"""Finished runs whose weights are random, and large enough that no token is like the other."""

import torch

from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.runs.run import Run
from tests.conftest import shrink, without_dropout


def untrained(name, corpus, path, **changes):
    """A run of a shrunk recipe."""
    return untrained_of(without_dropout(shrink(name, **changes)), corpus, path)


def untrained_of(recipe, corpus, path, seed=0):
    """A run of a recipe as it is, with the random weights of a seed."""
    torch.manual_seed(seed)
    module = PretrainingModel(recipe, corpus.tokenizer.size)
    for parameter in module.parameters():
        if parameter.dim() > 1:
            parameter.data *= 4
    environment = {"versions": {"bakeoff": "0"}, "device_name": "none", "corpus": {"path": "", "fingerprint": ""}}
    environment |= {"recipe": recipe.model_dump(mode="json"), "seed": 0, "budget": None, "device": "cpu", "threads": 1}
    run = Run.create(path, recipe, corpus.tokenizer, environment)
    figures = dict.fromkeys(("parameters", "tokens", "seconds", "seed", "flops", "flops_per_token"), 0)
    figures |= {"steps": 1, "tokens_per_second": 0, "peak_memory_bytes": None, "unigram_entropy": None}
    losses = {"loss": 0.0} | {name: {} for name in ("losses", "accuracy", "perplexity", "bits_per_byte")}
    run.finish(module.state_dict(), {**figures, "validation": losses})
    return run
