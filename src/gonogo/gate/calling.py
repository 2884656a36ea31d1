"""The face that gives an answer: calls a step's targets, one attempt at a time, until the core lets something out."""

from __future__ import annotations

from typing import Any

from gonogo.gate import commands as c
from gonogo.gate import events as e
from gonogo.gate.admission import Flight
from gonogo.gate.calls import Call
from gonogo.gate.failures import Misconfigured
from gonogo.gate.nesting import AROUND
from gonogo.gate.signals import Classification
from gonogo.gate.step import Answer


async def answer(call: Call) -> Answer:
    """Run a call to its end. Raises GateError, or whatever cancelled it, unchanged."""
    try:
        commands = call.begin()
        while True:
            command = commands[-1]
            if type(command) is c.Admit:
                commands = call.feed(await call.flight(command).admit(command))
            elif type(command) is c.StartAttempt:
                if command.hedge_s is not None:
                    commands = await _hedged(call, command)
                else:
                    event, latency_s, flight, call.value = await once(call, command)
                    commands = await call.ended(event, latency_s, flight)
            elif type(command) is c.Return:
                return call.returned(command)
            elif isinstance(command, c.Raise):
                raise call.raised(command)
            elif isinstance(command, c.StartFallback):
                commands = await _fallback(call, command)
            else:
                commands = call.feed(await call.answer(command))
    except BaseException as error:
        await call.cancelled(broken=broken_in(error))
        raise


def broken_in(error: BaseException) -> str | None:
    """The function of the step that ended a call, if it was one."""
    return error.label if isinstance(error, Misconfigured) and error.phase == "step" else None


async def _hedged(call: Call, command: c.StartAttempt) -> list[c.Command]:
    """One call of a target, perhaps two."""
    from gonogo.gate.hedging import hedged

    return await hedged(call, command, once)


async def once(call: Call, command: c.StartAttempt) -> tuple[e.Answered, float, Flight, Any]:
    """One call of a target, within its time: what came of it, how long it took, its belongings, its answer."""
    clock, invoke = call.gate.clock, call.step.invoke
    assert invoke is not None
    started_at = clock.now()
    attempt, flight = call.attempt(command), call.flights[-1]
    token = AROUND.set(flight)
    failure: Classification | None = None
    wrong: str | None = None
    value: Any = None
    answered = False
    try:
        with clock.limit(command.limit_s):
            value = await invoke(attempt)
            answered = True
    except Exception as error:  # noqa: BLE001 - whatever a step raises is classified; the record has it
        failure = call.failed(error)
    finally:
        AROUND.reset(token)
    at = clock.now()
    if answered:
        failure, wrong = call.judged(value)
        usage = call.usage(value, flight)
    else:
        failure = failure or call.timed_out(command, "timeout-total")
        usage = call.used_by_failure(flight)
    event = e.Answered(at, failure, usage, validation=wrong, response=call.view(value) if answered else None)
    return event, at - started_at, flight, value


async def _fallback(call: Call, command: c.StartFallback) -> list[c.Command]:
    """The fallback, validated like any answer (B18)."""
    event, value = await fallback(call, command)
    call.value = value
    return await call.ended(event, 0.0, None)


async def fallback(call: Call, command: c.StartFallback) -> tuple[e.Answered, Any]:
    """Ask the step's fallback, with the last exception; what came of it and its answer."""
    clock, ask = call.gate.clock, call.step.fallback
    assert ask is not None
    failure: Classification | None = None
    wrong: str | None = None
    value: Any = None
    answered = False
    refusal = await call.pen.ask_fallback() if call.pen is not None else None
    if refusal is not None:
        return e.Answered(clock.now(), call.of_kind("budget-exceeded", refusal), effect="none"), None
    try:
        with clock.limit(command.limit_s):
            value = await ask(call.error)
            answered = True
    except Exception as error:  # noqa: BLE001 - as above
        failure = call.failed(error)
    if answered:
        failure, wrong = call.judged(value)
    elif failure is None:
        failure = call.of_kind("timeout-total", "the fallback took too long")
    usage = call.usage(value) if answered and call.step.usage is not None else e.NOTHING_USED
    return e.Answered(clock.now(), failure, usage, validation=wrong), value
