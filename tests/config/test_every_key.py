"""No key is accepted and inert: each changes the plan, or the file hears that it doesn't act."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import to_builtins

from gonogo.config.schema import blocks, step, top
from gonogo.config.structs import keys_of

FOR_PEOPLE = frozenset({"description"})
CHECKED_ONLY = frozenset({"version", "mode", "allow_unescaped", "extends", "include", "imports", "steps"})
"""Keys that say how a file is read; what they do is tested where it is read."""

# A key with a value, and what must stand beside it for it to act.
STEP = {
    "type": ("log, message: m", ""),
    "on": ("[manual]", ""),
    "tags": ("[slow]", ""),
    "group": ("g", ""),
    "if": ("'true'", ""),
    "assume": ("'true'", ""),
    "guarantee": ("'true'", ""),
    "fail_if": ("'true'", ""),
    "failure_conditions": ("{f: 'true'}", ""),
    "depends_on": ("b", ""),
    "continue_on_failure": ("true", ""),
    "criticality": ("policy", ""),
    "critical": ("true", ""),
    "mutates": ("true", ""),
    "schema": ("{type: object}", ""),
    "output_schema": ("{type: object}", ""),
    "forEach": ("true", ""),
    "forEach_concurrency": ("2", "fanout: map, depends_on: list"),
    "concurrency": ("2", "fanout: map, depends_on: list"),
    "fanout": ("map", "depends_on: list"),
    "reduce": ("false", "depends_on: list"),
    "on_init": ("{run: [b]}", ""),
    "on_success": ("{run: [b]}", ""),
    "on_fail": ("{run: [b]}", ""),
    "on_finish": ("{run: [b]}", "forEach: true"),
    "max_runs": ("3", ""),
    "timeout": ("5s", ""),
    "start": ("routed", ""),
    "assume_mode": ("fail", "assume: 'true'"),
    "guarantee_mode": ("issue", "guarantee: 'true'"),
    "schema_mode": ("issue", "schema: {type: object}"),
    "idempotency_key": ("k", "mutates: true"),
    "secret_outputs": ("[token]", ""),
    "env": ("{A: '1'}", ""),
    "runs_on": ("gpu", ""),
    "loop_budget": ("3", "on_success: {goto: b}"),
    "reliability": ("{bounds: {attempts_max: 2}}", "type: http_client, url: 'http://localhost/'"),
    "compensate": ("b", ""),
    "approvers": ("[ana]", "type: human-input, prompt: p"),
    "quorum": ("2", "type: human-input, prompt: p"),
    "remind": ("{every: 4h, run: b}", "type: human-input, prompt: p"),
    "escalate": ("{after: 1d, run: b}", "type: human-input, prompt: p"),
}
REMIND = {"every": ("1h", ""), "run": ("list", ""), "max": ("2", "")}
ESCALATE = {"after": ("2d", ""), "run": ("b", ""), "approvers": ("[boss]", ""), "quorum": ("1", "")}
FAIL = {
    "run": ("[b]", ""),
    "run_js": ("\"['b']\"", ""),
    "goto": ("b", ""),
    "goto_js": ("\"'b'\"", ""),
    "goto_event": ("manual", "goto: b"),
    "transitions": ("[{when: 'true', to: b}]", ""),
    "retry": ("{max: 1}", ""),
    "retry_on": ("[logical]", "retry: {max: 1}"),
    "escalate": ("b", ""),
}
RETRY = {
    "max": ("2", ""),
    "backoff": ("{delay_ms: 5}", ""),
    "retry_on": ("[logical]", ""),
    "count": ("separately", ""),
    "exhausted": ("hold", ""),
}
BACKOFF = {
    "mode": ("exponential", ""),
    "delay_ms": ("5", ""),
    "delay": ("5", ""),
    "max_delay_ms": ("5s", ""),
    "max_delay": ("5s", ""),
    "jitter": ("0.5", ""),
}
DOCUMENT = {
    "id": ("w", ""),
    "name": ("n", ""),
    "inputs": ("[{name: i}]", ""),
    "outputs": ("[{name: o, value_js: '1'}]", ""),
    "routing": ("{max_loops: 3}", ""),
    "limits": ("{max_items: 3}", ""),
    "max_parallelism": ("7", ""),
    "max_ai_concurrency": ("2", ""),
    "fail_fast": ("true", ""),
    "fail_if": ("'true'", ""),
    "failure_conditions": ("{f: 'true'}", ""),
    "tag_filter": ("{include: [slow]}", ""),
    "env": ("{A: '1'}", ""),
    "memory": ("{storage: file, file: f}", ""),
    "safety": ("'off'", ""),
    "budget": ("{calls: 3}", ""),
    "reliability": ("{default: {bounds: {attempts_max: 2}}}", ""),
    "compensate_on": ("[halted]", ""),
    "seed": ("s", ""),
    "clock": ("virtual", ""),
}
LIMITS = {"max_runs_per_check": ("3", ""), "max_workflow_depth": ("2", ""), "max_items": ("3", "")}
BUDGET = dict.fromkeys(("time", "calls", "retries", "tokens", "money"), ("5", ""))
ROUTING = {"max_loops": ("3", ""), "defaults": ("{on_fail: {goto: b}}", "")}

STEPS = "steps: {a: {<keys>}, b: {type: noop}, list: {type: noop, forEach: true}}"
WITHIN = {
    "step": (step.Step, STEP, STEPS),
    "on_fail": (blocks.Fail, FAIL, STEPS.replace("<keys>", "type: noop, on_fail: {<keys>}")),
    "retry": (blocks.Retry, RETRY, STEPS.replace("<keys>", "type: noop, on_fail: {retry: {<keys>}}")),
    "backoff": (
        blocks.Backoff,
        BACKOFF,
        STEPS.replace("<keys>", "type: noop, on_fail: {retry: {max: 1, backoff: {<keys>}}}"),
    ),
    "document": (top.Document, DOCUMENT, "<keys>\n" + STEPS.replace("<keys>", "type: noop")),
    "limits": (top.Limits, LIMITS, "limits: {<keys>}\n" + STEPS.replace("<keys>", "type: noop")),
    "budget": (top.Budget, BUDGET, "budget: {<keys>}\n" + STEPS.replace("<keys>", "type: noop")),
    "routing": (
        top.Routing,
        ROUTING,
        "routing: {<keys>}\n" + STEPS.replace("<keys>", "type: noop, on_fail: {run: [b]}"),
    ),
}
ASKING = "type: human-input, prompt: p, approvers: [ana, ben], quorum: 2"
WITHIN |= {
    "remind": (blocks.Remind, REMIND, STEPS.replace("<keys>", f"{ASKING}, remind: {{<keys>}}")),
    "escalate": (blocks.Escalate, ESCALATE, STEPS.replace("<keys>", f"{ASKING}, escalate: {{<keys>}}")),
}
ALWAYS = {"step": "type: noop", "retry": "max: 1"}
MUST = {"remind": {"every": "4h", "run": "b"}, "escalate": {"after": "1d", "run": "list"}}
CASES = [(noun, key) for noun, (_, samples, _text) in WITHIN.items() for key in samples]


@pytest.mark.parametrize("noun", WITHIN)
def test_every_key_has_a_sample(noun: str) -> None:
    """A new key is looked at by the test below."""
    model, samples, _ = WITHIN[noun]
    assert set(samples) <= set(keys_of(model)) <= set(samples) | FOR_PEOPLE | CHECKED_ONLY


@pytest.mark.parametrize(("noun", "key"), CASES)
def test_every_key_acts_or_says_that_it_does_not(load_text: Any, noun: str, key: str) -> None:
    """CLI-1: the plan is another one with it, or a problem names it."""
    _, samples, text = WITHIN[noun]
    value, beside = samples[key]

    def loaded(with_it: bool) -> tuple[Any, set[str]]:
        said = [f"{key}: {value}"] if with_it else []
        said += [beside] if beside else []
        if noun in ALWAYS and not any(each.startswith(ALWAYS[noun].split()[0]) for each in said):
            said.insert(0, ALWAYS[noun])
        said += [f"{name}: {text}" for name, text in MUST.get(noun, {}).items() if not with_it or name != key]
        found = load_text(text.replace("<keys>", ", ".join(said)))
        plan = to_builtins(found.plan)
        plan.pop("digest")
        return plan, {problem.path for problem in found.problems if problem.code == "key.not_yet"}

    plan, told = loaded(True)
    assert plan != loaded(False)[0] or any(path.split(".")[-1] == key for path in told)
