"""What shards or replicates a model's weights gathers them at a module's call: nothing reads them at another time."""

import pytest
import torch
import torch.distributed as dist
from tests.conftest import shrink
from tests.untrained_runs import untrained
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

import bakeoff
from bakeoff.generation.writer import Writer
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.models.embedding import Embedding
from bakeoff.models.model import Model
from bakeoff.trainer.step import optimize
from bakeoff.training.pretraining import ON_CPU, Pretraining
from bakeoff.training.stages import make_batches
from bakeoff.training.validation import HeldOut, validate

NAMES = ["bert-tiny", "gpt-tiny", "electra-tiny", "xlnet-tiny", "transformer-xl-tiny", "elmo-tiny", "t5-tiny"]
SHARDED = ["bert-tiny", "albert-tiny", "electra-tiny", "xlnet-tiny", "t5-tiny"]


@pytest.fixture
def calls(monkeypatch):
    """The names of the classes whose modules were called, from without; the table of tokens is read in calls alone."""
    depth, found, exact = [], [], Embedding.weight.fget

    def begin(module, given):
        if isinstance(module, PretrainingModel | Writer | Model):
            found.extend([] if depth else [type(module).__name__])
            depth.append(module)

    def end(module, given, result):
        if isinstance(module, PretrainingModel | Writer | Model):
            depth.pop()

    def weight(self):
        assert depth, "the weight is read outside of every call"
        return exact(self)

    monkeypatch.setattr(Embedding, "weight", property(weight))
    hooks = [register_module_forward_pre_hook(begin), register_module_forward_hook(end, always_call=True)]
    yield found
    for each in hooks:
        each.remove()


@pytest.mark.parametrize("name", NAMES)
def test_a_training_and_its_validation_call_the_module_that_is_trained(name, calls, corpus):
    recipe = shrink(name)
    module = PretrainingModel(recipe, corpus.tokenizer.size)
    batches = make_batches(recipe, module, corpus, seed=0)
    parts = batches.step(0)
    optimize(Pretraining(recipe, module), parts, 0)
    assert calls == ["PretrainingModel"] * len(parts)
    made = make_batches(recipe, module, corpus, seed=0, split="validation")
    held_out = list(made.fixed(4))
    validate(module, HeldOut(corpus.validation, held_out, made), ON_CPU)
    assert calls == ["PretrainingModel"] * (len(parts) + len(held_out))


@pytest.fixture(params=NAMES)
def loaded(request, corpus, tmp_path):
    """A run in memory, whose weights nothing divides while they are laid out for its use."""
    return bakeoff.load(untrained(request.param, corpus, tmp_path / "run").path, device="cpu")


def test_whatever_a_run_in_memory_predicts_comes_of_calls(loaded, calls):
    run = loaded
    pairs = run.recipe.model.sequence_to_sequence
    done = {
        "logits": lambda: run.logits([[5, 6], [7]], **({"source": [[5], [6]]} if pairs else {})),
        "score": lambda: run.score(["the river"], **({"pairs": ["the stone"]} if pairs else {})),
        "fill": lambda: run.fill("the river [MASK]"),
        "generate": lambda: [run.generate("the river", tokens=2), run.generate("the river", tokens=2, beams=2)],
    }
    for capability in done.keys() & run.capabilities:
        calls.clear()
        done[capability]()
        assert calls, capability


@pytest.fixture
def alone():
    """A group of processes that has this one alone, over which weights can be sharded."""
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield init_device_mesh("cpu", (1,))
    dist.destroy_process_group()


@pytest.mark.slow
@pytest.mark.parametrize("name", SHARDED)
def test_weights_that_are_gathered_for_each_call_give_the_same_losses(name, corpus, alone):
    """FSDP keeps shards of the weights, and gathers those of each part, and all others, in the calls of modules."""
    recipe = shrink(name, **{"training.optimizer": {"kind": "adamw", "lr": 1e-3}})
    found = []
    for sharded in (False, True):
        torch.manual_seed(0)
        module = PretrainingModel(recipe, corpus.tokenizer.size)
        if sharded:
            stacks = [
                *module.model.stacks().values(),
                *(module.generator.stacks().values() if module.generator else []),
            ]
            for part in [part for stack in stacks for parts in stack.parts.values() for part in parts]:
                fully_shard(part, mesh=alone)
            fully_shard(module, mesh=alone)
        batches = make_batches(recipe, module, corpus, seed=0)
        unit, losses = Pretraining(recipe, module), []
        for step in range(3):
            means = optimize(unit, batches.step(step), step)
            losses.append([float(means[kind]) for kind in module.weights])
        made = make_batches(recipe, module, corpus, 0, split="validation")
        held_out = HeldOut(corpus.validation, made.fixed(4), made)
        found.append((losses, validate(module, held_out, ON_CPU)["losses"]))
    assert found[0] == found[1]
