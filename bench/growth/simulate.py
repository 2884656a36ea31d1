"""Half an hour at the peak of days of a million runs and more: arrivals, the store, workers, people, failures.

Every run is decided by the core itself (`carried.py`), which says what it writes, which calls it makes, which of them
are made again after a worker's death and which are in doubt. What a turn of a run costs the store was measured on real
workers (`shapes.py`). The store is one server, or several, that take commits in the order they come; a worker has
places for calls, and runs of its own; both die together. Arrivals are random, twice as many as on the day's average. A
hundred thousand runs wait for people from the start.
"""

from __future__ import annotations

import heapq
import random
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial

from bench.growth.carried import Carried, alone, plan_of
from bench.growth.shapes import SHAPES, Shape
from gonogo.core.commands import StartCall
from gonogo.core.plan import Plan

DAY_S = 86_400.0
PEAK = 2.0
PARKED = 100_000
APPROVAL = next(each for each in SHAPES if each.waits_s)
COMMITS_PER_S = 5_000.0
"""What one Postgres takes with its log on an ordinary disk and 16 sessions; measure yours with pgbench -N."""
TAKEOVER_S = 2.5
"""From a worker's death to its work being with others, as `python -m bench dbos` measures it."""
RESTART_S = 20.0
ANSWERED_S = 600.0
"""So long a person takes on average to say what became of a call in doubt."""
SEED = 20_261_201
NOBODY = -1
"""In place of the worker of a run whose own is dead, until it is taken over."""


@dataclass(frozen=True, slots=True)
class World:
    """What a simulation is of. `deaths`: of workers meanwhile; `outage_s`: the store is away so long, once."""

    runs_a_day: float
    workers: int
    span_s: float = 1_800.0
    calls_each: int = 16
    shards: int = 1
    deaths: int = 0
    outage_s: float = 0.0


@dataclass(slots=True)
class Outcome:
    """What came of it. Delays are seconds that runs without calls elsewhere took, which is what they waited for the
    store. `repeated`: calls made again; `doubts`: calls of which a person was asked; `taken_over`: runs that lost their
    worker.
    """

    runs: int = 0
    delays: list[float] = field(default_factory=list)
    busiest: float = 0.0
    places_busiest: float = 0.0
    parked_most: int = 0
    repeated: int = 0
    doubts: int = 0
    taken_over: int = 0

    def delay(self, share: float) -> float:
        """The delay that this share of runs doesn't pass."""
        ordered = sorted(self.delays)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


class Store:
    """Shards that each take commits one after the other."""

    def __init__(self, shards: int, minutes: int) -> None:
        self.free_s = [0.0] * shards
        self.work_s = [[0.0] * (minutes + 1) for _ in range(shards)]

    def take(self, shard: int, now_s: float, commits: float) -> float:
        """When these commits are done."""
        took = commits / COMMITS_PER_S
        done = max(now_s, self.free_s[shard]) + took
        self.free_s[shard] = done
        work = self.work_s[shard]
        work[min(len(work) - 1, int(now_s // 60))] += took
        return done

    def stop(self, now_s: float, seconds: float) -> None:
        """Nothing is taken for a while."""
        self.free_s = [max(now_s, free) + seconds for free in self.free_s]


@dataclass(slots=True)
class Worker:
    """What one has, and how many calls it may still begin. `life`: how often it has begun anew."""

    free: int
    life: int = 0
    runs: dict[int, Carried] = field(default_factory=dict)
    calls: dict[tuple[int, int], Carried] = field(default_factory=dict)


Waiting = tuple[int, Carried, StartCall]
"""A call without a place: its run's number, the run, the call."""


class Simulation:
    """The busiest time of one world."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.random = random.Random(SEED)
        self.store = Store(world.shards, int(world.span_s // 60))
        self.workers = [Worker(world.calls_each) for _ in range(world.workers)]
        self.used_s = [0.0] * (int(world.span_s // 60) + 1)
        self.outcome = Outcome()
        self.parked = 0
        self.plans: dict[str, Plan] = {shape.name: plan_of(shape) for shape in SHAPES}
        self.costs = {s.name: s.commits / alone(s, self.plans[s.name]).turns for s in SHAPES}
        self._idle = list(range(world.workers))
        self._waiting: deque[Waiting] = deque()
        self._queue: list[tuple[float, int, Callable[[float], None]]] = []
        self._number = 0

    def run(self) -> Outcome:
        """What comes of it."""
        span_s = self.world.span_s
        for _ in range(self.world.deaths):
            self._at(self.random.uniform(0, span_s), self._die)
        for _ in range(PARKED):
            self._wait_for_a_person(APPROVAL, self.random.randrange(self.world.shards), 0.0)
        if self.world.outage_s:
            self._at(span_s / 2, lambda now_s: self.store.stop(now_s, self.world.outage_s))
        self._at(0.0, self._arrive)
        while self._queue:
            now_s, _, then = heapq.heappop(self._queue)
            then(now_s)
        return self._summed()

    def _at(self, at_s: float, then: Callable[[float], None]) -> None:
        self._number += 1
        heapq.heappush(self._queue, (at_s, self._number, then))

    # --- runs

    def _arrive(self, now_s: float) -> None:
        if now_s >= self.world.span_s:
            return
        shape = self.random.choices(SHAPES, [each.share for each in SHAPES])[0]
        self.outcome.runs += 1
        self._begin(
            Carried(shape, self.plans[shape.name], self.random.randrange(self.world.shards), now_s), now_s
        )
        self._at(now_s + self.random.expovariate(self.world.runs_a_day / DAY_S * PEAK), self._arrive)

    def _begin(self, run: Carried, now_s: float) -> None:
        self._number += 1
        number = self._number
        run.worker = self.random.randrange(self.world.workers)
        self.workers[run.worker].runs[number] = run
        self._written(number, run, run.start(), now_s)

    def _written(self, number: int, run: Carried, calls: Iterable[StartCall], now_s: float) -> None:
        """A turn of the run is in the store: its calls may begin, or it rests."""
        done_s = self.store.take(run.shard, now_s, self.costs[run.shape.name])
        for call in calls:
            self._at(done_s, lambda at_s, call=call: self._offer(number, run, call, at_s))  # type: ignore[misc]
        if run.verdict:
            self._rest(number, run, done_s)

    def _rest(self, number: int, run: Carried, done_s: float) -> None:
        self.workers[run.worker].runs.pop(number, None)
        if run.verdict == "HOLD" and run.shape.waits_s:
            self._wait_for_a_person(run.shape, run.shard, done_s, run)
        elif run.verdict == "HOLD":
            self.outcome.doubts += run.doubts
            self._count_parked(1)
            self._at(done_s + self.random.expovariate(1 / ANSWERED_S), lambda at_s: self._answered(run, at_s))
        elif not run.shape.calls and not run.shape.waits_s:
            self.outcome.delays.append(done_s - run.began_s)

    def _wait_for_a_person(self, shape: Shape, shard: int, now_s: float, run: Carried | None = None) -> None:
        self._count_parked(1)
        at_s = now_s + self.random.expovariate(1 / shape.waits_s)
        if at_s < self.world.span_s:
            self._at(at_s, lambda now_s: self._answered(run or self._come_back(shape, shard), now_s))

    def _come_back(self, shape: Shape, shard: int) -> Carried:
        """A run that has waited since before the beginning, as whoever goes on with it reads it."""
        run = Carried(shape, self.plans[shape.name], shard, 0.0)
        run.start()
        return run

    def _answered(self, run: Carried, now_s: float) -> None:
        self._count_parked(-1)
        self._number += 1
        run.worker = self.random.randrange(self.world.workers)
        self.workers[run.worker].runs[self._number] = run
        self._written(self._number, run, run.answered(now_s), now_s)

    def _count_parked(self, by: int) -> None:
        self.parked += by
        self.outcome.parked_most = max(self.outcome.parked_most, self.parked)

    # --- calls

    def _offer(self, number: int, run: Carried, call: StartCall, now_s: float) -> None:
        if call.call in run.calls:  # else it was lost and is offered anew
            self._waiting.append((number, run, call))
            self._place(now_s)

    def _place(self, now_s: float) -> None:
        """Whoever waits longest begins, as long as a worker has a place."""
        while self._waiting and self._idle:
            name = self._idle[self.random.randrange(len(self._idle))]
            worker = self.workers[name]
            number, run, call = self._waiting.popleft()
            worker.free -= 1
            if not worker.free:
                self._idle.remove(name)
            worker.calls[number, call.call] = run
            took_s = self.random.expovariate(1 / run.shape.call_s)
            self.used_s[min(len(self.used_s) - 1, int(now_s // 60))] += took_s
            life = worker.life
            self._at(
                now_s + took_s,
                lambda at_s, given=(name, life, number, call.call): self._ended(given, at_s),  # type: ignore[misc]
            )

    def _ended(self, given: tuple[int, int, int, int], now_s: float) -> None:
        name, life, number, call = given
        worker = self.workers[name]
        if worker.life != life:
            return  # it died meanwhile, and the call with it
        run = worker.calls.pop((number, call))
        if not worker.free:
            self._idle.append(name)
        worker.free += 1
        self._heard(number, run, call, now_s)
        self._place(now_s)

    def _heard(self, number: int, run: Carried, call: int, now_s: float) -> None:
        """A run hears of its call's end as soon as somebody has it."""
        if run.worker == NOBODY:
            self._at(now_s + TAKEOVER_S, lambda at_s: self._heard(number, run, call, at_s))
        else:
            self._written(number, run, run.ended(call, now_s), now_s)

    # --- failures

    def _die(self, now_s: float) -> None:
        """What a worker had is with others soon, and its places are back later."""
        name = self.random.randrange(self.world.workers)
        worker = self.workers[name]
        lost: dict[int, list[int]] = {number: [] for number in worker.runs}
        runs = dict(worker.runs)
        for (number, call), run in worker.calls.items():
            lost.setdefault(number, []).append(call)
            runs[number] = run
        hosted = set(worker.runs)
        for number in hosted:
            runs[number].worker = NOBODY
        worker.life, worker.free, worker.calls, worker.runs = worker.life + 1, 0, {}, {}
        if name in self._idle:
            self._idle.remove(name)
        self._at(now_s + RESTART_S, partial(self._back, name, worker.life))
        self._at(now_s + TAKEOVER_S, lambda at_s: self._take_over(runs, lost, hosted, at_s))

    def _take_over(
        self, runs: dict[int, Carried], lost: dict[int, list[int]], hosted: set[int], now_s: float
    ) -> None:
        for number, calls in lost.items():
            run = runs[number]
            if number not in hosted and run.worker == NOBODY:
                self._at(now_s + TAKEOVER_S, partial(self._take_over, {number: run}, {number: calls}, set()))
                continue
            if number in hosted:
                self.outcome.taken_over += 1
                run.worker = self.random.randrange(self.world.workers)
                self.workers[run.worker].runs[number] = run
            again = run.lost(calls, now_s, host=number in hosted)
            self.outcome.repeated += len(again)
            self._written(number, run, again, now_s)

    def _back(self, name: int, life: int, now_s: float) -> None:
        worker = self.workers[name]
        if worker.life != life:
            return  # it died once more while it began anew
        worker.free = self.world.calls_each
        if name not in self._idle:
            self._idle.append(name)
        self._place(now_s)

    def _summed(self) -> Outcome:
        self.outcome.busiest = max(max(work[:-1]) for work in self.store.work_s) / 60
        self.outcome.places_busiest = (
            max(self.used_s[:-1]) / 60 / (self.world.workers * self.world.calls_each)
        )
        return self.outcome


WORLDS = (
    ("a million a day", World(1e6, 40)),
    ("… 40 workers die", World(1e6, 40, deaths=40)),
    ("… the store is away for 30 s", World(1e6, 40, outage_s=30.0)),
    ("two million a day", World(2e6, 80)),
    ("five million a day", World(5e6, 200, span_s=600.0)),
    ("five million a day, four shards", World(5e6, 200, span_s=600.0, shards=4)),
)


def simulate() -> None:
    """Print what the core writes for each shape, then what becomes of each world."""
    for shape in SHAPES:
        run = alone(shape, plan_of(shape))
        print(
            f"{shape.name:16} {run.records:6} records in {run.turns:6} turns a run; {shape.commits:g} commits"
        )
    print()
    heads = f"{'store':>6} {'places':>7} {'delay 50 %':>11} {'99 %':>9} {'most':>8}"
    print(
        f"{'world':34} {'runs':>8} {heads} {'parked':>8} {'taken over':>11} {'again':>6} {'doubts':>7} {'took':>6}"
    )
    for name, world in WORLDS:
        began_s = time.monotonic()
        told = Simulation(world).run()
        print(
            f"{name:34} {told.runs:8,} {told.busiest:6.0%} {told.places_busiest:7.0%} {told.delay(0.5) * 1000:8.1f} ms"
            f" {told.delay(0.99) * 1000:6.0f} ms {max(told.delays, default=0.0):6.1f} s {told.parked_most:8,}"
            f" {told.taken_over:11,} {told.repeated:6,} {told.doubts:7,} {time.monotonic() - began_s:4.0f} s",
            flush=True,
        )
