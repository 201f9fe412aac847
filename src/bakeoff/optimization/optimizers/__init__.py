"""The registry of optimizers, each of which has a file here."""

from typing import Annotated

from bakeoff.optimization.optimizers.adafactor import AdafactorConfig
from bakeoff.optimization.optimizers.adamw import AdamWConfig
from bakeoff.optimization.optimizers.base_config import OptimizerBaseConfig
from bakeoff.optimization.optimizers.lamb import LambConfig
from bakeoff.optimization.optimizers.muon import MuonConfig
from bakeoff.optimization.optimizers.sgd import NagConfig, SgdConfig
from bakeoff.registry import Registry

OPTIMIZERS = Registry(
    "optimizer",
    OptimizerBaseConfig,
    AdamWConfig,
    LambConfig,
    SgdConfig,
    NagConfig,
    AdafactorConfig,
    MuonConfig,
)
"""The config of every optimizer by its name."""

OptimizerConfig = Annotated[OptimizerBaseConfig, OPTIMIZERS]
