"""What performs the calls of one run in this process: sandbox, templates, gates, tools, and the calls in flight.

The loop of a run has one. A worker that performs calls for a run whose loop is on another machine has one, too: it
knows the same state, and what its calls come to goes where `post` takes it.
"""

from __future__ import annotations

from collections.abc import Callable

from gonogo.core.commands import StartCall
from gonogo.core.events import AnyEvent
from gonogo.core.plan import Step
from gonogo.core.state import State
from gonogo.expressions.request import Limits
from gonogo.expressions.sandbox import Sandbox
from gonogo.hosts.attempts import Attempts
from gonogo.hosts.base import Surroundings
from gonogo.hosts.beneath import doubtful_child
from gonogo.hosts.calls import Calls
from gonogo.hosts.clock import RunClock
from gonogo.hosts.context import CallContext, RunChild
from gonogo.hosts.evaluation import Evaluations
from gonogo.hosts.gates import Gates
from gonogo.hosts.outcomes import Outcomes
from gonogo.hosts.prepare import Preparation
from gonogo.hosts.schemas import Schemas
from gonogo.hosts.slots import Slots
from gonogo.hosts.sure import Sure
from gonogo.hosts.templates import Templates
from gonogo.hosts.tools import StepTools
from gonogo.hosts.vault import Vault
from gonogo.journal.store import Blobs
from gonogo.provider import Context


class Workplace:
    """Made and used within one asyncio event loop. `evaluations.close` and `calls.close` are its owner's to call."""

    def __init__(
        self,
        state: State,
        blobs: Blobs,
        vault: Vault,
        around: Surroundings,
        clock: RunClock,
        child: RunChild,
        *,
        post: Callable[[AnyEvent], None],
        fail: Callable[[BaseException], None],
        attempts: Attempts | None = None,
        sure: Sure | None = None,
    ) -> None:
        """`attempts`: where the gates of its calls write theirs, and ask; without it they tell of them with the call's
        end. `sure`: asked right before a call that mutates begins (`sure.py`).
        """
        self._state = state
        self._around = around
        self._child = child
        self.templates = Templates()
        self.evaluations = Evaluations(self._open_sandbox, self.templates, around.redactor, Limits())
        self._gates = Gates(state, around, self.evaluations, attempts, sure)
        bytes_max = state.graph.plan.limits.output_bytes_max
        outcomes = Outcomes(around.redactor, vault, blobs, Schemas(), bytes_max)
        preparation = Preparation(
            state, around.table, self.templates, around.environment, around.overlay, around.redactor, vault
        )
        self._tools = StepTools(state, preparation, outcomes, self._context)
        self.calls = Calls(
            state,
            preparation,
            outcomes,
            clock,
            self._context,
            attempts.slots if attempts is not None else Slots(None),
            post=post,
            fail=fail,
            may_call=attempts.may_call if attempts is not None and around.above is not None else None,
            sure=sure,
            doubtful_child=lambda command: doubtful_child(around.runs, state.run_id, command),
        )

    def _open_sandbox(self) -> Sandbox:
        return self._around.new_sandbox(self._state.started_at_ms)

    def _context(self, command: StartCall, step: Step, timeout_s: float | None) -> Context:
        return CallContext(
            self._state.run_id,
            command,
            step,
            self._around,
            self.evaluations,
            self.templates,
            self._child,
            self._gates,
            self._tools,
            timeout_s,
        )
