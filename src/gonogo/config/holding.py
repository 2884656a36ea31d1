"""How a step waits for people: its keys as the core has them, and what can't be meant by them.

What a wait does is the core's (`core/holds.py`, `core/reminders.py`).
"""

from __future__ import annotations

from collections.abc import Iterator

from gonogo.config.actions import Actions
from gonogo.config.collect import Collector, shown
from gonogo.config.drafts import Draft
from gonogo.config.order import Order
from gonogo.config.templates import is_template
from gonogo.core.approvals import WORDS, same
from gonogo.core.plan import Handover, Hold, Reminder, Step

ASKS = "human-input"
_KEYS = ("approvers", "quorum", "remind", "escalate")


def hold_of(draft: Draft, actions: Actions) -> Hold | None:
    """The terms of a step's waits; None when the file says none."""
    written = [key for key in _KEYS if draft.written(key)]
    if not written:
        return None
    if draft.provider.name != ASKS:
        for key in written:
            message = f"{key} is for steps that ask a person"
            advice = f"write type: {ASKS}, or remove it"
            actions.notes.add_key("error", "key.needs", message, (*draft.path, key), advice)
        return None
    for key, path in _runs(draft):
        _check_target(draft, key, path, actions)
    engine = draft.engine
    remind, later = engine.remind, engine.escalate
    return Hold(
        approvers=tuple(engine.approvers),
        quorum=engine.quorum,
        remind=Reminder(remind.run, remind.every, remind.max) if remind is not None else None,
        escalate=Handover(later.after, later.run, tuple(later.approvers), later.quorum)
        if later is not None
        else None,
    )


def _runs(draft: Draft) -> Iterator[tuple[str, tuple[str | int, ...]]]:
    remind, later = draft.engine.remind, draft.engine.escalate
    if remind is not None:
        yield remind.run, (*draft.path, "remind", "run")
    if later is not None and later.run is not None:
        yield later.run, (*draft.path, "escalate", "run")


def _check_target(draft: Draft, name: str, path: tuple[str | int, ...], actions: Actions) -> None:
    actions.target_exists(name, path)
    if name == draft.name:
        message = "a step that waits can't be run to tell of it"
        actions.notes.error("hold.own", message, path, "name another step")


def check_holds(order: Order, drafts: dict[str, Draft], notes: Collector) -> None:
    """Report terms that can't be met, and what would be told of a wait only when it is over."""
    for name, draft in drafts.items():
        step = order.steps.get(name)
        if step is None or step.hold is None:
            continue
        _check_order(order, draft, notes)
        _check_quorum(draft, step.hold, notes)
        _check_times(draft, step, step.hold, notes)
        _check_silence(draft, step.hold, notes)


def _check_order(order: Order, draft: Draft, notes: Collector) -> None:
    own = order.index[draft.name]
    for name, path in _runs(draft):
        if name in order.index and name != draft.name and own in _waits_for(order, order.index[name]):
            message = f"{shown(name)} depends on this step, so it can't run before the answer"
            notes.error("hold.order", message, path, f"remove {draft.name} from what it depends on")


def _waits_for(order: Order, position: int) -> set[int]:
    """Everything that a step waits for, directly or not."""
    found: set[int] = set()
    looked_at = [position]
    for each in looked_at:
        new = [parent for parent in order.awaited[each] if parent not in found]
        found.update(new)
        looked_at += new
    return found


def _check_quorum(draft: Draft, hold: Hold, notes: Collector) -> None:
    later = hold.escalate
    if later is not None and later.approvers and not hold.approvers:
        message = "anybody may answer from the start, so nobody comes to it later"
        path = (*draft.path, "escalate", "approvers")
        notes.error("hold.approvers", message, path, "add approvers: to the step, or remove it")
    if (
        later is not None
        and later.quorum is not None
        and (hold.quorum is None or later.quorum >= hold.quorum)
    ):
        message = "escalate makes the quorum smaller, and there is no larger one"
        advice = "add a larger quorum: to the step, or remove it"
        notes.error("hold.quorum", message, (*draft.path, "escalate", "quorum"), advice)
    names = {same(name) for name in (*hold.approvers, *(later.approvers if later else ()))}
    open_ended = not hold.approvers or any(sign in name for name in names for sign in "*?")
    if hold.quorum is not None and not open_ended and hold.quorum > len(names):
        message = f"the quorum is {hold.quorum}, but only {len(names)} may answer"
        notes.error("hold.quorum", message, (*draft.path, "quorum"), "name more approvers, or ask for fewer")


def _check_times(draft: Draft, step: Step, hold: Hold, notes: Collector) -> None:
    if step.timeout_s is None:
        return
    for key, at_s in (
        (("remind", "every"), hold.remind.every_s if hold.remind is not None else None),
        (("escalate", "after"), hold.escalate.after_s if hold.escalate is not None else None),
    ):
        if at_s is not None and at_s >= step.timeout_s:
            message = f"the wait is over after {step.timeout_s:g} s, before this happens"
            notes.warn("key.idle", message, (*draft.path, *key), "make it shorter, or the timeout longer")


def _check_silence(draft: Draft, hold: Hold, notes: Collector) -> None:
    """The default is what an approval comes to when nobody completes it."""
    default = draft.config.get("default")
    if hold.quorum is None or not isinstance(default, str) or is_template(default):
        return
    path = (*draft.path, "default")
    if default not in WORDS:
        message = f"an approval is answered with yes or no, not with {shown(default)}"
        notes.error("hold.default", message, path, 'write default: "no"')
    elif default == "yes":
        message = "when time runs out this is approved although nobody may have said so"
        notes.care("hold.silence", message, path, 'write default: "no", or remove it to fail')
