"""Addresses of databases as libraries want them."""

from __future__ import annotations

from gonogo.journal.postgres.address import Address


def named(address: Address, name: str) -> Address:
    """The address with a name that Postgres shows for its connections: libpq takes the last of two."""
    return address.with_parameter("application_name", name)
