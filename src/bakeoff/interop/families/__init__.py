"""Model families of other libraries, one file each."""

from bakeoff.interop.families.albert import Albert
from bakeoff.interop.families.bakeoff_family import BakeoffFamily
from bakeoff.interop.families.bart import Bart
from bakeoff.interop.families.bert import Bert
from bakeoff.interop.families.distilbert import DistilBert
from bakeoff.interop.families.electra import Electra
from bakeoff.interop.families.fairseq import Lightconv
from bakeoff.interop.families.family import Family
from bakeoff.interop.families.gpt import Gpt, Gpt2
from bakeoff.interop.families.modernbert import ModernBert
from bakeoff.interop.families.roberta import Roberta
from bakeoff.interop.families.t5 import T5
from bakeoff.interop.families.task_heads import NotSaid
from bakeoff.interop.families.xlnet import XLNet

FAMILIES: tuple[Family, ...] = (
    *(Bert(), Roberta(), Albert(), Electra(), DistilBert(), ModernBert()),
    *(XLNet(), Gpt(), Gpt2(), Bart(), T5(), Lightconv(), BakeoffFamily()),
)
"""All families, in any order: where several can express a recipe, their `kinds` of tokenizers decide in
`hugging_face.family_choice`, and after these `precedence`."""


def precedence(family: Family) -> int:
    """The rank of a family among those that can express a recipe: the longest way of families that come before it."""
    before = [each for each in FAMILIES if each.model_types[0] in family.yields_to]
    return 1 + max((precedence(each) for each in before), default=-1)


__all__ = ["FAMILIES", "Family", "NotSaid", "precedence"]
