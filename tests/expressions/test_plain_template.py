"""Templates that only name values: the same as Liquid to the letter, without it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gonogo.expressions import template
from gonogo.expressions.plain_template import read_plain
from gonogo.expressions.results import TemplateProblem
from gonogo.expressions.template import Renderer

NAMES: dict[str, Any] = {
    "a": {"b-c": 1, "d_1": ["x", {"k": None}], "size": 7, "t": True},
    "outputs": {"history": {"a": 1}, "a": "it's {{ a }}"},
    "text": 'a"$`\\b',
    "nul": "\0",
    "long": "x" * (1 << 21),
    "none": None,
    "_x": 1.5,
}
WORDS = "a b-c d_1 size first outputs history text nul long none _x nil k true if nope 1 - é".split()
SIGNS = ". | - {{ }} { } {% %} ' {{- [0] |json |shell_escape |shell_escape_double |upcase".split()
PIECES = st.sampled_from([*WORDS, *SIGNS, " ", "\n", "\r", "{{ ", " }}"])
PLAIN_TAGS = st.builds(
    lambda path, tail: f"{{{{ {'.'.join(path)}{tail} }}}}",
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=3),
    st.sampled_from(["", "", " | json", "|shell_escape", " | shell_escape_double"]),
)
TEXTS = st.lists(st.one_of(PLAIN_TAGS, PIECES), max_size=6).map("".join)


def outcome(work: Any, *given: Any) -> Any:
    """What comes out, or the problem's message."""
    try:
        return work(*given)
    except TemplateProblem as problem:
        return ("refused", problem.message)


def everything(text: str) -> list[Any]:
    """All that is asked about a template."""
    renderer = Renderer()
    return [
        [problem.message for problem in template.check(text)],
        outcome(template.names, text),
        outcome(template.unescaped, text),
        outcome(renderer.render, text, NAMES),
        outcome(renderer.render_value, text, NAMES),
    ]


def by_liquid_alone(text: str) -> list[Any]:
    """The same with the short way shut."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(template, "read_plain", lambda _: None)
        return everything(text)


@given(TEXTS)
def test_liquid_says_the_same(text: str) -> None:
    """The short way differs in nothing: problems, names, what would reach a shell, texts and values."""
    assert everything(text) == by_liquid_alone(text)


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("{{ a.b-c }} and {{text|shell_escape}}", True),
        ("{{ a }}\n", True),
        ("{{{ a }}", False),
        ("{{ outputs.first.count }}", True),
        ("{{ outputs.history.a }}", False),
        ("{{- a }}", False),
        ("{{ a }}{% if a %}{% endif %}", False),
        ("{{ nil }}", False),
        ("{{ a | upcase }}", False),
        ("{{ a[0] }}", False),
    ],
)
def test_only_what_liquid_reads_alike_is_plain(text: str, plain: bool) -> None:
    """Whatever might differ is left to Liquid."""
    assert (read_plain(text) is not None) == plain


@pytest.mark.parametrize("text", ["{{ nul | shell_escape }}", "{{ long }}{{ long }}"])
def test_liquid_tells_what_is_wrong(text: str) -> None:
    """A filter that fails and a text that is too long are refused as in any template."""
    with pytest.raises(TemplateProblem):
        Renderer().render(text, NAMES)
