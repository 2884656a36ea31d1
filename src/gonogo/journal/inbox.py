"""How another process reaches a run: small files that its host takes in, journals as events, and then removes.

`gonogo answer` and `gonogo cancel` work on a run that is running (its host looks here), on one that is parked
and on one that crashed (taken in when it is resumed). A request is never acted on twice: its id goes into the
event (`request`), and a host that crashed before it could remove the file finds the id in the journal.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection
from pathlib import Path

import msgspec

from gonogo.errors import JournalError
from gonogo.journal import files
from gonogo.journal.normalise import NotStorable, normalise_event
from gonogo.journal.store import Inbox, Request

__all__ = ["REQUEST_BYTES_MAX", "FileInbox", "normalise_request"]

REQUEST_BYTES_MAX = 1024 * 1024
"""Bytes of one request; more is refused on both ends."""

_decode: Callable[[bytes], Request] = msgspec.json.Decoder(Request).decode


class FileInbox(Inbox):
    """Requests as files `<folder>/<time>-<random>.json`, taken in by name, which is by time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, request: Request) -> str:
        """Leave a request; it survives a power cut when this returns. The answer is its id.

        Raises:
            JournalError: it is too large, no plain text, or can't be written.
        """
        request_id = f"{self._after_the_last():020d}-{os.urandom(4).hex()}"
        whole = normalise_request(msgspec.structs.replace(request, request=request_id))
        path = self._path(request_id)
        with files.system_errors("write", path):
            files.make_folder(self._folder)
            files.real_folder(self._folder)
            files.atomic_write(path, msgspec.json.encode(whole), durable=True)
            files.sync_folder(self._folder)
        return request_id

    def take(self, seen: Collection[str] = ()) -> list[Request]:
        """Requests in their order, without those the journal has `seen` (these are removed). Raises JournalError."""
        found = []
        for request_id in self._ids():
            if request_id in seen:
                self.done(request_id)
            elif request := self._read(request_id):
                found.append(request)
        return found

    def done(self, request_id: str) -> None:
        """Remove a request, once the journal holds it. Raises JournalError."""
        path = self._path(request_id)
        with files.system_errors("remove", path):
            path.unlink(missing_ok=True)

    def refused(self) -> list[str]:
        """Names of files that were no requests, set aside by `take`, for a warning."""
        return sorted(path.name for path in self._folder.glob("*.refused"))

    def _path(self, request_id: str) -> Path:
        return self._folder / f"{request_id}.json"

    def _ids(self) -> list[str]:
        if not self._folder.exists():
            return []
        with files.system_errors("read", self._folder):
            files.real_folder(self._folder)
            names = os.listdir(self._folder)
        ready = [name for name in names if name.endswith(".json") and not name.startswith(".")]
        return sorted(name.removesuffix(".json") for name in ready)

    def _after_the_last(self) -> int:
        """Nanoseconds of Unix time, yet later than any request that waits, should the clock have been set back."""
        waiting = [int(number) for name in self._ids() if (number := name.partition("-")[0]).isdecimal()]
        return max([time.time_ns(), *(number + 1 for number in waiting)])

    def _read(self, request_id: str) -> Request | None:
        """The request in a file; what is none is set aside, so that it is looked at once only."""
        path = self._path(request_id)
        try:
            if os.lstat(path).st_size > REQUEST_BYTES_MAX:
                raise ValueError("too large")
            request = _decode(files.read_file(path))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, RecursionError):
            with files.system_errors("set aside", path):
                path.rename(path.with_suffix(".refused"))
            return None
        return msgspec.structs.replace(request, request=request_id)


def normalise_request(request: Request) -> Request:
    """The request as plain text, not too large.

    Raises:
        JournalError: it is neither.
    """
    try:
        data = msgspec.json.encode(normalise_event(request))
    except NotStorable as error:
        raise JournalError(f"the request can't be sent: {error}") from error
    if len(data) > REQUEST_BYTES_MAX:
        raise JournalError(
            f"the request is {len(data)} bytes, more than the limit of {REQUEST_BYTES_MAX}",
            advice="put the text in a file and answer with its name",
        )
    return _decode(data)
