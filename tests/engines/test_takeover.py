"""Whom DBOS' workers take for dead, and what they leave alone."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from tests.servers.postgres import Server

from gonogo.engines.dbos import takeover
from gonogo.engines.dbos.names import place_of
from gonogo.engines.dbos.takeover import Lease
from gonogo.engines.urls import named
from gonogo.journal.postgres.address import Address

OLD_AT_ONCE_S = -60.0


@pytest.fixture
def url(postgres: Server) -> Iterator[str]:
    """A database of its own: sessions are ended by their names."""
    made = postgres.new_database()
    yield made
    postgres.drop(made)


def lease(url: str, worker: str) -> Lease:
    """Of a worker that starts."""
    made = Lease(named(Address(url), worker), worker)
    made.acquire()
    return made


def test_a_worker_that_still_starts_isnt_taken_for_frozen(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Setting up may take longer than a worker may stand still; until it enlists nobody waits for its sign."""
    monkeypatch.setattr(takeover, "FROZEN_S", OLD_AT_ONCE_S)
    starting, other = lease(url, "a"), lease(url, "b")
    assert other.dead() == []
    starting.enlist()
    assert other.dead() == ["a"]
    with pytest.raises(psycopg.OperationalError):
        starting.renew()
    other.release()


def test_a_worker_that_gives_signs_is_left_alone(url: str) -> None:
    """Its row is young by the database's clock."""
    living, other = lease(url, "a"), lease(url, "b")
    living.enlist()
    living.renew()
    assert other.dead() == []
    living.release()
    other.release()


def test_a_worker_whose_session_ended_is_dead_however_young_its_sign(url: str) -> None:
    """As after kill -9: Postgres drops its lock with the session."""
    gone, other = lease(url, "a"), lease(url, "b")
    gone.enlist()
    gone._connection.close()
    while other.dead() != ["a"]:
        pass  # the server notices in its own time
    other.forget("a")
    assert other.dead() == []
    other.release()


def test_each_loss_of_a_worker_is_counted(url: str) -> None:
    """So work that ends whoever takes it is set aside in the end."""
    one = lease(url, "a")
    assert [one.taken_over("run/1"), one.taken_over("run/1"), one.taken_over("run/2")] == [1, 2, 1]
    one.release()


class Broken:
    """An engine's client that can't tell what a worker had."""

    def list_workflows(self, **_: object) -> list[object]:
        raise ValueError("not now")


def test_work_that_cannot_be_taken_over_yet_is_left_for_the_next_look(url: str) -> None:
    """The thread goes on with giving signs of life; without it its own worker would be taken for dead."""
    gone, one, other = lease(url, "a"), lease(url, "b"), lease(url, "c")
    gone.enlist()
    gone._connection.close()
    watch = takeover.Watch(one, lambda run_id, call, times: None, lambda: True)
    while other.dead() != ["a"]:
        pass  # the server notices in its own time
    other.leave_to_others("a")
    watch._take_over_all(Broken())  # type: ignore[arg-type]
    assert other.dead() == ["a"]
    one.release()
    other.release()


@pytest.mark.parametrize(
    ("workflow", "place"),
    [("r/7", ("r", 7)), ("r/segment-ab", ("r", None)), ("r/" + "9" * 5000, ("r", None)), ("r/\u0663", ("r", None)),
     ("", ("", None))],
)  # fmt: skip
def test_a_workflow_that_somebody_named_otherwise_is_no_call(
    workflow: str, place: tuple[str, int | None]
) -> None:
    """Its id is read from a table that others write."""
    assert place_of(workflow) == place
