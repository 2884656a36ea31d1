"""From an exception to a signal: what its class, its chain of causes, its status and its headers say.

Any exception will do: attributes are looked for under the names that common clients use, and nothing is read from
messages. What a signal means is in `signals.py`.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec import structs

from gonogo.gate.failures import StepFailed
from gonogo.gate.signals import Signal
from gonogo.gate.telling import hidden
from gonogo.models.retry_after import Wait, retry_after

CHAIN_MAX = 8
MESSAGE_MAX = 500
BODY_MAX = 2000
REQUEST_ID_MAX = 100
_READ_MAX = 64 * 1024
_CODES_MAX = 8

Redact = Callable[[str], str]


def signal_of(error: BaseException, wall_s: float, redact: Redact | None = None) -> Signal:
    """What is seen of an exception; `wall_s` is Unix time now, for waits given as dates. Texts are redacted."""
    clean = redact or _as_it_is
    seen = _said(error) if isinstance(error, StepFailed) else _looked(error, wall_s, clean)
    # Cut only when it is clean: half a secret is none that anybody would find.
    found = seen if redact is None else hidden(seen, redact)
    return structs.replace(
        found,
        message=found.message[:MESSAGE_MAX],
        body_excerpt=found.body_excerpt and found.body_excerpt[:BODY_MAX],
        request_id=found.request_id and found.request_id[:REQUEST_ID_MAX],
    )


def _looked(error: BaseException, wall_s: float, clean: Redact) -> Signal:
    chain = list(_chain(error))
    wish = _first(chain, lambda each: _wish(each, wall_s, clean)) or Wait()
    return Signal(
        types=tuple(dict.fromkeys(base.__name__ for each in chain for base in type(each).__mro__[:-3])),
        status=_first(chain, _status),
        codes=tuple(dict.fromkeys(code for each in chain for code in _codes(each)))[:_CODES_MAX],
        retry_after_s=wish.seconds,
        request_id=_first(chain, _request_id),
        message=f"{type(error).__name__}: {error}",
        body_excerpt=_first(chain, _body),
        note="; ".join(wish.notes) or None,
    )


def _said(error: StepFailed) -> Signal:
    return Signal(
        types=("StepFailed",),
        status=error.status,
        codes=(error.code,) if error.code else (),
        kind=error.kind,
        effect=error.effect,
        retry_after_s=error.retry_after_s,
        request_id=error.request_id,
        message=str(error),
    )


def _as_it_is(text: str) -> str:
    return text


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error and what caused it; of a group, its first."""
    current: BaseException | None = error
    for _ in range(CHAIN_MAX):
        if current is None:
            return
        yield current
        if isinstance(current, BaseExceptionGroup):
            current = current.exceptions[0]
        else:
            current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)


def _first(chain: list[BaseException], look: Callable[[BaseException], Any]) -> Any:
    return next((found for each in chain if (found := look(each)) is not None), None)


def _status(error: BaseException) -> int | None:
    for holder in (error, getattr(error, "response", None)):
        for name in ("status_code", "status", "http_status", "code"):
            value = getattr(holder, name, None)
            if isinstance(value, str) and value.isdecimal() and len(value) == 3:
                value = int(value)
            if isinstance(value, int) and not isinstance(value, bool) and 100 <= value <= 599:
                return value
    return None


def _codes(error: BaseException) -> Iterator[str]:
    """Codes of the system, of the client, and of a vendor's error body."""
    number = getattr(error, "errno", None)
    if isinstance(number, int) and number in errno.errorcode:
        yield errno.errorcode[number]
    for name in ("code", "error_code", "type"):
        value = getattr(error, name, None)
        if isinstance(value, str) and value:
            yield value
    body = getattr(error, "body", None)
    if isinstance(body, Mapping):
        inner = body.get("error")
        for holder in (*_details(inner), inner, body):
            if isinstance(holder, Mapping):
                yield from (
                    value
                    for key in ("reason", "code", "type", "status")
                    if isinstance(value := holder.get(key), str)
                )


def _details(error: Any) -> list[Any]:
    """google.rpc's: they say more than the status beside them."""
    details = error.get("details") if isinstance(error, Mapping) else None
    return details[:20] if isinstance(details, list) else []


def _headers(error: BaseException) -> Mapping[str, str]:
    for holder in (getattr(error, "response", None), error):
        headers = getattr(holder, "headers", None)
        if headers is not None and hasattr(headers, "items"):
            return {str(name).lower(): str(value) for name, value in headers.items()}
    return {}


def _wish(error: BaseException, wall_s: float, clean: Redact) -> Wait | None:
    """When the far side wants to be asked again, or why what it said counts as nothing (B42)."""
    given = getattr(error, "retry_after_s", None)
    if isinstance(given, int | float) and given >= 0:
        return Wait(float(given), "retry_after_s")
    wish = retry_after({name: clean(value) for name, value in _headers(error).items()}, wall_s)
    return None if wish == Wait() else wish


def _request_id(error: BaseException) -> str | None:
    given = getattr(error, "request_id", None)
    if isinstance(given, str) and given:
        return given
    headers = _headers(error)
    return headers.get("x-request-id") or headers.get("request-id") or headers.get("x-github-request-id")


def _body(error: BaseException) -> str | None:
    body = getattr(error, "body", None)
    if isinstance(body, bytes):
        body = body[:_READ_MAX].decode("utf-8", "replace")
    return body[:_READ_MAX] if isinstance(body, str) and body else None
