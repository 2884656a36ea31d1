"""Loads the libraries of the vendors that a step may ask, before any of its time is counted by the gate."""

from __future__ import annotations

from importlib import import_module

import anyio

from gonogo.providers.ai.config import BY_LIBRARY, Config
from gonogo.providers.ai.ways import ways_of

ADAPTER = "gonogo.providers.ai.library"
_PARTS = ("pydantic_ai.models", "pydantic_ai.providers")


async def load(config: Config) -> None:
    """In a thread: it takes seconds. Raises ImportError where the extra `ai` isn't installed."""
    vendors = sorted({way.vendor for way in ways_of(config) if way.vendor in BY_LIBRARY})
    for name in (ADAPTER, *(f"{part}.{vendor}" for part in _PARTS for vendor in vendors)) if vendors else ():
        await anyio.to_thread.run_sync(import_module, name, abandon_on_cancel=True)
