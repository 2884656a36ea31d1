"""Which rule speaks, with evidence (E.1, B13, B14, B16, B17)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.gate.world import NO_WAIT, Http, answered, gate, play, policy, world

from gonogo.gate import (
    Bounds,
    Exhausted,
    GateError,
    Misconfigured,
    PreCheckFailed,
    Predicate,
    decide,
    rule,
)
from gonogo.gate.decisions import RuleDecided, WaitStarted
from gonogo.gate.rules import look, small


def test_decide_takes_the_first_match_and_tells_why() -> None:
    """E1, E3, E4: evaluation and recording stop at the match."""
    rules = [
        rule("child", {"age": {"lt": 12}}),
        rule("teen", {"age": {"lt": 20}, "name": {"in": ["eva", "tom"]}}, label="young"),
        rule("late", {"age": {"gt": 0}}),
    ]
    choice = decide({"age": 15, "name": "eva"}, rules, "adult")
    assert (choice.branch, choice.chosen, choice.default) == ("teen", 1, False)
    assert [entry.result for entry in choice.entries] == ["no", "matched", "not-reached"]
    assert [
        (each.path, each.op, each.threshold, each.actual, each.result)
        for each in choice.entries[1].conditions
    ] == [
        ("age", "lt", 20, 15, True),
        ("name", "in", ["eva", "tom"], "eva", True),
    ]


def test_decide_without_a_match_takes_the_default() -> None:
    """E8, E5: an empty filter never matches."""
    choice = decide({"age": 50}, [rule("child", {"age": {"lt": 12}}), rule("any", {})], "adult")
    assert (choice.branch, choice.chosen, choice.default) == ("adult", None, True)


@pytest.mark.parametrize(
    ("test", "value", "holds"),
    [
        ({"eq": 1}, 1, True),
        ({"ne": 1}, 1, False),
        ({"gte": 1, "lte": 3}, 2, True),
        ({"gt": 1}, None, False),
        ({"lt": "b"}, "a", True),
        ({"lt": 3}, "a", False),
        ({"in": [1, 2]}, 2, True),
        ({"not_in": [1, 2]}, 2, False),
        ({"in": [1]}, [1], False),
    ],
)
def test_operators(test: dict[str, Any], value: Any, holds: bool) -> None:
    """E4: what can't be compared doesn't match."""
    assert decide({"x": value}, [rule("yes", {"x": test})], "no").branch == ("yes" if holds else "no")


def test_paths_lead_into_data_and_never_beyond() -> None:
    """E5: no attributes, no prototypes."""
    scope = {"error": {"status": 503}, "items": ["a", "b"]}
    assert decide(scope, [rule("yes", {"error.status": 503})], "no").branch == "yes"
    assert decide(scope, [rule("yes", {"items.-1": "b"})], "no").branch == "yes"
    assert decide(scope, [rule("yes", {"error.__class__": {"ne": None}})], "no").branch == "no"


def test_every_rule_is_evaluated_once() -> None:
    """B13, X8: the result flows to branch, record and error."""
    asked: list[str] = []

    def evaluate(text: str, scope: Any) -> Any:
        from gonogo.gate import Judgement

        asked.append(text)
        return Judgement(text == "second")

    rules = (rule("retry", "first"), rule("fail-fast", "second", kind="mine"), rule("ok", "third"))
    with pytest.raises(GateError) as raised:
        answered(policy("a", after=rules), world(a=Http(500)), {"evaluate": evaluate})
    assert asked == ["first", "second"]
    assert raised.value.kind == "mine"


def test_an_evaluator_may_be_async() -> None:
    """A workflow's JavaScript lives in a child process."""

    async def evaluate(text: str, scope: Any) -> Any:
        from gonogo.gate import Judgement

        return Judgement(scope["error_kind"] == "server-5xx")

    with pytest.raises(GateError) as raised:
        answered(
            policy("a", after=(rule("fail-fast", "js", kind="k"),)),
            world(a=Http(500)),
            {"evaluate": evaluate},
        )
    assert raised.value.kind == "k"


def test_a_rule_that_breaks_is_no_match_with_a_record_or_the_end() -> None:
    """B14: lenient and strict."""

    def evaluate(text: str, scope: Any) -> Any:
        raise ZeroDivisionError("oh")

    rules = (rule("fail-fast", "broken"),)
    there = world(a=[Http(500), "fine"])
    answer = answered(policy("a", after=rules, backoff=NO_WAIT), there, {"evaluate": evaluate})
    entry = answer.record.decided()[0].entries[0]
    assert (entry.result, entry.error) == ("error", "ZeroDivisionError: oh")
    with pytest.raises(Misconfigured, match="ZeroDivisionError"):
        answered(policy("a", after=rules, strict=True), world(a=Http(500)), {"evaluate": evaluate})


def test_an_error_of_a_rule_tells_no_secret() -> None:
    """E6."""

    def evaluate(text: str, scope: Any) -> Any:
        raise ValueError("sk-1 is wrong")

    answer = answered(
        policy("a", after=(rule("ok", "x"),)),
        world(a="fine"),
        {"evaluate": evaluate, "redact": lambda text: text.replace("sk-1", "***")},
    )
    assert answer.record.decided()[0].entries[0].error == "ValueError: *** is wrong"


def test_predicates_are_functions_by_name_and_tell_what_they_read() -> None:
    """F4, E3."""
    given = policy("a", after=(rule("fail-fast", Predicate("slow", "2"), kind="slow"),))
    predicates = {"slow@2": lambda scope: scope["latency_s"] >= 0 and scope["attempt"] > 0}
    with pytest.raises(GateError) as raised:
        answered(given, world(a="fine"), {"predicates": predicates})
    decision = raised.value.decision
    assert decision is not None
    assert [(read.path, read.value) for read in decision.reads] == [("latency_s", 0.0), ("attempt", 1)]
    assert decision.reads[0].producer == "attempt 1"


def test_before_rules_are_looked_at_before_every_attempt() -> None:
    """B16, X: continue, skip-target, wait, fail-fast."""
    rules = (
        rule("fail-fast", {"attempt": {"gte": 2}}, kind="enough"),
        rule("continue", {"attempt": {"gte": 0}}),
    )
    there = world(a=Http(500))
    with pytest.raises(PreCheckFailed) as raised:
        answered(policy("a", before=rules, backoff=NO_WAIT), there)
    assert there.called == ["a", "a"]
    assert (raised.value.kind, raised.value.phase) == ("enough", "before")


def test_skip_target_moves_on_and_says_why() -> None:
    """B16."""
    there = world(a="a", b="b")
    answer = answered(
        policy("a", "b", before=(rule("skip-target", {"target": "a"}, label="not today"),)), there
    )
    assert (answer.target, there.called) == ("b", ["b"])
    assert answer.record.why_not("a") == ["rule: not today"]


def test_skipping_every_target_is_exhausted() -> None:
    """Never a loop."""
    with pytest.raises(Exhausted):
        answered(policy("a", "b", before=(rule("skip-target", {"attempt": 0}),)), world(a="a", b="b"))


def test_a_before_rule_may_wait_but_not_for_ever() -> None:
    """B16, law 2: the number of waits has a bound."""
    there = world(a="fine")
    once = rule("wait", {"waits": 0}, wait_s=3.0)
    answered(policy("a", before=(once,)), there)
    assert there.at == [3.0]
    always = rule("wait", {"waits": {"gte": 0}}, wait_s=0.5)
    with pytest.raises(Exhausted, match="waits"):
        answered(policy("a", before=(always,)), world(a="fine"))


def test_a_rule_may_judge_a_good_answer() -> None:
    """LLM-2: 200 and yet no answer."""
    again = rule("retry", {"response.ok": False, "attempt": {"lt": 3}})
    there = world(a=[{"ok": False}, {"ok": True}])
    answer = answered(policy("a", after=(again,)), there, view=lambda value: value)
    assert (answer.value, len(there.calls)) == ({"ok": True}, 2)


def test_retry_other_never_wraps_around_unless_cycles_say_so() -> None:
    """B17."""
    on = rule("retry-other", {"error_kind": {"ne": "ok"}})
    there = world(a=Http(500), b=Http(500))
    with pytest.raises(Exhausted):
        answered(policy("a", "b", after=(on,)), there)
    assert there.called == ["a", "b"]
    there = world(a=Http(500), b=Http(500))
    with pytest.raises(Exhausted):
        answered(policy("a", "b", after=(on,), bounds=Bounds(cycles=2)), there)
    assert there.called == ["a", "b", "a", "b"]


def test_when_none_is_left_the_fallback_rule_is_asked_once() -> None:
    """B17: rules behind the one that spoke, those with fallback."""

    async def canned(error: BaseException | None) -> str:
        return "canned"

    rules = (
        rule("retry-other", {"error_kind": {"ne": "ok"}}),
        rule("fallback", {"error_kind": "overloaded"}, label="when overloaded"),
    )
    answer = answered(policy("a", after=rules), world(a=Http(503)), fallback=canned)
    assert answer.value == "canned"
    assert [each.phase for each in answer.record.decided()] == ["after", "exhausted"]
    with pytest.raises(Exhausted):
        answered(policy("a", after=rules), world(a=Http(500)), fallback=canned)


def test_the_fallback_is_validated_like_any_answer() -> None:
    """B18, X21."""

    async def canned(error: BaseException | None) -> str:
        return "nonsense"

    with pytest.raises(Exhausted) as raised:
        answered(
            policy("a", backoff=NO_WAIT), world(a=Http(500)), fallback=canned, validate=lambda value: "wrong"
        )
    assert raised.value.kind == "schema-fail"
    assert [each.target for each in raised.value.attempts] == ["a", "a", "a", "fallback"]


def test_a_terminal_failure_asks_no_fallback_by_itself() -> None:
    """D.2: a wrong request stays wrong; a rule may think otherwise."""

    async def canned(error: BaseException | None) -> str:
        return "canned"

    with pytest.raises(GateError):
        answered(policy("a"), world(a=Http(422)), fallback=canned)
    ask = rule("fallback", {"error_kind": "bad-request"})
    assert answered(policy("a", after=(ask,)), world(a=Http(422)), fallback=canned).value == "canned"


def test_values_in_records_are_small() -> None:
    """E3."""
    assert small("x" * 200) == "x" * 80 + "…"
    assert small({"a": 1}) == "{1 keys}"
    assert small([1, 2]) == "[2 items]"
    assert look([], {}).entries == ()


def test_a_context_too_long_goes_to_a_larger_window_only() -> None:
    """D.2, S12."""
    from gonogo.gate import Policy, StepFailed, Target

    targets = (
        Target("small", window_tokens=8),
        Target("tiny", window_tokens=4),
        Target("large", window_tokens=100),
    )
    there = world(small=StepFailed("context-too-long"), tiny="t", large="l")
    answer = answered(Policy(targets=targets, breaker=None), there)
    assert (answer.target, there.called) == ("large", ["small", "large"])
    with pytest.raises(GateError):
        answered(
            Policy(targets=targets[:2], breaker=None), world(small=StepFailed("context-too-long"), tiny="t")
        )


def test_decisions_keep_only_what_matters_of_a_clean_call() -> None:
    """A clean call's record is short."""

    async def story() -> Any:
        return (await gate(policy("a")).answer(world(a="fine").step())).record.decisions

    assert [type(each).__name__ for each in play(story)] == ["AttemptStarted", "AttemptEnded", "GateEnded"]
    assert not [each for each in play(story) if isinstance(each, RuleDecided | WaitStarted)]
