"""`gonogo show RUN --metrics`: text for Prometheus, data for programs, files for collectors."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.conftest import Gonogo, write
from tests.exposition import read

STEPS = """
flaky:
  type: script
  content: throw new Error('busy')
  on_fail: { retry: { max: 2 } }
behind: { type: noop, depends_on: flaky }
"""


@pytest.fixture
def ran(gonogo: Gonogo, tmp_path: Path) -> Gonogo:
    """A run in which a step failed three times."""
    write(tmp_path, STEPS)
    assert gonogo("run", "-q").code == 1
    return gonogo


def test_metrics_are_told_as_prometheus_reads_them(ran: Gonogo) -> None:
    """G17: a strict reader of the format reads the figures of the run."""
    shown = ran("show", "last", "--metrics")
    samples = read(shown.out)
    assert shown.code == 0
    assert samples["gonogo_retries_total"] == [({"step": "flaky", "class": "transient"}, 2)]
    assert samples["gonogo_faults_total"] == [
        ({"step": "flaky", "kind": "script.error", "class": "transient"}, 3)
    ]
    assert samples["gonogo_skips_total"] == [({"step": "behind", "reason": "dependency_failed"}, 1)]
    [(labels, one)] = samples["gonogo_run_info"]
    assert (labels["verdict"], one) == ("NO-GO", 1)


def test_metrics_are_in_the_json_report_and_alone(ran: Gonogo) -> None:
    """The same figures, whichever way they are asked for."""
    alone = ran("show", "last", "--metrics", "--format", "json").json
    assert ran("show", "last", "--format", "json").json["metrics"] == alone
    assert alone["gonogo_calls_total"] == [{"labels": {"step": "flaky"}, "value": 3}]


def test_metrics_go_into_a_file_whole(ran: Gonogo, tmp_path: Path) -> None:
    """As a textfile collector wants it: written beside and put in place."""
    told = ran("show", "last", "--metrics", "--out", "metrics/gonogo.prom")
    assert (told.code, told.out) == (0, "")
    assert "gonogo_calls_total" in read((tmp_path / "metrics" / "gonogo.prom").read_text())
    assert [path.name for path in (tmp_path / "metrics").iterdir()] == ["gonogo.prom"]


@pytest.mark.parametrize("more", [("--records",), ("--format", "markdown")])
def test_what_has_no_meaning_together_is_refused(ran: Gonogo, more: tuple[str, ...]) -> None:
    """Exit code 2, nothing on stdout."""
    refused = ran("show", "last", "--metrics", *more)
    assert (refused.code, refused.out) == (2, "")
    assert "metrics" in refused.err
