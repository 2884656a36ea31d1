"""`gonogo resume --due`: goes on with all runs whose timers fell due while nobody was there, as cron would have it."""

from __future__ import annotations

from collections.abc import Mapping

from gonogo.cli.session import Place, Session


def wake_all(session: Session, runs_dir: Place, env: Mapping[str, str]) -> int:
    """Go on with each, and print its line; 0, or the exit code of the first that can't go on."""
    from gonogo.app import Options, due_runs, waiting_runs

    due = due_runs(waiting_runs(Options(runs=runs_dir)))
    if not due:
        session.output.say("no run is due")
        return 0
    codes = [_wake(session, runs_dir, run_id, env) for run_id in due]
    return next((code for code in codes if code), 0)


def _wake(session: Session, runs_dir: Place, run_id: str, env: Mapping[str, str]) -> int:
    """A run that somebody else has is in good hands."""
    from gonogo.app import Options, list_runs, wake_run
    from gonogo.app.looking import with_waits
    from gonogo.app.options import opened
    from gonogo.cli.listing import rows
    from gonogo.cli.running import hosted
    from gonogo.errors import GonogoError, RunLocked

    try:
        hosted(session, runs_dir, lambda chosen: wake_run(run_id, chosen), env=env)
    except RunLocked:
        session.output.say(f"another process goes on with {run_id}")
        return 0
    except GonogoError as problem:
        session.output.complain(f"{run_id} can't go on: {problem.message}")
        return problem.exit_code
    style = session.output.style()
    with opened(Options(runs=runs_dir)) as (runs, place):
        for one in list_runs(place, [run_id]):
            told = with_waits(runs, one)
            session.output.result("\n".join(rows(told, style, questions=True)) + "\n")
    return 0
