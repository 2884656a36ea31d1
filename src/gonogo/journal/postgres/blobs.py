"""Large values of a run as rows, by the hash of their content; the content is what a local file would have."""

from __future__ import annotations

from typing import Any

import msgspec

from gonogo.core.secrecy import BLOBS
from gonogo.errors import JournalError
from gonogo.journal.blobs import BLOB_BYTES, BLOB_BYTES_MAX, digest_of, reference
from gonogo.journal.normalise import to_json
from gonogo.journal.postgres.link import Link
from gonogo.journal.store import Blobs

__all__ = ["PostgresBlobs"]

_PUT = """
    insert into gonogo_blobs as blob (run_id, digest, data) values (%(run)s, %(digest)s, %(data)b)
    on conflict (run_id, digest) do update set data = excluded.data where blob.data <> excluded.data
"""


class PostgresBlobs(Blobs):
    """Same content, same row; one that was damaged is written anew. Each is on disk when `put` returns."""

    def __init__(self, run_id: str, link: Link) -> None:
        self._run_id = run_id
        self._link = link

    def put(self, value: Any) -> Any:
        """`value` itself, or a reference to it when its JSON is above `BLOB_BYTES`. Raises JournalError,
        NotStorable.
        """
        data = to_json(value, size_bytes_max=BLOB_BYTES_MAX)
        if len(data) <= BLOB_BYTES:
            return value
        kept = reference(value, data)
        given = {"run": self._run_id, "digest": digest_of(kept), "data": data}
        self._link.do(f"write run {self._run_id}", lambda connection: connection.execute(_PUT, given))
        return kept

    def get(self, reference: Any) -> Any:
        """The value behind a reference; any other value as it is.

        Raises:
            JournalError: the blob is missing, or its content isn't what its name says.
        """
        digest = digest_of(reference)
        if digest is None:
            return reference
        from hashlib import sha256

        query = "select data from gonogo_blobs where run_id = %s and digest = %s"
        row = self._link.do(
            f"read run {self._run_id}",
            lambda connection: connection.execute(query, [self._run_id, digest], binary=True).fetchone(),
        )
        where = f"the large value {digest} of run {self._run_id} in {self._link.address}"
        if row is None:
            raise JournalError(
                f"{where} is missing",
                advice=f"set {BLOBS} to the folder that its run had for large values, or restore it from a backup",
            )
        if sha256(row[0]).hexdigest() != digest:
            raise JournalError(
                f"{where} was changed after it was written: its content doesn't match its name",
                advice="restore it from a backup; the run can't be trusted without it",
            )
        return msgspec.json.decode(row[0])

    def digests(self) -> list[str]:
        """The names of all large values of the run, sorted. Raises JournalError."""
        query = "select digest from gonogo_blobs where run_id = %s order by digest"
        rows = self._link.do(
            f"read run {self._run_id}",
            lambda connection: connection.execute(query, [self._run_id]).fetchall(),
        )
        return [digest for (digest,) in rows]
