# ruff: noqa: E501 - one bug a line
"""Thirty bugs, each a small change of the core that somebody could make: file, text to find, text in its place.

`seeds` are plans known to catch it; `python tests/planted/bugs.py` looks for them anew.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
SOURCE = ROOT / "src"


@dataclass(frozen=True, slots=True)
class Planted:
    """One bug. `old` must stand in `core/<file>` exactly once."""

    name: str
    file: str
    old: str
    new: str
    seeds: tuple[int, ...] = ()


BUGS = (
    Planted("loop_budget_off_by_one", "budgets.py", "if used < allowed:", "if used <= allowed:", (0,)),
    Planted("run_budget_off_by_one", "budgets.py", "or used < allowed or", "or used <= allowed or", (108,)),
    Planted("retry_budget_off_by_one", "routing.py", "node.retries < retry.max and", "node.retries <= retry.max and", (3,)),
    Planted("retry_of_a_call_that_acted", "routing.py", 'if node.effect != "none" and', 'if node.effect == "unknown" and', (760,)),
    Planted("retry_counts_as_a_new_execution", "scheduling.py", "same = node.retrying or again", "same = again", (61,)),
    Planted("retries_forgotten_in_the_fold", "apply.py", "    node.retries = decision.retry\n", "", (21,)),
    Planted("unknown_effect_repeated", "machine.py", 'and event.effect == "unknown"', 'and event.effect == "never"', (97,)),
    Planted("lost_call_repeated_blindly", "resuming.py", "elif routing.may_repeat(step):", "elif True:", (295,)),
    Planted("lost_call_starts_a_new_execution", "resuming.py", "scheduling.call(turn, node.site, node.scope, node, again=True)", "scheduling.call(turn, node.site, node.scope, node)", (0,)),
    Planted("gate_ignores_failures", "dependencies.py", 'if node.outcome in ("passed", "tolerated"):', 'if node.outcome in ("passed", "tolerated", "failed"):', (3,)),
    Planted("gate_opens_on_any_entry", "dependencies.py", "            if found is None:\n                break\n", "            if found is None:\n                return None\n", (25,)),
    Planted("skip_cascade_lost", "dependencies.py", 'if node.reason == "forEach_empty":', 'if node.reason in ("forEach_empty", "dependency_failed"):', (25,)),
    Planted("or_group_waits_for_one_only", "dependencies.py", "        for edge in need.any_of:\n            node = resolve", "        for edge in need.any_of[:1]:\n            node = resolve", (45,)),
    Planted("requested_member_not_rerun", "changes.py", "        node.requested = True\n        return\n", "        return\n", (140,)),
    Planted("hold_without_its_timer", "holds.py", "        turn.set_timer(timer, due_s)\n", "        pass\n", (34,)),
    Planted("slot_not_given_back", "lifecycle.py", "ACTIVE = frozenset({ASSUMING, RUNNING, CHECKING, ROUTING})", "ACTIVE = frozenset({ASSUMING, RUNNING, CHECKING, ROUTING, HOLDING})", (40,)),
    Planted("one_slot_too_many", "scheduling.py", "while state.slots < limit and len(turn.ready):", "while state.slots <= limit and len(turn.ready):", (7,)),
    Planted("window_one_too_wide", "fanout.py", "while fan.active + fan.ready < step.concurrency:", "while fan.active + fan.ready <= step.concurrency:", (39,)),
    Planted("window_not_refilled", "turn.py", "    {d.Ended, d.Skipped,", "    {d.Skipped,", (0,)),
    Planted("items_forget_how_often_they_ran", "changes.py", "        if item.execution:\n            state.dropped", "        if item.execution > 99:\n            state.dropped", (15,)),
    Planted("on_finish_speaks_before_its_items", "completion.py", "or not _group_complete(turn, parent):", "or False:", (0,)),
    Planted("on_finish_twice", "completion.py", "    if parent.trigger is not None:", "    if parent.trigger == 'never':", (124,)),
    Planted("timer_not_cleared_when_answered", "holds.py", "        turn.clear_timer(node)\n        if exhaustion", "        if exhaustion", (145,)),
    Planted("timer_not_cleared_when_routed", "routing.py", "            turn.clear_timer(waiting)\n", "            pass\n", (563,)),
    Planted("queued_steps_start_after_a_stop", "scheduling.py", "    if state.stopping and not may_still_run(state, part.step):\n        turn.refill_around(site)\n", "    if state.stopping == 'never':\n        turn.refill_around(site)\n", (40,)),
    Planted("wait_outlives_a_stop", "holds.py", "    if stopping.ends_now(turn, node):\n        stopping.end_waiting(turn, node, cancelled=True)\n        return\n", "", (428,)),
    Planted("evaluations_lost_in_a_crash", "resuming.py", "    turn.asks.extend(state.lost_asks)\n", "", (0,)),
    Planted("stale_answers_taken", "machine.py", "if node is not None and node.asked == event.batch:", "if node is not None:", (22950,)),
    Planted("skip_with_an_error_is_go", "verdict.py", 'return node.outcome == "skipped" and bool(node.issues) and', 'return node.outcome == "skipped" and not node.issues and', (0,)),
    Planted("cancel_takes_back_what_passed", "resuming.py", 'return node.outcome == "cancelled" or', 'return node.outcome in ("cancelled", "passed") or', (59,)),
)  # fmt: skip


class Stale(Exception):  # noqa: N818 - the name says what the patch is
    """The text to replace isn't there exactly once: the patch must follow the code."""


def plant(bug: Planted, folder: Path) -> None:
    """Copy the source into `folder` and put the bug in. Raises Stale."""
    shutil.copytree(
        SOURCE,
        folder,
        ignore=shutil.ignore_patterns("__pycache__", "providers", "config", "cli", "report", "hosts"),
        dirs_exist_ok=True,
    )
    path = folder / "gonogo" / "core" / bug.file
    text = path.read_text()
    if text.count(bug.old) != 1:
        raise Stale(f"{bug.name}: {bug.old!r} stands {text.count(bug.old)} times in {bug.file}")
    path.write_text(text.replace(bug.old, bug.new))


def hunt(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the simulator of the changed source; its exit code is 1 when a law is broken."""
    return subprocess.run(
        [sys.executable, "-m", "gonogo.testing.simulated", "--until-broken", *arguments],
        env={**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def find(bug: Planted, runs: int = 1500) -> str:
    """The first seed that catches a bug, in words."""
    with tempfile.TemporaryDirectory() as folder:
        plant(bug, Path(folder))
        done = hunt(Path(folder), "--runs", str(runs))
        first = (done.stdout or done.stderr).splitlines()
        return f"{bug.name}: {first[0] if first else 'nothing'}"


def main() -> None:
    """Look for a seed for every bug, or for those named."""
    for bug in BUGS:
        if not sys.argv[1:] or bug.name in sys.argv[1:]:
            sys.stdout.write(find(bug) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
