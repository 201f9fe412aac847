"""The source of a module of Bakeoff: its definitions, the names that they use, and their positions in the text."""

import ast
import builtins
import importlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

DROPPED_CALLS = frozenset({"initialise", "adapt_to_depth"})
"""Calls that initialise weights; an exported model loads its weights."""
DROPPED_TARGETS = frozenset(
    f"self.{name}"
    for name in ("initial", "glorot", "compiled", "replayed", "recomputed", "attention_needs", "flops_per_row")
)
"""Attributes that serve training and counts of operations alone."""
DROPPED_DECORATORS = frozenset({"override", "model_validator", "field_validator"})
COMPILING = "torch.compiler.is_compiling()"
APPLYING = "applying("
"""How the choice begins of the function that applies a layer, which is `apply_layer` where nothing is trained."""

Definition = ast.FunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign


@dataclass(frozen=True)
class Import:
    """An imported name of a module."""

    module: str
    name: str | None
    """The imported name; None: the module itself is imported."""
    local: str

    def __str__(self) -> str:
        if self.name is None:
            return f"import {self.module}" + ("" if self.local == self.module else f" as {self.local}")
        return f"from {self.module} import {self.name}" + ("" if self.local == self.name else f" as {self.local}")


@dataclass
class Module:
    """The source of a module of Python."""

    name: str
    text: bytes = field(init=False)
    tree: ast.Module = field(init=False)
    definitions: dict[str, Definition] = field(init=False)
    imports: dict[str, Import] = field(init=False)

    def __post_init__(self) -> None:
        self.loaded: Any = importlib.import_module(self.name)
        self.text = Path(str(self.loaded.__file__)).read_bytes()
        self.tree = ast.parse(self.text)
        self.definitions, self.imports = {}, {}
        for node in self.tree.body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                self.definitions[node.name] = node
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                self.definitions[node.targets[0].id] = node
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                self.definitions[node.target.id] = node
            elif isinstance(node, ast.Import):
                self.imports |= {(a.asname or a.name): Import(a.name, None, a.asname or a.name) for a in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                self.imports |= {
                    (a.asname or a.name): Import(node.module, a.name, a.asname or a.name) for a in node.names
                }

    @cached_property
    def _lines(self) -> list[int]:
        starts = [0]
        for line in self.text.splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        return starts

    def offset(self, line: int, column: int) -> int:
        """The offset in bytes of a line, counted from 1, and a column."""
        return self._lines[line - 1] + column

    def line_of(self, offset: int) -> int:
        """The offset at which the line of an offset begins."""
        return self.text.rfind(b"\n", 0, offset) + 1

    def source(self, node: ast.AST) -> str:
        """The source text of a node."""
        begin, end = self.span(node)
        return self.text[begin:end].decode()

    def span(self, node: Any) -> tuple[int, int]:
        """Begin and end of a node in bytes, decorators included."""
        first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", []))])
        column = node.col_offset
        return self.offset(first, column), self.offset(node.end_lineno, node.end_col_offset)


def documented(body: list[ast.stmt]) -> Iterator[tuple[ast.stmt, ast.stmt | None]]:
    """Statements, each with the docstring below it or None."""
    for index, node in enumerate(body):
        if index and is_docstring(node) and isinstance(body[index - 1], ast.Assign | ast.AnnAssign):
            continue
        below = body[index + 1] if index + 1 < len(body) else None
        docstring = below if isinstance(node, ast.Assign | ast.AnnAssign) and below and is_docstring(below) else None
        yield node, docstring


def is_docstring(node: ast.stmt) -> bool:
    """Whether a statement is a string alone."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def dropped(node: ast.stmt) -> bool:
    """Whether a statement is useless to a model whose weights are loaded."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        return ast.unparse(node.value.func) in DROPPED_CALLS
    if isinstance(node, ast.Assign):
        return all(ast.unparse(target) in DROPPED_TARGETS for target in node.targets)
    if isinstance(node, ast.If) and ast.unparse(node.test) == COMPILING:
        return not node.orelse
    if isinstance(node, ast.If | ast.For):
        return not node.orelse and all(dropped(each) for each in node.body)
    return False


def names(node: ast.AST, annotations: bool = False) -> tuple[set[str], set[str]]:
    """The global names and the attributes that a piece of code uses.

    Args:
        node: the code.
        annotations: read annotations alone; False: read everything else.
    """
    reader = _Names(annotations)
    reader.visit(node)
    return reader.used - set(dir(builtins)), reader.attributes


class _Names(ast.NodeVisitor):
    def __init__(self, annotations: bool) -> None:
        self.used: set[str] = set()
        self.attributes: set[str] = set()
        self._annotations, self._inside = annotations, not annotations
        self._bound: list[set[str]] = []

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, ast.stmt) and not self._annotations and dropped(node):
            return None
        if isinstance(node, ast.Assign) and ast.unparse(node.value).startswith(APPLYING):
            node = ast.Assign(node.targets, ast.Name("apply_layer", ast.Load()))  # no export compiles
        return super().visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        if self._inside and isinstance(node.ctx, ast.Load) and not any(node.id in bound for bound in self._bound):
            self.used.add(node.id)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if self._inside:
            self.attributes.add(node.attr)
        self.visit(node.value)

    def visit_If(self, node: ast.If) -> None:
        parts = node.orelse if ast.unparse(node.test) == COMPILING and not self._annotations else [node]
        if parts == [node]:
            self.generic_visit(node)
            return
        for each in parts:
            self.visit(each)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self._annotation(node.annotation)
        for each in (node.target, node.value):
            if each is not None:
                self.visit(each)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        for decorator in node.decorator_list:
            if ast.unparse(decorator).partition("(")[0] not in DROPPED_DECORATORS:
                self.visit(decorator)
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        arguments += [each for each in (node.args.vararg, node.args.kwarg) if each is not None]
        for annotation in [each.annotation for each in arguments] + [node.returns]:
            self._annotation(annotation)
        for default in [*node.args.defaults, *(each for each in node.args.kw_defaults if each is not None)]:
            self.visit(default)
        stored = {each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
        self._bound.append({each.arg for each in arguments} | stored)
        for statement in node.body:
            self.visit(statement)
        self._bound.pop()

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._bound.append({each.arg for each in node.args.args})
        self.visit(node.body)
        self._bound.pop()

    def _annotation(self, node: ast.expr | None) -> None:
        if node is not None and self._annotations:
            self._inside = True
            self.visit(node)
            self._inside = False
