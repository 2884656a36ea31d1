"""Write once: what is made under a key carries a mark of it, and is looked for before it is made (semantics.md 16, 17;
spec G12).

The mark of a comment or review is a hidden last line of its body. Anyone may write such a line, so only those of the
token's own hand count. Two runs that look at the same moment both write: GitHub has no way to make that one act.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

from gonogo.provider import Call
from gonogo.providers.github.client import Turn

_MARK = re.compile(r"(?:\r?\n\r?\n)?(<!-- gonogo:[0-9a-f]{32} -->)\s*\Z")
_NOBODY = frozenset({403, 404})
"""An app's token is no person's: GitHub doesn't say who it is."""


def digest_of(call: Call) -> str:
    """Names what this call makes: the same for calls of a step under one key."""
    return hashlib.sha256(json.dumps([call.step, call.key]).encode()).hexdigest()[:32]


def mark_of(call: Call) -> str:
    """A line that GitHub doesn't show."""
    return f"<!-- gonogo:{digest_of(call)} -->"


def marked(body: str, mark: str) -> str:
    """The body, unchanged, with a mark behind it."""
    return f"{body}\n\n{mark}" if body else mark


def mark_in(body: Any) -> str | None:
    """The mark of a body."""
    found = _MARK.search(body) if isinstance(body, str) else None
    return found[1] if found else None


def without_mark(body: Any) -> str:
    """The body as its author wrote it."""
    return _MARK.sub("", body) if isinstance(body, str) else ""


async def earlier(turn: Turn, path: str, call: Call) -> dict[str, Any] | None:
    """The first of a list's comments or reviews that was made under this call's key. Raises Refused."""
    mark, login, asked = mark_of(call), None, False
    async for made in turn.each(path, {}):
        if mark_in(made.get("body")) != mark:
            continue
        if not asked:
            login, asked = await _who_am_i(turn), True
        if _is_own(made, login) and isinstance(made.get("id"), int):
            found: dict[str, Any] = made
            return found
    return None


async def _who_am_i(turn: Turn) -> str | None:
    """The login of the token; None for an app's."""
    reply = await turn.get("/user", allow=_NOBODY)
    login = reply.data.get("login") if isinstance(reply.data, dict) and reply.status == 200 else None
    return login if isinstance(login, str) else None


def _is_own(made: dict[str, Any], login: str | None) -> bool:
    user = made.get("user")
    if not isinstance(user, dict):
        return False
    return user.get("type") == "Bot" if login is None else user.get("login") == login
