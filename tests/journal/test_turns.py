"""Turns under a rate limit, as Postgres gives them out."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.servers.postgres import Server

from gonogo.journal.postgres import turns
from gonogo.journal.postgres.runs import PostgresRuns

FOR_EVER_S = 1e9
HOUR_S = 3600.0


@pytest.fixture
def store(postgres: Server) -> Iterator[str]:
    """A schema with a run, two beneath one another, and a run of its own."""
    url = postgres.new_schema()
    with PostgresRuns(url) as runs:
        assert runs.ids() == []
    rows = "('r', null), ('r.a', 'r'), ('r.a.b', 'r.a'), ('other', null)"
    postgres.execute(f"insert into gonogo_runs (run_id, parent) values {rows}", url)
    yield url
    postgres.drop_schema(url)


def now(found: list[tuple[float, bool] | None]) -> int:
    """How many are taken that need no wait."""
    return sum(each is not None and each[1] and each[0] < 1.0 for each in found)


def test_a_run_and_those_beneath_share_turns_and_no_others_do(store: str) -> None:
    """By key; a run that isn't there has none."""
    with PostgresRuns(store) as runs:
        take = runs.turns.take
        found = [take(run_id, "k", 3, HOUR_S, FOR_EVER_S) for run_id in ("r", "r.a", "r.a.b", "r", "r.a")]
        assert now(found) == 3
        assert [each is not None and each[0] > HOUR_S / 2 for each in found[3:]] == [True, True]
        assert (
            now([take("r", "another", 3, HOUR_S, FOR_EVER_S), take("other", "k", 3, HOUR_S, FOR_EVER_S)]) == 2
        )
        assert take("nobody", "k", 3, HOUR_S, FOR_EVER_S) is None


def test_a_turn_further_ahead_is_told_and_left(store: str) -> None:
    """However often it is asked for, it comes no later."""
    with PostgresRuns(store) as runs:
        take = runs.turns.take
        assert now([take("r", "k", 1, HOUR_S, 2.0)]) == 1
        for _ in range(3):
            found = take("r", "k", 1, HOUR_S, 2.0)
            assert found is not None
            assert (found[1], HOUR_S / 2 < found[0] <= HOUR_S) == (False, True)
        assert take("r", "k", 1, 0.0001, 2.0) == (0.0, True)


def test_processes_that_ask_at_the_same_time_overdraw_nothing(store: str) -> None:
    """Each has a connection of its own."""

    def ask(run_id: str) -> list[tuple[float, bool] | None]:
        with PostgresRuns(store) as runs:
            return [runs.turns.take(run_id, "k", 25, HOUR_S, FOR_EVER_S) for _ in range(15)]

    with ThreadPoolExecutor(4) as pool:
        found = [each for some in pool.map(ask, ["r", "r.a", "r.a.b", "r"]) for each in some]
    assert (len(found), now(found)) == (60, 25)


def test_a_limit_of_many_requests_lets_through_no_more_than_it_says(
    store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its row holds so many turns at most."""
    monkeypatch.setattr(turns, "KEPT_MAX", 4)
    with PostgresRuns(store) as runs:
        found = [runs.turns.take("r", "k", 10, 30.0, FOR_EVER_S) for _ in range(20)]
    waits_s = [each[0] for each in found if each is not None]
    assert [sum(wait_s <= within_s for wait_s in waits_s) for within_s in (15, 27, 36)] == [6, 9, 12]


def test_turns_go_with_their_run(store: str, postgres: Server) -> None:
    """Nothing else ever looks at them."""
    with PostgresRuns(store) as runs:
        assert runs.turns.take("r.a", "k", 1, HOUR_S, 2.0) is not None
    postgres.execute("delete from gonogo_runs where run_id = 'r'", store)
    assert postgres.execute("select * from gonogo_turns", store) == []
