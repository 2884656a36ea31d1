"""Following a run that an engine's workers carry, as if it ran here."""

from __future__ import annotations

from collections.abc import Mapping
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
        follow(run_id, Options(runs=runs_dir, sinks=sinks, log=progress.log), known)
    return print_report(session, runs_dir, run_id, notes)


def carried_on(
    session: Session,
    runs_dir: Place,
    run_id: str,
    wish: Wish | None,
    env: Mapping[str, str],
    message: str | None,
) -> int | None:
    """Have the workers of its engine go on with a run, or the one around it, be it for a wish, and follow it; None when
    no engine carries it. `env` and `message`, which wouldn't reach them, are refused.

    Raises EngineError, UsageError, Interrupted, and for a wish as `run_again_from`.
    """
    from gonogo.app import Options
    from gonogo.app.again import hand_over_wish
    from gonogo.app.carried import carried_in, known_of, refuse_own
    from gonogo.app.engines import hand_on
    from gonogo.app.options import opened
    from gonogo.cli.running import over_already

    with opened(Options(runs=runs_dir)) as (runs, place):
        carried = carried_in(runs, run_id)
        if carried is None:
            return None
        refuse_own(carried, env, message)
        outermost = carried.run_id
        known = known_of(runs, outermost)
        if wish is not None:
            hand_over_wish(run_id, wish, carried, place)
        elif outermost != run_id and (
            over := over_already(session, runs_dir, outermost, unless_cancelled=True)
        ):
            return int(over.exit_code)
        else:
            hand_on(outermost, carried.carrier, place, reopens=True)
        session.output.say(f"run {outermost} is with {carried.carrier.name}")
    return followed(session, runs_dir, outermost, known=known)
