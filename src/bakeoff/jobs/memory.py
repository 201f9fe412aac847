"""The memory of jobs, counted from their recipes."""

import json
from functools import cache
from typing import Any

import torch

from bakeoff.corpus.mixture import open_corpus
from bakeoff.recipe import Recipe
from bakeoff.resources.threads import needed_memory


def job_memory(recipe: dict[str, Any], corpus: str, device: str) -> int:
    """Bytes of the machine's memory that the pre-training of a recipe needs; a fine-tuning needs about as much."""
    return _counted(json.dumps(recipe), corpus, device)


@cache  # many jobs have the same recipe
def _counted(recipe: str, corpus: str, device: str) -> int:
    parsed = Recipe.parse(json.loads(recipe), "the recipe of a job")
    return needed_memory(parsed, open_corpus(corpus).tokenizer.size, torch.device(device))
