"""Hostile files: whatever is in them, loading gives a plan or a ConfigError, soon."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gonogo.config import loads
from gonogo.config.problems import text_of
from gonogo.config.schema.blocks import Fail, Retry
from gonogo.config.schema.step import Step
from gonogo.config.schema.top import Document
from gonogo.config.structs import keys_of
from gonogo.errors import ConfigError
from gonogo.providers.table import built_in

TABLE = built_in()
TYPES = TABLE.names()
WORDS = ("a", "b", "true", "output.x", "{{ pr.title }}", "{% if %}", "a|b", "5s", "map", "x ===", "\u2028")
KEYS = {*keys_of(Step), *keys_of(Fail), *keys_of(Retry)}
TYPE_KEYS = {key for name in TYPES for key in keys_of(TABLE.get(name).config)}
leaves = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(
        [
            "a",
            "b",
            "true",
            "output.x",
            "{{ pr.title }}",
            "{% if %}",
            "a|b",
            "5s",
            "map",
            "outputs.b.c",
            "x ===",
            "\u2028",
        ]
    )
)
step_keys = st.sampled_from(sorted(KEYS | TYPE_KEYS))
values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(step_keys | st.text(max_size=4), inner, max_size=4)
    ),
)
steps = st.dictionaries(step_keys, values, max_size=6).flatmap(
    lambda keys: st.sampled_from([*TYPES, "ai", "nope"]).map(lambda kind: {"type": kind, **keys})
)
names = st.sampled_from("abc") | st.text(max_size=3)
documents = st.fixed_dictionaries(
    {"version": st.just("1"), "steps": st.dictionaries(names, steps | values, max_size=3)},
    optional=dict.fromkeys(sorted(set(keys_of(Document)) - {"version", "steps"}), values),
)


def load_anything(text: str | bytes) -> None:
    """Load; every problem must be printable."""
    try:
        loaded = loads(text, providers=TABLE, compile_expressions=lambda sources: [None] * len(sources))
        msgspec.json.encode(loaded.plan)
        text_of(loaded.problems)
    except ConfigError as error:
        if not text_of(error.problems):
            raise AssertionError("refused without a word") from error


@given(documents)
@settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
def test_any_structure_is_a_plan_or_a_config_error(document: dict[str, Any]) -> None:
    """Wrong types everywhere."""
    load_anything(as_yaml(document))


def as_yaml(value: Any) -> str:
    """JSON is YAML; what JSON can't hold is written as YAML would."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{as_yaml(str(key))}: {as_yaml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(as_yaml(item) for item in value) + "]"
    if isinstance(value, float):
        return {"inf": ".inf", "-inf": "-.inf", "nan": ".nan"}.get(repr(value), repr(value))
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return msgspec.json.encode(value).decode()


@given(st.text(max_size=300) | st.binary(max_size=300))
@settings(max_examples=200, deadline=None)
def test_any_text_is_a_plan_or_a_config_error(text: str | bytes) -> None:
    """Not even YAML."""
    load_anything(text)


LONG = "k" * 1_000_000
NESTED = "[" * 60 + "]" * 60
MANY = "".join(f"  s{at}: {{type: noop, depends_on: [s{at - 1}]}}\n" for at in range(1, 3000))
MANY_KEYS = "".join(f"    key{at}: 1\n" for at in range(50_000))
BACKWARDS = "".join(f"  s{at}: {{type: noop, depends_on: s{at + 1}}}\n" for at in range(3000))
ROUTES = "".join(
    f"  s{at}: {{type: noop, if: outputs.s{at * 7 % 3000}.x, on_fail: {{goto: s{at // 2}}}}}\n"
    for at in range(1, 3000)
)
HOSTILE = {
    "a key of 1 MB": f'"{LONG}": 1',
    "a step name of 1 MB": f'steps: {{? "{LONG}" : {{type: noop}}}}',
    "a value of 1 MB": f"steps: {{a: {{type: {LONG}}}}}",
    "a condition of 1 MB": f"version: '1'\nsteps: {{a: {{type: noop, if: '{'(' * 1_000_000}'}}}}",
    "a deep value": f"version: '1'\nsteps: {{a: {{type: noop, schema: {{x: {NESTED}}}}}}}",
    "a deep condition": f"version: '1'\nsteps: {{a: {{type: noop, if: '{'(' * 5000}1{')' * 5000}'}}}}",
    "50,000 unknown keys": "version: '1'\nsteps:\n  a:\n    type: noop\n"
    + "".join(f"    key{at}: 1\n" for at in range(50_000)),
    "a wrong value everywhere": "version: '1'\nsteps:\n"
    + "".join(f"  s{at}: {{type: 5}}\n" for at in range(5000)),
    "3,000 steps in a chain": f"version: '1'\nsteps:\n  s0: {{type: noop}}\n{MANY}",
    "a chain that is a ring": f"version: '1'\nsteps:\n  s0: {{type: noop, depends_on: s2999}}\n{MANY}",
    "3,000 steps in a chain, the last first": f"version: '1'\nsteps:\n{BACKWARDS}  s3000: {{type: noop}}\n",
    "3,000 steps that all read and go to others": f"version: '1'\nsteps:\n  s0: {{type: noop}}\n{ROUTES}",
    "a template of 100 KB": "version: '1'\nsteps: {a: {type: log, message: '" + "{{ x }}" * 14_000 + "'}}",
    "a broken template of 100 KB": "version: '1'\nsteps: {a: {type: command, exec: '"
    + "{% if x %}" * 10_000
    + "'}}",
    "a command of 1 MB": "version: '1'\nsteps: {a: {type: command, exec: '" + "curl " * 200_000 + "'}}",
    "a shell's text of 200 KB": "version: '1'\nsteps: {a: {type: command, exec: '"
    + "echo {{ x | shell_escape }} " * 7_000
    + "'}}",
    "100,000 imports": f"version: '1'\nimports: [{'a.yaml, ' * 100_000}]\nsteps: {{a: {{type: noop}}}}",
    "30,000 imports that are no paths": f"version: '1'\nimports: [{'5, ' * 30_000}]\nsteps: {{a: {{type: noop}}}}",
    "3,000 conditions with an unknown name": "version: '1'\nsteps:\n"
    + "".join(f"  s{at}: {{type: noop, if: nope{at}}} # {'-' * 300}\n" for at in range(3000)),
    "a pattern that runs away": "version: '1'\nsteps: {a: {type: noop, timeout: '" + "1" * 100_000 + "x'}}",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_come_to_an_end(name: str) -> None:
    """Law 2: each ends well before a run's time limit, as a plan or a ConfigError."""
    load_anything(HOSTILE[name])


def test_the_nodes_of_a_hostile_file_stay_few(refuse: Any) -> None:
    """YML-3, also when the file is printed or walked: nothing is expanded before it is refused."""
    lines = "\n".join(f"  A{at}: &a{at} [{', '.join([f'*a{at - 1}'] * 9)}]" for at in range(1, 9))
    (problem,) = refuse(f"env:\n  A0: &a0 [x, x, x]\n{lines}\nsteps: {{a: {{type: noop}}}}\n")
    assert problem.code == "yaml.expansion"
