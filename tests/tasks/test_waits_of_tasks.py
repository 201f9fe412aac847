"""In a step of a fine-tuning on a GPU the processor waits for nothing, for every kind of task."""

import copy

import torch
from test_losses_and_answers import case  # noqa: F401

from bakeoff.conformance.device_spy import META, spying
from bakeoff.conformance.test_waiting import loaded_again
from bakeoff.resources.device import Placement
from bakeoff.tasks.finetune_config import FinetuneConfig
from bakeoff.tasks.fitting.fitting import Fitting, Setting, TaskSplit
from bakeoff.tasks.fitting.trial import FittingTrial
from bakeoff.trainer.step import optimize


def test_a_step_waits_for_nothing_and_mixes_no_devices(case):  # noqa: F811
    config = FinetuneConfig(batch=4, micro_batch=3, least_steps=0)
    split = TaskSplit(case.examples, case.items)
    setting = Setting(config, case.task, case.format, seed=0, placement=Placement(META, "float32"))
    head = copy.deepcopy(case.head).to(META)
    unit = Fitting(head, split, split, FittingTrial(1e-3, 2), setting)
    batches = unit.batches(0)
    unit.begin()
    with spying():
        figures = optimize(unit, batches, 0)
    assert all(figure.device == META for figure in figures.values())
    loaded_again(unit.optimizer)
    for parameter in head.parameters():
        parameter.grad = torch.empty_like(parameter)
    with spying():
        unit.optimizer.step()
