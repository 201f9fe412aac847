"""Optimizers: one file each; the registry is the union of their configs, told apart by `kind`."""

from typing import Annotated

from pydantic import Field

from bakeoff.optimization.optimizers.adafactor import AdafactorConfig
from bakeoff.optimization.optimizers.adamw import AdamWConfig
from bakeoff.optimization.optimizers.lamb import LambConfig
from bakeoff.optimization.optimizers.muon import MuonConfig
from bakeoff.optimization.optimizers.sgd import NagConfig, SgdConfig

OptimizerConfig = Annotated[
    AdamWConfig | LambConfig | SgdConfig | NagConfig | AdafactorConfig | MuonConfig, Field(discriminator="kind")
]
