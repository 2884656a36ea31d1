"""Signals at random moments of a real run, then `show` and `resume`. What must hold after each: a clean end with
the right exit code, no process left, a journal that can be read, and on resume no completed step done again.

The normal tests sample a few attacks. All of them, as long as one likes:

    python -m tests.hostile.campaign --rounds 40 --seed 1
"""

from __future__ import annotations

import argparse
import json
import os
import pty
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from tests.hostile.world import Ended, adopting, ended, environment, gonogo, pause, start

WORKFLOW = """
version: "1.0"
max_parallelism: 2
steps:
  a: {type: command, exec: "echo a >> effects.txt; sleep 0.05; echo '{\\"n\\": 1}'"}
  b: {type: command, depends_on: a, if: "outputs.a.n == 1", exec: "sleep 0.1; echo b >> effects.txt"}
  c: {type: command, depends_on: a, exec: "setsid sleep 31 & env -i sleep 32 & sleep 0.1; echo c >> effects.txt"}
  d:
    type: command
    criticality: external
    assume: ["outputs.a.n == 1"]
    guarantee: ["true"]
    depends_on: [b, c]
    exec: "echo d >> effects.txt; sleep 0.1"
  e: {type: log, depends_on: d, message: "done {{ outputs.a.n }}"}
  f: {type: command, depends_on: e, exec: "trap '' TERM; sleep 0.2; echo f >> effects.txt"}
"""
COMMANDS = "abcdf"
SIGNALS = (signal.SIGINT, signal.SIGKILL, signal.SIGTERM, signal.SIGHUP)
RECORDS_MAX = 26
STARTING_S = 0.6
ENDS_WITHIN_S = 15.0
PYTHON_STARTS_S = 0.1
"""Until Python itself is up, a signal meets nothing of gonogo's."""


@dataclass(frozen=True)
class Attack:
    """One signal, or the same one twice. `records`: sent when the journal has so many lines; None: `after_s`."""

    signal: signal.Signals
    terminal: bool
    twice: bool
    records: int | None
    after_s: float


def attack_of(seed: int) -> Attack:
    """The attack with this number: the kinds of signals take turns, the rest is random."""
    chance = random.Random(seed)
    return Attack(
        signal=SIGNALS[seed % len(SIGNALS)],
        terminal=chance.random() < 0.4,
        twice=chance.random() < 0.3,
        records=chance.randint(1, RECORDS_MAX) if chance.random() < 0.8 else None,
        after_s=chance.uniform(PYTHON_STARTS_S, STARTING_S)
        if chance.random() < 0.8
        else chance.uniform(0, 0.03),
    )


def attacked(attack: Attack, folder: Path) -> list[str]:
    """What went wrong; nothing if all is well."""
    (folder / "gonogo.yaml").write_text(WORKFLOW)
    first = _interrupted(attack, folder)
    wrong = [f"left running: {one}" for one in first.left]
    codes = (-signal.SIGKILL, 0) if attack.signal == signal.SIGKILL else (130, 0)
    before_python = (
        attack.records is None and "Traceback" in first.said and "gonogo/cli/entry" not in first.said
    )
    if first.code not in codes and not (attack.records is None and first.code == -attack.signal):
        wrong.append(f"exit code {first.code}")
    if "Traceback" in first.said and not before_python:
        wrong.append(f"a traceback: {first.said[-3000:]}")
    return wrong + (_wrong_afterwards(folder) if _journal(folder) else [])


def _wrong_afterwards(folder: Path) -> list[str]:
    shown = gonogo("show", "last", "--format", "json", cwd=folder)
    try:
        steps = json.loads(shown.out)["steps"]
    except ValueError:
        return [f"show ended with {shown.code}: {shown.said[-300:]}"]
    resumed = gonogo("resume", "last", cwd=folder)
    wrong = [f"left running by resume: {one}" for one in resumed.left]
    effects = (folder / "effects.txt").read_text().split()
    done = [name for name in COMMANDS if steps[name]["outcome"] == "passed"]
    wrong += [f"{name} was done {effects.count(name)} times" for name in done if effects.count(name) != 1]
    if effects.count("d") > 1:
        wrong.append("the external step acted twice")
    in_doubt = resumed.code == 3 and "in doubt" in resumed.said
    if not in_doubt and (resumed.code != 0 or set(effects) != set(COMMANDS)):
        wrong.append(f"resume ended with {resumed.code}, effects {effects}: {resumed.said[-300:]}")
    return wrong


def _interrupted(attack: Attack, folder: Path) -> Ended:
    with adopting() as orphans:
        if not attack.terminal:
            running = start("run", cwd=folder)
            _send(attack, folder, running)
            return ended(running, orphans, ENDS_WITHIN_S)
        main, side = pty.openpty()
        running = start("run", cwd=folder, stdin=side, stdout=side, stderr=side, start_new_session=True,
                        env=environment(TERM="xterm"))  # fmt: skip
        os.close(side)
        said = bytearray()
        reader = threading.Thread(target=_read_all, args=(main, said))
        reader.start()
        _send(attack, folder, running)
        how = ended(running, orphans, ENDS_WITHIN_S)
        reader.join(5)
        os.close(main)
        return Ended(how.code, said.decode("utf-8", "replace"), "", how.left)


def _send(attack: Attack, folder: Path, running: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + (attack.after_s if attack.records is None else 20)
    while running.poll() is None and time.monotonic() < until:
        if attack.records is not None and _records(folder) >= attack.records:
            break
        pause(0.002)
    for _ in range(2 if attack.twice else 1):
        running.send_signal(attack.signal)
        pause(0.05 if attack.twice else 0)


def _read_all(descriptor: int, said: bytearray) -> None:
    try:
        while data := os.read(descriptor, 65536):
            said += data
    except OSError:
        pass  # the other end is closed


def _journal(folder: Path) -> Path | None:
    found = [path for path in folder.glob(".gonogo/runs/*/journal.jsonl") if b"\n" in path.read_bytes()]
    return found[0] if found else None


def _records(folder: Path) -> int:
    path = _journal(folder)
    return path.read_bytes().count(b"\n") if path else 0


def main() -> int:
    """As a program: one line an attack; 1 when something went wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    failed = 0

    def say(line: str) -> None:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()

    for seed in range(asked.seed, asked.seed + asked.rounds):
        with tempfile.TemporaryDirectory() as folder:
            wrong = attacked(attack_of(seed), Path(folder))
        failed += bool(wrong)
        say(f"{seed} {attack_of(seed)} {'; '.join(wrong) or 'ok'}")
    say(f"{failed} of {asked.rounds} attacks went wrong")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
