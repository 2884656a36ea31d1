"""G12 and H35: what a step runs before itself, and calls that are not made twice."""

from __future__ import annotations

from tests.guide.conftest import Play, play
from tests.guide.stage import Fails, Turns

__all__ = ["play"]

# --- H35: on_init

INIT = """
steps:
  a: {{type: noop, {keys}on_init: {{run: [{item}]}}}}
  before: {{type: noop}}
  next: {{type: noop, depends_on: a}}
"""


def test_H_35_on_init_runs_before_the_step(play: Play) -> None:
    """H35, C.10 R8, I.1 13 on_init: to completion, results visible to the step."""
    ran = play(
        INIT.format(keys="guarantee: outputs.before.ready === true, ", item="before"),
        {"before": {"ready": True}},
    )
    assert ran.started == ["before", "a", "next"]
    assert ran.verdict == "GO"


def test_H_35_a_result_may_have_another_name(play: Play) -> None:
    """C.10 R8: `as`."""
    item = "{step: before, as: setup}"
    ran = play(
        INIT.format(keys="guarantee: outputs.setup.ready === true, ", item=item), {"before": {"ready": True}}
    )
    assert ran.verdict == "GO"


def test_H_35_a_failed_preparation_fails_the_step(play: Play) -> None:
    """C.10 R8: class execution; the step itself isn't called."""
    ran = play(INIT.format(keys="", item="before"), {"before": Fails()})
    assert (ran["a"].outcome, ran.stage.called("a"), ran.why("next")[0]) == ("failed", [], "skipped")
    assert ran.verdict == "NO-GO"


def test_H_35_a_step_that_is_skipped_prepares_nothing(play: Play) -> None:
    """C.10 R8: before stage 6: behind `if` and the gate."""
    ran = play(INIT.format(keys="if: 'false', ", item="before"))
    assert (ran.stage.called("before"), ran.why("a")) == ([], ("skipped", "if_condition"))


def test_H_35_items_run_in_order_each_to_its_end(play: Play) -> None:
    """C.10 R8: two preparations, the second sees the first's result; arguments as for every run item."""
    text = """
steps:
  a: {type: noop, on_init: {run: [one, {step: two, with: {n: "{{ 2 | plus: 3 }}", of: plain}}]}}
  one: {type: noop}
  two: {type: script, content: "return [args.n, args.of, outputs.one.x]"}
"""
    ran = play(text, {"one": {"x": 1}})
    assert (ran.started, ran.output("two")) == (["one", "two", "a"], [5, "plain", 1])


def test_H_35_run_js_may_say_what_to_prepare(play: Play) -> None:
    """C.10 R8: names or objects; nothing is prepared for an empty list."""
    text = """
steps:
  a: {type: noop, on_init: {run_js: "return env.DEEP === 'yes' ? ['before'] : []"}}
  before: {type: noop, start: routed}
"""
    assert play(text, env={"DEEP": "yes"}).started == ["before", "a"]
    assert play(text).started == ["a"]


def test_H_35_once_for_all_items_unless_the_preparation_maps(play: Play) -> None:
    """C.10 R8: once per run of the step; per item only with `fanout: map` targets."""
    text = """
steps:
  list: {type: noop, forEach: true}
  a: {type: noop, fanout: map, depends_on: list, on_init: {run: [once, each]}}
  once: {type: noop}
  each: {type: noop, fanout: map}
"""
    ran = play(text, {"list": [1, 2, 3]})
    assert (ran.calls["once"], ran.calls["each"], ran.calls["a"]) == (1, 3, 3)
    assert ran.verdict == "GO"


def test_H_35_a_retry_prepares_nothing_again(play: Play) -> None:
    """C.10 R8: once per run of the step; a retry goes on with its run."""
    text = """
steps:
  a: {type: noop, on_init: {run: [before]}, on_fail: {retry: {max: 2}}}
  before: {type: noop}
"""
    ran = play(text, {"a": Turns(Fails(), {})})
    assert (ran.started, ran.verdict) == (["before", "a", "a"], "GO")


def test_H_35_preparations_have_an_end(play: Play) -> None:
    """C.10 R8, law 2: at most fifty items, however many run_js asks for."""
    text = """
steps:
  a: {type: noop, on_init: {run_js: "return Array.from({length: 60}, () => 'before')"}}
  before: {type: noop, start: routed, max_runs: 0}
"""
    ran = play(text)
    assert ran.calls["before"] <= 50
    assert ran.verdict in ("GO", "NO-GO")


# --- G12: keys

KEYED = """
steps:
  a:
    type: github
    op: comment.create
    idempotency_key: "{key}"
    on_success: {{goto_js: "return outputs_history.a.length < 2 ? 'a' : null"}}
"""


def test_G_12_the_same_key_is_answered_from_the_store(play: Play) -> None:
    """G12: a second call with the same key in a run makes no call and gives the stored output."""
    ran = play(KEYED.format(key="post-{{ event.name }}"), {"a": Turns({"number": 1}, {"number": 2})})
    assert len(ran.stage.called("a")) == 1
    assert ran.output("a") == {"number": 1}


def test_G_12_another_key_is_another_call(play: Play) -> None:
    """G12: rendered per call."""
    ran = play(
        KEYED.format(key="post-{{ loop }}-{{ outputs_history.a.size }}"),
        {"a": Turns({"number": 1}, {"number": 2})},
    )
    assert [call.key for call in ran.stage.called("a")] == ["post-0-0", "post-1-1"]


def test_G_12_a_replayed_answer_says_so(play: Play) -> None:
    """G12: `output_meta.replayed` tells it from a call; guarantees are judged on it as ever."""
    text = KEYED.format(key="same") + "    guarantee: output.number === 1\n"
    ran = play(text, {"a": Turns({"number": 1}, {"number": 2})})
    assert (ran.verdict, len(ran.stage.called("a"))) == ("GO", 1)
    assert ran["a"].runs == 2


def test_G_12_a_failed_call_leaves_no_answer(play: Play) -> None:
    """G12: what wasn't done can be done under the same key."""
    text = """
steps:
  a: {type: github, op: comment.create, idempotency_key: same, on_fail: {retry: {max: 1}}}
"""
    ran = play(text, {"a": Turns(Fails(), {"number": 2})})
    assert (len(ran.stage.called("a")), ran.output("a")) == (2, {"number": 2})


def test_G_12_items_have_keys_of_their_own(play: Play) -> None:
    """G12: rendered in the item; two items with one key make one call."""
    text = """
steps:
  list: {type: noop, forEach: true}
  a: {type: github, op: comment.create, idempotency_key: "{{ item.to }}", fanout: map, depends_on: list}
"""
    ran = play(
        text, {"list": [{"to": "x"}, {"to": "y"}, {"to": "x"}], "a": lambda call: call.names["item"]["to"]}
    )
    assert [call.key for call in ran.stage.called("a")] == ["x", "y"]
    assert ran.output("a") == ["x", "y", "x"]


def test_G_12_without_a_template_the_key_is_the_intents(play: Play) -> None:
    """Semantics 17: constant over retries, new for another run of the step."""
    text = """
steps:
  a:
    type: github
    op: comment.create
    on_fail: {retry: {max: 1}}
    on_success: {goto_js: "return loop === 0 ? 'a' : null"}
"""
    ran = play(text, {"a": Turns(Fails(), {}, {})})
    first, again, other = [call.key for call in ran.stage.called("a")]
    assert first == again != other


def test_G_12_a_key_holds_after_a_resume(play: Play) -> None:
    """G12: in a run that goes on in another process the stored answer is given, too."""
    text = """
steps:
  a: {type: github, op: comment.create, idempotency_key: same}
  ask: {type: human-input, prompt: "again?", depends_on: a, on_success: {run: [again]}}
  again: {type: noop, start: routed, on_success: {goto: a}}
"""
    ran = play(text, {"a": Turns({"number": 1}, {"number": 2})})
    done = ran.answered("ask", "yes")
    assert done["a"].runs == 2
    assert (len(done.stage.called("a")), done.output("a")) == (1, {"number": 1})
