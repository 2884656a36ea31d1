"""A merged document to a frozen `Plan`, or every problem at once.

Reading files is `loader.py`; what the core does with a plan is the core's. Compiling is deterministic: the
same text gives the same plan and the same digest, in another process and on another day.
"""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec
from msgspec import Struct, field

from gonogo.config import hints, lists, order, templates
from gonogo.config.actions import Actions
from gonogo.config.collect import Collector
from gonogo.config.drafts import Draft, Providers, read_drafts, with_routing_defaults
from gonogo.config.expressions import CompileExpressions, Expressions, Use
from gonogo.config.holding import check_holds
from gonogo.config.idle import check_idle
from gonogo.config.json_schemas import schema_problem
from gonogo.config.literals import check_literals
from gonogo.config.nodes import Mapping, find, plain
from gonogo.config.reliability import Policies
from gonogo.config.schema import top
from gonogo.config.schema.base import Safety
from gonogo.config.steps import StepCompiler, failure_conditions, not_yet
from gonogo.config.undoing import check_compensation
from gonogo.config.validate import check
from gonogo.config.whole_lists import check_ifs
from gonogo.core.plan import Budget, Limits, Plan, Step

STEPS_MAX = 10_000
_NOT_YET = {
    "seed": "gonogo run --seed",
    "clock": "tests have a clock of their own",
    "max_ai_concurrency": "max_parallelism limits all steps",
}


class Setting(Struct, frozen=True):
    """What compiling needs beside the document."""

    providers: Providers
    compile_expressions: CompileExpressions
    safety: Safety = "standard"
    default_name: str = "workflow"
    workflows: dict[str, Plan] = field(default_factory=dict)


def compile_document(root: Mapping, setting: Setting, notes: Collector) -> Plan | None:
    """The plan of a document; None (and errors in `notes`) when there is none."""
    root = with_routing_defaults(root)
    notes.root = root
    document = _document(root, notes)
    steps_node = root.get("steps")
    if document is None or not isinstance(steps_node, Mapping):
        return None
    if len(steps_node.entries) > STEPS_MAX:
        notes.error("steps.many", f"{len(steps_node.entries)} steps; at most {STEPS_MAX}", ("steps",))
        return None
    for key, advice in _NOT_YET.items():
        if key in root.entries:
            not_yet(key, (key,), advice, notes)
    if document.memory is not None and document.memory != top.Memory():
        advice = "memory lives as long as its run; let a step read and write a file"
        not_yet("memory", ("memory",), advice, notes)
    check_literals(root, notes)
    drafts = read_drafts(steps_node, setting.providers, notes)
    expressions = Expressions(notes)
    names = frozenset(steps_node.entries)
    actions = Actions(notes, expressions, names, setting.workflows, setting.safety)
    policies = Policies(document.reliability, expressions, notes)
    compiler = StepCompiler(notes, expressions, actions, policies)
    steps = {name: compiler.compile(draft) for name, draft in drafts.items()}
    policies.check_used()
    steps.update(actions.hidden)
    made = order.Order(steps)
    mapped = lists.sources(made)
    steps = lists.with_concurrency(steps, drafts, mapped)
    plan = _plan(document, steps, expressions, setting, notes)
    _check_together(plan, made, drafts, expressions, names, document, notes)
    if len(drafts) == len(names):  # a list that couldn't be read would be missed
        lists.check_lists(made, drafts, mapped, notes)
        check_ifs(made, mapped, expressions.uses, notes)
    expressions.compile(setting.compile_expressions)
    return None if notes.failed else with_digest(plan, expressions)


def _document(root: Mapping, notes: Collector) -> top.Document | None:
    """The top level, checked. A missing version or missing steps are reported here, with the fix."""
    data: dict[str, Any] = {}
    for key, entry in root.entries.items():
        if key in top.OUT_OF_SCOPE or key.startswith(top.OUT_OF_SCOPE_PREFIX):
            notes.add_key("info", "key.out_of_scope", f"{key} is accepted and does nothing here", (key,))
        elif key != "steps":
            data[key] = plain(entry.node)
    if not notes.failed:  # else a file it extends couldn't be used, and may be what would be missed here
        _check_complete(root, notes)
    data.setdefault("version", "1.0")
    return check(top.Document, data, notes, ())


def _check_complete(root: Mapping, notes: Collector) -> None:
    """A version and steps (A.6)."""
    steps = root.get("steps")
    if "version" not in root.entries:
        notes.error("key.missing", "the key 'version' is missing", (), 'add version: "1.0" at the top')
    if steps is None:
        notes.error("key.missing", "the key 'steps' is missing: there is nothing to run", (), "add steps:")
    elif not isinstance(steps, Mapping) or not steps.entries:
        advice = "write each step's name as a key, with the step's own keys below it: NAME: {type: command, exec: …}"
        notes.error("value.type", "expected a mapping of at least one step by name", ("steps",), advice)


def _plan(
    document: top.Document,
    steps: dict[str, Step],
    expressions: Expressions,
    setting: Setting,
    notes: Collector,
) -> Plan:
    fail_if = None
    if document.fail_if is not None:
        fail_if = expressions.add(document.fail_if, "condition", Use(("fail_if",), None, "fail_if"))
    return Plan(
        name=document.name or document.id or setting.default_name,
        steps=steps,
        limits=Limits(
            max_parallelism=document.max_parallelism,
            max_loops=document.routing.max_loops,
            max_runs=document.limits.max_runs_per_check,
            max_workflow_depth=document.limits.max_workflow_depth,
            max_items=document.limits.max_items,
        ),
        fail_fast=document.fail_fast,
        fail_if=fail_if,
        failure_conditions=failure_conditions(
            document.failure_conditions, expressions, ("failure_conditions",), None
        ),
        include_tags=tuple(document.tag_filter.include),
        exclude_tags=tuple(document.tag_filter.exclude),
        safety=setting.safety,
        budget=_budget(document.budget),
        **_compensate_on(document),
        env=dict(document.env),
        inputs=_inputs(document, notes),
        outputs=_outputs(document, expressions, notes),
        workflows=setting.workflows,
        memory=msgspec.structs.asdict(document.memory) if document.memory else {},
        reliability=document.reliability,
    )


def _compensate_on(document: top.Document) -> dict[str, Any]:
    said = document.compensate_on
    return {} if said is None else {"compensate_on": tuple(dict.fromkeys(said))}


def _budget(noun: top.Budget) -> Budget:
    return Budget(noun.time, noun.calls, noun.retries, noun.tokens, noun.money)


def _inputs(document: top.Document, notes: Collector) -> dict[str, Any]:
    """Declared inputs by name: `schema`, `required`, and `default` when there is one."""
    made: dict[str, Any] = {}
    for index, noun in enumerate(document.inputs):
        path = ("inputs", index)
        if noun.name in made:
            notes.error("input.twice", f"the input {noun.name!r} is declared twice", path)
        schema = noun.schema_ if noun.schema_ is not None else {"type": noun.type} if noun.type else {}
        wrong = schema_problem(schema)
        if wrong is not None:
            notes.error("schema.invalid", wrong, (*path, "schema"))
        has_default = noun.default is not msgspec.UNSET
        made[noun.name] = {"schema": schema, "required": noun.required and not has_default}
        if has_default:
            made[noun.name]["default"] = noun.default
    return made


def _outputs(
    document: top.Document, expressions: Expressions, notes: Collector
) -> tuple[dict[str, Any], ...]:
    """Declared outputs in order: `name` with `value` (a template) or `value_js`."""
    made: list[dict[str, Any]] = []
    for index, noun in enumerate(document.outputs):
        path = ("outputs", index)
        if noun.value_js is not None:
            expressions.check(noun.value_js, "value", Use((*path, "value_js"), None, "outputs"))
            made.append({"name": noun.name, "value_js": noun.value_js})
            continue
        node = find(notes.root, (*path, "value"))
        if node is not None:
            templates.check_field(node, (*path, "value"), notes)
        made.append({"name": noun.name, "value": noun.value})
    return tuple(made)


def _check_env(expressions: Expressions, notes: Collector) -> None:
    """Templates in the variables of all steps, which the host renders before each call."""
    node = find(notes.root, ("env",))
    for at, reading in templates.check_field(node, ("env",), notes) if node is not None else ():
        expressions.uses.append((Use(at, None, templates.TEMPLATE), reading))


def _check_together(
    plan: Plan,
    made: order.Order,
    drafts: dict[str, Draft],
    expressions: Expressions,
    names: frozenset[str],
    document: top.Document,
    notes: Collector,
) -> None:
    """What can be said only when all steps are known."""
    _check_env(expressions, notes)
    complete = len(drafts) == len(names)
    order.check_cycles(made, notes)
    if not made.rings and complete:
        order.check_lists(plan, notes)
        check_compensation(plan, notes)
    if complete:  # a step that couldn't be read would be reported as missing, again and again
        order.check_loops(made, document.routing.max_loops, notes)
        order.check_reads(made, expressions.uses, notes)
        check_holds(made, drafts, notes)
        explicit = frozenset(
            name for name, draft in drafts.items() if draft.engine.fanout or draft.engine.reduce is not None
        )
        order.check_fanout(made, explicit, notes)
    check_idle(plan, drafts, document, notes)
    hints.give(plan, drafts, expressions, document, notes)


def with_digest(plan: Plan, expressions: Expressions) -> Plan:
    """The finished plan: its table of expressions and the digest of everything in it."""
    plan = msgspec.structs.replace(plan, expressions=expressions.finished())
    return msgspec.structs.replace(plan, digest=digest_of(plan))


def digest_of(plan: Plan) -> str:
    """sha256 of the plan as JSON with sorted keys, beside the order of its steps (which decides the order of work)."""
    bare = msgspec.structs.replace(plan, digest="")
    text = msgspec.json.encode([bare, list(plan.steps)], order="sorted")
    return f"sha256:{hashlib.sha256(text).hexdigest()}"
