"""One piece of work beside the main thread: git is waited for while the workflow file is loaded."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Background(Generic[T]):
    """Starts at once; done at once where no thread can be had. A process that ends earlier doesn't wait for it."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._value: list[T] = []
        self._error: BaseException | None = None
        self._thread: threading.Thread | None = threading.Thread(
            target=self._run, name="gonogo-background", daemon=True
        )
        try:
            self._thread.start()
        except RuntimeError:  # the system gives no thread: then one after the other
            self._thread = None
            self._run()

    def result(self) -> T:
        """What the work gave. Raises what it raised."""
        if self._thread is not None:
            self._thread.join()
        if self._error is not None:
            raise self._error
        return self._value[0]

    def _run(self) -> None:
        try:
            self._value.append(self._work())
        except BaseException as error:  # noqa: BLE001 - raised again where the result is asked for
            self._error = error
