"""In a step of a fine-tuning on a GPU the processor waits for nothing, for every kind of task."""

import copy

from test_losses_and_answers import case  # noqa: F401

from bakeoff.conformance.device_spy import META
from bakeoff.conformance.test_waiting import never_waits
from bakeoff.resources.device import Placement
from bakeoff.tasks.finetune_config import FinetuneConfig
from bakeoff.tasks.fitting.fitting import Fitting, Setting, TaskSplit
from bakeoff.tasks.fitting.trial import FittingTrial


def test_a_step_waits_for_nothing_and_mixes_no_devices(case):  # noqa: F811
    config = FinetuneConfig(batch=4, micro_batch=3, least_steps=0)
    split = TaskSplit(case.examples, case.items)
    setting = Setting(config, case.task, case.format, seed=0, placement=Placement(META, "float32"))
    head = copy.deepcopy(case.head).to(META)
    unit = Fitting(head, split, split, FittingTrial(1e-3, 2), setting)
    never_waits(unit)
