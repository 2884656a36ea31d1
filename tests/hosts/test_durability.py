"""How often a run has the disk make sure (architecture.md budgets): around calls with consequences, and at the end."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from gonogo import app
from gonogo.app.parts import built_in_table
from gonogo.journal import files
from gonogo.provider import Call, Context, Done, Outcome, Provider

STEPS = 5


class Keys(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """No keys."""


def acting(tmp_path: Path, made_sure: list[int], seen: list[tuple[int, bytes]]) -> Provider:
    """A step type that acts, and notes how often the disk has made sure by then, and of which bytes."""

    def durable() -> bytes:
        [journal] = tmp_path.glob("runs/*/journal.jsonl")
        return journal.read_bytes()[: made_sure[-1] if made_sure else 0]

    async def run(call: Call, context: Context) -> Outcome:
        seen.append((len(made_sure), durable()))
        return Done(call.step)

    return Provider(name="acting", config=Keys, run=run, effects="mutates")


@pytest.fixture
def made_sure(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The size of the journal each time it was made durable; nothing else is counted."""
    import os

    sizes: list[int] = []
    sync = files.sync_data

    def counted(descriptor: int) -> None:
        sync(descriptor)
        sizes.append(os.fstat(descriptor).st_size)

    monkeypatch.setattr(files, "sync_data", counted)
    return sizes


def chain(kind: str) -> str:
    """Steps one after the other."""
    steps = [
        f"  s{number}: {{type: {kind}{f', depends_on: s{number - 1}' if number else ''}}}"
        for number in range(STEPS)
    ]
    return 'version: "1.0"\nsteps:\n' + "\n".join(steps) + "\n"


def test_a_mutating_call_costs_two_syncs_at_the_most_and_the_run_one_more(
    tmp_path: Path, made_sure: list[int]
) -> None:
    """Its intent is on disk before it is made, its outcome after it; that and the next intent share one."""
    seen: list[tuple[int, bytes]] = []
    table = built_in_table((acting(tmp_path, made_sure, seen),))
    plan = app.loads(chain("acting"), table=table).plan
    result = app.start_run(plan, app.Start(), app.Options(runs=tmp_path / "runs", table=table))
    assert result.verdict == "GO"
    assert [count for count, _ in seen] == list(range(1, STEPS + 1))
    for number, (_, durable) in enumerate(seen):
        lines = durable.decode().splitlines()
        assert '"started"' in lines[-1]
        assert f'"step":"s{number}"' in lines[-1]
    assert STEPS + 1 <= len(made_sure) <= 2 * STEPS + 1


def test_a_run_without_consequences_makes_sure_once_at_its_end(tmp_path: Path, made_sure: list[int]) -> None:
    """Whatever a power cut takes of it can be done again."""
    plan = app.loads(chain("noop")).plan
    app.start_run(plan, app.Start(), app.Options(runs=tmp_path / "runs"))
    assert len(made_sure) == 1
    [journal] = tmp_path.glob("runs/*/journal.jsonl")
    assert made_sure == [journal.stat().st_size]


def test_calls_side_by_side_share_what_makes_sure_of_them(tmp_path: Path, made_sure: list[int]) -> None:
    """Intents that are decided together are one sync."""
    seen: list[tuple[int, bytes]] = []
    table = built_in_table((acting(tmp_path, made_sure, seen),))
    steps = "\n".join(f"  s{number}: {{type: acting}}" for number in range(STEPS))
    text = f'version: "1.0"\nmax_parallelism: {STEPS}\nsteps:\n{steps}\n'
    plan = app.loads(text, table=table).plan
    app.start_run(plan, app.Start(), app.Options(runs=tmp_path / "runs", table=table))
    assert {count for count, _ in seen} == {1}
    assert len(made_sure) <= STEPS + 2
