"""Step types that answer as a test says: `ai` and `github`, and any other type for the steps that a test names.

An answer is a plain output, `Fails(...)`, `Turns(...)` (one answer a call, the last one stays), or a function of
the call that gives one of these. A step without an answer of its own does what its type does; `ai` and `github`
do nothing then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from gonogo.core.faults import FaultClass
from gonogo.provider import UNSET, Call, Context, Done, Effect, Failed, Fault, Outcome, Provider
from gonogo.providers.table import Entry, Table, built_in

MUTATING_OPERATIONS = ("comment.create", "labels.add", "labels.remove")


class Model(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The keys of the scripted `ai`; a prompt is required (A.6)."""

    prompt: str


class Forge(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The keys of the scripted `github`."""

    op: str = ""
    value: str = ""
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Fails:
    """A call that fails. `effect`: what is known of the outside then."""

    fault_class: FaultClass = "transient"
    message: str = "it broke"
    output: Any = UNSET
    effect: Effect = "none"


class Turns:
    """One answer a call, in order; the last one stays."""

    def __init__(self, *answers: Any) -> None:
        self._answers = list(answers)

    def next(self) -> Any:
        """The answer of this turn."""
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]


class Stage:
    """Answers by step, and every call that came, in order."""

    def __init__(self, answers: Mapping[str, Any]) -> None:
        self._answers = dict(answers)
        self.calls: list[Call] = []

    def called(self, step: str) -> list[Call]:
        """The calls of one step."""
        return [call for call in self.calls if call.step == step]

    def table(self) -> Table:
        """A table of step types in which the named steps answer as told."""
        return Table({}, aliases=built_in().aliases(), planned=frozenset(), entries=self._entries)

    def _entries(self) -> Iterator[Entry]:
        types = {name: built_in().get(name) for name in built_in().names()}
        types["ai"] = Provider("ai", Model, _idle, effects="reads", templates=frozenset({"prompt"}))
        types["github"] = Provider("github", Forge, _idle, effects=_effects, templates=frozenset({"value"}))
        for name, provider in types.items():
            yield _Entry(name, replace(provider, run=self._wrapped(provider.run), needs_names=True))

    def _wrapped(self, own: Callable[..., Any]) -> Callable[..., Any]:
        async def run(call: Call, context: Context) -> Outcome:
            self.calls.append(call)
            if call.step not in self._answers:
                return await own(call, context)  # type: ignore[no-any-return]
            return _outcome(self._answers[call.step], call)

        return run


@dataclass(frozen=True, slots=True)
class _Entry:
    name: str
    provider: Provider

    def load(self) -> object:
        return self.provider


def _outcome(answer: Any, call: Call) -> Outcome:
    if isinstance(answer, Turns):
        answer = answer.next()
    if callable(answer):
        answer = answer(call)
    if isinstance(answer, Done | Failed):
        return answer
    if isinstance(answer, Fails):
        rule = f"{call.step}/scripted/execution_error"
        fault = Fault("scripted", answer.fault_class, rule, answer.message)
        return Failed(fault, output=answer.output, effect=answer.effect)
    return Done(answer)


async def _idle(call: Call, context: Context) -> Outcome:
    return Done(effect="none")


def _effects(config: Any) -> Any:
    return "mutates" if config.op in MUTATING_OPERATIONS else "reads"
