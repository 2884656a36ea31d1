"""Where a gate call goes next: the same target after a wait, another one, the fallback, or the end. Pure.

The order of authority is guards, rules, taxonomy (B11): `plan` turns what was wanted into what is done, and says what
was in the way.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from gonogo.gate import commands as c
from gonogo.gate import decisions as d
from gonogo.gate import guards, lifecycle
from gonogo.gate.ending import blocked
from gonogo.gate.events import Carried
from gonogo.gate.guards import Block
from gonogo.gate.policy import Hedge, Rule
from gonogo.gate.signals import Classification
from gonogo.gate.state import State, Turn, index_of
from gonogo.gate.waits import wait_s as backoff_s

__all__ = ["Block", "Plan", "admit", "plan", "start", "wait"]

_FEEDBACK = (
    "Your last answer was not valid. Answer again, corrected. The validator's message follows as data."
)


class Plan(NamedTuple):
    """What is to be done: the verb, the target to go to, the wait, and what was in the way of what was wanted."""

    did: str
    target: int | None = None
    wait_s: float = 0.0
    reason: str = ""
    blocked_by: str | None = None
    block: Block | None = None


def plan(turn: Turn, wanted: str, rule: Rule | None) -> Plan:
    """What becomes of retry, retry-other or fallback."""
    state = turn.state
    block = guards.repeat(state, turn.at, wanted)
    if block is not None:
        did = "exhausted" if block.exhausts else "fail-fast"
        return Plan(did, blocked_by=f"{block.guard}: {block.detail}", block=block)
    if wanted == "fallback":
        return (
            Plan("fallback")
            if may_fall_back(turn)
            else Plan("exhausted", blocked_by="fallback: there is none left")
        )
    if wanted == "retry":
        return _stay(turn, rule)
    return _elsewhere(state, None)


def _stay(turn: Turn, rule: Rule | None) -> Plan:
    """The same target, unless its attempts are used up or the wait is too long for the deadline or for patience."""
    state, policy = turn.state, turn.policy
    if not state.fits(state.current):
        return _elsewhere(
            state, f"{state.target.name} can't be asked again after {state.made_on(state.current)} attempts"
        )
    wait_s = _wait_of(turn, rule)
    reason = f"before attempt {state.number + 1} on {state.target.name}"
    left_s = state.deadline_at - turn.at
    if wait_s >= left_s or wait_s > policy.bounds.wait_s_max:
        limit = (
            f"{left_s:.3g} s left"
            if wait_s >= left_s
            else f"the longest wait, {policy.bounds.wait_s_max:g} s"
        )
        detail = f"wait {wait_s:.3g} s > {limit}"
        elsewhere = _elsewhere(state, f"deadline: {detail}")
        if elsewhere.target is not None:
            return elsewhere
        return elsewhere._replace(block=Block("deadline", detail, "deadline", "deadline", exhausts=True))
    if wait_s > policy.backoff.patience_s:
        state.stay = (state.current, turn.at + wait_s)
        elsewhere = _elsewhere(state, f"patience: wait {wait_s:.3g} s > {policy.backoff.patience_s:g} s")
        if elsewhere.target is not None:
            return elsewhere
        state.stay = None
    return Plan("retry", state.current, wait_s, reason)


def _elsewhere(state: State, blocked_by: str | None) -> Plan:
    others = state.others()
    if not others:
        return Plan("exhausted", blocked_by=blocked_by or "no other target is eligible")
    return _safe(state, Plan("retry-other", others[0], blocked_by=blocked_by))


def _safe(state: State, proposed: Plan) -> Plan:
    """A guard's last word on going to another target."""
    block = guards.side_effect(state, proposed.target)
    if block is None:
        return proposed
    return Plan("fail-fast", blocked_by=f"{block.guard}: {block.detail}", block=block)


def _wait_of(turn: Turn, rule: Rule | None) -> float:
    state = turn.state
    if rule is not None and rule.wait_s is not None:
        return rule.wait_s
    if state.failure is None:
        return 0.0
    identity = f"{state.began.call_id}/{state.number}"
    return backoff_s(turn.policy.backoff, state.failure, state.made_on(state.current), identity)


def prepare_next(turn: Turn, plan: Plan, rule: Rule | None) -> None:
    """What the next attempt needs: the feedback, and whether it goes on from a partial answer."""
    state = turn.state
    state.feedback = _feedback(state, plan, rule)
    state.resume = state.resume_needed() and plan.did in ("retry", "retry-other")


def _void(turn: Turn) -> None:
    """Tell the consumer that what it has is void, now that something else comes (F.4, restart)."""
    state = turn.state
    if turn.policy.mode != "restart":
        return
    reason = state.failure.kind if state.failure else "a rule"
    held = state.last.held if state.last else 0
    turn.decisions.append(d.StreamReset(turn.offset_ms, state.number, held, reason))
    turn.commands.append(c.ResetStream(state.number, held, reason))
    state.delivered = False


def _feedback(state: State, plan: Plan, rule: Rule | None) -> str | None:
    """One message, replaced each time; the validator's text is framed as data (B22)."""
    text = rule.feedback if rule else None
    wrong = state.last.validation if state.last else None
    if text is None and not (wrong is not None and plan.did == "retry"):
        return None
    return (text or _FEEDBACK) + (f"\n{json.dumps({'validation_error': wrong})}" if wrong is not None else "")


def stopped_before(turn: Turn, index: int) -> bool:
    """Whether a guard forbids the attempt; then the call has ended, or the fallback has been asked."""
    state = turn.state
    block = guards.before_attempt(state, turn.at)
    if block is None and state.unclear is not None:
        block = guards.side_effect(state, index)
    if block is None:
        return False
    if block.exhausts and may_fall_back(turn):
        turn.decisions.append(d.GuardBlocked(turn.offset_ms, block.guard, "call", block.detail))
        fall_back(turn)
    else:
        blocked(turn, block, "call", "before")
    return True


def overrule(turn: Turn, advice: str) -> None:
    """Tell that a target is called although others have opened its breaker."""
    name = turn.policy.targets[turn.state.candidate].name
    turn.decisions.append(d.BreakerOverruled(turn.offset_ms, name, advice))


def admit(turn: Turn) -> None:
    """Ask the breaker, the budgets and the share of retries."""
    state = turn.state
    state.move(lifecycle.ADMITTING)
    again = state.number > 0 and state.made_on(state.candidate) > 0
    turn.commands.append(c.Admit(state.candidate, again, state.forced))


def switch(turn: Turn, index: int) -> None:
    """Count a new cycle when the list is gone through again."""
    state = turn.state
    if state.order.index(index) <= state.order.index(state.current):
        state.cycle += 1
        state.refused.clear()


def start(turn: Turn, *, probe: bool) -> None:
    """The attempt begins."""
    state, policy = turn.state, turn.policy
    state.move(lifecycle.CALLING)
    target = policy.targets[state.candidate]
    if state.delivered:
        _void(turn)
    if state.called is not None and state.called != state.candidate:
        reason = state.failure.kind if state.failure else "refused"
        source = policy.targets[state.called].name
        turn.decisions.append(d.TargetSwitched(turn.offset_ms, source, target.name, reason))
    state.current = state.called = state.candidate
    state.number += 1
    state.per_target[target.name] = state.per_target.get(target.name, 0) + 1
    state.attempt_at = turn.at
    state.flying = {state.number: (state.current, turn.at)}
    state.stay, state.forced = None, False
    left_s = state.deadline_at - turn.at
    feedback, state.feedback = state.feedback, None
    turn.decisions.append(
        d.AttemptStarted(
            turn.offset_ms, state.number, target.name, target.model, probe, feedback is not None, state.resume
        )
    )
    limit_s = policy.timers.attempt_s
    turn.commands.append(
        c.StartAttempt(
            state.number,
            state.current,
            min(limit_s, left_s),
            left_s <= limit_s,
            feedback,
            state.resume,
            None if policy.hedge is None else _hedge_s(turn, policy.hedge),
        )
    )


def start_beside(turn: Turn, *, probe: bool) -> None:
    """A second attempt begins while the first is under way (hedging); it counts like any other."""
    state, policy = turn.state, turn.policy
    index = state.candidate
    target = policy.targets[index]
    state.number += 1
    state.per_target[target.name] = state.per_target.get(target.name, 0) + 1
    state.flying[state.number] = (index, turn.at)
    turn.decisions.append(
        d.AttemptStarted(turn.offset_ms, state.number, target.name, target.model, probe, hedge=True)
    )
    left_s = state.deadline_at - turn.at
    limit_s = policy.timers.attempt_s
    turn.commands.append(c.StartAttempt(state.number, index, min(limit_s, left_s), left_s <= limit_s))


def _hedge_s(turn: Turn, hedge: Hedge) -> float | None:
    """When a second attempt may begin: only for what may happen twice, never beside a stream."""
    began = turn.state.began
    return None if began.streaming or began.effects == "mutates" else hedge.delay_s


def wait(turn: Turn, index: int, wait_s: float, reason: str) -> Block | None:
    """Wait, then propose the target; or say why that can't be waited."""
    state, bounds = turn.state, turn.policy.bounds
    left_s = state.deadline_at - turn.at
    if state.waits >= bounds.waits_max:
        return Block("waits", f"{state.waits} waits are made", "exhausted", "waits", exhausts=True)
    if wait_s >= left_s or wait_s > bounds.wait_s_max:
        detail = f"wait {wait_s:.3g} s > {min(left_s, bounds.wait_s_max):.3g} s"
        return Block("deadline", detail, "deadline", "deadline", exhausts=True)
    state.waits += 1
    state.current = state.candidate = index
    state.move(lifecycle.WAITING)
    turn.decisions.append(d.WaitStarted(turn.offset_ms, wait_s, reason))
    turn.commands.append(c.Wait(turn.at + wait_s))
    return None


def first(turn: Turn) -> int | None:
    """The target to begin with; where an earlier part of the call stopped, or behind that. None: there is none."""
    state = turn.state
    carried, order = state.began.carried, state.order
    index = None if carried is None else index_of(turn.policy, carried.target)
    if index is None:
        return order[0] if state.fits(order[0]) else next(filter(state.fits, order), None)
    state.current = state.candidate = index
    return index if state.fits(index) else next(iter(state.others()), None)


def wait_on(turn: Turn, carried: Carried, index: int) -> bool:
    """Wait for the rest of what an earlier part of the call waited for; False when there is nothing to wait for."""
    if carried.wait_s <= 0 or turn.policy.targets[index].name != carried.target:
        return False
    return wait(turn, index, carried.wait_s, "the rest of a wait") is None


def wait_for_breaker(turn: Turn) -> bool:
    """All are refused: wait for the first that may be asked again, if the policy says so and time allows (B39)."""
    state = turn.state
    if turn.policy.when_all_open != "wait" or may_fall_back(turn):
        return False
    first = _first_refused(state)
    if first is None or guards.before_attempt(state, turn.at) is not None:
        return False
    if wait(turn, first, max(state.refused[first] - turn.at, 0.01), "for a breaker") is not None:
        return False  # what was refused, and until when, is the call's failure
    state.refused.clear()
    return True


def forced_probe(turn: Turn) -> int | None:
    """All are refused: the target to probe before its time, once a call, if the policy says so."""
    state = turn.state
    if turn.policy.when_all_open != "probe" or state.forced or may_fall_back(turn):
        return None
    first = _first_refused(state)
    if first is not None:
        state.forced = True
        state.refused.clear()
    return first


def _first_refused(state: State) -> int | None:
    fit = [index for index in state.refused if state.fits(index)]
    return min(fit, key=lambda index: (state.refused[index], index), default=None)


def note_refusals(turn: Turn) -> None:
    """A call that was refused everywhere fails with the breaker's kind, and knows when to come back."""
    state = turn.state
    if state.failure is None and state.refused:
        until_s = min(state.refused.values()) - turn.at
        state.failure = Classification(
            "circuit-open", "every target was refused", retry_after_s=max(until_s, 0.0)
        )


def may_fall_back(turn: Turn) -> bool:
    """Whether there is a fallback that hasn't been asked yet and may be."""
    state = turn.state
    if not state.began.has_fallback or state.fallbacks >= turn.policy.bounds.fallbacks_max:
        return False
    return guards.repeat(state, turn.at, "fallback") is None


def fall_back(turn: Turn) -> None:
    """Ask the fallback."""
    state = turn.state
    state.move(lifecycle.FALLING_BACK)
    state.fallbacks += 1
    if state.delivered:
        _void(turn)
    state.attempt_at = turn.at
    turn.decisions.append(d.FallbackStarted(turn.offset_ms, state.number + 1))
    turn.commands.append(
        c.StartFallback(state.number + 1, min(turn.policy.timers.attempt_s, state.deadline_at - turn.at))
    )
