"""The relation between the two segments of a pair: next sentence, sentence order, sentence structure."""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from bakeoff.corpus.split import Split
from bakeoff.errors import UserError
from bakeoff.formats.example import Examples
from bakeoff.formats.relation import TwoSegments
from bakeoff.models.model import ModelConfig
from bakeoff.objectives.heads import Head, SentenceHead
from bakeoff.objectives.objective import ObjectiveConfig, Targets
from bakeoff.objectives.refusals import relates_segments
from bakeoff.randomness.draws import Draws
from bakeoff.tokenizer.tokenizer import Tokenizer

DOCUMENTS = 4
"""Number of other documents that are searched for a replacement."""

SENTENCES = 16
"""Number of sentences of each of these documents at which a replacement may begin; one of them usually has the
original's length.
"""


class SegmentRelationConfig(ObjectiveConfig):
    """The common fields of objectives over segment pairs."""

    kind: str
    """The objective's name."""
    relates_segments: ClassVar[bool] = True
    classes: ClassVar[Sequence[str]]


class NextSentenceConfig(SegmentRelationConfig):
    """Next-sentence prediction of Devlin et al. 2019: does B follow A (0), or come from another document (1)?"""

    kind: Literal["nsp"] = "nsp"
    """The objective's name."""
    title: ClassVar[str] = "Next sentence (nsp)"
    refused: ClassVar[Mapping[str, str]] = relates_segments("nsp")
    classes: ClassVar[Sequence[str]] = ("B follows A", "B comes from another document")

    @override
    def build(self, model: ModelConfig, vocabulary: int) -> "NextSentence":
        return NextSentence(self, model)


class SentenceOrderConfig(SegmentRelationConfig):
    """Sentence-order prediction of Lan et al. 2020: do the segments stand in their order (0), or swapped (1)?"""

    kind: Literal["sop"] = "sop"
    """The objective's name."""
    title: ClassVar[str] = "Sentence order (sop)"
    refused: ClassVar[Mapping[str, str]] = relates_segments("sop")
    classes: ClassVar[Sequence[str]] = ("B follows A", "A and B are swapped")

    @override
    def build(self, model: ModelConfig, vocabulary: int) -> "SentenceOrder":
        return SentenceOrder(self, model)


class SentenceStructureConfig(SegmentRelationConfig):
    """StructBERT's sentence structural objective (Wang et al. 2020, arXiv:1908.04577, section 2.2).

    Does B follow A (0), stand before it (1), or come from another document (2)? Each applies to a third of the pairs.
    """

    kind: Literal["sentence_structure"] = "sentence_structure"
    """The objective's name."""
    title: ClassVar[str] = "Sentence order or another document (sentence_structure)"
    refused: ClassVar[Mapping[str, str]] = relates_segments("sentence_structure")
    classes: ClassVar[Sequence[str]] = ("B follows A", "A and B are swapped", "B comes from another document")

    @override
    def build(self, model: ModelConfig, vocabulary: int) -> "SentenceStructure":
        return SentenceStructure(self, model)


class SegmentRelation:
    """Predicts the label of each pair from the hidden state of its first position."""

    def __init__(self, config: SegmentRelationConfig, model: ModelConfig) -> None:
        self.name = config.kind
        self.head: Head = SentenceHead(model.stack.output_width, len(config.classes))
        self.targets_per_token = 0.0  # one a row: nothing beside the tokens

    def targets(self, examples: Examples, split: Split, tokenizer: Tokenizer, draws: Draws) -> Targets:
        """The first position of every row, and the pair's label."""
        assert examples.relation is not None
        return Targets(np.arange(len(examples.row.ids)) * examples.row.ids.shape[1], examples.relation)


class NextSentence(SegmentRelation):
    """Replaces half of the second segments by text from another document."""

    def arrange(
        self, pairs: TwoSegments, split: Split, longest: int, draws: Draws
    ) -> tuple[TwoSegments, NDArray[np.int64]]:
        """Replace the second segment with probability 1/2; the label is 1 where it was replaced.

        Raises:
            UserError: the split has one document alone.
        """
        wanted = draws.uniform("is next", 1)[:, 0] < 1 / 2
        pairs = _with_replacements(self.name, pairs, wanted, split, longest, draws)
        return pairs, wanted.astype(np.int64)


class SentenceOrder(SegmentRelation):
    """Swaps the segments of half of the pairs."""

    def arrange(
        self, pairs: TwoSegments, split: Split, longest: int, draws: Draws
    ) -> tuple[TwoSegments, NDArray[np.int64]]:
        """Swap the segments with probability 1/2; the label is 1 where they were swapped."""
        swapped = draws.uniform("swapped", 1)[:, 0] < 1 / 2
        return pairs.swapped(swapped), swapped.astype(np.int64)


class SentenceStructure(SegmentRelation):
    """Takes a third of the second segments from another document, and swaps the segments of half of the other pairs."""

    def arrange(
        self, pairs: TwoSegments, split: Split, longest: int, draws: Draws
    ) -> tuple[TwoSegments, NDArray[np.int64]]:
        """Replace the second segment with probability 1/3, else swap the segments with probability 1/2.

        Raises:
            UserError: the split has one document alone.
        """
        wanted = draws.uniform("is next", 1)[:, 0] < 1 / 3
        pairs = _with_replacements(self.name, pairs, wanted, split, longest, draws)
        swapped = ~wanted & (draws.uniform("swapped", 1)[:, 0] < 1 / 2)
        return pairs.swapped(swapped), np.where(wanted, 2, swapped).astype(np.int64)


def _with_replacements(
    name: str, pairs: TwoSegments, wanted: NDArray[np.bool_], split: Split, longest: int, draws: Draws
) -> TwoSegments:
    """Replace second segments by text from other documents.

    Neither the length nor the end of a segment may give the answer away. The replacement is the sentence, or run of
    whole sentences, whose length is nearest to the original's among all candidates. An original run that stays is cut
    to the length that its replacement would have had, which seldom differs. If no candidate fits into the row, both are
    cut to half the original's length, inside a sentence.

    Args:
        name: the objective's name.
        pairs: two segments each.
        wanted: (N,) True for pairs whose second segment is to be replaced.
        split: the text.
        longest: the largest number of tokens of a pair.
        draws: the examples' random numbers.

    Raises:
        UserError: the split has one document alone.
    """
    documents, sentences = np.asarray(split.documents), np.asarray(split.sentences)
    count, originals = len(documents) - 1, np.asarray(split.originals)
    if count < 2 or originals[0] == originals[-1]:
        raise UserError(
            f"{name} takes text from other documents, but the corpus, or its held-out split, is a single one; "
            "prepare it with --document-per-line or --document-separator, hold out more, or use sop"
        )
    original = originals[np.searchsorted(documents, pairs.first, side="right") - 1]
    # Where text is held out from within documents, the stretches of one are documents side by side.
    stretch, stretch_end = np.searchsorted(originals, original), np.searchsorted(originals, original, side="right")
    room, goal = longest - pairs.first_length, pairs.second_length
    begins, lengths = [], []
    for number in range(DOCUMENTS):
        other = draws.integers(f"document {number}", count - (stretch_end - stretch))
        other += np.where(other >= stretch, stretch_end - stretch, 0)
        first, end = np.searchsorted(sentences, documents[other]), documents[other + 1]
        # The last sentence, or that after which the document is as long as the original, or its first.
        last = np.searchsorted(sentences, end - (1 if pairs.single else goal), side="right") - 1
        among = np.maximum(last - first, 0) + 1
        begin = first[:, None] + (draws.uniform(f"sentence {number}", SENTENCES) * among[:, None]).astype(np.int64)
        begins.append(begin)
        if pairs.single:
            lengths.append(sentences[begin + 1] - sentences[begin])
        else:
            within = np.minimum(goal[:, None], end[:, None] - sentences[begin])
            lengths.append(_nearest_run(sentences, begin, within, room[:, None]))
    # (N,) of the (N, DOCUMENTS * SENTENCES) that were drawn.
    begin, length = np.concatenate(begins, 1), np.concatenate(lengths, 1)
    far = np.where(length <= room[:, None], np.abs(length - goal[:, None]), np.iinfo(np.int64).max)
    best = far.argmin(1)[:, None]
    nothing = np.take_along_axis(far, best, 1)[:, 0] == np.iinfo(np.int64).max
    start = sentences[np.take_along_axis(begin, best, 1)[:, 0]]
    length = np.take_along_axis(length, best, 1)[:, 0]
    kept = goal
    if not pairs.single:
        kept = _nearest_run(sentences, np.searchsorted(sentences, pairs.second), np.minimum(length, goal), goal)
    half = (goal + 1) // 2
    return TwoSegments(
        pairs.first,
        pairs.first_length,
        np.where(wanted, start, pairs.second),
        np.where(nothing, half, np.where(wanted, length, kept)),
        pairs.single,
    )


def _nearest_run(
    sentences: NDArray[np.int64], begin: NDArray[np.int64], goal: NDArray[np.int64], room: NDArray[np.int64]
) -> NDArray[np.int64]:
    """(N, ...) tokens in the run of whole sentences whose length is nearest to a goal, within some room.

    Args:
        sentences: (S + 1,) the positions at which sentences start.
        begin: (N, ...) the first sentence of each run.
        goal: (N, ...) the wanted number of tokens, which reaches no further than the document's end.
        room: (N, ...) the largest number of tokens allowed.

    Returns:
        (N, ...) number of tokens; larger than the room where not even one sentence fits.
    """
    start = sentences[begin]
    below = np.maximum(np.searchsorted(sentences, start + goal, side="right") - 1, begin + 1)
    above = np.minimum(below + 1, len(sentences) - 1)
    short, long = sentences[below] - start, sentences[above] - start
    return np.where((np.abs(long - goal) < np.abs(short - goal)) & (long <= room), long, short)
