"""Secrets of one run on their way: from what a step gave into handles, from handles into a call (semantics.md 14).

State, records and expressions hold handles. What a handle stands for is put in right before a call, for templates of a
type that works outside the run (`Provider.handles`). A handle is a text and can be copied, so what comes in from
outside loses its tags: only what the run itself computed can hand a secret on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import msgspec
from msgspec import UNSET

from gonogo.core.graph import Graph
from gonogo.core.holds import becomes_output
from gonogo.core.lifecycle import HOLDING, IN_DOUBT
from gonogo.core.plan import Step
from gonogo.core.state import State
from gonogo.journal.handles import handle, may_hold, named, replaced, shortened
from gonogo.journal.normalise import to_json
from gonogo.journal.redact import MASK, Redactor
from gonogo.journal.sealing import Seals, Unsealable, Unsealed
from gonogo.journal.store import RunJournal

WHOLE = "."
"""The path of an output as a whole."""
ANSWER = "text"
"""Where an answer is in the output that is made of it."""
EACH = "*"
"""A part of a path: every item of a list."""
KNOWN_MAX = 500
"""So many sealed values of a run are also looked for in texts; each makes every text a little dearer."""

Names = Mapping[str, Any]


class Unopened(Exception):  # noqa: N818 - the name says what happened
    """A secret that a call needs can't be read: `name` says which, `why` what is wrong and what to do."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"the secret {name} can't be read: {why}")
        self.name = name
        self.why = why


class Vault:
    """The secrets of one run. Made and used by one host at a time."""

    __slots__ = ("_declared", "_noted", "_redactor", "_resumed", "_seals", "_state")

    def __init__(self, state: State, seals: Seals, redactor: Redactor, *, resumed: bool) -> None:
        """`resumed`: the run was begun elsewhere, so its state may hold handles whatever its plan says."""
        self._state = state
        self._seals = seals
        self._redactor = redactor
        self._resumed = resumed
        self._noted: set[str] = set()
        self._declared: tuple[Graph | None, bool] = (None, False)

    @property
    def run_id(self) -> str:
        """Whose secrets these are."""
        return self._state.run_id

    @property
    def in_use(self) -> bool:
        """Whether there may be handles in this run at all; looking for them in every name costs time."""
        return self._resumed or self._state.parent is not None or self.is_declared

    @property
    def is_declared(self) -> bool:
        """Whether the plan has a step that gives secrets, or may get some from a run beneath."""
        graph = self._state.graph
        if self._declared[0] is not graph:  # a run may go on under another plan
            steps = graph.steps.values()
            self._declared = graph, any(step.secret_outputs or step.type == "workflow" for step in steps)
        return self._declared[1]

    def giver(self, name: str) -> str | None:
        """The step that gave a secret; None where it came from elsewhere."""
        steps = [step for step in self._state.graph.steps if f"{name}.".startswith(f"{named(step)}.")]
        return max(steps, key=len, default=None)

    def load(self) -> None:
        """Know what was sealed before, so that no text shows it. What can't be read is told when it is needed."""
        if self.is_declared or self._state.parent is not None or may_hold(self._state.graph.plan):
            for data in self._seals.all():
                self._note(_value(data))

    def check(self, step: Step) -> str | None:
        """Why a step's secret outputs couldn't be kept; None when they can, or there are none."""
        if not step.secret_outputs:
            return None
        try:
            self._seals.check()
        except Unsealable as problem:
            return f"{step.name} gives secret outputs, which can't be kept: {problem}"
        return None

    def sealed(self, step: Step, output: Any) -> Any:
        """An output with handles at the step's `secret_outputs`; null and what isn't there stay as they are.

        One without parts, such as a text that should have been JSON, is secret as a whole: nobody knows where in it.
        """
        for path in (WHOLE,) if has_no_parts(output) else step.secret_outputs:
            parts = [] if path == WHOLE else path.split(".")
            name = step.name if path == WHOLE else f"{step.name}.{path}"
            output = _changed(output, parts, partial(self._kept, name))
        return output

    def absent(self, step: Step, output: Any) -> list[str]:
        """The `secret_outputs` that an output doesn't have, so that nothing was sealed for them."""
        if has_no_parts(output) or (self._state.safe_mode and step.effects == "mutates"):
            return []
        return [path for path in step.secret_outputs if path != WHOLE and lacks(output, path.split("."))]

    def answer(self, name: str, scope: str, text: str) -> str:
        """A person's answer as records may have it: a handle, where it becomes an output that is secret."""
        text = shortened(text)
        node = self._state.nodes.get(name, {}).get(scope)
        step = self._state.graph.steps.get(name)
        if node is None or step is None or {ANSWER, WHOLE}.isdisjoint(step.secret_outputs):
            return self._redactor.text(text)
        if becomes_output(node):
            return str(self._kept(f"{name}.{ANSWER}", text))
        return self._redactor.text(text) if node.status in (HOLDING, IN_DOUBT) else MASK  # it comes too late

    def given(self, name: str, output: Any) -> Any:
        """An output that a person gives for a call in doubt, as records may have it; UNSET stays so."""
        step = self._state.graph.steps.get(name)
        if output is UNSET or step is None:
            return UNSET
        output = shortened(output)
        return self._redactor.value(self.sealed(step, output) if step.secret_outputs else output)

    def note_in(self, step: Step, output: Any) -> None:
        """Know the secrets that a failed step wrote all the same, in what would have been its output.

        A text that isn't JSON is secret as a whole, unless it is what the step says of its failure.
        """
        said = output.get("message") if isinstance(output, dict) else None
        for value in output.values() if isinstance(output, dict) else (output,):
            read = _read(value) if isinstance(value, str) else value
            whole = isinstance(value, str) and not isinstance(read, dict | list) and value != said
            for path in step.secret_outputs:
                if isinstance(value, str) and (whole or path == WHOLE):
                    self._note(value)
                elif path != WHOLE:
                    _changed(read, path.split("."), self._note)

    def opened(self, value: Any) -> Any:
        """A value with what its handles stand for. Raises Unopened."""
        return replaced(value, self._open)

    def adopted(self, value: Any, of: Vault) -> Any:
        """A value of another run, with handles of this one in place of that one's. Raises Unopened."""
        return replaced(value, lambda name, tag: self._sealed(name, of._open(name, tag)))

    def _kept(self, name: str, value: Any) -> Any:
        if value is None:
            return None
        try:
            return self._sealed(name, self.opened(value))
        except (Unopened, Unsealable):
            return MASK  # it was looked at before the call: what can't be kept is hidden

    def _sealed(self, name: str, value: Any) -> str:
        self._note(value)
        return sealed_in(self._seals, name, value)

    def _open(self, name: str, tag: str) -> Any:
        try:
            value = _value(self._seals.open(tag))
        except Unsealed as problem:
            raise Unopened(name, str(problem)) from problem
        self._note(value)
        return value

    def _note(self, value: Any) -> None:
        text = value if isinstance(value, str) else to_json(value).decode()
        if text not in self._noted and len(self._noted) < KNOWN_MAX:
            self._noted.add(text)
            self._redactor.add("", text)


def vault_of(state: State, journal: RunJournal, redactor: Redactor) -> Vault:
    """The vault of a run that begins, or is gone on with: then no text shows what was sealed before."""
    resumed = bool(journal.records)
    vault = Vault(state, journal.seals, redactor, resumed=resumed or journal.seals.used)
    if resumed:
        vault.load()
    return vault


class Seen(Mapping[str, Any]):
    """Names of a run, each seen through a function when it is read. `check` raises what the function raised, whatever a
    template made of it.
    """

    def __init__(
        self, names: Names, through: Callable[[Any], Any], problems: list[Unopened] | None = None
    ) -> None:
        self._names = names
        self._through = through
        self._seen: dict[str, Any] = {}
        self._problems: list[Unopened] = [] if problems is None else problems

    def check(self) -> None:
        """Raises Unopened when a value that was read couldn't be opened."""
        if self._problems:
            raise self._problems[0]

    def __getitem__(self, name: str) -> Any:
        if name not in self._seen:
            value = self._names[name]
            if isinstance(value, Mapping) and not isinstance(value, dict):
                self._seen[name] = Seen(value, self._through, self._problems)
            else:
                self._seen[name] = self._through_it(value)
        return self._seen[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def _through_it(self, value: Any) -> Any:
        try:
            return self._through(value)
        except Unopened as problem:
            self._problems.append(problem)
            raise


def has_no_parts(output: Any) -> bool:
    """Whether no path leads into an output, which isn't null."""
    return output is not None and not isinstance(output, dict | list)


def lacks(value: Any, path: list[str]) -> bool:
    """Whether a path of secret outputs leads nowhere in a value. An empty list has nothing to lead to, nor has null."""
    if not path or value is None or (isinstance(value, str) and may_hold(value)):
        return False
    head, rest = path[0], path[1:]
    if isinstance(value, list) and head == EACH:
        return any(lacks(part, rest) for part in value)
    if isinstance(value, dict) and head in value:
        return lacks(value[head], rest)
    if isinstance(value, list) and head.isdecimal() and int(head) < len(value):
        return lacks(value[int(head)], rest)
    return True


def sealed_in(seals: Seals, name: str, value: Any) -> str:
    """The handle of a value that is kept now. Raises Unsealable, JournalError."""
    return handle(name, seals.seal(to_json([name, value])))


def _read(text: str) -> Any:
    """What a text that may be JSON says; None for any other."""
    try:
        return msgspec.json.decode(text)
    except (ValueError, RecursionError):
        return None


def _value(data: bytes) -> Any:
    return msgspec.json.decode(data)[1]


def _changed(value: Any, path: list[str], by: Callable[[Any], Any]) -> Any:
    """`value` with what is at `path` changed; the rest is shared. `*` is every item of a list."""
    if not path:
        return by(value)
    head, rest = path[0], path[1:]
    if isinstance(value, list) and head == EACH:
        return [_changed(part, rest, by) for part in value]
    if isinstance(value, dict) and head in value:
        return {**value, head: _changed(value[head], rest, by)}
    if isinstance(value, list) and head.isdecimal() and int(head) < len(value):
        return [*value[: int(head)], _changed(value[int(head)], rest, by), *value[int(head) + 1 :]]
    return value
