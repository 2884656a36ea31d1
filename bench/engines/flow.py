"""A Temporal workflow of steps that do nothing. A module of its own: Temporal loads it once more for itself."""

from __future__ import annotations

from datetime import timedelta

from temporalio import activity, workflow

LONGEST = timedelta(seconds=30)


@activity.defn(name="step")
async def step() -> int:
    """Nothing."""
    return 1


@workflow.defn(name="chain")
class Chain:
    """So many steps one after the other."""

    @workflow.run
    async def run(self, length: int, local: bool) -> None:
        """Each by the worker that has this, or by any."""
        for _ in range(length):
            if local:
                await workflow.execute_local_activity(step, start_to_close_timeout=LONGEST)
            else:
                await workflow.execute_activity(step, start_to_close_timeout=LONGEST)
