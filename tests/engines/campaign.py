"""Kills at random moments of workers that carry random workflows, with a server outside that counts what was done.

Twenty runs are under way at a time, on three workers; whoever dies is replaced. With `--freezes` every other one stands
still for some seconds instead, and wakes up when others have its work. At the end of each run must hold: no
mutating call was made twice, no step that had ended was run again, and once the doubts are answered with the truth the
run comes to what an undisturbed one comes to on one machine. The normal tests do a few. As many as one likes:

    python -m tests.engines.campaign --engine dbos --kills 100 --seed 0
"""

from __future__ import annotations

import argparse
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.engines.world import World, temporal_server, world
from tests.hostile import kill_plans
from tests.hostile.counting import STAGES, Counting, counting
from tests.servers.postgres import Server, running

import gonogo
from gonogo import app
from gonogo.app.engines import submit_run
from gonogo.app.options import Options, Start
from gonogo.core import decisions as d
from gonogo.core.scope import index_of
from gonogo.errors import UsageError
from gonogo.journal.view import Waiting

WORKERS = 3
RUNS = 20
PAUSE_S = (0.05, 1.5)
FROZEN_S = (3.0, 9.0)
"""Some wake up before anybody has missed them."""
LOOK_S = 0.05
RUN_ENDS_WITHIN_S = 300.0
FAR_SIDE_S = 1.0
"""So long a person waits before saying that a call was never made: it may still be on its way from a dead worker."""
FAR = (
    'far: {type: http, runs_on: far, url: "BASE/post/far", body: {a: 1}, allow_private: true,'
    " criticality: external}"
)
ASK = "ask: {type: human-input, prompt: well, depends_on: [s0]}"


@dataclass
class Carried:
    """One workflow: undisturbed on one machine, and carried by workers that are killed. `wrong`: what doesn't hold."""

    seed: int
    folder: Path
    base: str
    counts: Counting
    carrier: World
    wrong: list[str] = field(default_factory=list)
    doubts: dict[str, str] = field(default_factory=dict)
    words: list[tuple[float, str, str, str]] = field(default_factory=list)
    seen: dict[tuple[str, str, str], float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.made = kill_plans.make(self.seed)
        self.made.steps += [FAR, ASK]
        self.made.effects["far"], self.made.counted["far"] = kill_plans.MUTATES, "post/far"
        self.began_s = time.monotonic()
        self.run_id = ""

    def submit(self) -> None:
        """Have the workers carry it."""
        plan = self._workflow("killed").plan
        self.run_id = submit_run(plan, Start(), self.carrier.options, self.carrier.carrier)

    def is_over(self) -> bool:
        """Whether it is; what it waits for is answered on the way."""
        if self.carrier.runs.submitted(self.run_id) is None:
            view = gonogo.read(self.run_id, runs=self.carrier.store)
            if view.verdict in ("GO", "NO-GO"):
                return True
            for waiting in view.waiting:
                self._answer(waiting)
        if time.monotonic() - self.began_s > RUN_ENDS_WITHIN_S:
            self.wrong.append("it hasn't ended")
            return True
        return False

    def check(self) -> None:
        """Hold it against the undisturbed run."""
        whole = self._workflow("whole").run(runs=str(self.folder / "whole" / "runs"))
        here = Options(runs=str(self.folder / "whole" / "runs"))
        assert app.answer_run(whole.run_id, "ask", "yes", options=here) is not None
        expected, found = (
            self._report(whole.run_id, str(here.runs)),
            self._report(self.run_id, self.carrier.store),
        )
        for name in expected:
            if expected[name] != found.get(name):
                self.wrong.append(f"{name}: {found.get(name)} where {expected[name]} was due")
        self._check_effects()
        self._check_records()

    def _workflow(self, name: str) -> gonogo.Workflow:
        home = self.folder / name
        home.mkdir(exist_ok=True)
        self.made.write(home, f"{self.base}/{self.seed}{name}")
        file = home / "gonogo.yaml"
        file.write_text(file.read_text().replace(">> act-", f">> {home}/act-"))
        return gonogo.load(file)

    def _answer(self, waiting: Waiting) -> None:
        """The truth, as somebody finds it out who looks at the far side."""
        step = waiting.step.rpartition(".")[2]
        word = "yes"
        if step != "ask":
            if not waiting.in_doubt or self.made.effects.get(step) != kill_plans.MUTATES:
                self.wrong.append(f"{step} waits for a person: {waiting.prompt}")
            word = "done" if self._acted("killed", step, waiting.scope) else "again"
            place = waiting.run_id or self.run_id, waiting.step, waiting.scope
            if (
                word == "again"
                and time.monotonic() - self.seen.setdefault(place, time.monotonic()) < FAR_SIDE_S
            ):
                return
            self.seen.pop(place, None)
            self.doubts[step] = word
            self.words.append((time.time(), step, waiting.scope, word))
        try:
            app.answer_run(
                waiting.run_id or self.run_id,
                waiting.step,
                word,
                scope=waiting.scope,
                options=self.carrier.options,
            )
        except UsageError:
            return  # an answer of an earlier look came through meanwhile

    def _acted(self, name: str, step: str, scope: str = "") -> int:
        where = self.made.counted[step] + (f"/{index_of(scope)}" if scope else "")
        if where.startswith("act-"):
            file = self.folder / name / where
            return len(file.read_text().split()) if file.exists() else 0
        return self.counts.acted[f"/{self.seed}{name}/{where}"]

    def _scopes(self, step: str) -> list[str]:
        return [f"list#1[{index}]" for index in range(4)] if step == "each" else [""]

    def _check_effects(self) -> None:
        for step, effects in self.made.effects.items():
            for scope in self._scopes(step) if effects != kill_plans.READS else ():
                whole, killed = self._acted("whole", step, scope), self._acted("killed", step, scope)
                if whole != killed:
                    self.wrong.append(
                        f"{step} in {scope or 'the run'} was done {killed} times instead of {whole}"
                        f"; {self._evidence(step, scope)}"
                    )

    def _evidence(self, step: str, scope: str) -> str:
        """When it was done, what was said of it, and what was decided: how it came to be done twice."""
        where = self.made.counted[step] + (f"/{index_of(scope)}" if scope else "")
        done = self.counts.moments.get(f"/{self.seed}killed/{where}")
        told = [
            (record.at, record.seq, decision.__struct_config__.tag)
            for run_id in self.carrier.runs.ids()
            if run_id.partition(".")[0] == self.run_id
            for record in self.carrier.runs.records(run_id)
            for decision in record.decisions
            if getattr(decision, "step", None) == step and getattr(decision, "scope", None) == scope
        ]
        words = [word for word in self.words if word[1:3] == (step, scope)]
        return f"done at {done}; said {words}; decided {told}"

    def _check_records(self) -> None:
        """Nothing that has ended is begun again."""
        runs = self.carrier.runs
        for run_id in (each for each in runs.ids() if each.partition(".")[0] == self.run_id):
            over: set[tuple[str, str]] = set()
            for record in runs.records(run_id):
                for decision in record.decisions:
                    if isinstance(decision, d.Started) and (decision.step, decision.scope) in over:
                        self.wrong.append(
                            f"{decision.step} in {decision.scope or run_id} ran again after its end"
                        )
                    elif isinstance(decision, d.Ended) and decision.outcome == "passed":
                        over.add((decision.step, decision.scope))

    def _report(self, run_id: str, runs: str) -> dict[str, Any]:
        """Outcomes, and outputs where no person's word stands for one, nor the turn that a step had among others: what
        they count up together is what the last step gives.
        """
        view = gonogo.read(run_id, runs=runs)
        loose = {*self.made.counters, *self.doubts}
        told: dict[str, Any] = {"verdict": view.verdict, "issues": [each.message for each in view.issues]}
        for name, step in view.steps.items():
            told[name] = (step.outcome, "" if name in loose else step.output)
            if step.items is not None:
                told[f"{name} items"] = [(item.scope, item.outcome) for item in step.items]
        return told


class Killer:
    """Ends workers, one after the other: at a stage of some call most often, else at any time."""

    def __init__(
        self, here: World, counts: Counting, chance: random.Random, kills: int, *, freezes: bool = False
    ) -> None:
        self.kills = 0
        self._freezes = freezes
        self._frozen: tuple[subprocess.Popen[str], float] | None = None
        self.ended: list[subprocess.Popen[str]] = []
        self._most = kills
        self._thread = threading.Thread(target=self._run)
        self._stopped = threading.Event()
        self._here = here
        self._counts = counts
        self._chance = chance
        self._struck = threading.Event()
        self._due_s = 0.0
        self._aim()

    def __enter__(self) -> Killer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()
        self._thaw()
        self._counts.at_stage = lambda stage, path: None

    @property
    def is_done(self) -> bool:
        """Whether there were as many kills as are wanted."""
        return self.kills >= self._most

    def _run(self) -> None:
        while not (self.is_done or self._stopped.wait(LOOK_S)):
            if self._frozen is not None and time.monotonic() > self._frozen[1]:
                self._thaw()
            self._strike()

    def _thaw(self) -> None:
        if self._frozen is not None:
            self._frozen[0].send_signal(signal.SIGCONT)
            self._frozen = None

    def _strike(self) -> None:
        """Kill one when it is time, and start another."""
        if not (self._struck.is_set() or time.monotonic() > self._due_s):
            return
        self._replace_ended()
        if sum(self._is_up(each) for each in self._here.workers) < WORKERS:
            return
        victim = self._chance.choice(self._living())
        if self._freezes and self._frozen is None and self._chance.random() < 0.5:
            victim.send_signal(signal.SIGSTOP)
            self._frozen = victim, time.monotonic() + self._chance.uniform(*FROZEN_S)
        else:
            victim.kill()
            victim.wait()
            self._here.starting("--label", "far")
        self.kills += 1
        self._aim()

    def _replace_ended(self) -> None:
        """A worker has no cause to end by itself."""
        for each in self._here.workers:
            if each.poll() not in (None, -signal.SIGKILL) and each not in self.ended:
                self.ended.append(each)
                self._here.starting("--label", "far")

    def _aim(self) -> None:
        """A stage that some call comes to; or a time, if none comes there."""
        stage, count = self._chance.choice(STAGES), self._chance.randint(1, 4)
        self._struck.clear()
        self._due_s = time.monotonic() + self._chance.uniform(*PAUSE_S)
        left = [count]

        def at_stage(reached: str, path: str) -> None:
            left[0] -= reached == stage
            if not left[0]:
                self._struck.set()

        self._counts.at_stage = at_stage

    def _living(self) -> list[subprocess.Popen[str]]:
        frozen = self._frozen[0] if self._frozen is not None else None
        return [each for each in self._here.workers if each.poll() is None and each is not frozen]

    def _is_up(self, process: subprocess.Popen[str]) -> bool:
        return process.poll() is None and self._here.began(process) > 0


def campaign(
    here: World,
    folder: Path,
    *,
    kills: int,
    seed: int,
    say: Callable[[str], None],
    runs: int = RUNS,
    freezes: bool = False,
) -> tuple[int, int, list[str]]:
    """Kill until there were so many; how many kills and runs there were, and what went wrong."""
    wrong: list[str] = []
    begun = 0
    for _ in range(WORKERS):
        here.worker("--label", "far")
    chance = random.Random(f"kills {seed}")
    with counting() as (counts, base), Killer(here, counts, chance, kills, freezes=freezes) as killer:
        under_way: list[Carried] = []
        while under_way or not killer.is_done:
            while not killer.is_done and len(under_way) < runs:
                home = folder / str(seed + begun)
                home.mkdir()
                under_way.append(Carried(seed + begun, home, base, counts, here))
                under_way[-1].submit()
                begun += 1
            for each in [each for each in under_way if each.is_over()]:
                under_way.remove(each)
                each.check()
                wrong += [f"seed {each.seed}, run {each.run_id}: {one}" for one in each.wrong]
                say(
                    f"{each.seed}: {killer.kills} kills so far; {'; '.join(each.wrong) or 'ok'} {each.doubts or ''}"
                )
            threading.Event().wait(LOOK_S)
    wrong += [f"worker {each.pid} ended with {each.returncode}" for each in killer.ended]
    return killer.kills, begun, wrong


def main() -> int:
    """As a program: one line a run; 1 when something went wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", choices=("dbos", "temporal"), default="dbos")
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--freezes", action="store_true")
    asked = parser.parse_args()

    def say(line: str) -> None:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()

    with ExitStack() as stack:
        server: Server = stack.enter_context(running())
        address = stack.enter_context(temporal_server()) if asked.engine == "temporal" else ""
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        here = stack.enter_context(world(server, folder, address))
        kills, runs, wrong = campaign(
            here, folder, kills=asked.kills, seed=asked.seed, say=say, freezes=asked.freezes
        )
        if wrong:
            say("\n".join(here.said[-200:]))
    say(f"{kills} kills, {runs} runs, {len(wrong)} things went wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
