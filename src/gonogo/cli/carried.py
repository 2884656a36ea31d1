"""Following a run that an engine's workers carry, as if it ran here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gonogo.cli.session import Session

if TYPE_CHECKING:
    from gonogo.app.again import Wish
    from gonogo.cli.session import Place


def followed(
    session: Session, runs_dir: Place, run_id: str, notes: tuple[str, ...] = (), *, known: int = -1
) -> int:
    """Show progress until the run is over or waits for somebody, then its report; the run's exit code. What the first
    `known` records say of that is past.

    Raises Interrupted on Ctrl-C, which leaves the run to its workers.
    """
    from gonogo.app import Options
    from gonogo.app.engines import followed as follow
    from gonogo.cli.progress import progress_for
    from gonogo.cli.running import print_report

    progress = progress_for(session.output)
    sinks: tuple[Any, ...] = (progress.see,)
    with progress:
        follow(run_id, Options(runs=runs_dir, sinks=sinks), known)
    return print_report(session, runs_dir, run_id, notes)


def carried_on(session: Session, runs_dir: Place, run_id: str, wish: Wish | None = None) -> int | None:
    """Have the workers of its engine go on with a run, be it for a wish, and follow it; None when no engine carries it.

    Raises EngineError, Interrupted, and for a wish as `run_again_from`.
    """
    from gonogo.app import Options
    from gonogo.app.again import hand_over_wish
    from gonogo.app.engines import carrier_of, hand_on, has_started, start_of
    from gonogo.app.options import runs_in

    place = Options(runs=runs_dir)
    runs = runs_in(place)
    carrier = carrier_of(start_of(runs, run_id))
    if carrier is None:
        return None
    known = sum(1 for _ in runs.records(run_id)) - 1 if has_started(runs, run_id) else -1
    if wish is None:
        hand_on(run_id, carrier, place, reopens=True)
    else:
        hand_over_wish(run_id, wish, place)
    session.output.say(f"run {run_id} is with {carrier.name}")
    return followed(session, runs_dir, run_id, known=known)
