"""Runs a command line, and is the one place where errors end: message and next step on stderr, the exit code of
the error's kind, and for a program that asked for JSON one error object on stdout.
"""

from __future__ import annotations

import errno
from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

import click

from gonogo import errors
from gonogo.cli.group import Verbs
from gonogo.cli.session import Session

_SHORTAGES = frozenset(
    {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
)
_CODES = MappingProxyType(
    {
        errors.UsageError: "usage",
        errors.ConfigError: "config",
        errors.JournalError: "journal",
        errors.RunLocked: "locked",
        errors.EngineError: "engine",
        errors.SetAside: "aside",
        errors.SandboxError: "sandbox",
        errors.Interrupted: "interrupted",
    }
)


def run(arguments: Sequence[str], session: Session | None = None) -> int:
    """Runs the command line and gives its exit code. Raises nothing."""
    session = session or Session.of_process(arguments)
    try:
        code = Verbs().main(args=list(arguments), prog_name="gonogo", standalone_mode=False, obj=session)
        return code if isinstance(code, int) else 0
    except KeyboardInterrupt:
        return _interrupted(session)
    except click.Abort as error:
        # Click says the same of the end of an input, which nobody asked for here.
        cause = error.__cause__
        return _bug(session, cause) if isinstance(cause, EOFError) else _interrupted(session)
    except click.ClickException as error:
        return _usage(session, error)
    except errors.ConfigError as error:
        return _config(session, error)
    except errors.Bug as error:
        return _bug(session, error)
    except errors.GonogoError as error:
        return _end(session, _CODES.get(type(error), "bug"), error.message, error.advice, error.exit_code)
    except Exception as error:  # noqa: BLE001 - the last place: nothing may end in a traceback on the screen
        return _shortage(session, error) if is_shortage(error) else _bug(session, error)


def _interrupted(session: Session) -> int:
    return _end(session, "interrupted", "interrupted", None, errors.Interrupted.exit_code)


def _end(session: Session, code: str, message: str, advice: str | None, exit_code: int, **more: Any) -> int:
    """Tell it, in the way that was asked for."""
    session.output.complain(f"gonogo: {message}")
    if advice:
        session.output.complain(f"  {advice}")
    _error_object(session, code, message, advice, exit_code, **more)
    return exit_code


def _error_object(
    session: Session, code: str, message: str, advice: str | None, exit_code: int, **more: Any
) -> None:
    if not session.wants_json:
        return
    from gonogo.report.formats import json_text

    error = {"code": code, "message": message, "advice": advice, "problems": [], **more}
    session.output.result(
        json_text({"error": error, "exit_code": exit_code}, unicode=session.output.style().unicode)
    )


def _usage(session: Session, error: click.ClickException) -> int:
    context = getattr(error, "ctx", None)
    if isinstance(error, click.NoSuchOption) and error.possibilities:
        advice = f"did you mean {', '.join(sorted(error.possibilities))}?"
    elif context is not None:
        advice = f"see: {context.command_path} --help"
    else:
        advice = None
    message = getattr(error, "message", None) or error.format_message()
    if isinstance(error, click.BadParameter):
        message = error.format_message()
    message = message[:1].lower() + message[1:]
    return _end(session, "usage", message.rstrip("."), advice, errors.UsageError.exit_code)


def _config(session: Session, error: errors.ConfigError) -> int:
    from gonogo.cli.problems import problems_text
    from gonogo.config.problems import data_of

    session.output.complain(problems_text(error.problems, session.output.side_style()))
    if error.advice:
        session.output.complain(f"  {error.advice}")
    more = {"problems": data_of(error.problems)}
    _error_object(session, "config", error.message, error.advice, error.exit_code, **more)
    return error.exit_code


def is_shortage(error: Exception) -> bool:
    """Whether the machine ran out of something, which is no bug of gonogo."""
    return isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno in _SHORTAGES)


def _shortage(session: Session, error: Exception) -> int:
    reason = getattr(error, "strerror", None) or "out of memory"
    begun = session.journal is not None
    advice = "make room, then go on with 'gonogo resume last'" if begun else "make room, then try again"
    message = f"the machine can't give what gonogo needs: {reason}"
    return _end(session, "shortage", message, advice, errors.SandboxError.exit_code)


def _bug(session: Session, error: Exception) -> int:
    from gonogo.cli.crash import write_crash

    crash = write_crash(error, session)
    message = f"{crash.summary} (error {crash.id})"
    kept = (
        f"the details, values masked, are in {crash.path}" if crash.path else "the details can't be written"
    )
    journal = f"; attach the journal {session.journal}" if session.journal else ""
    advice = f"this is a bug in gonogo, please report it: {kept}{journal}"
    return _end(session, "bug", message, advice, errors.Bug.exit_code, error_id=crash.id)
