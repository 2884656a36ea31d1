"""Comments and reviews of a pull request or issue. What is made carries the mark of its key and is made once."""

from __future__ import annotations

from typing import Any

import msgspec

from gonogo.provider import Call, Context
from gonogo.providers.github.client import Client, Turn, made_of
from gonogo.providers.github.config import Config
from gonogo.providers.github.given import Unfit, body_of
from gonogo.providers.github.marks import earlier, mark_in, mark_of, marked, without_mark
from gonogo.providers.github.place import number_of, sha_of


async def create(call: Call, context: Context, client: Client) -> dict[str, Any]:
    """A comment; the one that was made under this key, if there is one."""
    body = await body_of(call, context)
    if not body.strip():
        raise Unfit("empty", "there is nothing to say; give a `body`")
    path = f"{client.path}/issues/{number_of(call)}/comments"
    made, replayed = await _once(call, client, path, {"body": marked(body, mark_of(call))})
    return _told(call, context, made, body, replayed=replayed)


async def update(call: Call, context: Context, client: Client) -> dict[str, Any]:
    """A comment gets another text. The mark that it carries stays on it."""
    config: Config = call.config
    body = await body_of(call, context)
    if not body.strip():
        raise Unfit("empty", "there is nothing to say; give a `body`")
    path = f"{client.path}/issues/comments/{config.comment_id}"
    mark = mark_in(made_of(await client.get(path)).get("body"))
    sent = {"body": body if mark is None else marked(body, mark)}
    made = await client.do(lambda turn: _change(turn, path, sent), "idempotent")
    return _told(call, context, made, body, replayed=False)


async def review(call: Call, context: Context, client: Client) -> dict[str, Any]:
    """A review with its remarks; the one that was made under this key, if there is one."""
    config: Config = call.config
    body = await body_of(call, context)
    event = config.event or "COMMENT"
    if not body.strip() and not config.comments and event != "APPROVE":
        raise Unfit("empty", "there is nothing to say; give a `body` or `comments`")
    sent: dict[str, Any] = {"event": event, "body": marked(body, mark_of(call))}
    if config.comments:
        sent["comments"] = msgspec.to_builtins(config.comments)
    sha = sha_of(call)
    if sha is not None:
        sent["commit_id"] = sha
    path = f"{client.path}/pulls/{number_of(call)}/reviews"
    made, replayed = await _once(call, client, path, sent)
    told = _told(call, context, made, body, replayed=replayed)
    return {**told, "state": str(made.get("state", ""))}


async def _once(call: Call, client: Client, path: str, sent: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """What is made, and whether it was there before this call. Each attempt looks before it writes."""

    async def look_and_write(turn: Turn) -> tuple[dict[str, Any], bool]:
        there = await earlier(turn, path, call)
        if there is not None:
            # What an attempt before has made, although its answer got lost, isn't from before.
            return there, turn.number == 1
        return made_of(await turn.send("POST", path, sent)), False

    return await client.do(look_and_write, "mutates")


def _told(call: Call, context: Context, made: dict[str, Any], body: str, *, replayed: bool) -> dict[str, Any]:
    there = without_mark(made.get("body")) if replayed else body
    if there.strip() != body.strip():
        context.log("warn", "what was written under this key before says something else; it is left as it is")
    return {
        "id": made["id"],
        "url": str(made.get("html_url", "")),
        "body": there,
        "idempotency_key": call.key,
        "replayed": replayed,
    }


async def _change(turn: Turn, path: str, sent: dict[str, Any]) -> dict[str, Any]:
    return made_of(await turn.send("PATCH", path, sent))
