"""The registry of measures."""

from bakeoff.tasks.measures.fresh_heads import FreshHeadsConfig
from bakeoff.tasks.measures.held_out_text import HeldOutTextConfig
from bakeoff.tasks.measures.measure import MEASURES
from bakeoff.tasks.measures.minimal_pairs import MinimalPairsConfig

for _kind in (MinimalPairsConfig, HeldOutTextConfig, FreshHeadsConfig):
    MEASURES.register(_kind)

__all__ = ["MEASURES"]
