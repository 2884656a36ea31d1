"""config/shell.py: where quoted data stands in a shell's text, proved with the shell itself (SEC-1)."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from gonogo.config.shell import misplaced
from gonogo.expressions.template import Renderer

SAFE = [
    "echo {{ x | shell_escape }}",
    'echo "{{ x | shell_escape_double }}"',
    'A={{ x | shell_escape }}; echo "$A"',
    'echo "a $(echo {{ x | shell_escape }}) b"',
    "( echo {{ x | shell_escape }} )",
    "echo 'text' {{ x | shell_escape }} \"more\"",
    "echo it\\'s {{ x | shell_escape }}",
    "# a comment isn't a quote\necho {{ x | shell_escape }}",
    "cat <<END\nit's text\nEND\necho {{ x | shell_escape }}",
    "{% if x %}echo {{ x | shell_escape }}{% else %}echo none{% endif %}",
    "for i in 1 2; do echo {{ x | shell_escape }}; done",
    'case "$A" in a|b) echo {{ x | shell_escape }};; *) echo "{{ x | shell_escape_double }}";; esac',
    'case a in a) echo "$(echo {{ x | shell_escape }})";; esac; echo {{ x | shell_escape }}',
    "( case a in a) echo {{ x | shell_escape }};; esac )",
    "echo a#b {{ x | shell_escape }}",
    "echo ${HOME} {{ x | shell_escape }}",
    "echo $((1 + 2)) {{ x | shell_escape }}",
    "bash -c 'echo hi'; echo {{ x | shell_escape }}",
    "echo {{ x | shell_escape }}{{ x | shell_escape }}",
]
UNSAFE = [
    "echo '{{ x | shell_escape }}'",
    'echo "{{ x | shell_escape }}"',
    "echo {{ x | shell_escape_double }}",
    "echo '{{ x | shell_escape_double }}'",
    "echo `echo {{ x | shell_escape }}`",
    "cat <<END\n{{ x | shell_escape }}\nEND\n",
    "cat <<'END'\n{{ x | shell_escape }}\nEND\n",
    "cat <<-END\n\t{{ x | shell_escape_double }}\n\tEND\n",
    "# {{ x | shell_escape }}\necho",
    "echo \\{{ x | shell_escape }}",
    'echo "\\{{ x | shell_escape_double }}"',
    "echo ${{ x | shell_escape }}",
    "echo $'{{ x | shell_escape }}'",
    "echo $(( {{ x | shell_escape }} ))",
    "echo ${A:-{{ x | shell_escape }}}",
    'bash -c "echo {{ x | shell_escape_double }}"',
    "sh -ec {{ x | shell_escape }}",
    "eval {{ x | shell_escape }}",
    "ssh host {{ x | shell_escape }}",
    "python3 -c {{ x | shell_escape }}",
    "sh -x; sh -c {{ x | shell_escape }}",
    "sh -c -{{ x | shell_escape }} -c",
    "{% if x %}sh -c {{ x | shell_escape }}{% endif %}",
    "cat <<{{ x | shell_escape }}\ntext\n",
    "cat <<'{{ x | shell_escape }}'\ntext\n",
    "cat <<A{% if x %}B{% endif %}\n{{ x | shell_escape }}\n",
    'echo "{% if x %}"{% endif %}{{ x | shell_escape }}',
    'echo "$(case a in a) echo {{ x | shell_escape }};; esac)"',
    'echo "$(case a in a) echo {{ x | shell_escape_double }};; esac)"',
]
VALUES = [
    'x"; touch pwned; echo "',
    "$(touch pwned)",
    "`touch pwned`",
    "'; touch pwned; '",
    "a\nb; touch pwned",
    "-rf",
    "{{ 7*7 }}",
    "\\'; touch pwned; #",
    "\\",
    "END\ntouch pwned\n",
    "a[$(touch pwned)]",
    "x; touch pwned #",
    "*",
]


@pytest.mark.parametrize("template", SAFE)
def test_a_safe_place_is_accepted(template: str) -> None:
    """Escaped data where its filter protects."""
    assert misplaced(template) == []


@pytest.mark.parametrize("template", UNSAFE)
def test_an_unsafe_place_is_refused_with_advice(template: str) -> None:
    """Escaped data where its filter doesn't protect, or where it can't be told."""
    found = misplaced(template)
    assert found
    assert all(value.message and value.advice for value in found)


@pytest.mark.parametrize("template", SAFE)
def test_SEC_1_no_value_runs_in_what_is_accepted(template: str, tmp_path: Path) -> None:
    """SEC-1: `pwned` never exists, and the value is echoed as it is."""
    render = Renderer()
    for value in VALUES:
        text = render.render(template, {"x": value})
        done = subprocess.run(
            ["/bin/sh", "-c", text], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert list(tmp_path.iterdir()) == [], value
        if "$(" not in template and value not in ("\\", "-rf") and "\\" not in value:
            assert value in done.stdout


@pytest.mark.parametrize("template", UNSAFE[:3])
def test_SEC_1_unsafe_places_are_not_refused_for_nothing(template: str, tmp_path: Path) -> None:
    """These can be broken out of, which keeps the list honest."""
    render = Renderer()
    for value in VALUES:
        text = render.render(template, {"x": value})
        subprocess.run(["/bin/sh", "-c", text], cwd=tmp_path, capture_output=True, check=False)
    assert [path.name for path in tmp_path.iterdir()] == ["pwned"]


@pytest.mark.parametrize(
    "template", ["echo " + "{{ x | shell_escape }} " * 10_000, "-/sh " * 40_000 + "{{ x | shell_escape }}"]
)
def test_a_long_text_is_read_once(template: str) -> None:
    """Read again for each tag, or from each word, this would take many minutes."""
    assert misplaced(template) == []


def test_the_tag_and_its_offset_are_given() -> None:
    """For the caret."""
    (value,) = misplaced("echo 'a' '{{ x | shell_escape }}'")
    assert (value.tag, value.offset) == ("{{ x | shell_escape }}", 10)
