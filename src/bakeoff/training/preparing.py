"""What is built for a pre-training before there is a directory: the module, its batches, its first weights."""

from typing import Any, NamedTuple

import torch

from bakeoff.corpus.mixture import corpora_of
from bakeoff.corpus.neighbours import counted_tokens
from bakeoff.display.progress import TrainingProgress
from bakeoff.display.wording import counted
from bakeoff.distributed.shards import shard
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.models.layer import compile_within
from bakeoff.models.stack import parts_in
from bakeoff.resources.device import Placement, reset_peak_memory, resolve_precision
from bakeoff.runs.environment import environment
from bakeoff.training.initial_weights import set_token_vectors
from bakeoff.training.settling import Settled
from bakeoff.training.stages import Stages, make_batches
from bakeoff.training.teachers import Teachers
from bakeoff.training.validation import HeldOut


class Prepared(NamedTuple):
    """All that is built before there is a directory, so that a mistake leaves none."""

    module: PretrainingModel
    """The model with its heads, with the weights with which the training begins."""
    stages: Stages
    """The batches of the training text."""
    held_out: HeldOut
    """The rows of the held-out text that the loss is measured on."""
    placement: Placement
    here: dict[str, Any]
    """Machine and versions."""
    taken: dict[str, Any] | None
    """What the module has from other runs; None: nothing."""
    teachers: Teachers | None = None
    """The runs whose probabilities are learned; None: none, or no step is taken any more."""


def prepare(settled: Settled, shown: TrainingProgress) -> Prepared:
    """Build the module and its batches.

    Args:
        settled: what was decided.
        shown: where lines are shown on what takes long, or has no effect.

    Raises:
        UserError: the corpus has no rows for the recipe, or weights of other runs do not fit.
    """
    opened, recipe = settled.opened, settled.recipe
    corpus, device = opened.corpus, opened.device
    placement = Placement(device, resolve_precision(recipe.training.precision, device))
    reset_peak_memory(device)
    torch.manual_seed(opened.seed)
    module = PretrainingModel(recipe, corpus.tokenizer.size)
    if not opened.asked.processes.shards:  # else no device may have room for it
        module = module.to(device)
    if recipe.training.compile in (True, "graphs"):
        _compile(module, recipe.training.compile == "graphs", divided=opened.asked.processes.shards)
    stages = Stages(recipe, module, corpus, opened.seed, opened.asked.processes)
    held_out = make_batches(recipe, module, corpus, opened.seed, split="validation")
    stages.first_rows()
    rows = held_out.fixed(recipe.training.validation_examples)
    measured = HeldOut(corpus.validation, rows, held_out)
    here = environment(*placement, opened.asked.processes.size)
    start = None if opened.trained else opened.asked.start
    taken = None if start is None else start.load(module, corpus)
    vectors = None if opened.trained else recipe.training.token_vectors
    if vectors is not None and start is not None:
        shown.remark(f"{recipe.name}: training.token_vectors has no effect: the table of tokens begins {start}")
    elif vectors is not None:
        tokens = sum(counted_tokens(each.train) for each in corpora_of(corpus))
        shown.line(f"{recipe.name}: vectors of tokens by their neighbours in {counted(tokens, 'token')}")
        set_token_vectors(module, corpus, vectors, opened.seed, opened.asked.processes)
    if opened.asked.processes.shards:
        shard(module, parts_in(module), opened.asked.processes, device)
    teachers = None if opened.asked.finish_now else Teachers.load(recipe, corpus, device)
    if teachers is not None and recipe.training.compile in (True, "graphs"):
        for model, _ in teachers.models:
            model.compile_layers()
    return Prepared(module, stages, measured, placement, here, taken, teachers)


def _compile(module: PretrainingModel, replayed: bool, divided: bool) -> None:
    """Compile the layers, or their parts where processes gather the weights of each part by itself.

    Weights that are gathered anew have no lasting place in memory, which CUDA graphs would need.
    """
    if divided:
        for part in parts_in(module):
            compile_within(part)
    else:
        module.compile_layers(replayed)
