"""Sealed values of runs that several machines share: rows that only a worker with the key can read.

The key is never in the database: each worker gets it from its environment (`GONOGO_SEAL_KEY`), 32 bytes in base64.
Older keys may follow, separated by commas; they still open what they sealed. Each value is encrypted with AES-256-GCM
under a nonce of its own, and bound to its run and its tag, so that no row can stand in for another.
"""

from __future__ import annotations

import base64
import binascii
import secrets
from typing import TYPE_CHECKING

from gonogo.core.secrecy import SEAL_KEY
from gonogo.journal.sealing import Seals, Unsealable, Unsealed, tag_of

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    from gonogo.journal.postgres.link import Link

__all__ = ["SEAL_KEY", "PostgresSeals", "SealKeys"]

KEY_BYTES = 32
NONCE_BYTES = 12
_MAKE_ONE = f"set {SEAL_KEY} to the same key for every worker; `openssl rand -base64 32` makes one"
_PUT = """
    insert into gonogo_seals (run_id, tag, sealed) values (%(run)s, %(tag)s, %(sealed)b)
    on conflict (run_id, tag) do update set sealed = excluded.sealed
"""


class SealKeys:
    """The keys of this process, newest first. They are read when they are first needed, as is the library."""

    def __init__(self, written: str) -> None:
        self._written = written
        self._trouble: str | None = None
        self._ciphers: list[AESGCM] = []
        self._naming = b""

    def trouble(self) -> str:
        """Why nothing can be sealed or opened here; empty when it can."""
        if self._trouble is None:
            self._trouble = self._read()
        return self._trouble

    def tag(self, data: bytes, run_id: str) -> str:
        """The tag of some data in a run."""
        return tag_of(run_id.encode() + b"\0" + data, self._naming)

    def sealed(self, data: bytes, bound_to: bytes) -> bytes:
        """What only the newest key opens."""
        nonce = secrets.token_bytes(NONCE_BYTES)
        return nonce + self._ciphers[0].encrypt(nonce, data, bound_to)

    def opened(self, sealed: bytes, bound_to: bytes) -> bytes | None:
        """What was sealed; None when no key fits, or something was changed."""
        from cryptography.exceptions import InvalidTag

        for cipher in self._ciphers:
            try:
                return cipher.decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], bound_to)
            except (InvalidTag, ValueError):
                continue
        return None

    def _read(self) -> str:
        if not self._written.strip():
            return f"{SEAL_KEY} isn't set: {_MAKE_ONE}"
        try:
            self._take([_key(part) for part in self._written.split(",")])
        except ValueError:
            return f"{SEAL_KEY} holds no key of {KEY_BYTES} bytes in base64: {_MAKE_ONE}"
        except ImportError:
            return "that needs the package cryptography: pip install 'gonogo[durable]'"
        return ""

    def _take(self, keys: list[bytes]) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF

        def derived(key: bytes, use: bytes) -> bytes:
            return HKDF(SHA256(), KEY_BYTES, None, b"gonogo " + use).derive(key)

        self._ciphers = [AESGCM(derived(key, b"sealing")) for key in keys]
        self._naming = derived(keys[0], b"handles")


def _key(text: str) -> bytes:
    """Raises ValueError."""
    try:
        key = base64.b64decode(text.strip().translate({ord("-"): "+", ord("_"): "/"}), validate=True)
    except binascii.Error as error:
        raise ValueError from error
    if len(key) != KEY_BYTES:
        raise ValueError
    return key


class PostgresSeals(Seals):
    """The sealed values of one run; each is on disk when `seal` returns."""

    def __init__(self, run_id: str, link: Link, keys: SealKeys) -> None:
        self.used = False
        self._run_id = run_id
        self._link = link
        self._keys = keys

    def check(self) -> None:
        """Whether there is a key to seal with. Raises Unsealable."""
        if trouble := self._keys.trouble():
            raise Unsealable(f"in {self._link.address} they are kept encrypted, and {trouble}")

    def seal(self, data: bytes) -> str:
        """Keep it, encrypted. Raises Unsealable, JournalError."""
        self.check()
        self.used = True
        tag = self._keys.tag(data, self._run_id)
        given = {"run": self._run_id, "tag": tag, "sealed": self._keys.sealed(data, self._bound_to(tag))}
        self._link.do(f"write run {self._run_id}", lambda connection: connection.execute(_PUT, given))
        return tag

    def open(self, tag: str) -> bytes:
        """What was sealed. Raises Unsealed, JournalError."""
        if trouble := self._keys.trouble():
            raise Unsealed(trouble)
        query = "select sealed from gonogo_seals where run_id = %s and tag = %s"
        row = self._link.do(
            f"read run {self._run_id}",
            lambda connection: connection.execute(query, [self._run_id, tag], binary=True).fetchone(),
        )
        if row is None:
            raise Unsealed(f"its row in {self._link.address} is gone; restore it from a backup")
        data = self._keys.opened(bytes(row[0]), self._bound_to(tag))
        if data is None:
            raise Unsealed(
                f"{SEAL_KEY} isn't the key that it was sealed with, or its row was changed; give the worker that key, "
                "behind the new one and a comma if there is a new one"
            )
        return data

    def all(self) -> list[bytes]:
        """All that this process can open. Raises JournalError."""
        if self._keys.trouble():
            return []
        query = "select tag, sealed from gonogo_seals where run_id = %s"
        rows = self._link.do(
            f"read run {self._run_id}",
            lambda connection: connection.execute(query, [self._run_id], binary=True).fetchall(),
        )
        opened = (self._keys.opened(bytes(sealed), self._bound_to(tag)) for tag, sealed in rows)
        return [data for data in opened if data is not None]

    def _bound_to(self, tag: str) -> bytes:
        return f"{self._run_id}\0{tag}".encode()
