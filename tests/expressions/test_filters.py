"""The filters of B.11, as plain functions and in templates."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gonogo.expressions.filters import FILTERS, as_text, get, shell_escape, shell_escape_double, to_json
from gonogo.expressions.template import Renderer


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("parse_json", ['{"a":[1]}'], {"a": [1]}),
        ("parse_json", ["not json"], None),
        ("parse_json", [[1]], [1]),
        ("to_json", [{"a": "é"}], '{"a":"é"}'),
        ("json", [[1, None, True]], "[1,null,true]"),
        ("json", [{"a": 1}, 2], '{\n  "a": 1\n}'),
        ("base64", ["é"], "w6k="),
        ("base64_encode", ["a"], "YQ=="),
        ("base64_decode", ["w6k="], "é"),
        ("base64_decode", ["/w=="], "\ufffd"),
        ("safe_label", ["  bug: <b>new</b> ümlaut $x "], "bug: bnew/b mlaut x"),
        ("safe_label", ["x" * 80], "x" * 50),
        ("safe_label_list", [["a b", "", "$$", "a b", "c"]], ["a b", "c"]),
        ("unescape_newlines", ["a\\nb\\tc"], "a\nb\tc"),
        ("json_escape", ['a"b\n'], 'a\\"b\\n'),
        ("has_min_permission", ["MEMBER", "COLLABORATOR"], True),
        ("has_min_permission", ["NONE", "MEMBER"], False),
        ("has_min_permission", [None, "NONE"], False),
        ("has_min_permission", ["OWNER", "nonsense"], False),
        ("is_owner", ["OWNER"], True),
        ("is_member", ["owner"], True),
        ("is_member", ["CONTRIBUTOR"], False),
        ("is_collaborator", ["COLLABORATOR"], True),
        ("is_contributor", ["FIRST_TIMER"], False),
        ("is_first_timer", ["FIRST_TIME_CONTRIBUTOR"], True),
        ("is_first_timer", [None], False),
        ("get", [{"a": {"b": [1, 2]}}, "a.b[1]"], 2),
        ("get", [{"a": 1}, "a.b.c"], None),
        ("get", [[5, 6], 1], 6),
        ("not_empty", [" "], False),
        ("not_empty", [0], True),
        ("not_empty", [[]], False),
        ("coalesce", [None, "", "x", "y"], "x"),
        ("coalesce", [None], None),
    ],
)
def test_filters_do_what_B_11_names(name: str, arguments: list[Any], expected: Any) -> None:
    """B.11: each filter beyond the standard set."""
    assert FILTERS[name](*arguments) == expected


def test_filters_of_the_run_read_memory_and_history() -> None:
    """memory_get, memory_has, memory_list and chat_history see the names of the rendering."""
    names = {
        "memory": {"$namespace": "d", "d": {"k": 5}, "o": {"z": 1}},
        "outputs_history": {"ask": ["hi", {"text": "more"}], "say": ["yes"]},
    }
    text = "{{ 'k' | memory_get }}{{ 'z' | memory_get: 'o' }}{{ 'z' | memory_has }}"
    text += "{{ '' | memory_list }}{{ 'o' | memory_list }}"
    assert Renderer().render(text, names) == "51falsekz"
    said = Renderer().render_value("{{ '' | chat_history: 'ask', 'say' }}", names)
    assert [(turn["role"], turn["text"]) for turn in said] == [
        ("user", "hi"),
        ("assistant", "yes"),
        ("user", "more"),
    ]
    assert Renderer().render("{{ 'k' | memory_get }}", {}) == ""


@settings(max_examples=30, deadline=None)
@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=40))
def test_SEC_1_the_shell_reads_escaped_text_as_the_text_itself(text: str) -> None:
    """SEC-1: single-quoted, and between double quotes."""
    shell = shutil.which("sh")
    assert shell is not None
    script = f'printf %s {shell_escape(text)}; printf "\\1"; printf %s "{shell_escape_double(text)}"'
    done = subprocess.run([shell, "-c", script], capture_output=True, check=True)
    assert done.stdout == text.encode() + b"\1" + text.encode()


@pytest.mark.parametrize(
    "text", ["$(touch pwned)", "`touch pwned`", "'; touch pwned; '", "-rf", 'x"; touch pwned; echo "']
)
def test_SEC_1_known_attacks_stay_one_word(text: str) -> None:
    """SEC-1: the values of the case."""
    assert shell_escape(text) == "'" + text.replace("'", "'\"'\"'") + "'"


def test_a_shell_can_not_be_given_nul() -> None:
    """Said, not dropped."""
    with pytest.raises(ValueError, match="NUL"):
        shell_escape("a\0b")


@settings(max_examples=50, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_to_json_is_json(value: Any) -> None:
    """What it writes reads back the same."""
    assert json.loads(to_json(value)) == value


@settings(deadline=None)
@given(st.text())
def test_text_is_written_as_it_is(text: str) -> None:
    """No escaping happens unless a filter asks for it."""
    assert as_text(text) == text


@settings(deadline=None)
@given(st.text())
def test_get_never_fails(path: str) -> None:
    """Any path on any value gives a value or null."""
    get({"a": [{"b": 1}]}, path)
