"""What http_client and http have in common: a body to send, an answer to read, and what a failure means (spec C.6,
E.6). The call itself, through the gate, is in `_calling.py`, which is imported when there is one.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from email.message import Message
from typing import Any

from gonogo.core.faults import FaultClass
from gonogo.models.retry_after import retry_after
from gonogo.provider import Call, Effect, Failed
from gonogo.providers._faults import fault
from gonogo.providers._http import Problem, Response
from gonogo.providers._output import read_json

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
RETRY_AFTER_S_MAX = 24 * 3600.0
"""No far side may ask for a longer wait than a day (law 2: every wait is finite)."""
_TRANSIENT = frozenset({408, 425, 429})
_JSON_TYPE = re.compile(r"application/(?:[\w.+-]+\+)?json", re.IGNORECASE)


def body_bytes(body: Any) -> bytes | None:
    """Text as UTF-8, anything else as JSON."""
    if body is None:
        return None
    text = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "replace")


def headers_for(call: Call, method: str, given: Mapping[str, str], body: bytes | None) -> dict[str, str]:
    """The step's headers, a JSON content type for a body without one, and the call's key on calls that
    change things.
    """
    headers = dict(given)
    lower = {name.lower() for name in headers}
    if body is not None and "content-type" not in lower:
        headers["Content-Type"] = "application/json"
    if method not in SAFE_METHODS and "idempotency-key" not in lower:
        headers["Idempotency-Key"] = call.key
    return headers


def read(response: Response) -> Any:
    """JSON when the content type says so or the text looks like it (and it is), else the text."""
    content_type = response.headers.get("content-type", "")
    text = _decoded(response.body, content_type)
    if _JSON_TYPE.match(content_type) or text.lstrip()[:1] in ("{", "["):
        try:
            return read_json(text)
        except ValueError:
            return text
    return text


def meta_of(response: Response) -> dict[str, Any]:
    """`output_meta` of an exchange."""
    return {"status": response.status, "headers": dict(response.headers)}


def failed(call: Call, rule: str, problem: Problem) -> Failed:
    """There was no usable answer."""
    of_call = fault(call, problem.kind, rule, problem.message, fault_class=problem.fault_class)
    return Failed(of_call, output={"error": True, "message": problem.message}, effect=problem.effect)


def failed_status(call: Call, rule: str, response: Response) -> Failed:
    """The answer says no."""
    message = f"the answer has status {response.status}"
    of_call = fault(
        call,
        "http.status",
        rule,
        message,
        fault_class=_class_of(response.status),
        cause=str(response.status),
        retry_after_s=wait_s(response),
    )
    output = {"error": True, "status": response.status, "message": message, "body": read(response)}
    return Failed(of_call, output=output, meta=meta_of(response), effect=effect_of(response))


def asked_s(response: Response) -> float | None:
    """Seconds from now until it wants to be asked again, as it said."""
    return retry_after(response.headers, time.time()).seconds


def wait_s(response: Response) -> float | None:
    """The same, no longer than a step may wait."""
    seconds = asked_s(response)
    return None if seconds is None else min(seconds, RETRY_AFTER_S_MAX)


def _class_of(status: int) -> FaultClass:
    return "transient" if status in _TRANSIENT or status >= 500 else "logical"


def effect_of(response: Response) -> Effect:
    """A refusal did nothing; so did a 503 that names a time to come back. Else the far side may have begun."""
    if 400 <= response.status < 500 and response.status != 408:
        return "none"
    if response.status == 503 and asked_s(response) is not None:
        return "none"
    return "unknown"


def _decoded(body: bytes, content_type: str) -> str:
    header = Message()
    header["content-type"] = content_type.replace("\r", " ").replace("\n", " ")
    charset = header.get_content_charset() or "utf-8"
    try:
        return body.decode(charset, "replace")
    except (LookupError, ValueError):
        return body.decode("utf-8", "replace")
