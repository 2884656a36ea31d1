"""How mutants are tried: in children, by what runs their lines, until the first trial fails."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gonogo.core.fault_events import NAMES_MAX, _named
from gonogo.core.faults import Fault
from tools.mutants import survivors
from tools.mutants.running import Bench, Trial, fates, load, watch


def transient() -> bool:
    """True as long as the property is what it says."""
    return Fault("k", "transient", "r", "m").transient and not Fault("k", "bug", "r", "m").transient


def bench(*trials: Trial, modules: tuple[str, ...]) -> Bench:
    """Trials, watched on the code as it is."""
    return Bench(list(zip(trials, watch(trials, modules), strict=True)), (), 0)


def fates_of(module: str, top: str, *trials: Trial) -> dict[str, str | None]:
    """What kills the mutants of one function or class."""
    mutants = [pair for pair in load([module]) if pair[1].name.startswith(f"`{top}`")]
    return {
        fate.mutant.name.partition(": ")[2]: fate.killed_by
        for fate in fates(mutants, bench(*trials, modules=(module,)), jobs=2)
    }


def test_a_mutant_dies_by_the_first_trial_that_fails() -> None:
    """In a child: this process keeps the code it has."""
    found = fates_of("faults", "Fault.transient", Trial("idle", lambda: True), Trial("looks", transient))
    assert found
    assert set(found.values()) == {"looks"}
    assert transient()


def test_what_no_trial_runs_lives() -> None:
    """Nothing is tried that can't notice."""
    found = fates_of("faults", "Fault.transient", Trial("idle", lambda: True))
    assert set(found.values()) == {None}


def test_a_mutant_that_breaks_the_trial_itself_is_noticed() -> None:
    """An error is a failure, and so is the end of the process."""
    found = fates_of("fault_events", "_named", Trial("raises", lambda: _named("a", ["b"])["a"] == ["b"]))
    assert "raises" in found.values()
    dies = fates_of("faults", "Fault.transient", Trial("ends", lambda: transient() or os._exit(3)))
    assert set(dies.values()) == {"it can't be loaded"}


def test_a_changed_constant_is_changed_wherever_it_was_imported() -> None:
    """Also under the names that other modules gave it a home in."""
    found = fates_of(
        "fault_events",
        "NAMES_MAX",
        Trial("cuts", lambda: len(_named("a", ["b"] * 60)["a"]) == NAMES_MAX == 50),
    )
    assert found == {"`50` → `51` in `NAMES_MAX = 50`": "cuts"}


def test_a_trial_that_fails_anyway_is_seen() -> None:
    """The command refuses to start then."""
    assert [one.passes for one in watch([Trial("no", lambda: False)], ["faults"])] == [False]


def test_the_list_of_survivors_has_a_reason_for_each(tmp_path: Path) -> None:
    """Bullets share the reason beneath them."""
    path = tmp_path / "survivors.md"
    path.write_text(
        "# Title\n\nprose\n\n## budgets.py\n\n- `f`: `a` → `b`\n- `g`: `a` → `b`\n\n  Both are the same.\n"
    )
    assert survivors.known(path) == {
        ("budgets", "`f`: `a` → `b`"): "Both are the same.",
        ("budgets", "`g`: `a` → `b`"): "Both are the same.",
    }
    path.write_text("## budgets.py\n- `f`: `a` → `b`\n")
    with pytest.raises(ValueError, match="gives no reason"):
        survivors.known(path)


def test_the_repositorys_own_list_can_be_read() -> None:
    """Every survivor has its reason."""
    assert all(survivors.known().values())
