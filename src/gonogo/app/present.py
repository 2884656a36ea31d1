"""Workers that are there: what one says of itself, what there are, and that nobody takes what a run waits for."""

from __future__ import annotations

import asyncio
import logging
import os
import shlex
import threading
import time

from gonogo.app.engines import Carrier, address_of, carrier_of, start_of
from gonogo.app.options import Options, opened
from gonogo.app.stranded import Stranded
from gonogo.engines.base import WIRE, Limits
from gonogo.errors import GonogoError, JournalError
from gonogo.hosts.base import LogLine
from gonogo.journal.pool import Pool
from gonogo.journal.postgres.workers import About, Present, Waiting, Workers

RENEW_S = 2.0
LOOK_S = 2.5
"""What is so at two looks is told."""
PATIENCE_S = 1.0

log = logging.getLogger("gonogo.worker")


def workers_in(options: Options) -> tuple[list[Present], Waiting]:
    """The workers of a store, and what waits for one. Raises JournalError, UsageError."""
    workers = _workers(options)
    try:
        return workers.living(), workers.waiting()
    finally:
        workers.close()


def looking_for_stranded(name: str, pool: Pool, options: Options) -> Stranded:
    """By a connection of its own: a look that takes long must not keep back what this worker says of itself."""
    return Stranded(name, pool, _workers(options).stranded)


def unserved(living: list[Present], waiting: Waiting) -> list[str]:
    """Labels with calls that wait, which no worker has."""
    served = {"", *(label for one in living for label in one.about.labels)} if living else set()
    return sorted(label for label in waiting.calls if label not in served)


class Presence:
    """One worker's row, renewed by a thread of its own, which tells when the store is away and when it is back."""

    def __init__(self, name: str, carrier: Carrier, limits: Limits, options: Options) -> None:
        self._name = name
        self._about = _about(carrier, limits)
        self._workers = _workers(options)
        self._away_since_s: float | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="gonogo-present", daemon=True)

    def start(self) -> None:
        """It takes work from now on."""
        self._thread.start()

    def stop(self) -> None:
        """It takes none any more."""
        self._over.set()
        if self._thread.ident is not None:
            self._thread.join(1.0)
        if not self._thread.is_alive():
            self._workers.remove(self._name)
            self._workers.close()

    def _run(self) -> None:
        while not self._over.is_set():
            self._renew()
            self._over.wait(RENEW_S)

    def _renew(self) -> None:
        try:
            self._workers.renew(self._name, self._about)
        except JournalError as problem:
            if self._away_since_s is None:
                self._away_since_s = time.monotonic()
                log.warning("the store is away: %s", problem.message)
        else:
            if self._away_since_s is not None:
                log.warning("the store answers again after %.0f s", time.monotonic() - self._away_since_s)
            self._away_since_s = None


class Attended:
    """Whether anybody takes what a run waits for."""

    def __init__(self, run_id: str, options: Options) -> None:
        self._run_id = run_id
        self._options = options
        self._told = ""

    async def watch(self) -> None:
        """Tell when nobody does, what would help, and when somebody does after all."""
        try:
            with opened(self._options) as (runs, _):
                carrier = carrier_of(start_of(runs, self._run_id))
            workers = _workers(self._options)
        except GonogoError:
            return
        if carrier is None:
            return
        before = ""
        try:
            while True:
                await asyncio.sleep(LOOK_S)
                now = await asyncio.to_thread(self._looked, carrier, workers)
                if now == before:
                    self._say(now)
                before = now
        finally:
            workers.close()

    def _say(self, now: str) -> None:
        if now != self._told:
            text = now or f"run {self._run_id}: a worker takes it now"
            self._options.log(LogLine("", "", "", "warn", text))
        self._told = now

    def _looked(self, carrier: Carrier, workers: Workers) -> str:
        """What is missing; empty when nothing is, or that can't be told."""
        try:
            nobody, labels = workers.waits(self._run_id)
            living = [one.about for one in workers.living() if _takes(one.about, carrier)]
        except JournalError:
            return self._told
        if not living and (nobody or labels):
            return f"no worker takes work of {_queue(carrier)}; start one: {_command(carrier)}"
        missing = sorted(labels - {"", *(label for one in living for label in one.labels)})
        if missing:
            one = missing[0]
            return f"no worker takes calls for the label {one}; start one: {_command(carrier)} --label {one}"
        return ""


def _takes(one: About, carrier: Carrier) -> bool:
    queue = carrier.queue if carrier.address else ""
    return (one.engine, one.queue, one.wire) == (carrier.name, queue, WIRE)


def _queue(carrier: Carrier) -> str:
    return f"{carrier.name}, queue {carrier.queue}" if carrier.address else f"{carrier.name} in this store"


def _command(carrier: Carrier) -> str:
    where = f" --url {shlex.quote(carrier.address)}" if carrier.address else ""
    queue = f" --queue {shlex.quote(carrier.queue)}" if carrier.address and carrier.queue else ""
    return f"gonogo worker --engine {carrier.name}{where}{queue}"


def _about(carrier: Carrier, limits: Limits) -> About:
    from gonogo import __version__

    return About(
        engine=carrier.name,
        machine=os.uname().nodename,
        pid=os.getpid(),
        labels=limits.labels,
        runs=limits.segments,
        calls=limits.calls,
        version=__version__,
        wire=WIRE,
        queue=carrier.queue if carrier.address else "",
    )


def _workers(options: Options) -> Workers:
    return Workers(address_of(options), patience_s=PATIENCE_S)
