"""The outside world of a simulated run: it counts what mutating calls really did, and people who answer live in it."""

from __future__ import annotations

import random
from collections import Counter

from gonogo.core import lifecycle as life
from gonogo.core.commands import StartCall
from gonogo.core.events import AnswerGiven, CallDone
from gonogo.core.state import Node, State
from gonogo.core.turn import intent
from gonogo.testing.behaviours import Behaviour, Reply, reply_to
from gonogo.testing.scenarios import Scenario

PEOPLE = ("ann", "ann", "Ann", "bob", "ben", "cem", "")
"""Who answers approvals."""


class Outside:
    """What outlives a crash of the host.

    `acted` counts, by intent, how often a mutating call changed the world; `allowed` how often people said "again".
    """

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.acted: Counter[str] = Counter()
        self.allowed: Counter[str] = Counter()
        self.children_ended: set[str] = set()
        self.answers = 0

    def reply(self, command: StartCall) -> Reply:
        """What the call will come to, if nobody stops it. In safe mode a host makes no mutating call."""
        if self.scenario.safe_mode and command.effects == "mutates":
            stub = CallDone(call=command.call, output={"safe_mode": True}, effect="none")
            return Reply(stub, False, 0.25)
        ended = command.intent in self.children_ended
        return reply_to(self.scenario.seed, self.behaviour(command.step), command, child_ended=ended)

    def behaviour(self, step: str) -> Behaviour:
        """How a step's calls go; one that came later is plain."""
        return self.scenario.behaviours.get(step, Behaviour())

    def act(self, command: StartCall) -> None:
        """A call had its effect."""
        if command.effects == "mutates":
            self.acted[command.intent] += 1

    def answer(self, state: State, rng: random.Random) -> AnswerGiven | None:
        """What a person says to one of the steps that wait; None when only runs of their own are waited for.

        Some answers are to a step that waits for nothing, some are words a step in doubt doesn't know.
        """
        self.answers += 1
        waiting = [node for node in state.all_nodes() if is_waiting(node) and child_of(node) is None]
        if not waiting:
            return None
        node = rng.choice(waiting)
        if node.hold is not None and "choices" in node.hold.details:
            word = rng.choice(("retry", "accept", "fail", "Fail ", "perhaps"))
            return AnswerGiven(step=node.step, scope=node.scope, text=word, by="ann")
        if node.hold is not None and (node.hold.quorum is not None or node.hold.approvers):
            word, by = rng.choice(("yes", "yes", "yes", "no", "Yes ", "perhaps")), rng.choice(PEOPLE)
            return AnswerGiven(step=node.step, scope=node.scope, text=word, by=by)
        if node.status == life.HOLDING:
            return AnswerGiven(step=node.step, scope=node.scope, text=rng.choice(("yes", "no", "")), by="ann")
        word = rng.choice(("again", "done", "failed", "Done ", "perhaps"))
        if word == "failed" and self.answers % 2:
            word = "unknown"
        if word == "again":
            self.allowed[intent(state.run_id, node.scope, node.step, node.execution)] += 1
        return AnswerGiven(step=node.step, scope=node.scope, text=word, by="ann")

    def wrong_answer(self, state: State, rng: random.Random) -> AnswerGiven:
        """An answer to a step that may not wait at all; never "again"."""
        names = [*state.nodes, "nobody"]
        return AnswerGiven(step=rng.choice(names), text=rng.choice(("yes", "done", "failed")), by="bob")

    def end_a_child(self, state: State, rng: random.Random) -> bool:
        """A run that some step waits for comes to its end; False when there is none."""
        found = [child for node in state.all_nodes() if is_waiting(node) and (child := child_of(node))]
        if found:
            self.answers += 1
            self.children_ended.add(rng.choice(found))
        return bool(found)


def is_waiting(node: Node) -> bool:
    """True when a person must act."""
    return node.status in (life.HOLDING, life.IN_DOUBT)


def child_of(node: Node) -> str | None:
    """The run that a step waits for."""
    return node.hold.details.get("child") if node.hold is not None else None
