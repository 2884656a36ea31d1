"""For all tests: properties are tried without a clock, and in CI with the same examples each time; a real Postgres."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from tests.servers.postgres import Server

settings.register_profile("house", deadline=None, derandomize="CI" in os.environ, print_blob=True)
settings.load_profile("house")

TESTS_OF_THE_EXCHANGE = frozenset({"test__http.py", "test_outbound.py"})


@pytest.fixture(autouse=True, scope="session")
def signals_are_heard() -> Iterator[None]:
    """Under nohup, and in the background of a script, some are ignored, by each command that is started, too: rightly,
    but not what is tried here.
    """
    usual = {
        signal.SIGHUP: signal.SIG_DFL,
        signal.SIGINT: signal.default_int_handler,
        signal.SIGQUIT: signal.SIG_DFL,
    }
    before = {each: signal.getsignal(each) for each in usual}
    for each, handler in usual.items():
        if before[each] is signal.SIG_IGN:
            signal.signal(each, handler)
    yield
    for each, handler in before.items():
        signal.signal(each, handler)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A Postgres for all tests of this process that want one; who restarts it leaves it running."""
    from tests.servers.postgres import running

    with running() as server:
        yield server


@pytest.fixture
def database(postgres: Server) -> Iterator[str]:
    """The URL of a part of a database (a schema) that is this test's own."""
    url = postgres.new_schema()
    yield url
    postgres.drop_schema(url)


@pytest.fixture(autouse=True)
def nothing_goes_around_the_gate(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every exchange is part of an attempt of a gate, in all tests but those of the exchange itself (F2, X24)."""
    if request.path.name in TESTS_OF_THE_EXCHANGE:
        return
    from gonogo.gate.nesting import AROUND
    from gonogo.providers import _http

    follow = _http._follow

    async def within_a_gate(sent: Any, *more: Any) -> Any:
        assert AROUND.get() is not None, f"{sent.method} {sent.url} goes around the gate"
        return await follow(sent, *more)

    monkeypatch.setattr(_http, "_follow", within_a_gate)
