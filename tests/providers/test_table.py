"""The table of step types."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass

import pytest

from gonogo.provider import Provider
from gonogo.providers.noop import Config, run
from gonogo.providers.table import Table, UnknownType, built_in

OUTSIDE = Provider(name="outside", config=Config, run=run)


@dataclass
class FakeEntry:
    """An entry point as an installed package would have it."""

    name: str
    found: object

    def load(self) -> object:
        """Import it, or fail as an import may."""
        if isinstance(self.found, Exception):
            raise self.found
        return self.found


def table(*entries: FakeEntry) -> Table:
    """A table with one built-in type and these outside."""
    modules = {"noop": "gonogo.providers.noop"}
    return Table(modules, aliases={"nothing": "noop"}, planned=frozenset({"ai"}), entries=lambda: entries)


@pytest.mark.parametrize("name", built_in().names())
def test_each_built_in_type_calls_itself_by_its_name(name: str) -> None:
    """The table and the files agree."""
    assert built_in().get(name).name == name


def test_each_alias_is_told_by_its_provider() -> None:
    """The table and the providers agree on other spellings."""
    table = built_in()
    told = {alias: name for name in table.names() for alias in table.get(name).aliases}
    assert told == table.aliases()


def test_an_alias_gives_the_same_provider() -> None:
    """`logger` is `log`."""
    assert built_in().get("logger") is not None
    assert built_in().get("logger").name == "log"


def test_an_unknown_type_suggests_the_nearest() -> None:
    """A slip of the pen gets a suggestion."""
    with pytest.raises(UnknownType) as raised:
        built_in().get("comand")
    assert raised.value.nearest == "command"
    assert str(raised.value) == "unknown step type 'comand'; did you mean 'command'?"


@pytest.mark.parametrize("name", sorted(built_in().planned()))
def test_a_planned_type_is_not_called_unknown(name: str) -> None:
    """A type of a later version says so."""
    with pytest.raises(UnknownType) as raised:
        built_in().get(name)
    assert raised.value.planned
    assert "isn't available in this version" in str(raised.value)


def test_an_installed_package_brings_a_type() -> None:
    """A name that isn't built in is looked for among the entry points."""
    assert table(FakeEntry("outside", OUTSIDE)).get("outside") is OUTSIDE


def test_an_installed_package_may_bring_a_planned_type() -> None:
    """Who has `ai` from elsewhere needn't wait."""
    ai = Provider(name="ai", config=Config, run=run)
    assert table(FakeEntry("ai", ai)).get("ai") is ai


def test_a_package_cannot_replace_a_built_in_type() -> None:
    """Built-in types win, and nothing of the package is loaded."""
    entry = FakeEntry("noop", AssertionError("loaded"))
    assert table(entry).get("noop").summary.startswith("does nothing")
    assert table(entry).outside() == ()


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (ImportError("no such thing"), "ImportError: no such thing"),
        (object(), "expected a gonogo.provider.Provider, got object"),
        (OUTSIDE, "its provider calls itself 'outside'"),
    ],
)
def test_a_broken_package_is_told(found: object, reason: str) -> None:
    """A type that can't be used says why, and is no crash."""
    with pytest.raises(UnknownType) as raised:
        table(FakeEntry("broken", found)).get("broken")
    assert raised.value.reason == reason


def test_no_provider_is_imported_before_it_is_asked_for() -> None:
    """Start-up budget: the table alone loads no type, no HTTP library and no process code."""
    program = "import sys, gonogo.providers.table as t; t.built_in().names(); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    modules = set(loaded.stdout.split())
    assert "gonogo.providers.table" in modules
    assert not {"gonogo.providers.command", "httpx2", "pydantic", "anyio", "subprocess"} & modules


def test_the_http_library_waits_for_the_first_call() -> None:
    """Loading the HTTP types (for validation) doesn't load the library."""
    program = (
        "import sys, gonogo.providers.http_client, gonogo.providers.http; print('httpx2' in sys.modules)"
    )
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert loaded.stdout.strip() == "False"
