"""`gonogo breakers`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.cli.conftest import Gonogo, process, write
from tests.servers import faulty

KEY = "name=shop/endpoint=https://shop.example"


def test_where_no_call_was_made_there_is_nothing_to_list(gonogo: Gonogo, tmp_path: Path) -> None:
    """Said to people; an empty list for programs; no folder is made by looking."""
    assert "no breaker has a record" in gonogo("breakers").err
    assert gonogo("breakers", "--format", "json").json == []
    assert not (tmp_path / ".gonogo" / "runs" / "breakers").exists()


def test_a_target_is_isolated_listed_and_let_in_again(gonogo: Gonogo) -> None:
    """By its key, then by a part of it that no other has."""
    ended = gonogo("breakers", "isolate", KEY, "--reason", "it burns", "--for", "10m", "--format", "json")
    assert ended.code == 0
    assert f"let it in again with: gonogo breakers reset {KEY}\n" in ended.err
    [told] = ended.json
    assert (told["key"], told["state"]) == (KEY, "isolated")
    assert told["reason"].startswith("it burns, by ")
    assert 590 < told["left_s"] <= 600
    shown = gonogo("breakers").out
    assert "isolated" in shown
    assert "  shop at https://shop.example  for " in shown
    assert "is closed" in gonogo("breakers", "reset", "shop at https://shop.example").err
    gonogo("breakers", "isolate", KEY)
    [told] = gonogo("breakers", "reset", "shop.example", "--format", "json").json
    assert (told["state"], told["left_s"]) == ("closed", None)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("isolate",), "isolate needs the breaker's key"),
        (("reset",), "reset needs the breaker's key"),
        (("list", "x"), "list takes no key"),
        (("reset", "nowhere"), "there is no breaker 'nowhere'"),
        (("isolate", "nowhere"), "there is no breaker 'nowhere'"),
        (("isolate", KEY, "--for", "soon"), "--for: expected a duration"),
        (("isolate", KEY, "--for", "0"), "--for: expected a duration"),
    ],
)
def test_what_can_not_be_done_is_said(gonogo: Gonogo, words: tuple[str, ...], said: str) -> None:
    """Exit code 2, with what to do."""
    ended = gonogo("breakers", *words)
    assert ended.code == 2
    assert said in ended.err


def test_a_part_of_several_keys_is_refused(gonogo: Gonogo) -> None:
    """Nothing is guessed."""
    for name in ("a", "b"):
        gonogo("breakers", "isolate", f"name={name}/endpoint=https://shop.example")
    ended = gonogo("breakers", "reset", "shop")
    assert ended.code == 2
    assert "is a part of 2 breakers" in ended.err


def test_a_damaged_record_counts_as_none(gonogo: Gonogo, tmp_path: Path) -> None:
    """Files are hostile input."""
    gonogo("breakers", "isolate", KEY)
    [file] = tmp_path.rglob("breakers/*.json")
    file.write_bytes(b"\xff{")
    assert gonogo("breakers", "--format", "json").json == []


def test_B37_short_runs_one_after_another_share_what_the_last_one_found(tmp_path: Path) -> None:
    """Real processes: the first run opens it and ends, the second calls nothing, and the list says whose it is."""
    policy = (
        "{bounds: {attempts_per_target: 2, deadline_s: 5}, breaker: {failures: 2}, backoff: {base_s: 0.01}}"
    )
    with faulty.FaultyServer(faulty.answer(503, b"busy")) as far:
        write(tmp_path, f"a: {{type: http_client, url: '{far.url}', reliability: {policy}}}")
        for _ in range(2):
            ended = process("run", cwd=tmp_path)
            assert ended.code == 1
        assert far.connections == 2
    assert "no other process calls it now" in ended.err + ended.out
    [told] = process("breakers", "--format", "json", cwd=tmp_path).json
    assert (told["state"], told["shared"], told["failing"], told["processes"]) == ("open", "advisory", 0, 0)
    assert told["opened_by"]
    shown = process("breakers", cwd=tmp_path).out
    assert f"opened by {told['opened_by']}, advisory" in " ".join(shown.split())


def test_an_isolation_is_told_as_what_it_is(tmp_path: Path) -> None:
    """It binds all, whoever opened the breaker before; the time until its end is told without an exponent."""
    policy = "{bounds: {attempts_per_target: 1, deadline_s: 5}, breaker: {failures: 1}}"
    with faulty.FaultyServer(faulty.answer(503, b"busy")) as far:
        write(tmp_path, f"a: {{type: http_client, url: '{far.url}', reliability: {policy}}}")
        assert process("run", cwd=tmp_path).code == 1
        process("breakers", "isolate", "127.0.0.1", "--reason", "moving house", "--for", "2h", cwd=tmp_path)
        refused = process("run", cwd=tmp_path)
        assert far.connections == 1
    shown = process("breakers", cwd=tmp_path).out
    assert "moving house" in shown
    assert "advisory" not in shown
    assert re.search(r"asked again in 7,\d\d\d s", " ".join((refused.out + refused.err).split()))
