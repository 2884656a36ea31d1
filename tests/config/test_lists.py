"""Fan-outs over nothing, and how many items run at a time (C.13)."""

from __future__ import annotations

from typing import Any

import pytest

TEXT = """
steps:
  list: {{type: noop, forEach: true, {on_list}}}
  each: {{type: noop, fanout: map, depends_on: list, {on_each}}}
  inner: {{type: noop, fanout: map, depends_on: each}}
  all: {{type: noop, depends_on: each}}
"""


@pytest.mark.parametrize(
    ("on_list", "on_each", "found"),
    [
        ("group: g", "group: g", (1, 1)),
        ("forEach_concurrency: 4", "group: g", (4, 4)),
        ("forEach_concurrency: 4", "concurrency: 2", (2, 4)),
        ("group: g", "concurrency: 2", (2, 1)),
    ],
)
def test_C_13_R8_a_list_says_how_many_items_run_at_a_time(
    load_text: Any, on_list: str, on_each: str, found: tuple[int, int]
) -> None:
    """C.13 R8, G22: for each step that runs once per item of it, unless the step says it itself."""
    steps = load_text(TEXT.format(on_list=on_list, on_each=on_each)).plan.steps
    assert (steps["each"].concurrency, steps["inner"].concurrency) == found
    assert steps["all"].concurrency == 1


@pytest.mark.parametrize(
    ("keys", "code"),
    [
        ("fanout: map", "fanout.no_list"),
        ("reduce: false", "fanout.no_list"),
        ("fanout: map, depends_on: other", "fanout.no_list"),
        ("forEach_concurrency: 2", "key.idle"),
        ("concurrency: 2, fanout: reduce, depends_on: list", "key.idle"),
    ],
)
def test_a_fan_out_without_a_list_is_warned_about(warn: Any, keys: str, code: str) -> None:
    """C.13 R1: the step would run once."""
    text = f"steps: {{list: {{type: noop, forEach: true}}, other: {{type: noop}}, a: {{type: noop, {keys}}}}}"
    assert [problem.code for problem in warn(text)] == [code]


@pytest.mark.parametrize("block", ["run: [a]", "run_js: \"['a']\""])
def test_C_10_R5_a_step_that_others_run_may_get_their_items(warn: Any, block: str) -> None:
    """C.10 R5: one run per item of the step that runs it."""
    text = f"steps: {{list: {{type: noop, forEach: true, on_success: {{{block}}}}}, a: {{type: noop, fanout: map}}}}"
    assert warn(text) == ()


@pytest.mark.parametrize(("key", "codes"), [("post", ["idempotency_key.same"]), ("'post-{{ item.id }}'", [])])
def test_G_12_a_key_tells_items_apart(warn: Any, key: str, codes: list[str]) -> None:
    """G12: a call whose key was used before isn't made."""
    step = f"{{type: noop, mutates: true, criticality: info, idempotency_key: {key}"
    text = f"steps: {{list: {{type: noop, forEach: true}}, a: {step}, fanout: map, depends_on: list}}}}"
    assert [problem.code for problem in warn(text)] == codes
    assert warn(f"steps: {{a: {step}}}}}") == ()
