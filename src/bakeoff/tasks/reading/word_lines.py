"""Lines with a word each: their columns, how many these are, and the comments between them."""

from functools import cached_property

from bakeoff.display.wording import counted
from bakeoff.reading.files import LineReader


def cells_of(line: str) -> list[str]:
    """The columns of a row: between tabs, or between spaces in a row without a tab."""
    return line.split("\t") if "\t" in line else [cell for cell in line.split(" ") if cell]


class Widths:
    """The numbers of columns that rows have: one in a sentence, and in a whole file if one is counted from the end."""

    def __init__(self, from_the_end: bool) -> None:
        self._from_the_end, self._sentence, self._file = from_the_end, 0, 0

    def begin_sentence(self) -> None:
        """Let the next row have another number of columns than the ones before."""
        self._sentence = 0

    def problem(self, columns: int) -> str | None:
        """What is wrong with the number of columns of the next row; None: nothing."""
        if self._sentence and columns != self._sentence:
            return f"{counted(columns, 'column')}, where the sentence began with {self._sentence}; mend it"
        self._sentence, self._file = columns, self._file or columns
        if self._from_the_end and columns != self._file:
            return f"{counted(columns, 'column')}, where the sentences before have {self._file}; mend it"
        return None


class CommentLines:
    """The comments of a file: lines that begin with # before the words of a sentence, and are no words themselves.

    Such a line is a word where it looks like the rows of words: with as many columns, between the same signs, and with
    a tag that one of them has. So `#nlp O` and `# SYM` are words, and `# 12` and `# text = the city` are comments.

    Args:
        lines: the file, which is read whole when a line is in doubt.
        tag: the index of the column of tags, -1 for the last.
    """

    def __init__(self, lines: LineReader, tag: int) -> None:
        self._lines, self._tag = lines, tag

    def __contains__(self, line: str) -> bool:
        forms, tags = self._rows
        form, tag = self._looks(line)
        return form not in forms or (form[1] > 1 and tag not in tags)

    def _looks(self, line: str) -> tuple[tuple[bool, int], str]:
        """Whether tabs stand between the columns of a line, their number, and the tag."""
        cells = cells_of(line)
        return ("\t" in line, len(cells)), cells[self._tag].strip() if -1 <= self._tag < len(cells) else ""

    @cached_property
    def _rows(self) -> tuple[set[tuple[bool, int]], set[str]]:
        """The forms and the tags of the rows that are words in any case."""
        forms, tags, begins = set[tuple[bool, int]](), set[str](), True
        for _, text, _ in self._lines.whole():
            line = text.rstrip("\r\n")
            if not line.strip():
                begins = True
            elif not (begins and line.startswith(("#", "-DOCSTART-"))):
                begins = False
                form, tag = self._looks(line)
                forms.add(form)
                tags.add(tag)
        return forms, tags
