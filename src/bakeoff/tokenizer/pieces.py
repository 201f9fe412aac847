"""A row of token ids as pieces of text, those that an objective predicts apart from the rest."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

from pydantic import Field

from bakeoff.config import Config
from bakeoff.tokenizer.tokenizer import Tokenizer

Kind = Literal["text", "special", "mark", "masked", "replaced", "kept", "shuffled", "ordered", "next"]


class TokenRun(Config):
    """One or more tokens of a row that are alike."""

    kind: Kind
    """text: tokens that are only read; special: a special token; mark: it stands for a span that is missing.
    Predicted at their own place: masked (the model reads a mask), replaced (another token), kept (the token itself),
    shuffled (tokens in another order), ordered (by permutation). next: predicted last, and not in the row."""
    place: int
    """The place of the first token in the row, counted from 0; for next, the place from which it is predicted."""
    ids: list[int]
    """What the model reads; empty for next."""
    space: bool
    """Whether a space stands before it."""
    text: str
    """What the model reads as text, without that space."""
    targets: list[int] = Field(default_factory=list)
    """Ids that are predicted at these places; where every token is predicted from its neighbours, only that of next."""
    original: str = ""
    """What is predicted as text."""
    objective: str | None = None
    """Which objective predicts them."""
    order: int | None = None
    """When an ordered token is predicted, counted from 1; it is predicted from all that is not ordered, and from the
    tokens ordered before it."""


class TargetRun(NamedTuple):
    """What an objective predicts at places of a row, one behind the other."""

    objective: str
    """The objective's name."""
    targets: list[int]
    """The original id of each place."""
    order: int | None = None
    """When it is predicted, where the objective has an order."""


class Speller:
    """Turns ids into text, as the tokenizer does, but piece by piece."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        # What the tokenizer did not know is read as text.
        self.special = set(tokenizer.special_ids.tolist()) - {tokenizer.unknown}

    def plain(self, token: int) -> bool:
        """Whether a token is text: neither special nor an objective's own mark."""
        return token < self.tokenizer.size and token not in self.special

    def name(self, token: int) -> str:
        """A token by itself, without the space before it; a token that is nothing but a space stays."""
        if token >= self.tokenizer.size:
            return f"<mark {token - self.tokenizer.size}>"
        text = self.tokenizer.decode([token], skip_special=False)
        return text.strip(" ") or " "

    def names(self, tokens: Sequence[int]) -> str:
        """Tokens by themselves, with a space between any two, which a token of nothing but a space is told from."""
        return self.name(tokens[0]) if len(tokens) == 1 else " ".join(self.name(t).replace(" ", "␣") for t in tokens)

    def behind(self, before: int | None, tokens: Sequence[int]) -> str:
        """Text of ordinary tokens as it goes on behind another token; None: at the start."""
        if before is None or not self.plain(before):
            return ("" if before is None else " ") + self.tokenizer.decode(tokens, skip_special=False).lstrip(" ")
        head = self.tokenizer.decode([before], skip_special=False)
        both = self.tokenizer.decode([before, *tokens], skip_special=False)
        # Bytes that make a character together only have no text of their own that the whole could begin with.
        return both.removeprefix(head) if both.startswith(head) else self.tokenizer.decode(tokens, skip_special=False)

    def spaced(self, before: int | None, token: int) -> bool:
        """Whether a space stands between two tokens."""
        if before is None or not self.plain(before) or not self.plain(token):
            return before is not None
        text = self.behind(before, [token])
        return text.startswith(" ") and text != " "

    def gap(self, before: int | None, token: int, backwards: bool) -> bool:
        """Whether a space stands between two tokens that are read one behind the other."""
        if before is None:
            return False
        return self.spaced(token, before) if backwards else self.spaced(before, token)

    def run(self, tokens: Sequence[int], before: int | None, behind: int | None, backwards: bool) -> tuple[bool, str]:
        """Whether a space stands before ordinary tokens, and their text without it, between their neighbours."""
        if not backwards:
            text = self.behind(before, tokens)
            return text.startswith(" "), text.removeprefix(" ")
        # The text has each token behind the one that is read next, and there it decides whether it goes on with a word.
        own = self.behind(behind, tokens[-1:])
        text = own if own == " " else own.removeprefix(" ")
        for earlier, token in pairwise(reversed(tokens)):
            own = self.behind(earlier, [token])
            text = own[1:] + " " + text if own.startswith(" ") and own != " " else own + text
        return self.gap(before, tokens[0], backwards), text

    def pieces(
        self, ids: Sequence[int], marks: Mapping[int, TargetRun], start: int, stop: int, backwards: bool = False
    ) -> list[TokenRun]:
        """The pieces of the places from `start` to `stop` of a row.

        Args:
            ids: (T,) what the model reads.
            marks: what is predicted, by the first of its places.
            start: the first place.
            stop: behind the last one.
            backwards: the row reads the text from its end, so that a word's pieces stand the other way round.
        """
        found: list[TokenRun] = []
        before: int | None = None  # as the text has it: what is hidden, and not its mask
        place = start
        while place < stop:
            mark = marks.get(place)
            if mark is not None:
                piece = self._marked(ids[place : place + len(mark.targets)], place, mark, before, backwards)
            elif self.plain(ids[place]):
                end = next((p for p in range(place, stop) if p in marks or not self.plain(ids[p])), stop)
                run = list(ids[place:end])
                following = None
                if end < stop:
                    following = marks[end].targets[0] if end in marks else ids[end]
                space, text = self.run(run, before, following, backwards)
                piece = TokenRun(kind="text", place=place, ids=run, space=space, text=text)
            else:
                # A mask at a place where nothing is predicted stands for a span of any length.
                gap = ids[place] >= self.tokenizer.size or ids[place] == self.tokenizer.mask
                piece = TokenRun(
                    kind="mark" if gap else "special",
                    place=place,
                    ids=[ids[place]],
                    space=before is not None,
                    text=self.name(ids[place]),
                )
            found.append(piece)
            before = (piece.targets or piece.ids)[-1]
            place += len(piece.ids)
        return found

    def _marked(self, ids: Sequence[int], place: int, mark: TargetRun, before: int | None, backwards: bool) -> TokenRun:
        kind: Kind
        if len(ids) > 1:
            kind = "shuffled"
        elif mark.order is not None:
            kind = "ordered"
        elif ids[0] == self.tokenizer.mask:
            kind = "masked"
        else:
            kind = "kept" if ids[0] == mark.targets[0] else "replaced"
        return TokenRun(
            kind=kind,
            place=place,
            ids=list(ids),
            space=self.gap(before, mark.targets[0], backwards),
            text=self.names(ids),
            targets=mark.targets,
            original=self.names(mark.targets),
            objective=mark.objective,
            order=mark.order,
        )
