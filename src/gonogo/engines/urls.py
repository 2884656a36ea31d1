"""Addresses of databases as libraries want them."""

from __future__ import annotations

import re

from gonogo.journal.postgres.address import Address


def sqlalchemy_url(address: Address) -> str:
    """For SQLAlchemy with psycopg 3, password included."""
    return re.sub(r"^postgres(?:ql)?://", "postgresql+psycopg://", address.url)


def named(address: Address, name: str) -> Address:
    """The address with a name that Postgres shows for its connections."""
    return Address(f"{address.url}{'&' if '?' in address.url else '?'}application_name={name}")
