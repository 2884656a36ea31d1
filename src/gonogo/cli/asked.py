"""What `answer` and `cancel` share: asking something of a run, and saying what became of that."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from gonogo.cli.session import Place, Session

if TYPE_CHECKING:
    from gonogo.app import Options, RunResult
    from gonogo.app.requests import Asked


def hosted_asking(
    session: Session, runs_dir: Place, ask: Callable[[Options], Coroutine[Any, Any, Asked]]
) -> Asked:
    """Ask it, with progress on stderr where the run goes on here."""
    from gonogo.app.running import blocking
    from gonogo.cli.running import hosted

    found: list[Asked] = []

    def work(chosen: Options) -> RunResult | None:
        found.append(blocking(lambda: ask(chosen)))
        return found[0].result

    hosted(session, runs_dir, work)
    return found[0]


def left_with(session: Session, asked: Asked, what: str) -> None:
    """Say who goes on with the run, and how far it is. That nobody could be told for now even `-q` doesn't silence."""
    output = session.output
    if asked.away is not None:
        when = f"once {asked.carrier} can be reached again" if asked.carrier else "once its store is back"
        output.complain(
            f"{what} is kept with run {asked.run_id}, which takes it up by itself {when}: {asked.away.message}"
        )
    elif asked.carrier:
        state = "is taken" if asked.is_taken else "is left with the run"
        output.say(f"{what} {state}; the workers of {asked.carrier} go on with run {asked.run_id}")
    else:
        output.say(f"{what} is left with the run; the process that runs it takes it up")
    for told in asked.so_far:
        output.say(told)
