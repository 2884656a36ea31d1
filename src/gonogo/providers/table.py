"""Which step types there are. Each module is imported when its type is first asked for, so that a run pays
only for what it uses. What a type does is told by its own file; a step's other keys are config's business.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Protocol

from msgspec import Struct

from gonogo.provider import Provider

ENTRY_POINT_GROUP = "gonogo.providers"

_MODULES = MappingProxyType(
    {
        "command": "gonogo.providers.command",
        "script": "gonogo.providers.script",
        "memory": "gonogo.providers.memory",
        "log": "gonogo.providers.log",
        "noop": "gonogo.providers.noop",
        "http_client": "gonogo.providers.http_client",
        "http": "gonogo.providers.http",
        "human-input": "gonogo.providers.human_input",
        "workflow": "gonogo.providers.workflow",
        "ai": "gonogo.providers.ai",
        "github": "gonogo.providers.github",
        "mcp": "gonogo.providers.mcp",
    }
)
_ALIASES = MappingProxyType({"logger": "log", "human_input": "human-input"})
_PLANNED = frozenset({"claude-code", "git-checkout", "http_input", "a2a", "utcp"})


class UnknownType(KeyError):  # noqa: N818 - the name says what happened
    """No step type of this name can be used. `planned`: the name is known, but this version has no such type.

    `nearest` is what the author may have meant; `reason` tells why a type from outside couldn't be loaded.
    """

    def __init__(
        self, name: str, *, nearest: str | None = None, planned: bool = False, reason: str | None = None
    ) -> None:
        super().__init__(name)
        self.name = name
        self.nearest = nearest
        self.planned = planned
        self.reason = reason

    def __str__(self) -> str:
        if self.planned:
            return f"step type '{self.name}' isn't available in this version"
        if self.reason is not None:
            return f"step type '{self.name}' can't be loaded: {self.reason}"
        hint = f"; did you mean '{self.nearest}'?" if self.nearest else ""
        return f"unknown step type '{self.name}'{hint}"


class Entry(Protocol):
    """What the table needs of an entry point."""

    @property
    def name(self) -> str:
        """The step type it brings."""
        ...

    def load(self) -> object:
        """Import it."""
        ...


def installed_entries() -> Iterable[Entry]:
    """The step types that installed packages bring."""
    from importlib.metadata import entry_points

    return entry_points(group=ENTRY_POINT_GROUP)


class Table:
    """Step types by name. Those `given` win over built-in ones, and these over packages outside, which are asked
    only for other names.
    """

    def __init__(
        self,
        modules: Mapping[str, str],
        *,
        aliases: Mapping[str, str],
        planned: frozenset[str],
        entries: Callable[[], Iterable[Entry]],
        given: Iterable[Provider] = (),
    ) -> None:
        self._modules = dict(modules)
        self._aliases = dict(aliases)
        self._planned = planned
        self._entries = entries
        self._loaded = {provider.name: provider for provider in given}
        self._given = tuple(self._loaded)
        for provider in self._loaded.values():
            self._aliases |= dict.fromkeys(provider.aliases, provider.name)
            self._aliases.pop(provider.name, None)

    def get(self, name: str) -> Provider:
        """The provider of a type or alias. Raises `UnknownType`."""
        name = self._aliases.get(name, name)
        provider = self._loaded.get(name)
        if provider is None:
            provider = self._loaded[name] = self._load(name)
        return provider

    def names(self) -> tuple[str, ...]:
        """The built-in types, in the order of the documentation, then what was given beside them."""
        return tuple(dict.fromkeys((*self._modules, *self._given)))

    def aliases(self) -> Mapping[str, str]:
        """Other spellings, each with the type it stands for."""
        return dict(self._aliases)

    def planned(self) -> frozenset[str]:
        """Names that a later version will know."""
        return self._planned

    def outside(self) -> tuple[str, ...]:
        """The types that installed packages bring (this looks through all installed packages)."""
        return tuple(sorted({entry.name for entry in self._entries()} - set(self.names())))

    def _load(self, name: str) -> Provider:
        module = self._modules.get(name)
        if module is not None:
            return _checked(name, import_module(module).PROVIDER)
        outside = {entry.name: entry for entry in self._entries()}
        if name in outside:
            return _from_outside(name, outside[name])
        raise UnknownType(name, nearest=self._nearest(name, outside), planned=name in self._planned)

    def _nearest(self, name: str, outside: Iterable[str]) -> str | None:
        from difflib import get_close_matches

        known = sorted({*self.names(), *self._aliases, *outside})
        return next(iter(get_close_matches(name, known, n=1)), None)


def built_in(given: Iterable[Provider] = ()) -> Table:
    """The table a program uses: the built-in types and those of installed packages, after those it gives itself."""
    return Table(_MODULES, aliases=_ALIASES, planned=_PLANNED, entries=installed_entries, given=given)


def _from_outside(name: str, entry: Entry) -> Provider:
    try:
        found = entry.load()
    except Exception as problem:  # a stranger's import may raise anything
        raise UnknownType(name, reason=f"{type(problem).__name__}: {problem}") from problem
    return _checked(name, found)


def _checked(name: str, found: object) -> Provider:
    if not isinstance(found, Provider):
        raise UnknownType(name, reason=f"expected a gonogo.provider.Provider, got {type(found).__name__}")
    if found.name != name:
        raise UnknownType(name, reason=f"its provider calls itself '{found.name}'")
    if not _is_struct(found.config):
        raise UnknownType(name, reason="expected its config to be a msgspec.Struct")
    return found


def _is_struct(config: object) -> bool:
    return isinstance(config, type) and issubclass(config, Struct)
