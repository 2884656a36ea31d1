"""on_success, on_fail and on_finish as the core has them: targets, arguments, retries, transitions (spec C.9, C.10)."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct, field

from gonogo.config import templates
from gonogo.config.children import check_inputs, check_names
from gonogo.config.collect import Collector, nearest, shown
from gonogo.config.criticality import CRITICAL, changes_outside
from gonogo.config.drafts import Draft
from gonogo.config.expressions import Expressions, Use
from gonogo.config.nodes import Scalar, find, texts
from gonogo.config.schema.blocks import Fail, RunItem, Success
from gonogo.config.schema.blocks import Retry as RetryNoun
from gonogo.core.plan import Block, Criticality, Plan, Retry, Step, Target, Transition

_RETRIES_MAX_CRITICAL, _RETRIES_MAX_INFO = 2, 3
_DEFAULT_BACKOFF_S = 1.0
Path = tuple[str | int, ...]


class Actions(Struct):
    """Compiles blocks; gathers the hidden steps that `{workflow: …}` items become."""

    notes: Collector
    expressions: Expressions
    names: frozenset[str]
    workflows: dict[str, Plan]
    safety: str
    hidden: dict[str, Step] = field(default_factory=dict)

    def block(self, draft: Draft, key: str, criticality: Criticality) -> Block | None:
        """The block of `draft` under `key`, None when it has none."""
        noun: Success | None = getattr(draft.engine, key)
        if noun is None:
            return None
        path = (*draft.path, key)
        if noun.goto is not None:
            self.target_exists(noun.goto, (*path, "goto"))
        return Block(
            run=tuple(self._run(item, (*path, "run", index)) for index, item in enumerate(noun.run)),
            run_js=self._expression(noun.run_js, "value", draft, (*path, "run_js")),
            retry=self._retry(noun, path, criticality),
            transitions=self._transitions(draft, noun, path),
            goto_js=self._expression(noun.goto_js, "value", draft, (*path, "goto_js")),
            goto=noun.goto,
            goto_event=noun.goto_event,
            escalate=self._escalate(draft, noun, path),
        )

    def _escalate(self, draft: Draft, noun: Success, path: Path) -> str | None:
        """The step to be told of a failure that stands: another one of the file (G27)."""
        name = noun.escalate if isinstance(noun, Fail) else None
        if name is None:
            return None
        at = (*path, "escalate")
        self.target_exists(name, at)
        if name == draft.name:
            message = "a step that failed can't be told of its own failure"
            self.notes.error("escalate.own", message, at, "name another step, or remove it")
        return name

    def before(self, draft: Draft) -> tuple[tuple[Target, ...], int | None]:
        """What `on_init` runs before a step: its items and its JavaScript (C.10 R8)."""
        noun = draft.engine.on_init
        if noun is None:
            return (), None
        path = (*draft.path, "on_init")
        made: list[Target] = []
        for index, item in enumerate(noun.run):
            target = self._run(item, (*path, "run", index))
            if item.as_ is not None:
                self._check_alias(item.as_, target, (*path, "run", index, "as"))
                target = msgspec.structs.replace(target, alias=item.as_)
            made.append(target)
        return tuple(made), self._expression(noun.run_js, "value", draft, (*path, "run_js"))

    def _check_alias(self, alias: str, target: Target, path: Path) -> None:
        """A name that is another step's would hide that step's output."""
        if alias in self.names and alias != target.step:
            message = f"{shown(alias)} is the name of another step, whose output it would hide"
            self.notes.error("on_init.alias", message, path, "choose another name")

    def target_exists(self, name: str, path: Path) -> bool:
        """Report a target that is no step."""
        if name in self.names:
            return True
        if self.notes.only_counted():
            return False
        near = nearest(name, self.names)
        advice = f"did you mean {near}?" if near else "name a step of this file"
        self.notes.error("reference.unknown", f"there is no step {shown(name)}", path, advice)
        return False

    def _expression(self, source: str | None, kind: Any, draft: Draft, path: Path) -> int | None:
        if source is None:
            return None
        return self.expressions.add(source, kind, Use(path, draft.name, str(path[-1])))

    def _transitions(self, draft: Draft, noun: Success, path: Path) -> tuple[Transition, ...]:
        made: list[Transition] = []
        for index, rule in enumerate(noun.transitions):
            at = (*path, "transitions", index)
            when = self.expressions.add(rule.when, "condition", Use((*at, "when"), draft.name, "when"))
            if rule.to is not None:
                self.target_exists(rule.to, (*at, "to"))
            made.append(Transition(when, rule.to, rule.goto_event))
        return tuple(made)

    def _run(self, item: RunItem, path: Path) -> Target:
        self._refuse_deep_templates(item, path)
        plain_arguments = {
            key: value for key, value in item.with_.items() if not templates.is_template(value)
        }
        rendered = {key: value for key, value in item.with_.items() if templates.is_template(value)}
        made = {key: self._template(text, (*path, "with", key)) for key, text in rendered.items()}
        if item.workflow is not None:
            return Target(self._hidden(item, path), plain_arguments, made)
        assert item.step is not None
        self.target_exists(item.step, (*path, "step"))
        return Target(item.step, plain_arguments, made)

    def _refuse_deep_templates(self, item: RunItem, path: Path) -> None:
        """Only the arguments themselves are rendered (C.10 R3); a template further in would stay as written."""
        node = find(self.notes.root, (*path, "with"))
        for below, scalar in texts(node) if node is not None else ():
            if len(below) > 1 and templates.is_template(scalar.text):
                message = "a template inside a list or map of arguments is not rendered"
                at = (*path, "with", *below)
                self.notes.error("template.nested", message, at, "make it an argument of its own")

    def _template(self, text: str, path: Path) -> int:
        node = find(self.notes.root, path)
        reading = templates.check_text(node, path, self.notes) if isinstance(node, Scalar) else None
        return self.expressions.add_template(text, reading)

    def _hidden(self, item: RunItem, path: Path) -> str:
        """A step of type workflow that runs only when routed to; its inputs are the arguments it is given."""
        workflow = item.workflow
        assert workflow is not None
        workflow_exists(workflow, (*path, "workflow"), self.workflows, self.notes)
        if workflow in self.workflows:
            check_inputs(self.workflows[workflow], item.with_, (*path, "with"), self.notes)
            check_names(self.workflows[workflow], item.overrides, item.output_mapping, path, self.notes)
        arguments = {key: {"expression": f"args[{_quoted(key)}]"} for key in sorted(item.with_)}
        said = {"args": arguments, "overrides": item.overrides, "output_mapping": item.output_mapping}
        config: dict[str, Any] = {
            "workflow": workflow,
            **{key: value for key, value in said.items() if value},
        }
        base = name = f"workflow:{workflow}"
        count = 1
        while (name in self.names) or (name in self.hidden and self.hidden[name].config != config):
            count += 1
            name = f"{base}:{count}"
        self.hidden[name] = Step(
            name=name,
            type="workflow",
            config=config,
            effects="idempotent",
            criticality="external" if changes_outside(self.workflows.get(workflow)) else "info",
            runs_mutators=changes_outside(self.workflows.get(workflow)),
            start="routed",
            fanout="reduce",
        )
        return name

    def _retry(self, noun: Success, path: Path, criticality: Criticality) -> Retry | None:
        if not isinstance(noun, Fail) or noun.retry is None:
            return None
        at = (*path, "retry")
        backoff = noun.retry.backoff
        delay = 0.0
        if backoff is not None:
            delay = _DEFAULT_BACKOFF_S if backoff.delay is None else backoff.delay
        return Retry(
            max=self._attempts(noun.retry.max, at, criticality),
            on=self._retry_on(noun, noun.retry, at, criticality),
            mode=backoff.mode if backoff else "fixed",
            delay_s=delay,
            max_delay_s=backoff.max_delay if backoff else 60.0,
            jitter=backoff.jitter if backoff else 0.1,
            separately=noun.retry.count == "separately",
            **self._exhausted(noun.retry, at),
        )

    def _exhausted(self, retry: RetryNoun, path: Path) -> dict[str, Any]:
        """What comes after the last retry, as the core names it."""
        said = retry.exhausted
        if isinstance(said, str):
            return {"exhausted": said}
        self.target_exists(said.goto, (*path, "exhausted", "goto"))
        return {"exhausted": "route", "exhausted_goto": said.goto}

    def _attempts(self, asked: int, path: Path, criticality: Criticality) -> int:
        """A larger `max` than the criticality allows is cut, unless safety is off (C.8)."""
        most = _RETRIES_MAX_CRITICAL if criticality in CRITICAL else _RETRIES_MAX_INFO
        if asked <= most or self.safety == "off":
            return asked
        message = f"retry.max {asked} is cut to {most}, the most for criticality {criticality}"
        self.notes.warn("retry.capped", message, (*path, "max"), f"write {most}, or set safety: off")
        return most

    def _retry_on(
        self, noun: Fail, retry: RetryNoun, path: Path, criticality: Criticality
    ) -> tuple[str, ...]:
        said = retry.retry_on if retry.retry_on is not None else noun.retry_on
        classes = tuple(dict.fromkeys(said)) if said is not None else ("transient",)
        if "logical" in classes and criticality in CRITICAL:
            message = f"logical faults are never retried at criticality {criticality}"
            self.notes.warn("retry.logical", message, path, "remove logical from retry_on")
            return tuple(word for word in classes if word != "logical")
        return classes


def _quoted(key: str) -> str:
    return msgspec.json.encode(key).decode()


def workflow_exists(name: str, path: Path, workflows: dict[str, Plan], notes: Collector) -> None:
    """Report a workflow that no import brings."""
    if name in workflows or templates.is_template(name):
        return
    near = nearest(name, workflows)
    advice = f"did you mean {near}?" if near else "add its file to imports:"
    notes.error("reference.unknown_workflow", f"there is no workflow {shown(name)}", path, advice)
