"""What every place that keeps runs promises: in memory and on disk alike."""

from __future__ import annotations

import pytest

from gonogo.core.events import AnswerGiven, CancelAsked
from gonogo.errors import Bug, JournalError, RunLocked, UsageError
from gonogo.journal.blobs import BLOB_BYTES, is_reference
from gonogo.journal.store import Inbox, check_run_id


def test_what_was_appended_is_read_back(runs, record) -> None:
    """Records come back equal and in order."""
    journal = runs.create("r")
    journal.append([record(0), record(1)])
    journal.append([record(2)], sync=True)
    journal.close()
    assert runs.read("r").records == [record(0), record(1), record(2)]
    assert runs.read("r").notes == ()


def test_a_run_that_is_being_written_can_be_read(runs, record) -> None:
    """`show` works on a run under way."""
    journal = runs.create("r")
    journal.append([record(0)])
    assert runs.read("r").records == [record(0)]
    journal.close()


def test_a_run_has_one_writer(runs, record) -> None:
    """Two hosts on one run would both act."""
    first = runs.create("r")
    first.append([record(0)])
    with pytest.raises(RunLocked, match="run r is being written"):
        runs.reopen("r")
    first.close()


def test_a_second_writer_comes_after_the_first_has_closed(runs, record) -> None:
    """The lock goes with the writer; closing twice is fine."""
    first = runs.create("r")
    first.append([record(0)])
    first.close()
    first.close()
    second = runs.reopen("r")
    assert second.records == [record(0)]
    second.append([record(1)])
    second.close()
    assert [one.seq for one in runs.read("r").records] == [0, 1]


def test_a_record_out_of_order_is_a_bug(runs, record) -> None:
    """A gap would make everything after it untrue."""
    journal = runs.create("r")
    journal.append([record(0)])
    with pytest.raises(Bug, match="record 2 came where 1 was due"):
        journal.append([record(2)])
    journal.append([record(1)])
    journal.close()


def test_a_record_that_was_not_normalised_is_a_bug_that_keeps_nothing(runs, record) -> None:
    """RES-3: the run stops with its story instead of staying in limbo; a batch is kept whole or not at all."""
    journal = runs.create("r")
    with pytest.raises(Bug, match="record 1 was not normalised"):
        journal.append([record(0), record(1, "\ud800")])
    journal.append([record(0), record(1)])
    journal.close()
    assert runs.read("r").records == [record(0), record(1)]


def test_a_record_after_the_end_is_a_bug(runs, record) -> None:
    """Nobody writes without the lock."""
    journal = runs.create("r")
    journal.close()
    with pytest.raises(Bug, match="after its journal was closed"):
        journal.append([record(0)])


def test_a_run_is_created_once(runs, record) -> None:
    """A second run of the same id never mixes with the first."""
    journal = runs.create("r")
    journal.append([record(0)])
    journal.close()
    with pytest.raises(JournalError, match="there is a run r already"):
        runs.create("r")


def test_an_unknown_run_is_refused(runs) -> None:
    """Reading, resuming and asking name the run that isn't there."""
    for ask in (runs.read, runs.reopen, runs.inbox):
        with pytest.raises(JournalError, match="there is no run nope"):
            ask("nope")


def test_ids_are_sorted(runs, record) -> None:
    """Every run is listed."""
    assert runs.ids() == []
    for name in ("b", "a"):
        runs.create(name).close()
    assert runs.ids() == ["a", "b"]


BAD_IDS = ["", ".", "..", "../x", "a/b", "/etc", "a\x00b", "a b", ".hidden", "a\n", "é", "x" * 129]


@pytest.mark.parametrize("run_id", BAD_IDS)
def test_an_id_that_is_no_plain_name_is_refused(runs, run_id: str) -> None:
    """No run id leads out of the folder of runs."""
    for ask in (runs.create, runs.read, runs.reopen, runs.blobs, runs.inbox):
        with pytest.raises(UsageError, match="can't be a run id"):
            ask(run_id)


@pytest.mark.parametrize("run_id", ["a", "A-1_b.c", "-", "x" * 128])
def test_a_plain_name_is_a_run_id(run_id: str) -> None:
    """Letters, digits, dot, underscore and dash."""
    assert check_run_id(run_id) == run_id


def test_a_large_value_is_kept_apart_and_comes_back(runs) -> None:
    """BIG-1: every byte can be had; the record holds a reference with size and preview."""
    journal = runs.create("r")
    large = {"text": "é" * BLOB_BYTES}
    kept = journal.blobs.put(large)
    assert set(kept) == {"$blob", "bytes", "preview"}
    assert kept["bytes"] == BLOB_BYTES * 2 + len('{"text":""}')
    assert kept["preview"].startswith('{"text":"éé')
    assert len(kept["preview"]) == 1000
    assert journal.blobs.get(kept) == large
    assert runs.blobs("r").get(kept) == large
    journal.close()


def test_an_output_of_20_megabytes_comes_back(runs, record) -> None:
    """BIG-1: a plan may allow more than the default; the journal doesn't judge it again."""
    journal = runs.create("r")
    journal.append([record(0), record(1, "é" * 10_000_000)], sync=True)
    journal.close()
    assert runs.read("r").records == [record(0), record(1, "é" * 10_000_000)]
    assert len(b"".join(runs.lines("r"))) < 10_000
    again = runs.reopen("r")
    assert again.records[1] == record(1, "é" * 10_000_000)
    again.close()


def test_a_value_up_to_the_limit_stays_where_it_is(runs) -> None:
    """256 KiB of JSON is not yet large; one more byte is."""
    journal = runs.create("r")
    small = "x" * (BLOB_BYTES - 2)
    assert journal.blobs.put(small) is small
    assert is_reference(journal.blobs.put(small + "x"))
    assert journal.blobs.get(small) is small
    journal.close()


def test_a_reference_to_nothing_is_an_error(runs) -> None:
    """What a hostile output claims to be a large value is not there; a path is no reference at all."""
    journal = runs.create("r")
    with pytest.raises(JournalError):
        journal.blobs.get({"$blob": "sha256:" + "0" * 64})
    traversal = {"$blob": "sha256:../../../etc/passwd"}
    assert journal.blobs.get(traversal) is traversal
    journal.close()


def inbox_of(runs, record) -> Inbox:
    """The inbox of a run that nobody is running."""
    journal = runs.create("r")
    journal.append([record(0)])
    journal.close()
    return runs.inbox("r")


def test_requests_come_in_their_order_until_they_are_done(runs, record) -> None:
    """`answer` and `cancel` reach a run whether or not it is running; each once."""
    inbox = inbox_of(runs, record)
    first = inbox.put(AnswerGiven(step="ask", text="yes", by="ann"))
    second = inbox.put(CancelAsked(by="bob"))
    assert inbox.take() == [
        AnswerGiven(step="ask", text="yes", by="ann", request=first),
        CancelAsked(by="bob", request=second),
    ]
    inbox.done(first)
    assert [one.request for one in inbox.take()] == [second]


def test_a_request_that_the_journal_holds_is_not_taken_again(runs, record) -> None:
    """A host that crashed between journaling and removing: a cancel isn't counted twice."""
    inbox = inbox_of(runs, record)
    seen = inbox.put(CancelAsked())
    assert inbox.take(seen=[seen]) == []


def test_a_request_is_plain_text(runs, record) -> None:
    """UNI-1: what a terminal sends that is no UTF-8 arrives by the same rule as any output."""
    inbox = inbox_of(runs, record)
    inbox.put(AnswerGiven(step="ask", text="caf\udce9"))
    assert inbox.take()[0].text == "caf\ufffd"


def test_a_request_that_is_too_large_is_refused(runs, record) -> None:
    """Law 2: every size has a limit."""
    inbox = inbox_of(runs, record)
    with pytest.raises(JournalError, match="more than the limit of 1048576"):
        inbox.put(AnswerGiven(step="ask", text="x" * 2**20))


@pytest.mark.parametrize("place", ["disk", "tables"])
def test_the_journal_of_another_run_is_refused(place: str, record, request: pytest.FixtureRequest) -> None:
    """As a copy within the folder is: two that go on with the same run do everything twice."""
    runs = request.getfixturevalue(place)
    journal = runs.create("r.copy")
    journal.append([record(0)])
    journal.close()
    for use in (runs.read, runs.reopen):
        with pytest.raises(JournalError, match="is the journal of run r$"):
            use("r.copy")
