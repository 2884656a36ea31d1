"""Real workers, each a process, on a real Postgres and, where it is asked for, a real Temporal server."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
from tests.servers.postgres import Server

from gonogo import app
from gonogo.app.engines import Carrier, submit_run
from gonogo.app.options import Options, Start
from gonogo.core.state import State
from gonogo.journal.postgres.runs import PostgresRuns
from gonogo.journal.restoring import state_of

ENDS_WITH_US = """
import ctypes, os, sys
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG, SIGKILL
os.execv(sys.argv[1], sys.argv[1:])
"""
"""A server whose tests were killed is no use to anybody."""
_WRONG_CLOCK = """
import time
def ahead(right):
    return lambda: right() + type(right())({ahead_s} * (1 if right is time_s else 1_000_000_000))
time_s, time_ns = time.time, time.time_ns
time.time, time.time_ns = ahead(time_s), ahead(time_ns)
"""
UP_S = 60.0
END_S = 90.0
HEAD = 'version: "1.0"\n'
ITEMS = 12


@dataclass
class World:
    """A store, an engine, and workers that come and go. They all work in `folder`, and reach the store by `way` where
    that is another than ours.
    """

    store: str
    folder: Path
    carrier: Carrier
    way: str = ""
    workers: list[subprocess.Popen[str]] = field(default_factory=list)
    listeners: list[threading.Thread] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.options = Options(runs=self.store)
        self.runs = PostgresRuns(self.store)

    # --- workers

    def worker(self, *arguments: str, clock_s: float = 0.0) -> subprocess.Popen[str]:
        """One more; returns once it takes work."""
        process = self.starting(*arguments, clock_s=clock_s)

        def is_up() -> bool:
            if process.poll() is not None:
                raise AssertionError("a worker ended at once:\n" + "\n".join(self.said[-5:]))
            return self.began(process) > 0

        self.wait(is_up, "a worker")
        return process

    def began(self, process: subprocess.Popen[str]) -> int:
        """How often it said that it takes work: once more when it began anew."""
        return sum(f"[{process.pid}]" in line and " takes work " in line for line in self.said)

    def starting(self, *arguments: str, clock_s: float = 0.0) -> subprocess.Popen[str]:
        """One more, which takes work soon; its clock is ahead by `clock_s`."""
        where = ["--url", self.carrier.address] if self.carrier.address else []
        where += ["--queue", self.carrier.queue] if self.carrier.queue else []
        command = [
            sys.executable,
            "-m",
            "gonogo",
            "worker",
            "--engine",
            self.carrier.name,
            *where,
            *arguments,
        ]
        process = subprocess.Popen(
            command,
            cwd=self.folder,
            env={**os.environ, **self._wrong_clock(clock_s), "GONOGO_STORE": self.way or self.store},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.listen(process)
        return process

    def listen(self, process: subprocess.Popen[str]) -> None:
        """Keep what a process says, and end it with the rest."""
        self.workers.append(process)
        self.listeners.append(threading.Thread(target=self._listen, args=(process,), daemon=True))
        self.listeners[-1].start()

    def _wrong_clock(self, ahead_s: float) -> dict[str, str]:
        """What lets Python's wall clock be wrong."""
        if not ahead_s:
            return {}
        folder = self.folder / f"clock{ahead_s:g}"
        folder.mkdir(exist_ok=True)
        (folder / "sitecustomize.py").write_text(_WRONG_CLOCK.format(ahead_s=ahead_s))
        paths = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
        return {"PYTHONPATH": os.pathsep.join(paths)}

    def close(self) -> None:
        """End all that is still there."""
        for process in self.workers:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
            process.wait(30)
        for listener in self.listeners:
            listener.join(30)
        self.runs.close()

    def _listen(self, process: subprocess.Popen[str]) -> None:
        assert process.stderr is not None
        with process.stderr as said:
            for line in said:
                self.said.append(f"[{process.pid}] {line.rstrip()}")

    # --- runs

    def submit(self, text: str, **given: Any) -> str:
        """Have a workflow run; its id."""
        return submit_run(app.loads(HEAD + text).plan, Start(**given), self.options, self.carrier)

    def host(self, run_id: str) -> int | None:
        """The process that has the run now."""
        with psycopg.connect(self.store) as connection:
            found = connection.execute(
                "select owner_pid from gonogo_runs where run_id = %s", [run_id]
            ).fetchone()
        return found[0] if found else None

    def state(self, run_id: str) -> State | None:
        """How the run stands; None before it has begun."""
        records = list(self.runs.records_after(run_id, -1))
        return state_of(records) if records else None

    def ended(self, run_id: str) -> State:
        """The run once it is over or waits."""
        found: list[State] = []

        def is_over() -> bool:
            state = self.state(run_id)
            if state is not None and state.finished is not None:
                found.append(state)
            return bool(found)

        self.wait(is_over, f"run {run_id}")
        return found[-1]

    def lines(self, name: str) -> list[str]:
        """What steps wrote into a file of the folder."""
        path = self.folder / name
        return path.read_text().splitlines() if path.exists() else []

    def wait(self, until: Callable[[], bool], what: str, within_s: float = END_S) -> float:
        """How long it took; fails after a while, with what the workers said."""
        began_s = time.monotonic()
        while not until():
            if time.monotonic() - began_s > within_s:
                raise AssertionError(f"{what} didn't come; workers said:\n" + "\n".join(self.said[-40:]))
            threading.Event().wait(0.02)
        return time.monotonic() - began_s


@contextmanager
def world(server: Server, folder: Path, temporal: str = "") -> Iterator[World]:
    """A world with a database of its own, and nobody in it."""
    carrier = Carrier("temporal", temporal, f"q-{secrets.token_hex(4)}") if temporal else Carrier("dbos")
    made = World(server.new_database(), folder, carrier)
    try:
        yield made
    finally:
        made.close()
        server.drop(made.store)


@contextmanager
def temporal_server() -> Iterator[str]:
    """The development server, in memory; its address. By itself it takes up work twenty times a second only."""
    port = free_port()
    command = [
        sys.executable, "-c", ENDS_WITH_US, str(Path(sys.executable).with_name("temporal")),
        "server", "start-dev", "--headless", "--port", str(port), "--ip", "127.0.0.1", "--log-level", "never",
        "--dynamic-config-value", "history.transferProcessorMaxPollRPS=2000",
    ]  # fmt: skip
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        until_open(port)
        yield f"127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait(30)


def list_of_changes(call_s: float) -> str:
    """ITEMS calls that change something outside, four at a time, each of `call_s` seconds; each says so in `done`."""
    return f"""
steps:
  list:
    type: script
    forEach: true
    forEach_concurrency: 4
    content: "return Array.from({{length: {ITEMS}}}, (_, i) => i)"
  each:
    type: command
    depends_on: [list]
    mutates: true
    exec: "echo {{{{ item | shell_escape }}}} >> done; sleep {call_s:g}"
  sum: {{type: script, fanout: reduce, depends_on: [each], content: "return outputs.each.length"}}
"""


def pause(seconds: float) -> None:
    """Let an outage last."""
    threading.Event().wait(seconds)


def free_port() -> int:
    """One that nobody has now."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def until_open(port: int) -> None:
    """Somebody listens there."""
    end_s = time.monotonic() + UP_S
    while time.monotonic() < end_s:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        threading.Event().wait(0.05)
    raise AssertionError("the Temporal server didn't start")
