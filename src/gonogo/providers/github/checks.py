"""Check runs and commit statuses. A check's annotations go out fifty at a time and add up, so each attempt counts first
what has arrived; a check carries the mark of its key as its external id.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from msgspec import Struct

from gonogo.provider import Call, Context
from gonogo.providers.github.client import Client, Turn, made_of
from gonogo.providers.github.config import Config
from gonogo.providers.github.given import annotations_of
from gonogo.providers.github.marks import digest_of
from gonogo.providers.github.place import number_of, sha_of, sha_of_run

BATCH = 50
"""GitHub takes so many annotations in a request."""
DESCRIPTION_CHARACTERS_MAX = 140
CONTEXT = "gonogo"
"""Name of a status that has none."""


class _Wanted(Struct, frozen=True):
    """What a check is to say in the end; `about` is its output without annotations, None when it says nothing."""

    annotations: list[dict[str, Any]]
    about: dict[str, Any] | None
    ends: dict[str, Any]

    def part(self, start: int) -> dict[str, Any]:
        """Output and, with the last annotations, the end: from annotation `start` on."""
        batch = self.annotations[start : start + BATCH]
        output = (
            {}
            if self.about is None
            else {"output": {**self.about, **({"annotations": batch} if batch else {})}}
        )
        return {**output, **(self.ends if start + BATCH >= len(self.annotations) else self._under_way())}

    def _under_way(self) -> dict[str, Any]:
        """Before the last annotations: one that is to end hasn't ended yet."""
        return {"status": "in_progress"} if "conclusion" in self.ends else self.ends


async def create(call: Call, context: Context, client: Client) -> dict[str, Any]:
    """A check run with all its annotations; goes on with the one that was begun under this key, if there is one."""
    config: Config = call.config
    wanted = await _wanted(call, context)
    sha, name = await _commit(call, client), config.name or call.step
    path = f"{client.path}/check-runs"
    begun = {
        "name": name,
        "head_sha": sha,
        "external_id": digest_of(call),
        **_details(config),
        **wanted.part(0),
    }

    async def look_and_write(turn: Turn) -> tuple[dict[str, Any], bool]:
        runs = f"{client.path}/commits/{quote(sha, safe='')}/check-runs"
        async for made in turn.each(runs, {"check_name": name, "filter": "all"}, "check_runs"):
            if made.get("external_id") == begun["external_id"] and isinstance(made.get("id"), int):
                return made, turn.number == 1
        return made_of(await turn.send("POST", path, begun)), False

    made, replayed = await client.do(look_and_write, "mutates")
    made = await _complete(client, f"{path}/{made['id']}", made, 0, wanted)
    return _told(call, made, replayed=replayed)


async def update(call: Call, context: Context, client: Client) -> dict[str, Any]:
    """What a check run says gets replaced, and its annotations more."""
    config: Config = call.config
    wanted = await _wanted(call, context)
    path = f"{client.path}/check-runs/{config.check_id}"
    made = made_of(await client.get(path))
    before = _count(made)
    for start in range(0, max(len(wanted.annotations), 1), BATCH):
        more = {**({"name": config.name} if config.name else {}), **_details(config), **wanted.part(start)}
        made = await _add(client, path, more, before + start, before + start + BATCH)
    return _told(call, made, replayed=False)


async def status(call: Call, context: Context, client: Client) -> dict[str, Any]:
    """A commit's status. The same one again says the same."""
    config: Config = call.config
    sent: dict[str, Any] = {"state": config.state, "context": config.context or CONTEXT}
    if config.description is not None:
        sent["description"] = _short(config.description, context)
    if config.details_url is not None:
        sent["target_url"] = config.details_url
    sha = await _commit(call, client)
    path = f"{client.path}/statuses/{quote(sha, safe='')}"

    async def write(turn: Turn) -> dict[str, Any]:
        return made_of(await turn.send("POST", path, sent))

    made = await client.do(write, "idempotent")
    return {
        "id": made["id"],
        "url": str(made.get("url", "")),
        "state": config.state,
        "context": sent["context"],
        "sha": sha,
        "idempotency_key": call.key,
        "replayed": False,
    }


async def _complete(
    client: Client, path: str, made: dict[str, Any], before: int, wanted: _Wanted
) -> dict[str, Any]:
    """The annotations that haven't arrived yet, and the end."""
    total = len(wanted.annotations)
    start = _count(made) - before
    while start < total:
        made = await _add(
            client, path, wanted.part(start), before + start, before + min(start + BATCH, total)
        )
        start += BATCH
    conclusion = wanted.ends.get("conclusion")
    if conclusion is not None and made.get("conclusion") != conclusion:
        made = await _add(client, path, wanted.ends, before + total, before + total + 1)
    return made


async def _add(client: Client, path: str, part: Mapping[str, Any], before: int, after: int) -> dict[str, Any]:
    """One more batch. An attempt after the first looks whether it has arrived, for a second one would add up."""

    async def look_and_write(turn: Turn) -> dict[str, Any]:
        if turn.number > 1:
            made = made_of(await turn.get(path))
            if before < _count(made) <= after:
                return made
        return made_of(await turn.send("PATCH", path, part))

    return await client.do(look_and_write, "mutates")


async def _wanted(call: Call, context: Context) -> _Wanted:
    config: Config = call.config
    annotations = await annotations_of(call, context)
    ends: dict[str, Any] = {}
    if config.conclusion is not None:
        ends = {"status": "completed", "conclusion": config.conclusion}
    elif config.status is not None:
        ends = {"status": config.status}
    if not annotations and config.title is None and config.summary is None and config.text is None:
        return _Wanted([], None, ends)
    about = {"title": config.title or config.name or call.step, "summary": config.summary or ""}
    return _Wanted(annotations, {**about, **({"text": config.text} if config.text is not None else {})}, ends)


async def _commit(call: Call, client: Client) -> str:
    """The commit of the step, of the event, of the pull request as it is now, of GitHub's own run. Raises Missing."""
    said = sha_of(call)
    if said is not None:
        return said
    pr = call.names.get("pr")
    number = call.config.number or (pr.get("number") if isinstance(pr, Mapping) else None)
    if not isinstance(number, int):
        return sha_of_run(call)
    head = _object((await client.get(f"{client.path}/pulls/{number_of(call)}")).data).get("head")
    sha = head.get("sha") if isinstance(head, Mapping) else None
    return sha if isinstance(sha, str) and sha else sha_of_run(call)


def _details(config: Config) -> dict[str, Any]:
    return {} if config.details_url is None else {"details_url": config.details_url}


def _short(text: str, context: Context) -> str:
    if len(text) <= DESCRIPTION_CHARACTERS_MAX:
        return text
    context.log("warn", f"the description is cut to {DESCRIPTION_CHARACTERS_MAX} characters, GitHub's limit")
    return text[: DESCRIPTION_CHARACTERS_MAX - 1] + "…"


def _count(made: Mapping[str, Any]) -> int:
    output = made.get("output")
    count = output.get("annotations_count") if isinstance(output, Mapping) else None
    return count if isinstance(count, int) and count >= 0 else 0


def _object(data: Any) -> dict[str, Any]:
    return data if isinstance(data, dict) else {}


def _told(call: Call, made: Mapping[str, Any], *, replayed: bool) -> dict[str, Any]:
    return {
        "id": made["id"],
        "url": str(made.get("html_url") or made.get("url") or ""),
        "name": made.get("name"),
        "status": made.get("status"),
        "conclusion": made.get("conclusion"),
        "annotations_count": _count(made),
        "idempotency_key": call.key,
        "replayed": replayed,
    }
