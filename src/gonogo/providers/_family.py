"""Who belongs to a started command, and how all of them are ended.

A member is: the process started (it leads a session and group of its own), whatever is in that session,
whatever carries the call's mark in its environment, and whatever descends from one of these. The mark finds
a child that made a session of its own (`setsid`) and whose parent is gone. On systems without /proc only
the process group is known: there a child that left the group survives. What no system offers a plain user
is to find a child that left the session, wiped its environment and lost its parent: that is also how to
leave a server running on purpose (`env -u GONOGO_CALL setsid server`).
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import chain, repeat

import anyio
from msgspec import Struct, field

MARK = "GONOGO_CALL"
GRACE_S = 1.5
"""From TERM to KILL. With what comes after it must fit into the two seconds of a cancel (law 7)."""

_POLL_S = (0.005, 0.01, 0.02, 0.05, 0.1)
_KILL_ROUNDS = 10
_EMPTY_AGAIN_S = (0.0, 0.0001, 0.001)
"""Pauses after each look at an empty environment; few processes really have one."""
_WINDOW_S = 2.0
"""Within this time process ids can't have gone round once, so the newest ids are enough to look at."""


class Member(Struct, frozen=True):
    """One living process."""

    pid: int
    parent: int
    group: int
    session: int


Reap = Callable[[], object]
"""Collects the leader's status without waiting, so that a dead leader doesn't look alive (`Popen.poll`)."""


class Family(Struct):
    """The processes of one command. `leader` is the process id of the one started."""

    leader: int
    mark: str
    started_s: float = field(default_factory=time.monotonic)

    def members(self) -> tuple[int, ...]:
        """Process ids alive now, the leader's included. Zombies don't count: they are dead."""
        if not _has_proc():
            return (self.leader,) if _signal_group(self.leader, 0) else ()
        return tuple(sorted(member.pid for member in self._look(None)))

    def left_behind(self) -> tuple[int, ...]:
        """Members that outlive the leader, looked for cheaply: asked after each command that ended by itself."""
        recent = time.monotonic() - self.started_s < _WINDOW_S
        if not (recent and _has_proc()):
            return self.members()
        return tuple(sorted(member.pid for member in self._look(self._window())))

    def signal(self, number: int) -> tuple[int, ...]:
        """Send a signal to all members, once to each; returns them."""
        if not _has_proc():
            return (self.leader,) if _signal_group(self.leader, number) else ()
        members = self._look(None)
        if any(member.group == self.leader for member in members):
            _signal_group(self.leader, number)
        for pid in self._outside_the_group(members):
            _signal_process(pid, number)
        return tuple(sorted(member.pid for member in members))

    async def end(self, reap: Reap, grace_s: float = GRACE_S) -> tuple[int, ...]:
        """TERM, then KILL what is left after `grace_s`; returns those killed. Call it shielded from cancel.

        What forks faster than it can be killed, or hangs in the kernel, is given up after half a second of
        kills.
        """
        told = self._tell()
        self.signal(signal.SIGCONT)  # a stopped process gets TERM only when it goes on
        patient = False
        try:
            gone = await self.gone_within(grace_s, reap, told)
            patient = True
        finally:
            if not patient:  # asyncio's own cancel, a second time, passes any shield: no more grace
                self.signal(signal.SIGKILL)
        return () if gone else await self._kill(reap)

    async def _kill(self, reap: Reap) -> tuple[int, ...]:
        killed: set[int] = set()
        for _ in range(_KILL_ROUNDS):
            killed.update(self.signal(signal.SIGKILL))
            if await self.gone_within(0.05, reap):
                break
        return tuple(sorted(killed))

    async def gone_within(self, seconds: float, reap: Reap, told: set[int] | None = None) -> bool:
        """True as soon as no member lives. `told` are those that got TERM; who was born too late for it gets it now."""
        with anyio.move_on_after(seconds):
            for pause_s in chain(_POLL_S, repeat(_POLL_S[-1])):
                reap()
                members = self.members()
                if not members:
                    reap()  # it may have died since
                    return True
                if told is not None and self.leader not in members:
                    _tell_the_rest(members, told)
                await anyio.sleep(pause_s)
        reap()
        return not self.members()

    def _tell(self) -> set[int]:
        """TERM to all; returns who certainly got it: one that was just leaving the group may not have."""
        outside = self._outside_the_group(self._look(None)) if _has_proc() else set()
        self.signal(signal.SIGTERM)
        if not _has_proc():
            return {self.leader}
        return outside | {member.pid for member in self._look(None) if member.group == self.leader}

    def _outside_the_group(self, members: list[Member]) -> set[int]:
        return {member.pid for member in members if member.group != self.leader}

    def _look(self, window: tuple[int, int] | None) -> list[Member]:
        alive = {member.pid: member for member in _processes(window)}
        mine = {pid for pid, member in alive.items() if self._is_member(member)}
        return [alive[pid] for pid in mine | _descendants(mine, alive)]

    def _is_member(self, member: Member) -> bool:
        return self.leader in (member.pid, member.session) or _carries(member.pid, self.mark)

    def _window(self) -> tuple[int, int] | None:
        newest = _newest_pid()
        return None if newest is None else (self.leader, newest)


def marked(environment: Mapping[str, str], token: str) -> str:
    """The mark for a new call: a call inside another call's command carries both marks."""
    outer = environment.get(MARK)
    return f"{outer}:{token}" if outer else token


def _tell_the_rest(members: tuple[int, ...], told: set[int]) -> None:
    """TERM to those without it. Only once the leader is dead: until then they may be what it cleans up with."""
    for pid in set(members) - told:
        _signal_process(pid, signal.SIGTERM)
        told.add(pid)


def _has_proc() -> bool:
    return os.path.isdir("/proc/self")


def _processes(window: tuple[int, int] | None) -> Iterator[Member]:
    for name in os.listdir("/proc"):
        if name.isdigit() and (window is None or _within(int(name), window)):
            member = _read_stat(int(name))
            if member is not None:
                yield member


def _within(pid: int, window: tuple[int, int]) -> bool:
    oldest, newest = window
    if newest >= oldest:
        return oldest <= pid <= newest
    return pid >= oldest or pid <= newest


def _read_stat(pid: int) -> Member | None:
    """None when it is gone, a zombie or a kernel thread. Field order: proc_pid_stat(5)."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read()
    except OSError:
        return None
    # The name in parentheses may hold anything, so the fields are read behind the last parenthesis.
    state, parent, group, session, *_ = text[text.rfind(b")") + 2 :].split(b" ", 4)
    if state in (b"Z", b"X") or parent == b"2":
        return None
    return Member(pid, int(parent), int(group), int(session))


def _carries(pid: int, mark: str) -> bool:
    """A process amid execve shows an empty environment for a moment, so an empty one is read again."""
    for pause_s in _EMPTY_AGAIN_S:
        environment = _environment(pid)
        if environment:
            return mark.encode() in environment
        if environment is None:
            return False
        time.sleep(pause_s)  # noqa: TID251 - at most a millisecond, and the look is one step of the loop
    return False


def _environment(pid: int) -> bytes | None:
    """None when it is gone, or another user's."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read()
    except OSError:
        return None


def _descendants(roots: set[int], alive: Mapping[int, Member]) -> set[int]:
    children: dict[int, list[int]] = {}
    for member in alive.values():
        children.setdefault(member.parent, []).append(member.pid)
    found: set[int] = set()
    waiting = list(roots)
    while waiting:
        for child in children.get(waiting.pop(), ()):
            if child not in found:
                found.add(child)
                waiting.append(child)
    return found


def _newest_pid() -> int | None:
    try:
        with open("/proc/loadavg", encoding="ascii") as file:
            return int(file.read().split()[-1])
    except (OSError, ValueError):
        return None


def _signal_group(leader: int, number: int) -> bool:
    try:
        os.killpg(leader, number)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _signal_process(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        pass  # gone meanwhile, or it changed its user: nothing a plain user can do
