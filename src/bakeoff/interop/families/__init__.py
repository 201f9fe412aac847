"""Families of models elsewhere: one file each."""

from bakeoff.interop.families.bert import Bert
from bakeoff.interop.families.family import Family, NotSaid

FAMILIES: tuple[Family, ...] = (Bert(),)
"""All families; where several can say a recipe, the first one is taken whose tokenizers are of the recipe's kind."""

__all__ = ["FAMILIES", "Family", "NotSaid"]
