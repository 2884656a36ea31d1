"""Addresses of databases as libraries want them."""

from __future__ import annotations

import re

from gonogo.journal.postgres.address import Address

_SCHEME = re.compile(r"^postgres(?:ql)?://")
_HOSTS = re.compile(r"^postgres(?:ql)?://(?:[^/?#]*@)?([^/?#]*)")


def sqlalchemy_url(address: Address) -> str:
    """For SQLAlchemy with psycopg 3, password included. It reads one host from where libpq reads several; these it
    takes as they are from the end of the URL.
    """
    hosts = _HOSTS.match(address.url)
    if hosts is None or "," not in hosts[1]:
        return _SCHEME.sub("postgresql+psycopg://", address.url)
    from psycopg.conninfo import conninfo_to_dict
    from sqlalchemy import URL

    given = {name: str(value) for name, value in conninfo_to_dict(address.url).items() if value is not None}
    user, password, database = (given.pop(name, None) for name in ("user", "password", "dbname"))
    url = URL.create("postgresql+psycopg", user, password, database=database, query=given)
    return url.render_as_string(hide_password=False)


def named(address: Address, name: str) -> Address:
    """The address with a name that Postgres shows for its connections."""
    return Address(f"{address.url}{'&' if '?' in address.url else '?'}application_name={name}")
