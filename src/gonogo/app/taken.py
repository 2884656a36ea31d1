"""What became of an answer: the journal of the run says whether it was taken, and if not, why."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from gonogo.core import approvals
from gonogo.core.decisions import NotTaken
from gonogo.core.events import AnswerGiven
from gonogo.core.fault_decisions import UNTAKEN
from gonogo.core.scope import step_at
from gonogo.core.state import State
from gonogo.errors import JournalError, UsageError
from gonogo.hosts.requests import requests_in
from gonogo.journal.restoring import state_of
from gonogo.journal.store import Runs

HEARD_S = 5.0
"""How long is waited for the process that runs a run to take an answer in; it looks every half second."""
LOOK_S = 0.1
SHOWN = "'gonogo show {run}' shows what became of it"

Refusals = dict[str, UsageError]
"""Why answers weren't taken, by the ids of their requests."""


async def heard(runs: Runs, run_id: str, requests: set[str], refused: Refusals) -> bool:
    """Wait until answers are in the journal, for a while, and look whether they were taken (`refused` has those that
    weren't). One that comes too late for the whole run is withdrawn. False when some aren't there yet.

    Raises JournalError.
    """
    inbox = runs.inbox(run_id)
    for _ in range(round(HEARD_S / LOOK_S)):
        left = requests & {one.request for one in inbox.take()}
        records = list(runs.records(run_id)) if left else []
        left -= requests_in(records)  # the journal has them before the inbox forgets them
        if not left:
            refused.update(_untaken(runs, run_id, requests))
            return True
        state = state_of(records)
        if state.finished is not None and not state.finished.parked:
            for request_id in left:
                inbox.done(request_id)
                refused[request_id] = UsageError(
                    f"run {run_id} ended before the answer came: {state.finished.verdict}",
                    advice=SHOWN.format(run=run_id),
                )
            requests = requests - left
            continue
        await asyncio.sleep(LOOK_S)
    return False


async def heard_within(runs: Runs, asked: Mapping[str, set[str]], refused: Refusals) -> JournalError | None:
    """As `heard`, of several runs; what kept from looking. None and all in the journal, or left for whoever looks."""
    for run_id, requests in asked.items():
        try:
            await heard(runs, run_id, requests, refused)
        except JournalError as problem:
            return problem
    return None


def _untaken(runs: Runs, run_id: str, requests: set[str]) -> Refusals:
    found = {
        record.event.request: decision
        for record in runs.records(run_id)
        if isinstance(record.event, AnswerGiven) and record.event.request in requests
        for decision in record.decisions
        if isinstance(decision, NotTaken)
    }
    state = state_of(runs.records(run_id)) if found else None
    return {request: _refusal(state, decision) for request, decision in found.items() if state is not None}


def _refusal(state: State, decision: NotTaken) -> UsageError:
    message = told_of(state, decision.step, decision.scope, decision.reason)
    return UsageError(message, advice=_advice(state, decision))


def told_of(state: State, step: str, scope: str, reason: str) -> str:
    """Why an answer wasn't taken, with what was said instead where somebody was first."""
    place = step_at(step, scope)
    message = f"{place} took no answer: {UNTAKEN.get(reason, reason)}"
    node = state.nodes.get(step, {}).get(scope)
    meta = (node.result.meta if node.result is not None else node.meta) if node is not None else None
    by = (meta or {}).get("answered_by") if reason == "answered" else None
    return f"{message}, by {by}" if by else message


def _advice(state: State, decision: NotTaken) -> str:
    """What to do about it."""
    node = state.nodes.get(decision.step, {}).get(decision.scope)
    hold = node.hold if node is not None else None
    if decision.reason == "unnamed":
        return "give it with --by NAME"
    if decision.reason == "not_listed" and hold is not None:
        return f"these may answer: {', '.join(hold.approvers)}"
    if decision.reason == "counted" and hold is not None:
        so_far = approvals.count(hold)
        return f"others have to answer, too: approved {so_far.approved} of {so_far.quorum}"
    return SHOWN.format(run=state.run_id)
