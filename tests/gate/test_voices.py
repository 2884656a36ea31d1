"""Whom an opening binds of the processes that share a breaker (B37)."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gonogo.gate import BreakerPolicy, FileStore, Gate, Policy, Target
from gonogo.gate import breaker as b
from gonogo.gate.breakers import Breakers
from gonogo.gate.decisions import BreakerOverruled
from gonogo.gate.processes import Processes
from gonogo.gate.signals import Classification
from gonogo.gate.voices import VOICES_MAX, Voice, Writer, heard

BROKEN = Classification("server-5xx", "test")
FIRM = BreakerPolicy(failures=2, jitter=0.0, cooldown_s=30, calls_min=1000)
STRICT = BreakerPolicy(failures=2, jitter=0.0, cooldown_s=30, calls_min=1000, shared="strict")
A, B, C, D = (Writer(f"here:{number}", "1", "here") for number in range(4))


def fails(record: b.BreakerRecord, *writers: Writer, at_s: float = 0.0) -> b.BreakerRecord:
    """A failure of each."""
    for writer in writers:
        record = b.failed(FIRM, record, at_s, writer.name, "network", me=writer)
    return record


def serves(record: b.BreakerRecord, *writers: Writer, at_s: float = 0.0) -> b.BreakerRecord:
    """A success of each."""
    for writer in writers:
        record = b.succeeded(FIRM, record, at_s, writer.name, 0.1, writer)
    return record


def ask(
    record: b.BreakerRecord,
    me: Writer,
    at_s: float = 1.0,
    policy: BreakerPolicy = FIRM,
    gone: tuple[Writer, ...] = (),
) -> b.Admission:
    """What a process is told."""
    return b.admit(policy, record, at_s, me.name, 10.0, me=me, gone=gone)[1]


def test_B37_one_sick_process_shuts_nobody_else_out() -> None:
    """Others go on, and the record says why; the sick one leaves it alone."""
    record = fails(serves(b.CLOSED, B, C), A, A)
    assert record.state == "open"
    assert (ask(record, A).admitted, ask(record, A).reason) == (False, "open: this process saw it fail")
    for other in (B, C, D):
        assert ask(record, other).admitted
        assert not ask(record, other).probe
    assert ask(record, B).advice == "open by here:0, but 1 of 3 processes saw it fail"


def test_B37_a_process_that_never_called_goes_beside_a_sick_one_that_runs() -> None:
    """One of two isn't most of them."""
    assert ask(fails(b.CLOSED, A, A), B).advice == "open by here:0, but 1 of 2 processes saw it fail"


def test_B37_the_first_failure_of_its_own_binds_a_process() -> None:
    """It has seen for itself."""
    record = fails(serves(b.CLOSED, B, C, D), A, A)
    record = fails(record, B, at_s=2.0)
    assert ask(record, B, 3.0).reason == "open by here:0: this process saw it fail"
    assert ask(record, C, 3.0).admitted


def test_B37_most_of_those_that_call_it_bind_the_rest() -> None:
    """Two of three; a policy may want more, or one's own failure alone."""
    record = fails(b.CLOSED, A, B)
    assert ask(record, C).reason == "open by here:1: 2 of 3 processes saw it fail"
    eager, never = (BreakerPolicy(quorum=quorum) for quorum in (0.7, 1.0))
    assert ask(record, C, policy=eager).admitted
    assert ask(record, C, policy=never).admitted


def test_B37_what_an_ended_process_left_open_binds_who_calls_alone() -> None:
    """Short runs, one after another: the file is all that is known."""
    record = fails(b.CLOSED, A, A)
    assert ask(record, B, gone=(A,)).reason == "open by here:0: no other process calls it now"
    assert ask(record, B, at_s=1.0).admitted


def test_B37_an_ended_process_has_no_vote() -> None:
    """Whoever runs and is served well says more than who has gone."""
    record = fails(serves(b.CLOSED, B), A, A)
    assert ask(record, C, gone=(A,)).advice == "open by here:0, but none of 2 processes saw it fail"


def test_B37_who_has_been_silent_for_the_window_is_not_counted() -> None:
    """A machine elsewhere can't be asked whether it still runs."""
    record = b.isolated(fails(b.CLOSED, A, A), 0, "", b.Isolation(0, "", ""))
    late = BreakerPolicy(failures=2, window_s=10)
    assert ask(record, B, at_s=5.0, policy=late).admitted
    assert ask(record, B, at_s=11.0, policy=late).reason == "open by here:0: no other process calls it now"


def test_B37_strict_binds_all() -> None:
    """Any opening refuses."""
    record = fails(serves(b.CLOSED, B, C), A, A)
    assert ask(record, B, policy=STRICT).reason == "open by here:0 for all"


def test_B37_what_the_far_side_says_binds_all() -> None:
    """A pause that it asks for, a refused credential."""
    assert ask(b.resting(serves(b.CLOSED, B), 0, A.name, 10), B).reason == "resting"
    out = b.isolated(serves(b.CLOSED, B), 0, A.name, b.Isolation(10, "auth", "the gate"))
    assert ask(out, B).reason == "isolated: auth"


def test_others_successes_do_not_hide_a_sick_process_from_itself() -> None:
    """Its own failures in a row open it, though the target serves the others in between."""
    record = b.CLOSED
    for at_s in range(2):
        record = serves(fails(record, A, at_s=at_s), B, at_s=at_s)
    assert record.state == "open"
    assert not ask(record, A, 1.5).admitted


def test_short_runs_count_together() -> None:
    """Each fails once and ends; together they open it."""
    record = fails(b.CLOSED, A, B)
    assert record.state == "open"
    assert not ask(record, C, gone=(A, B)).admitted


def test_who_did_not_see_it_fail_probes_for_itself_alone() -> None:
    """It closes the breaker, but the sick process isn't cured by that: its next failure opens it."""
    record, admission = b.admit(FIRM, fails(serves(b.CLOSED, B), A, A), 31.0, B.name, 10.0, me=B)
    assert admission.probe
    record = serves(record, B, at_s=31.0)
    assert record.state == "closed"
    assert fails(record, A, at_s=32.0).state == "open"


def test_who_saw_it_fail_and_is_served_again_speaks_for_all() -> None:
    """The next single failure of another opens nothing."""
    record, admission = b.admit(FIRM, fails(b.CLOSED, A, B), 31.0, A.name, 10.0, me=A)
    assert admission.probe
    record = serves(record, A, at_s=31.0)
    assert fails(record, B, at_s=32.0).state == "closed"


def test_while_one_probes_those_who_are_not_bound_go_on() -> None:
    """A probe of the sick one takes nobody's place."""
    record, admission = b.admit(FIRM, fails(serves(b.CLOSED, B), A, A), 31.0, A.name, 10.0, me=A)
    assert admission.probe
    assert ask(serves(record, B, at_s=31.0), B, 32.0).admitted
    late = fails(fails(record, C, at_s=31.0), C, at_s=31.5)
    assert ask(late, C, 32.0).reason == "another call is probing"


@given(st.lists(st.tuples(st.integers(0, 100), st.integers(0, 3)), max_size=200))
def test_voices_stay_few_and_each_process_has_one(said: list[tuple[int, int]]) -> None:
    """However many processes come and go."""
    voices: tuple[Voice, ...] = ()
    for at_s, (number, failures) in enumerate(said):
        voices = heard(voices, Writer(str(number)), float(at_s), failures, 60.0)
    assert len(voices) == len({voice.writer for voice in voices}) <= VOICES_MAX


def test_a_process_that_is_served_well_says_so_now_and_then_only() -> None:
    """Not every success is news to the others."""
    voices = heard((), A, 0.0, 0, 60.0)
    assert heard(voices, A, 14.0, 0, 60.0) is voices
    assert heard(voices, A, 16.0, 0, 60.0) is not voices


def test_a_forged_record_makes_nobody_look_after_a_thousand_processes(tmp_path: Path) -> None:
    """Files are hostile input: so many voices at most, none of them later than now, and none that leads elsewhere."""
    store = FileStore(tmp_path, monotonic=lambda: 100.0, boot="boot")
    forged = [Voice(Writer(f"x:{number}", "1", "here"), 1e300, 1) for number in range(500)]
    forged.append(Voice(Writer("x:../../etc/passwd", "1", Processes().me().place), 5.0, 1))
    store.compare_and_set("k", 0, b.BreakerRecord(state="open", voices=tuple(forged)))
    voices = store.load("k").record.voices
    assert len(voices) == VOICES_MAX
    assert max(voice.at_s for voice in voices) == 100.0
    assert Processes().gone(voice.writer for voice in voices) == {forged[-1].writer}


# --- with real processes

_PROGRAM = """
import sys, time
from gonogo.gate import BreakerPolicy, FileStore
from gonogo.gate.breakers import Breakers
from gonogo.gate.signals import Classification
breakers = Breakers(BreakerPolicy(failures=1), FileStore(sys.argv[1]), time.monotonic)
breakers.report(sys.argv[2], "x", Classification("server-5xx", "test"), 0.1)
print("open", flush=True)
sys.stdin.read()
"""


@contextmanager
def sick(folder: Path, key: str = "k") -> Iterator[subprocess.Popen[str]]:
    """A process that has opened the breaker and goes on running."""
    command = [sys.executable, "-c", _PROGRAM, str(folder), key]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        try:
            yield process
        finally:
            process.kill()


def here(folder: Path, **policy: object) -> Breakers:
    """This process's breakers in that folder."""
    given = BreakerPolicy(failures=1, **policy)  # type: ignore[arg-type]
    return Breakers(given, FileStore(folder), time.monotonic)


def test_B37_a_sick_process_that_runs_shuts_this_one_out_by_no_more_than_its_own_failure(
    tmp_path: Path,
) -> None:
    """Real processes: the call goes, fails, and binds."""
    with sick(tmp_path) as process:
        breakers = here(tmp_path)
        admission, _ = breakers.admit("k", "y", 10)
        assert admission.admitted
        assert f":{process.pid}, but 1 of 2 processes saw it fail" in admission.advice
        breakers.report("k", "y", BROKEN, 0.1)
        assert breakers.admit("k", "y", 10)[0].reason.endswith("this process saw it fail")


@pytest.mark.parametrize("end", ["by itself", "killed"])
def test_B37_what_it_left_open_binds_the_next_once_it_has_ended(tmp_path: Path, end: str) -> None:
    """Real processes: short CI runs, one after another; a killed one, too, at once."""
    with sick(tmp_path) as process:
        if end == "killed":
            process.kill()
        else:
            process.communicate()
        process.wait()
        admission, _ = here(tmp_path).admit("k", "y", 10)
    assert admission.reason == f"open by {os.uname().nodename}:{process.pid}: no other process calls it now"


def test_B37_two_sick_ones_of_three_bind_the_third(tmp_path: Path) -> None:
    """Real processes: more than half."""
    with sick(tmp_path), sick(tmp_path):
        assert "2 of 3 processes saw it fail" in here(tmp_path).admit("k", "y", 10)[0].reason


def test_B37_strict_binds_this_process_though_one_alone_is_sick(tmp_path: Path) -> None:
    """Real processes; F8.4: seen at once."""
    with sick(tmp_path):
        assert not here(tmp_path, shared="strict").admit("k", "y", 10)[0].admitted


def test_who_opened_a_breaker_and_how_many_saw_it_fail_is_listed(tmp_path: Path) -> None:
    """For `gonogo breakers`."""
    with sick(tmp_path) as process:
        breakers = here(tmp_path)
        [listed] = breakers.listed()
        assert listed.opened_by.endswith(f":{process.pid}")
        assert (listed.shared, listed.failing, listed.processes) == ("advisory", 1, 1)


def test_the_record_of_a_call_says_why_it_went_all_the_same(tmp_path: Path) -> None:
    """E.10: an open breaker that doesn't bind is a decision of its own, also when the call is decided again."""

    async def well() -> int:
        return 1

    policy = Policy((Target("k"),))
    with sick(tmp_path, "name=k") as process:
        record = asyncio.run(Gate(policy, store=FileStore(tmp_path)).answer(well)).record
    [told] = [each.sentence() for each in record.decisions if isinstance(each, BreakerOverruled)]
    assert told.startswith("k is called all the same: its breaker is open by ")
    assert told.endswith(f":{process.pid}, but 1 of 2 processes saw it fail")
    assert told in record.story()[0]
    assert record.under(policy) == []


def test_a_fork_is_a_process_of_its_own() -> None:
    """Its parent's failures aren't its own."""
    processes = Processes()
    mine = processes.me()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, processes.me().name.encode())
        os._exit(0)
    os.waitpid(child, 0)
    told = os.read(reader, 200).decode()
    os.close(reader), os.close(writer)
    assert told.endswith(f":{child}")
    assert processes.me() == mine
    assert processes.gone([Writer(told, mine.began, mine.place)])


def test_a_later_process_of_the_same_number_is_another_one() -> None:
    """Numbers come again."""
    processes = Processes()
    me = processes.me()
    assert processes.gone([me, Writer(me.name, "1", me.place)]) == {Writer(me.name, "1", me.place)}


def test_of_processes_elsewhere_nobody_knows_whether_they_run(tmp_path: Path) -> None:
    """Another machine's, another boot's, and all where the system doesn't tell."""
    other = Writer("there:1", "1", "there")
    assert not Processes().gone([other])
    assert not Processes(tmp_path).gone([other, Processes(tmp_path).me()])
