"""A row of token ids as pieces of text, with predicted tokens in separate pieces."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

from pydantic import Field

from bakeoff.config import Config
from bakeoff.tokenizer.tokenizer import Tokenizer

Kind = Literal["text", "special", "mark", "masked", "replaced", "kept", "shuffled", "ordered", "next"]


class TokenRun(Config):
    """A run of tokens of one kind in a row."""

    kind: Kind
    """Kind of the tokens. text: read only; special: a special token; mark: the mark of a missing span. Predicted at
    their own position: masked (the model reads a mask), replaced (another token), kept (the token itself), shuffled
    (tokens in another order), ordered (by permutation). next: predicted last, and not in the row."""
    place: int
    """Position of the first token in the row, from 0; for next, the position from which it is predicted."""
    ids: list[int]
    """Ids that the model reads; empty for next."""
    space: bool
    """Whether a space stands before the run."""
    text: str
    """Text of the ids that the model reads, without that space."""
    targets: list[int] = Field(default_factory=list)
    """Ids that are predicted at these positions; for objectives that predict every next token, only the id of next."""
    original: str = ""
    """Text of the predicted ids."""
    objective: str | None = None
    """Name of the objective that predicts the ids."""
    order: int | None = None
    """Turn of an ordered token, from 1; it is predicted from all tokens that are not ordered, and from ordered tokens
    with earlier turns."""


class TargetRun(NamedTuple):
    """Predictions of an objective at successive positions of a row."""

    objective: str
    """The objective's name."""
    targets: list[int]
    """The original id at each position."""
    order: int | None = None
    """Turn of the prediction; None: the objective has no order."""


class Speller:
    """Decoder of ids into text, piece by piece."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        # What the tokenizer did not know is read as text.
        self.special = set(tokenizer.special_ids.tolist()) - {tokenizer.unknown}

    def plain(self, token: int) -> bool:
        """Whether a token is text: neither special nor an objective's mark."""
        return token < self.tokenizer.size and token not in self.special

    def name(self, token: int) -> str:
        """The text of a token without the space before it; a token of only a space keeps the space."""
        if token >= self.tokenizer.size:
            return f"<mark {token - self.tokenizer.size}>"
        text = self.tokenizer.decode([token], skip_special=False)
        return text.strip(" ") or " "

    def names(self, tokens: Sequence[int]) -> str:
        """The texts of tokens, separated by spaces; a space inside one of several tokens is shown as ␣."""
        return self.name(tokens[0]) if len(tokens) == 1 else " ".join(self.name(t).replace(" ", "␣") for t in tokens)

    def behind(self, before: int | None, tokens: Sequence[int]) -> str:
        """The text of ordinary tokens after another token; `before` None: at the start of a text."""
        if before is None or not self.plain(before):
            return ("" if before is None else " ") + self.tokenizer.decode(tokens, skip_special=False).lstrip(" ")
        head = self.tokenizer.decode([before], skip_special=False)
        both = self.tokenizer.decode([before, *tokens], skip_special=False)
        # Bytes that make a character together only have no text that the whole could begin with.
        return both.removeprefix(head) if both.startswith(head) else self.tokenizer.decode(tokens, skip_special=False)

    def spaced(self, before: int | None, token: int) -> bool:
        """Whether a space stands between two tokens."""
        if before is None or not self.plain(before) or not self.plain(token):
            return before is not None
        text = self.behind(before, [token])
        return text.startswith(" ") and text != " "

    def gap(self, before: int | None, token: int, backwards: bool) -> bool:
        """Whether a space stands between two successive tokens of a row, which may read backwards."""
        if before is None:
            return False
        return self.spaced(token, before) if backwards else self.spaced(before, token)

    def run(self, tokens: Sequence[int], before: int | None, after: int | None, backwards: bool) -> tuple[bool, str]:
        """Whether a space stands before ordinary tokens between their neighbours, and their text without that space."""
        if not backwards:
            text = self.behind(before, tokens)
            return text.startswith(" "), text.removeprefix(" ")
        # The text has each token after the one that is read next, and there it decides whether it goes on with a word.
        spelt = self.behind(after, tokens[-1:])
        text = spelt if spelt == " " else spelt.removeprefix(" ")
        for earlier, token in pairwise(reversed(tokens)):
            spelt = self.behind(earlier, [token])
            text = spelt[1:] + " " + text if spelt.startswith(" ") and spelt != " " else spelt + text
        return self.gap(before, tokens[0], backwards), text

    def pieces(
        self, ids: Sequence[int], marks: Mapping[int, TargetRun], start: int, stop: int, backwards: bool = False
    ) -> list[TokenRun]:
        """The pieces of a row at the positions from `start` to `stop`.

        Args:
            ids: (T,) ids that the model reads.
            marks: the predictions, by their first position.
            start: the first position.
            stop: the position after the last one.
            backwards: whether the row has the text in reverse, with the tokens of each word in reverse, too.
        """
        runs: list[TokenRun] = []
        before: int | None = None  # the token of the text, which a mask may hide
        position = start
        while position < stop:
            mark = marks.get(position)
            if mark is not None:
                piece = self._marked(ids[position : position + len(mark.targets)], position, mark, before, backwards)
            elif self.plain(ids[position]):
                end = next((p for p in range(position, stop) if p in marks or not self.plain(ids[p])), stop)
                run = list(ids[position:end])
                following = None
                if end < stop:
                    following = marks[end].targets[0] if end in marks else ids[end]
                space, text = self.run(run, before, following, backwards)
                piece = TokenRun(kind="text", place=position, ids=run, space=space, text=text)
            else:
                # A mask at a position where nothing is predicted stands for a span of any length.
                gap = ids[position] >= self.tokenizer.size or ids[position] == self.tokenizer.mask
                piece = TokenRun(
                    kind="mark" if gap else "special",
                    place=position,
                    ids=[ids[position]],
                    space=before is not None,
                    text=self.name(ids[position]),
                )
            runs.append(piece)
            before = (piece.targets or piece.ids)[-1]
            position += len(piece.ids)
        return runs

    def _marked(
        self, ids: Sequence[int], position: int, mark: TargetRun, before: int | None, backwards: bool
    ) -> TokenRun:
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
            place=position,
            ids=list(ids),
            space=self.gap(before, mark.targets[0], backwards),
            text=self.names(ids),
            targets=mark.targets,
            original=self.names(mark.targets),
            objective=mark.objective,
            order=mark.order,
        )
