"""What went wrong, as data. Nothing ever reads a message to find out (architecture.md 2.5)."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct, field

FaultClass = Literal["transient", "logical", "bug", "cancelled", "lost"]
Severity = Literal["info", "warning", "error", "critical"]
Effect = Literal["none", "done", "unknown"]
"""What a call did outside (semantics.md 16): surely nothing, surely done, or nobody knows."""


class Fault(Struct, frozen=True, omit_defaults=True):
    """One failure: its `kind` (`command.exit`, `http.status`, `contract.guarantee`…) and its class.

    `retry_after_s` is the far side's own wish, seconds from the moment of the fault.
    """

    kind: str
    fault_class: FaultClass = field(name="class")
    rule_id: str
    message: str
    cause: str | None = None
    retry_after_s: float | None = None

    @property
    def transient(self) -> bool:
        """True when another attempt may go better."""
        return self.fault_class == "transient"


def cancellation(step: str, message: str) -> Fault:
    """What a call of a step comes to that was stopped; `message` says when."""
    return Fault("run.cancelled", "cancelled", f"{step}/cancelled", message)


class Issue(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """A finding about the work or about the run; the fields of the report (spec D.1)."""

    rule_id: str
    message: str
    severity: Severity = "error"
    file: str = "system"
    line: int = 0
    end_line: int | None = None
    category: str = "logic"
    check_name: str | None = None
    group: str | None = None
    suggestion: str | None = None
    replacement: str | None = None
    scope: str | None = None
    attempt: int | None = None
    engine: bool = False
    """True for what gonogo itself says (contracts, detectors, budgets): never suppressed by a comment in a file."""


def issue_for(fault: Fault, step: str, scope: str, attempt: int) -> Issue:
    """The issue that reports a fault."""
    return Issue(
        rule_id=fault.rule_id,
        message=fault.message,
        check_name=step,
        scope=scope or None,
        attempt=attempt,
        engine=True,
    )


def as_names(issue: Issue) -> dict[str, Any]:
    """An issue as an expression sees it: a plain mapping with the report's spelling."""
    return {
        "ruleId": issue.rule_id,
        "message": issue.message,
        "severity": issue.severity,
        "file": issue.file,
        "line": issue.line,
        "category": issue.category,
    }
