"""One draft to one core `Step`. What concerns several steps at once is left to `order.py`."""

from __future__ import annotations

from typing import Any

from gonogo.config import templates
from gonogo.config.actions import Actions, workflow_exists
from gonogo.config.asking import check_secrets, check_tools
from gonogo.config.children import check_child
from gonogo.config.collect import Collector
from gonogo.config.criticality import check_criticality, criticality_of, effects_of, runs_mutators
from gonogo.config.drafts import Draft
from gonogo.config.expressions import Expressions, Use
from gonogo.config.holding import hold_of
from gonogo.config.json_schemas import schema_problem
from gonogo.config.nodes import Scalar, find, texts
from gonogo.config.reliability import Policies
from gonogo.config.schema.blocks import FailureCondition as ConditionNoun
from gonogo.core.plan import Criticality, Edge, FailureCondition, Need, Step

Path = tuple[str | int, ...]
_RUN_STATUS = frozenset(("always", "failure", "success"))


class StepCompiler:
    """Turns drafts into steps; everything that is wrong goes to `notes`."""

    def __init__(
        self, notes: Collector, expressions: Expressions, actions: Actions, policies: Policies
    ) -> None:
        self._notes = notes
        self._expressions = expressions
        self._actions = actions
        self._policies = policies

    def compile(self, draft: Draft) -> Step:
        """The step of a draft."""
        effects = effects_of(draft)
        inside = runs_mutators(draft, self._actions.workflows)
        criticality, origin = criticality_of(draft, mutates=effects == "mutates" or inside)
        check_criticality(draft, criticality, origin, self._notes)
        self._check_own_keys(draft)
        self._check_env(draft)
        self._check_reused_session(draft)
        engine = draft.engine
        condition, always = self._if(draft)
        step_schema, renderer = self._schema(draft)
        on_init, on_init_js = self._actions.before(draft)
        return Step(
            name=draft.name,
            type=draft.provider.name,
            config=draft.config,
            on=None if engine.on is None else tuple(engine.on),
            tags=tuple(engine.tags),
            group=engine.group,
            if_condition=condition,
            always=always,
            assume=self._conditions(draft, "assume", engine.assume),
            guarantee=self._conditions(draft, "guarantee", engine.guarantee),
            fail_if=self._fail_if(draft),
            failure_conditions=failure_conditions(
                engine.failure_conditions, self._expressions, (*draft.path, "failure_conditions"), draft.name
            ),
            depends_on=self._needs(draft),
            continue_on_failure=_continues(draft),
            criticality=criticality,
            criticality_source=origin,
            effects=effects,
            runs_mutators=inside,
            schema=step_schema,
            renderer=renderer,
            for_each=engine.for_each,
            fanout=self._fanout(draft),
            fanout_explicit=draft.engine.fanout is not None or draft.engine.reduce is not None,
            concurrency=engine.for_each_concurrency or 1,
            on_init=on_init,
            on_init_js=on_init_js,
            timeout_s=self._timeout_s(draft),
            max_runs=engine.max_runs,
            start=engine.start,
            assume_mode=engine.assume_mode,
            guarantee_mode=engine.guarantee_mode,
            schema_mode=engine.schema_mode,
            idempotency_key=self._idempotency_key(draft),
            loop_budget=engine.loop_budget,
            compensate=self._compensate(draft),
            hold=hold_of(draft, self._actions),
            secret_outputs=tuple(engine.secret_outputs),
            env=dict(engine.env),
            reliability=engine.reliability,
            runs_on=engine.runs_on or "",
            line=draft.line,
            **self._blocks(draft, criticality),
        )

    def _timeout_s(self, draft: Draft) -> float | None:
        """The step's own limit, else that of its policy if it calls out through the gate, else its type's."""
        by_policy = self._policies.of_step(draft)
        if draft.engine.timeout is not None:
            return draft.engine.timeout
        if draft.provider.gated and by_policy is not None:
            return by_policy
        return draft.provider.default_timeout_s

    def _blocks(self, draft: Draft, criticality: Criticality) -> dict[str, Any]:
        if draft.engine.on_finish is not None and not draft.engine.for_each:
            message = "on_finish needs forEach: true; it acts when all items are done"
            self._notes.add_key("error", "key.needs", message, (*draft.path, "on_finish"), "use on_success:")
        return {
            key: self._actions.block(draft, key, criticality)
            for key in ("on_success", "on_fail", "on_finish")
        }

    def _if(self, draft: Draft) -> tuple[int | None, bool]:
        """The position of `if`, and whether it replaces the gate (semantics.md 5). Empty text is no condition."""
        source = draft.engine.if_
        path = (*draft.path, "if")
        if source is None:
            return None, False
        if source == "":
            message = "an empty if is no condition: the step always runs"
            self._notes.warn("expression.empty", message, path, "remove it or write a condition")
            return None, False
        at = self._expressions.add(source, "condition", Use(path, draft.name, "if"))
        reading = self._expressions.reading(source)
        return at, reading is not None and bool(_RUN_STATUS & set(reading.calls))

    def _conditions(self, draft: Draft, key: str, sources: list[str]) -> tuple[int, ...]:
        return tuple(
            self._expressions.add(source, "condition", Use((*draft.path, key, index), draft.name, key))
            for index, source in enumerate(sources)
        )

    def _fail_if(self, draft: Draft) -> int | None:
        source = draft.engine.fail_if
        if source is None:
            return None
        return self._expressions.add(
            source, "condition", Use((*draft.path, "fail_if"), draft.name, "fail_if")
        )

    def _needs(self, draft: Draft) -> tuple[Need, ...]:
        made: list[Need] = []
        for index, dependency in enumerate(draft.engine.depends_on):
            path = (*draft.path, "depends_on", index)
            names = [name.strip() for name in dependency.step.split("|")]
            known = [name for name in dict.fromkeys(names) if self._actions.target_exists(name, path)]
            if known:
                made.append(Need(tuple(Edge(name, dependency.on_failure) for name in known)))
        return tuple(made)

    def _fanout(self, draft: Draft) -> Any:
        engine = draft.engine
        if (
            engine.reduce is not None
            and engine.fanout is not None
            and engine.reduce != (engine.fanout == "reduce")
        ):
            message = f"reduce: {str(engine.reduce).lower()} contradicts fanout: {engine.fanout}"
            self._notes.error("key.clash", message, (*draft.path, "reduce"), "keep fanout only")
        if engine.fanout is not None:
            return engine.fanout
        if engine.reduce is not None:
            return "reduce" if engine.reduce else "map"
        return draft.provider.default_fanout

    def _schema(self, draft: Draft) -> tuple[Any, str | None]:
        engine = draft.engine
        key, said = ("schema", engine.schema_)
        if engine.output_schema is not None:
            if said is not None:
                message = "schema and output_schema are both given"
                self._notes.error("key.clash", message, (*draft.path, "output_schema"), "keep schema")
            key, said = "output_schema", engine.output_schema
            self._notes.add_key(
                "info", "key.older", "output_schema is the older name of schema", (*draft.path, key)
            )
        if isinstance(said, str):
            return None, said
        if said is not None:
            self._check_schema(said, (*draft.path, key))
        return said, None

    def _check_schema(self, said: dict[str, Any], path: Path) -> None:
        wrong = schema_problem(said)
        if wrong is not None:
            self._notes.error("schema.invalid", wrong, path)

    def _idempotency_key(self, draft: Draft) -> int | None:
        path = (*draft.path, "idempotency_key")
        node = find(self._notes.root, path)
        if draft.engine.idempotency_key is None or not isinstance(node, Scalar):
            return None
        reading = None
        if templates.is_template(node.text):
            reading = templates.check_text(node, path, self._notes)
        return self._expressions.add_template(draft.engine.idempotency_key, reading)

    def _compensate(self, draft: Draft) -> str | None:
        """The step that undoes this one (G12); what it may not be is said in `undoing.py`."""
        name = draft.engine.compensate
        if name is not None:
            self._actions.target_exists(name, (*draft.path, "compensate"))
        return name

    def _check_own_keys(self, draft: Draft) -> None:
        """Templates and expressions in the type's own keys; names of workflows."""
        provider = draft.provider
        shell = templates.SHELL_FIELDS.get(provider.name, frozenset())
        for key in draft.config:
            node, path = draft.node.entries[key].node, (*draft.path, key)
            if key in provider.templates or key in provider.late_templates:
                for at, reading in templates.check_field(node, path, self._notes):
                    self._expressions.uses.append((Use(at, draft.name, templates.TEMPLATE), reading))
            if key in shell and not draft.engine.allow_unescaped:
                templates.refuse_unescaped(node, path, self._notes)
            if key in provider.expressions:
                for below, scalar in texts(node):
                    use = Use((*path, *below), draft.name, key)
                    self._expressions.check(scalar.text, provider.expressions[key], use)  # type: ignore[arg-type]
        check_secrets(draft, self._notes)
        check_tools(draft, self._actions, self._expressions)
        workflow = draft.config.get("workflow")
        if provider.name == "workflow" and isinstance(workflow, str):
            workflow_exists(workflow, (*draft.path, "workflow"), self._actions.workflows, self._notes)
        if provider.name == "workflow":
            check_child(draft, self._actions.workflows, self._notes)

    def _check_env(self, draft: Draft) -> None:
        """Templates in the step's variables, which the host renders before the call."""
        node = draft.node.get("env")
        if node is None or not draft.engine.env:
            return
        for at, reading in templates.check_field(node, (*draft.path, "env"), self._notes):
            self._expressions.uses.append((Use(at, draft.name, templates.TEMPLATE), reading))

    def _check_reused_session(self, draft: Draft) -> None:
        """`reuse_ai_session` does nothing here, but a name that is no step is wrong all the same (A.4)."""
        node = draft.node.get("reuse_ai_session")
        path = (*draft.path, "reuse_ai_session")
        if not isinstance(node, Scalar):
            return
        if isinstance(node.value, str) and node.value != "self":
            self._actions.target_exists(node.value, path)
        elif node.value is True and not draft.engine.depends_on:
            self._notes.error("key.needs", "reuse_ai_session: true needs depends_on", path)


def not_yet(key: str, path: Path, advice: str, notes: Collector) -> None:
    """A key that is understood and doesn't act: never silent, and an error under strict."""
    severity = "error" if notes.strict else "warning"
    notes.add_key(severity, "key.not_yet", f"{key} doesn't act in this version", path, advice)


def _continues(draft: Draft) -> bool:
    """An explicit value wins; written `criticality: info` tolerates failure, an omitted one doesn't
    (semantics.md 1).
    """
    engine = draft.engine
    if engine.continue_on_failure is not None:
        return engine.continue_on_failure
    return engine.criticality == "info" or (engine.criticality is None and engine.critical is False)


def failure_conditions(
    nouns: dict[str, ConditionNoun], expressions: Expressions, path: Path, step: str | None
) -> tuple[FailureCondition, ...]:
    """Named detectors, in the file's order."""
    made: list[FailureCondition] = []
    for name, noun in nouns.items():
        use = Use((*path, name, "condition"), step, "failure_conditions")
        at = expressions.add(noun.condition, "condition", use)
        made.append(FailureCondition(name, at, noun.message, noun.severity, noun.halt_execution))
    return tuple(made)
