"""Every tiny recipe as ONNX: the numbers of torch, or one line that says why not."""

import random

import pytest

from bakeoff.errors import UserError
from bakeoff.interop.export import export
from bakeoff.recipe_files import recipe_names
from tests.conftest import shrink
from tests.inference.untrained_runs import untrained

pytest.importorskip("onnx")
pytest.importorskip("onnxscript")
pytest.importorskip("onnxruntime")

from bakeoff.tasks.finetune import finetune
from bakeoff.tasks.fitting.finetune_config import FinetuneConfig
from bakeoff.tasks.kinds.classification import ClassificationConfig
