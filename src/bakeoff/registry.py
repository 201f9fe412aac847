"""Registries: the configs of all parts of one sort, each under its own name."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Generic, Literal, TypeVar, get_args, get_origin

from pydantic import BaseModel
from pydantic_core import CoreSchema, PydanticKnownError, core_schema

from bakeoff.errors import UserError

AnyConfig = TypeVar("AnyConfig", bound=BaseModel)


class Registry(Mapping[str, type[AnyConfig]], Generic[AnyConfig]):
    """The configs of parts of one sort by name, in the order in which they were registered.

    `Annotated[MixerBaseConfig, MIXERS]` is the type of a field that holds any of them. It is looked up when a value is
    read, so that parts of plugins are known to fields that were declared before.
    """

    __hash__ = object.__hash__

    before_lookup: ClassVar[Callable[[], None]] = lambda: None
    """Called before a name is looked up: it registers the parts of plugins. Not before, because a plugin's file may
    import whatever it likes, and nothing of Bakeoff is half imported when a name is looked up."""

    def __init__(
        self,
        sort: str,
        base: type[AnyConfig],
        *configs: type[AnyConfig],
        tag: str = "kind",
        default: str | None = None,
    ) -> None:
        """A registry of some configs.

        Args:
            sort: the word for a part of the sort, in the singular.
            base: the class that all configs inherit from.
            configs: the first configs.
            tag: the field with the name, a literal.
            default: the name that is meant by values without one.
        """
        self.sort, self.base, self.tag = sort, base, tag
        self._default = default
        self._configs: dict[str, type[AnyConfig]] = {}
        for config in configs:
            self.register(config)

    def __getitem__(self, name: str) -> type[AnyConfig]:
        Registry.before_lookup()
        return self._configs[name]

    def __iter__(self) -> Iterator[str]:
        Registry.before_lookup()
        return iter(self._configs)

    def __len__(self) -> int:
        return len(self._configs)

    def register(self, config: type[AnyConfig]) -> None:
        """Add a config under the name, or names, that its tag may have.

        Raises:
            UserError: the config is not of this sort, has no name, or has a name that is taken.
        """
        if not issubclass(config, self.base):
            raise UserError(f"{config.__name__}: a {self.sort}'s config inherits from {self.base.__name__}")
        names = self.names(config)
        if not names:
            raise UserError(f'{config.__name__}: give it a name: {self.tag}: Literal["NAME"] = "NAME"')
        for name in names:
            known = self._configs.setdefault(name, config)
            if known is not config:
                raise UserError(
                    f"{config.__name__}: there is a {self.sort} '{name}' already, {known.__module__}.{known.__name__}; "
                    "take another name"
                )

    def names(self, config: type[BaseModel]) -> tuple[str, ...]:
        """The values that a config's tag may have; empty where the tag is no literal."""
        field = config.model_fields.get(self.tag)
        return get_args(field.annotation) if field is not None and get_origin(field.annotation) is Literal else ()

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self._read)

    def _read(self, value: Any) -> AnyConfig:
        """The config that values describe; errors are those of pydantic's unions."""
        if isinstance(value, self.base):
            return value
        if isinstance(value, str):  # a part by its name alone
            value = {self.tag: value}
        if not isinstance(value, Mapping):
            raise PydanticKnownError("model_attributes_type")
        Registry.before_lookup()
        name = value.get(self.tag, self._default)
        if name is None:
            raise PydanticKnownError("union_tag_not_found", {"discriminator": f"'{self.tag}'"})
        config = self._configs.get(name) if isinstance(name, str) else None
        if config is None:
            expected = ", ".join(f"'{known}'" for known in self._configs)
            tag = str(name).encode("utf-8", "backslashreplace").decode()  # of a surrogate pydantic makes no message
            context = {"discriminator": f"'{self.tag}'", "tag": tag, "expected_tags": expected}
            raise PydanticKnownError("union_tag_invalid", context)
        return config.model_validate(value)
