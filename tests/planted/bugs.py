# ruff: noqa: E501 - one bug a line
"""Bugs, sixty and more, each a small change of the core that somebody could make: file, text to find, text in its place.

`seeds` are plans known to catch it; `python tests/planted/bugs.py` looks for them anew. What no plan catches soon is
caught by `tests`, which are of tests/core.
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
    tests: tuple[str, ...] = ()


BUGS = (
    Planted("loop_budget_off_by_one", "budgets.py", "if used >= allowed:", "if used > allowed:", (3,)),
    Planted("run_budget_off_by_one", "budgets.py", "or used < allowed or", "or used <= allowed or", (61,)),
    Planted("retry_budget_off_by_one", "retries.py", 'and node.retries < retry.max else None', 'and node.retries <= retry.max else None', (3,)),
    Planted("retry_of_a_call_that_acted", "retries.py", 'return node.effect == "none" or may', 'return node.effect in ("none", "done") or may', tests=("test_routing.py::test_semantics_16_a_call_that_acted_is_not_made_again",)),
    Planted("retry_counts_as_a_new_execution", "scheduling.py", "    if node.retrying:\n        return node.execution, node.attempt + 1, node.wave\n", "", (61,)),
    Planted("retries_forgotten_in_the_fold", "apply.py", "    node.retries = decision.retry\n", "", (3,)),
    Planted("unknown_effect_repeated", "machine.py", 'and event.effect == "unknown"', 'and event.effect == "never"', (123,)),
    Planted("lost_call_repeated_blindly", "resuming.py", '    return may_repeat(node.site.part.step) or', '    return True or', (7,)),
    Planted("lost_call_starts_a_new_execution", "resuming.py", "    elif safe:\n        scheduling.call(turn, node.site, node.scope, node, again=True)", "    elif safe:\n        scheduling.call(turn, node.site, node.scope, node)", (5,)),
    Planted("gate_ignores_failures", "dependencies.py", 'if node.outcome in ("passed", "tolerated"):', 'if node.outcome in ("passed", "tolerated", "failed"):', (3, 6)),
    Planted("gate_opens_on_any_entry", "dependencies.py", "            if found is None:\n                break\n", "            if found is None:\n                return None\n", (25,)),
    Planted("skip_cascade_lost", "dependencies.py", 'if node.reason == "forEach_empty":', 'if node.reason in ("forEach_empty", "dependency_failed"):', (25,)),
    Planted("or_group_waits_for_one_only", "dependencies.py", "        for edge in need.any_of:\n            node = resolve", "        for edge in need.any_of[:1]:\n            node = resolve", (45,)),
    Planted("requested_member_not_rerun", "changes.py", "        node.requested = True\n        return\n", "        return\n", (964,)),
    Planted("hold_without_its_timer", "holds.py", "        turn.set_timer(held.timer, held.wake_s)\n", "        pass\n", (27, 50)),
    Planted("approver_counts_twice", "approvals.py", "if any(same(vote.by) == same(by) for vote in hold.votes):", "if False:", (114,)),
    Planted("quorum_off_by_one", "approvals.py", "self.approved >= self.quorum", "self.approved + 1 >= self.quorum", (114,)),
    Planted("anybody_approves", "approvals.py", "if hold.approvers and not is_listed(hold.approvers, by):", "if False:", (317,)),
    Planted("reminds_without_end", "reminders.py", "if number < terms.remind.max else None", "if True else None", (114,)),
    Planted("vote_lost_in_the_fold", "fault_deltas.py", "votes=(*hold.votes, Vote(decision.by, decision.text))", "votes=(Vote(decision.by, decision.text),)", (114,)),
    Planted("an_answer_comes_after_the_call_it_is_for", "holds.py", "or (reopens and SEALED in hold.details)", "or SEALED in hold.details", tests=("test_holds.py::test_a_resume_that_brings_an_answer_leaves_it_to_the_answer",)),
    Planted("an_answer_is_the_output_of_a_call_that_wasnt_made", "holds.py", "    elif SEALED in hold.details:\n        settle_sealed(turn, node, event)\n", "", tests=("test_holds.py::test_other_words_never_become_the_output_of_a_call_that_wasnt_made",)),
    Planted("late_answer_taken", "holds.py", "        turn.clear_timer(node)\n        woken(turn, node)\n", "        pass\n", tests=("test_approvals.py::test_an_answer_is_too_late_although_nothing_ran_to_notice",)),
    Planted("slot_not_given_back", "lifecycle.py", "ACTIVE = frozenset({ASSUMING, RUNNING, CHECKING, ROUTING})", "ACTIVE = frozenset({ASSUMING, RUNNING, CHECKING, ROUTING, HOLDING})", (50, 6)),
    Planted("one_slot_too_many", "scheduling.py", "while state.slots < limit and turn.ready.waiting and", "while state.slots <= limit and turn.ready.waiting and", (10,)),
    Planted("window_one_too_wide", "fanout.py", "while fan.active + fan.ready < step.concurrency:", "while fan.active + fan.ready <= step.concurrency:", (24,)),
    Planted("window_not_refilled", "turn.py", "    {d.Ended, d.Skipped,", "    {d.Skipped,", (0,)),
    Planted("items_forget_how_often_they_ran", "changes.py", "        if item.execution:\n            state.dropped", "        if item.execution > 99:\n            state.dropped", (335,)),
    Planted("on_finish_speaks_before_its_items", "completion.py", "or not _group_complete(turn, parent):", "or False:", (0,)),
    Planted("one_retry_too_many_for_the_run", "spending.py", "if allowed is None or used < allowed:", "if allowed is None or used <= allowed:", tests=("test_spending.py::test_a_run_without_retries_left_lets_the_failure_stand",)),
    Planted("timer_not_cleared_when_answered", "holds.py", "        turn.clear_timer(node)\n        give(turn, node, event.text, event.by)", "        give(turn, node, event.text, event.by)", (320,)),
    Planted("no_more_time_and_calls_go_on", "spending.py", "at_once=what in STOPS_CALLS", "at_once=False", tests=("test_spending.py::test_time_that_is_up_stops_what_is_in_flight",)),
    Planted("accepted_failure_counts_as_success", "exhaustion.py", '"tolerated" if word == "accept" else "failed"', '"passed" if word == "accept" else "failed"', tests=("test_exhaustion.py::test_C_9_R11_a_person_decides",)),
    Planted("wait_outlives_a_stop", "holds.py", "    if stopping.ends_now(turn, node) and not event.details.get(DOUBTED):\n        stopping.end_waiting(turn, node, cancelled=True)\n        return\n", "", (174, 389)),
    Planted("evaluations_lost_in_a_crash", "resuming.py", "    turn.asks.extend(ask for ask in state.lost_asks if _still_asks(state, ask))\n", "", (7,)),
    Planted("one_item_too_many_refused", "contracts.py", "len(result.output) > allowed", "len(result.output) >= allowed", tests=("test_contracts.py::test_C_6_too_many_items_are_a_logical_fault",)),
    Planted("skip_with_an_error_is_go", "verdict.py", 'return node.outcome == "skipped" and bool(node.issues) and', 'return node.outcome == "skipped" and not node.issues and', (0,)),
    Planted("cancel_takes_back_what_passed", "resuming.py", 'return node.outcome == "cancelled" or', 'return node.outcome in ("cancelled", "passed") or', (5,)),
    # people who have steps run again
    Planted("undone_counts_as_done", "asking_again.py", '        ("undone", (place for place in state.undone if state.node(*place) is not None)),\n', "", tests=("test_asking_again.py::test_what_was_undone_counts_as_not_done",)),
    Planted("steps_behind_act_again_unasked", "asking_again.py", "or place in state.undone or not step.mutates:", "or place in state.undone or step.mutates:", tests=("test_asking_again.py::test_steps_behind_that_have_acted_are_listed",)),
    Planted("doubtful_step_runs_again", "asking_again.py", "    _refuse_doubtful(state, found)\n", "", tests=("test_asking_again.py::test_nobody_knows_what_a_step_did_so_it_is_not_run_again",)),
    Planted("stopped_run_goes_on_past_its_failure", "asking_again.py", "    _refuse_stopped(state, found)\n", "", tests=("test_asking_again.py::test_a_run_that_a_step_stopped_goes_on_only_with_that_step",)),
    Planted("limits_count_on_for_a_person", "rerun_deltas.py", "    _count_anew(state)\n", "", tests=("test_asking_again.py::test_limits_of_runs_and_loops_count_anew",)),
    Planted("kept_answer_given_to_who_asks", "rerun_deltas.py", "        forget(state, *place)", "        pass", tests=("test_asking_again.py::test_an_answer_kept_by_a_key_is_not_given_to_the_step_that_was_asked_for",)),
    Planted("given_output_reuses_an_intent", "asking_again.py", "given.output, node.execution + 1, wave", "given.output, node.execution, wave", tests=("test_asking_again.py::test_a_given_list_is_fanned_out_over_with_new_intents",)),
    Planted("what_stays_may_change", "revising.py", "        for key in changed_keys(before, plan, name):\n", "        for key in ():\n", tests=("test_revising.py::test_a_step_that_ran_and_stays_keeps_what_its_outcome_rests_on",)),
    # loops and runs, time, calls, tokens and money
    Planted("critical_steps_loop_as_they_like", "budgets.py", "return min(plan.limits.max_loops, CRITICAL_LOOPS_MAX) if critical else plan", "return plan.limits.max_loops if critical else plan", tests=("test_spending.py::test_C_12_R5_the_limit_of_loops_is_the_requesting_steps",)),
    Planted("no_limit_of_runs_taken_for_no_word", "budgets.py", "allowed = step.max_runs if step.max_runs is not None else state", "allowed = step.max_runs or state", tests=("test_budgets.py::test_C_12_R6_a_step_without_a_limit_runs_as_often_as_it_is_sent",)),
    Planted("one_call_too_many", "budgets.py", "or state.spent.calls < allowed or", "or state.spent.calls <= allowed or", tests=("test_spending.py::test_a_budget_of_calls_holds_with_many_slots",)),
    Planted("no_calls_to_undo_with", "budgets.py", "bool(state.stopping) or state.undoing is not None\n", "bool(state.stopping)\n", tests=("test_compensation.py::test_semantics_20_undoing_has_calls_when_the_run_has_none_left",)),
    Planted("loop_told_without_its_middle", "budgets.py", "        if target_step != path[-1]:\n", "        if target_step != path[-1] and source_step == path[-1]:\n", tests=("test_budgets.py::test_LOOP_2_a_refusal_names_the_whole_loop",)),
    Planted("all_the_time_again_after_a_wait", "spending.py", "max(0.0, budget.time_s - state.spent.time_s)", "budget.time_s", tests=("test_spending.py::test_after_a_wait_a_run_has_the_rest_of_its_time",)),
    Planted("money_is_up_and_calls_go_on", "spending.py", 'frozenset({"time_s", "tokens", "money"})', 'frozenset({"time_s", "tokens"})', tests=("test_spending.py::test_tokens_and_money_that_are_up_stop_what_is_in_flight",)),
    Planted("used_to_the_end_is_too_much", "spending.py", "and used > allowed and not", "and used >= allowed and not", tests=("test_spending.py::test_tokens_used_to_the_last_are_enough",)),
    Planted("cancelled_run_stopped_again", "stopping.py", "    if is_cancelled(state) and reason not in CANCELLED:\n        return\n", "", tests=("test_stopping.py::test_semantics_5_a_halt_in_the_cleanup_leaves_the_run_cancelled",)),
    Planted("child_has_its_parents_whole_budget", "spending.py", "    left = max(allowed - used, 0)\n", "    left = allowed\n", tests=("test_spending.py::test_a_run_beneath_has_what_is_left",)),
    # what is kept back, what is undone
    Planted("policy_keeps_back_all_that_mutates", "suppression.py", '(part.step.criticality == "external" if policy else', '(part.step.effects == "mutates" if policy else', tests=("test_suppression.py::test_C_8_a_policy_failure_keeps_back_external_steps_only",)),
    Planted("failed_item_keeps_back_its_neighbours", "suppression.py", "return within(prefix(scope, shared), prefix(where, shared))", "return True", tests=("test_suppression.py::test_semantics_19_an_item_acts_though_an_earlier_one_has_failed",)),
    Planted("remedy_of_one_failure_acts_behind_another", "suppression.py", "(guard, where):\n            continue\n", "(guard, where):\n            return None\n", tests=("test_suppression.py::test_C_8_a_remediation_is_kept_back_by_another_failure",)),
    Planted("lifted_again_after_it_ran", "suppression.py", "if other is not None and _was_blocked_by(state, other, node)", "if other is not None", tests=("test_suppression.py::test_C_8_what_was_lifted_runs_once",)),
    Planted("undoing_is_kept_back", "suppression.py", "if is_undoing(state, site.part.name):", "if False:", tests=("test_suppression.py::test_semantics_20_what_undoes_acts_behind_a_failed_critical_step",)),
    Planted("tolerated_failure_keeps_nothing_back", "changes.py", 'elif part.guards and node.outcome in ("failed", "tolerated"):', 'elif part.guards and node.outcome == "failed":', tests=("test_suppression.py::test_C_8_a_tolerated_failure_of_a_critical_step_suppresses_too",)),
    Planted("undoes_what_had_no_effect", "changes.py", 'and not state.safe_mode and node.effect != "none":', "and not state.safe_mode:", tests=("test_replays.py::test_semantics_20_an_answer_from_the_store_is_not_undone",)),
    Planted("undone_from_the_front", "compensation.py", "_begin(turn, state.undoable[-1])", "_begin(turn, state.undoable[0])", tests=("test_compensation.py::test_G_12_what_was_done_is_undone_the_latest_first",)),
    Planted("schema_takes_the_guarantees_mode", "contracts.py", "message, self.step.schema_mode)", "message, self.step.guarantee_mode)", tests=("test_contracts.py::test_schema_mode_issue_reports_without_failing",)),
    Planted("halt_is_any_no_go", "compensation.py", 'why = "halted" if state.stopping == "halted" else "no_go"', 'why = "no_go"', tests=("test_compensation.py::test_semantics_20_the_workflow_says_which_ends_are_undone",)),
    Planted("lifted_by_any_end", "completion.py", 'if node.outcome == "passed" and node.settled and', 'if node.settled and', tests=("test_suppression.py::test_semantics_19_a_success_lifts_in_its_own_item_alone",)),
    # the last retry, escalation, the story of a fault
    Planted("other_words_are_a_no", "holds.py", "if approvals.word(event.text) not in exhaustion.CHOICES:", "if False:", tests=("test_exhaustion.py::test_C_9_R11_other_words_leave_it_waiting",)),
    Planted("told_each_time_it_fails", "exhaustion.py", "return None if (node.step, node.scope) in turn.state.escalated else block.escalate", "return block.escalate", tests=("test_exhaustion.py::test_G_27_it_is_told_once_in_a_run",)),
    Planted("exhausted_before_the_last_retry", "exhaustion.py", 'return is_worth_it(node, retry) and node.retries >= retry.max', 'return is_worth_it(node, retry)', tests=("test_exhaustion.py::test_C_9_R11_retries_that_the_run_has_no_budget_for_are_not_exhausted",)),
    Planted("each_failure_is_another_fault", "fault_events.py", "    if open_fault is None:\n        node = state", "    if True:\n        node = state", tests=("test_fault_events.py::test_G_16_retries_are_attempts_of_one_fault",)),
    Planted("skip_leaves_its_fault_open", "fault_events.py", """if decision.rest == "settled" else ()""", """if decision.rest == "never" else ()""", tests=("test_fault_events.py::test_G_16_a_skip_ends_what_was_open",)),
    # contracts, routes, lists
    Planted("detector_fails_open_for_policy", "contracts.py", 'CRITICAL = frozenset({"external", "internal", "policy"})', 'CRITICAL = frozenset({"external", "internal"})', tests=("test_contracts.py::test_H43_an_erring_fail_if_fails_each_kind_of_critical_step",)),
    Planted("halt_only_when_severe", "contracts.py", 'if condition.halt or condition.severity in ("error", "critical"):', 'if condition.severity in ("error", "critical"):', tests=("test_contracts.py::test_C_6_a_halt_is_told_first_and_stops_the_run",)),
    Planted("one_shot_shoots_twice", "routing.py", "turn.state.runs_before(name, scope) == 0:", "turn.state.runs_before(name, scope) < 2:", tests=("test_suppression.py::test_C_15_R3_a_one_shot_step_is_not_run_again",)),
    Planted("items_opened_after_a_stop", "fanout.py", "return bool(state.stopping) and not scheduling.may_still_run(state, state.step(node))", "return False", tests=("test_stopping.py::test_a_cancelled_fan_out_opens_no_more_items",)),
    Planted("attempt_not_set_aside", "attempt_deltas.py", "    state.spent.tokens_kept += wish.tokens\n", "", tests=("test_attempts.py::test_what_an_attempt_may_use_is_set_aside_before_it",)),
    Planted("lost_attempt_did_nothing", "gated.py", "            gated.acted = gated.acted or _changes(wish)\n            request", "            request", (7,)),
    Planted("attempt_that_acted_is_forgotten", "gated.py", "        gated.acted = True\n    request", "        pass\n    request", (640,)),
    Planted("attempts_begin_again_after_a_crash", "apply.py", "    if not decision.again:\n        state.spent.calls += 1\n        node.gate = None\n", "    node.gate = None\n    if not decision.again:\n        state.spent.calls += 1\n", (47,)),
    Planted("attempt_after_a_stop", "attempt_deltas.py", ".stopped = True", ".stopped = False", tests=("test_attempts.py::test_law_7_no_attempt_goes_out_after_a_stop",)),
    Planted("waiting_call_keeps_its_slot", "attempts.py", "    if not node.gate.flying and not node.gate.wishes:\n        turn.decide(", "    if node.gate.flying:\n        turn.decide(", tests=("test_attempts.py::test_a_call_that_waits_long_holds_no_slot",)),
    Planted("attempt_without_its_slot", "attempts.py", "    elif node.status == life.PAUSED and not event.beneath and not node.gate.stopped:", "    elif False:", (127,)),
    Planted("spent_twice", "absorb.py", "int(_amount(usage.get(\"tokens\"))) - before.tokens", "int(_amount(usage.get(\"tokens\")))", tests=("test_attempts.py::test_what_attempts_used_is_spent_once",)),
)  # fmt: skip


class Stale(Exception):  # noqa: N818 - the name says what the patch is
    """The text to replace isn't there exactly once: the patch must follow the code."""


def plant(bug: Planted, folder: Path) -> None:
    """Copy the source into `folder`, with what is compiled of it, and put the bug in. Raises Stale."""
    shutil.copytree(
        SOURCE,
        folder,
        ignore=shutil.ignore_patterns("providers", "config", "cli", "report", "hosts"),
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
        [sys.executable, "-m", "gonogo.testing", "--until-broken", *arguments],
        env={**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def run_tests(folder: Path, names: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    """Run tests of the core on the changed source; pytest's exit code is 1 when one fails."""
    options = ("-q", "--assert=plain", "-p", "no:cacheprovider", "-p", "no:xdist")
    return subprocess.run(
        [sys.executable, "-m", "pytest", *options, *(str(ROOT / "tests" / "core" / name) for name in names)],
        env={**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"},
        cwd=ROOT,
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
