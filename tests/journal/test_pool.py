"""What every pool of calls promises: in memory and in Postgres alike."""

from __future__ import annotations

import select
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gonogo.core.commands import StartCall
from gonogo.core.events import AnswerGiven, CallDone, CallFailed
from gonogo.core.faults import Fault
from gonogo.journal.memory import MemoryRuns
from gonogo.journal.pool import Bell, Leave, Pool, Ticket
from gonogo.journal.postgres.runs import PostgresRuns
from gonogo.journal.sharing import SharedRuns

LONG_S = 30.0
"""What is rung is heard long before."""


@pytest.fixture(params=["memory", "postgres"])
def shared(request: pytest.FixtureRequest) -> SharedRuns:
    """Every place that keeps runs for several hosts, in turn."""
    return MemoryRuns() if request.param == "memory" else request.getfixturevalue("tables")


@pytest.fixture
def pool(shared: SharedRuns) -> Pool:
    """Its pool."""
    return shared.pool


@pytest.fixture
def other(shared: SharedRuns) -> Iterator[Pool]:
    """The same pool as another process sees it."""
    if isinstance(shared, PostgresRuns):
        elsewhere = PostgresRuns(shared.address)
        yield elsewhere.pool
        elsewhere.close()
    else:
        yield shared.pool


def ticket(call: int = 1, run_id: str = "r", label: str = "") -> Ticket:
    """A call on offer."""
    command = StartCall(call, "lint", "items/3", 1, 2, f"r/lint/{call}", "mutates")
    return Ticket(run_id, command, seq=7, label=label)


def done(call: int = 1, output: object = "x") -> CallDone:
    """What came of it."""
    return CallDone(call=call, output=output)


def rung(pool: Pool, run_id: str, call: int = 1) -> None:
    """A run is rung for, by an answer."""
    pool.offer([ticket(call, run_id)])
    pool.leave(run_id, call, done(call))


STOPPED = CallFailed(call=1, fault=Fault("run.cancelled", "cancelled", "lint/cancelled", "stopped"))


def heard(bell: Bell) -> set[str]:
    """What is heard next."""
    ready, _, _ = select.select([bell], [], [], LONG_S)
    assert ready
    return bell.heard()


def test_a_call_that_was_passed_over_is_as_if_it_had_never_been_claimed(pool: Pool, other: Pool) -> None:
    """So nothing of one that mutates is in doubt; why it was passed over is kept."""
    pool.offer([ticket()])
    claim = pool.claim("r", 1, "old")
    assert claim is not None
    assert pool.passed_over("r", 1) == ""
    pool.pass_over(claim, "old", "format 9\0")
    assert other.passed_over("r", 1).startswith("format 9")
    again = other.claim_free("r", [1], "new")
    assert [(each.before, each.ticket) for each in again] == [(0, ticket())]
    pool.pass_over(claim, "old", "too late")
    assert other.claim_free("r", [1], "third") == []
    assert pool.passed_over("r", 1).startswith("format 9")


def test_what_is_said_to_a_wish_is_heard_by_who_has_the_call(pool: Pool, other: Pool) -> None:
    """Until the call ends, for what was heard may be lost; who claims it next hears nothing of it."""
    pool.offer([ticket(), ticket(2)])
    pool.claim("r", 1, "w1")
    bell = pool.bell(["w1"])
    other.let(Leave("r", 1, 7))
    other.let(Leave("r", 1, 8, "no: money is short"))
    other.let(Leave("r", 1, 7))
    other.let(Leave("r", 2, 1))
    assert heard(bell) == {"w1"}
    bell.close()
    said = {(each.ticket, each.refusal) for each in pool.let_to("w1")}
    assert said == {(7, ""), (8, "no: money is short")}
    assert other.let_to("w2") == []
    other.claim("r", 1, "w2")
    assert (pool.let_to("w1"), other.let_to("w2")) == ([], [])
    other.let(Leave("r", 1, 9))
    other.leave("r", 1, done())
    assert other.let_to("w2") == []
    other.let(Leave("r", 1, 10))
    other.let(Leave("r", 5, 1))


def test_a_claim_brings_the_whole_ticket(pool: Pool, other: Pool) -> None:
    """Another process needs nothing else but the journal."""
    pool.offer([ticket(label="gpu")])
    claim = other.claim("r", 1, "w1")
    assert claim is not None
    assert claim.ticket == ticket(label="gpu")
    assert claim.before == 0
    assert not claim.stop


def test_a_call_that_nobody_offered_is_claimed_by_nobody(pool: Pool) -> None:
    """Nor one of another run."""
    pool.offer([ticket()])
    assert pool.claim("r", 2, "w1") is None
    assert pool.claim("s", 1, "w1") is None


def test_a_claim_tells_how_many_were_before(pool: Pool, other: Pool) -> None:
    """The second worker must not do again what the first may have done."""
    pool.offer([ticket()])
    claims = [place.claim("r", 1, name) for place, name in ((pool, "w1"), (other, "w2"), (pool, "w3"))]
    assert [claim.before for claim in claims if claim] == [0, 1, 2]


def test_an_offer_made_again_changes_nothing(pool: Pool) -> None:
    """A host that resumes offers what it isn't sure to have offered."""
    pool.offer([ticket()])
    pool.claim("r", 1, "w1")
    pool.offer([ticket(), ticket(2)])
    claim = pool.claim("r", 1, "w2")
    assert claim is not None
    assert claim.before == 1
    assert pool.open("r") == {1, 2}


def test_what_was_left_is_taken_in_order_until_it_is_done(pool: Pool, other: Pool) -> None:
    """The journal holds it first; a host that crashed before finds it again."""
    pool.offer([ticket(), ticket(2)])
    other.claim("r", 1, "w1")
    assert other.leave("r", 1, done(output="part"), last=False)
    assert other.leave("r", 1, done(output="all"))
    assert other.leave("r", 2, done(2))
    taken = pool.take("r")
    assert [event.output for _, event in taken] == ["part", "all", "x"]
    assert pool.take("r", taken[0][0]) == taken[1:]
    pool.done("r", [taken[0][0]])
    assert pool.take("r") == taken[1:]


def test_a_call_that_is_answered_is_claimed_no_more(pool: Pool) -> None:
    """Even before the host has taken the answer."""
    pool.offer([ticket()])
    pool.leave("r", 1, done())
    assert pool.claim("r", 1, "w2") is None


def test_a_second_end_is_not_left(pool: Pool) -> None:
    """A worker that was thought dead comes late."""
    pool.offer([ticket()])
    assert pool.leave("r", 1, done())
    assert not pool.leave("r", 1, done(output="late"))
    assert not pool.leave("r", 2, done(2))
    assert len(pool.take("r")) == 1


def test_who_lost_a_claim_leaves_nothing(pool: Pool, other: Pool) -> None:
    """The frozen worker wakes up after another has claimed its call."""
    pool.offer([ticket()])
    pool.claim("r", 1, "frozen")
    other.claim("r", 1, "w2")
    assert not pool.leave("r", 1, done(output="frozen"), before=0)
    assert other.leave("r", 1, done(output="w2"), before=1)
    assert [event.output for _, event in pool.take("r")] == ["w2"]


def test_only_calls_that_no_worker_has_are_claimed_together(pool: Pool, other: Pool) -> None:
    """A group may be given to several; each call is one worker's."""
    pool.offer([ticket(call) for call in (1, 2, 3, 4)])
    pool.claim("r", 2, "w1")
    pool.leave("r", 4, done(4))
    claims = other.claim_free("r", [1, 2, 3, 4, 5], "w2")
    assert [(claim.ticket.command.call, claim.before) for claim in claims] == [(1, 0), (3, 0)]
    assert pool.claim_free("r", [1, 2, 3], "w1") == []


def test_calls_of_a_lost_worker_are_claimed_by_others_who_know_of_it(pool: Pool, other: Pool) -> None:
    """One that mutates may have been performed; calls of living workers stay theirs."""
    pool.offer([ticket(1), ticket(2), ticket(3)])
    pool.claim_free("r", [1, 3], "dead")
    pool.claim_free("r", [2], "alive")
    pool.leave("r", 3, done(3))
    assert pool.lose("dead") == [("r", 1, "")]
    claims = other.claim_free("r", [1, 2, 3], "w2")
    assert [(claim.ticket.command.call, claim.before) for claim in claims] == [(1, 1)]
    assert not pool.leave("r", 1, done(), before=0)


def test_calls_that_were_claimed_so_often_are_suspects_and_can_be_left_out(pool: Pool, other: Pool) -> None:
    """What has an end isn't one."""
    pool.offer([ticket(call) for call in (1, 2, 3)])
    for call in (1, 1, 2, 3, 3):
        pool.claim("r", call, "dead")
    other.leave("r", 3, done(3))
    pool.lose("dead")
    assert other.suspects("r", [1, 2, 3], 2) == [1]
    assert [claim.ticket.command.call for claim in other.claim_free("r", [1, 2, 3], "w", below=2)] == [2]
    assert other.claim("r", 1, "w", below=2) is None
    assert [claim.before for claim in other.claim_free("r", [1], "w")] == [2]


def test_what_a_lost_worker_had_is_told_until_somebody_claims_it(pool: Pool, other: Pool) -> None:
    """Whoever frees it may die before it has told others."""
    pool.offer([ticket(1), ticket(2), ticket(3)])
    pool.claim_free("r", [1, 2], "dead")
    assert pool.lose("dead") == other.lose("dead") == [("r", 1, ""), ("r", 2, "")]
    other.claim_free("r", [2], "w2")
    assert pool.lose("dead") == [("r", 1, "")]


def test_what_comes_of_several_calls_is_left_together(pool: Pool, other: Pool) -> None:
    """In this order; what nobody waits for any more is left out."""
    pool.offer([ticket(call) for call in (1, 2, 3)])
    other.claim_free("r", [1, 2, 3], "w1")
    other.claim("r", 2, "w2")
    assert other.leave_all("r", [(3, done(3), 0), (2, done(2), 0), (1, done(1), 0), (9, done(9), 0)]) == {
        1,
        3,
    }
    assert [event.call for _, event in pool.take("r")] == [3, 1]
    assert other.leave_all("r", [(2, done(2), 1)]) == {2}


def test_a_call_is_open_until_its_last_answer_is_done(pool: Pool) -> None:
    """Whoever resumes the run must not take it for lost."""
    pool.offer([ticket(), ticket(2)])
    pool.claim("r", 1, "w1")
    pool.leave("r", 1, done(output="part"), last=False)
    pool.done("r", [number for number, _ in pool.take("r")])
    assert pool.open("r") == {1, 2}
    pool.leave("r", 1, done())
    assert pool.open("r") == {1, 2}
    pool.done("r", [number for number, _ in pool.take("r")])
    assert pool.open("r") == {2}


def test_numbers_rise_even_after_a_run_was_cleared(pool: Pool) -> None:
    """A host that remembers the last one misses nothing."""
    pool.offer([ticket()])
    pool.leave("r", 1, done())
    [(before, _)] = pool.take("r")
    pool.clear("r")
    assert pool.take("r") == []
    assert pool.open("r") == set()
    pool.offer([ticket()])
    pool.leave("r", 1, done())
    assert [number > before for number, _ in pool.take("r", before)] == [True]


def test_clearing_one_run_leaves_the_others(pool: Pool) -> None:
    """Also where calls have the same numbers."""
    pool.offer([ticket(), ticket(run_id="s")])
    pool.leave("s", 1, done())
    pool.clear("r")
    assert pool.open("s") == {1}
    assert len(pool.take("s")) == 1


def test_a_call_that_nobody_claimed_goes_away(pool: Pool) -> None:
    """Nothing comes of it."""
    pool.offer([ticket()])
    assert pool.withdraw("r", 1)
    assert pool.claim("r", 1, "w1") is None
    assert pool.open("r") == set()


def test_a_call_that_nobody_claimed_is_answered_by_its_host(pool: Pool) -> None:
    """In one step: a host that crashes right after finds the answer, and takes nothing for lost."""
    pool.offer([ticket()])
    assert pool.withdraw("r", 1, STOPPED)
    assert pool.claim("r", 1, "w1") is None
    assert [event for _, event in pool.take("r")] == [STOPPED]
    assert pool.open("r") == {1}


def test_a_call_under_way_is_asked_to_stop(pool: Pool, other: Pool) -> None:
    """Its worker still answers; who claims it next is told."""
    pool.offer([ticket(), ticket(2)])
    other.claim("r", 1, "w1")
    other.claim("r", 2, "w1")
    assert not pool.withdraw("r", 1, STOPPED)
    assert pool.take("r") == []
    assert other.to_stop("w1") == {("r", 1)}
    assert other.to_stop("w2") == set()
    claim = pool.claim("r", 1, "w2")
    assert claim is not None
    assert claim.stop
    assert other.to_stop("w1") == set()
    pool.leave("r", 1, STOPPED)
    assert pool.to_stop("w2") == set()


def test_a_call_that_has_ended_is_not_withdrawn(pool: Pool) -> None:
    """What came of it stands."""
    pool.offer([ticket()])
    pool.leave("r", 1, done())
    assert not pool.withdraw("r", 1, STOPPED)
    assert [event for _, event in pool.take("r")] == [done()]


def test_what_a_run_waits_for_rings_its_bell(shared: SharedRuns, pool: Pool, other: Pool, record) -> None:
    """An answer, one in place of a call, and a request; each from another process."""
    journal = shared.create("r")
    journal.append([record(0)])
    pool.offer([ticket(), ticket(2)])
    bell = pool.bell(["r", "w1"])
    rung = [
        lambda: other.leave("r", 1, done()),
        lambda: other.withdraw("r", 2, STOPPED),
        lambda: shared.inbox("r").put(AnswerGiven(step="ask", text="yes")),
    ]
    for ring in rung:
        ring()
        assert heard(bell) == {"r"}
    bell.close()
    journal.close()


def test_a_worker_hears_that_it_should_stop_a_call(pool: Pool, other: Pool) -> None:
    """And nobody else does."""
    pool.offer([ticket()])
    other.claim("r", 1, "w1")
    bell, deaf = other.bell(["w1"]), other.bell(["w2"])
    pool.withdraw("r", 1)
    assert heard(bell) == {"w1"}
    assert deaf.heard() == set()
    bell.close()
    deaf.close()


def test_calls_that_nobody_ever_claimed_are_told(pool: Pool, other: Pool) -> None:
    """Those of a lost worker were claimed, those that ended need nobody."""
    pool.offer([ticket(1), ticket(2), ticket(3, label="gpu"), ticket(4), ticket(5, "s")])
    assert pool.claim("r", 1, "w")
    pool.withdraw("r", 4, done(4))
    pool.lose("w")
    assert other.unclaimed("r") == [(2, ""), (3, "gpu")]


def test_a_bell_is_rung_for_what_it_is_asked_for(pool: Pool, other: Pool) -> None:
    """So workers ask each other things."""
    bell = pool.bell(["a", "b"])
    other.ring(["b", "c"])
    assert heard(bell) == {"b"}
    bell.close()


def test_a_name_added_later_is_heard(pool: Pool, other: Pool) -> None:
    """A worker takes up runs one after the other; names of any length work."""
    bell = pool.bell(["w1"])
    number, name = bell.fileno(), "x" * 128
    bell.add(name)
    rung(other, name)
    assert heard(bell) == {name}
    assert bell.fileno() == number
    bell.close()


def test_a_name_removed_is_heard_no_more(pool: Pool, other: Pool) -> None:
    """Even what was rung before; the others still are."""
    bell = pool.bell(["r", "s"])
    rung(other, "r")
    assert select.select([bell], [], [], LONG_S)[0]
    bell.remove("r")
    rung(other, "r", 2)
    rung(other, "s")
    assert heard(bell) == {"s"}
    bell.close()
    bell.close()


def test_many_workers_leave_answers_and_none_is_missed(pool: Pool, shared: SharedRuns) -> None:
    """A host that always asks for what comes after the last number it saw sees every answer once."""
    calls = range(1, 41)
    pool.offer([ticket(call) for call in calls])
    own = [
        shared.pool if isinstance(shared, MemoryRuns) else PostgresRuns(shared.address).pool for _ in range(4)
    ]

    def work(place: Pool, first: int) -> None:
        for call in calls[first::4]:
            place.leave("r", call, done(call))

    threads = [threading.Thread(target=work, args=(place, first)) for first, place in enumerate(own)]
    for thread in threads:
        thread.start()
    seen: list[int] = []
    last = 0
    while any(thread.is_alive() for thread in threads) or len(seen) < len(calls):
        for number, event in pool.take("r", last):
            last = number
            seen.append(event.call)
        if not any(thread.is_alive() for thread in threads):
            seen += [event.call for _, event in pool.take("r", last)]
            break
    for thread in threads:
        thread.join()
    assert sorted(seen) == list(calls)


def test_a_run_that_was_submitted_waits_for_who_starts_it(shared: SharedRuns, record) -> None:
    """Its start is kept until the journal has a record; the id is taken."""
    start = record(0).event
    assert shared.submitted("r") is None
    shared.submit(start)
    assert shared.submitted("r") == start
    with pytest.raises(Exception, match="there is a run r already"):
        shared.submit(start)
    journal = shared.create("r")
    journal.append([record(0)])
    assert shared.submitted("r") is None
    journal.close()
    with pytest.raises(Exception, match="there is a run r already"):
        shared.create("r")


def test_records_behind_a_number_are_read_alone(shared: SharedRuns, record) -> None:
    """A worker that knows the run follows it."""
    journal = shared.create("r")
    journal.append([record(seq) for seq in range(450)])
    assert list(shared.records_after("r", -1)) == [record(seq) for seq in range(450)]
    assert list(shared.records_after("r", 447)) == [record(448), record(449)]
    assert list(shared.records_after("r", 449)) == []
    journal.close()


NUMBERS = st.integers(1, 2)
OPERATIONS = st.one_of(
    st.tuples(st.just("offer"), NUMBERS),
    st.tuples(st.just("claim"), NUMBERS, st.sampled_from(["w1", "w2"])),
    st.tuples(st.just("claim_free"), st.sampled_from(["w1", "w2"])),
    st.tuples(st.just("lose"), st.sampled_from(["w1", "w2"])),
    st.tuples(st.just("leave_all"), st.integers(0, 2)),
    st.tuples(st.just("leave"), NUMBERS, st.booleans(), st.none() | st.integers(0, 2)),
    st.tuples(st.just("withdraw"), NUMBERS, st.booleans()),
    st.tuples(st.just("done"), st.integers(0, 3)),
    st.tuples(st.just("clear")),
)


def done_to(pool: Pool, operation: tuple[Any, ...]) -> object:
    """What an operation answers; numbers of answers are counted from the first that is there."""
    kind, *given = operation
    if kind == "offer":
        return pool.offer([ticket(given[0])])
    if kind == "claim":
        return pool.claim("r", *given)
    if kind == "claim_free":
        return pool.claim_free("r", [1, 2], *given)
    if kind == "lose":
        return pool.lose(*given)
    if kind == "leave_all":
        return pool.leave_all("r", [(call, done(call), given[0]) for call in (2, 1)])
    if kind == "leave":
        call, last, before = given
        return pool.leave("r", call, done(call), last, before=before)
    if kind == "withdraw":
        return pool.withdraw("r", given[0], done(given[0], "instead") if given[1] else None)
    if kind == "done":
        return pool.done("r", [number for number, _ in pool.take("r")][: given[0]])
    return pool.clear("r")


def seen(pool: Pool) -> object:
    """All that can be asked of it."""
    stops = [pool.to_stop(worker) for worker in ("w1", "w2")]
    return [event for _, event in pool.take("r")], pool.open("r"), stops


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(OPERATIONS, max_size=25))
def test_both_pools_answer_alike(tables: PostgresRuns, operations: list[tuple[Any, ...]]) -> None:
    """Whatever is done to them, in any order: what was tried out in memory holds for machines."""
    memory = MemoryRuns().pool
    tables.pool.clear("r")
    for operation in operations:
        assert done_to(memory, operation) == done_to(tables.pool, operation)
        assert seen(memory) == seen(tables.pool)


def test_a_claim_says_who_had_the_call_before(pool: Pool) -> None:
    """Also once that worker was lost; the first one finds nobody."""
    pool.offer([ticket()])
    first = pool.claim("r", 1, "dead")
    pool.lose("dead")
    again = pool.claim("r", 1, "b")
    assert first is not None
    assert again is not None
    assert (first.had, again.had) == ("", "dead")
