"""What calls share though they are of several runs or on several workers: slots of a run and its children, places of a
worker, turns under a rate limit, breakers.
"""

from __future__ import annotations

import http.server
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.engines.world import HEAD, World
from tests.servers import faulty
from tests.servers.faulty import FaultyServer

from gonogo import app
from gonogo.app.engines import submit_run
from gonogo.app.options import Start

pytestmark = [pytest.mark.slow, pytest.mark.long]

MARKED = 'exec: "echo + >> at; sleep 0.3; echo - >> at"'
ITEMS = 'type: script, forEach: true, forEach_concurrency: 10, content: "return [1,2,3,4,5,6]"'
CHILD = f"""{HEAD}id: kid
steps:
  list: {{{ITEMS}}}
  each: {{type: command, depends_on: [list], {MARKED}}}
  alone: {{type: command, {MARKED}}}
"""
PARENT = f"""{HEAD}imports: [kid.yaml]
max_parallelism: 2
steps:
  k1: {{type: workflow, workflow: kid}}
  k2: {{type: workflow, workflow: kid}}
  list: {{{ITEMS}}}
  each: {{type: command, depends_on: [list], {MARKED}}}
"""
HELD = f"""
  list: {{{ITEMS}}}
  far:
    type: command
    depends_on: [list]
    runs_on: far
    exec: "echo + >> far; echo + >> at; while [ ! -e go ]; do sleep 0.05; done; echo - >> at"
"""
"""Items that end when the test says so."""
LATE_KID = f"""{HEAD}imports: [kid.yaml]
max_parallelism: 2
steps:
  before: {{type: command, exec: "sleep 1"}}
  kid: {{type: workflow, workflow: kid, depends_on: [before]}}"""
"""Its parent's items are first."""
EARLY_KID = f"""{HEAD}imports: [kid.yaml]
max_parallelism: 2
steps:
  before: {{type: command, exec: "sleep 1"}}
  kid: {{type: workflow, workflow: kid}}
  far: {{type: command, depends_on: [before], runs_on: far, exec: "echo + >> at; echo - >> at"}}
"""
"""Its child's are; its own call waits for them."""
ONE = f"steps:\n  one: {{type: command, {MARKED}}}\n"


def most_at_once(here: World) -> int:
    """Of the commands that said when they began and ended."""
    most = now = 0
    for line in here.lines("at"):
        now += 1 if line == "+" else -1
        most = max(most, now)
    return most


def steps_under_way(here: World, run_id: str) -> set[str]:
    """Those whose calls were started, and didn't end."""
    state = here.state(run_id)
    return {node.step for node in state.calls.values()} if state is not None else set()


def verdict(here: World, run_id: str) -> str:
    """The run's, once it is over."""
    finished = here.ended(run_id).finished
    assert finished is not None
    return finished.verdict


def family(here: World, kid: str = CHILD, parent: str = PARENT) -> str:
    """Two child runs with lists beside a list of their parent, or others; the parent's id."""
    (here.folder / "kid.yaml").write_text(kid)
    (here.folder / "parent.yaml").write_text(parent)
    plan = app.load(str(here.folder / "parent.yaml")).plan
    return submit_run(plan, Start(), here.options, here.carrier)


def test_a_run_and_its_children_share_their_slots_wherever_their_calls_are(here: World) -> None:
    """A slot is held by who performs a call, and by nobody who only waits for a child."""
    here.worker()
    here.starting()
    assert verdict(here, family(here)) == "GO"
    assert len(here.lines("at")) == 2 * (6 + 2 * 7)
    assert most_at_once(here) == 2


def test_a_child_run_goes_on_where_its_worker_has_one_place(here: World) -> None:
    """Its parent holds none."""
    here.worker("--calls", "1")
    assert verdict(here, family(here)) == "GO"
    assert most_at_once(here) == 1


@pytest.mark.parametrize(
    ("parent", "calls"), [(LATE_KID + HELD, 12), (EARLY_KID, 7)], ids=["parents", "childs"]
)
def test_slots_of_calls_that_outlive_their_runs_host_are_held_for_the_next_one(
    here: World, parent: str, calls: int
) -> None:
    """The worker that has the family is killed while another one performs two of its calls: no third is begun."""
    first = here.worker()
    run_id = family(here, f"{HEAD}id: kid\nsteps:{HELD}", parent)
    here.wait(lambda: here.host(run_id) == first.pid, "the run's host")
    here.worker("--label", "far")
    here.wait(lambda: here.lines("far") == ["+", "+"], "two calls elsewhere")
    here.wait(lambda: "far" in steps_under_way(here, run_id), "its own, which have slots or wait for them")
    first.kill()
    here.wait(lambda: here.host(run_id) != first.pid, "the run's next host")
    assert verdict(here, here.submit("steps:\n  a: {type: command, runs_on: far, exec: 'true'}\n")) == "GO"
    assert here.lines("at") == ["+", "+"]
    (here.folder / "go").touch()
    assert verdict(here, run_id) == "GO"
    assert len(here.lines("at")) == 2 * calls
    assert most_at_once(here) == 2


def test_calls_of_a_workers_own_runs_take_places_as_those_from_queues_do(here: World) -> None:
    """`--calls` bounds what a worker does to the world, whoever asks for it."""
    here.worker("--calls", "2")
    runs = [here.submit(ONE) for _ in range(6)]
    runs.append(
        here.submit(f"steps:\n  list: {{{ITEMS}}}\n  each: {{type: command, depends_on: [list], {MARKED}}}\n")
    )
    assert {verdict(here, run_id) for run_id in runs} == {"GO"}
    assert len(here.lines("at")) == 2 * 12
    assert most_at_once(here) == 2


def test_labels_of_a_worker_share_its_places(here: World) -> None:
    """Each has a queue, but there is one machine."""
    here.worker("--calls", "1", "--label", "a", "--label", "b")
    steps = "".join(
        f"  {name}: {{type: command, runs_on: {name[0]}, {MARKED}}}\n" for name in ("a1", "b1", "a2", "b2")
    )
    assert verdict(here, here.submit(f"max_parallelism: 9\nsteps:\n{steps}{ONE[7:]}")) == "GO"
    assert most_at_once(here) == 1


def test_calls_that_wait_for_a_place_are_other_workers_when_their_own_is_told_to_end(here: World) -> None:
    """They haven't begun, so nobody need be asked what became of them."""
    first = here.worker("--calls", "1")
    step = "{type: command, mutates: true, exec: 'echo + >> began; while [ ! -e go ]; do sleep 0.05; done'}"
    runs = [here.submit(f"steps:\n  one: {step}\n") for _ in range(3)]

    def have_all_begun() -> bool:
        return all((state := here.state(run_id)) is not None and bool(state.calls) for run_id in runs)

    here.wait(have_all_begun, "the calls")
    here.wait(lambda: len(here.lines("began")) == 1, "the first of them")
    here.worker()
    first.send_signal(signal.SIGTERM)
    here.wait(lambda: len(here.lines("began")) == 3, "the others")
    (here.folder / "go").touch()
    assert {verdict(here, run_id) for run_id in runs} == {"GO"}
    assert len(here.lines("began")) == 3


# --- turns


@contextmanager
def far_side() -> Iterator[tuple[str, list[str]]]:
    """Its address, and what it was asked for."""
    paths: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            paths.append(self.path)
            self.send_response(200)
            self.send_header("content-length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_: object) -> None:
            """Not a word."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/", paths
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


PACED = """
  list: {{type: script, forEach: true, forEach_concurrency: 9, content: "return [1,2,3,4,5,6,7,8,9]"}}
  each:
    type: http_client
    depends_on: [list]
    url: "{url}{{{{ item }}}}"
    allow_private: true
    timeout: 3s
    rate_limit: {{requests: 2, per: day, key: api}}
"""


def test_a_run_and_its_children_take_turns_under_a_rate_limit_whichever_worker_calls(here: World) -> None:
    """The third turn is due tomorrow."""
    for _ in range(2):
        here.starting()
    here.worker()
    with far_side() as (url, paths):
        paced = PACED.format(url=url)
        (here.folder / "kid.yaml").write_text(f"{HEAD}id: kid\nsteps:{paced}")
        head = (
            f"{HEAD}imports: [kid.yaml]\nmax_parallelism: 9\nsteps:\n  kid: {{type: workflow, workflow: kid}}"
        )
        (here.folder / "parent.yaml").write_text(head + paced)
        plan = app.load(str(here.folder / "parent.yaml")).plan
        assert verdict(here, submit_run(plan, Start(), here.options, here.carrier)) == "NO-GO"
        assert len(paths) == 2


# --- what is known of targets

BROKEN = """
steps:
  one:
    type: http_client
    runs_on: LABEL
    url: URL
    allow_private: true
    reliability:
      bounds: {attempts_per_target: 1, deadline_s: 20}
      breaker: {failures: 1, shared: SHARED}
"""


@pytest.mark.parametrize(("shared", "calls"), [("strict", 1), ("advisory", 2)])
def test_a_breaker_that_one_worker_opened_holds_on_another(here: World, shared: str, calls: int) -> None:
    """B37: at once where it is strict; else each worker finds out for itself, once."""
    with FaultyServer(faulty.answer(503, b"busy")) as far:
        text = BROKEN.replace("URL", far.url).replace("SHARED", shared)
        here.worker("--label", "a")
        here.worker("--label", "b")
        kinds = []
        for label in "abab":
            fault = here.ended(here.submit(text.replace("LABEL", label))).nodes["one"][""].fault
            kinds.append(fault.kind if fault is not None else None)
        assert kinds == ["http.status"] * calls + ["gate.circuit-open"] * (4 - calls)
        assert far.connections == calls
