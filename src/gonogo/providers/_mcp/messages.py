"""Messages of JSON-RPC 2.0 as MCP has them: written, read, and what a server asks of us answered. Pure.

A server may ask for a model, for a person or for folders; nobody here gives them, so each such request is refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from gonogo.core.faults import Effect, FaultClass
from gonogo.gate.failures import StepFailed
from gonogo.providers._output import read_json

Message = dict[str, Any]
MESSAGES_MAX = 10_000
"""Of one server in one call: a server that says more is ended (law 2)."""
NOT_SUPPORTED = -32601
_SHOWN_CHARACTERS = 200


class Trouble(StepFailed):
    """There is no result. `fault_kind` is the step's fault; `kind`, of StepFailed, what it is to the gate.

    `effect` None: nothing was done if the tool wasn't called yet, else nobody knows.
    """

    def __init__(
        self,
        fault_kind: str,
        kind: str | None,
        message: str,
        *,
        fault_class: FaultClass = "logical",
        effect: Effect | None = None,
        cause: str | None = None,
        status: int | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(
            kind, message, status=status, code=fault_kind, effect=effect, retry_after_s=retry_after_s
        )
        self.fault_kind = fault_kind
        self.fault_class = fault_class
        self.cause = cause


def too_large(bytes_max: int) -> Trouble:
    """A message that is longer than allowed."""
    message = f"a message of the server is larger than {bytes_max:,} bytes; raise `max_response_bytes` if that's meant"
    return Trouble("mcp.too_large", "bad-request", message)


def written(message: Message) -> bytes:
    """One line of UTF-8. Raises Trouble for a value that JSON hasn't."""
    try:
        text = json.dumps(message, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (ValueError, TypeError, RecursionError) as problem:
        told = f"the arguments can't be sent as JSON: {problem}"
        raise Trouble("mcp.arguments", "bad-request", told, effect="none") from problem
    return text.encode("utf-8", "replace")


def read(data: bytes) -> Message | None:
    """A message; None for what is none."""
    try:
        value = read_json(data.decode("utf-8"))
    except ValueError:
        return None
    return value if isinstance(value, dict) and value.get("jsonrpc") == "2.0" else None


class Inbox:
    """Sorts what a server says. `garbage` is the first line that was no message, for whoever has to find out why."""

    __slots__ = ("_see", "_taken", "garbage")

    def __init__(self, see: Callable[[str], None]) -> None:
        """`see` hears of progress."""
        self._see = see
        self._taken = 0
        self.garbage = ""

    def take(self, data: bytes, wanted: int) -> tuple[Message | None, Message | None]:
        """The answer to the request `wanted`, if this is it; what is to be sent back, if anything. Raises Trouble."""
        self._taken += 1
        if self._taken > MESSAGES_MAX:
            told = f"the server sent more than {MESSAGES_MAX:,} messages"
            raise Trouble("mcp.too_many", "bad-request", told)
        message = read(data)
        if message is None:
            self._keep(data)
            return None, None
        if "method" not in message:
            return (message if _is_answer(message, wanted) else None), None
        if message.get("id") is not None:
            return None, _reply(message)
        self._progress(message)
        return None, None

    def hint(self) -> str:
        """What may explain why nothing was understood."""
        return f"; it wrote what is no message: '{self.garbage}'" if self.garbage else ""

    def _keep(self, data: bytes) -> None:
        text = " ".join(data[: 4 * _SHOWN_CHARACTERS].decode("utf-8", "replace").split())
        if text and not self.garbage:
            self.garbage = "".join(sign for sign in text if sign.isprintable())[:_SHOWN_CHARACTERS]

    def _progress(self, message: Message) -> None:
        told = message.get("params")
        text = told.get("message") if isinstance(told, dict) else None
        if message.get("method") == "notifications/progress" and isinstance(text, str):
            self._see(text[:_SHOWN_CHARACTERS])


def _is_answer(message: Message, wanted: int) -> bool:
    """By its id, which some servers give back as text. An error without one is about the only request there is."""
    given = message.get("id")
    if given is None:
        return "error" in message
    return given is not True and str(given) == str(wanted) and ("result" in message or "error" in message)


def _reply(message: Message) -> Message:
    """A ping is answered; nothing else is done for a server."""
    head = {"jsonrpc": "2.0", "id": message["id"]}
    if message["method"] == "ping":
        return {**head, "result": {}}
    return {**head, "error": {"code": NOT_SUPPORTED, "message": "this client doesn't do that"}}
