"""A pooler between gonogo and its store that breaks what locks depend on is told of before anything is lost for it."""

from __future__ import annotations

import pytest
from tests.engines.world import World
from tests.servers.pooler import pooler_to

from gonogo.app.looking import about_store
from gonogo.app.options import Options
from gonogo.errors import JournalError
from gonogo.journal.postgres.address import Address
from gonogo.journal.postgres.health import check_sessions


@pytest.mark.parametrize("last_first", [True, False])
def test_a_pooler_of_transactions_is_refused_whichever_session_it_takes(
    on_dbos: World, last_first: bool
) -> None:
    """Also where a connection that is alone gets the same session each time."""
    with (
        pooler_to(on_dbos.store, last_first=last_first) as pooler,
        pytest.raises(JournalError, match="no session of their own") as refused,
    ):
        about_store(Options(runs=pooler.url))
    assert "pool_mode = session" in str(refused.value.advice)


def test_a_store_with_sessions_is_well_and_one_that_is_away_is_for_others_to_tell(on_dbos: World) -> None:
    """Who takes work says so in its own words, and waits where it has to."""
    check_sessions(Address(on_dbos.store))
    check_sessions(Address("postgresql://somebody@127.0.0.1:1/runs"))


@pytest.mark.slow
def test_a_worker_doesnt_begin_behind_a_pooler_of_transactions(on_dbos: World) -> None:
    """Others could take its work while it does it."""
    with pooler_to(on_dbos.store, sessions=20, last_first=False) as pooler:
        on_dbos.way = pooler.url
        assert on_dbos.starting().wait(60) == 2
        on_dbos.wait(lambda: any("no session of their own" in line for line in on_dbos.said), "the reason")
