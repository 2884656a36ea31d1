"""Whom DBOS' workers take for dead, and what they leave alone."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import psycopg
import pytest
from tests.engines.world import pause
from tests.servers.postgres import Server

from gonogo.engines.base import TAKEOVERS_MAX
from gonogo.engines.dbos import takeover
from gonogo.engines.dbos.names import group_id, run_of, segment_id
from gonogo.engines.dbos.takeover import Lease
from gonogo.engines.urls import named
from gonogo.journal.postgres.address import Address
from gonogo.journal.postgres.bell import channel_of

OLD_AT_ONCE_S = -60.0


@pytest.fixture
def url(postgres: Server) -> Iterator[str]:
    """A database of its own: sessions are ended by their names."""
    made = postgres.new_database()
    yield made
    postgres.drop(made)


def until(so: Callable[[], bool]) -> None:
    """Wait for it, but not for ever."""
    for _ in range(600):
        if so():
            return
        pause(0.05)
    raise AssertionError("it didn't come")


def lease(url: str, worker: str) -> Lease:
    """Of a worker that starts."""
    made = Lease(named(Address(url), worker), worker)
    made.acquire()
    return made


def test_a_worker_that_still_starts_isnt_taken_for_frozen(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Setting up may take longer than a worker may stand still; until it enlists nobody waits for its sign."""
    monkeypatch.setattr(takeover, "FROZEN_S", OLD_AT_ONCE_S)
    starting, other = lease(url, "a"), lease(url, "b")
    other.renew()
    assert other.look() == []
    starting.enlist()
    assert other.look() == ["a"]
    with pytest.raises(psycopg.OperationalError):
        starting.renew()
    other.release()


def test_a_worker_that_gives_signs_is_left_alone(url: str) -> None:
    """Its row is young by the database's clock."""
    living, other = lease(url, "a"), lease(url, "b")
    living.enlist()
    living.renew()
    assert other.look() == []
    living.release()
    other.release()


def test_who_couldnt_renew_for_a_while_takes_nobody_for_frozen_before_they_could_renew(url: str) -> None:
    """As when the store took no writes: all rows are old then, and the first that can write again ended the others."""
    living, other = lease(url, "a"), lease(url, "b")
    living.enlist()
    living.connection.execute("update gonogo_workers set seen = seen - interval '1 hour'")
    other.renew()
    assert other.look() == []
    other._steady_s -= takeover.FROZEN_S
    other._renewed_s -= takeover.FROZEN_S
    assert other.look() == []
    other._renewed_s += takeover.FROZEN_S
    assert other.look() == ["a"]
    living.connection.close()
    other.release()


def test_a_frozen_worker_whose_sessions_cant_be_ended_keeps_its_work_and_is_told_of_once(
    url: str, postgres: Server, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody may have what it still could write for. Who looks after it is none the worse for it."""
    frozen = lease(url, "a")
    frozen.enlist()
    frozen.connection.execute("update gonogo_workers set seen = seen - interval '1 hour'")
    postgres.execute(
        "create role gonogo_other login password 'gonogo_other'; grant create, usage on schema public to gonogo_other;"
        "grant all on all tables in schema public to gonogo_other",
        url,
    )
    try:
        other = lease(url.replace(f"postgres:{postgres.password}", "gonogo_other:gonogo_other"), "b")
        other.renew()
        other._steady_s -= takeover.FROZEN_S
        assert [other.look(), other.look()] == [[], []]
        assert len([each for each in caplog.messages if "grant pg_signal_backend" in each]) == 1
        assert not frozen.is_lost
        other.release()
        frozen.release()
    finally:
        postgres.execute("drop owned by gonogo_other; drop role gonogo_other", url)


def age(url: str) -> float:
    """How old the worker's sign of life is, in seconds."""
    with psycopg.connect(url) as connection:
        row = connection.execute(
            "select extract(epoch from clock_timestamp() - seen) from gonogo_workers"
        ).fetchone()
    assert row is not None
    return float(row[0])


@pytest.mark.parametrize("trouble", ["read-only", "locked"])
def test_a_worker_is_renewed_again_once_the_store_takes_writes(
    url: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, trouble: str
) -> None:
    """What passes is told once, and ends neither the worker nor its signs of life."""
    monkeypatch.setattr(takeover, "_LIMITS", "select set_config('lock_timeout', '100ms', false)")
    one, fenced = lease(url, "a"), threading.Event()
    watch = takeover.Watch(one, Heard(), lambda: True)
    watch.start(fenced.set)
    with psycopg.connect(url) as locking:
        if trouble == "locked":
            locking.execute("lock table gonogo_workers in access exclusive mode")
        else:
            one.connection.execute("set default_transaction_read_only = on")
        until(lambda: any("a keeps trying" in each for each in caplog.messages))
        pause(3 * takeover.PERIOD_S)
    one.connection.execute("set default_transaction_read_only = off")
    until(lambda: any("gets on with the store again" in each for each in caplog.messages))
    until(lambda: age(url) < takeover.PERIOD_S)
    assert len([each for each in caplog.messages if "keeps trying" in each]) == 1
    assert not fenced.is_set()
    watch.stop()
    one.release()


@pytest.mark.parametrize("broken", ["drop table gonogo_workers", ""], ids=["store", "engine"])
def test_a_worker_that_cant_look_after_others_any_more_ends_and_says_so(
    url: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    """It would take work and never notice a dead one, and nobody would notice that."""
    monkeypatch.setattr(takeover, "end_at_once", lambda: None)
    one, fenced = lease(url, "a"), threading.Event()
    watch = takeover.Watch(one, Heard(), lambda: True)
    watch.start(fenced.set)
    if broken:
        one.connection.execute(broken)
    else:
        watch.take_over_by(Client(Heard()), lambda: int("none"))  # type: ignore[arg-type]
    assert fenced.wait(30)
    assert any("a can't look after other workers any more" in each for each in caplog.messages)
    watch.stop()
    one.connection.close()


def test_a_worker_whose_session_ended_is_dead_however_young_its_sign(url: str) -> None:
    """As after kill -9: Postgres drops its lock with the session."""
    gone, other = lease(url, "a"), lease(url, "b")
    gone.enlist()
    gone._connection.close()
    while other.look() != ["a"]:
        pass  # the server notices in its own time
    other.forget("a")
    assert other.look() == []
    other.release()


class Heard:
    """What a watch tells."""

    def __init__(self) -> None:
        self.told: list[tuple[object, ...]] = []

    def lost(self, worker: str) -> None:
        self.told.append(("lost", worker))

    def aside(self, run_id: str, takeovers: int) -> None:
        self.told.append(("aside", run_id, takeovers))


class Client:
    """An engine's client that knows what a worker had, or can't tell."""

    def __init__(self, heard: Heard, *workflows: str, broken: bool = False, resumes: bool = True) -> None:
        self._told = heard.told
        self._workflows = workflows
        self._broken = broken
        self._resumes = resumes

    def list_workflows(self, **_: object) -> list[object]:
        if self._broken:
            raise ValueError("not now")
        return [SimpleNamespace(workflow_id=each, queue_name="q") for each in self._workflows]

    def resume_workflow(self, workflow: str, queue_name: str) -> None:
        if not self._resumes:
            raise ValueError("not now")
        self._told.append(("resumed", workflow))

    def cancel_workflow(self, workflow: str) -> None:
        self._told.append(("cancelled", workflow))


@pytest.fixture
def fallen(url: str) -> Iterator[Lease]:
    """A worker that lives; another, a, is dead."""
    gone, one = lease(url, "a"), lease(url, "b")
    gone.enlist()
    gone._connection.close()
    while one.look() != ["a"]:
        pass  # the server notices in its own time
    one.leave_to_others("a")
    yield one
    one.release()


def test_work_that_cannot_be_taken_over_yet_is_left_for_the_next_look(fallen: Lease, url: str) -> None:
    """The thread goes on with giving signs of life; without it its own worker would be taken for dead."""
    heard, other = Heard(), lease(url, "c")
    watch = takeover.Watch(fallen, heard, lambda: True)
    watch._take_over_all(Client(heard, broken=True))  # type: ignore[arg-type]
    assert other.look() == ["a"]
    other.release()


def test_calls_of_a_dead_worker_are_free_before_anybody_is_told_of_them(fallen: Lease) -> None:
    """Whoever is told first would find them taken, and pass them over for ever."""
    heard = Heard()
    takeover.Watch(fallen, heard, lambda: True)._take_over_all(Client(heard, "r/calls-1", "r/segment-1"))  # type: ignore[arg-type]
    assert heard.told == [("lost", "a"), ("resumed", "r/calls-1"), ("resumed", "r/segment-1")]


def test_a_run_that_lost_too_many_workers_is_set_aside_and_its_calls_never_are(fallen: Lease) -> None:
    """Calls are counted one by one where they are claimed: others came with them."""
    heard = Heard()
    client = Client(heard, "r/calls-1", "r/segment-1")
    watch = takeover.Watch(fallen, heard, lambda: True)
    for _ in range(TAKEOVERS_MAX):
        watch._take_over("a", client)  # type: ignore[arg-type]
    assert heard.told[1:3] == [("resumed", "r/calls-1"), ("resumed", "r/segment-1")]
    heard.told.clear()
    watch._take_over("a", client)  # type: ignore[arg-type]
    assert heard.told[1:] == [("resumed", "r/calls-1"), ("aside", "r", 6), ("cancelled", "r/segment-1")]


def test_a_run_that_cannot_be_taken_over_for_long_has_lost_one_worker_only(fallen: Lease) -> None:
    """Each look tries again; it would be set aside for what isn't its fault."""
    heard = Heard()
    watch = takeover.Watch(fallen, heard, lambda: True)
    for _ in range(TAKEOVERS_MAX + 1):
        with pytest.raises(ValueError, match="not now"):
            watch._take_over("a", Client(heard, "r/segment-1", resumes=False))  # type: ignore[arg-type]
    heard.told.clear()
    watch._take_over("a", Client(heard, "r/segment-1"))  # type: ignore[arg-type]
    assert heard.told == [("lost", "a"), ("resumed", "r/segment-1")]


def test_who_takes_over_rings_for_the_queue(fallen: Lease, url: str) -> None:
    """Else the others would find the work at their next look only."""
    heard = Heard()
    with psycopg.connect(url, autocommit=True) as listening:
        listening.execute(f'listen "{channel_of("q")}"')
        takeover.Watch(fallen, heard, lambda: True)._take_over_all(Client(heard, "r/calls-1"))  # type: ignore[arg-type]
        assert [each.payload for each in listening.notifies(timeout=30, stop_after=1)] == ["q"]


@pytest.mark.parametrize(
    ("workflow", "run_id"),
    [(segment_id("r"), "r"), (group_id("r"), None), ("r/7", None), ("r", None), ("", None)],
    ids=["segment", "group", "call", "run", "nothing"],
)
def test_only_a_segment_speaks_for_its_run(workflow: str, run_id: str | None) -> None:
    """A workflow's id is read from a table that others write."""
    assert run_of(workflow) == run_id
