"""Plugins: parts of recipes and kinds of tasks from files that the user names and from installed packages.

A recipe never names a file with code, so that a stranger's recipe can run no code but what the user has chosen.
"""

import hashlib
import importlib.util
import os
import sys
import traceback
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from pydantic import BaseModel

from bakeoff.errors import UserError, path_of
from bakeoff.formats.registry import FORMATS
from bakeoff.models.blocks import BLOCKS
from bakeoff.models.mixers import MIXERS
from bakeoff.objectives.registry import OBJECTIVES
from bakeoff.optimization.optimizers import OPTIMIZERS
from bakeoff.optimization.schedules import SCHEDULES
from bakeoff.registry import Registry

GROUP = "bakeoff.parts"
"""The group of entry points by which an installed package says where its parts are: modules, or single configs."""
VARIABLE = "BAKEOFF_PLUGINS"
"""The environment variable with the plugins' files, separated like paths in PATH. Worker processes on this machine
inherit it."""
REGISTRIES: list[Registry[Any]] = [MIXERS, BLOCKS, OBJECTIVES, FORMATS, OPTIMIZERS, SCHEDULES]
"""The registries of parts; that of kinds of tasks, which are further down, is added by `take_parts`."""


class Plugin(NamedTuple):
    """The origin of parts: a file, or an entry point."""

    name: str
    """The name of the file, or of the entry point."""
    digest: str
    """The beginning of the file's SHA-256, or the package's version; it tells plugins of one name apart."""
    configs: tuple[type[BaseModel], ...]
    """The configs of the plugin's parts."""


_LOADED: dict[str, Plugin] = {}
"""Plugins by file or entry point."""

_loading = False
"""Whether `load_plugins` is at work."""


def plugin_files() -> list[Path]:
    """The files of the plugins of this process, which its worker processes read, too."""
    return [Path(path) for path in filter(None, os.environ.get(VARIABLE, "").split(os.pathsep))]


def take_parts(registry: Registry[Any]) -> None:
    """Let plugins have parts for one more registry."""
    REGISTRIES.append(registry)


def load_plugin(path: str | Path) -> Plugin:
    """Register the parts of a file: every config in it that inherits from a registry's base and has a name.

    The file is executed, once. Processes that are started after that load it, too.

    Args:
        path: a Python file.

    Raises:
        UserError: there is no such file, its code fails, it has no parts, or the name of a part is taken.
    """
    file = path_of(path, "file").resolve()
    where = str(file)
    if where not in _LOADED:
        if not file.is_file():
            raise UserError(f"--plugin {path}: there is no such file")
        content = file.read_bytes()
        name = f"bakeoff_plugin_{file.stem}_{hashlib.sha256(where.encode()).hexdigest()[:8]}"
        spec = importlib.util.spec_from_file_location(name, file)
        if spec is None or spec.loader is None:
            raise UserError(f"--plugin {path}: give a Python file, NAME.py")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module  # where pickle looks for what a process is given
        try:
            spec.loader.exec_module(module)
            configs = _register(module, f"--plugin {path}")
        except BaseException as error:
            del sys.modules[name]
            if isinstance(error, UserError) or not isinstance(error, Exception):
                raise
            raise UserError(f"--plugin {path}: {_what_failed(error, where)}") from None
        _LOADED[where] = Plugin(file.name, f"sha256 {hashlib.sha256(content).hexdigest()[:16]}", configs)
        known = os.environ.get(VARIABLE, "").split(os.pathsep)
        if where not in known:
            os.environ[VARIABLE] = os.pathsep.join([*filter(None, known), where])
    return _LOADED[where]


def load_plugins() -> None:
    """Register the parts of installed packages and of the files that `BAKEOFF_PLUGINS` names, once.

    Raises:
        UserError: see `load_plugin`.
    """
    global _loading
    if not _loading:  # a plugin may look names up while it is loaded
        _loading = True
        try:
            _load_all()
        finally:
            _loading = False


@cache
def _load_all() -> None:
    """Register the parts of installed packages and of the files that `BAKEOFF_PLUGINS` names.

    Raises:
        UserError: see `load_plugin`.
    """
    for entry in metadata.entry_points(group=GROUP):
        where = f"plugin {entry.name} ({entry.value})"
        try:
            plugin = entry.load()
            configs = _register(plugin, where)
        except UserError:
            raise
        except Exception as error:
            raise UserError(f"{where}: {_what_failed(error, '')}") from None
        version = entry.dist.version if entry.dist is not None else "unknown"
        _LOADED[where] = Plugin(entry.name, version, configs)
    for path in filter(None, os.environ.get(VARIABLE, "").split(os.pathsep)):
        load_plugin(path)


def loaded_plugins() -> list[Plugin]:
    """The loaded plugins, in the order in which they were loaded."""
    load_plugins()
    return list(_LOADED.values())


def plugin_versions() -> dict[str, str]:
    """The loaded plugins for the versions of a run: `plugin NAME` and the plugin's digest."""
    return {f"plugin {plugin.name}": plugin.digest for plugin in loaded_plugins()}


def require_plugins(path: Path, versions: Mapping[str, Any]) -> None:
    """Refuse a run whose plugins have not been loaded.

    Args:
        path: the run's directory.
        versions: the versions with which it was trained.

    Raises:
        UserError: it was trained with another plugin; the message names it.
    """
    loaded = plugin_versions()
    if missing := [name for name in versions if name.startswith("plugin ") and name not in loaded]:
        raise UserError(
            f"{path}: this run was trained with the {' and the '.join(missing)}; give --plugin FILE, or install the "
            "package"
        ) from None


def registry_of(config: type[BaseModel]) -> Registry[Any] | None:
    """The registry of a config, by its base class; None: the config is no part's."""
    return next((each for each in REGISTRIES if issubclass(config, each.base)), None)


def _register(plugin: ModuleType | type[BaseModel], where: str) -> tuple[type[BaseModel], ...]:
    """Register a config, or all configs that were written in a module or package."""
    configs = [plugin] if isinstance(plugin, type) else list(_configs(plugin))
    for config in configs:
        registry = registry_of(config)
        if registry is None:
            raise UserError(f"{where}: {config.__name__} is no part's config; it inherits from none of {_bases()}")
        try:
            registry.register(config)
        except UserError as error:
            raise UserError(f"{where}: {error}") from None
    if not configs:
        raise UserError(f'{where}: there is no part: no config with a name, kind: Literal["NAME"], from {_bases()}')
    return tuple(configs)


def _configs(module: ModuleType) -> Iterator[type[BaseModel]]:
    """The configs with a name that were written in a module, or below it where it is a package."""
    for value in vars(module).values():
        if isinstance(value, type) and f"{value.__module__}.".startswith(f"{module.__name__}."):
            registry = registry_of(value)
            if registry is not None and registry.names(value):
                yield value


def _bases() -> str:
    *first, last = (registry.base.__name__ for registry in REGISTRIES)
    return f"{', '.join(first)} or {last}"


def _what_failed(error: Exception, file: str) -> str:
    """An error of a plugin's code in one line, with the line of its file."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    line = error.lineno if isinstance(error, SyntaxError) else lines[-1] if lines else None
    text = " ".join((error.msg if isinstance(error, SyntaxError) else str(error)).split())
    return f"{f'line {line}: ' if line else ''}{type(error).__name__}: {text}"


Registry.before_lookup = load_plugins
