"""The same words in every format for people: what a step came to, and the verdict with its cause and next move."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Mapping
from types import MappingProxyType

from gonogo.core.scope import step_at
from gonogo.journal.view import ItemView, RunView, StepView, Waiting
from gonogo.report import answers, stages
from gonogo.report.layout import brief, count
from gonogo.report.why import Why

MESSAGE_MAX = 300
PROMPT_MAX = 120
NAMES_MAX = 5
ITEM_MAX = 60
_OF_THE_RUN = MappingProxyType({"budget": "the run's budget", "plan": "the plan"})
"""What isn't a step among the causes of a NO-GO."""


def note(step: StepView, why: Why | None, view: RunView) -> str:
    """What there is to say about a step beside its outcome's symbol; empty for a plain pass."""
    if step.outcome == "skipped":
        return f"skipped: {why.text if why else (step.reason or '').replace('_', ' ')}"
    if step.withheld:
        return ", ".join(part for part in ("not called: safe mode", _items(step)) if part)
    parts = (_what(step, view), answers.told(step.node), _items(step), _repeats(step, view))
    return ", ".join(part for part in parts if part)


def _what(step: StepView, view: RunView) -> str:
    message = brief(step.fault.message, MESSAGE_MAX) if step.fault else ""
    if step.outcome == "passed" and step.set_by is not None:
        return f"output set by {step.set_by or 'a person'}"
    if step.outcome == "failed":
        return message or "failed"
    if step.outcome == "tolerated":
        return "failed, tolerated" + (f": {message}" if message else "")
    if step.outcome == "cancelled":
        return "cancelled" + (f": {message}" if message else "")
    if step.outcome == "in_doubt":
        return f"in doubt: {brief(step.reason or '', MESSAGE_MAX)}"
    return stages.told(step, view) if step.outcome == "waiting" else ""


def _items(step: StepView) -> str:
    """`3 of 5 items passed (#1 src/a.py: message)`, the message only where the step's own isn't the same."""
    if step.items is None:
        return ""
    total = step.items.total
    passed = step.items.passed
    if passed == total:
        return count(total, "item")
    first = next((item for item in step.items.not_passed() if item.fault), None)
    told = f"{passed:,} of {count(total, 'item')} passed"
    if first is None or first.fault is None:
        return told
    same = step.fault is not None and first.fault.message == step.fault.message
    return f"{told} ({item_name(first)}{'' if same else f': {brief(first.fault.message, 120)}'})"


def item_name(item: ItemView) -> str:
    """`#1 src/a.py`: an item by its place and what it is."""
    value = item.value if isinstance(item.value, str) else json.dumps(item.value, ensure_ascii=False)
    return f"#{item.index} {brief(value, ITEM_MAX)}".rstrip()


def _repeats(step: StepView, view: RunView) -> str:
    """Attempts above one for each run or item. An output that a person gave is no run."""
    runs = view.ran(step) if step.runs > 1 else step.runs
    if runs > 1:
        return f"ran {runs} times"
    if step.items is None and step.attempts > 1:
        return count(step.attempts, "attempt")
    return ""


def verdict_word(view: RunView) -> str:
    """How it stands, in the word that lists have for it, too (`journal/standing.py`)."""
    return view.standing


def cause(view: RunView, whys: Mapping[str, Why]) -> str:
    """What follows the verdict's word on its line: why, or what is waited for; empty for a plain GO."""
    word = verdict_word(view)
    if word == "HOLD":
        return _hold(view)
    if word == "NO-GO":
        return _no_go(view, whys)
    return _tolerated(view) if word == "GO" else open_end(word, view.run_id, view.carried, view.aside)


def open_end(word: str, run_id: str, carried: str = "", aside: str | None = None) -> str:
    """What to say of a run that neither ended nor waits: who goes on with it, and how. `carried`: its engine's name."""
    if word == "SET ASIDE":
        return f"{aside}; 'gonogo resume {run_id}' tries again"
    if word == "QUEUED":
        which = f" --engine {carried}" if carried else ""
        return (
            f"no worker has begun with it: see that one runs (gonogo worker{which}); "
            f"if one does and nothing happens, 'gonogo resume {run_id}' hands it over again"
        )
    if word == "INTERRUPTED" and carried:
        return f"nobody has it now; the next worker of {carried} that is free goes on with it"
    return f"go on with: gonogo resume {run_id}" if word == "INTERRUPTED" else "no verdict yet"


def _tolerated(view: RunView) -> str:
    names = [step.name for step in view.steps.values() if step.outcome == "tolerated"]
    return f"although {_listed(names)} failed (tolerated)" if names else ""


def _no_go(view: RunView, whys: Mapping[str, Why]) -> str:
    causes = list(view.because)
    if not causes:
        return ""
    told = _one_cause(view, whys, causes[0])
    # A step that was cancelled says it already.
    others = [_OF_THE_RUN.get(cause, cause) for cause in causes[1:] if cause != "cancelled"]
    return f"because {told}" + (f"; also {_listed(others)}" if others else "")


def _one_cause(view: RunView, whys: Mapping[str, Why], name: str) -> str:
    if name == "cancelled":
        return "it was cancelled"
    if name == "budget":
        return _budget(view)
    step = view.steps.get(name)
    if step is None:
        messages = [issue.message for issue in view.issues]
        return brief(messages[0], MESSAGE_MAX) if messages else f"of {name}"
    if step.outcome in ("failed", "cancelled"):
        message = brief(step.fault.message, MESSAGE_MAX) if step.fault else _items(step)
        return f"{name} {'failed' if step.outcome == 'failed' else 'was cancelled'}" + (
            f": {message}" if message else ""
        )
    if step.outcome == "skipped":
        why = whys.get(name)
        return f"{name} was skipped: {why.text}" if why else f"{name} was skipped"
    own = [issue.message for issue in (*view.issues, *step.issues) if issue.check_name in (name, None)]
    return f"of {name}" + (f": {brief(own[-1], MESSAGE_MAX)}" if own else "")


def _budget(view: RunView) -> str:
    """What ran out, as the issue says it that stopped the run."""
    messages = [issue.message for issue in view.issues if issue.rule_id.startswith("budget/")]
    return messages[-1] if messages else "its budget is used up"


def _hold(view: RunView) -> str:
    waiting = view.waiting
    if not waiting:
        return "waiting"
    first = waiting[0]
    subject = "in doubt" if first.in_doubt else "waiting for a person"
    prompt = brief(first.prompt, MESSAGE_MAX)
    others = [place(one) for one in waiting[1:]]
    told = f"{subject} at {place(first)}" + (f": {prompt}" if prompt else "")
    return told + (f"; also {_listed(others)}" if others else "")


def waits(view: RunView) -> list[str]:
    """A line for each question that has more to say than the verdict's line, which has the first one's prompt: since
    when, until when, how far it is; and, where there are several, its prompt.
    """
    several = len(view.waiting) > 1
    prompts = (brief(one.prompt, PROMPT_MAX) if several else "" for one in view.waiting)
    found = ((place(one), (prompt, about(one))) for one, prompt in zip(view.waiting, prompts, strict=True))
    return [f"{where}: {' · '.join(filter(None, told))}" for where, told in found if any(told)]


def about(waiting: Waiting) -> str:
    """`since 2026-03-01 09:30:00Z, until 2026-03-02 09:30:00Z (then: no), approved 1 of 2 (ana), asked: ana, …`."""
    until = moment(waiting.at(waiting.due_s))
    then = f" (then: {brief(waiting.default, 40)})" if waiting.default is not None else ""
    by = f" ({_listed(list(waiting.approved))})" if waiting.approved else ""
    parts = [
        f"since {moment(waiting.at(waiting.since_s))}" if waiting.since_s is not None else "",
        f"until {until}{then}" if until else "",
        f"approved {len(waiting.approved)} of {waiting.quorum}{by}" if waiting.quorum is not None else "",
        f"was with {brief(waiting.by, 120)}" if waiting.by else "",
        f"reminded {count(waiting.reminders, 'time')}" if waiting.reminders else "",
        f"asked: {_listed(list(waiting.approvers))}" if waiting.approvers else "",
    ]
    return ", ".join(part for part in parts if part)


def moment(at: float | None) -> str:
    """A Unix time for people, the same everywhere: UTC to the second. What no calendar has is empty."""
    try:
        return "" if at is None else time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(at))
    except (OverflowError, OSError, ValueError):
        return ""


def next_move(view: RunView) -> str:
    """The command that goes on from a HOLD; empty otherwise. Of calls in doubt of one step it settles all."""
    if verdict_word(view) != "HOLD" or not view.waiting:
        return ""
    first = view.waiting[0]
    beginning = f"gonogo answer {first.run_id or view.run_id}"
    if not first.in_doubt:
        return f"{beginning} {shlex.quote(place(first))} {shlex.quote(_answers(first))}"
    from gonogo.core.holds import WORDS

    same = [
        one
        for one in view.waiting
        if (one.in_doubt, one.step, one.run_id) == (True, first.step, first.run_id)
    ]
    where, how = (first.step, " --all") if len(same) > 1 else (place(first), "")
    return f"{beginning} {shlex.quote(where)} {shlex.quote('|'.join(WORDS))}{how}"


def _answers(waiting: Waiting) -> str:
    """The words that are understood, where not any text is."""
    if waiting.quorum is not None:
        return "yes|no"
    choices = waiting.details.get("choices") if isinstance(waiting.details, dict) else None
    return "|".join(map(str, choices)) if isinstance(choices, list | tuple) and choices else "TEXT"


def place(waiting: Waiting) -> str:
    """`step` or `step@scope`, as `answer` takes it."""
    return step_at(waiting.step, waiting.scope)


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:NAMES_MAX])
    more = len(names) - NAMES_MAX
    return f"{shown} and {more} more" if more > 0 else shown


def summary(view: RunView) -> str:
    """`3 steps: 2 passed, 1 skipped`."""
    outcomes = [stages.stage(step, view) for step in view.steps.values()]
    order = (
        *("passed", "failed", "tolerated", "skipped", "cancelled"),
        *("running", "waiting", "in_doubt", "cut_off", "not_started"),
    )
    parts = [f"{outcomes.count(one)} {one.replace('_', ' ')}" for one in order if one in outcomes]
    told = f"{count(len(outcomes), 'step')}: {', '.join(parts)}" if parts else "no steps"
    return told + (f", {len(view.excluded)} left out" if view.excluded else "")
