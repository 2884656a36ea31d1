"""The names every expression sees (spec B.2 to B.5, D columns)."""

from __future__ import annotations

from typing import Any

from tests.core.script import LOGICAL, Returns, Script, plan, remember, step

from gonogo.core.faults import Issue
from gonogo.core.memory import apply_operation
from gonogo.core.values import COMPUTE, names_for
from gonogo.expressions.analyse import HELPERS, KNOWN_NAMES


def seen(construct: str, **start: Any) -> dict[str, Any]:
    """What one construct of a step behind another sees."""
    found: dict[str, Any] = {}

    def look(names: Any) -> bool:
        found.update({name: names[name] for name in COMPUTE})
        found["dep"] = names["outputs"]["dep"]
        return construct != "fail_if"

    keys: dict[str, Any] = (
        {"if_": "x"} if construct == "if" else {construct: "x" if construct == "fail_if" else ["x"]}
    )
    Script(
        plan(step("dep"), step("a", "dep", **keys)),
        calls={"dep": 7, "a": {"n": 1}},
        answers={"x": look},
        **start,
    )
    return found


def test_B_3_every_construct_gets_the_same_env_files_event_and_association() -> None:
    """H8 and H9: one superset scope."""
    start = {
        "env": {"CI": "true"},
        "trigger": {"name": "pr_opened", "event_name": "pr_opened"},
        "context": {
            "files": [{"filename": "a.py"}],
            "pr": {"authorAssociation": "MEMBER"},
            "branch": "topic",
        },
        "inputs": {"level": 2},
    }
    for construct in ("if", "assume", "guarantee", "fail_if"):
        names = seen(construct, **start)
        assert (names["env"]["CI"], names["filesCount"], names["event"]["name"]) == ("true", 1, "pr_opened")
        assert (names["$association"], names["branch"], names["inputs"]["level"], names["dep"]) == (
            "MEMBER",
            "topic",
            2,
            7,
        )


def test_B_4_output_is_the_providers_output_unchanged_in_both_contracts() -> None:
    """And null before the call."""
    assert [seen(construct)["output"] for construct in ("if", "assume")] == [None, None]
    assert [seen(construct)["output"] for construct in ("guarantee", "fail_if")] == [{"n": 1}, {"n": 1}]


def test_B_4_an_object_without_issues_shows_its_findings() -> None:
    """A read-only overlay; an object's own issues win."""
    found: list[Any] = []

    def look(names: Any) -> bool:
        found.append(names["output"]["issues"])
        return True

    calls = {
        "a": Returns({"n": 1}, issues=(Issue("r", "m"),)),
        "b": Returns({"issues": 5}, issues=(Issue("r", "m"),)),
    }
    Script(plan(step("a", guarantee=["x"]), step("b", guarantee=["x"])), calls=calls, answers={"x": look})
    assert found[0][0]["ruleId"] == "r"
    assert found[1] == 5


def test_B_2_every_known_name_has_a_value() -> None:
    """A name that can't have one in a construct is null, so a reference never throws by absence alone."""
    offered = set(COMPUTE)
    assert offered | {"any", "all", "none", "count"} >= KNOWN_NAMES - HELPERS


def test_no_event_is_the_manual_event() -> None:
    """`event.name` can always be read."""
    assert seen("if")["event"] == {"name": "manual", "event_name": "manual"}


def test_GAT_3_raw_and_effective_outcome_are_both_readable() -> None:
    """outputs_meta tells a tolerated failure from a pass."""
    script = Script(plan(step("a", continue_on_failure=True), step("b", "a")), calls={"a": LOGICAL})
    meta = names_for(script.state, "b", "")["outputs_meta"]["a"]
    assert (meta["outcome"], meta["failed"], meta["tolerated"]) == ("tolerated", True, True)


def test_B_5_history_has_each_steps_outputs_oldest_first() -> None:
    """Skipped runs are not in it."""
    script = Script(plan(step("a"), step("b", "a", if_="no")), calls={"a": 1}, answers={"no": False})
    history = names_for(script.state, "b", "")["outputs_history"]
    assert (history["a"], history["b"]) == ([1], [])


def test_B_5_success_and_failure_speak_of_the_dependencies() -> None:
    """success = no failed dependency."""
    script = Script(plan(step("a"), step("b", "a"), step("c")), calls={"a": LOGICAL})
    assert names_for(script.state, "b", "")["$status"] == {"success": False, "failure": True}
    assert names_for(script.state, "c", "")["$status"] == {"success": True, "failure": False}


def test_memory_is_what_was_written_up_to_now() -> None:
    """Namespaces and the default one's name; what is written later isn't seen by who reads now."""
    script = Script(
        plan(step("a"), step("b", "a")), calls={"a": Returns(1, memory=(remember("set", "k", 5),))}
    )
    memory = names_for(script.state, "b", "")["memory"]
    assert memory == {"default": {"k": 5}, "$namespace": "default"}
    apply_operation(script.state.memory, remember("set", "k", 6))
    assert memory["default"] == {"k": 5}


def test_semantics_10_a_step_that_hasnt_run_reads_as_null() -> None:
    """Any step may be named; a name that isn't a step is a missing key."""
    script = Script(plan(step("a"), step("b", start="routed")))
    outputs = names_for(script.state, "a", "")["outputs"]
    assert (outputs["b"], outputs.get("ghost")) == (None, None)
