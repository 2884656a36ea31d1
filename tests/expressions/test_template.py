"""Liquid templates: checked when loaded, rendered within bounds, never twice."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gonogo.expressions.analyse import Reading
from gonogo.expressions.results import TemplateProblem
from gonogo.expressions.template import Renderer, check, names, unescaped

NAMES: dict[str, Any] = {
    "pr": {"title": "x'; touch pwned; '", "number": 7},
    "outputs": {"a": {"n": 1, "list": [1, {"k": "v"}], "none": None, "yes": True}},
    "outputs_history": {"a": [1, 2], "b": [{"text": "hi"}]},
    "memory": {"$namespace": "d", "d": {"k": 5}, "other": {"z": 1}},
    "now": 86_400_000,
    "evil": "{{ 7 | times: 7 }}{% include 'x' %}",
}


def render(text: str, **more: Any) -> str:
    """With NAMES and more."""
    return Renderer().render(text, {**NAMES, **more})


def render_or_refuse(text: str) -> str | None:
    """None when the template is refused."""
    try:
        return render(text)
    except TemplateProblem:
        return None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("no tags } {", "no tags } {"),
        ("n={{ outputs.a.n }}", "n=1"),
        ("{{ nope.x.y }}|{{ outputs.zz.q }}|{{ outputs.a.none }}", "||"),
        ("{{ outputs.a.yes }}", "true"),
        ("{{ outputs.a }}", '{"n":1,"list":[1,{"k":"v"}],"none":null,"yes":true}'),
        ("{{ outputs.a.list[1].k }}{{ outputs.a.list.size }}{{ outputs.a.list.first }}", "v21"),
        ("{{ outputs.history.a | join: '-' }}", "1-2"),
        ("{% for x in outputs.a.list %}{{ forloop.index }}{% endfor %}", "12"),
        ("{{ 'now' | date: '%Y-%m-%d %H:%M' }}", "1970-01-02 00:00"),
        ("{{ '2024-05-06T07:08:09+02:00' | date: '%H' }}", "05"),
        ("{{ now }}{{ today }}", "86400000"),
        ("{% assign l = outputs.a.list | where_exp: 'i', 'i.k == \"v\"' %}{{ l | json }}", '[{"k":"v"}]'),
        ("{{ 'a' if outputs.a.yes else 'b' }}", "a"),
    ],
)
def test_values_are_written_plainly(text: str, expected: str) -> None:
    """B.11: unknown variables render empty, objects as JSON, time is the run's own."""
    assert render(text) == expected


@settings(deadline=None)
@given(st.text())
def test_SEC_1_a_value_is_never_rendered_a_second_time(value: str) -> None:
    """SEC-1: whatever is in it, the text is the value itself."""
    assert render("[{{ evil }}]", evil=value) == f"[{value}]"


@pytest.mark.parametrize(
    "text",
    [
        "{{ pr.__class__ }}",
        "{{ pr.title.__class__.__mro__ }}",
        "{{ pr.title.upper }}",
        "{{ pr.keys }}",
        "{{ outputs.a.list.append }}",
        "{{ pr.title[0] }}",
        "{{ 'x' | map: '__class__' }}",
        "{% assign c = pr['__cl' | append: 'ass__'] %}{{ c }}",
    ],
)
def test_EXP_3_nothing_of_an_object_but_its_data_is_reached(text: str) -> None:
    """EXP-3: attribute walks give nothing."""
    assert render_or_refuse(text) in ("", None)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("{{ x | nofilter }}", 1, "unknown filter 'nofilter'"),
        ("a\n{{ pr.title | attr: 'x' }}", 2, "unknown filter 'attr'"),
        ("{% include 'x' %}", 1, "read no files"),
        ("{% render 'x' %}", 1, "read no files"),
        ("a\n\n{% readfile 'x' %}", 3, "read no files"),
        ("{% nosuchtag %}", 1, "nosuchtag"),
        ("{{ x ", 1, "}}"),
        ("{% if x %}", 1, "endif"),
        ("{% if %}x{% endif %}", 1, "expression"),
    ],
)
def test_mistakes_are_found_when_loaded(text: str, line: int, words: str) -> None:
    """Syntax, tags that aren't available and unknown filters, each with its line."""
    (problem,) = check(text)
    assert (problem.line, words in problem.message) == (line, True), problem.message


def test_every_unknown_filter_is_reported() -> None:
    """All of them at once, in one reading of the file."""
    assert len(check("{{ x | f1 }} {{ y | f2 | f3 }}")) == 3
    assert check("{{ x | upcase | shell_escape }} plain") == []


@pytest.mark.parametrize(
    "text",
    [
        "{% for i in (1..1000000) %}{% endfor %}",
        "{% for i in (1..1000) %}{% for j in (1..1000) %}{% endfor %}{% endfor %}",
        "{% for i in (1..90000) %}{% endfor %}{% for i in (1..90000) %}{% endfor %}",
        "{% for i in (1..99999) %}{{ big }}{% endfor %}",
        "{% tablerow i in (1..1000000) %}{% endtablerow %}",
        "{{ big | replace: 'a', big }}",
        "{% assign q = 'a' %}{% for i in (1..60) %}{% assign q = q | append: q %}{% endfor %}",
        "{% assign q = 10 %}{% for i in (1..60) %}{% assign q = q | times: q %}{% endfor %}",
        "{{ (1..1000000000000) | join: ',' }}",
        "{{ (1..1000000000000) | size | append: 'x' }}{{ (1..1000000000000) | reverse | json }}",
        "{% assign l = '1,2' | split: ',' %}{% for i in (1..60) %}{% assign l = l | concat: l %}{% endfor %}",
        "{{ 'x' | date: '%Y' }}{{ 1 | date: '%999999999d' }}",
        "{% if x %}" * 100 + "{% endif %}" * 100,
    ],
)
def test_renderings_end(text: str) -> None:
    """semantics.md 13: bounded by counts: turns, output, nesting, sizes of values."""
    with pytest.raises(TemplateProblem):
        render(text, big="a" * 50_000)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{{ outputs.a.n }}", 1),
        (" {{ outputs.a.list }}\n", [1, {"k": "v"}]),
        ("{{ outputs.a }}", NAMES["outputs"]["a"]),
        ("{{ nope }}", None),
        ("{{ pr.number | plus: 1 }}", 8),
        ("n{{ outputs.a.n }}", "n1"),
        ("{{ outputs.a.n }}{{ outputs.a.n }}", "11"),
        ("plain", "plain"),
    ],
)
def test_exactly_one_output_tag_keeps_the_type(text: str, expected: Any) -> None:
    """C.10 R3 D."""
    assert Renderer().render_value(text, NAMES) == expected


def test_what_a_template_reads_is_told_as_for_expressions() -> None:
    """Names of the template's own are left out; filters that read memory count."""
    text = "{% for x in outputs.a.list %}{{ x.y }}{{ outputs[pr.title].z }}{% endfor %}{{ 'k' | memory_get }}"
    assert names(text) == Reading(
        names=("memory", "outputs", "pr"),
        paths=(("outputs", "a", "list"), ("outputs",), ("pr", "title")),
        dynamic=("memory", "outputs"),
    )
    assert names("{{ outputs.history.b.last }}").paths == (("outputs_history", "b"),)
    assert names("plain") == Reading()


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("echo {{ pr.title }}", ["pr.title"]),
        ("echo {{ pr.title | shell_escape }} {{ pr.number | plus: 1 }}", []),
        ('echo "{{ pr.title | shell_escape_double }}"', []),
        ("{{ pr.title | shell_escape | upcase }}", ["pr.title"]),
        ("{% assign t = pr.title %}{{ t }}", ["t"]),
        ("{% if a %}{{ b }}{% elsif c %}{{ d }}{% else %}{{ e }}{% endif %}", ["b", "d", "e"]),
        (
            "{% case a %}{% when 1 %}{{ b }}{% else %}{{ c }}{% endcase %}{% unless a %}{{ d }}{% endunless %}",
            ["b", "c", "d"],
        ),
        ("{% for i in l %}{{ i }}{{ forloop.index }}{% endfor %}", ["i"]),
        ("{% echo a %}{% cycle b, 'c' %}{% liquid echo d %}", ["a", "b", "d"]),
        ("{{ 'constant' }} {{ 5 }}", []),
        ("{{ 'x' | append: pr.title }}", ["pr.title"]),
        ("{{ a if b else c }}", ["a", "b", "c"]),
    ],
)
def test_SEC_1_output_that_a_shell_would_read_is_found(text: str, paths: list[str]) -> None:
    """SEC-1: output tags whose last filter doesn't quote for a shell."""
    assert unescaped(text) == paths


def test_a_failure_while_rendering_has_a_place() -> None:
    """Line and column of the tag."""
    with pytest.raises(TemplateProblem) as problem:
        render("a\n {{ outputs.a.n | divided_by: 0 }}")
    assert problem.value.line == 2


def test_only_names_that_are_used_are_looked_up() -> None:
    """A lazy mapping is never copied."""

    class Lazy(dict[str, Any]):
        def __getitem__(self, key: str) -> Any:
            if key != "outputs":
                raise AssertionError(key)
            return super().__getitem__(key)

    assert Renderer().render("{{ outputs.a.n }}", Lazy(NAMES)) == "1"
