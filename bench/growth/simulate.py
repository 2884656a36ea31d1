"""The two busiest hours of days of a million runs and more: arrivals, the store, workers, people, failures.

A run is a chain of phases: so many commits of the store, then a call on some worker, or a wait for a person. How many
commits a phase has comes from real runs (`shapes.py`), how a run divides into phases from the core itself, which is
run here once for each shape. The store is one server that takes commits in the order they come; workers are places for
calls. Arrivals are random, twice as many as on the day's average. A hundred thousand runs wait for people from the
start.
"""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from bench.growth.shapes import SHAPES, Shape
from gonogo import app
from gonogo.app.options import Options
from gonogo.journal.memory import MemoryRuns

DAY_S = 86_400.0
SPAN_S = 7_200.0
MINUTES = 121
PEAK = 2.0
PARKED = 100_000
APPROVAL = next(each for each in SHAPES if each.waits_s)
COMMITS_PER_S = 5_000.0
"""What one Postgres takes with its log on an ordinary disk and 16 sessions; measure yours with pgbench -N."""
TAKEOVER_S = 2.0
RESTART_S = 20.0
SEED = 20_261_201


@dataclass(frozen=True, slots=True)
class World:
    """What a simulation is of. `deaths`: of workers meanwhile; `outage_s`: the store is away so long, once."""

    runs_a_day: float
    workers: int
    calls_each: int = 16
    shards: int = 1
    deaths: int = 0
    outage_s: float = 0.0


@dataclass(slots=True)
class Outcome:
    """What came of it. Delays are seconds a run took longer than on an empty system."""

    runs: int = 0
    delays: list[float] = field(default_factory=list)
    busy_s: float = 0.0
    busiest: float = 0.0
    slots_busiest: float = 0.0
    parked_most: int = 0
    repeated: int = 0
    backlog_s: float = 0.0

    def delay(self, share: float) -> float:
        """The delay that this share of runs doesn't pass."""
        ordered = sorted(self.delays)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


class Store:
    """Shards that each take commits one after the other."""

    def __init__(self, shards: int) -> None:
        self.free_s = [0.0] * shards
        self.work_s = [[0.0] * MINUTES for _ in range(shards)]

    def take(self, shard: int, now_s: float, commits: float) -> float:
        """When these commits are done."""
        took = commits / COMMITS_PER_S
        done = max(now_s, self.free_s[shard]) + took
        self.free_s[shard] = done
        self.work_s[shard][min(MINUTES - 1, int(now_s // 60))] += took
        return done

    def stop(self, now_s: float, seconds: float) -> None:
        """Nothing is taken for a while."""
        self.free_s = [max(now_s, free) + seconds for free in self.free_s]


class Slots:
    """Places for calls; whoever waits gets the one that is free first."""

    def __init__(self, count: int) -> None:
        self.free_s = [0.0] * count
        self.used_s = [0.0] * MINUTES

    def take(self, now_s: float, seconds: float) -> float:
        """When a call that is ready now has ended."""
        start = max(now_s, heapq.heappop(self.free_s))
        heapq.heappush(self.free_s, start + seconds)
        self.used_s[min(MINUTES - 1, int(start // 60))] += seconds
        return start + seconds


class Simulation:
    """Two hours of one world."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.random = random.Random(SEED)
        self.store = Store(world.shards)
        self.slots = Slots(world.workers * world.calls_each)
        self.outcome = Outcome()
        self.parked = 0
        self._queue: list[tuple[float, int, Callable[[float], None]]] = []
        self._number = 0

    def run(self) -> Outcome:
        """What comes of them."""
        for at_s in self._deaths():
            self._at(at_s, self._die)
        for _ in range(PARKED):
            shard, left_s = (
                self.random.randrange(self.world.shards),
                self.random.expovariate(1 / APPROVAL.waits_s),
            )
            self.parked += 1
            if left_s < SPAN_S:
                self._at(left_s, lambda at_s, shard=shard: self._answered(APPROVAL, shard, at_s))  # type: ignore[misc]
        if self.world.outage_s:
            self._at(SPAN_S / 2, lambda now_s: self.store.stop(now_s, self.world.outage_s))
        self._at(0.0, self._arrive)
        while self._queue:
            now_s, _, then = heapq.heappop(self._queue)
            then(now_s)
        return self._summed()

    def _at(self, at_s: float, then: Callable[[float], None]) -> None:
        self._number += 1
        heapq.heappush(self._queue, (at_s, self._number, then))

    def _deaths(self) -> list[float]:
        return sorted(self.random.uniform(0, SPAN_S) for _ in range(self.world.deaths))

    def _die(self, now_s: float) -> None:
        """The calls of a worker are carried again, and its places are missing until it is back."""
        for _ in range(self.world.calls_each):
            free = heapq.heappop(self.slots.free_s)
            heapq.heappush(self.slots.free_s, max(free, now_s) + RESTART_S)
        in_use = self.slots.used_s[min(MINUTES - 1, int(now_s // 60))] / 60 / self.world.workers
        self.outcome.repeated += round(min(in_use, self.world.calls_each))

    def _arrive(self, now_s: float) -> None:
        if now_s >= SPAN_S:
            return
        shape = self.random.choices(SHAPES, [each.share for each in SHAPES])[0]
        self._begin(shape, now_s)
        self._at(now_s + self.random.expovariate(self.world.runs_a_day / DAY_S * PEAK), self._arrive)

    def _begin(self, shape: Shape, now_s: float) -> None:
        shard = self.random.randrange(self.world.shards)
        self.outcome.runs += 1
        if shape.waits_s:
            self._park(shape, shard, now_s)
        elif shape.name.startswith("list"):
            self._fan_out(shape, shard, now_s)
        else:
            self._chain(shape, shard, now_s, now_s, shape.calls)

    def _chain(self, shape: Shape, shard: int, began_s: float, now_s: float, left: int) -> None:
        """Commits, a call, commits, a call…"""
        done = self.store.take(shard, now_s, shape.commits / (shape.calls + 1))
        if left == 0:
            self._end(shape, began_s, done)
            return
        ended = self.slots.take(done, self.random.expovariate(1 / shape.call_s))
        self._at(ended, lambda at_s: self._chain(shape, shard, began_s, at_s, left - 1))

    def _park(self, shape: Shape, shard: int, now_s: float) -> None:
        done = self.store.take(shard, now_s, shape.commits / 2)
        self.parked += 1
        self.outcome.parked_most = max(self.outcome.parked_most, self.parked)
        answered = done + self.random.expovariate(1 / shape.waits_s)
        self._at(answered, lambda at_s: self._answered(shape, shard, at_s))

    def _answered(self, shape: Shape, shard: int, now_s: float) -> None:
        self.parked -= 1
        self._end(shape, now_s, self.store.take(shard, now_s, shape.commits / 2))

    def _fan_out(self, shape: Shape, shard: int, now_s: float) -> None:
        """64 items at a time; each wave is committed together."""
        waves, each = math.ceil(shape.calls / 64), shape.commits / math.ceil(shape.calls / 64)
        self._wave(shape, shard, now_s, now_s, waves, each)

    def _wave(
        self, shape: Shape, shard: int, began_s: float, now_s: float, left: int, commits: float
    ) -> None:
        done = self.store.take(shard, now_s, commits)
        if left == 0:
            self._end(shape, began_s, done)
            return
        count = min(64, shape.calls)
        ended = max(self.slots.take(done, shape.call_s) for _ in range(count))
        self._at(
            ended, lambda at_s: self._wave(shape, shard, began_s, at_s, left - 1, commits if left > 1 else 0)
        )

    def _end(self, shape: Shape, began_s: float, now_s: float) -> None:
        if not shape.calls or shape.waits_s:
            self.outcome.delays.append(now_s - began_s)

    def _summed(self) -> Outcome:
        minutes = [max(each) / 60 for each in zip(*(work[:-1] for work in self.store.work_s), strict=True)]
        self.outcome.busy_s = sum(map(sum, self.store.work_s)) / self.world.shards
        self.outcome.busiest = max(minutes)
        places = self.world.workers * self.world.calls_each
        self.outcome.slots_busiest = max(self.slots.used_s[:-1]) / 60 / places
        self.outcome.backlog_s = max(self.outcome.delays, default=0.0)
        return self.outcome


WORLDS = (
    ("a million a day", World(1e6, 40)),
    ("… 40 workers die", World(1e6, 40, deaths=40)),
    ("… the store is away for 30 s", World(1e6, 40, outage_s=30.0)),
    ("two million a day", World(2e6, 80)),
    ("five million a day", World(5e6, 200)),
    ("five million a day, four shards", World(5e6, 200, shards=4)),
)


def turns_of(shape: Shape) -> tuple[int, int]:
    """Records and bytes that the core writes for a run of this shape, here and now."""
    runs = MemoryRuns()
    result = app.start_run(app.loads(shape.text), None, Options(runs=runs))
    lines = runs.lines(result.run_id)
    return len(lines), sum(map(len, lines))


def simulate() -> None:
    """Print what the core writes for each shape, then what becomes of each world."""
    for shape in SHAPES[:-1]:
        records, size = turns_of(shape)
        print(f"{shape.name:16} {records:6} records {size / 1024:8.1f} KiB a run; {shape.commits:g} commits")
    print()
    heads = f"{'store, busiest minute':>22} {'call places':>12} {'delay 50 %':>11} {'99 %':>9} {'most':>9}"
    print(f"{'world':38} {heads} {'parked':>8}")
    for name, world in WORLDS:
        told = Simulation(world).run()
        print(
            f"{name:38} {told.busiest:21.0%} {told.slots_busiest:12.0%} {told.delay(0.5) * 1000:8.1f} ms"
            f" {told.delay(0.99) * 1000:6.0f} ms {told.backlog_s:7.1f} s {told.parked_most:8,}"
        )
