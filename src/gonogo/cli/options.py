"""Options that several verbs share, and the parsing of `K=V`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from gonogo.cli.session import DEFAULT_RUNS_DIR, Place, Session
from gonogo.errors import UsageError
from gonogo.journal.postgres.address import Address
from gonogo.journal.redact import STORE

F = TypeVar("F", bound=Callable[..., Any])
PATH = click.Path(path_type=Path)
REPORTS = ("table", "json", "markdown", "sarif", "junit", "github")


def _on_output(name: str) -> Callable[[click.Context, click.Parameter, bool], None]:
    def callback(context: click.Context, _: click.Parameter, wanted: bool) -> None:
        if wanted and isinstance(context.obj, Session):
            setattr(context.obj.output, name, True)

    return callback


def _flag(*names: str, help_text: str) -> Callable[[F], F]:
    attribute = names[-1].lstrip("-").replace("-", "_")
    return click.option(
        *names,
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_on_output(attribute),
        help=help_text,
    )


config_argument: Callable[[F], F] = click.argument("config", required=False, type=PATH)
run_argument: Callable[[F], F] = click.argument("run", metavar="RUN")
no_color: Callable[[F], F] = _flag(
    "--no-color", help_text="No colours; NO_COLOR in the environment does the same."
)
quiet: Callable[[F], F] = _flag("-q", "--quiet", help_text="No progress on stderr.")
verbose: Callable[[F], F] = _flag("-v", "--verbose", help_text="Every event as a line on stderr.")
verbose_worker: Callable[[F], F] = _flag(
    "-v",
    "--verbose",
    help_text="Each run and call it takes as a line on stderr, too, and more of its libraries.",
)
_in_folder: Callable[[F], F] = click.option(
    "--runs-dir",
    type=PATH,
    default=DEFAULT_RUNS_DIR,
    metavar="DIR",
    help=f"Where the journals are; {DEFAULT_RUNS_DIR} if not given.",
)
_in_postgres: Callable[[F], F] = click.option(
    "--store",
    metavar="URL",
    help=f"Where the journals are instead: postgresql://…; {STORE} in the environment does the same.",
)
safety: Callable[[F], F] = click.option(
    "--safety",
    type=click.Choice(("off", "standard", "strict")),
    help="How careful to be; strict turns warnings into errors.",
)
event_options: tuple[Callable[[Any], Any], ...] = (
    click.option("--event", metavar="NAME", help="What happened: pr_opened, manual, …; all for no event."),
    click.option(
        "--payload", type=PATH, metavar="FILE", help="The event's body, in the shape of GitHub's webhooks."
    ),
    click.option("--base", metavar="REF", help="The changed files are those that differ from here."),
    click.option(
        "--tags", multiple=True, metavar="TAGS", help="Only steps with one of these tags, and untagged ones."
    ),
    click.option("--exclude-tags", multiple=True, metavar="TAGS", help="No steps with one of these tags."),
    click.option(
        "-s",
        "--step",
        "steps",
        multiple=True,
        metavar="NAME",
        help="Only this step and what it depends on; repeatable.",
    ),
)


def runs_dir(function: Callable[..., Any]) -> Callable[..., Any]:
    """`--runs-dir` and `--store`, as one argument `runs_dir` that is the place chosen."""

    @wraps(function)
    def chosen(*arguments: Any, runs_dir: Path, store: str | None, **given: Any) -> Any:
        return function(*arguments, runs_dir=_place(runs_dir, store), **given)

    return _in_folder(_in_postgres(chosen))


def store(function: Callable[..., Any]) -> Callable[..., Any]:
    """`--store` alone, as the argument `store`, for what takes no folder."""

    @wraps(function)
    def chosen(*arguments: Any, store: str | None, **given: Any) -> Any:
        session: Session = click.get_current_context().obj
        url = store if store is not None else session.environment.get(STORE)
        if not url:
            raise UsageError(
                "which runs? those of a store", advice=f"give --store postgresql://…, or set {STORE}"
            )
        return function(*arguments, store=_address(session, url), **given)

    return _in_postgres(chosen)


def _place(runs_dir: Path, store: str | None) -> Place:
    """What was said wins over the environment. Raises UsageError."""
    context = click.get_current_context()
    session: Session = context.obj
    if context.get_parameter_source("runs_dir") is ParameterSource.COMMANDLINE:
        if store is not None:
            raise UsageError("--runs-dir and --store exclude each other", advice="name one place")
        return runs_dir
    url = store if store is not None else session.environment.get(STORE)
    if not url:
        return runs_dir
    return _address(session, url)


def _address(session: Session, url: str) -> Address:
    """Its passwords are secrets of this command."""
    address = Address(url)
    session.secrets |= {f"{STORE} {number}": secret for number, secret in enumerate(address.secrets)}
    return address


def engine(function: F) -> F:
    """`--engine`, and where it is: `--url`, `--queue`."""
    names = click.option(
        "--engine", type=click.Choice(("dbos", "temporal")), metavar="NAME", help="dbos or temporal."
    )
    url = click.option("--url", default="", metavar="HOST:PORT", help="Where the Temporal server is.")
    queue = click.option(
        "--queue", default="", metavar="NAME", help="Temporal's task queue; one of the store's own."
    )
    return names(url(queue(function)))


def check_where(engine: str | None, url: str, queue: str) -> None:
    """DBOS is in the store: what says where Temporal is would be believed and not heeded. Raises UsageError."""
    if engine == "dbos" and (url or queue):
        raise UsageError(
            f"{'--url' if url else '--queue'} says where Temporal is, and dbos is in the store",
            advice="leave it out, or give --engine temporal",
        )


def seconds(text: str, option: str) -> float:
    """A duration like 30s, 10m, 1h. Raises UsageError."""
    from gonogo.config.schema.base import limit_s

    try:
        return float(limit_s(text))
    except ValueError as problem:
        raise UsageError(f"{option}: {problem}") from problem


def output_given(text: str, what: str, example: str) -> Any:
    """An output that a person gives as JSON. `what` it is and an `example` of a text are for who gave none. Raises
    UsageError.
    """
    import msgspec

    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError) as problem:
        raise UsageError(
            f"{what} is no JSON: {problem}", advice=f"a text needs quotes: {example}"
        ) from problem


def format_option(*names: str) -> Callable[[F], F]:
    """`--format` with these values, the first if not given."""
    return click.option(
        "--format", "format_name", type=click.Choice(names), default=names[0], help="How to print it."
    )


def about_the_event(function: F) -> F:
    """The options that say what a run is about."""
    for option in reversed(event_options):
        function = option(function)
    return function


def pairs(values: Iterable[str], option: str) -> dict[str, str]:
    """`K=V` texts as a mapping, the last of a name wins. Raises UsageError."""
    found = {}
    for value in values:
        name, equals, text = value.partition("=")
        if not equals or not name:
            raise UsageError(f"{option} takes NAME=VALUE, not {value!r}")
        found[name] = text
    return found


def words(values: Iterable[str]) -> tuple[str, ...]:
    """Comma-separated and repeated values as one list, in order, each once."""
    found = (word.strip() for value in values for word in value.split(","))
    return tuple(dict.fromkeys(word for word in found if word))


def reports(function: F) -> F:
    """`--format` and `--out` of verbs that print a run; which file belongs to which format tells
    `session.destinations`.
    """
    out = click.option(
        "-o",
        "--out",
        "files",
        multiple=True,
        expose_value=False,
        metavar="FILE",
        help="Write the result there; belongs to the --format before it.",
    )
    kind = click.option(
        "--format",
        "formats",
        type=click.Choice(REPORTS),
        multiple=True,
        expose_value=False,
        help="How to print the result; repeatable.",
    )
    return kind(out(function))
