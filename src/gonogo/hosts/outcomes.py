"""What a provider gave, made into an event: plain JSON, within size, checked against the schema, without
secrets.

Everything is done before the core sees it, so that state, expressions and journal hold the same thing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec import UNSET

from gonogo.core.events import CallDone, CallFailed, CallParked
from gonogo.core.faults import Effect, Fault, Issue
from gonogo.core.plan import Step
from gonogo.core.replays import answer
from gonogo.core.state import DOUBTED
from gonogo.expressions.results import MemoryOp
from gonogo.hosts.schemas import Schemas
from gonogo.hosts.vault import Unopened, Vault
from gonogo.journal.blobs import BLOB_BYTES
from gonogo.journal.handles import shortened
from gonogo.journal.normalise import NotStorable, normalise, normalise_event, to_json
from gonogo.journal.redact import Redactor
from gonogo.journal.store import Blobs
from gonogo.provider import Done, Failed, Parked

CONTENT_CHARACTERS_MAX = 256 * 1024
ISSUES_MAX = 10_000
_FAULT_CHARACTERS_MAX = 4000

Returned = CallDone | CallFailed | CallParked
Take = Callable[..., Any]
"""Makes plain JSON data of a value, or of what came in from outside."""


class Outcomes:
    """Turns outcomes of one run into events."""

    def __init__(
        self, redactor: Redactor, vault: Vault, blobs: Blobs, schemas: Schemas, output_bytes_max: int
    ) -> None:
        self._redactor = redactor
        self._vault = vault
        self._blobs = blobs
        self._schemas = schemas
        self._bytes_max = output_bytes_max

    def event(
        self, step: Step, call: int, at: float, outcome: object, inputs: Any, *, passes: bool = False
    ) -> Returned:
        """The event of an outcome; one that can't be stored is a failure that names the place in it (RES-3).

        `passes`: it was made within the run, so that handles in it are the run's own.
        """
        try:
            return self._event(step, call, at, outcome, inputs, passes=passes)
        except NotStorable as problem:
            message = f"{step.name} gave what can't be stored: {problem}"
            fault = Fault("output.not_storable", "logical", f"{step.name}/output_error", message)
            effect: Effect = outcome.effect if isinstance(outcome, Done | Failed) else "none"
            return self.failure(call, at, fault, effect=effect, inputs=inputs)

    def _event(
        self, step: Step, call: int, at: float, outcome: object, inputs: Any, *, passes: bool
    ) -> Returned:
        take = normalise if passes or not self._vault.in_use else _from_outside
        if isinstance(outcome, Done):
            return self._done(step, call, at, outcome, inputs, take)
        if isinstance(outcome, Failed):
            return self._failed(step, call, at, outcome, inputs, take)
        if isinstance(outcome, Parked):
            return self._parked(call, at, outcome)
        message = f"{step.name} returned {type(outcome).__name__}; a provider returns Done, Failed or Parked"
        return self.failure(call, at, _bug(step.name, message), effect="unknown", inputs=inputs)

    def unopened(self, step: str, call: int, at: float, problem: Unopened) -> CallParked:
        """The event of a call that wasn't made for want of a secret (semantics.md 14)."""
        prompt = (
            f"{step} needs the secret {problem.name}, which can't be read: {problem.why}, then answer 'again'"
        )
        giver = self._vault.giver(problem.name)
        if giver is not None:
            prompt += f"; or have it made anew: gonogo resume {self._vault.run_id} --from {giver}"
        text = self._redactor.text(f"{prompt}; or answer 'failed'")
        return CallParked(at=at, call=call, prompt=text, details={"sealed": problem.name})

    def doubted(self, call: int, at: float, child: str) -> CallParked:
        """The event of a call that ended without word from its child, where a call is in doubt."""
        prompt = f"workflow {child} waits: a call is in doubt"
        return CallParked(
            at=at, call=call, prompt=prompt, details={"child": child, "waiting": [], DOUBTED: True}
        )

    def failure(
        self, call: int, at: float, fault: Fault, *, effect: Effect = "none", inputs: Any = None
    ) -> CallFailed:
        """The event of a failure the host itself found."""
        return CallFailed(at=at, call=call, fault=self._fault(fault), effect=effect, inputs=inputs)

    def replayed(self, call: int, at: float, kept: CallDone, key: str, inputs: Any) -> CallDone:
        """The event of a call that another one under its key has answered."""
        return answer(kept, call, at, self._redactor.text(key), inputs)

    def inputs(self, rendered: dict[str, Any]) -> Any:
        """Rendered inputs as an attempt's record keeps them: masked, large ones elsewhere."""
        try:
            return self._kept(normalise(rendered, "inputs", size_bytes_max=self._bytes_max))
        except NotStorable as problem:
            return {"$left_out": str(problem)}

    def _done(self, step: Step, call: int, at: float, done: Done, inputs: Any, take: Take) -> CallDone:
        if done.output is UNSET and not (
            done.meta or done.issues or done.memory or done.content or step.schema
        ):
            # The way of a no-op, and of most routing: nothing to look at.
            return CallDone(at=at, call=call, inputs=inputs, effect=done.effect)
        output = take(done.output, size_bytes_max=self._bytes_max)
        kept = self._output(step, output)  # first, so that nothing else shows what is sealed
        errors = self._schema_errors(step, output)
        return CallDone(
            at=at,
            call=call,
            output=kept,
            issues=self._issues((*done.issues, *self._absent(step, output))),
            meta=self._meta(done.meta, take),
            memory=self._memory(done.memory, take),
            yields_memory=done.yields_memory,
            schema_errors=errors,
            content=self._content(step, done.content),
            inputs=inputs,
            effect=done.effect,
        )

    def _failed(
        self, step: Step, call: int, at: float, failed: Failed, inputs: Any, take: Take
    ) -> CallFailed:
        output = take(failed.output, size_bytes_max=self._bytes_max)
        if step.secret_outputs:
            self._vault.note_in(step, output)
        kept = self._output(step, output)
        return CallFailed(
            at=at,
            call=call,
            fault=self._fault(failed.fault),
            output=kept,
            issues=self._issues(failed.issues),
            meta=self._meta(failed.meta, take),
            memory=self._memory(failed.memory, take),
            content=self._content(step, failed.content),
            inputs=inputs,
            effect=failed.effect,
        )

    def _parked(self, call: int, at: float, parked: Parked) -> CallParked:
        event = CallParked(
            at=at,
            call=call,
            prompt=self._redactor.text(parked.prompt),
            details=self._redactor.value(dict(parked.details)),
            timeout_s=parked.timeout_s,
            default=parked.default,
        )
        stored = normalise_event(event)
        assert isinstance(stored, CallParked)
        return stored

    def _output(self, step: Step, output: Any) -> Any:
        if output is UNSET:
            return output
        if step.secret_outputs:
            output = self._vault.sealed(step, output)
        return self._redactor.value(output)

    def _absent(self, step: Step, output: Any) -> list[Issue]:
        if output is UNSET or not step.secret_outputs:
            return []
        told = "the output has no '{}', so nothing was sealed there; look at secret_outputs"
        absent = self._vault.absent(step, output)
        return [Issue("secret/absent", told.format(path), "warning", engine=True) for path in absent]

    def _kept(self, value: Any) -> Any:
        value = self._redactor.value(value)
        return self._blobs.put(value) if len(to_json(value)) > BLOB_BYTES else value

    def _schema_errors(self, step: Step, output: Any) -> tuple[str, ...]:
        if step.schema is None:
            return ()
        found = self._schemas.errors(step.name, step.schema, None if output is UNSET else output)
        return tuple(self._redactor.text(normalise(error)) for error in found)

    def _meta(self, meta: Any, take: Take) -> dict[str, Any]:
        if not meta:
            return {}
        masked: dict[str, Any] = self._redactor.value(take(dict(meta), "meta"))
        return masked

    def _memory(self, operations: Sequence[MemoryOp], take: Take) -> tuple[MemoryOp, ...]:
        return tuple(
            msgspec.structs.replace(each, value=self._redactor.value(take(each.value, f"memory.{each.key}")))
            for each in operations
        )

    def _content(self, step: Step, content: str | None) -> str | None:
        """Of a step with secret outputs there is none: it is what they were taken out of."""
        if content is None or step.secret_outputs:
            return None
        text = self._redactor.text(str(normalise(content, "content")))
        cut = len(text) > CONTENT_CHARACTERS_MAX
        return f"{text[:CONTENT_CHARACTERS_MAX]}\n… ({len(text)} characters)" if cut else text

    def _issues(self, issues: Sequence[Issue]) -> tuple[Issue, ...]:
        return tuple(self._issue(issue) for issue in issues[:ISSUES_MAX]) if issues else ()

    def _issue(self, issue: Issue) -> Issue:
        fields = {name: getattr(issue, name) for name in _ISSUE_TEXTS}
        masked = {
            name: self._redactor.text(_from_outside(text, f"issues.{name}"))
            for name, text in fields.items()
            if isinstance(text, str)
        }
        return msgspec.structs.replace(issue, **masked)

    def _fault(self, fault: Fault) -> Fault:
        message = self._redactor.text(_from_outside(fault.message, "fault.message"))
        cause = fault.cause
        return msgspec.structs.replace(
            fault,
            message=message[:_FAULT_CHARACTERS_MAX],
            cause=None if cause is None else self._redactor.text(normalise(cause, "fault.cause")),
        )


_ISSUE_TEXTS = ("rule_id", "message", "file", "category", "suggestion", "replacement")


def bug_in(step: str, error: BaseException) -> Fault:
    """An exception that a provider didn't catch: its type, place and short message; no locals (case SEC-4)."""
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    place = f" at {frame.tb_frame.f_code.co_name}, line {frame.tb_lineno}" if frame is not None else ""
    try:
        told = str(error)[:500]
    except Exception:  # noqa: BLE001 - a foreign __str__ may raise anything
        told = ""
    return _bug(step, f"the step type raised {type(error).__name__}{place}" + (f": {told}" if told else ""))


def _bug(step: str, message: str) -> Fault:
    return Fault("provider.bug", "bug", f"{step}/execution_error", message)


def _from_outside(value: Any, path: str = "output", **limits: int) -> Any:
    """As `normalise`; a handle in what came in was copied from somewhere, and means nothing."""
    return shortened(normalise(value, path, **limits))
