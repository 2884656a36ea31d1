"""Random plans: every construct, alone and with the others, from a seed alone. Small ones, which are odd enough.

What a plan means is the core's business; what is checked about its run is that of `checks.py`.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from msgspec import structs

from gonogo.core.plan import Edge, FailureCondition, Need, Retry, Severity, Target, Transition
from gonogo.testing import care
from gonogo.testing.maker import CONDITIONS, Maker
from gonogo.testing.scenarios import Crash, Scenario

WISHES = (0, 0, 1, 2)


def make(seed: int) -> Scenario:
    """The scenario of a seed."""
    maker = Maker(random.Random(seed))  # noqa: S311 - a simulation must be repeatable
    maker.lay_out()
    for chance, add in (*_CONSTRUCTS, *care.CONSTRUCTS):
        if maker.by_chance(chance):
            add(maker)
    care.approve(maker, random.Random(f"{seed}/approvals"))  # noqa: S311 - a simulation must be repeatable
    care.gate(maker, random.Random(f"{seed}/attempts"))  # noqa: S311 - a simulation must be repeatable
    # Not drawn by the maker, whose scenarios stay those that their seeds are known for.
    return replace(maker.scenario(seed), wishes=WISHES[seed % len(WISHES)])


# --- contracts and detectors


def _if(maker: Maker) -> None:
    for name in maker.some():
        maker.drafts[name]["if_condition"] = maker.condition(name)


def _assume(maker: Maker) -> None:
    for name in maker.some():
        maker.drafts[name]["assume"] = tuple(maker.condition(name) for _ in range(maker.rng.randint(1, 2)))
        maker.drafts[name]["assume_mode"] = maker.rng.choice(("skip", "skip", "fail"))


def _guarantee(maker: Maker) -> None:
    for name in maker.some():
        maker.drafts[name]["guarantee"] = tuple(maker.condition(name) for _ in range(maker.rng.randint(1, 2)))
        maker.drafts[name]["guarantee_mode"] = maker.rng.choice(("fail", "fail", "issue"))


def _fail_if(maker: Maker) -> None:
    for name in maker.some():
        maker.drafts[name]["fail_if"] = maker.condition(name)
        maker.drafts[name]["criticality"] = maker.rng.choice(("info", "internal"))


def _global_fail_if(maker: Maker) -> None:
    maker.extras["fail_if"] = maker.expression(maker.rng.choice(CONDITIONS))


def _failure_conditions(maker: Maker) -> None:
    name = maker.one()
    severity: Severity = maker.rng.choice(("info", "error"))
    halt = maker.by_chance(40)
    condition = FailureCondition("found", maker.condition(name), None, severity, halt)
    if maker.by_chance(30):
        maker.extras["failure_conditions"] = (condition,)
    else:
        maker.drafts[name]["failure_conditions"] = (condition,)


# --- dependencies and gating


def _or_group(maker: Maker) -> None:
    for name in maker.some(3):
        sources = maker.earlier(name)
        if len(sources) > 1:
            picked = maker.rng.sample(sources, 2)
            group = Need(tuple(Edge(source) for source in picked))
            kept = maker.drafts[name]["depends_on"] if maker.by_chance(50) else ()
            maker.drafts[name]["depends_on"] = (*kept, group)


def _soft_edges(maker: Maker) -> None:
    for name in maker.some():
        needs = maker.drafts[name]["depends_on"]
        soft = tuple(Need(tuple(Edge(edge.step, "continue") for edge in need.any_of)) for need in needs)
        maker.drafts[name]["depends_on"] = soft


def _tolerate(maker: Maker) -> None:
    for name in maker.some():
        maker.drafts[name]["continue_on_failure"] = True


def _always(maker: Maker) -> None:
    for name in maker.some():
        maker.drafts[name]["if_condition"] = maker.expression("true")
        maker.drafts[name]["always"] = True


def _routed_only(maker: Maker) -> None:
    maker.drafts[maker.one()]["start"] = "routed"


def _filters(maker: Maker) -> None:
    for name in maker.some():
        maker.drafts[name]["on"] = ("pr_opened",)
    for name in maker.some(1):
        maker.drafts[name]["tags"] = ("slow",)
    maker.options["trigger"] = maker.rng.choice((None, {"name": "pr_opened"}, {"name": "push"}))
    maker.extras["include_tags"] = maker.rng.choice(((), ("slow",), ("fast",)))


def _request(maker: Maker) -> None:
    maker.options["requested"] = tuple(maker.some())


# --- fan-outs


def _for_each(maker: Maker) -> None:
    names = list(maker.drafts)
    parent = maker.rng.choice(names[: max(1, len(names) // 2)])
    _make_list(maker, parent)
    for name in names[names.index(parent) + 1 :]:
        if maker.by_chance(60):
            _depend_on(maker, name, parent)
            maker.drafts[name]["fanout"] = maker.rng.choice(("map", "map", "map", "reduce"))
            maker.drafts[name]["concurrency"] = maker.rng.randint(1, 4)


def _nested_for_each(maker: Maker) -> None:
    if len(maker.drafts) < 3:
        return
    _for_each(maker)
    names = list(maker.drafts)
    parents = [name for name in names if maker.drafts[name].get("for_each")]
    inner = maker.rng.choice(names[names.index(parents[0]) + 1 : -1] or names[-1:])
    if inner == parents[0]:
        return
    _depend_on(maker, inner, parents[0])
    maker.drafts[inner]["fanout"] = "map"
    _make_list(maker, inner)
    for name in names[names.index(inner) + 1 :]:
        if maker.by_chance(60):
            _depend_on(maker, name, inner, first=True)
            maker.drafts[name]["fanout"] = maker.rng.choice(("map", "map", "reduce"))


def _make_list(maker: Maker, name: str) -> None:
    maker.drafts[name]["for_each"] = True
    maker.behave(name, items=maker.rng.randint(1, 4), strange=maker.rng.choice((0, 0, 0, 15)))


def _depend_on(maker: Maker, name: str, source: str, *, first: bool = False) -> None:
    needs = maker.drafts[name]["depends_on"]
    if any(edge.step == source for need in needs for edge in need.any_of):
        return
    own = (Need((Edge(source),)),)
    maker.drafts[name]["depends_on"] = own + needs if first or maker.by_chance(50) else needs + own


# --- routing


def _retry(maker: Maker) -> None:
    for name in maker.some():
        mode: Literal["fixed", "exponential"] = maker.rng.choice(("fixed", "exponential"))
        on = maker.rng.choice((("transient",), ("transient",), ("transient", "logical")))
        delay_s = maker.rng.choice((0.0, 1.0, 2.0))
        maker.block(name, "on_fail", retry=Retry(maker.rng.randint(1, 3), on, mode, delay_s))
        maker.behave(name, transient=maker.rng.choice((40, 70)))


def _run(maker: Maker) -> None:
    for name in maker.some():
        key = maker.rng.choice(("on_fail", "on_success", "on_finish"))
        if key == "on_finish" and not maker.drafts[name].get("for_each"):
            key = "on_fail"
        targets = tuple(_target(maker, name) for _ in range(maker.rng.choice((1, 1, 2))))
        maker.block(name, key, run=targets)
        if maker.by_chance(15):
            maker.block(
                name,
                key,
                run_js=maker.expression(
                    maker.rng.choice((f"names {maker.one()}", "names nobody", "null", "fails"))
                ),
            )
        _more_failures(maker, name, key)


def _target(maker: Maker, name: str) -> Target:
    others = [other for other in maker.drafts if other != name]
    target = maker.rng.choice(others)
    if maker.by_chance(25):
        maker.drafts[target].update(fanout="map", fanout_explicit=True)
    templates = {"word": maker.expression("name word")} if maker.by_chance(20) else {}
    return Target(target, {"why": name}, templates)


def _on_init(maker: Maker) -> None:
    """Steps that run others before themselves, now and then some that wait for them or run them, too."""
    for name in maker.some():
        targets = [_target(maker, name) for _ in range(maker.rng.choice((1, 1, 2, 3)))]
        if maker.by_chance(30):
            targets[0] = structs.replace(targets[0], alias="made")
        maker.drafts[name]["on_init"] = tuple(targets)
        if maker.by_chance(20):
            source = maker.rng.choice((f"names {maker.one()} {maker.one()}", "names nobody", "null", "fails"))
            maker.drafts[name]["on_init_js"] = maker.expression(source)


def _goto(maker: Maker) -> None:
    for name in maker.some():
        key = maker.rng.choice(("on_fail", "on_fail", "on_success"))
        target = maker.rng.choice([*maker.earlier(name), maker.one()])
        if maker.by_chance(25):
            source = maker.rng.choice((f"name {target}", "name nobody", "null", "undefined", "fails"))
            maker.block(name, key, goto_js=maker.expression(source))
        if maker.by_chance(80):
            maker.block(name, key, goto=target, goto_event=maker.rng.choice((None, None, None, "pr_opened")))
        _more_failures(maker, name, key)


def _transition(maker: Maker) -> None:
    for name in maker.some():
        key = maker.rng.choice(("on_fail", "on_success", "on_success"))
        if maker.drafts[name].get("for_each") and maker.by_chance(40):
            key = "on_finish"
        rules = tuple(
            Transition(maker.condition(name), maker.rng.choice((None, maker.one(), maker.one())))
            for _ in range(maker.rng.randint(1, 2))
        )
        maker.block(name, key, transitions=rules)
        _more_failures(maker, name, key)


def _on_finish(maker: Maker) -> None:
    parents = [name for name, draft in maker.drafts.items() if draft.get("for_each")]
    if not parents:
        _for_each(maker)
        parents = [name for name, draft in maker.drafts.items() if draft.get("for_each")]
    for name in parents:
        if maker.by_chance(70):
            maker.block(name, "on_finish", run=(_target(maker, name),))
        elif maker.by_chance(60):
            maker.block(name, "on_finish", goto=maker.rng.choice([name, maker.one()]))
        else:
            maker.block(name, "on_finish", transitions=(Transition(maker.condition(name), maker.one()),))


def _max_runs(maker: Maker) -> None:
    maker.drafts[maker.one()]["max_runs"] = maker.rng.randint(1, 2)


def _more_failures(maker: Maker, name: str, key: str) -> None:
    if key == "on_fail":
        maker.behave(name, logical=maker.rng.choice((20, 50, 100)))


# --- how calls go, and what happens to the run


def _hold(maker: Maker) -> None:
    for name in maker.some():
        maker.behave(name, parks=maker.rng.choice((30, 60)))
    maker.options["noise"] = maker.rng.choice((0, 0, 5))


def _child(maker: Maker) -> None:
    for name in maker.some():
        maker.behave(name, child=True)


def _mutate(maker: Maker) -> None:
    for name in maker.some(3):
        maker.drafts[name]["effects"] = maker.rng.choice(("mutates", "mutates", "idempotent"))
        maker.behave(name, unknown=maker.rng.choice((0, 20)), half_done=maker.rng.choice((0, 0, 20)))
        if maker.by_chance(20):
            maker.drafts[name]["idempotency_key"] = maker.expression("name key")


def _memory(maker: Maker) -> None:
    for name in maker.some():
        maker.behave(name, remembers=True)
    maker.drafts[maker.one()]["guarantee"] = (maker.expression("remember judged"),)


def _bug(maker: Maker) -> None:
    for name in maker.some(1):
        maker.behave(name, bug=30)


def _fail_fast(maker: Maker) -> None:
    maker.extras["fail_fast"] = True


def _cancel(maker: Maker) -> None:
    first = maker.rng.randint(2, 20)
    again = (first + maker.rng.randint(1, 4),) if maker.by_chance(40) else ()
    maker.options["cancels"] = (first, *again)
    maker.options["goes_on"] = maker.by_chance(40)


def _crash(maker: Maker) -> None:
    turns = sorted(maker.rng.sample(range(1, 40), maker.rng.choice((1, 1, 2, 4))))
    if maker.by_chance(30):
        turns.append(turns[-1] + 1)
        turns.append(turns[-1] + 2)
    moments = ("unwritten", "written", "half_performed", "performed")
    maker.options["crashes"] = tuple(Crash(turn, maker.rng.choice(moments)) for turn in turns)  # type: ignore[arg-type]


_CONSTRUCTS: tuple[tuple[int, Callable[[Maker], None]], ...] = (
    (40, _for_each),
    (35, _nested_for_each),
    (35, _or_group),
    (35, _if),
    (35, _assume),
    (35, _guarantee),
    (35, _fail_if),
    (10, _global_fail_if),
    (20, _failure_conditions),
    (20, _soft_edges),
    (20, _tolerate),
    (15, _always),
    (35, _mutate),
    (38, _retry),
    (38, _run),
    (38, _goto),
    (38, _transition),
    (28, _on_finish),
    (15, _max_runs),
    (32, _on_init),
    (10, _routed_only),
    (10, _filters),
    (10, _request),
    (32, _hold),
    (28, _child),
    (10, _memory),
    (10, _bug),
    (28, _fail_fast),
    (32, _cancel),
    (40, _crash),
)
