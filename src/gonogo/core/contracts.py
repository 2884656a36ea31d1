"""Contracts and detectors: which expressions to ask for, and what their answers mean (spec C.4, C.6, C.7)."""

from __future__ import annotations

from collections.abc import Sequence

from gonogo.core import decisions as d
from gonogo.core import evidence, stopping
from gonogo.core.commands import Ask
from gonogo.core.dependencies import is_superseded, rest_at
from gonogo.core.events import UNSET, CallDone, CallFailed
from gonogo.core.faults import Fault, Issue, issue_for
from gonogo.core.plan import FailureCondition, Step
from gonogo.core.state import Node
from gonogo.core.turn import Turn
from gonogo.expressions.results import Failure, Result

CRITICAL = frozenset({"external", "internal", "policy"})
NOT_APPLICABLE = "not_applicable"
"""What a contract gives on a call that safe mode withheld."""


def judge(turn: Turn, ask: Ask, result: Result) -> bool | None:
    """Record what a condition meant, with the values it read. None when it could not be evaluated."""
    read = evidence.of(turn.state, ask)
    if isinstance(result, Failure):
        turn.decide(d.Judged(ask.step, ask.scope, ask.construct, ask.expression, None, result.message, read))
        return None
    turn.decide(d.Judged(ask.step, ask.scope, ask.construct, ask.expression, result.value, None, read))
    return bool(result.value)


def error_issue(step: str, scope: str, construct: str, message: str, *, severity: str = "error") -> Issue:
    """The issue that reports a failed evaluation (spec B.6)."""
    text = f"{construct} of {step} could not be evaluated: {message}"
    return Issue("expression/error", text, severity, check_name=step, scope=scope or None, engine=True)  # type: ignore[arg-type]


def check(turn: Turn, node: Node) -> None:
    """After a call: ask for guarantees and detectors, or conclude at once when there are none."""
    part, result = node.site.part, node.result
    if turn.state.safe_mode and part.step.effects == "mutates":
        withheld(turn, node)
        return
    for construct, number in part.checks:
        turn.ask(node.step, node.scope, construct, number)
    if part.checks:
        return
    if type(result) is CallFailed and not result.issues:
        _fail_alone(turn, node, part.step, result.fault)
    elif _says_nothing_but_done(node):
        _pass(turn, node)
    else:
        conclude(turn, node, (), ())


def withheld(turn: Turn, node: Node) -> None:
    """In safe mode a mutating call isn't made, so nothing it would have given can be judged (spec G21)."""
    if type(node.result) is not CallDone:
        conclude(turn, node, (), ())
        return
    for construct, number in node.site.part.checks:
        turn.decide(d.Judged(node.step, node.scope, construct, number, NOT_APPLICABLE))
    _pass(turn, node)


def _pass(turn: Turn, node: Node) -> None:
    turn.decide(d.Ended(node.step, node.scope, "passed", rest=rest(turn, node, "passed")))


def _says_nothing_but_done(node: Node) -> bool:
    """The way of most calls, which needs no gathering of findings."""
    result = node.result
    if type(result) is not CallDone or result.issues or result.schema_errors:
        return False
    return not node.site.part.step.for_each


def _all_is_well(node: Node, asks: Sequence[Ask], answers: Sequence[bool | None]) -> bool:
    return _says_nothing_but_done(node) and all(
        answer is (ask.construct == "guarantee") for ask, answer in zip(asks, answers, strict=True)
    )


def _fail_alone(turn: Turn, node: Node, step: Step, fault: Fault) -> None:
    """A failure with nothing beside it, as most are."""
    outcome = outcome_of(step, fault)
    issue = issue_for(fault, step.name, node.scope, node.attempt)
    turn.decide(d.Ended(node.step, node.scope, outcome, None, fault, (issue,), rest(turn, node, outcome)))


def assumption_failed(turn: Turn, node: Node, ask: Ask) -> None:
    """`assume_mode: fail`: a precondition that doesn't hold is a failure, not a skip (spec G1)."""
    text = f"{turn.graph.expression(ask.expression)} does not hold"
    findings = Findings(turn, node, turn.step(node))
    findings.fail(Fault("contract.assume", "logical", "contract/assume_failed", text))
    end(turn, node, findings)


def conclude(turn: Turn, node: Node, asks: Sequence[Ask], results: Sequence[Result]) -> None:
    """Put together what the call, the schema, the guarantees and the detectors say, and end the execution."""
    step = node.site.part.step
    answers = [judge(turn, ask, result) for ask, result in zip(asks, results, strict=True)]
    if _all_is_well(node, asks, answers):
        _pass(turn, node)
        return
    findings = Findings(turn, node, step)
    findings.add_call()
    for ask, answer, result in zip(asks, answers, results, strict=True):
        findings.add_answer(ask, answer, result)
    of_conditions = [
        answer for ask, answer in zip(asks, answers, strict=True) if ask.construct == "condition"
    ]
    for condition, answer in zip(node.site.part.conditions, of_conditions, strict=False):
        findings.add_condition(condition, answer)
    end(turn, node, findings)


class Findings:
    """Faults and issues of one execution, gathered in the order of the rules."""

    def __init__(self, turn: Turn, node: Node, step: Step) -> None:
        self.turn, self.node, self.step = turn, node, step
        self.faults: list[Fault] = []
        self.issues: list[Issue] = []
        self.halt = False
        self.global_failure: Issue | None = None

    def add_call(self) -> None:
        """What the provider said, its schema errors, and a forEach step without an output."""
        result = self.node.result
        if result is None:
            return
        self.issues += [named(issue, self.step, self.node) for issue in result.issues]
        if isinstance(result, CallFailed):
            self.fail(result.fault)
        elif result.schema_errors:
            self.add_schema(result)
        if isinstance(result, CallDone) and self.step.for_each:
            self.add_list(result)

    def add_list(self, result: CallDone) -> None:
        """A forEach step must give something to fan out over, and not more than the run is ready for (law 2)."""
        allowed = self.turn.graph.plan.limits.max_items
        if result.output is UNSET:
            message = "a forEach step must give a list"
            self.fail(Fault("forEach.undefined", "transient", "forEach/execution_error", message))
        elif isinstance(result.output, list) and len(result.output) > allowed:
            message = f"a list of {len(result.output)} items is more than limits.max_items ({allowed}) allows"
            self.fail(Fault("forEach.too_many", "logical", "forEach/too_many_items", message))

    def add_schema(self, result: CallDone) -> None:
        """The first three schema errors are the message (spec C.7 R2)."""
        message = "; ".join(result.schema_errors[:3])
        self.violate("contract.schema", "contract/schema_validation_failed", message, self.step.schema_mode)

    def violate(self, kind: str, rule_id: str, message: str, mode: str) -> None:
        """A broken contract: a failure, or an issue only where the step says so."""
        fault = Fault(kind, "logical", rule_id, message)
        if mode == "issue":
            self.issues.append(issue_for(fault, self.step.name, self.node.scope, self.node.attempt))
        else:
            self.fail(fault)

    def fail(self, fault: Fault) -> None:
        """A fault and its issue."""
        self.faults.append(fault)
        issue = issue_for(fault, self.step.name, self.node.scope, self.node.attempt)
        if not any(
            known.rule_id == issue.rule_id and known.message == issue.message for known in self.issues
        ):
            self.issues.append(issue)

    def add_answer(self, ask: Ask, answer: bool | None, result: Result) -> None:
        """One guarantee or fail_if. A guarantee that errors is broken; a fail_if that errors isn't triggered (B.6)."""
        source = self.turn.graph.expression(ask.expression)
        message = result.message if isinstance(result, Failure) else ""
        if ask.construct == "guarantee" and not answer:
            text = f"{source} could not be evaluated: {message}"
            if answer is False:
                text = f"{source} does not hold{self.seen_by(ask)}"
            self.violate("contract.guarantee", "contract/guarantee_failed", text, self.step.guarantee_mode)
        elif answer is None:
            self.add_error(ask, message)
        elif ask.construct == "fail_if" and answer:
            text = f"fail_if is true: {source}{self.seen_by(ask)}"
            self.fail(Fault("detector.fail_if", "logical", f"{self.step.name}_fail_if", text))
        elif ask.construct == "global_fail_if" and answer:
            self.global_failure = Issue(
                "global_fail_if",
                f"fail_if of the workflow is true: {source}",
                check_name=self.step.name,
                engine=True,
            )

    def seen_by(self, ask: Ask) -> str:
        """The values an expression read, for the message that reports it."""
        read = evidence.of(self.turn.state, ask)
        told = ", ".join(f"{path} = {evidence.as_text(value)}" for path, value in read.items())
        return f" ({told})" if told else ""

    def add_error(self, ask: Ask, message: str) -> None:
        """A detector that errors is not triggered, but never silently; in a critical step it is a failure (H43)."""
        critical = self.step.criticality in CRITICAL and ask.construct == "fail_if"
        issue = error_issue(self.step.name, self.node.scope, ask.construct, message, severity="warning")
        if critical:
            self.fail(Fault("detector.error", "logical", issue.rule_id, issue.message))
        else:
            self.issues.append(issue)

    def add_condition(self, condition: FailureCondition, answer: bool | None) -> None:
        """Severity error fails the step, less is an issue; a halt stops the run."""
        if not answer:
            return
        message = condition.message or self.turn.graph.expression(condition.expression)
        rule_id = f"{self.step.name}_{condition.name}"
        if condition.halt:
            self.halt = True
            self.fail(
                Fault("detector.halt", "logical", f"{self.step.name}_halt_execution", f"halted: {message}")
            )
        if condition.halt or condition.severity in ("error", "critical"):
            self.fail(Fault("detector.condition", "logical", rule_id, message))
        else:
            self.issues.append(
                Issue(
                    rule_id,
                    message,
                    condition.severity,
                    check_name=self.step.name,
                    scope=self.node.scope or None,
                    engine=True,
                )
            )


def named(issue: Issue, step: Step, node: Node) -> Issue:
    """A provider's issue with its step's name before its rule (spec C.4 stage 8)."""
    rule = issue.rule_id or "unknown"
    return Issue(
        rule_id=rule if rule.startswith(f"{step.name}/") else f"{step.name}/{rule}",
        message=issue.message,
        severity=issue.severity,
        file=issue.file,
        line=issue.line,
        end_line=issue.end_line,
        category=issue.category,
        check_name=step.name,
        group=step.group,
        suggestion=issue.suggestion,
        replacement=issue.replacement,
        scope=node.scope or None,
        attempt=node.attempt,
        engine=issue.engine,
    )


def end(turn: Turn, node: Node, findings: Findings) -> None:
    """The outcome of an execution, and whether routing is still to come."""
    step = findings.step
    fault = findings.faults[0] if findings.faults else None
    outcome = "passed" if fault is None else outcome_of(step, fault)
    turn.decide(
        d.Ended(
            node.step,
            node.scope,
            outcome,
            None,
            fault,
            tuple(findings.issues),
            rest(turn, node, outcome),
        )
    )
    if findings.global_failure is not None:
        turn.decide(d.Flagged(node.step, node.scope, findings.global_failure))
    if findings.halt:
        stopping.stop(turn, "halted", node.step)


def outcome_of(step: Step, fault: Fault) -> str:
    """What a fault makes of an execution."""
    if fault.fault_class == "cancelled":
        return "cancelled"
    return "tolerated" if step.continue_on_failure else "failed"


def rest(turn: Turn, node: Node, outcome: str) -> str:
    """Open while a block of the step has still to speak. A cancelled or stopped step routes nowhere."""
    if node.site.part.routes and has_block(turn, node, outcome):
        return "open"
    return rest_at(turn.state, node.site, node.scope, node)


def has_block(turn: Turn, node: Node, outcome: str) -> bool:
    """on_fail acts per item; on_success of a fan-out acts once, on the whole (semantics.md 8)."""
    step, state = node.site.part.step, turn.state
    if state.stopping and stopping.ends_now(turn, node):
        return False
    if state.last_wave and is_superseded(state, node.step, node.scope):
        return False
    if outcome == "passed":
        return step.on_success is not None and turn.state.aggregate_of(node) is None
    return outcome in ("failed", "tolerated") and step.on_fail is not None


def trigger_of(node: Node) -> str:
    """Which block an outcome speaks to."""
    return "on_success" if node.outcome == "passed" else "on_fail"
