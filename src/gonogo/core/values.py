"""The names an expression or a template sees: one superset scope for every construct (spec B.2 D, B.3 D).

Everything is computed when it is read, from the state as it is at that moment. Values are handed out as they are stored
and must not be changed by the reader; the sandbox and the templates work on copies or frozen mirrors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from msgspec import UNSET

from gonogo.core.dependencies import any_failed, resolve
from gonogo.core.events import CallDone
from gonogo.core.fanout_items import items_in_order
from gonogo.core.faults import Issue, as_names
from gonogo.core.memory import show
from gonogo.core.reruns import item_of
from gonogo.core.scope import index_of, outward, parents, prefix
from gonogo.core.state import Node, State

_NONE: Mapping[str, Any] = MappingProxyType({})


def names_for(state: State, step: str, scope: str) -> Names:
    """The names as a step in a scope sees them now."""
    return Names(state, step, scope)


class Names(Mapping[str, Any]):
    """Name → value, computed at first reading."""

    def __init__(self, state: State, step: str, scope: str) -> None:
        self.state = state
        self.step = state.graph.steps[step]
        self.scope = scope
        self.node = state.node(step, scope)
        self._values: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._values:
            self._values[name] = COMPUTE[name](self)
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(COMPUTE)

    def __len__(self) -> int:
        return len(COMPUTE)


class Outputs(Mapping[str, Any]):
    """Step → something of the node that a reader in `scope` means by it; `own` are names of the reader's, which win."""

    def __init__(
        self, names: Names, value: Callable[[Names, str], Any], own: Mapping[str, Any] = _NONE
    ) -> None:
        self._names = names
        self._value = value
        self._own = own

    def __getitem__(self, step: str) -> Any:
        if step in self._own:
            return self._own[step]
        if step not in self._names.state.nodes:
            raise KeyError(step)
        return self._value(self._names, step)

    def __iter__(self) -> Iterator[str]:
        found = [name for name, scopes in self._names.state.nodes.items() if scopes]
        return iter([*found, *(name for name in self._own if name not in found)])

    def __len__(self) -> int:
        return sum(1 for _ in self)


def output_of(node: Node | None, state: State) -> Any:
    """A step's output as others see it: a fan-out's is the list of its items' outputs."""
    if node is None:
        return None
    if node.fan is not None:
        return [output_of(item, state) for item in items_in_order(state, node, node.fan)]
    if node.output is not UNSET:
        return node.output
    found = [as_names(issue) for issue in node.issues if not issue.engine]
    return {"issues": found} if found else None


def _visible(names: Names, step: str) -> Any:
    """Inside an item `outputs[parent]` is the item; anything else is the nearest scope's output (spec C.13 R2, R9)."""
    around = parents(names.scope)
    if step in around:
        return item_of(names.state, prefix(names.scope, around.index(step) + 1))
    return output_of(resolve(names.state, step, names.scope), names.state)


def _own_names(names: Names) -> Mapping[str, Any]:
    """What the step's on_init gave under names of its own; in an item also what it gave for the whole fan-out."""
    if not (names.step.on_init or names.step.on_init_js is not None):
        return _NONE
    found: dict[str, Any] = {}
    for scope in reversed(outward(names.scope)):
        node = names.state.node(names.step.name, scope)
        if node is not None and node.init is not None:
            found.update(node.init.results or _NONE)
    return found


def _raw(names: Names, step: str) -> Any:
    node = resolve(names.state, step, names.scope)
    return node.items if node is not None and node.items is not None else output_of(node, names.state)


def _meta(names: Names, step: str) -> Any:
    """Outcome and circumstances of a step, beside its output: raw and tolerated outcomes can be told apart here."""
    node = resolve(names.state, step, names.scope)
    if node is None:
        return None
    return {
        **(node.meta or {}),
        "outcome": node.outcome,
        "failed": node.outcome in ("failed", "tolerated"),
        "tolerated": node.outcome == "tolerated",
        "reason": node.reason,
        "attempts": node.attempts,
        "runs": node.execution,
        "ts": names.state.started_at_ms + round((node.ended_at or 0) * 1000),
        "fault": fault_of(node),
        **_item_meta(names.state, node),
    }


def _item_meta(state: State, node: Node) -> dict[str, Any]:
    if node.fan is None:
        return {}
    return {"item_status": [item.outcome if item else None for item in items_in_order(state, node, node.fan)]}


def fault_of(node: Node | None) -> Any:
    """The fault of a step's latest run as a plain mapping."""
    if node is None:
        return None
    fault = node.fault
    if fault is None and node.result is not None and not isinstance(node.result, CallDone):
        fault = node.result.fault
    if fault is None:
        return None
    return {"kind": fault.kind, "class": fault.fault_class, "ruleId": fault.rule_id, "message": fault.message}


def _history(names: Names, step: str) -> Any:
    return [_null(output) for _, output in names.state.history.get(step, ())]


def _wave(names: Names, step: str) -> Any:
    history = names.state.history.get(step, ())
    latest = max((wave for wave, _ in history), default=0)
    return [_null(output) for wave, output in history if wave == latest]


def _null(value: Any) -> Any:
    return None if value is UNSET else value


def _output(names: Names) -> Any:
    """The step's own result, unchanged; an object without `issues` of its own shows its findings there (B.4 D)."""
    node = names.node
    if node is None:
        return None
    output = _null(node.result.output if node.result is not None else node.output)
    if node.fan is not None:
        output = output_of(node, names.state)
    found = _own_issues(node)
    if found and isinstance(output, dict) and "issues" not in output:
        return {**output, "issues": [as_names(issue) for issue in found]}
    return output


def _own_issues(node: Node | None) -> tuple[Issue, ...]:
    if node is None:
        return ()
    return node.result.issues if node.result is not None else node.issues


def _output_meta(names: Names) -> Any:
    node = names.node
    if node is None:
        return None
    return node.result.meta if node.result is not None else (node.meta or {})


def _event(names: Names) -> Any:
    """The trigger; after a goto with `goto_event` under that name, the original beside it (spec C.11 R10)."""
    trigger = names.state.trigger or {"name": "manual", "event_name": "manual"}
    override = names.node.event if names.node is not None else None
    if override is None or override == trigger.get("name"):
        return trigger
    return {**trigger, "name": override, "event_name": override, "original": trigger}


def _issues_of(severity: str | None) -> Callable[[Names], Any]:
    def compute(names: Names) -> Any:
        found = [issue for issue in _own_issues(names.node) if severity is None or issue.severity == severity]
        return [as_names(issue) for issue in found]

    return compute


def _context(name: str, default: Any = None) -> Callable[[Names], Any]:
    return lambda names: names.state.context.get(name, default)


def _files_count(names: Names) -> Any:
    """How many files changed; null when that is unknown."""
    files = names.state.context.get("files", [])
    return None if files is None else len(files)


def _association(names: Names) -> Any:
    pr = names.state.context.get("pr")
    own = names.state.context.get("authorAssociation")
    return own or (pr.get("authorAssociation") if isinstance(pr, dict) else None)


def _for_each(names: Names) -> Any:
    node = names.node
    items = node.items if node is not None and node.items is not None else []
    return {"is_parent": names.step.for_each, "last_wave_size": len(items), "last_items": items}


def _status(names: Names) -> Any:
    failed = any_failed(names.state, names.step, names.scope)
    return {"success": not failed, "failure": failed}


def _arguments(names: Names) -> Any:
    own = names.node.arguments if names.node is not None else {}
    return {**names.state.arguments, **own} if own else names.state.arguments


COMPUTE: dict[str, Callable[[Names], Any]] = {
    "output": _output,
    "output_meta": _output_meta,
    "outputs": lambda names: Outputs(names, _visible, _own_names(names)),
    "outputs_raw": lambda names: Outputs(names, _raw),
    "outputs_meta": lambda names: Outputs(names, _meta),
    "outputs_history": lambda names: Outputs(names, _history),
    "outputs_history_stage": lambda names: Outputs(names, _history),
    "outputs_wave": lambda names: Outputs(names, _wave),
    "event": _event,
    "env": lambda names: names.state.env,
    "memory": lambda names: show(names.state.memory),
    "pr": _context("pr"),
    "files": _context("files", []),
    "filesChanged": _context("filesChanged", []),
    "filesCount": _files_count,
    "fileCount": _files_count,
    "branch": _context("branch"),
    "baseBranch": _context("baseBranch"),
    "inputs": lambda names: names.state.inputs,
    "args": _arguments,
    "conversation": _context("conversation"),
    "step": lambda names: {"id": names.step.name, "tags": list(names.step.tags), "group": names.step.group},
    "forEach": _for_each,
    "attempt": lambda names: names.node.attempt if names.node is not None and names.node.attempt else 1,
    "loop": lambda names: names.state.loops.get(names.scope, 0),
    "error": lambda names: fault_of(names.node),
    "now": lambda names: names.state.started_at_ms,
    "item": lambda names: item_of(names.state, names.scope) if names.scope else None,
    "index": lambda names: index_of(names.scope) if names.scope else None,
    "issues": _issues_of(None),
    "criticalIssues": _issues_of("critical"),
    "errorIssues": _issues_of("error"),
    "warningIssues": _issues_of("warning"),
    "infoIssues": _issues_of("info"),
    "totalIssues": lambda names: len(_own_issues(names.node)),
    "checkName": lambda names: names.step.name,
    "group": lambda names: names.step.group,
    "schema": lambda names: names.step.renderer,
    "metadata": lambda names: {"checkName": names.step.name, "group": names.step.group},
    "checks_meta": lambda names: Outputs(names, _meta),
    "utils": lambda names: {"now": names.state.started_at_ms},
    "debug": lambda names: None,
    "response": lambda names: None,
    "value": lambda names: None,
    "webhook": lambda names: None,
    "$status": _status,
    "$association": _association,
}
