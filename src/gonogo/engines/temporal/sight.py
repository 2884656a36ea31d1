"""Whether Temporal answers: told once when it doesn't any more, and once when it does again."""

from __future__ import annotations

import asyncio
import logging
import time
from datetime import timedelta
from typing import NoReturn, Protocol

from temporalio.service import RPCError

LOOK_S = 2.0
ANSWER = timedelta(seconds=3)

log = logging.getLogger("gonogo.worker")


class Service(Protocol):
    """The side of a client that asks."""

    async def check_health(self, *, timeout: timedelta | None = None) -> bool:
        """Whether the server is well. Raises RPCError."""
        ...


async def watch(service: Service, address: str) -> NoReturn:
    """Look again and again."""
    away_since_s: float | None = None
    while True:
        await asyncio.sleep(LOOK_S)
        answers = await _answers(service)
        if not answers and away_since_s is None:
            away_since_s = time.monotonic()
            log.warning("Temporal at %s doesn't answer; what is under way goes on", address)
        elif answers and away_since_s is not None:
            log.warning("Temporal at %s answers again after %.0f s", address, time.monotonic() - away_since_s)
            away_since_s = None


async def _answers(service: Service) -> bool:
    try:
        return await service.check_health(timeout=ANSWER)
    except RPCError:
        return False
