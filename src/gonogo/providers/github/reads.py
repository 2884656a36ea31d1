"""What a github step can read: lists in pages, each entry cut to what steps ask for, and answers that haven't changed
since the step's last run, which cost nothing of GitHub's limit (ETags).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote, urlencode

from gonogo.provider import Call, Context
from gonogo.providers.github.client import PAGE_ITEMS, Client, Reply, Turn, has_next, items_of
from gonogo.providers.github.config import ITEMS, Config
from gonogo.providers.github.place import number_of, person_of

Found = tuple[Any, dict[str, Any]]
"""The output, and what of it belongs into the meta."""
_UNCHANGED = frozenset({304})


async def issues(call: Call, context: Context, client: Client) -> Found:
    """Issues and pull requests of the repository."""
    return await _list(call, context, client, f"{client.path}/issues", _issue)


async def pull(call: Call, context: Context, client: Client) -> Found:
    """One pull request."""
    path = f"{client.path}/pulls/{number_of(call)}"
    reply = await _conditional(call, client, path, {})
    if reply.status in _UNCHANGED:
        return _before(call), _tag(reply, path, {})
    return _pull(reply.data if isinstance(reply.data, dict) else {}), _tag(reply, path, {})


async def files(call: Call, context: Context, client: Client) -> Found:
    """The files that a pull request changes."""
    return await _list(call, context, client, f"{client.path}/pulls/{number_of(call)}/files", _file)


async def comments(call: Call, context: Context, client: Client) -> Found:
    """The comments of a pull request or issue."""
    return await _list(call, context, client, f"{client.path}/issues/{number_of(call)}/comments", _comment)


async def permission(call: Call, context: Context, client: Client) -> Found:
    """What a person may do with the repository: admin, write, read or none."""
    user = person_of(call)
    path = f"{client.path}/collaborators/{quote(user, safe='')}/permission"
    found = (await client.get(path)).data
    data = found if isinstance(found, dict) else {}
    return {"user": user, "permission": data.get("permission"), "role": data.get("role_name")}, {}


async def _list(
    call: Call, context: Context, client: Client, path: str, told: Callable[[Mapping[str, Any]], Any]
) -> Found:
    config: Config = call.config
    query, limit = dict(config.query), config.limit or ITEMS
    first = await _conditional(call, client, path, {**query, "per_page": PAGE_ITEMS})
    if first.status in _UNCHANGED:
        return _before(call), _tag(first, path, query)
    if not has_next(first):
        meta = _tag(first, path, query) if len(items_of(first)) <= limit else {}
        return _cut([told(item) for item in items_of(first)], limit, context, more=False), meta
    found, reply, number = [told(item) for item in items_of(first)], first, 1
    while has_next(reply) and len(found) < limit:
        number += 1
        reply = await client.get(path, {**query, "per_page": PAGE_ITEMS, "page": number})
        found += [told(item) for item in items_of(reply)]
    return _cut(found, limit, context, more=has_next(reply)), {}


def _cut(found: list[Any], limit: int, context: Context, *, more: bool) -> list[Any]:
    if more or len(found) > limit:
        context.log("warn", f"the list is cut after {limit:,} entries; `limit` says how many may come")
    return found[:limit]


async def _conditional(call: Call, client: Client, path: str, query: Mapping[str, Any]) -> Reply:
    """A read that needn't be answered again when nothing has changed since the step's last run here."""
    known = _known_tag(call, _address(path, query))
    headers = {} if known is None else {"If-None-Match": known}

    async def read(turn: Turn) -> Reply:
        allow = _UNCHANGED if known is not None else frozenset()
        return await turn.get(path, query, allow=allow, headers=headers)

    return await client.do(read, "reads")


def _known_tag(call: Call, address: str) -> str | None:
    """The tag of the step's last answer from this address, if its output is still known."""
    metas = call.names.get("outputs_meta")
    meta = metas.get(call.step) if isinstance(metas, Mapping) else None
    known = meta.get("github_etag") if isinstance(meta, Mapping) else None
    fits = isinstance(known, Mapping) and known.get("of") == address and _before(call) is not None
    tag = known.get("tag") if fits else None  # type: ignore[union-attr]
    return tag if isinstance(tag, str) else None


def _before(call: Call) -> Any:
    outputs = call.names.get("outputs")
    return outputs.get(call.step) if isinstance(outputs, Mapping) else None


def _tag(reply: Reply, path: str, query: Mapping[str, Any]) -> dict[str, Any]:
    tag = reply.headers.get("etag", "")
    if not tag or len(tag) > 200 or not (tag.isascii() and tag.isprintable()):
        return {}
    found: dict[str, Any] = {"github_etag": {"tag": tag, "of": _address(path, query)}}
    return {**found, "unchanged": True} if reply.status in _UNCHANGED else found


def _address(path: str, query: Mapping[str, Any]) -> str:
    kept = sorted((name, str(value)) for name, value in query.items() if name != "per_page")
    return f"{path}?{urlencode(kept)}" if kept else path


def _issue(one: Mapping[str, Any]) -> dict[str, Any]:
    found = _pick(one, "number", "title", "body", "state", "created_at", "updated_at")
    return {
        **found,
        **_by(one),
        "labels": _label_names(one),
        "is_pull_request": isinstance(one.get("pull_request"), Mapping),
    }


def _pull(one: Mapping[str, Any]) -> dict[str, Any]:
    found = _pick(
        one, "number", "title", "body", "state", "draft", "merged", "mergeable", "additions", "deletions",
        "changed_files", "created_at", "updated_at",
    )  # fmt: skip
    ends = {end: _pick(one.get(end), "ref", "sha") for end in ("head", "base")}
    return {**found, **_by(one), **ends, "labels": _label_names(one)}


def _file(one: Mapping[str, Any]) -> dict[str, Any]:
    return _pick(one, "filename", "status", "additions", "deletions", "changes", "patch", "previous_filename")


def _comment(one: Mapping[str, Any]) -> dict[str, Any]:
    return {**_pick(one, "id", "body", "created_at", "updated_at"), **_by(one)}


def _by(one: Mapping[str, Any]) -> dict[str, Any]:
    user = one.get("user")
    return {
        "author": user.get("login") if isinstance(user, Mapping) else None,
        "association": one.get("author_association"),
        "url": one.get("html_url"),
    }


def _pick(one: Any, *names: str) -> dict[str, Any]:
    return {name: one[name] for name in names if name in one} if isinstance(one, Mapping) else {}


def _label_names(one: Mapping[str, Any]) -> list[str]:
    labels = one.get("labels")
    given = labels if isinstance(labels, list) else []
    return [
        name for label in given if isinstance(label, Mapping) and isinstance(name := label.get("name"), str)
    ]
