"""The common config of all mixers: their settings, and facts about them."""

from typing import ClassVar

from bakeoff.config import PartConfig
from bakeoff.models.context import BuildContext
from bakeoff.models.part import Part


class MixerBaseConfig(PartConfig):
    """A mixer that sees a causal or centred window and remembers little, unless its config says otherwise."""

    kind: str
    """The mixer's name."""
    attends: ClassVar[bool] = False
    """A token can see every token that the mask shows, at any distance."""
    two_streams: ClassVar[bool] = False
    """Queries of a second stream can attend, too, without seeing the tokens at their own positions."""
    hides_ahead: ClassVar[bool] = False
    """In an encoder the mixer can read rows whose tokens see no later ones (`Row.behind`), too."""
    remembers_in_encoders: ClassVar[bool] = False
    """The mixer continues from the previous row in an encoder as well."""

    def build(self, context: BuildContext) -> Part:
        """The mixer for one layer."""
        raise NotImplementedError

    def needs_mask(self, context: BuildContext) -> str | None:
        """The reason why the layer reads `Context.attention_mask`, and does not do with `Context.bounds` alone.

        None: there is no such reason, or the mixer does not attend.
        """
        return self.kind if self.attends else None

    def attention_dropout(self, context: BuildContext) -> float:
        """The rate at which weights of attention are dropped out in training, where bounds may stand for a mask."""
        return 0.0

    def widest_head(self, context: BuildContext) -> int:
        """The largest width of a head, where bounds may stand for a mask."""
        return 0

    @property
    def forgets(self) -> bool:
        """Whether the memory of a text is bounded and forgets the text's first tokens."""
        return True

    @property
    def blind_ahead(self) -> bool:
        """Whether the mixer's positions take all distances ahead for one, in a causal stack.

        Prefixes, whose tokens see later ones, cannot be read then.
        """
        return False

    @property
    def reads_segments(self) -> bool:
        """Whether the mixer tells a token's own segment from other segments, whatever the embedding does."""
        return False

    @property
    def counts_positions(self) -> bool:
        """Whether a token's output depends on the number of tokens before it, which the state alone does not tell."""
        return False

    @property
    def head_count(self) -> int | None:
        """Number of heads, of attention or of kernels; None: the mixer has no heads."""
        return None

    @property
    def attention_window(self) -> int | None:
        """The distance in tokens to the farthest attended token; None: no bound, or the mixer does not attend."""
        return None

    @property
    def shares_distance_bias(self) -> bool:
        """Whether the mixer adds the bias by distance that the layers of a stack share (`distances.py`)."""
        return False

    @property
    def shares_distance_vectors(self) -> bool:
        """Whether the mixer reads the vectors of distances that the layers of a stack share (`distances.py`)."""
        return False
