"""Keeps a store clean while a worker runs."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, NoReturn

from gonogo.errors import JournalError

if TYPE_CHECKING:
    from gonogo.journal.postgres.address import Address

EVERY_S = 60.0

log = logging.getLogger("gonogo.worker")


async def sweeping(address: Address) -> NoReturn:
    """Delete what belongs to no run any more, again and again. What goes wrong is told, and tried again."""
    from gonogo.journal.postgres.sweep import sweep

    while True:
        await asyncio.sleep(EVERY_S)
        try:
            await asyncio.to_thread(sweep, address)
        except JournalError as problem:
            log.warning("%s", problem.message)
