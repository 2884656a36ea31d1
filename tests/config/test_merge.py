"""config/merge.py: the merge table of spec A.2, column D."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gonogo.config.collect import Collector
from gonogo.config.merge import finish, merge, unify_steps
from gonogo.config.nodes import Mapping, plain
from gonogo.config.schema.step import OUT_OF_SCOPE, Step
from gonogo.config.schema.top import Document
from gonogo.config.structs import keys_of
from gonogo.config.yaml import parse
from gonogo.errors import Problem
from gonogo.providers.table import built_in


def tree(value: Any, file: str = "a.yaml") -> Mapping:
    """A tree of plain data: JSON is YAML."""
    node = parse(msgspec.json.encode(value), file)
    assert isinstance(node, Mapping)
    return node


def merged(parent: Any, child: Any) -> tuple[Any, list[Problem]]:
    """`child` over `parent`, as plain data, and what was said."""
    above, below = tree(parent, "parent.yaml"), tree(child, "child.yaml")
    notes = Collector(below)
    result = finish(merge(unify_steps(above, notes), unify_steps(below, notes), notes))
    return plain(result), notes.found


def override(parent: Any, child: Any) -> Any:
    """The table's rule for a key, on plain data: maps deep-merge, null deletes, the rest is replaced."""
    if not isinstance(parent, dict) or not isinstance(child, dict):
        return child
    result = {key: value for key, value in parent.items() if child.get(key, 0) is not None}
    for key, value in child.items():
        if value is not None:
            result[key] = override(parent[key], value) if key in parent else value
    return result


STEP_KEYS = sorted(
    {
        *keys_of(Step),
        *OUT_OF_SCOPE,
        *(key for name in built_in().names() for key in keys_of(built_in().get(name).config)),
    }
    - {"on", "appendPrompt"}
)
TOP_KEYS = sorted(set(keys_of(Document)) - {"steps", "extends", "include", "imports"})
leaves = st.none() | st.booleans() | st.integers(-9, 9) | st.text("ab", max_size=3)
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("kl", max_size=2), inner, max_size=3),
)
written = values.filter(lambda value: value is not None)


PAIRS: tuple[tuple[Any, Any], ...] = (
    ("p", "c"),
    ("p", None),
    (["p", "q"], ["c"]),
    (["p"], []),
    ({"a": 1, "b": {"x": 1, "y": 2}}, {"b": {"y": None, "z": [3]}, "c": 0}),
    ({"a": 1}, "c"),
    (True, False),
)


@pytest.mark.parametrize("key", STEP_KEYS)
def test_every_step_key_overrides_as_the_table_says(key: str) -> None:
    """A.2 D, I.1 row 12: scalars and lists replace, maps deep-merge, null deletes; no key is dropped."""
    for parent, child in PAIRS:
        result, _ = merged({"steps": {"s": {"type": "noop", key: parent}}}, {"steps": {"s": {key: child}}})
        assert result["steps"]["s"] == override({"type": "noop", key: parent}, {key: child})


@pytest.mark.parametrize("key", TOP_KEYS)
def test_every_top_level_key_overrides_as_the_table_says(key: str) -> None:
    """A.2 D: the child wins, maps deep-merge, null deletes."""
    for parent, child in PAIRS:
        result, _ = merged({key: parent, "steps": {"s": {}}}, {key: child})
        assert result == {"steps": {"s": {}}, **override({key: parent}, {key: child})}


@given(key=st.sampled_from(STEP_KEYS), parent=written, child=values)
@settings(max_examples=200, deadline=None)
def test_any_values_of_any_step_key_override_as_the_table_says(key: str, parent: Any, child: Any) -> None:
    """I.2 property merge: A.2 D, as a property."""
    result, _ = merged({"steps": {"s": {"type": "noop", key: parent}}}, {"steps": {"s": {key: child}}})
    assert result["steps"]["s"] == override({"type": "noop", key: parent}, {key: child})


def test_imports_are_joined_without_repeats() -> None:
    """A.2: `imports`."""
    result, _ = merged({"imports": ["a", "b"]}, {"imports": ["b", "c"]})
    assert result["imports"] == ["a", "b", "c"]


def test_an_appended_prompt_follows_the_parents_after_a_blank_line() -> None:
    """A.2: `appendPrompt`."""
    result, _ = merged({"steps": {"s": {"prompt": "one"}}}, {"steps": {"s": {"appendPrompt": "two"}}})
    assert result["steps"]["s"] == {"prompt": "one\n\ntwo"}


def test_prompts_are_appended_through_three_files() -> None:
    """Each file adds its own."""
    middle, _ = merged({"steps": {"s": {"prompt": "1"}}}, {"steps": {"s": {"appendPrompt": "2"}}})
    result, _ = merged(middle, {"steps": {"s": {"appendPrompt": "3"}}})
    assert result["steps"]["s"]["prompt"] == "1\n\n2\n\n3"


@pytest.mark.parametrize("value", [{"on": []}, None])
def test_a_child_removes_a_step(value: Any) -> None:
    """A.2: `on: []` disables, null deletes."""
    result, _ = merged({"steps": {"a": {}, "b": {}}}, {"steps": {"a": value}})
    assert result["steps"] == {"b": {}}


def test_an_empty_on_in_a_file_of_its_own_removes_nothing() -> None:
    """A.4: there it means that the step runs for no named event."""
    assert plain(finish(tree({"steps": {"a": {"on": []}}}))) == {"steps": {"a": {"on": []}}}


def test_no_event_is_injected_into_a_merged_step() -> None:
    """A.2 D: native rules add no `on`."""
    result, _ = merged(
        {"steps": {"a": {"type": "noop"}}}, {"steps": {"a": {"group": "g"}, "b": {"type": "noop"}}}
    )
    assert result["steps"] == {"a": {"type": "noop", "group": "g"}, "b": {"type": "noop"}}


def test_a_step_that_overrides_is_noted_with_the_parents_place() -> None:
    """YML-2: the overriding of an included step is fine and is shown."""
    _, found = merged({"steps": {"a": {}}}, {"steps": {"a": {"group": "g"}}})
    (note,) = found
    assert (note.code, note.severity) == ("step.overrides", "info")
    assert "parent.yaml:1" in note.message


def test_positions_survive_a_merge() -> None:
    """A key of the parent still knows the parent's file."""
    notes = Collector(tree({}))
    parent, child = (
        tree({"steps": {"a": {"env": {"P": "1"}}}}, "p.yaml"),
        tree({"steps": {"a": {"env": {"C": "2"}}}}),
    )
    env = merge(parent, child, notes)
    for key in ("steps", "a", "env"):
        env = env.entries[key].node  # type: ignore[assignment]
    assert [entry.source.file for entry in env.entries.values()] == ["p.yaml", "a.yaml"]


def test_steps_and_checks_are_one_map() -> None:
    """A.1 rule 5 D: a name in both is fine when it says the same."""
    document = tree({"steps": {"a": {"x": 1}}, "checks": {"a": {"x": 1}, "b": {}}})
    notes = Collector(document)
    assert plain(unify_steps(document, notes)) == {"steps": {"a": {"x": 1}, "b": {}}}
    assert notes.found == []


def test_a_step_that_differs_in_steps_and_checks_is_an_error() -> None:
    """A.1 rule 5 D."""
    document = tree({"steps": {"a": {"x": 1}}, "checks": {"a": {"x": 2}}})
    notes = Collector(document)
    unify_steps(document, notes)
    assert [problem.code for problem in notes.found] == ["step.twice"]


def test_a_parents_checks_meet_a_childs_steps() -> None:
    """The two names are one also across files."""
    result, _ = merged({"checks": {"a": {"x": 1}}}, {"steps": {"a": {"y": 2}}})
    assert result == {"steps": {"a": {"x": 1, "y": 2}}}
