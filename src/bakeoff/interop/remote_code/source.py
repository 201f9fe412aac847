"""The file of code for a model: the definitions of Bakeoff that its config reaches."""

import ast
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from bakeoff.config import Config
from bakeoff.interop.remote_code.emission import Emission, Kept
from bakeoff.interop.remote_code.modules import DROPPED_DECORATORS, Definition, Module, names
from bakeoff.models.mixers.attention import AttentionConfig
from bakeoff.models.mixers.mixer import MixerBaseConfig
from bakeoff.models.model import ModelConfig
from bakeoff.models.stack import StackConfig

ROOM = "bakeoff.interop.remote_code"
PLAIN = f"{ROOM}.plain"
IN_THEIR_PLACE = {
    ("bakeoff.config", "Config"): "Config",
    ("bakeoff.config", "PartConfig"): "Config",
    ("bakeoff.ops.dropout", "dropout"): "dropout",
    ("bakeoff.ops.dropout", "channel_dropout"): "channel_dropout",
    ("bakeoff.ops.attention", "attention"): "attention",
    ("bakeoff.ops.attention_heads", "attention_heads"): "attention_heads",
    ("bakeoff.ops.self_attention", "self_attention_at_once"): "self_attention_at_once",
    ("bakeoff.ops.linear", "linear"): "linear",
    ("bakeoff.ops.linear", "adds_within_products"): "adds_within_products",
    ("bakeoff.ops.rotary", "rotate"): "rotate",
    ("bakeoff.ops.head_norm", "head_norm"): "head_norm",
    ("bakeoff.ops.short_convolution", "short_convolution"): "short_convolution",
    ("bakeoff.ops.gelu", "gelu"): "gelu",
    ("bakeoff.ops.mixed_values", "given_values"): "given_values",
    ("bakeoff.ops.mixed_values", "mixed_values"): "mixed_values",
    ("bakeoff.ops.norm", "norm_beside"): "norm_beside",
    ("bakeoff.ops.norm", "norm_of_sum"): "norm_of_sum",
    ("bakeoff.ops.norm", "norm_alone"): "norm_alone",
    ("bakeoff.ops.norm", "rounded"): "rounded",
    ("bakeoff.ops.norm", "residual"): "residual",
}
"""Replacements in `plain.py` for definitions that need more than torch, or serve training speed alone."""
ALWAYS = frozenset({"forward", "backward"})
"""Methods that torch calls, which are kept without a visible use."""

QualifiedName = tuple[str, str]
"""The name of a module, and a name within the module."""


def model_source(config: ModelConfig, classes: Collection[str], heads: Collection[str], title: str) -> str:
    """The text of `modeling_bakeoff.py`.

    Args:
        config: the model's config.
        classes: names of classes in `base.py`, `language.py`, `writing.py` and `tasks.py` that the file offers.
        heads: kinds of heads that predict tokens.
        title: the docstring of the file.
    """
    parts = configs_of(config)
    return _Collector(config, parts, heads).text(classes, title)


def configs_of(config: Config) -> dict[tuple[str, str, str | None], type[Config]]:
    """The class of each config inside a config, by the outer config's class, the setting's name and the kind of part.

    Settings of the initialisation are left out.
    """
    configs: dict[tuple[str, str, str | None], type[Config]] = {}
    for name in type(config).model_fields:
        value = getattr(config, name)
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, Config) and name != "initial":
                configs[type(config).__name__, name, dict(each).get("kind")] = type(each)
                configs |= configs_of(each)
    return configs


class _Collector:
    """Collects definitions by following the names that they use."""

    def __init__(
        self, config: ModelConfig, parts: Mapping[tuple[str, str, str | None], type[Config]], heads: Collection[str]
    ) -> None:
        self._modules: dict[str, Module] = {}
        self._parts, self._heads = parts, heads
        mixers = [mixer for stack in config.stacks().values() for mixer in _mixers(stack)]
        # It attends with masks, by torch's own functions.
        self._absent = {"document_bounds", "document_attention", "source_bounds", "source_attention"}
        if not any(mixer.shares_distance_bias for mixer in mixers):
            self._absent.add("relative_bias")
        if not any(mixer.shares_distance_vectors for mixer in mixers):
            self._absent.add("distance_table")
        if not any(stack.layer_weights for stack in config.stacks().values()):
            self._absent.add("LayerWeighting")
        if not any(isinstance(mixer, AttentionConfig) and mixer.value_residual for mixer in mixers):
            self._absent.add("value_residual")
        self._attributes: set[str] = set()
        self._reached: dict[QualifiedName, None] = {}

    def text(self, classes: Collection[str], title: str) -> str:
        """The text of the file."""
        homes = {name: module for module in ("base", "language", "writing", "tasks") for name in self._of(module)}
        seeds: list[QualifiedName] = [
            (f"{ROOM}.{homes[name]}", name) for name in ("BakeoffConfig", "BakeoffModel", *classes)
        ]
        seeds += [(PLAIN, "CONFIGS"), ("bakeoff.models.model", "ModelConfig")]
        seeds += [(config.__module__, config.__name__) for config in self._parts.values()]
        before = -1
        while before != (now := len(self._attributes) + len(self._reached)):
            before = now
            self._reached = {}
            self._follow(list(dict.fromkeys(seeds)))
        kept = [Kept(self._module(module), name, self._keeps) for module, name in self._ordered()]
        return Emission(kept, self._absent, self._heads, self._parts, self.resolve).text(title)

    def _of(self, module: str) -> Collection[str]:
        return self._module(f"{ROOM}.{module}").definitions

    def _module(self, name: str) -> Module:
        if name not in self._modules:
            self._modules[name] = Module(name)
        return self._modules[name]

    def _follow(self, waiting: list[QualifiedName]) -> None:
        while waiting:
            definition = waiting.pop()
            if definition in self._reached:
                continue
            self._reached[definition] = None
            module = self._module(definition[0])
            for node in self._pieces(module, module.definitions[definition[1]]):
                used, attributes = names(node)
                self._attributes |= attributes
                waiting += [target for name in sorted(used) if (target := self.resolve(module, name)) is not None]
                annotated, _ = names(node, annotations=True)
                waiting += [target for name in sorted(annotated) if (target := self._alias(module, name)) is not None]

    def resolve(self, module: Module, name: str) -> QualifiedName | None:
        """The module and name that define a name of a module; None: the definition does not go into the file."""
        if name in self._absent:
            return None
        if name in module.definitions:
            definition = (module.name, name)
        elif name in module.imports and module.imports[name].module.split(".")[0] == "bakeoff":
            imported = module.imports[name]
            if imported.name is None or imported.module == "bakeoff.errors":
                return None
            definition = (imported.module, imported.name)
            origin = self._module(imported.module)
            if imported.name not in origin.definitions and imported.name in origin.imports:
                return self.resolve(origin, imported.name)
        else:
            return None
        return (PLAIN, IN_THEIR_PLACE[definition]) if definition in IN_THEIR_PLACE else definition

    def _alias(self, module: Module, name: str) -> QualifiedName | None:
        """The definition of a type alias that an annotation uses; None: the annotation needs no definition."""
        definition = self.resolve(module, name)
        if definition is None:
            return None
        origin = self._module(definition[0])
        node = origin.definitions.get(definition[1])
        plain = isinstance(node, ast.Assign | ast.AnnAssign) and "Annotated[" not in origin.source(node)
        return definition if plain or definition[0] == "bakeoff.row" else None

    def _pieces(self, module: Module, node: Definition) -> list[ast.AST]:
        """The part of a definition that the file keeps."""
        if isinstance(node, ast.Assign) and self._is_table(node):
            assert isinstance(node.value, ast.Dict)
            pairs = zip(node.value.keys, node.value.values, strict=True)
            return [value for key, value in pairs if isinstance(key, ast.Constant) and key.value in self._heads]
        if not isinstance(node, ast.ClassDef):
            return [node]
        settings = is_config(module, node.name)
        kept: list[ast.AST] = [*node.bases, *node.decorator_list]
        for each in node.body:
            if isinstance(each, ast.AnnAssign) and settings and self._keeps(module, node, each):
                kept.append(ast.AnnAssign(each.target, each.annotation, None, 1))
            elif self._keeps(module, node, each):
                kept.append(each)
        return kept

    def _is_table(self, node: ast.Assign) -> bool:
        return ast.unparse(node.targets[0]) == "LANGUAGE_HEADS"

    def _keeps(self, module: Module, owner: ast.ClassDef, node: ast.stmt) -> bool:
        """Whether a statement of a class is needed."""
        if isinstance(node, ast.FunctionDef):
            decorators = {ast.unparse(each).partition("(")[0] for each in node.decorator_list}
            if decorators & (DROPPED_DECORATORS - {"override"}):
                return False
            ours = module.name.startswith(ROOM)
            dunder = node.name.startswith("__")
            return ours or dunder or node.name in ALWAYS or node.name in self._attributes
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "initial":
            return False  # initialisation
        if isinstance(node, ast.AnnAssign) and "ClassVar" in ast.unparse(node.annotation):
            return ast.unparse(node.target) in self._attributes
        return True

    def _ordered(self) -> Sequence[QualifiedName]:
        """The definitions, in an order in which each stands after those that it needs at import."""
        order: list[str] = []
        seen = set[str]()

        def visit(name: str) -> None:
            if name in seen:
                return
            seen.add(name)
            for each in self._module(name).imports.values():
                if each.module.startswith("bakeoff."):
                    visit(each.module)
            order.append(name)

        visit(PLAIN)
        for module, _ in self._reached:
            if module != PLAIN:
                visit(module)
        definitions = []
        for name in order:
            reached = [each for each in self._module(name).definitions if (name, each) in self._reached]
            definitions += [(name, each) for each in reached]
        return definitions


def is_config(module: Module, name: str) -> bool:
    """Whether a definition is a class of configs."""
    loaded: Any = getattr(module.loaded, name, None)
    return isinstance(loaded, type) and issubclass(loaded, Config)


def _mixers(stack: StackConfig) -> list[MixerBaseConfig]:
    return [block.mixer_config for block in stack.distinct()]
