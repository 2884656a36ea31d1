"""Labels of a pull request or issue: put on, taken off. Both come to the same when they are done twice."""

from __future__ import annotations

from functools import partial
from typing import Any
from urllib.parse import quote

from gonogo.provider import Call, Context
from gonogo.providers.github.client import Client, Reply, Turn, items_of, pages
from gonogo.providers.github.given import labels_of
from gonogo.providers.github.place import number_of

_GONE = frozenset({404})


async def add(call: Call, context: Context, client: Client) -> dict[str, Any]:
    """`added`: those asked for that are on it now; `labels`: all that are. None asked for: nothing is called."""
    wanted = await labels_of(call, context)
    if not wanted:
        return _told(call, added=[], labels=[])
    reply = await client.send("POST", _path(call, client), {"labels": wanted})
    labels = _names(reply)
    present = {label.lower() for label in labels}
    return _told(call, added=[label for label in wanted if label.lower() in present], labels=labels)


async def remove(call: Call, context: Context, client: Client) -> dict[str, Any]:
    """`removed`: those asked for that were on it; `labels`: what is left. One that isn't on it is no failure."""
    wanted = {label.lower() for label in await labels_of(call, context)}
    if not wanted:
        return _told(call, removed=[], labels=[])
    path = _path(call, client)
    present = [label async for reply in pages(client.get, path, {}) for label in _names(reply)]
    removed = [label for label in present if label.lower() in wanted]
    for label in removed:
        await client.do(partial(_take_off, path=f"{path}/{quote(label, safe='')}"), "idempotent")
    return _told(call, removed=removed, labels=[label for label in present if label not in removed])


async def _take_off(turn: Turn, *, path: str) -> Reply:
    """The list was there a moment ago, so what isn't found is the label: someone took it off meanwhile."""
    return await turn.send("DELETE", path, allow=_GONE)


def _path(call: Call, client: Client) -> str:
    return f"{client.path}/issues/{number_of(call)}/labels"


def _names(reply: Reply) -> list[str]:
    return [name for label in items_of(reply) if isinstance(name := label.get("name"), str)]


def _told(call: Call, **output: Any) -> dict[str, Any]:
    return {**output, "idempotency_key": call.key, "replayed": False}
