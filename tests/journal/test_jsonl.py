"""The journal on disk: whole lines or none, one writer, torn ends mended, damage refused. RES-1, semantics.md."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from gonogo.errors import JournalError, RunLocked
from gonogo.journal import files
from gonogo.journal.blobs import BLOB_BYTES
from gonogo.journal.codec import encode_line
from gonogo.journal.jsonl import JsonlRuns


def written(runs: JsonlRuns, record, count: int = 4) -> Path:
    """A finished run `r` of so many records, and where its journal is."""
    journal = runs.create("r")
    journal.append([record(seq) for seq in range(count)])
    journal.close()
    return runs.folder / "r" / "journal.jsonl"


def test_files_are_private_whatever_the_umask(tmp_path: Path, record) -> None:
    """Journals hold outputs: nobody else reads them."""
    before = os.umask(0)
    try:
        runs = JsonlRuns(tmp_path / "deep" / "runs")
        path = written(runs, record)
        runs.reopen("r").blobs.put("x" * BLOB_BYTES)
    finally:
        os.umask(before)
    home = path.parent
    for folder in (tmp_path / "deep", runs.folder, home, home / "blobs"):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for file in (path, home / "lock", *(home / "blobs").iterdir()):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_the_journal_is_its_lines_and_nothing_else(disk, record) -> None:
    """Reproducible byte for byte (semantics.md 11)."""
    path = written(disk, record)
    assert path.read_bytes() == b"".join(encode_line(record(seq)) for seq in range(4))


def test_RES_1_a_cut_anywhere_in_the_last_line_loses_that_line_alone(disk, record) -> None:
    """RES-1: the torn tail is set aside with one warning and nothing before it is lost."""
    path = written(disk, record)
    whole = path.read_bytes()
    last = len(encode_line(record(3)))
    for kept in range(1, last - 1, 7):
        path.write_bytes(whole[: len(whole) - last + kept])
        (path.parent / "journal.torn").unlink(missing_ok=True)
        seen = disk.read("r")
        assert (seen.records, len(seen.notes)) == ([record(0), record(1), record(2)], 1)
        journal = disk.reopen("r")
        assert (journal.records, len(journal.notes)) == (seen.records, 1)
        journal.append([record(3)])
        journal.close()
        assert path.read_bytes() == whole
        assert (path.parent / "journal.torn").read_bytes() == whole[len(whole) - last :][:kept] + b"\n"


def test_reading_mends_nothing(disk, record) -> None:
    """A reader may look while the writer is in the middle of a line."""
    path = written(disk, record)
    path.write_bytes(path.read_bytes()[:-5])
    before = path.read_bytes()
    disk.read("r")
    assert path.read_bytes() == before
    assert not (path.parent / "journal.torn").exists()


def test_a_last_line_that_lacks_only_its_newline_is_kept(disk, record) -> None:
    """Its checksum says it is whole; dropping it could repeat a call."""
    path = written(disk, record)
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    assert len(disk.read("r").records) == 4
    journal = disk.reopen("r")
    assert (len(journal.records), journal.notes) == (4, ())
    journal.append([record(4)])
    journal.close()
    assert path.read_bytes() == whole + encode_line(record(4))


def test_a_tail_of_zeros_is_torn(disk, record) -> None:
    """What some file systems leave after a power cut."""
    path = written(disk, record)
    path.write_bytes(path.read_bytes() + bytes(4096))
    assert len(disk.reopen("r").records) == 4


@pytest.mark.parametrize("line", [1, 2, 3, 4])
def test_RES_1_damage_within_is_refused_with_the_line_number(disk, record, line: int) -> None:
    """RES-1; a whole last line that was changed is damage too: dropping it could repeat a call."""
    path = written(disk, record)
    lines = path.read_bytes().splitlines(keepends=True)
    lines[line - 1] = lines[line - 1].replace(b'"seq"', b'"sEq"')
    path.write_bytes(b"".join(lines))
    for ask in (disk.read, disk.reopen):
        with pytest.raises(JournalError, match=rf"journal\.jsonl, line {line} is damaged: its checksum"):
            ask("r")


@pytest.mark.parametrize(("line", "cut"), [(1, False), (2, True)])
def test_of_a_damaged_first_line_nobody_is_told_to_cut_the_journal_before_it(
    disk, record, line: int, cut: bool
) -> None:
    """Nothing would be left of the run."""
    path = written(disk, record)
    lines = path.read_bytes().splitlines(keepends=True)
    lines[line - 1] = lines[line - 1].replace(b'"seq"', b'"sEq"')
    path.write_bytes(b"".join(lines))
    with pytest.raises(JournalError) as caught:
        disk.read("r")
    assert str(caught.value.advice).startswith("restore it from a copy")
    assert ("cut it before" in str(caught.value.advice)) == cut


@pytest.mark.parametrize(
    ("order", "message"),
    [
        ([0, 2, 3], "line 2 is damaged: expected record 1, found 2"),
        ([0, 1, 1, 2], "line 3 is damaged: expected record 2, found 1"),
        ([1, 2], "line 1 is damaged: the start of the run is missing"),
        ([0, 1, 0, 1], "line 3 is damaged"),
    ],
)
def test_a_line_taken_out_or_doubled_is_refused(disk, record, order: list[int], message: str) -> None:
    """Whole lines in the wrong order are damage."""
    path = written(disk, record)
    path.write_bytes(b"".join(encode_line(record(seq)) for seq in order))
    with pytest.raises(JournalError, match=message):
        disk.read("r")


@pytest.mark.parametrize("content", [b"", b"x", b'{"seq":0'])
def test_a_run_that_died_before_its_first_record_says_so(disk, record, content: bytes) -> None:
    """There is nothing to resume."""
    written(disk, record).write_bytes(content)
    with pytest.raises(JournalError, match="holds no whole record"):
        disk.read("r")


def test_a_failed_reopen_lets_go_of_the_lock(disk, record) -> None:
    """A damaged journal, restored, can be opened at once."""
    path = written(disk, record)
    whole = path.read_bytes()
    path.write_bytes(b"no journal\n")
    with pytest.raises(JournalError):
        disk.reopen("r")
    path.write_bytes(whole)
    disk.reopen("r").close()


def test_the_second_writer_is_told_who_the_first_is(disk, record) -> None:
    """One writer a run: the message names process, machine and time."""
    first = disk.create("r")
    first.append([record(0)])
    here = rf"process {os.getpid()} on {os.uname().nodename}, since 20\d\d-"
    with pytest.raises(RunLocked, match=here):
        disk.reopen("r")
    assert files.is_held(disk.folder / "r" / "lock")
    first.close()
    assert not files.is_held(disk.folder / "r" / "lock")


def test_a_child_process_does_not_inherit_the_lock(disk, record) -> None:
    """A command that outlives its run doesn't block the resume."""
    journal = disk.create("r")
    journal.append([record(0)])
    with subprocess.Popen(["sleep", "30"], close_fds=False) as child:
        try:
            journal.close()
            assert child.poll() is None
            assert not files.is_held(disk.folder / "r" / "lock")
            disk.reopen("r").close()
        finally:
            child.kill()


def synced(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Counts the syncs of file contents."""
    calls: list[int] = []
    monkeypatch.setattr(files, "sync_data", calls.append)
    return calls


@pytest.mark.parametrize(("durability", "expected"), [("every", 3), ("effects", 2), ("none", 0)])
def test_durability_says_when_the_disk_must_have_it(
    tmp_path: Path, record, monkeypatch: pytest.MonkeyPatch, durability, expected: int
) -> None:
    """architecture.md 2.7: each batch; when asked and at the end; whenever the system likes."""
    journal = JsonlRuns(tmp_path, durability=durability).create("r")
    calls = synced(monkeypatch)
    journal.append([record(0), record(1)])
    journal.append([record(2)], sync=True)
    journal.append([record(3)])
    journal.close()
    assert len(calls) == expected


def test_nothing_new_is_not_synced_again(disk, record, monkeypatch: pytest.MonkeyPatch) -> None:
    """A close right after a synced batch costs nothing."""
    journal = disk.create("r")
    calls = synced(monkeypatch)
    journal.append([record(0)], sync=True)
    journal.close()
    assert len(calls) == 1


def test_a_large_value_is_durable_before_the_record_that_names_it(disk, record, monkeypatch) -> None:
    """A record never points to what a power cut took."""
    journal = disk.create("r")
    order: list[str] = []
    sync_blobs = journal.blobs.sync
    monkeypatch.setattr(journal.blobs, "sync", lambda: (order.append("blobs"), sync_blobs()))
    monkeypatch.setattr(files, "sync_data", lambda descriptor: order.append("journal"))
    kept = journal.blobs.put("x" * BLOB_BYTES)
    journal.append([record(0), record(1, kept)], sync=True)
    assert order == ["blobs", "journal"]
    journal.close()


def test_short_writes_are_continued(disk, record, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system may take a part of a batch at a time."""
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, bytes(data[:11])))
    path = written(disk, record)
    monkeypatch.undo()
    assert len(disk.read("r").records) == 4
    assert path.read_bytes().endswith(b"\n")


def test_a_sync_that_fails_stops_the_journal(disk, record, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a failed sync nobody knows what the disk holds: nothing more is written on top."""

    def fail(descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    journal = disk.create("r")
    monkeypatch.setattr(files, "sync_data", fail)
    with pytest.raises(JournalError, match="Input/output error"):
        journal.append([record(0)], sync=True)
    journal.close()
    assert not files.is_held(disk.folder / "r" / "lock")


FULL = """
import resource, signal, sys
from msgspec.structs import replace
from gonogo.errors import JournalError
from gonogo.journal.jsonl import JsonlRuns
runs = JsonlRuns(sys.argv[1])
first, *others = runs.read("template").records
records = [replace(first, event=replace(first.event, run_id="r")), *others]
journal = runs.create("r")
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
try:
    for one in records:
        journal.append([one])
except JournalError as error:
    print(error.message, "|", error.advice)
"""


@pytest.mark.parametrize("spare", [1, 50, 200])
def test_a_file_that_may_not_grow_is_left_readable(disk, record, spare: int) -> None:
    """ENOSPC and its kin: the error names the file and what to do; what was written before is whole."""
    journal = disk.create("template")
    journal.append([record(seq, run_id="template") for seq in range(9)])
    journal.close()
    limit = sum(len(encode_line(record(seq))) for seq in range(4)) + spare
    command = [sys.executable, "-c", FULL, str(disk.folder), str(limit)]
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    path = disk.folder / "r" / "journal.jsonl"
    assert f"can't write {path}: File too large | what was written before is whole: free some space" in said
    seen = disk.read("r")
    assert seen.records == [record(seq) for seq in range(len(seen.records))]
    assert len(seen.records) >= 4
    assert seen.notes == ()
    disk.reopen("r").close()


@pytest.fixture
def small_disk(tmp_path: Path):
    """A file system of 64 KiB; needs the right to mount."""
    place = tmp_path / "small"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("may not mount a small file system here")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_full_disk_leaves_a_readable_journal(small_disk: Path, record) -> None:
    """Disk full: as above, on a real file system; after space is freed the run goes on."""
    runs = JsonlRuns(small_disk / "runs")
    (small_disk / "ballast").write_bytes(bytes(20_000))
    journal = runs.create("r")
    with pytest.raises(JournalError, match="No space left on device") as caught:
        for seq in range(1000):
            journal.append([record(seq, "x" * 500)] if seq else [record(0)])
    assert "journal.jsonl" in caught.value.message
    count = len(runs.read("r").records)
    assert count > 10
    assert runs.read("r").notes == ()
    (small_disk / "ballast").unlink()
    again = runs.reopen("r")
    again.append([record(count)])
    again.close()
    assert len(runs.read("r").records) == count + 1


def test_a_full_disk_refuses_a_large_value_and_leaves_no_part_of_it(small_disk: Path, record) -> None:
    """The blob is there whole or not at all."""
    runs = JsonlRuns(small_disk / "runs")
    journal = runs.create("r")
    with pytest.raises(JournalError, match="No space left on device"):
        journal.blobs.put("x" * BLOB_BYTES)
    assert list((runs.folder / "r" / "blobs").iterdir()) == []
    journal.close()


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """A file where the folder should be: the same error for root and others."""
    (tmp_path / "runs").write_text("")
    with pytest.raises(JournalError, match="can't create .*runs/r/journal.jsonl") as caught:
        JsonlRuns(tmp_path / "runs").create("r")
    assert caught.value.advice


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_is_named(tmp_path: Path) -> None:
    """Permission denied comes with advice."""
    tmp_path.chmod(0o500)
    with pytest.raises(JournalError, match="Permission denied") as caught:
        JsonlRuns(tmp_path).create("r")
    assert "--runs-dir" in str(caught.value.advice)


def test_a_link_in_the_place_of_a_run_is_not_followed(disk, record, tmp_path: Path) -> None:
    """A symbolic link can't make gonogo read or write elsewhere."""
    written(disk, record)
    elsewhere = tmp_path / "elsewhere"
    (disk.folder / "r").rename(elsewhere)
    (disk.folder / "r").symlink_to(elsewhere)
    for ask in (disk.read, disk.reopen, disk.create):
        with pytest.raises(JournalError, match="not a real folder"):
            ask("r")
    assert disk.ids() == []


@pytest.mark.parametrize("name", ["journal.jsonl", "lock"])
def test_a_link_in_the_place_of_a_file_is_not_followed(disk, record, tmp_path: Path, name: str) -> None:
    """The same for the files of a run."""
    path = written(disk, record).parent / name
    target = tmp_path / "target"
    path.rename(target)
    path.symlink_to(target)
    before = target.read_bytes()
    with pytest.raises(JournalError, match="symbolic link|Too many levels"):
        disk.reopen("r")
    assert target.read_bytes() == before


@pytest.mark.parametrize("name", ["inbox", "blobs"])
def test_a_link_in_the_place_of_a_folder_is_not_followed(disk, record, tmp_path: Path, name: str) -> None:
    """A checked-out folder of runs may be hostile: what lies elsewhere is neither read nor moved."""
    home = written(disk, record).parent
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "settings.json").write_text("{}")
    (home / name).symlink_to(elsewhere)
    large = {"$blob": "sha256:" + "0" * 64}
    ask = disk.inbox("r").take if name == "inbox" else lambda: disk.blobs("r").get(large)
    with pytest.raises(JournalError, match="not a real folder"):
        ask()
    assert [path.name for path in elsewhere.iterdir()] == ["settings.json"]


def test_a_pipe_in_the_place_of_a_journal_does_not_hang(disk, record) -> None:
    """Law 2: no wait without an end."""
    path = written(disk, record)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(JournalError, match="not a regular file"):
        disk.read("r")


WRITER = """
import sys
from msgspec.structs import replace
from gonogo.journal.jsonl import JsonlRuns
from gonogo.journal.records import Record
runs = JsonlRuns(sys.argv[1])
first, *batch = runs.read("template").records
first = replace(first, event=replace(first.event, run_id=sys.argv[2]))
journal = runs.create(sys.argv[2])
journal.append([first])
seq = 1
while True:
    journal.append([Record(seq + n, one.at, one.event) for n, one in enumerate(batch)], sync=True)
    seq += len(batch)
    sys.stdout.write(f"{seq}\\n")
    sys.stdout.flush()
"""


@pytest.mark.slow
def test_RES_1_a_killed_writer_loses_nothing_it_was_promised(disk, record) -> None:
    """RES-1: SIGKILL at 50 moments: every acknowledged record is there, and the journal can always be read."""
    journal = disk.create("template")
    journal.append([record(0, run_id="template"), *(record(seq, "x" * 2000) for seq in range(1, 8))])
    journal.close()
    for number in range(50):
        acknowledged = kill_a_writer(disk, f"k{number}", lines=1 + number * 7 % 23)
        again = disk.reopen(f"k{number}")
        assert len(again.records) >= acknowledged
        assert again.records == disk.read(f"k{number}").records
        again.close()


def kill_a_writer(disk: JsonlRuns, run_id: str, lines: int) -> int:
    """Start a writer, kill it right after so many acknowledgements; the answer is what the last one promised."""
    command = [sys.executable, "-c", WRITER, str(disk.folder), run_id]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        said = [child.stdout.readline() for _ in range(lines)]
        child.send_signal(signal.SIGKILL)
        said += child.stdout.read().splitlines(keepends=True)
    return int([line for line in said if line.endswith(b"\n")][-1])


def test_a_deleted_lock_lets_no_second_writer_in(disk, record) -> None:
    """Somebody tidied up beside a run that goes on."""
    journal = disk.create("r")
    journal.append([record(0)])
    (disk.folder / "r" / "lock").unlink()
    with pytest.raises(RunLocked):
        disk.reopen("r")
    journal.close()
    disk.reopen("r").close()


def test_a_run_whose_journal_was_deleted_goes_no_further(disk, record) -> None:
    """Nothing with consequences may go out that is written nowhere (law 3)."""
    journal = disk.create("r")
    journal.append([record(0)])
    (disk.folder / "r" / "journal.jsonl").unlink()
    with pytest.raises(JournalError, match="was deleted while run r wrote it"):
        journal.append([record(1)], sync=True)
