"""The text of an exported file: the definitions that are kept, without statements that the model does not need."""

import ast
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from bakeoff.config import Config
from bakeoff.interop.remote_code.modules import (
    APPLYING,
    COMPILING,
    DROPPED_DECORATORS,
    Import,
    Module,
    documented,
    dropped,
    names,
)

OUTSIDE = ("torch", "transformers")
"""Packages besides the standard library that an exported file may import."""
_LEFT_OUT = ("pydantic", "typing_extensions", "bakeoff")
_WORDS = {"UserError": "ValueError", "MixerConfig": "MixerBaseConfig", "BlockConfig": "BlockBaseConfig"}
"""Replacements for names of types."""
_ASSERTION = re.compile(r"  # (?:type: ignore|noqa)[^\n]*")

Keeps = Callable[[Module, ast.ClassDef, ast.stmt], bool]


@dataclass(frozen=True)
class Kept:
    """A definition that goes into the file."""

    module: Module
    name: str
    keeps: Keeps
    """Whether a statement of a class is kept."""


class Emission:
    """The text of the kept definitions.

    Args:
        kept: the definitions, in the order of the file.
        absent: functions and classes that return None for this model; assignments of their results become None.
        heads: kinds of heads that predict tokens.
        parts: config classes by the outer config's class, the name of the setting and the kind.
        resolve: a function from a module and a name in it to the module and name of the definition.
    """

    def __init__(
        self,
        kept: Sequence[Kept],
        absent: Collection[str],
        heads: Collection[str],
        parts: Mapping[tuple[str, str, str | None], type[Config]],
        resolve: Callable[[Module, str], tuple[str, str] | None],
    ) -> None:
        self._kept, self._absent, self._heads, self._parts, self._resolve = kept, absent, heads, parts, resolve
        taken: dict[str, str] = {}
        self._names: dict[tuple[str, str], str] = {}
        for each in kept:
            name = each.name
            if taken.setdefault(name, each.module.name) != each.module.name:
                name = f"{each.name}_of_{each.module.name.rpartition('.')[2]}"
                assert name not in taken
                taken[name] = each.module.name
            self._names[each.module.name, each.name] = name

    def text(self, title: str) -> str:
        """The text of the file; `title` is its docstring."""
        bodies, aliases = [], dict[str, None]()
        for each in self._kept:
            body, named = self._definition(each)
            aliases |= named
            bodies.append(body)
        code = "\n\n\n".join(body.strip("\n") for body in [*bodies, self._table()])
        for line in aliases:  # an alias stands right after its definition
            code = _after(code, line)
        code = re.sub(r"\n{4,}", "\n\n\n", code)
        code = re.sub(r"(\n\n)\n+(?=    )", r"\1", code)
        return f'"""{title}"""\n\nfrom __future__ import annotations\n\n{self._imports()}\n\n\n{code}\n'

    def _table(self) -> str:
        lines = [
            f"    ({owner!r}, {name!r}, {kind!r}): {config.__name__},"
            for (owner, name, kind), config in self._parts.items()
        ]
        return "CONFIGS.update(\n    {\n" + "\n".join(f"    {line}" for line in lines) + "\n    }\n)"

    def _imports(self) -> str:
        """The import statements for names of other packages."""
        plain, listed = set[str](), defaultdict[str, set[str]](set)
        for each in self._kept:
            used = set[str]()
            for node in self._nodes(each):
                used |= names(node)[0] | names(node, annotations=True)[0]
            for name in used:
                imported = each.module.imports.get(name)
                if imported is None or imported.module.split(".")[0] in _LEFT_OUT or imported.name == "Annotated":
                    continue
                if imported.name is None:
                    plain.add(str(imported))
                else:
                    listed[imported.module].add(
                        imported.name + ("" if imported.local == imported.name else f" as {imported.local}")
                    )
        lines = [*plain, *(f"from {module} import {', '.join(sorted(members))}" for module, members in listed.items())]
        lines.sort(key=lambda line: (line.split()[1].split(".")[0] in OUTSIDE, line.startswith("from"), line))
        return "\n".join(lines)

    def _nodes(self, each: Kept) -> Iterator[ast.AST]:
        node = each.module.definitions[each.name]
        if not isinstance(node, ast.ClassDef):
            yield node
            return
        yield from node.bases
        yield from node.decorator_list
        yield from (child for child in node.body if each.keeps(each.module, node, child))

    def _definition(self, each: Kept) -> tuple[str, dict[str, None]]:
        """The text of a definition, and assignments of the aliases that it uses."""
        module, node = each.module, each.module.definitions[each.name]
        edits = _Edits(module)
        aliases: dict[str, None] = {}
        for piece in self._nodes(each):
            self._edit(module, piece, edits)
            for name in names(piece)[0]:
                definition = self._resolve(module, name)
                new_name = None if definition is None else self._names.get(definition)
                if new_name is not None and new_name != name:
                    if name in module.imports and isinstance(module.imports[name], Import) and definition[1] != name:  # type: ignore[index]
                        aliases[f"{name} = {new_name}"] = None
                    else:
                        edits.rename(piece, name, new_name)
        if isinstance(node, ast.ClassDef):
            self._edit_class(each, node, edits)
        begin, end = module.span(node)
        if isinstance(node, ast.Assign) and each.name == "LANGUAGE_HEADS":
            self._edit_heads(node, edits)
        following = next((docstring for at, docstring in documented(module.tree.body) if at is node), None)
        if following is not None:
            end = module.span(following)[1]
        text = edits.applied(begin, end)
        if self._names[module.name, each.name] != each.name:
            text = re.sub(rf"^(class |def |){each.name}\b", rf"\1{self._names[module.name, each.name]}", text, count=1)
        for old, new in _WORDS.items():
            text = re.sub(rf"\b{old}\b", new, text)
        return _ASSERTION.sub("", text), aliases

    def _edit_heads(self, node: ast.Assign, edits: "_Edits") -> None:
        assert isinstance(node.value, ast.Dict)
        pairs = zip(node.value.keys, node.value.values, strict=True)
        chosen = [
            f"{ast.unparse(key)}: {ast.unparse(value)}"
            for key, value in pairs
            if isinstance(key, ast.Constant) and key.value in self._heads
        ]
        edits.replace(node.value, "{" + ", ".join(chosen) + "}")

    def _edit_class(self, each: Kept, node: ast.ClassDef, edits: "_Edits") -> None:
        module = each.module
        loaded = getattr(module.loaded, each.name)
        settings = isinstance(loaded, type) and issubclass(loaded, Config)
        kept = 0
        for statement, docstring in documented(node.body):
            if not each.keeps(module, node, statement):
                edits.remove(statement)
                if docstring is not None:
                    edits.remove(docstring)
                continue
            kept += 1
            if settings and isinstance(statement, ast.AnnAssign) and statement.value is not None:
                if "ClassVar" not in ast.unparse(statement.annotation):
                    edits.cut(module.span(statement.annotation)[1], module.span(statement.value)[1])
                elif ast.unparse(statement.value).startswith("Field"):
                    raise AssertionError(ast.unparse(statement))
            if isinstance(statement, ast.AnnAssign):
                edits.plain_annotation(statement)
                for name in names(statement, annotations=True)[0]:  # configs of parts that this model lacks
                    definition = self._resolve(module, name)
                    if definition is not None and definition not in self._names and settings and name not in _WORDS:
                        edits.rename(statement.annotation, name, "Config")
        assert kept, each.name

    def _edit(self, module: Module, node: ast.AST, edits: "_Edits") -> None:
        """Remove or change statements at any depth."""
        if isinstance(node, ast.stmt) and dropped(node):
            edits.remove(node)
            return
        if isinstance(node, ast.If) and ast.unparse(node.test) == COMPILING:
            (other,) = node.orelse[:1]
            begin, end = module.span(node)[0], module.span(other)[0]
            assert isinstance(other, ast.If), "an elif"
            edits.put(begin, end + len("elif"), "if")
            for each in [*other.body, *other.orelse]:
                self._edit(module, each, edits)
            return
        if isinstance(node, ast.FunctionDef):
            for decorator in node.decorator_list:
                if ast.unparse(decorator).partition("(")[0] in DROPPED_DECORATORS:
                    edits.remove_line(decorator)
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            text = ast.unparse(node.value)
            target = ast.unparse(node.target if isinstance(node, ast.AnnAssign) else node.targets[0])
            if any(text.startswith(f"{name}(") for name in self._absent):
                edits.replace(node, f"{target} = None")
                return
            if text.startswith(APPLYING):
                edits.replace(node, f"{target} = apply_layer")
                return
        for child in ast.iter_child_nodes(node):
            self._edit(module, child, edits)


class _Edits:
    """Edits of a module's text, in bytes."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._changes: dict[tuple[int, int], bytes] = {}

    def put(self, begin: int, end: int, text: str) -> None:
        """Replace the bytes from `begin` to `end`."""
        self._changes[begin, end] = text.encode()

    def cut(self, begin: int, end: int) -> None:
        """Remove the bytes from `begin` to `end`."""
        self.put(begin, end, "")

    def replace(self, node: ast.AST, text: str) -> None:
        """Replace a node."""
        self.put(*self._module.span(node), text)

    def remove(self, node: ast.AST) -> None:
        """Remove a statement, the rest of its lines, and the comments right before it."""
        begin, end = self._module.span(node)
        text = self._module.text
        begin = self._module.line_of(begin)
        while (before := text[self._module.line_of(max(0, begin - 1)) : begin]).strip().startswith(b"#"):
            begin -= len(before)
        line = text.find(b"\n", end)
        self.cut(begin, len(text) if line < 0 else line + 1)

    remove_line = remove

    def rename(self, node: ast.AST, old: str, new: str) -> None:
        """Rename every use of the name `old` within a node."""
        for each in ast.walk(node):
            if isinstance(each, ast.Name) and each.id == old:
                self.replace(each, new)

    def plain_annotation(self, node: ast.AnnAssign) -> None:
        """Reduce an annotation `Annotated[type, ...]` to its type."""
        annotation = node.annotation
        if isinstance(annotation, ast.Subscript) and ast.unparse(annotation.value) == "Annotated":
            assert isinstance(annotation.slice, ast.Tuple)
            self.replace(annotation, ast.unparse(annotation.slice.elts[0]))

    def applied(self, begin: int, end: int) -> str:
        """The text from `begin` to `end` with all edits applied."""
        pieces, at = [], begin
        for (first, last), text in sorted(self._changes.items(), key=lambda item: (item[0][0], -item[0][1])):
            if first < at or last > end + 1:
                continue  # inside a removed or replaced range
            pieces += [self._module.text[at:first], text]
            at = last
        pieces.append(self._module.text[at:end])
        return b"".join(pieces).decode()


def _after(code: str, line: str) -> str:
    """The code with the line `alias = name` put after the definition of that name."""
    name = line.rpartition(" = ")[2]
    begin = re.search(rf"^(?:class|def) {name}\b", code, re.MULTILINE)
    assert begin is not None, line
    end = code.find("\n\n\n", begin.start())
    return f"{code[:end]}\n\n\n{line}{code[end:]}"
