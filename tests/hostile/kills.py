"""Kills at random moments of real runs of random workflows, with a server outside that counts what was done.

After each kill and at the end must hold: no record is lost, no mutating call is made twice, no step that has ended is
run again, reading and keyed calls never wait for a person, and once the doubts are answered with the truth the run
comes to what an undisturbed one comes to. The normal tests do twenty. As many as one likes:

    python -m tests.hostile.kills --kills 1000 --seed 0
"""

from __future__ import annotations

import argparse
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.hostile import kill_plans
from tests.hostile.counting import STAGES, Counting, counting
from tests.hostile.world import adopting, ended, pause, start

import gonogo
from gonogo import app
from gonogo.core import decisions as d
from gonogo.core import events as e
from gonogo.core.scope import index_of
from gonogo.journal.records import Record
from gonogo.journal.view import Waiting

KILLS_A_RUN = 8
LIVES_MAX = 30
ENDS_WITHIN_S = 60.0
TIME_S = (0.1, 1.2)
TORN = 0.3


def _told(home: Path, run_id: str) -> Iterable[Record]:
    """A child that was killed before its first line has none, and nothing was done in it."""
    journal = home / ".gonogo/runs" / run_id / "journal.jsonl"
    return app.open_run(run_id, _runs_options(home)) if b"\n" in journal.read_bytes() else ()


@dataclass
class Moment:
    """When a life ends: at the `count`-th `stage` of a call, at so many more `records`, or after `seconds`."""

    stage: str = ""
    count: int = 0
    records: int = 0
    seconds: float = 0.0


def moment(chance: random.Random) -> Moment:
    """At the server most often: between what was done outside and what is known of it inside."""
    kind = chance.random()
    if kind < 0.5:
        return Moment(stage=chance.choice(STAGES), count=chance.choice((1, 1, 1, 2, 3, 4)))
    if kind < 0.8:
        return Moment(records=chance.randint(1, 12))
    return Moment(seconds=chance.uniform(*TIME_S))


@dataclass
class Case:
    """One workflow, run to its end with kills between. `wrong` gathers what doesn't hold."""

    seed: int
    folder: Path
    base: str
    counts: Counting
    kills: int = 0
    wrong: list[str] = field(default_factory=list)
    answered: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.chance = random.Random(f"kills {self.seed}")
        self.made = kill_plans.make(self.seed)
        self.code = 0
        self.cut_short: set[tuple[str, ...]] = set()

    # --- the lives of a run

    def go(self, kills_left: int) -> Case:
        """The undisturbed run, then the disturbed one."""
        whole, killed = self.folder / "whole", self.folder / "killed"
        for home in (whole, killed):
            home.mkdir()
            self.made.write(home, f"{self.base}/{self.seed}{home.name}")
        with adopting() as orphans:
            how = ended(start("run", cwd=whole), orphans, ENDS_WITHIN_S)
        self.code = how.code
        if how.code not in (0, 1):
            self.wrong.append(f"the undisturbed run ended with {how.code}: {how.said[-500:]}")
            return self
        for life in range(LIVES_MAX):
            may_kill = self.kills < min(KILLS_A_RUN, kills_left)
            command = self._next_command(killed, life)
            if command is None:
                break
            self._live(killed, command, moment(self.chance) if may_kill else None)
            self._check_journal(killed)
            self._tear(killed)
        else:
            self.wrong.append(f"the run hasn't ended after {LIVES_MAX} lives")
        self._check_end(whole, killed)
        return self

    def _next_command(self, home: Path, life: int) -> tuple[str, ...] | None:
        run_id = _run_id(home)
        if run_id is None:
            return ("run",)
        view = gonogo.read(run_id, runs=_runs(home))
        if view.verdict in ("GO", "NO-GO"):
            return None
        if view.verdict == "HOLD" and view.waiting:
            return self._answer(home, run_id, view.waiting[0])
        return ("resume", run_id)

    def _answer(self, home: Path, run_id: str, waiting: Waiting) -> tuple[str, ...]:
        """The truth, as somebody finds it out who looks at the far side."""
        step = waiting.step.rpartition(".")[2]
        if not waiting.in_doubt or self.made.effects.get(step) != kill_plans.MUTATES:
            self.wrong.append(f"{step} waits for a person: {waiting.prompt}")
        place = f"{waiting.step}@{waiting.scope}" if waiting.scope else waiting.step
        word = "done" if self._acted(home, step, waiting.scope) else "again"
        self.answered[place] = word
        return ("answer", waiting.run_id or run_id, place, word)

    def _live(self, home: Path, command: tuple[str, ...], until: Moment | None) -> None:
        before = _journal_bytes(home)
        with adopting() as orphans:
            running = start(*command, cwd=home)
            try:
                if until is not None:
                    self._kill(home, running, until)
            finally:
                self.counts.at_stage = lambda stage, path: None
            how = ended(running, orphans, ENDS_WITHIN_S)
        self.wrong += [f"left running: {one}" for one in how.left]
        if how.code == -signal.SIGKILL:
            self.kills += 1
            self.cut_short.add(command)
        elif command in self.cut_short and "it was answered already" in how.said:
            pass  # the answer lay there when whoever gave it was killed, and is taken up now
        elif how.code not in (0, 3, self.code):
            self.wrong.append(f"{command} ended with {how.code}: {how.said[-800:]}")
        after = _journal_bytes(home)
        for name, data in before.items():
            whole = data[: data.rfind(b"\n") + 1]
            if not after.get(name, b"").startswith(whole):
                self.wrong.append(f"records of {name} are lost")

    def _tear(self, home: Path) -> None:
        """Now and then what a kill within a write leaves: the beginning of a line, set aside when the run goes on."""
        path = next((path for path in _journals(home) if path.parent.name == _run_id(home)), None)
        if (
            path is None
            or self.chance.random() > TORN
            or gonogo.read(path.parent.name, runs=_runs(home)).verdict
        ):
            return
        line = path.read_bytes().splitlines(keepends=True)[-1]
        with path.open("ab") as file:
            file.write(line[: self.chance.randint(1, len(line) - 2)])

    def _kill(self, home: Path, running: subprocess.Popen[bytes], until: Moment) -> None:
        passed = 0

        def at_stage(stage: str, path: str) -> None:
            nonlocal passed
            passed += stage == until.stage
            if until.stage and passed == until.count:
                running.kill()

        self.counts.at_stage = at_stage
        enough = _records(home) + until.records if until.records else None
        end = time.monotonic() + (until.seconds or ENDS_WITHIN_S)
        while running.poll() is None and time.monotonic() < end:
            if enough is not None and _records(home) >= enough:
                break
            pause(0.005)
        if not until.stage:
            running.kill()

    # --- what must hold

    def _acted(self, home: Path, step: str, scope: str) -> int:
        where = self.made.counted[step] + (f"/{index_of(scope)}" if scope else "")
        if where.startswith("act-"):
            file = home / where
            return len(file.read_text().split()) if file.exists() else 0
        return self.counts.acted[f"/{self.seed}{home.name}/{where}"]

    def _check_journal(self, home: Path) -> None:
        """Nothing was done that the journal doesn't know of; nothing that has ended is begun again."""
        known: set[str] = set()
        for run_id in app.run_ids(_runs_options(home)) if _run_id(home) else ():
            over: set[tuple[str, str]] = set()
            for record in _told(home, run_id):
                for decision in record.decisions:
                    if isinstance(decision, d.Started):
                        known.add(decision.step)
                        if (decision.step, decision.scope) in over:
                            self.wrong.append(
                                f"{decision.step} in {decision.scope or run_id} ran again after its end"
                            )
                    elif isinstance(decision, d.Ended) and decision.outcome == "passed":
                        over.add((decision.step, decision.scope))
        for step, effects in self.made.effects.items():
            if effects == kill_plans.READS:
                continue
            counts = [self._acted(home, step, scope) for scope in self._scopes(step)]
            if any(counts) and step not in known:
                self.wrong.append(f"{step} was done, and no record says that it was begun")
            if max(counts, default=0) > 1:
                self.wrong.append(f"{step} was done {max(counts)} times")

    def _scopes(self, step: str) -> list[str]:
        return [f"list#1[{index}]" for index in range(4)] if step == "each" else [""]

    def _check_end(self, whole: Path, killed: Path) -> None:
        expected, found = self._report(whole), self._report(killed)
        for name in expected:
            if expected[name] != found.get(name):
                self.wrong.append(f"{name}: {found.get(name)} where {expected[name]} was due")
        for step, effects in self.made.effects.items():
            for scope in self._scopes(step) if effects != kill_plans.READS else ():
                if self._acted(whole, step, scope) != self._acted(killed, step, scope):
                    self.wrong.append(f"{step} in {scope or 'the run'} did other things outside")
        self._check_reads(whole, killed)

    def _check_reads(self, whole: Path, killed: Path) -> None:
        """A call that has ended is paid for once: beyond the undisturbed run's there is at most one a lost call."""
        lost = 0
        for run_id in app.run_ids(_runs_options(killed)):
            lost += sum(isinstance(record.event, e.CallLost) for record in _told(killed, run_id))
        asked = {home.name: self._asked(home) for home in (whole, killed)}
        if asked["killed"] > asked["whole"] + lost:
            self.wrong.append(
                f"{asked['killed']} calls were made where {asked['whole']} and {lost} lost ones were due"
            )

    def _asked(self, home: Path) -> int:
        prefix = f"/{self.seed}{home.name}/"
        return sum(count for path, count in self.counts.asked.items() if path.startswith(prefix))

    def _report(self, home: Path) -> dict[str, Any]:
        """What the run came to: outcomes, and outputs where no person's word stands for one."""
        run_id = _run_id(home)
        if run_id is None:
            return {}
        view = gonogo.read(run_id, runs=_runs(home))
        told: dict[str, Any] = {"verdict": view.verdict, "issues": [each.message for each in view.issues]}
        for name, step in view.steps.items():
            doubted = any(place.partition("@")[0] == name for place in self.answered)
            hidden = doubted or name in self._doubted() or name in self.made.counters
            told[name] = (step.outcome, "" if hidden else step.output)
            if step.items is not None:
                told[f"{name} items"] = [(item.scope, item.outcome) for item in step.items]
        # Which of two steps counts first, if neither waits for the other, is a matter of chance.
        told["counted"] = sorted(str(view.steps[name].output) for name in self.made.counters)
        return told

    def _doubted(self) -> set[str]:
        return {place.partition("@")[0] for place in self.answered}


def _runs(home: Path) -> str:
    return str(home / ".gonogo" / "runs")


def _runs_options(home: Path) -> app.Options:
    return app.Options(runs=_runs(home))


def _journals(home: Path) -> list[Path]:
    return sorted(home.glob(".gonogo/runs/*/journal.jsonl"))


def _journal_bytes(home: Path) -> dict[str, bytes]:
    return {path.parent.name: path.read_bytes() for path in _journals(home)}


def _run_id(home: Path) -> str | None:
    """The run that isn't beneath another one; None before its first record."""
    found = [path for path in _journals(home) if "." not in path.parent.name and b"\n" in path.read_bytes()]
    return found[0].parent.name if found else None


def _records(home: Path) -> int:
    return sum(data.count(b"\n") for data in _journal_bytes(home).values())


def campaign(kills: int, seed: int, say: Any) -> tuple[int, list[str]]:
    """Kill until there were so many kills; how many there were, and what went wrong."""
    done, wrong = 0, []
    with counting() as (counts, base):
        while done < kills:
            with tempfile.TemporaryDirectory() as folder:
                case = Case(seed, Path(folder), base, counts).go(kills - done)
            done += case.kills
            wrong += [f"seed {seed}: {one}" for one in case.wrong]
            words = f", answered {case.answered}" if case.answered else ""
            say(f"{seed}: {case.kills} kills{words}: {'; '.join(case.wrong) or 'ok'}")
            seed += 1
    return done, wrong


def main() -> int:
    """As a program: one line a workflow; 1 when something went wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()

    def say(line: str) -> None:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()

    done, wrong = campaign(asked.kills, asked.seed, say)
    say(f"{done} kills, {len(wrong)} things went wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
