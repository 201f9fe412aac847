"""What some processes do together, each started as `python -m tests.distributed.pair FOLDER`: many recipes in one go.

FOLDER/plan.json has the recipes; each process writes FOLDER/RANK.json, or leaves what stopped it on standard error.
"""

import hashlib
import json
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest.mock import patch

import pytest
import torch

from bakeoff.contrastive.config import ContrastConfig
from bakeoff.contrastive.contrast import contrast
from bakeoff.corpus.store import Corpus
from bakeoff.distributed.launch import together
from bakeoff.distributed.processes import ALONE
from bakeoff.distributed.shards import own_part, shard, whole_tensor
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.models.stack import parts_in
from bakeoff.optimization.budget import Budget
from bakeoff.optimization.early_stopping import EarlyStopping
from bakeoff.optimization.save_points import SavePoints
from bakeoff.recipe import Recipe
from bakeoff.resources.device import Placement
from bakeoff.tasks.evaluate import evaluate
from bakeoff.tasks.finetune import finetune
from bakeoff.tasks.finetune_config import FinetuneConfig
from bakeoff.tasks.registry import parse_task
from bakeoff.trainer import checkpoint, loop
from bakeoff.trainer.loop import steps
from bakeoff.trainer.position import Position
from bakeoff.training import resolution
from bakeoff.training.pretrain import pretrain
from bakeoff.training.pretraining import Pretraining
from bakeoff.training.stages import Stages
from bakeoff.training.teachers import Teachers

CPU = Placement(torch.device("cpu"), "float32")
STEPS = 3


def trained(recipe, corpus, processes):
    """The losses of each step, the gradients of the first one, and the weights and buffers after the last."""
    torch.manual_seed(0)
    module = PretrainingModel(recipe, corpus.tokenizer.size)
    if processes.shards:
        shard(module, parts_in(module), processes, CPU.device)
    stages = Stages(recipe, module, corpus, 0, processes)
    teachers = Teachers.load(recipe, corpus, CPU.device)
    unit = Pretraining(recipe, module, CPU, 0, None, stages, processes=processes, teachers=teachers)
    gradients = []

    def note(*_):
        if not gradients:
            named = module.named_parameters()
            gradients.append(
                {name: None if each.grad is None else whole_tensor(each.grad).clone() for name, each in named}
            )

    unit.optimizer.register_step_pre_hook(note)
    losses, tokens = [], []
    for taken in steps(unit, Position(), STEPS):
        *shares, norm = (float(each) for each in taken.figures.values())
        losses.append([*processes.sums(shares), norm])
        tokens.append(taken.tokens)
    return losses, tokens, gradients[0], {name: whole_tensor(each) for name, each in module.state_dict().items()}


def compared(recipe, corpus, alone, processes):
    """The largest differences between one process and several, and what is not alike at all."""
    losses, tokens, gradients, state = trained(recipe, corpus, processes)
    alone_losses, alone_tokens, alone_gradients, alone_state = alone
    pairs = [pair for row, other in zip(losses, alone_losses, strict=True) for pair in zip(row, other, strict=True)]
    return {
        "tokens": [tokens, alone_tokens],
        "loss": max(abs(one - other) / max(abs(other), 1e-3) for one, other in pairs),
        "missing": [name for name, each in gradients.items() if (each is None) != (alone_gradients[name] is None)],
        "gradient": {
            name: float((each - alone_gradients[name]).norm() / alone_gradients[name].norm().clamp(min=1e-9))
            for name, each in gradients.items()
            if each is not None and alone_gradients[name] is not None
        },
        "state": {
            name: float((each.double() - alone_state[name].double()).abs().max())
            for name, each in state.items()
            if each.numel()
        },
    }


@contextmanager
def short_of_memory(place, number, rank):
    """Two rows fit by count, but a step of process 1 runs out of memory, from its `number`-th pass or move on."""
    calls = []

    def counted(whole, raises):
        def short(*arguments):
            calls.append(1)
            made = None if raises else whole(*arguments)
            if len(calls) > number and ((raises and len(calls) == number + 1) or (not raises and _rows(arguments) > 1)):
                raise torch.OutOfMemoryError("CUDA out of memory")
            return whole(*arguments) if raises else made

        return short

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(resolution, "fitting_micro_batch", lambda *_: 2)
        owner, name = (Pretraining, "losses") if place == "pass" else (torch.optim.SGD, "step")
        if rank == 1:
            patch.setattr(owner, name, counted(getattr(owner, name), raises=place == "move"))
        yield


def _rows(arguments):
    return len(arguments[1].row.ids)


def digests(tensors):
    """The SHA-256 of the bytes of each tensor, with its type and shape."""
    return {
        name: hashlib.sha256(
            f"{each.dtype} {tuple(each.shape)} ".encode()
            + each.detach().contiguous().flatten().view(torch.uint8).numpy().tobytes()
        ).hexdigest()
        for name, each in tensors.items()
    }


def put_together(tensors, processes):
    """Tensors joined from what each process holds, by hand."""
    made = {}
    for name, each in tensors.items():
        divided_by = [getattr(placement, "dim", None) for placement in getattr(each, "placements", [])]
        parts = processes.collected(each.to_local() if divided_by else each)
        if divided_by in ([], [None]):
            assert all(torch.equal(part, parts[0]) for part in parts), name
        made[name] = parts[0] if divided_by in ([], [None]) else torch.cat(parts, *divided_by)
    return made


@contextmanager
def noting_what_is_held(folder, out):
    """Write the digests of weights and optimizer state that the processes hold at each save, as OUT-held.json.

    All of it is changed as soon as the checkpoint is taken, as a next step would change it before the write.
    """
    taken = loop.taken_checkpoint

    def noted(unit, *others):
        tensors = {"model": unit.module.state_dict(), "optimizer": checkpoint.optimizer_tensors(unit.optimizer)}
        held = {name: digests(put_together(each, unit.processes)) for name, each in tensors.items()}
        if unit.processes.first:
            (folder / f"{out}-held.json").write_text(json.dumps(held), encoding="utf-8")
        made = taken(unit, *others)
        for tensor in (tensor for each in tensors.values() for tensor in each.values()):
            own_part(tensor).fill_(3)
        return made

    with patch.object(loop, "taken_checkpoint", noted):
        yield


def run_of(folder, each, rank=0):
    """A whole pre-training or fine-tuning, into a folder in `folder`; with `in_parts` all write its checkpoints."""
    with ExitStack() as stack:
        if "short" in each:
            stack.enter_context(short_of_memory(*each["short"], rank))
        if each.get("notes"):
            stack.enter_context(noting_what_is_held(folder, each["out"]))
        if each.get("in_parts"):
            stack.enter_context(patch.object(checkpoint, "IN_PARTS_FROM", 0))
        _run_of(folder, each)


def _run_of(folder, each):
    out, options = folder / each["out"], dict(each["options"])
    if "views_of" in each:
        config = ContrastConfig.parse(each["config"], "test")
        contrast(each["source"], out, texts=each["views_of"], config=config, device="cpu", progress=False, **options)
        return
    recipe = Recipe.parse(each["recipe"], "test")
    if "task" in each:
        task, config = parse_task(each["task"], "test"), FinetuneConfig.parse(each["config"], "test")
        finetune(recipe, task, out, config=config, device="cpu", progress=False, **options)
        return
    options["budget"] = Budget.parse_text(options["budget"])
    if "save_at" in options:
        options["save_at"] = SavePoints.parse_texts(options["save_at"])
    if "early_stopping" in options:
        options["early_stopping"] = EarlyStopping(**options["early_stopping"])
    pretrain(recipe, each["corpus"], out, device="cpu", progress=False, **options)


def main(folder):
    plan = json.loads((folder / "plan.json").read_text(encoding="utf-8"))
    torch.set_num_threads(1)
    with together() as processes:  # which a program may do more than once
        assert processes.largest(processes.rank) == processes.size - 1
    corpora = {path: Corpus.open(path) for _, path in plan["steps"].values()}
    made = {name: (Recipe.parse(values, name), corpora[path]) for name, (values, path) in plan["steps"].items()}
    with together() as processes:
        alone = {  # each process has half of them
            name: trained(*each, ALONE)
            for number, (name, each) in enumerate(made.items())
            if number % processes.size == processes.rank
        }
        everywhere = {name: each for part in processes.collected(alone) for name, each in part.items()}
        several = processes.dividing(plan["shards"])
        results = {name: compared(*each, everywhere[name], several) for name, each in made.items()}
        for each in plan["runs"]:
            run_of(folder, each, processes.rank)
        evaluations = [evaluate(folder / run, device="cpu", **options) for run, options in plan["evaluations"]]
    content = {"steps": results, "evaluations": evaluations}
    (folder / f"{processes.rank}.json").write_text(json.dumps(content), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
