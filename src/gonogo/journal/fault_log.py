"""The faults of a run, each from its detection to its end: folded from the events that its records hold (spec G16)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct, field

from gonogo.core import decisions as d
from gonogo.journal.glimpse import Glimpse
from gonogo.journal.records import Record
from gonogo.journal.story import Line, story

__all__ = ["FaultLog", "FaultStory", "FaultTurn", "lines_of"]

ENDS = ("recovery.succeeded", "recovery.failed")


class FaultTurn(Struct, frozen=True):
    """One event of a fault's life. `seq`: its record; `at_s`: on the run's clock; `detail` as the core gave it."""

    seq: int
    at_s: float
    event: str
    attempt: int
    detail: dict[str, Any]


class FaultStory(Struct):
    """A fault of a step in a scope. It begins with `kind`, class and rule; `message` is that of the failure then.

    `turns` are its events in order: detected, isolated, attempts at recovery, exactly one end once it is over, then
    whom it was escalated to.
    """

    number: int
    step: str
    scope: str
    kind: str
    fault_class: str
    rule_id: str
    message: str
    turns: list[FaultTurn] = field(default_factory=list)

    @property
    def end(self) -> str | None:
        """`recovery.succeeded` or `recovery.failed`; None while it is open."""
        return next((turn.event for turn in self.turns if turn.event in ENDS), None)

    def details(self, event: str) -> Iterator[dict[str, Any]]:
        """The details of each event of a kind, in order."""
        return (turn.detail for turn in self.turns if turn.event == event)

    def as_json(self) -> dict[str, Any]:
        """The story as plain data."""
        return {
            "fault": self.number,
            "step": self.step,
            "scope": self.scope,
            "kind": self.kind,
            "class": self.fault_class,
            "rule_id": self.rule_id,
            "message": self.message,
            "end": self.end,
        }

    @property
    def place(self) -> str:
        """`step` or `step@scope`."""
        return f"{self.step}@{self.scope}" if self.scope else self.step


def lines_of(fault: FaultStory, records: Sequence[Record]) -> list[Line]:
    """What happened to the step after the start that failed, up to the fault's end, and what followed from it: who was
    told, what was undone.
    """
    first, last = _after_its_start(fault, records), fault.turns[-1].seq
    own = story(records, fault.step, fault.scope)
    told = [line for line in own if first <= line.seq and (fault.end is None or line.seq <= last)]
    return [*told, *_undone_for(fault, records)]


def _after_its_start(fault: FaultStory, records: Sequence[Record]) -> int:
    """The first record behind the one that started what failed: attempts of its call stand there, before the fault."""
    detected = fault.turns[0].seq
    starts = (
        record.seq
        for record in records
        for one in record.decisions
        if type(one) is d.Started and (one.step, one.scope) == (fault.step, fault.scope)
    )
    return max((seq + 1 for seq in starts if seq < detected), default=detected)


def _undone_for(fault: FaultStory, records: Sequence[Record]) -> Iterator[Line]:
    for record in records:
        for one in record.decisions:
            if type(one) is d.FaultEvent and one.event == "compensated" and one.fault == fault.number:
                yield Line(record.seq, record.event.at, one.sentence(), one.step, one.scope, "fault")


class FaultLog:
    """Gathers the faults of a run, record by record, and what was undone because of them."""

    def __init__(self) -> None:
        self.stories: dict[int, FaultStory] = {}
        self.undone: list[d.Undone] = []
        self._happened: list[tuple[Glimpse, d.FaultEvent]] = []
        self._failed: d.Ended | None = None

    def see(self, glimpse: Glimpse) -> None:
        """What a record tells of faults: the failure itself stands right before the event that detects it."""
        for decision in glimpse.decisions:
            kind = type(decision)
            if kind is d.FaultEvent:
                self._happen(decision, glimpse)
            elif kind is d.Ended and decision.fault is not None:
                self._failed = decision
            elif kind is d.Undone:
                self.undone.append(decision)

    def _happen(self, event: d.FaultEvent, glimpse: Glimpse) -> None:
        """`detected` begins a story. What was compensated may be another step's doing, and is part of none."""
        self._happened.append((glimpse, event))
        if event.event == "detected":
            self.stories[event.fault] = self._story(event)
        if event.event != "compensated" and event.fault in self.stories:
            turn = FaultTurn(glimpse.seq, glimpse.event.at, event.event, event.attempt, event.detail)
            self.stories[event.fault].turns.append(turn)

    def _story(self, event: d.FaultEvent) -> FaultStory:
        failed = self._failed
        told = failed is not None and (failed.step, failed.scope) == (event.step, event.scope)
        message = failed.fault.message if told and failed is not None and failed.fault is not None else ""
        return FaultStory(
            event.fault, event.step, event.scope, event.kind, event.fault_class, event.rule_id, message
        )

    def as_json(self, run_id: str, started_at_ms: int) -> list[dict[str, Any]]:
        """Every event in the order they happened, as plain data; `ts` is Unix time in seconds."""
        return [
            {
                "event": f"fault.{event.event}",
                "fault": event.fault,
                "seq": glimpse.seq,
                "ts": round(started_at_ms / 1000 + glimpse.event.at, 3),
                "run_id": run_id,
                "step": event.step,
                "scope": event.scope,
                "attempt": event.attempt,
                "kind": event.kind,
                "class": event.fault_class,
                "rule_id": event.rule_id,
                "detail": event.detail,
            }
            for glimpse, event in self._happened
        ]
