"""Whether dependencies let a step pass (spec C.5, semantics 6)."""

from __future__ import annotations

import pytest
from tests.core.script import LOGICAL, Script, error, plan, step


def test_C_5_a_failed_dependency_blocks_and_names_the_root() -> None:
    """The skip cascades; its cause is the step at the root."""
    script = Script(plan(step("a"), step("b", "a"), step("c", "b")), calls={"a": LOGICAL})
    assert script.outcomes() == {"a": "failed", "b": "skipped", "c": "skipped"}
    assert (script.node("c").reason, script.node("c").because) == ("dependency_failed", "a")


def test_GAT_2_only_the_direct_dependency_counts() -> None:
    """C.5: an OR group with one survivor passes, and what follows looks at its own dependency only."""
    steps = [step("a", if_="no"), step("seed"), step("b", "a|seed"), step("c", "b")]
    script = Script(plan(*steps), answers={"no": False})
    assert script.started == ["seed", "b", "c"]
    assert script.verdict == "GO"


def test_an_or_group_without_a_survivor_blocks() -> None:
    """Every member must fail the step for it to be skipped."""
    script = Script(plan(step("a"), step("b"), step("c", "a|b")), calls={"a": LOGICAL, "b": LOGICAL})
    assert script.outcome("c") == "skipped"


def test_an_or_group_waits_for_all_its_members() -> None:
    """C.2 R9: members are ordinary ordering edges, so the choice doesn't depend on timing."""
    script = Script(plan(step("a"), step("b", "a"), step("c", "a|b"), max_parallelism=2))
    assert script.started == ["a", "b", "c"]


@pytest.mark.parametrize("reason", ["if", "assume"])
def test_C_5_continue_on_failure_opens_the_edges_of_a_skipped_step(reason: str) -> None:
    """A skip by `if` or `assume` blocks, unless the skipped step tolerates failure."""
    keys = {"if_": "no"} if reason == "if" else {"assume": ["no"]}
    closed = Script(plan(step("a", **keys), step("b", "a")), answers={"no": False})
    opened = Script(plan(step("a", continue_on_failure=True, **keys), step("b", "a")), answers={"no": False})
    assert (closed.outcome("b"), opened.outcome("b")) == ("skipped", "passed")


def test_GAT_3_a_tolerated_failure_passes_and_stays_a_failure() -> None:
    """C.5 R1: dependents run, the outcome says tolerated, the fault is kept."""
    script = Script(plan(step("a", continue_on_failure=True), step("b", "a")), calls={"a": LOGICAL})
    assert (script.outcome("a"), script.outcome("b"), script.verdict) == ("tolerated", "passed", "GO")
    assert script.node("a").fault == LOGICAL


def test_C_5_R1_one_edge_may_let_a_failure_pass() -> None:
    """`on_failure: continue` opens its own edge only."""
    script = Script(plan(step("a"), step("b", "a?"), step("c", "a")), calls={"a": LOGICAL})
    assert (script.outcome("b"), script.outcome("c"), script.verdict) == ("passed", "skipped", "NO-GO")


def test_C_5_R2_the_latest_run_decides() -> None:
    """A step that failed and then passed in the same wave unblocks its dependents."""
    from tests.core.script import TRANSIENT, block

    script = Script(
        plan(step("a", on_fail=block(retry=1)), step("b", "a")),
        calls={"a": lambda call: TRANSIENT if call.attempt == 1 else 1},
    )
    assert (script.outcome("a"), script.outcome("b")) == ("passed", "passed")


def test_C_5_R3_a_skip_is_no_run() -> None:
    """Nothing is counted as run for a skipped step."""
    node = Script(plan(step("a", if_="no")), answers={"no": False}).node("a")
    assert (node.execution, node.attempts, node.started_at) == (0, 0, None)


def test_C_5_R4_a_dependency_that_is_not_planned_is_satisfied() -> None:
    """Under a tag filter what is left out doesn't block."""
    script = Script(plan(step("a", tags=("x",)), step("b", "a"), exclude_tags=("x",)))
    assert script.outcome("b") == "passed"


def test_an_expression_error_behaves_like_a_skip_for_dependents() -> None:
    """What follows is blocked by it."""
    script = Script(plan(step("a", if_="bad"), step("b", "a")), answers={"bad": error()})
    assert script.node("b").because == "a"
