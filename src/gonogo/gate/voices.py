"""What each process that shares a breaker has seen of its target, and whether an opening binds one of them. Pure.

Source: reliability-gate, B37. Only what processes see for themselves is weighed so; what the far side says (a pause
it asks for, a refused credential, a missing model) is one thing for all.
"""

from __future__ import annotations

from collections.abc import Container

from msgspec import Struct

VOICES_MAX = 32
"""So many processes are remembered of a breaker; who was silent longest goes first."""
REFRESH = 0.25
"""A process that goes on well says so again after this part of the window: not every success is news."""


class Writer(Struct, frozen=True, array_like=True):
    """A process. `name` is for people (`machine:number`); `began` tells it from a later one of that number, `place`
    where the number means something.
    """

    name: str
    began: str = ""
    place: str = ""


class Voice(Struct, frozen=True, array_like=True):
    """What a process reported last: when, and how often the target has failed for it since it served it."""

    writer: Writer
    at_s: float
    failures: int = 0


class Standing(Struct, frozen=True):
    """Whether an opening binds who asks, and why (or why not). `failing` of `processes` see the target fail."""

    binds: bool
    why: str
    failing: int
    processes: int


def heard(
    voices: tuple[Voice, ...], writer: Writer | None, now_s: float, failures: int, window_s: float
) -> tuple[Voice, ...]:
    """With what a process says now; the very same tuple where that is no news."""
    if writer is None:
        return voices
    before = of(voices, writer)
    well = before is not None and not before.failures and not failures
    if well and before is not None and 0 <= now_s - before.at_s < REFRESH * window_s:
        return voices
    others = tuple(each for each in voices if each.writer != writer)
    return (*others[-(VOICES_MAX - 1) :], Voice(writer, now_s, failures))


def of(voices: tuple[Voice, ...], writer: Writer | None) -> Voice | None:
    """What a process said last."""
    return next((each for each in voices if each.writer == writer), None)


def failures_of(voices: tuple[Voice, ...], writer: Writer | None) -> int:
    """How often in a row the target has failed for a process."""
    found = of(voices, writer)
    return 0 if found is None else found.failures


def forgiven(voices: tuple[Voice, ...]) -> tuple[Voice, ...]:
    """The target serves again: nobody has seen it fail since."""
    return tuple(Voice(each.writer, each.at_s) if each.failures else each for each in voices)


def moved(voices: tuple[Voice, ...], by_s: float, now_s: float) -> tuple[Voice, ...]:
    """The same on a clock that differs by `by_s`. Nobody has spoken later than now, nor more of them than are kept."""
    return tuple(
        Voice(each.writer, min(each.at_s + by_s, now_s), each.failures) for each in voices[-VOICES_MAX:]
    )


def standing(
    voices: tuple[Voice, ...],
    writer: Writer,
    gone: Container[Writer],
    *,
    opened_s: float,
    now_s: float,
    window_s: float,
    quorum: float,
) -> Standing:
    """Whether an opening binds a process.

    It does if the target failed for that process, too; if more than `quorum` of the processes that call it see it
    fail; and if nobody else calls it, since then the opening is all that is known. A process calls it that has
    reported within `window_s` and hasn't ended; who asks is one of them.
    """
    mine = of(voices, writer)
    others = [
        each
        for each in voices
        if each.writer != writer and each.writer not in gone and each.at_s > now_s - window_s
    ]
    own = mine is not None and mine.failures > 0 and mine.at_s > opened_s - window_s
    failing, processes = sum(each.failures > 0 for each in others) + own, len(others) + 1
    if own:
        return Standing(True, "this process saw it fail", failing, processes)
    if not others:
        return Standing(True, "no other process calls it now", failing, processes)
    told = f"{failing or 'none'} of {processes} processes saw it fail"
    return Standing(failing > quorum * processes, told, failing, processes)
