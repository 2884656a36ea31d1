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
ASKING = """
version: "1.0"
id: asking
outputs: [{name: said, value_js: outputs.ask.text}]
steps:
  ask: {type: human-input, prompt: well}
"""
FILES = {"beneath.yaml": CHILD, "asking.yaml": ASKING}


@dataclass(frozen=True)
class Act:
    """What a person does as soon as `step` waits for one (an answer) or is under way (`cancel`), and `after` has ended.
    `beneath`: the step that is meant of the run beneath that `step` waits for.
    """

    step: str
    word: str
    by: str = "ann"
    scope: str = ""
    after: str = ""
    beneath: str = ""

    @property
    def request(self) -> AnswerGiven | CancelAsked:
        """As the run hears of it."""
        if self.word == CANCEL:
            return CancelAsked(by=self.by)
        return AnswerGiven(step=self.beneath or self.step, text=self.word, scope=self.scope, by=self.by)

    @property
    def place(self) -> str:
        """As people name it."""
        return f"{self.step}.{self.beneath}" if self.beneath else self.step

    def is_due(self, state: State) -> bool:
        """Whether it is time."""
        node = state.nodes.get(self.step, {}).get(self.scope)
        if node is None or node.status != (life.RUNNING if self.word == CANCEL else life.HOLDING):
            return False
        return not self.after or any(
            each.outcome is not None for each in state.nodes.get(self.after, {}).values()
        )

    def run_in(self, state: State) -> str:
        """The run that hears of it."""
        if not self.beneath:
            return state.run_id
        hold = state.nodes[self.step][self.scope].hold
        assert hold is not None
        return str(hold.details["child"])


@dataclass(frozen=True)
class Tale:
    """A workflow, and who does what meanwhile."""

    text: str
    acts: tuple[Act, ...] = ()

    def plan(self, folder: Path) -> Plan:
        """With a folder for the file that a step may name."""
        for name in (name for name in FILES if name in self.text):
            (folder / name).write_text(FILES[name])
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
    "an approval of two": steps(
        """
  a: {type: human-input, prompt: "ship it?", approvers: [ann, bob], quorum: 2}
  b: {type: command, depends_on: [a], runs_on: here, exec: "echo shipped"}
""",
        Act("a", "yes"),
        Act("a", "yes", by="bob"),
    ),
    "an approval that somebody is reminded of": steps(
        """
  a:
    type: human-input
    prompt: "ship it?"
    approvers: [ann]
    quorum: 1
    remind: {every: 100ms, run: remind, max: 1}
  remind: {type: log, start: routed, message: "{{ args.why }} {{ args.reminder }}"}
  b: {type: noop, depends_on: [a]}
""",
        Act("a", "yes", after="remind"),
    ),
    "an approval that goes to others when nobody answers": steps(
        """
  a:
    type: human-input
    prompt: "ship it?"
    approvers: [ann]
    quorum: 1
    escalate: {after: 100ms, run: tell, approvers: [boss]}
  tell: {type: command, start: routed, runs_on: here, exec: "echo told"}
  b: {type: noop, depends_on: [a]}
""",
        Act("a", "yes", by="boss", after="tell"),
    ),
    "a question of each item": steps(
        f"""
  {LIST}
  each: {{type: human-input, depends_on: [list], prompt: "{{{{ item }}}}?"}}
  sum: {{type: script, fanout: reduce, depends_on: [each], content: "return outputs.each"}}
""",
        *(Act("each", f"yes {number}", scope=f"list#1[{number}]") for number in range(3)),
    ),
    "a question of a child workflow": Tale(
        """
imports: [asking.yaml]
steps:
  below: {type: workflow, workflow: asking, guarantee: "output.said === 'yes'"}
  b: {type: noop, depends_on: [below]}
""",
        (Act("below", "yes", beneath="ask"),),
    ),
    "calls under one key at once": steps("""
  list: {type: script, forEach: true, forEach_concurrency: 3, content: "return [1, 2, 3]"}
  each:
    type: command
    depends_on: [list]
    mutates: true
    idempotency_key: "k{{ item | divided_by: 2 }}"
    exec: "echo {{ item | shell_escape }}"
  sum:
    type: script
    fanout: reduce
    depends_on: [each]
    content: "return outputs.each.join()"
    guarantee: "output === '1,2,2'"
"""),
    "a gate that tries again, and a breaker that opens": steps("""
  a:
    type: http_client
    url: "http://127.0.0.1:1/"
    allow_private: true
    reliability: &far
      bounds: {attempts_per_target: 2, deadline_s: 20}
      backoff: {base_s: 0.001}
      breaker: {failures: 2, jitter: 0}
  b:
    type: http_client
    depends_on: [{step: a, on_failure: continue}]
    url: "http://127.0.0.1:1/"
    allow_private: true
    reliability: *far
"""),
    "secrets that a step gives": steps("""
  a:
    type: command
    exec: |
      echo '{"token": "very-secret", "n": 1}'
    parse: json
    secret_outputs: [token]
  b: {type: command, depends_on: [a], runs_on: here, env: {T: "{{ outputs.a.token }}"}, exec: "test $T = very-secret"}
  c: {type: script, depends_on: [b], content: "return outputs.a", guarantee: "output.token !== 'very-secret'"}
"""),
    "a suppressed failure": steps("""
  a: {type: command, exec: "exit 1"}
  b: {type: noop, depends_on: [a]}
  c: {type: noop, depends_on: [b]}
"""),
}
