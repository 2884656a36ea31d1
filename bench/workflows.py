"""Workflow files of any length, as text."""

from __future__ import annotations

HEAD = 'version: "1.0"\nsteps:\n'


def guards(step: int) -> str:
    """Four guards that hold, no two the same text."""
    return (
        f'    if: "{step} >= 0"\n'
        f'    assume: "{step} + 1 > {step}"\n'
        f'    guarantee: "output === null || {step} < 1e9"\n'
        f'    fail_if: "{step} < 0"\n'
    )


def chain(length: int, *, body: str = "type: noop", guarded: bool = False) -> str:
    """Steps that each wait for the one before."""
    parts = [HEAD]
    for step in range(length):
        parts.append(f"  s{step}:\n    {body}\n")
        if step:
            parts.append(f"    depends_on: s{step - 1}\n")
        if guarded:
            parts.append(guards(step))
    return "".join(parts)


def fan_out(length: int, *, body: str = "type: noop", guarded: bool = False) -> str:
    """A list of so many items and a step that takes each, 64 at a time."""
    head = (
        f"{HEAD}"
        "  list:\n    type: script\n"
        f'    content: "return Array.from({{length: {length}}}, (_, index) => index)"\n'
        "    forEach: true\n"
    )
    item = f"  item:\n    {body}\n    depends_on: list\n    fanout: map\n    forEach_concurrency: 64\n"
    return head + item + (guards(0) if guarded else "")


def three_steps() -> str:
    """A small workflow with expressions and a template."""
    return (
        f"{HEAD}"
        '  first:\n    type: script\n    content: "return {count: 3}"\n    guarantee: "output.count === 3"\n'
        '  second:\n    type: noop\n    depends_on: first\n    if: "outputs.first.count > 1"\n'
        '  third:\n    type: log\n    depends_on: second\n    message: "{{ outputs.first.count }} counted"\n'
    )


def expressions(count: int) -> str:
    """A file of about 2,000 lines and `count` different expressions, four to a step."""
    lines = ("type: noop", "description: a step", "group: all", "tags:", "  - one", "env:", "  LEVEL: quiet")
    return chain(count // 4, body="\n    ".join(lines), guarded=True)
