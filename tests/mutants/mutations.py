"""The faults that can be planted in a file: mutmut's operators, at every place where one could change a result."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import libcst as cst
from mutmut.mutation import mutators

OPERATORS = {
    cst.Integer: {"number": mutators.operator_number},
    cst.Float: {"number": mutators.operator_number},
    cst.Name: {"truth": mutators.operator_name},
    cst.UnaryOperation: {"negation": mutators.operator_remove_unary_ops, "operator": mutators.operator_swap_op},
    cst.BinaryOperation: {"operator": mutators.operator_swap_op},
    cst.BooleanOperation: {"operator": mutators.operator_swap_op},
    cst.ComparisonTarget: {"operator": mutators.operator_swap_op},
    cst.Call: {"argument": mutators.operator_arg_removal},
    cst.AugAssign: {"assignment": mutators.operator_augmented_assignment, "operator": mutators.operator_swap_op},
    cst.IfExp: {"condition": mutators.operator_if_exp},
}
"""By the node of the syntax tree. mutmut's operators that put None or another text in a place are left out: they ask
whether a line is run at all, which the others do as well."""

SKIPPED = (cst.Annotation, cst.Decorator, cst.Raise, cst.Assert, cst.FormattedString)
"""Types, what errors say, and the assertions of our own mistakes."""
TYPES = {"list", "dict", "tuple", "set", "frozenset", "type", "Literal", "ClassVar", "Callable", "Sequence", "Mapping"}
ERRORS = {"UserError", "ValueError"}
HARMLESS = {"gt", "ge", "lt", "le", "min_length", "strict", "device"}
"""Arguments that refuse a slip, a user's or our own, and change no training; and the only device that tests have."""


class Mutant(NamedTuple):
    """One planted fault."""

    file: str
    """Below the repository's root."""
    line: int
    """Where, counted from 1."""
    kind: str
    """The operator."""
    before: str
    """The first line that differs."""
    after: str
    """What becomes of it."""
    source: str
    """The whole file with the fault."""


class Site(NamedTuple):
    """A place and a fault for it."""

    file: str
    """Below the repository's root."""
    tree: cst.Module
    """The file."""
    node: cst.CSTNode
    """What is replaced."""
    replacement: cst.CSTNode
    """What by."""
    kind: str
    """The operator."""

    def mutant(self) -> Mutant:
        """The file with the fault."""
        return of_sources(
            self.file, self.tree.code, self.tree.deep_replace(self.node, self.replacement).code, self.kind
        )


def of_sources(file: str, before: str, after: str, kind: str) -> Mutant:
    """The mutant that makes one source another.

    Raises:
        StopIteration: they are the same.
    """
    lines = zip(before.splitlines(), after.splitlines(), strict=False)
    line, old, new = next((line, old, new) for line, (old, new) in enumerate(lines, 1) if old != new)
    return Mutant(file, line, kind, old.strip(), new.strip(), after)


def sites(root: Path, file: str) -> list[Site]:
    """Every place for a fault in a file, in their order."""
    tree = cst.parse_module((root / file).read_text(encoding="utf-8"))
    visitor = _Visitor()
    tree.visit(visitor)
    return [Site(file, tree, *found) for found in visitor.found]


class _Visitor(cst.CSTVisitor):
    def __init__(self) -> None:
        self.found: list[tuple[cst.CSTNode, cst.CSTNode, str]] = []

    def on_visit(self, node: cst.CSTNode) -> bool:
        if isinstance(node, SKIPPED) or _is_type(node) or _is_error(node):
            return False
        if isinstance(node, cst.Arg) and _keyword(node) in HARMLESS:
            return False
        for kind, operator in OPERATORS.get(type(node), {}).items():
            made = _without_named_argument(node) if kind == "argument" else operator(node)
            self.found += [(node, each, kind) for each in made]
        return True


def _without_named_argument(call: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Calls that leave one of the named arguments to its default; without another one, most fail at once."""
    assert isinstance(call, cst.Call)
    for made in mutators.operator_arg_removal(call):
        assert isinstance(made, cst.Call)
        left_out = {_keyword(arg) for arg in call.args} - {_keyword(arg) for arg in made.args} - {None}
        if left_out - HARMLESS:
            yield made


def _keyword(arg: cst.Arg) -> str | None:
    return arg.keyword.value if arg.keyword is not None else None


def _is_type(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Subscript) and isinstance(node.value, cst.Name) and node.value.value in TYPES


def _is_error(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and node.func.value in ERRORS
