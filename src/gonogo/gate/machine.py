"""`advance`: one event in, decisions and the next command out. Pure: the same events give the same call (B10).

Handlers and rules are here; where a call goes next (which target, when, or not at all) is in `going.py`,
how it ends in `ending.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gonogo.errors import Bug
from gonogo.gate import commands as c
from gonogo.gate import decisions as d
from gonogo.gate import ending, going, guards, lifecycle
from gonogo.gate import events as e
from gonogo.gate.evidence import decided
from gonogo.gate.ordering import reasons
from gonogo.gate.policy import Policy, Rule
from gonogo.gate.rules import Entry, Found, is_data, look
from gonogo.gate.scopes import scope_of
from gonogo.gate.signals import Classification
from gonogo.gate.state import State, Turn, begin
from gonogo.gate.taxonomy import row_of
from gonogo.gate.verdicts import by_taxonomy


def advance(policy: Policy, state: State, event: e.AnyEvent) -> Turn:
    """Decide what an event means. Changes `state` in place. Raises Bug when the gate breaks a rule of its own."""
    turn = Turn(policy, state, event.at, state.offset_ms(event.at))
    _HANDLERS[type(event)](turn, event)
    return turn


# --- events


def _began(turn: Turn, event: e.Began) -> None:
    state = turn.state
    if len(state.order) > 1 and turn.policy.order != "configured":
        turn.decisions.append(reasons(turn.policy, event, state.order, turn.offset_ms))
    if state.out:
        turn.decisions += [
            d.TargetSkipped(turn.offset_ms, name, reason) for name, reason in state.out.items()
        ]
    first = going.first(turn)
    if first is None and len(event.unfit) == len(turn.policy.targets):
        ending.fail(turn, "misconfigured", "no-target", "before", "no target can serve this call")
    elif first is None and going.may_fall_back(turn):
        going.fall_back(turn)
    elif first is None:
        ending.fail(turn, "exhausted", "attempts", "before", "an earlier part of the call has used them up")
    elif event.carried is None or not going.wait_on(turn, event.carried, first):
        propose(turn, first)


def propose(turn: Turn, index: int) -> None:
    """A target is to be called next, if guards, `before` rules, breaker and budgets let it."""
    state, rules = turn.state, turn.policy.before
    if state.status != lifecycle.BEFORE:
        state.move(lifecycle.BEFORE)
    state.candidate = index
    if going.stopped_before(turn, index):
        return
    if not rules:
        going.admit(turn)
    else:
        _judge(turn, "before", rules)


def _judge(turn: Turn, phase: str, rules: tuple[Rule, ...], start: int = 0, only: str | None = None) -> None:
    scope = scope_of(turn.state, turn.at, phase)
    turn.state.judging = phase
    if is_data(rules):
        _decided(turn, look(rules, scope, start=start, only=only))
    else:
        turn.commands.append(c.Judge(phase, scope, start, only))


def _judged(turn: Turn, event: e.Judged) -> None:
    chosen = next((entry.index for entry in event.entries if entry.result == "matched"), None)
    error = next((entry.error for entry in event.entries if entry.error), None)
    _decided(turn, Found(chosen, event.entries, error))


def _decided(turn: Turn, found: Found) -> None:
    phase, turn.state.judging = turn.state.judging, ""
    if found.error is not None and turn.policy.strict:
        decided(turn, phase, found.entries, None, "fail-fast", "fail-fast")
        ending.fail(turn, "misconfigured", "rule-error", phase, found.error)
    elif phase == "before":
        _before(turn, found)
    elif phase == "after":
        _after(turn, found.chosen, found.entries)
    else:
        _second_look(turn, found)


def _before(turn: Turn, found: Found) -> None:
    state = turn.state
    rule = None if found.chosen is None else turn.policy.before[found.chosen]
    verb = rule.then if rule else "continue"
    decided(turn, "before", found.entries, found.chosen, verb, verb)
    if rule is None or verb == "continue":
        going.admit(turn)
    elif verb == "skip-target":
        name = turn.policy.targets[state.candidate].name
        state.out[name] = rule.named
        turn.decisions.append(d.TargetSkipped(turn.offset_ms, name, f"rule: {rule.named}"))
        state.current = state.candidate
        _move_on(turn, f"{name} is skipped")
    elif verb == "wait":
        _pause(turn, rule)
    else:
        ending.fail(turn, "pre-check", rule.kind or "pre-check-failed", "before", rule.named)


def _pause(turn: Turn, rule: Rule) -> None:
    """A rule before the attempt wants to wait; what can't be waited ends the call."""
    wait_s = 1.0 if rule.wait_s is None else rule.wait_s
    refusal = going.wait(turn, turn.state.candidate, wait_s, rule.named)
    if refusal is not None:
        ending.blocked(turn, refusal, "wait", "before")


def _admitted(turn: Turn, event: e.Admitted) -> None:
    if event.change is not None:
        _breaker(turn, event.change)
    if event.advice:
        going.overrule(turn, event.advice)
    if turn.state.status == lifecycle.CALLING:
        going.start_beside(turn, probe=event.probe)
    else:
        going.start(turn, probe=event.probe)


def _slow(turn: Turn, event: e.Slow) -> None:
    """Ask another target beside the slow one, if there is one and every bound allows it."""
    others = turn.state.others()
    if others and guards.before_attempt(turn.state, turn.at) is None:
        turn.state.candidate = others[0]
        turn.commands.append(c.Admit(others[0], True))


def _refused(turn: Turn, event: e.Refused) -> None:
    state = turn.state
    _breaker(turn, event.change)
    name = turn.policy.targets[state.candidate].name
    if state.status == lifecycle.CALLING:
        turn.decisions.append(d.TargetSkipped(turn.offset_ms, name, f"not beside another: {event.reason}"))
    elif event.by == "budget":
        block = going.Block("budget", event.reason, "budget", "budget-exceeded")
        ending.blocked(turn, block, "call", "admission")
    elif event.by == "deadline":
        block = going.Block("deadline", event.reason, "deadline", "deadline", exhausts=True)
        ending.blocked(turn, block, "call", "admission")
    elif event.by == "ratio":
        turn.decisions.append(d.GuardBlocked(turn.offset_ms, "share of retries", "call", event.reason))
        state.current = state.candidate
        if others := state.others():
            going.switch(turn, others[0])
            propose(turn, others[0])
        else:
            _exhausted(turn, "budget", "budget-exceeded")
    else:
        until_ms = state.offset_ms(event.until_at)
        turn.decisions.append(d.TargetSkipped(turn.offset_ms, name, event.reason, until_ms))
        state.refused[state.candidate] = event.until_at
        state.current = state.candidate
        _move_on(turn, f"{name} is {event.reason}")


def _waited(turn: Turn, event: e.Waited) -> None:
    turn.decisions.append(d.WaitEnded(turn.offset_ms))
    propose(turn, turn.state.candidate)


def _answered(turn: Turn, event: e.Answered) -> None:
    state = turn.state
    if state.status == lifecycle.FALLING_BACK:
        _fallback_answered(turn, event)
        return
    _absorb(turn, event)
    if event.lost:
        _lose(turn, event.lost)
    elif state.flying:
        state.current = state.called = next(iter(state.flying.values()))[0]
        return  # another one is under way
    state.move(lifecycle.AFTER)
    rules = turn.policy.after
    if rules:
        _judge(turn, "after", rules)
    elif event.failure is None:
        ending.finish(turn)
    else:
        _after(turn, None, ())


def _absorb(turn: Turn, event: e.Answered) -> None:
    """Facts of an attempt into the state and the record."""
    state, failure = turn.state, event.failure
    number = event.attempt or state.number
    state.current, state.attempt_at = state.flying.pop(number)
    target = turn.policy.targets[state.current]
    state.last, state.failure = event, failure
    if event.usage is not e.NOTHING_USED:
        state.used = state.used + event.usage
    state.delivered = state.delivered or event.delivered
    ended = d.AttemptEnded(
        turn.offset_ms, number, target.name, turn.at - state.attempt_at, failure, event.usage, event.effect,
        event.delivered, event.held, event.chunks, event.digest, event.validation, event.integrity,
    )  # fmt: skip
    state.attempts.append(ended)
    turn.decisions.append(ended)
    if event.change is not None:
        _breaker(turn, event.change)
    if state.began.effects == "mutates" and event.effect != "none":
        state.unclear = state.current  # a good answer, too: a rule may want it again
    if failure is None:
        return
    seen = (state.current, failure.kind)
    state.kinds[seen] = state.kinds.get(seen, 0) + 1
    if event.validation is not None:
        state.validation_errors.append(event.validation)
    if row_of(failure.kind).counting == "isolate":
        state.out[target.name] = failure.kind


def _lose(turn: Turn, number: int) -> None:
    """The slower of two was cut off; it is an attempt all the same (F26)."""
    state = turn.state
    index, began_at = state.flying.pop(number)
    failure = Classification("cancelled", "the other attempt has answered")
    name = turn.policy.targets[index].name
    ended = d.AttemptEnded(turn.offset_ms, number, name, turn.at - began_at, failure, effect="unknown")
    state.attempts.append(ended)
    turn.decisions.append(ended)


def _after(turn: Turn, chosen: int | None, entries: tuple[Entry, ...]) -> None:
    """What rules or the taxonomy want; then what guards, targets and time make of it."""
    state = turn.state
    rule = None if chosen is None else turn.policy.after[chosen]
    state.spoke = len(turn.policy.after) if chosen is None else chosen
    wanted = rule.then if rule else by_taxonomy(state)
    if wanted in ("ok", "fail-fast"):
        decided(turn, "after", entries, chosen, wanted, wanted)
        ending.settle(turn, wanted, rule)
        return
    plan = going.plan(turn, wanted, rule)
    decided(turn, "after", entries, chosen, wanted, plan.did, plan.blocked_by, plan.target)
    if plan.block is not None and not plan.block.exhausts:
        ending.blocked(turn, plan.block, wanted, "after")
        return
    if plan.block is not None:
        turn.decisions.append(d.GuardBlocked(turn.offset_ms, plan.block.guard, wanted, plan.block.detail))
    going.prepare_next(turn, plan, rule)
    if plan.did == "retry":
        _again(turn, plan)
    elif plan.target is not None:
        going.switch(turn, plan.target)
        propose(turn, plan.target)
    elif plan.did == "fallback":
        going.fall_back(turn)
    else:
        category, kind = (plan.block.category, plan.block.kind) if plan.block else ("", "")
        _exhausted(turn, category, "" if category == "exhausted" else kind)


def _again(turn: Turn, plan: going.Plan) -> None:
    if plan.wait_s <= 0:
        propose(turn, turn.state.current)
        return
    refusal = going.wait(turn, turn.state.current, plan.wait_s, plan.reason)
    if refusal is not None:
        ending.blocked(turn, refusal, "retry", "after")


def _move_on(turn: Turn, reason: str) -> None:
    """The target at hand won't do: the next one, or back to one that is worth waiting for, or none."""
    state = turn.state
    others = state.others()
    if others:
        going.switch(turn, others[0])
        propose(turn, others[0])
    elif state.stay is not None:
        index, until_at = state.stay
        state.stay = None
        refusal = going.wait(turn, index, until_at - turn.at, reason)
        if refusal is not None:
            _exhausted(turn, refusal.category, refusal.kind)
    elif not going.wait_for_breaker(turn):
        if state.forced and state.candidate in state.refused:
            state.forced = False
            _exhausted(turn)
        elif (probe := going.forced_probe(turn)) is not None:
            propose(turn, probe)
        else:
            _exhausted(turn)


def _exhausted(turn: Turn, category: str = "", kind: str = "") -> None:
    """No way on: the fallback once, if its rules say so or there are none; else the end (B17)."""
    going.note_refusals(turn)
    if not going.may_fall_back(turn):
        ending.give_up(turn, category, kind)
    elif all(rule.then != "fallback" for rule in turn.policy.after):
        going.fall_back(turn)
    else:
        start = turn.state.spoke + 1 if turn.state.called is not None else 0
        _judge(turn, "fallback", turn.policy.after, start, "fallback")


def _second_look(turn: Turn, found: Found) -> None:
    did = "fail-fast" if found.chosen is None else "fallback"
    decided(turn, "exhausted", found.entries, found.chosen, did, did)
    if found.chosen is None:
        ending.give_up(turn, "", "")
    else:
        going.fall_back(turn)


def _fallback_answered(turn: Turn, event: e.Answered) -> None:
    """Its failure ends the call; no target is called because of it (B18)."""
    state = turn.state
    state.used = state.used + event.usage
    latency_s = turn.at - state.attempt_at
    turn.decisions.append(
        d.FallbackEnded(turn.offset_ms, state.number + 1, latency_s, event.failure, event.usage)
    )
    ended = d.AttemptEnded(
        turn.offset_ms, state.number + 1, "fallback", latency_s, event.failure, event.usage, event.effect,
        event.delivered, event.held, event.chunks, event.digest, event.validation,
    )  # fmt: skip
    state.attempts.append(ended)
    if event.failure is None:
        state.last, state.failure = event, None
        ending.finish(turn, "fallback")
    else:
        ending.fail(turn, "exhausted", event.failure.kind, "fallback", "the fallback failed, too")


def _cancelled(turn: Turn, event: e.Cancelled) -> None:
    state = turn.state
    _breaker(turn, event.change)
    state.used = state.used + event.usage
    ending.break_off(turn, event)
    if event.broken is None:
        ending.end(turn, "cancelled", kind="cancelled")
    else:
        ending.end(turn, "failed", kind="step-error", category="misconfigured")


def _breaker(turn: Turn, change: Any) -> None:
    if change is not None:
        turn.decisions.append(d.BreakerChanged(turn.offset_ms, change))


_HANDLERS: dict[type, Callable[[Turn, Any], None]] = {
    e.Began: _began,
    e.Judged: _judged,
    e.Admitted: _admitted,
    e.Refused: _refused,
    e.Answered: _answered,
    e.Slow: _slow,
    e.Waited: _waited,
    e.Cancelled: _cancelled,
}

__all__ = ["Bug", "advance", "begin"]
