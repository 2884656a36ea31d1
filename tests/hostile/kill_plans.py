"""Random workflows for kills: reading, keyed and mutating calls, commands, scripts, memory, lists, children, retries.

What a step does outside can be counted afterwards, and what it gives is the same each time.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

READS, KEYED, MUTATES = "reads", "keyed", "mutates"


@dataclass
class Workflow:
    """A workflow file, and of each step that acts outside how (`effects`) and where it is counted (`counted`). The
    `counters` count in the run's memory.
    """

    steps: list[str] = field(default_factory=list)
    effects: dict[str, str] = field(default_factory=dict)
    counted: dict[str, str] = field(default_factory=dict)
    counters: list[str] = field(default_factory=list)
    slots: int = 1
    has_child: bool = False

    def write(self, folder: Path, base: str) -> None:
        """The files of it, calls going to `base`."""
        head = f'version: "1.0"\nmax_parallelism: {self.slots}\nsteps:\n'
        text = head + "\n".join(f"  {line}" for line in self.steps) + "\n"
        (folder / "gonogo.yaml").write_text(text.replace("BASE", base))
        if self.has_child:
            (folder / "child.yaml").write_text(CHILD.replace("BASE", base))


CHILD = """version: "1.0"
steps:
  before: {type: http_client, url: "BASE/read/before", allow_private: true}
  inner:
    {type: http, depends_on: before, url: "BASE/post/inner", body: {n: 1}, allow_private: true, criticality: external}
  after: {type: log, depends_on: inner, message: done}
outputs:
  - {name: value, value_js: outputs.before.value}
"""


def make(seed: int) -> Workflow:
    """The workflow of a seed."""
    chance = random.Random(seed)
    made = Workflow(slots=chance.choice((1, 2, 3, 4)))
    values: list[str] = []  # steps whose output has a `value` whatever happens
    for number in range(chance.randint(3, 7)):
        name = f"s{number}"
        before = [f"s{each}" for each in range(number)]
        needs = chance.sample(before, min(len(before), chance.choice((0, 1, 1, 2))))
        chance.choice(_KINDS)(made, name, _needs(needs), [each for each in needs if each in values])
        if (
            made.effects.get(name) in (READS, KEYED)
            and name in made.counted
            and "/act" not in made.counted[name]
        ):
            values.append(name)
    if chance.random() < 0.4:
        _list(made, chance)
    if chance.random() < 0.25:
        made.has_child = True
        made.steps.append("flow: {type: workflow, config: child.yaml}")
        made.effects["inner"], made.counted["inner"] = MUTATES, "post/inner"
    names = ", ".join(line.partition(":")[0] for line in made.steps)
    content = "content: \"return memory.get('n') || 0\""
    made.steps.append(
        f'last: {{type: script, if: "always()", depends_on: [{names}], fanout: reduce, {content}}}'
    )
    return made


def _needs(names: list[str]) -> str:
    return f"depends_on: [{', '.join(names)}], " if names else ""


def _read(made: Workflow, name: str, needs: str, values: list[str]) -> None:
    guard = 'guarantee: "output.value >= 0", '
    made.steps.append(
        f'{name}: {{type: http_client, {needs}{guard}url: "BASE/read/{name}", allow_private: true}}'
    )
    made.effects[name], made.counted[name] = READS, f"read/{name}"


def _flaky(made: Workflow, name: str, needs: str, values: list[str]) -> None:
    retry = "on_fail: {retry: {max: 3, backoff: {mode: fixed, delay_ms: 30}}}, "
    made.steps.append(
        f'{name}: {{type: http_client, {needs}{retry}url: "BASE/flaky/{name}", allow_private: true}}'
    )
    made.effects[name], made.counted[name] = READS, f"flaky/{name}"


def _post(made: Workflow, name: str, needs: str, values: list[str]) -> None:
    seen = f', seen: "{{{{ outputs.{values[0]}.value }}}}"' if values else ""
    made.steps.append(
        f'{name}: {{type: http, {needs}url: "BASE/post/{name}", body: {{a: 1{seen}}}, allow_private: true,'
        " criticality: external}"
    )
    made.effects[name], made.counted[name] = MUTATES, f"post/{name}"


def _keyed(made: Workflow, name: str, needs: str, values: list[str]) -> None:
    made.steps.append(
        f'{name}: {{type: http, {needs}url: "BASE/keyed/{name}", body: {{a: 1}}, allow_private: true,'
        f" criticality: external, idempotency_key: key-{name}}}"
    )
    made.effects[name], made.counted[name] = KEYED, f"keyed/{name}"


def _act(made: Workflow, name: str, needs: str, values: list[str]) -> None:
    made.steps.append(
        f"{name}: {{type: command, {needs}mutates: true, criticality: external,"
        f' exec: "echo x >> act-{name}; sleep 0.02"}}'
    )
    made.effects[name], made.counted[name] = MUTATES, f"act-{name}"


def _script(made: Workflow, name: str, needs: str, values: list[str]) -> None:
    told = f"outputs.{values[0]}.value + 1" if values else "7"
    made.steps.append(f'{name}: {{type: script, {needs}content: "return {told}"}}')


def _remember(made: Workflow, name: str, needs: str, values: list[str]) -> None:
    made.steps.append(f"{name}: {{type: memory, {needs}operation: increment, key: n}}")
    made.counters.append(name)


def _condition(made: Workflow, name: str, needs: str, values: list[str]) -> None:
    condition = f"outputs.{values[0]}.value % 2 == 0" if values else "true"
    made.steps.append(f'{name}: {{type: log, {needs}if: "{condition}", message: hello}}')


def _list(made: Workflow, chance: random.Random) -> None:
    items = list(range(chance.randint(1, 4)))
    kind = chance.choice(("read", "post", "keyed"))
    made.steps.append(f'list: {{type: script, forEach: true, content: "return {items}"}}')
    head = f'each: {{depends_on: list, fanout: map, concurrency: 2, url: "BASE/{kind}/each/{{{{ item }}}}", '
    more = {
        "read": "type: http_client, allow_private: true}",
        "post": "type: http, body: {a: 1}, allow_private: true, criticality: external}",
        "keyed": "type: http, body: {a: 1}, allow_private: true, criticality: external, "
        'idempotency_key: "each-{{ item }}"}',
    }[kind]
    made.steps.append(head + more)
    made.effects["each"] = {"read": READS, "post": MUTATES, "keyed": KEYED}[kind]
    made.counted["each"] = f"{kind}/each"


_KINDS: tuple[Callable[[Workflow, str, str, list[str]], None], ...] = (
    _read, _read, _flaky, _post, _post, _keyed, _act, _script, _remember, _condition,
)  # fmt: skip
