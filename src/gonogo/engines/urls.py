"""Addresses of databases: told without their password, and as libraries want them."""

from __future__ import annotations

import re

_USER = re.compile(r"(://[^/?#@:]*):.*@", re.DOTALL)
"""Up to the last @: who writes a password without escaping it may have one in there."""
_PARAMETER = re.compile(r"([?&](?:password|passfile|sslpassword|sslkey)=)[^&]*", re.IGNORECASE)


def without_password(url: str) -> str:
    """The address as a person may see it."""
    return _PARAMETER.sub(r"\1…", _USER.sub(r"\1:…@", url))


def sqlalchemy_url(url: str) -> str:
    """The address for SQLAlchemy with psycopg 3."""
    return re.sub(r"^postgres(?:ql)?(?:\+\w+)?://", "postgresql+psycopg://", url)


def named(url: str, name: str) -> str:
    """The address with a name that Postgres shows for its connections."""
    return f"{url}{'&' if '?' in url else '?'}application_name={name}"
