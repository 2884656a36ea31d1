"""Which process this is, and which others have ended: whose word counts about a breaker that processes share.

Only of processes in one place (a boot of a machine, a namespace of process numbers) can it be known that they have
ended; others fall silent, and count no more when their time is up (`voices.py`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from gonogo.gate.voices import Writer


class Processes:
    """What is known of processes here. `proc` is where the system tells of them."""

    __slots__ = ("_boot", "_me", "_number", "_proc")

    def __init__(self, proc: str | Path = "/proc") -> None:
        self._proc = Path(proc)
        self._boot = _text(self._proc / "sys/kernel/random/boot_id").strip()
        self._number = 0
        self._me: Writer | None = None

    def me(self) -> Writer:
        """This process; another one after a fork."""
        number = os.getpid()
        if self._me is None or number != self._number:
            began = self._began(str(number))
            place = self._place() if began else ""
            self._number, self._me = number, Writer(f"{os.uname().nodename}:{number}", began, place)
        return self._me

    def gone(self, writers: Iterable[Writer]) -> frozenset[Writer]:
        """Those that have ended, as far as that can be known."""
        here = self.me().place
        return frozenset(each for each in writers if here and each.place == here and not self._runs(each))

    def _runs(self, writer: Writer) -> bool:
        number = writer.name.rpartition(":")[2]
        return number.isdecimal() and self._began(number) == writer.began

    def _began(self, number: str) -> str:
        """When the process of this number began, in the system's ticks; empty when there is none."""
        _, _, told = _text(self._proc / number / "stat").rpartition(")")
        fields = told.split()
        return fields[19] if len(fields) > 19 and fields[0] not in ("Z", "X") else ""

    def _place(self) -> str:
        try:
            namespace = os.readlink(self._proc / "self/ns/pid")
        except OSError:
            return ""
        return f"{self._boot}/{namespace}" if self._boot else ""


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
