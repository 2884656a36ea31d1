"""What is promised about waits for people, checked on a simulated run from outside of the core.

quorum     an approval is answered by as many different people as it asks for, or by one no, or by its default
listed     only those who may answer count
reminded   nobody is reminded more often than the plan says
"""

from __future__ import annotations

from fnmatch import fnmatchcase

from gonogo.core import decisions as d
from gonogo.core.plan import Hold, Plan
from gonogo.testing.broken import Broken

Place = tuple[str, str]


class People:
    """Follows the waits for people of one run."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.votes: dict[Place, dict[str, str]] = {}
        self.reminders: dict[Place, int] = {}
        self.handed_over: set[Place] = set()

    def see(self, decision: d.AnyDecision) -> None:
        """Judge one decision."""
        if isinstance(decision, d.Held):
            place = decision.step, decision.scope
            self.votes[place], self.reminders[place] = {}, 0
            self.handed_over.discard(place)
        elif isinstance(decision, d.Voted):
            self._voted(decision)
        elif isinstance(decision, d.HandedOver):
            self.handed_over.add((decision.step, decision.scope))
        elif isinstance(decision, d.Reminded):
            self._reminded(decision)
        elif isinstance(decision, d.Answered):
            self._answered(decision)

    def _terms(self, decision: d.About) -> Hold:
        return self.plan.steps[decision.step].hold or Hold()

    def _may_answer(self, decision: d.Voted | d.Answered) -> bool:
        terms = self._terms(decision)
        later = (decision.step, decision.scope) in self.handed_over and terms.escalate
        approvers = (*terms.approvers, *(later.approvers if later else ()))
        return not terms.approvers or any(fnmatchcase(decision.by.lower(), one.lower()) for one in approvers)

    def _voted(self, decision: d.Voted) -> None:
        place, name = (decision.step, decision.scope), decision.by.lower()
        if not name or name in self.votes[place] or decision.text not in ("yes", "no"):
            raise Broken(
                "quorum", f"{decision.by!r} says {decision.text!r} at {place} after {self.votes[place]}"
            )
        if not self._may_answer(decision):
            raise Broken("listed", f"{decision.by} counts at {place}")
        self.votes[place][name] = decision.text

    def _reminded(self, decision: d.Reminded) -> None:
        place, remind = (decision.step, decision.scope), self._terms(decision).remind
        self.reminders[place] += 1
        if remind is None or self.reminders[place] > remind.max or self.reminders[place] != decision.number:
            raise Broken("reminded", f"reminder {self.reminders[place]} at {place} of {remind}")

    def _answered(self, decision: d.Answered) -> None:
        place, terms = (decision.step, decision.scope), self._terms(decision)
        if not isinstance(decision.output, dict) or decision.by == "default":
            return  # a call in doubt, or the end of a wait
        if terms.quorum is None:
            if not self._may_answer(decision):
                raise Broken("listed", f"{decision.by} answers at {place}")
            return
        words = list(self.votes[place].values())
        later = terms.escalate.quorum if place in self.handed_over and terms.escalate else None
        if "no" not in words and len(words) < (later or terms.quorum):
            raise Broken(
                "quorum", f"{place} is answered by {self.votes[place]}, {terms.quorum} are asked for"
            )
