"""config/yaml.py: YAML 1.2 scalars, places, duplicate keys, merges and limits."""

from __future__ import annotations

import resource
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gonogo.config.nodes import Mapping, plain
from gonogo.config.yaml import FILE_BYTES_MAX, NODES_MAX, parse
from gonogo.errors import ConfigError, Problem


def read(text: str | bytes) -> Any:
    """The plain value of a YAML text."""
    node = parse(text, "a.yaml")
    return None if node is None else plain(node)


def refused(text: str | bytes) -> tuple[Problem, ...]:
    """The problems of a text that is refused."""
    with pytest.raises(ConfigError) as caught:
        parse(text, "a.yaml")
    return caught.value.problems


def codes(text: str | bytes) -> list[tuple[str, int, int]]:
    """Code, line and column of each problem."""
    return [(p.code, p.place.line, p.place.column) for p in refused(text) if p.place]


def test_YML_1_only_true_and_false_are_booleans() -> None:
    """YML-1: the words of YAML 1.1 are text."""
    words = "[on, off, yes, no, y, n, NO, Off, true, True, TRUE, false, False, FALSE]"
    assert read(words) == [
        *("on", "off", "yes", "no", "y", "n", "NO", "Off"),
        *(True, True, True, False, False, False),
    ]


def test_YML_1_the_key_on_is_text() -> None:
    """YML-1: `on` is a key like any other."""
    assert read("on: [pr_opened]\nno: 1\ntrue: 2\n3: x\n") == {
        "on": ["pr_opened"],
        "no": 1,
        "true": 2,
        "3": "x",
    }


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0o17", 15),
        ("0x1F", 31),
        ("012", 12),
        ("-5", -5),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("5.", 5.0),
        ("~", None),
        ("null", None),
        ("", None),
        ("1_000", "1_000"),
        ("12:30:45", "12:30:45"),
        ("2001-01-01", "2001-01-01"),
        ("0b11", "0b11"),
        ("+", "+"),
        ("'5'", "5"),
        ('"true"', "true"),
        ("!!str 5", "5"),
        ("!!float 5", 5.0),
        ("! 5", "5"),
    ],
)
def test_plain_scalars_follow_the_core_schema(text: str, value: Any) -> None:
    """YAML 1.2.2, 10.3.2."""
    found = read(f"a: {text}")["a"]
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize("text", [".inf", "-.INF", ".nan", "99999999999999999999", "1e999", "9" * 100_000])
def test_numbers_that_json_cannot_hold_are_refused(text: str) -> None:
    """A plan is journaled as JSON."""
    assert codes(f"a: {text}") == [("yaml.value", 1, 4)]


def test_YML_2_the_second_of_two_equal_keys_is_refused_with_both_lines() -> None:
    """YML-2: nothing is silently lost."""
    (problem,) = refused("checks:\n  deploy: {a: 1}\n  x: 1\n  deploy: {b: 2}\n")
    assert problem.code == "yaml.duplicate"
    assert "'deploy'" in problem.message
    assert "line 2" in problem.message
    assert "line 4" in problem.message


def test_YML_2_a_quoted_key_equals_a_plain_one() -> None:
    """YML-2: `"on"` beside `on`."""
    assert codes('on: 1\n"on": 2\n') == [("yaml.duplicate", 2, 1)]


def test_all_duplicates_are_reported_at_once() -> None:
    """Every error at once."""
    assert len(refused("a: 1\na: 2\nb: {c: 1, c: 2}\n")) == 2


def test_a_merged_key_gives_way_to_the_mappings_own() -> None:
    """Documented precedence: own keys, then the earlier of several mappings."""
    text = "b: &b {x: 1, y: 2}\nc: {<<: *b, y: 3}\nd: {<<: [*b, {x: 9, z: 9}], w: 1}\n"
    assert read(text) == {
        "b": {"x": 1, "y": 2},
        "c": {"y": 3, "x": 1},
        "d": {"w": 1, "x": 1, "y": 2, "z": 9},
    }


def test_YML_3_one_base_and_five_users_work() -> None:
    """YML-3: ordinary anchors keep working."""
    users = "".join(f"u{i}: {{<<: *base, n: {i}}}\n" for i in range(5))
    assert read(f"base: &base {{k: 1}}\n{users}")["u4"] == {"n": 4, "k": 1}


def test_two_merge_keys_in_one_mapping_are_a_duplicate() -> None:
    """`<<` twice would hide which one wins."""
    assert codes("a: &a {x: 1}\nb: {<<: *a, <<: *a}\n") == [("yaml.duplicate", 2, 13)]


def test_a_merge_of_something_else_is_refused() -> None:
    """`<<: text` means nothing."""
    assert codes("a: {<<: text}\n") == [("yaml.merge", 1, 5)]


NINE_LEVELS = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 9)
)
DOUBLED_MERGES = "a0: &a0 {k: 1}\n" + "".join(
    f"a{i}: &a{i}\n  <<: [*a{i - 1}, *a{i - 1}]\n  k{i}: {{<<: [*a{i - 1}]}}\n" for i in range(1, 19)
)
BOMBS = {
    "nine levels of nine-fold aliases": (
        f"env:\n  {NINE_LEVELS.replace(chr(10), chr(10) + '  ')}",
        "expansion",
    ),
    "eighteen levels of doubled merges": (DOUBLED_MERGES, "expansion"),
    "an alias that contains itself": ("a: &a [*a]", "recursion"),
    "a merge of itself": ("a: &a {<<: *a}", "recursion"),
    "10,000 nested brackets": ("a: " + "[" * 10_000, "depth"),
    "10,000 nested braces": ("a: " + "{a: " * 10_000, "depth"),
    "2,000 nested lines": ("".join(" " * i + "a:\n" for i in range(2000)), "depth"),
}


@pytest.mark.parametrize("name", BOMBS)
def test_YML_3_expansion_and_depth_are_limited(name: str) -> None:
    """YML-3: each is refused with a message about expansion or depth."""
    text, code = BOMBS[name]
    assert refused(text)[-1].code == f"yaml.{code}"


def test_YML_3_refusing_takes_little_memory() -> None:
    """YML-3: within 100 MB, all of them together."""
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for text, _ in BOMBS.values():
        refused(text)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb < 100_000


def test_many_small_values_are_limited_too() -> None:
    """The limit counts nodes, however they come about."""
    assert codes("[" + "1," * (NODES_MAX + 1) + "]")[0][0] == "yaml.expansion"


@pytest.mark.parametrize(
    ("data", "code", "line", "column"),
    [
        (b"a: 1\nb: \xff", "yaml.encoding", 2, 4),
        ("a: 1".encode("utf-16"), "yaml.encoding", 1, 1),
        (b"a: b\x00c", "yaml.character", 1, 5),
        ("a:\n\tb: 1\n", "yaml.syntax", 2, 1),
        ("a: 1\n---\nb: 2\n", "yaml.documents", 2, 1),
        ("a: !foo 1\n", "yaml.tag", 1, 4),
        ("a: !!python/object:os.system x\n", "yaml.tag", 1, 4),
        ("a: !!int x\n", "yaml.value", 1, 4),
        ("? [a]\n: b\n", "yaml.key", 1, 3),
        ("a: *b\n", "yaml.alias", 1, 4),
        ("a: 'b\n", "yaml.syntax", 2, 1),
        ("? '" + "k" * 2000 + "'\n: 1\n", "yaml.key", 1, 3),
        (b"a" * (FILE_BYTES_MAX + 1), "yaml.size", 1, 1),
    ],
)
def test_what_is_no_usable_yaml_is_refused_with_its_place(
    data: bytes | str, code: str, line: int, column: int
) -> None:
    """Each with line and column."""
    assert codes(data)[0] == (code, line, column)


def test_a_tab_gets_advice() -> None:
    """The parser's own words don't help."""
    assert refused("a:\n\tb: 1\n")[0].suggestion == "indent with spaces"


def test_a_byte_order_mark_is_no_part_of_the_first_key() -> None:
    """UTF-8 with a mark is UTF-8."""
    assert read(b"\xef\xbb\xbfa: 1") == {"a": 1}


@pytest.mark.parametrize("text", ["", "# only a comment\n", "   \n"])
def test_an_empty_file_has_no_document(text: str) -> None:
    """The caller says what is missing."""
    assert read(text) is None


def test_a_null_document_is_a_scalar() -> None:
    """`---` alone is null, not an empty file."""
    assert read("---\n") is None


def test_keys_and_values_know_their_place() -> None:
    """Lines and columns from 1, in characters."""
    node = parse("ä: 1\nb:\n  - c: x\n", "a.yaml")
    assert isinstance(node, Mapping)
    entry = node.entries["b"]
    inner = entry.node.items[0].entries["c"]  # type: ignore[union-attr]
    assert [(entry.line, entry.column), (inner.line, inner.column)] == [(2, 1), (3, 5)]
    assert (inner.node.line, inner.node.column) == (3, 8)


@given(st.text(max_size=200) | st.binary(max_size=200))
@settings(max_examples=300, deadline=None)
def test_any_text_is_read_or_refused(data: str | bytes) -> None:
    """Nothing but ConfigError is raised."""
    with suppress(ConfigError):
        read(data)


def test_a_template_without_quotes_is_told_to_be_quoted() -> None:
    """`{{` begins a mapping within a mapping in YAML."""
    with pytest.raises(ConfigError) as refused:
        parse("steps:\n  a:\n    message: {{ outputs.a }}\n", "f")
    [problem] = refused.value.problems
    assert "quotes" in problem.suggestion


def test_a_colon_within_a_text_is_told_to_be_quoted() -> None:
    """Not in the words of the YAML library."""
    with pytest.raises(ConfigError) as refused:
        parse("message: hello: world\n", "f")
    [problem] = refused.value.problems
    assert "colon" in problem.message
    assert "quotes" in problem.suggestion
