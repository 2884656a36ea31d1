"""What is asked of the sandbox, and the short text that tells the child which values a run is given.

Mappings in `LAZY_NAMES` are sent entry by entry: those the expression names, then those it turns out to read,
and after `FAULTS_MAX` such surprises all of them. Compiling and sending are left to `sandbox.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from gonogo.expressions.analyse import Reading
from gonogo.expressions.compiled import Compiled
from gonogo.expressions.frames import encode_value
from gonogo.expressions.names import (
    ASSOCIATION,
    LAZY_NAMES,
    NAMESPACE,
    STATUS,
    Kind,
)
from gonogo.expressions.slots import Slots

FAULTS_MAX = 4
TRIES_MAX = 2 * FAULTS_MAX
NAMESPACE_DEFAULT = "default"
HISTORY = "outputs_history"
NOTHING = ""
"""The arguments of an expression that reads no data."""


class Limits(Struct, frozen=True):
    """Bounds of evaluations.

    `grace_s` is wall time on top of an evaluation's own CPU time before the child is killed. After `batch_s`
    a frame is cut and the rest of the batch goes into the next one. `memory_bytes` come on top of the data.
    """

    condition_s: float = 0.25
    script_s: float = 5.0
    grace_s: float = 0.25
    memory_bytes: int = 64 << 20
    result_bytes: int = 16 << 20
    batch_s: float = 2.0


class Request(msgspec.Struct, frozen=True):
    """One evaluation: `source` as `kind`, ended after `limit_s` of CPU time.

    `names` maps a name to its JSON value, looked up only if `source` reads it; a missing one is null.
    `outputs` and the other `LAZY_NAMES` are mappings by step. `memory` maps namespace to entries, and
    `$namespace` to the default one. `$status` {success, failure} and `$association` (text or null) feed the
    helpers. Values must not change later on. `hints` is what `analyse` said of `source`, where that is known.
    """

    source: str
    kind: Kind
    names: Mapping[str, Any]
    limit_s: float = 0.25
    hints: Reading | None = None


class Pending:
    """A request under way: which data it turned out to need so far."""

    __slots__ = ("_faults", "compiled", "extra", "history", "index", "keys", "request")

    def __init__(self, index: int, request: Request) -> None:
        self.index = index
        self.request = request
        self.compiled: Compiled
        self.extra: dict[str, set[str]] = {}
        self.keys: set[str] = set()
        self.history = False
        self._faults = 0

    @property
    def wants_all(self) -> bool:
        return self._faults > FAULTS_MAX

    def want(self, wanted: Iterable[tuple[str, str | None]]) -> bool:
        """Note what the run asked for; it is sent with the next try. False once there is nothing left to send."""
        self._faults += 1
        for view, key in wanted:
            if view == "history":
                self.history = True
            elif key is None:
                self.keys.add(view)
            else:
                self.extra.setdefault(view, set()).add(key)
        return self._faults <= TRIES_MAX


def spec_of(pending: Pending, slots: Slots) -> str:
    """The arguments of one run, as the JSON text `mirror.js` reads: slots, or views with the keys sent so far."""
    names, compiled = pending.request.names, pending.compiled
    if compiled.reads_nothing:
        return NOTHING
    spec: dict[str, Any] = {
        "names": [_argument(name, pending, slots) for name in compiled.parameters],
    }
    if pending.history:
        spec["history"] = _argument(HISTORY, pending, slots)
    if compiled.reads_status:
        spec["status"] = slots.slot(_value(names, STATUS))
    if compiled.reads_association:
        spec["association"] = slots.slot(_value(names, ASSOCIATION))
    return encode_value(spec)


def _value(names: Mapping[str, Any], name: str) -> Any:
    try:
        return names[name]
    except KeyError:
        return None


def _argument(name: str, pending: Pending, slots: Slots) -> Any:
    value = _value(pending.request.names, name)
    if name == "memory":
        return ["memory", _memory(value, pending, slots)]
    if value is None:
        return None
    if name in LAZY_NAMES and isinstance(value, Mapping):
        return [name, _view(name, value, pending, slots)]
    return slots.slot(value, event=name == "event")


def _view(name: str, entries: Mapping[str, Any], pending: Pending, slots: Slots) -> dict[str, Any]:
    compiled = pending.compiled
    wanted: Iterable[str] = compiled.keys.get(name, ())
    if pending.wants_all:
        wanted = list(entries)
    elif name in pending.extra:
        wanted = sorted({*wanted, *pending.extra[name]})
    all_keys = pending.wants_all or name in pending.keys or name in compiled.reading.dynamic
    return {
        "given": {key: _slot_of(entries, key, slots) for key in wanted},
        "keys": list(entries) if all_keys else None,
    }


def _slot_of(entries: Mapping[str, Any], key: str, slots: Slots) -> int:
    """0 stands for a key that isn't there."""
    try:
        value = entries[key]
    except KeyError:
        return 0
    return slots.slot(value)


def _memory(spaces: Any, pending: Pending, slots: Slots) -> dict[str, Any]:
    if not isinstance(spaces, Mapping):
        return {"given": {}, "keys": [], "namespace": NAMESPACE_DEFAULT}
    default = _value(spaces, NAMESPACE)
    namespace = default if isinstance(default, str) else NAMESPACE_DEFAULT
    known = [name for name in spaces if isinstance(name, str) and name != NAMESPACE]
    wanted = set(known) if pending.wants_all else {namespace, *pending.extra.get("memory", ())}
    given = {name: _slot_of(spaces, name, slots) for name in sorted(wanted)}
    return {"given": given, "keys": known, "namespace": namespace}
