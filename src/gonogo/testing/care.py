"""Random plans, the part about fault management: what is critical, kept back, undone, told of, and what is spent."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from msgspec import structs

from gonogo.core.plan import Budget, Edge, Handover, Hold, Need, Reminder, Retry
from gonogo.testing.behaviours import Behaviour
from gonogo.testing.maker import Maker


def _criticality(maker: Maker) -> None:
    for name in maker.some(3):
        maker.drafts[name]["criticality"] = maker.rng.choice(("external", "internal", "policy", "info"))


def _suppression(maker: Maker) -> None:
    """A critical step that fails, and steps that act behind it, whatever the edges let pass."""
    names = list(maker.drafts)
    guard = maker.rng.choice(names[: max(1, len(names) // 2)])
    maker.drafts[guard]["criticality"] = maker.rng.choice(("external", "internal", "internal", "policy"))
    maker.behave(guard, logical=maker.rng.choice((30, 60, 100)))
    for name in names[names.index(guard) + 1 :]:
        if maker.by_chance(50):
            _soften(maker, name, guard)
        if maker.by_chance(60):
            maker.drafts[name]["effects"] = "mutates"
            maker.drafts[name]["criticality"] = maker.rng.choice(("external", "info"))


def _soften(maker: Maker, name: str, source: str) -> None:
    needs = maker.drafts[name]["depends_on"]
    kept = tuple(need for need in needs if all(edge.step != source for edge in need.any_of))
    maker.drafts[name]["depends_on"] = (*kept, Need((Edge(source, "continue"),)))


def _budget(maker: Maker) -> None:
    what = maker.rng.choice(("calls", "calls", "retries", "time_s", "tokens", "money"))
    allowed: dict[str, Any] = {
        "calls": maker.rng.randint(0, 12),
        "retries": maker.rng.randint(0, 2),
        "time_s": maker.rng.choice((0.5, 2.0, 6.0)),
        "tokens": maker.rng.randint(0, 30),
        "money": maker.rng.choice((0.0, 0.2, 1.0)),
    }
    maker.extras["budget"] = Budget(**{what: allowed[what]})
    for name in maker.some(3):
        maker.behave(name, tokens=maker.rng.randint(1, 10))


def _loop_budget(maker: Maker) -> None:
    for name in maker.some():
        maker.drafts[name]["loop_budget"] = maker.rng.randint(0, 3)


def _compensation(maker: Maker) -> None:
    """Steps that undo others; they fail, hold and leave doubts like any."""
    for number, name in enumerate(maker.some(3)):
        undoer = f"u{number}"
        maker.drafts[undoer] = {
            "name": undoer,
            "type": "noop",
            "depends_on": (),
            "effects": maker.rng.choice(("mutates", "idempotent")),
        }
        chance = maker.rng.choice((0, 0, 40))
        maker.behaviours[undoer] = Behaviour(transient=chance, parks=maker.rng.choice((0, 0, 0, 30)))
        if maker.by_chance(40):
            maker.block(undoer, "on_fail", retry=Retry(maker.rng.randint(1, 2)))
        maker.drafts[name].update(compensate=undoer, effects="mutates")
    if maker.by_chance(50):
        maker.extras["compensate_on"] = ("no_go", "halted", "cancelled")
    last = list(maker.behaviours)[-1] if maker.by_chance(20) else maker.one()
    maker.behave(last, logical=maker.rng.choice((50, 100)))


def _escalate(maker: Maker) -> None:
    for name in maker.some():
        others = [other for other in maker.drafts if other != name]
        maker.block(name, "on_fail", escalate=maker.rng.choice(others))
        maker.behave(name, logical=maker.rng.choice((20, 60)))


def _exhausted(maker: Maker) -> None:
    for name, draft in maker.drafts.items():
        retry = draft.get("on_fail", {}).get("retry")
        if retry is None or maker.by_chance(30):
            continue
        how = maker.rng.choice(("continue", "hold", "route", "fail"))
        target = maker.one() if how == "route" else None
        maker.block(name, "on_fail", retry=structs.replace(retry, exhausted=how, exhausted_goto=target))
        maker.behaviours[name] = replace(maker.behaviours[name], transient=70)


def _one_shot(maker: Maker) -> None:
    maker.drafts[maker.one()]["tags"] = ("one_shot",)


def _safe_mode(maker: Maker) -> None:
    maker.options["safe_mode"] = True


def _safety(maker: Maker) -> None:
    maker.extras["safety"] = maker.rng.choice(("off", "strict"))


def approve(maker: Maker, rng: random.Random) -> None:
    """Terms for waits for people: who may answer, how many must, who is reminded, who may later. Drawn apart from all
    else, so that what other plans are made of stays the same.
    """
    for name, behaviour in maker.behaviours.items():
        if behaviour.parks and rng.randrange(100) < 60:
            others = [other for other in maker.drafts if other != name]
            maker.drafts[name]["hold"] = Hold(
                approvers=rng.choice(((), (), ("ann",), ("ann", "b*"), ("*",))),
                quorum=rng.choice((None, 1, 2, 2, 3)),
                remind=Reminder(rng.choice(others), rng.choice((0.5, 2.0)), rng.randint(0, 3))
                if rng.randrange(2)
                else None,
                escalate=_handover(others, rng) if rng.randrange(100) < 40 else None,
            )


def _handover(others: list[str], rng: random.Random) -> Handover:
    return Handover(
        rng.choice((0.5, 3.0)),
        rng.choice((None, rng.choice(others))),
        rng.choice(((), ("cem",))),
        rng.choice((None, 1)),
    )


def gate(maker: Maker, rng: random.Random) -> None:
    """Calls that go through gates. Drawn apart, so that the scenarios of known seeds stay what they are without."""
    if rng.randrange(100) < 30:
        names = list(maker.behaviours)
        for name in rng.sample(names, min(len(names), rng.randint(1, 4))):
            maker.behave(name, attempts=rng.choice((40, 80, 100)))


CONSTRUCTS: tuple[tuple[int, Callable[[Maker], None]], ...] = (
    (25, _criticality),
    (28, _suppression),
    (28, _budget),
    (10, _loop_budget),
    (28, _compensation),
    (28, _escalate),
    (25, _exhausted),
    (10, _one_shot),
    (20, _safe_mode),
    (12, _safety),
)
