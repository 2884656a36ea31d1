"""What an expression reads: names, paths, calls, and what is refused before anything runs."""

from __future__ import annotations

from typing import Any

import pytest

from gonogo.expressions.analyse import KNOWN_NAMES, ExpressionProblem, Reading, analyse, locate, unknown_names


def read(source: str) -> Reading:
    """As a condition; the kind makes no difference."""
    return analyse(source)


@pytest.mark.parametrize(
    ("source", "paths"),
    [
        ("outputs.lint.issues.length > 0", [("outputs", "lint", "issues")]),
        ("outputs?.lint?.ok", [("outputs", "lint", "ok")]),
        ("outputs['a-b'].c", [("outputs", "a-b", "c")]),
        ("output.items[0].id", [("output", "items", 0, "id")]),
        ("output.items.map(i => i.id)", [("output", "items")]),
        ("outputs.history.a.length", [("outputs_history", "a")]),
        ("(output).n", [("output", "n")]),
        ("`${output.n}`", [("output", "n")]),
        ("Math.max(...output.list)", [("output", "list")]),
        ("output.a && output.b || output.a", [("output", "a"), ("output", "b")]),
        ("output[item.key].n", [("item", "key")]),
        ("event == 'x'", [("event",)]),
    ],
)
def test_member_paths_are_found(source: str, paths: list[Any]) -> None:
    """Literal keys and indexes are followed; methods and a trailing length are dropped."""
    assert list(read(source).paths) == paths


@pytest.mark.parametrize(
    ("source", "dynamic"),
    [
        ("outputs[item.key]", ("outputs",)),
        ("outputs.a[item.key]", ()),
        ("Object.keys(outputs)", ("outputs",)),
        ("const {a} = outputs; a", ("outputs",)),
        ("outputs.history[item.key]", ("outputs_history",)),
        ("({...env})", ("env",)),
        ("outputs.a", ()),
        ("outputs.toString()", ("outputs",)),
    ],
)
def test_computed_and_whole_reads_are_told(source: str, dynamic: tuple[str, ...]) -> None:
    """Such names must be offered in full."""
    assert read(source).dynamic == dynamic


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("x => x + output", ("output",)),
        ("(function f(a, b = item) { return f(a) + b + index })", ("index", "item")),
        ("let t = 0; for (const i of output) t += i; t", ("output",)),
        ("for (var k in env) k; k", ("env",)),
        ("try { output } catch (error) { error }", ("output",)),
        ("try { output } catch { error }", ("error", "output")),
        ("const {a, b: {c} = item, ...rest} = output; a + c + rest", ("item", "output")),
        ("class A { m(x) { return x + index } } new A()", ("index",)),
        ("label: while (true) break label", ()),
        ("({output, item: 1, [index]: 2})", ("index", "output")),
        ("output.item.index", ("output",)),
        ("switch (output) { case 1: let q = 2; q }", ("output",)),
        ("{ let output = 1; output } output.n", ("output",)),
        ("use(); function use() { return item }", ("item",)),
    ],
)
def test_declared_names_are_not_free(source: str, names: tuple[str, ...]) -> None:
    """Parameters, variables, functions, classes and catch parameters belong to the expression itself."""
    assert read(source).names == names


def test_calls_of_free_functions_are_told() -> None:
    """Only free ones: methods and own functions are not."""
    assert read(
        "const f = x => x; f(1) && always() && contains(output, 'a') && output.includes('b')"
    ).calls == (
        "always",
        "contains",
    )


def test_unknown_names_are_those_nobody_offers() -> None:
    """B.2 D: data names, helpers and the language's own are known."""
    assert unknown_names(read("outputs.a && always() && Math.max(1, foo) && bar.baz && JSON.parse('1')")) == (
        "bar",
        "foo",
    )


@pytest.mark.parametrize("name", sorted(KNOWN_NAMES))
def test_no_known_name_is_unknown(name: str) -> None:
    """B.2: every name of the scope may be used anywhere."""
    assert unknown_names(read(f"{name} == null")) == ()


@pytest.mark.parametrize(
    "source",
    [
        "${{ outputs.a.ok }} == false",
        "{{ outputs.a.ok }} == 'x'",
        "{{ 'false' }}",
        "a && {{ b }}",
        "{% if x %}true{% endif %}",
    ],
)
def test_EXP_1_templates_are_refused(source: str) -> None:
    """EXP-1: with the words "expression, not template"."""
    with pytest.raises(ExpressionProblem, match="expression, not template"):
        read(source)


@pytest.mark.parametrize("source", ["'{{ x }}' == output", "`${{a: 1}.a}`", "output // {{ x }}", '"{% x %}"'])
def test_braces_in_strings_and_comments_are_text(source: str) -> None:
    """Only braces outside strings make a template."""
    read(source)


@pytest.mark.parametrize("source", ["", "  \n ", "// nothing", "/* nothing */"])
def test_EXP_1_blank_text_is_refused(source: str) -> None:
    """EXP-1: nothing to evaluate is an error, never true."""
    with pytest.raises(ExpressionProblem, match="expected an expression"):
        read(source)


def test_absurd_nesting_length_and_broken_characters_are_refused() -> None:
    """None of them reaches the engine."""
    for source in ("[" * 5000 + "]" * 5000, "x" * 300_000, "'\ud83d'"):
        with pytest.raises(ExpressionProblem):
            read(source)


def test_text_with_mistakes_is_read_as_far_as_it_goes() -> None:
    """Whether it compiles is for the engine to say."""
    assert "output" in read("output.n >").names


def test_a_name_is_located_for_messages() -> None:
    """Line and column from 1, in characters."""
    assert locate("'é' +\n  foo.bar", "foo") == (2, 3)
    assert locate("a.foo + foo", "foo") == (1, 9)
    assert locate("a", "foo") == (1, 1)
