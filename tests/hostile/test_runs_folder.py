"""A runs folder that somebody else prepared, or that was damaged: told, never trusted, never followed."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from tests.cli.conftest import Gonogo
from tests.hostile.world import adopting, ended, start, workflow

ASKING = """
a: {type: command, exec: "echo a >> effects.txt"}
ask: {type: human-input, prompt: "Ship?", depends_on: a}
b: {type: command, depends_on: ask, exec: "echo b >> effects.txt"}
"""
RUNS = Path(".gonogo") / "runs"


@pytest.fixture
def held(gonogo: Gonogo, tmp_path: Path) -> Path:
    """The folder of a run that waits for a person."""
    workflow(tmp_path, ASKING)
    assert gonogo("run").code == 3
    [home] = (tmp_path / RUNS).iterdir()
    return home


@pytest.mark.parametrize("verb", ["show", "resume", "cancel"])
@pytest.mark.parametrize(
    "name", ["", ".", "..", "../x", "a/b", "x" * 300, "\x01", "é", "%2e%2e", "last/../.."]
)
def test_a_run_that_is_no_run_is_a_usage_error(gonogo: Gonogo, held: Path, verb: str, name: str) -> None:
    """No path is made of it; an empty name, as an unset variable gives it, isn't the only run."""
    assert held.exists()
    assert gonogo(verb, "--", name).code == 2


def _flipped(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


def _without(data: bytes, number: int) -> bytes:
    lines = data.splitlines(keepends=True)
    return b"".join(lines[:number] + lines[number + 1 :])


BAD = {
    "a flipped bit": _flipped,
    "a zero byte": lambda data: data[:60] + b"\0" + data[61:],
    "nothing": lambda data: b"",
    "noise": lambda data: bytes(range(256)) * 20,
    "half a line": lambda data: data[:100],
    "a line less": lambda data: _without(data, 1),
    "no first line": lambda data: _without(data, 0),
    "something else": lambda data: b'{"a": 1}\n',
    "a list": lambda data: b"[]\n",
    "a depth": lambda data: data + b"[" * 200_000 + b"\n",
}


@pytest.mark.parametrize("case", BAD)
def test_a_damaged_journal_is_refused_by_every_verb(gonogo: Gonogo, held: Path, case: str) -> None:
    """With an exit code of 2; the list of runs tells which one it is."""
    path = held / "journal.jsonl"
    path.write_bytes(BAD[case](path.read_bytes()))
    for verb in (["show"], ["resume"], ["cancel"]):
        ended = gonogo(*verb, held.name)
        assert (ended.code, "gonogo: " in ended.err) == (2, True)
    assert gonogo("runs").code == 0


@pytest.mark.parametrize("more", [b"", b"\0" * 4096, b"[" * 200_000, b'{"seq":'])
def test_a_torn_end_is_mended(gonogo: Gonogo, held: Path, more: bytes) -> None:
    """What a power cut leaves behind the last whole line."""
    path = held / "journal.jsonl"
    path.write_bytes(path.read_bytes() + more)
    assert gonogo("show", held.name).code == 0
    assert gonogo("answer", held.name, "ask", "yes").code == 0
    assert Path("effects.txt").read_text() == "a\nb\n"


@pytest.mark.parametrize("seed", range(12))
def test_a_journal_with_forged_values_never_ends_in_a_traceback(
    gonogo: Gonogo, held: Path, seed: int
) -> None:
    """Checksums are no signatures: who writes the file can make them fit. Refused, or ended somehow."""
    path = held / "journal.jsonl"
    records = [json.loads(line) for line in path.read_bytes().splitlines()]
    chance = random.Random(seed)
    for _ in range(1 + seed % 2):
        _forge(chance.choice(records), chance)
    path.write_bytes(b"".join(_sealed(record) for record in records))
    for verb in ("show", "resume"):
        ended = gonogo(verb, held.name)
        assert ended.code in (0, 1, 2, 3)
        assert "Traceback" not in ended.err


@pytest.mark.parametrize("time", [1e308, -1e300, 1e15, -1])
def test_a_time_that_no_calendar_has_hides_no_other_run(gonogo: Gonogo, held: Path, time: float) -> None:
    """Of its records, its timers or its start: the list goes on, in every format."""
    records = [json.loads(line) for line in (held / "journal.jsonl").read_bytes().splitlines()]
    for name, forge in {
        "record": lambda first, last: last.update(at=time),
        "event": lambda first, last: last["event"].update(at=time),
        "start": lambda first, last: first["event"].update(
            started_at_ms=int(max(min(time, 2**62), -(2**62)))
        ),
        "timer": lambda first, last: last["decisions"][-1].update(wake_s=time),
        "question": lambda first, last: last["decisions"][-1].update(
            waits=[{"place": "ask", "prompt": "?", "since_s": time, "until_s": time}]
        ),
    }.items():
        forged = json.loads(json.dumps(records))
        forge(forged[0], forged[-1])
        (held.parent / name).mkdir()
        (held.parent / name / "journal.jsonl").write_bytes(b"".join(_sealed(record) for record in forged))
    for more in ([], ["--waiting"], ["--format", "json"]):
        ended = gonogo("runs", *more)
        assert (ended.code, held.name in ended.out) == (0, True)


@pytest.mark.parametrize("names", [5, True, {"a": 1}, "PATH", [["PATH"], {}, None, 5]])
def test_forged_names_of_variables_are_nobodys(gonogo: Gonogo, held: Path, names: Any) -> None:
    """Which variables were given to a run is read from its first record."""
    path = held / "journal.jsonl"
    records = [json.loads(line) for line in path.read_bytes().splitlines()]
    records[0]["event"]["context"] = {"$overlay": names}
    path.write_bytes(b"".join(_sealed(record) for record in records))
    assert gonogo("answer", held.name, "ask", "yes").code == 0


def _sealed(record: dict[str, Any]) -> bytes:
    record.pop("crc", None)
    body = json.dumps(record, separators=(",", ":")).encode()[:-1]
    return b'%s,"crc":"%08x"}\n' % (body, crc32(body))


def _forge(value: Any, chance: random.Random) -> None:
    while isinstance(value, dict | list) and value:
        key = chance.choice(list(value)) if isinstance(value, dict) else chance.randrange(len(value))
        if not isinstance(value[key], dict | list) or chance.random() < 0.3:
            value[key] = chance.choice([None, -1, 10**9, "x", [], {}, True, 1e308])
            return
        value = value[key]


def test_links_and_pipes_in_the_place_of_files_are_not_followed(
    gonogo: Gonogo, held: Path, tmp_path: Path
) -> None:
    """A journal, a folder of runs, an inbox: prepared in a pull request."""
    (tmp_path / "elsewhere").mkdir()
    for name, make in {
        "link": lambda path: path.symlink_to("/etc/passwd"),
        "pipe": os.mkfifo,
        "device": lambda path: path.symlink_to("/dev/zero"),
    }.items():
        home = held.parent / name
        home.mkdir()
        make(home / "journal.jsonl")
        assert gonogo("show", name).code == 2
        assert gonogo("resume", name).code == 2
    assert gonogo("runs").code == 0
    Path("linked").symlink_to(tmp_path / "elsewhere")
    assert gonogo("run", "--runs-dir", "linked").code in (2, 3)
    Path("dangling").symlink_to("/nonexistent/runs")
    assert gonogo("run", "--runs-dir", "dangling").code == 2


def test_an_inbox_with_anything_in_it_is_no_obstacle(gonogo: Gonogo, held: Path) -> None:
    """Noise, depth, a pipe, a link to a device, a folder."""
    inbox = held / "inbox"
    inbox.mkdir(exist_ok=True)
    for name, data in {"1": b"noise", "2": b"{}", "3": b"[" * 100_000, "4": b"\xff\xfe"}.items():
        (inbox / f"{name}.json").write_bytes(data)
    os.mkfifo(inbox / "5.json")
    (inbox / "6.json").symlink_to("/dev/zero")
    (inbox / "7.json").mkdir()
    ended = gonogo("answer", held.name, "ask", "yes")
    assert ended.code in (0, 2)
    assert "Traceback" not in ended.err


def test_folders_that_are_no_runs_are_passed_over(gonogo: Gonogo, held: Path) -> None:
    """A copy with a space in its name; a name with terminal codes."""
    for name in ("copy of it", "\x1b[31mred", ".hidden"):
        (held.parent / name).mkdir()
        (held.parent / name / "journal.jsonl").write_bytes((held / "journal.jsonl").read_bytes())
    listed = gonogo("runs")
    assert listed.code == 0
    assert "\x1b" not in listed.out
    assert gonogo("show", "last").code == 0


def test_of_several_processes_on_one_run_one_goes_on(held: Path, tmp_path: Path) -> None:
    """Three answers at once: the steps behind run once, nobody ends in an error of ours."""
    with adopting() as orphans:
        running = [start("answer", held.name, "ask", "yes", cwd=tmp_path) for _ in range(3)]
        codes = [ended(one, orphans).code for one in running]
    assert set(codes) <= {0, 2}
    assert 0 in codes
    assert (tmp_path / "effects.txt").read_text() == "a\nb\n"


def test_a_run_that_is_over_stays_so(gonogo: Gonogo, held: Path) -> None:
    """Whatever is asked of it."""
    assert gonogo("answer", held.name, "ask", "yes").code == 0
    before = (held / "journal.jsonl").read_bytes()
    for arguments in (["cancel", held.name], ["answer", held.name, "ask", "no"], ["resume", held.name]):
        assert gonogo(*arguments).code in (0, 2)
    assert (held / "journal.jsonl").read_bytes() == before
