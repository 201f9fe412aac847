"""The memory of jobs, counted from their recipes."""

import json
from functools import cache
from typing import Any

import torch

from bakeoff.corpus.mixture import mixture_entries
from bakeoff.recipe import Recipe
from bakeoff.resources.threads import needed_memory
from bakeoff.tokenizer.tokenizer import Tokenizer


def job_memory(recipe: dict[str, Any], corpus: str, device: str) -> int:
    """Bytes of the machine's memory that the pre-training of a recipe needs; a fine-tuning needs about as much.

    Args:
        recipe: the complete recipe.
        corpus: a folder with its tokenizer, a corpus or a run, or corpora with weights.
        device: cpu, cuda or mps.
    """
    return _counted(json.dumps(recipe), corpus, device)


@cache  # many jobs have the same recipe
def _counted(recipe: str, corpus: str, device: str) -> int:
    parsed = Recipe.parse(json.loads(recipe), "the recipe of a job")
    entries = mixture_entries(corpus)  # which have one tokenizer
    tokenizer = Tokenizer.load(entries[0][0] if entries else corpus)
    return needed_memory(parsed, tokenizer.size, torch.device(device))
