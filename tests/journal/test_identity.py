"""The name by which a store is told from others."""

from __future__ import annotations

import pytest
from tests.servers.postgres import Server

from gonogo.journal.postgres.address import Address
from gonogo.journal.postgres.identity import identity_of


@pytest.mark.slow
def test_a_store_whose_name_was_lost_is_named_anew(database: str, postgres: Server) -> None:
    """As where only the tables were restored; then it keeps that name."""
    first = identity_of(Address(database))
    postgres.execute("delete from gonogo_store", database)
    assert first != (second := identity_of(Address(database)))
    assert second == identity_of(Address(database))
