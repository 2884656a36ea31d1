"""Addresses of databases, as people see them."""

from __future__ import annotations

import pytest

from gonogo.engines.urls import without_password


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://user:secret@host/runs",
        "postgresql://user:se@cr/et@host/runs",
        "postgresql://user:pa?se#cret@host/runs",
        "postgresql://user@host/runs?sslmode=require&password=secret",
        "postgresql://user@host/runs?SSLKEY=secret&sslmode=require",
    ],
)
def test_no_part_of_a_password_is_shown(url: str) -> None:
    """Neither of one that somebody forgot to escape."""
    shown = without_password(url)
    assert not any(part in shown for part in ("se@", "secret", "cret", "et@"))
    assert shown.startswith("postgresql://user")
    assert "host/runs" in shown
