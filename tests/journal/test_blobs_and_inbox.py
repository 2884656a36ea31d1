"""The files beside a journal: large values and requests."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from gonogo.core.events import CancelAsked
from gonogo.errors import JournalError
from gonogo.journal.blobs import BLOB_BYTES, FileBlobs, is_reference
from gonogo.journal.inbox import FileInbox
from gonogo.journal.normalise import NotStorable

LARGE = "x" * BLOB_BYTES


@pytest.fixture
def blobs(tmp_path: Path) -> FileBlobs:
    """Large values in `tmp_path/blobs`."""
    return FileBlobs(tmp_path / "blobs")


def test_the_same_content_is_kept_once(blobs: FileBlobs, tmp_path: Path) -> None:
    """Content-addressed: a loop's equal outputs cost one file."""
    assert blobs.put(LARGE) == blobs.put("".join(["x"] * BLOB_BYTES))
    assert len(list((tmp_path / "blobs").iterdir())) == 1


def test_changed_content_is_noticed_when_it_is_read(blobs: FileBlobs, tmp_path: Path) -> None:
    """A flipped byte in a large value is no output."""
    kept = blobs.put(LARGE)
    (path,) = (tmp_path / "blobs").iterdir()
    path.write_bytes(b'"y' + path.read_bytes()[2:])
    with pytest.raises(JournalError, match="was changed after it was written"):
        blobs.get(kept)


@pytest.mark.parametrize("damage", [b"", b"short", b'"' + b"y" * BLOB_BYTES + b'"'])
def test_a_damaged_file_is_written_anew(blobs: FileBlobs, tmp_path: Path, damage: bytes) -> None:
    """What a crash left half-done doesn't stand in for the value."""
    kept = blobs.put(LARGE)
    (path,) = (tmp_path / "blobs").iterdir()
    path.write_bytes(damage)
    blobs.put(LARGE)
    assert blobs.get(kept) == LARGE


def test_a_missing_file_is_named(blobs: FileBlobs, tmp_path: Path) -> None:
    """The error says which file to restore."""
    kept = blobs.put(LARGE)
    (path,) = (tmp_path / "blobs").iterdir()
    path.unlink()
    with pytest.raises(JournalError, match=f"can't read {path}: No such file"):
        blobs.get(kept)


def test_a_preview_ends_between_characters(blobs: FileBlobs) -> None:
    """UNI-2: no half of a character."""
    assert blobs.put("🙂" * BLOB_BYTES)["preview"] == "🙂" * 1000
    assert "\ufffd" not in blobs.put([f"a{'🙂' * BLOB_BYTES}"])["preview"]


def test_what_is_no_json_is_refused_as_always(blobs: FileBlobs) -> None:
    """Large values follow the rules of small ones."""
    with pytest.raises(NotStorable):
        blobs.put([LARGE, {1}])


@pytest.mark.parametrize(
    "value", [{"$blob": 1}, {"$blob": "sha256:zz"}, {"$blob": "md5:" + "0" * 64}, "x", None]
)
def test_only_a_whole_digest_is_a_reference(value: object) -> None:
    """Nothing else leads to a file."""
    assert not is_reference(value)


@pytest.fixture
def inbox(tmp_path: Path) -> FileInbox:
    """Requests in `tmp_path/inbox`."""
    return FileInbox(tmp_path / "inbox")


def test_an_inbox_that_is_not_there_is_empty(inbox: FileInbox) -> None:
    """Most runs get no request at all."""
    assert inbox.take() == []


BAD_REQUESTS = {
    "no json": b"{",
    "another event": b'{"type":"timer_fired","timer":1}',
    "wrong types": b'{"type":"answer_given","step":1,"text":"x"}',
    "too deep": b"[" * 100_000,
    "too large": b'{"type":"cancel_asked","by":"' + b"x" * 2**20 + b'"}',
    "no text": b"\xff\xfe",
}


@pytest.mark.parametrize("content", BAD_REQUESTS.values(), ids=BAD_REQUESTS.keys())
def test_what_is_no_request_is_set_aside_once(inbox: FileInbox, tmp_path: Path, content: bytes) -> None:
    """Hostile files neither stop the run nor get in front of what comes after them."""
    good = inbox.put(CancelAsked(by="ann"))
    (tmp_path / "inbox" / "0.json").write_bytes(content)
    assert [one.request for one in inbox.take()] == [good]
    assert inbox.refused() == ["0.refused"]
    assert [one.request for one in inbox.take()] == [good]


def test_a_link_or_pipe_is_no_request(inbox: FileInbox, tmp_path: Path) -> None:
    """Nothing outside the folder is read, and nothing waited for."""
    outside = tmp_path / "outside.json"
    outside.write_text(json.dumps({"type": "cancel_asked"}))
    inbox.done(inbox.put(CancelAsked()))
    (tmp_path / "inbox" / "1.json").symlink_to(outside)
    os.mkfifo(tmp_path / "inbox" / "2.json")
    assert inbox.take() == []
    assert inbox.refused() == ["1.refused", "2.refused"]
    assert outside.exists()


def test_a_file_that_is_being_written_is_not_seen(inbox: FileInbox, tmp_path: Path) -> None:
    """A request is there whole or not at all."""
    inbox.done(inbox.put(CancelAsked()))
    (tmp_path / "inbox" / ".1.json.77.88").write_bytes(b'{"type":')
    assert inbox.take() == []
    assert inbox.refused() == []


def test_the_order_holds_when_the_clock_is_set_back(inbox: FileInbox, monkeypatch) -> None:
    """A request made later comes later."""
    first = inbox.put(CancelAsked(by="first"))
    monkeypatch.setattr("time.time_ns", lambda: 5)
    second = inbox.put(CancelAsked(by="second"))
    assert [one.request for one in inbox.take()] == [first, second]


def test_the_id_in_a_request_is_its_files(inbox: FileInbox, tmp_path: Path) -> None:
    """Nobody can pass off a request as one that was seen."""
    inbox.done(inbox.put(CancelAsked()))
    (tmp_path / "inbox" / "7.json").write_text('{"type":"cancel_asked","request":"other"}')
    assert [one.request for one in inbox.take()] == ["7"]
