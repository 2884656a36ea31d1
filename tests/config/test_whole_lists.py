"""An `if` sees the whole list (C.13): one that reads it as an item is warned about, and nothing else is."""

from __future__ import annotations

from typing import Any

import pytest

TEXT = """
steps:
  files: {{type: command, exec: x, forEach: true}}
  approve: {{type: human-input, prompt: "?", depends_on: files, fanout: map}}
  ship: {{type: command, exec: x, depends_on: approve, fanout: {fanout}, {keys}}}
"""
CODE = "expression.whole_list"


def codes(problems: Any) -> list[str]:
    """The codes, in order."""
    return [problem.code for problem in problems]


@pytest.mark.parametrize(
    "condition",
    [
        "outputs.approve.text === 'yes'",
        "outputs.approve?.text === 'yes'",
        "outputs.approve && outputs.approve['text'] === 'yes'",
        "outputs_raw.approve.text.includes('yes')",
    ],
)
def test_C_13_an_if_that_reads_a_list_as_an_item_is_warned_about(
    warn: Any, refuse: Any, condition: str
) -> None:
    """Every item would be skipped, and the run be GO. The warning is at the condition and names assume."""
    text = TEXT.format(fanout="map", keys=f'if: "{condition}"')
    (found,) = warn(text)
    assert (found.code, found.path, found.severity) == (CODE, "steps.ship.if", "warning")
    assert found.place.line == 4
    assert found.suggestion.startswith("write it under assume:")
    assert codes(refuse(text, strict=True)) == [CODE]


def test_who_runs_once_is_told_to_ask_the_list(warn: Any) -> None:
    """Its assume sees the list, too."""
    (found,) = warn(TEXT.format(fanout="reduce", keys="if: outputs.approve.text"))
    assert (found.code, "assume" in found.suggestion) == (CODE, False)
    assert "outputs.approve.some(one => one.text)" in found.suggestion


@pytest.mark.parametrize(
    "keys",
    [
        "if: outputs.approve.length > 0",
        "if: outputs.approve",
        "if: \"outputs.approve.every(one => one.text === 'yes')\"",
        "if: \"outputs.approve.filter(one => one.text === 'yes').length > 1\"",
        "if: \"outputs.approve[0].text === 'yes'\"",
        "if: \"outputs.approve['0'].text === 'yes'\"",
        "if: \"outputs.approve[index].text === 'yes'\"",
        "if: \"Array.isArray(outputs.approve) || outputs.approve.text === 'yes'\"",
        "if: outputs.files.ready",
        "assume: \"outputs.approve.text === 'yes'\"",
    ],
)
def test_what_may_be_meant_is_not_warned_about(warn: Any, keys: str) -> None:
    """Questions to the list, conditions of an item, and what may be something else than a list."""
    assert CODE not in codes(warn(TEXT.format(fanout="map", keys=keys)))


ROUTED = """
steps:
  files: {{type: command, exec: x, forEach: true{on_list}}}
  approve: {{type: human-input, prompt: "?", depends_on: files, fanout: map{on_item}}}
  told: {{type: noop, if: outputs.approve.text{on_told}}}
"""


@pytest.mark.parametrize(
    ("on_list", "on_item", "on_told", "expected"),
    [
        ("", "", ", depends_on: approve", [CODE]),
        ("", ", on_success: {run: [told]}", "", []),
        ("", ", on_success: {run_js: \"['told']\"}", ", depends_on: approve", []),
        (", on_success: {run: [told]}", "", ", depends_on: approve", []),
        (", on_finish: {run: [told]}", "", ", depends_on: approve", [CODE]),
        (", on_finish: {goto_js: 'null'}", "", ", depends_on: approve", [CODE]),
    ],
)
def test_a_step_that_an_item_routes_to_may_be_within_that_item(
    warn: Any, on_list: str, on_item: str, on_told: str, expected: list[str]
) -> None:
    """There the output is that of the item."""
    text = ROUTED.format(on_list=on_list, on_item=on_item, on_told=on_told)
    assert [code for code in codes(warn(text)) if code == CODE] == expected


def test_of_lists_within_lists_nothing_is_said(warn: Any) -> None:
    """An if within an outer item sees what that holds."""
    text = """
    steps:
      files: {type: command, exec: x, forEach: true}
      lines: {type: command, exec: x, forEach: true, depends_on: files, fanout: map}
      check: {type: command, exec: x, depends_on: lines, fanout: map}
      after: {type: command, exec: x, depends_on: check, fanout: map, if: outputs.check.ok}
    """
    assert CODE not in codes(warn(text))
