"""Workflows whose decisions are fixed by themselves, whoever performs them, and what people do while they run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gonogo import app
from gonogo.core import lifecycle as life
from gonogo.core.events import AnswerGiven, CancelAsked
from gonogo.core.plan import Plan
from gonogo.core.state import State

CANCEL = "cancel"
HEAD = 'version: "1.0"\n'
CHILD = """
version: "1.0"
id: beneath
inputs: [{name: n}]
outputs: [{name: twice, value_js: outputs.b}]
steps:
  a: {type: command, exec: "echo 21", parse: json}
  b: {type: script, depends_on: [a], content: "return outputs.a * 2"}
"""


@dataclass(frozen=True)
class Act:
    """What a person does as soon as `step` waits for one (an answer) or is under way (`cancel`)."""

    step: str
    word: str

    @property
    def request(self) -> AnswerGiven | CancelAsked:
        """As the run hears of it."""
        if self.word == CANCEL:
            return CancelAsked(by="ann")
        return AnswerGiven(step=self.step, text=self.word, by="ann")

    def is_due(self, state: State) -> bool:
        """Whether it is time."""
        node = state.nodes.get(self.step, {}).get("")
        return node is not None and node.status == (life.RUNNING if self.word == CANCEL else life.HOLDING)


@dataclass(frozen=True)
class Tale:
    """A workflow, and who does what meanwhile."""

    text: str
    acts: tuple[Act, ...] = ()

    def plan(self, folder: Path) -> Plan:
        """With a folder for the file that a step may name."""
        if "imports:" not in self.text:
            return app.loads(HEAD + self.text).plan
        (folder / "beneath.yaml").write_text(CHILD)
        file = folder / "tale.yaml"
        file.write_text(HEAD + self.text)
        return app.load(file).plan


def steps(text: str, *acts: Act) -> Tale:
    """A workflow of these steps and nothing else."""
    return Tale("steps:" + text, acts)


LIST = 'list: {type: script, forEach: true, forEach_concurrency: 1, content: "return [1, 2, 3]"}'
ENDLESS = "while :; do sleep 0.05; done"
TALES = {
    "a chain": steps("""
  a: {type: command, exec: "echo 1"}
  b: {type: script, depends_on: [a], content: "return outputs.a + 1"}
"""),
    "a fan-out": steps(f"""
  {LIST}
  each: {{type: command, depends_on: [list], exec: "echo {{{{ item | shell_escape }}}}"}}
  sum: {{type: script, fanout: reduce, depends_on: [each], content: "return outputs.each"}}
"""),
    "an item that fails": steps(f"""
  {LIST}
  each: {{type: command, depends_on: [list], exec: "test {{{{ item | shell_escape }}}} != 2"}}
  sum: {{type: script, fanout: reduce, depends_on: [each], content: "return 1"}}
"""),
    "a reduce over items that go on after one failed": steps(f"""
  {LIST}
  each:
    type: command
    depends_on: [list]
    criticality: info
    exec: "echo {{{{ item | shell_escape }}}}"
    parse: json
    fail_if: "output == 2"
  sum:
    type: script
    fanout: reduce
    depends_on: [each]
    content: "return outputs.each"
    guarantee: "output.length === 3"
"""),
    "a retry": steps("""
  a: {type: command, runs_on: here, exec: "exit 3", on_fail: {retry: {max: 2, backoff: {mode: fixed, delay_ms: 1}}}}
"""),
    "retries with waits, of which the last helps": steps("""
  a:
    type: command
    exec: "echo 1"
    criticality: info
    fail_if: "attempt < 3"
    on_fail: {retry: {max: 3, backoff: {mode: exponential, delay_ms: 60}, retry_on: [transient, logical]}}
  b: {type: noop, depends_on: [a]}
"""),
    "retries elsewhere, with waits": steps("""
  a:
    type: command
    runs_on: here
    exec: "exit 3"
    criticality: info
    on_fail: {retry: {max: 2, backoff: {mode: fixed, delay_ms: 80}, retry_on: [transient, logical]}}
  b: {type: noop, depends_on: [a]}
"""),
    "a guarantee": steps("""
  a: {type: command, exec: "echo 1", parse: json, guarantee: "output > 1"}
  b: {type: noop, depends_on: [a]}
"""),
    "fail_if": steps("""
  a: {type: command, exec: "echo 1", parse: json, fail_if: "output == 1"}
"""),
    "a condition and a tolerated failure": steps("""
  a: {type: command, criticality: info, exec: "exit 1"}
  b: {type: noop, if: "false", depends_on: [a]}
"""),
    "goto": steps("""
  a: {type: memory, operation: increment, key: n}
  b: {type: script, depends_on: [a], content: "return memory.get('n')", fail_if: "output < 3", on_fail: {goto: a}}
"""),
    "goto without an end": steps("""
  a: {type: memory, operation: increment, key: n}
  b: {type: script, depends_on: [a], content: "return memory.get('n')", fail_if: "true", on_fail: {goto: a}}
  c: {type: noop, depends_on: [b]}
"""),
    "a remedy": steps("""
  a: {type: noop}
  mend: {type: log, depends_on: [a], message: mended}
  b: {type: command, depends_on: [a], exec: "exit 1", on_fail: {run: [mend]}}
"""),
    "on_finish": steps("""
  list:
    type: script
    forEach: true
    forEach_concurrency: 1
    content: "return [1, 2]"
    on_finish: {run: [tidy]}
  each: {type: command, depends_on: [list], runs_on: here, exec: "echo {{ item | shell_escape }}", parse: json}
  tidy: {type: script, start: routed, content: "return outputs.each"}
"""),
    "memory": steps(f"""
  {LIST}
  each: {{type: memory, depends_on: [list], operation: append, key: seen, value_js: "item * 2"}}
  all: {{type: script, fanout: reduce, depends_on: [each], content: "memory.set('n', 1); return memory.get('seen')"}}
  last: {{type: memory, depends_on: [all], operation: get, key: n}}
"""),
    "a child workflow": Tale("""
imports: [beneath.yaml]
steps:
  below: {type: workflow, workflow: beneath, args: {n: x}, guarantee: "output.twice === 42"}
  b: {type: noop, depends_on: [below]}
"""),
    "compensation": steps("""
  make: {type: command, exec: "echo made", mutates: true, compensate: unmake, assume: "true", guarantee: "true"}
  more: {type: command, depends_on: [make], exec: "echo more", mutates: true, compensate: unmore, runs_on: here}
  bad: {type: command, depends_on: [more], exec: "exit 1"}
  unmake: {type: script, start: routed, content: "return args.step"}
  unmore: {type: command, start: routed, runs_on: here, exec: "echo undone"}
"""),
    "a budget that is used up": Tale("""
budget: {calls: 3}
steps:
  a: {type: command, exec: "echo 1"}
  b: {type: command, depends_on: [a], exec: "echo 2", runs_on: here}
  c: {type: command, depends_on: [b], exec: "echo 3"}
  d: {type: command, depends_on: [c], exec: "echo 4"}
  clean: {type: log, depends_on: [d], if: "always()", message: bye}
"""),
    "a cancel": steps(
        f"""
  a: {{type: command, exec: "echo 1"}}
  slow: {{type: command, depends_on: [a], exec: "{ENDLESS}"}}
  after: {{type: noop, depends_on: [slow]}}
  clean: {{type: log, depends_on: [slow], if: "always()", message: bye}}
""",
        Act("slow", CANCEL),
    ),
    "a cancel of a call elsewhere": steps(
        f"""
  slow: {{type: command, runs_on: here, exec: "{ENDLESS}"}}
  after: {{type: noop, depends_on: [slow]}}
  clean: {{type: command, depends_on: [slow], if: "always()", exec: "echo bye"}}
""",
        Act("slow", CANCEL),
    ),
    "a question": steps("""
  a: {type: human-input, prompt: well}
"""),
    "a question that is answered": steps(
        """
  a: {type: human-input, prompt: well}
  b: {type: script, depends_on: [a], content: "return outputs.a.text", guarantee: "output === 'yes'"}
""",
        Act("a", "yes"),
    ),
    "an approval": steps(
        """
  a: {type: human-input, prompt: "ship it?", approvers: [ann], quorum: 1}
  b: {type: command, depends_on: [a], runs_on: here, exec: "echo shipped"}
""",
        Act("a", "yes"),
    ),
    "a question that runs out": steps("""
  a: {type: human-input, prompt: well, timeout: 250, default: "no"}
  b: {type: script, depends_on: [a], content: "return outputs.a.text", guarantee: "output === 'no'"}
"""),
    "a suppressed failure": steps("""
  a: {type: command, exec: "exit 1"}
  b: {type: noop, depends_on: [a]}
  c: {type: noop, depends_on: [b]}
"""),
}
