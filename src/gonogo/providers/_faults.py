"""Faults of providers, put together in one place so that their kinds and rules stay alike (spec C.6 and D.1)."""

from __future__ import annotations

from gonogo.core.faults import FaultClass
from gonogo.provider import Call, Fault

MESSAGE_CHARACTERS_MAX = 2000


def fault(
    call: Call,
    kind: str,
    rule: str,
    message: str,
    *,
    fault_class: FaultClass = "logical",
    cause: str | None = None,
    retry_after_s: float | None = None,
) -> Fault:
    """A fault of this call; its rule is `<step>/<rule>`; a long message is cut."""
    if len(message) > MESSAGE_CHARACTERS_MAX:
        message = message[:MESSAGE_CHARACTERS_MAX] + "…"
    return Fault(
        kind=kind,
        fault_class=fault_class,
        rule_id=f"{call.step}/{rule}",
        message=message,
        cause=cause,
        retry_after_s=retry_after_s,
    )
