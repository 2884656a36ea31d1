"""Shows a run while it is under way, on stderr: a moving display on a terminal, a line an event elsewhere.

What is shown is folded from the records (`report/watching.py`). Printing never changes the run: the host drops
what a watcher raises.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

from gonogo.report.layout import brief, duration, plain
from gonogo.report.watching import Activity, Watch, log_lines

if TYPE_CHECKING:
    from gonogo.cli.output import Output
    from gonogo.hosts.base import LogLine
    from gonogo.journal.records import Record

ROWS_MAX = 8
DRAW_AFTER_S = 0.3
"""Shorter runs draw nothing, and don't wait for rich to be imported."""
REFRESHES_PER_S = 8
ITEMS_S = 5
"""A log says so often at most how far a list is, and only after another tenth of it."""
STILL_S = 60
"""After so long without news a log says what is under way: silence looks like a hang, and CI ends silent jobs."""
_LOG_LEVELS = ("info", "warn", "error")


class Progress(Protocol):
    """A way of showing progress; use it around the run."""

    def see(self, record: Record) -> None:
        """A record was written."""
        ...

    def log(self, line: LogLine) -> None:
        """A call says something."""
        ...

    def paused(self) -> Any:
        """A context in which the terminal is free, for a question."""
        ...

    def __enter__(self) -> Progress: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


def progress_for(output: Output) -> Progress:
    """Moving on a terminal, lines elsewhere or with `-v`, nothing but log lines with `-q`."""
    if output.quiet:
        return Lines(output, silent=True)
    if output.watched() and not output.verbose:
        return Moving(output)
    return Lines(output)


class Lines:
    """A line an event, and one for what is under way when there was none for a while."""

    def __init__(
        self, output: Output, *, silent: bool = False, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._output = output
        self._silent = silent
        self._clock = clock
        self._style = output.side_style()
        self._watch = Watch()
        self._seen_at = self._said_at = self._counted_at = clock()
        self._counted: dict[tuple[str, str], int] = {}
        self._pauses = 0
        self._over = threading.Event()

    def see(self, record: Record) -> None:
        """Print what is news."""
        if self._silent:
            return
        self._watch.see(record)
        self._seen_at = self._clock()
        lines = [
            f"{self._style.paint(plain(place), 'bold')}: {sentence}"
            for place, sentence in log_lines(record, everything=self._output.verbose)
        ]
        lines += self._items()
        if lines:
            self._say(record.event.at, lines)

    def _items(self) -> list[str]:
        """How far lists are that have come on since it was last told."""
        if self._seen_at - self._counted_at < ITEMS_S:
            return []
        self._counted_at = self._seen_at
        lists = {place: one for place, one in self._watch.active.items() if one.kind == "items"}
        self._counted = {place: self._counted.get(place, 0) for place in lists}
        news = [
            place for place, one in lists.items() if (one.done - self._counted[place]) * 10 >= one.total > 0
        ]
        self._counted |= {place: lists[place].done for place in news}
        return [items_text(lists[place]) for place in news]

    def _say(self, at_s: float, lines: list[str]) -> None:
        when = self._style.paint(f"{at_s:9.3f}", "dim")
        self._output.say("\n".join(f"{when}  {line}" for line in lines))
        self._said_at = self._clock()

    def still(self) -> None:
        """Print what is under way, if nothing was printed for long and nobody is being asked."""
        now = self._clock()
        active = list(self._watch.active.values())
        if now - self._said_at >= STILL_S and active and not self._pauses:
            now_s = self._watch.at_s + (now - self._seen_at)
            self._say(now_s, [still_text(active, now_s)])

    def _keep_telling(self) -> None:
        while not self._over.wait(STILL_S / 10):
            self.still()

    def log(self, line: LogLine) -> None:
        """Print what a call says; debug and progress only with `-v`."""
        if line.level in _LOG_LEVELS or self._output.verbose:
            self._output.say(log_text(line))

    @contextmanager
    def paused(self) -> Iterator[None]:
        """A question isn't interrupted."""
        self._pauses += 1
        try:
            yield
        finally:
            self._pauses -= 1

    def __enter__(self) -> Lines:
        if not self._silent:
            threading.Thread(target=self._keep_telling, name="gonogo-still", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing more is told."""
        self._over.set()


class Moving:
    """Running steps with their time, drawn again and again by rich. A run that is over at once draws nothing."""

    def __init__(self, output: Output, clock: Callable[[], float] = time.monotonic) -> None:
        self._output = output
        self._clock = clock
        self._watch = Watch()
        self._seen_at = clock()
        self._live: Any = None
        self._turn = threading.RLock()
        self._starter = threading.Timer(DRAW_AFTER_S, self._start)
        self._starter.daemon = True
        self._over = False
        self._pauses = 0

    def see(self, record: Record) -> None:
        """Take it in; the display is drawn by its own timer."""
        with self._turn:
            self._watch.see(record)
            self._seen_at = self._clock()

    def log(self, line: LogLine) -> None:
        """A line above the display; progress goes into the step's row."""
        with self._turn:
            if line.level == "progress":
                self._watch.note(line.step, line.scope, line.text)
            elif line.level in _LOG_LEVELS:
                self._print(log_text(line))

    def _print(self, text: str) -> None:
        if self._live is not None:
            self._live.console.print(text, markup=False, highlight=False, soft_wrap=True)
        else:
            self._output.say(text)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """The display is taken away for as long as a person is asked."""
        with self._turn:
            self._pauses += 1
            self._stop()
        try:
            yield
        finally:
            with self._turn:
                self._pauses -= 1
            self._start()

    def __enter__(self) -> Moving:
        self._starter.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the terminal as it was."""
        self._starter.cancel()
        with self._turn:
            self._over = True
            self._stop()

    def _start(self) -> None:
        """Begin to draw, unless the run is over or a question stands. rich is slow to import: not on a lock."""
        from rich.console import Console
        from rich.live import Live

        with self._turn:
            if self._over or self._pauses or self._live is not None:
                return
            style = self._output.side_style()
            console = Console(
                file=self._output.stderr,
                no_color=not style.colour,
                highlight=False,
                markup=False,
                emoji=False,
            )
            self._live = Live(
                console=console,
                get_renderable=self._drawn,
                refresh_per_second=REFRESHES_PER_S,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._live.start()

    def _stop(self) -> None:
        live, self._live = self._live, None
        if live is not None:
            live.stop()

    def _drawn(self) -> Any:
        from rich.text import Text

        # Without the lock: who holds it may wait for rich, and a row that is out of date is drawn again at once.
        lines = rows(self._watch, self._now_s(), self._output.side_style().width or 80)
        text = Text(no_wrap=True, overflow="ellipsis", end="")
        for index, (line, look) in enumerate(lines):
            text.append(("\n" if index else "") + line, style=look)
        return text

    def _now_s(self) -> float:
        """The run's clock now: the last record's time and what has passed since."""
        return self._watch.at_s + (self._clock() - self._seen_at)


def rows(watch: Watch, now_s: float, width: int) -> list[tuple[str, str]]:
    """What the display shows, as (line, style) from the top."""
    active = list(watch.active.values())
    shown = [row(activity, now_s) for activity in active[:ROWS_MAX]]
    if len(active) > ROWS_MAX:
        shown.append((f"  … {len(active) - ROWS_MAX} more", "dim"))
    failed = f", {watch.failed} failed" if watch.failed else ""
    total = f"{watch.settled} of {watch.planned} steps done{failed} · {duration(round(now_s * 1000))}"
    return [(brief_cells(line, width), look) for line, look in (*shown, (total, "dim"))]


def row(activity: Activity, now_s: float) -> tuple[str, str]:
    """One running or waiting step."""
    name = plain(activity.place)
    elapsed = duration(max(0, round((now_s - activity.since_s) * 1000)))
    if activity.kind == "items":
        return f"▸ {name}  {_items_of(activity)}{_failed_of(activity)}  {elapsed}", "cyan"
    text = f"  {activity.text}" if activity.text else ""
    if activity.kind == "waiting":
        due = f" in {duration(max(0, round((activity.due_s - now_s) * 1000)))}" if activity.due_s else ""
        return f"◦ {name}  waits{text}{due}", "yellow"
    return f"▸ {name}  {elapsed}{text}", "cyan"


def items_text(activity: Activity) -> str:
    """`types: 12 of 40 items done, 2 failed`."""
    return f"{plain(activity.place)}: {_items_of(activity)} done{_failed_of(activity)}"


def _items_of(activity: Activity) -> str:
    return f"{activity.done:,} of {activity.total:,} items"


def _failed_of(activity: Activity) -> str:
    return f", {activity.failed:,} failed" if activity.failed else ""


def still_text(active: list[Activity], now_s: float) -> str:
    """`under way: types for 2 m 16 s, tests for 2 m 16 s (1 of 3 items)`, the first few."""
    told = [_still(activity, now_s) for activity in active[:ROWS_MAX]]
    more = len(active) - ROWS_MAX
    return "under way: " + ", ".join(told) + (f" and {more} more" if more > 0 else "")


def _still(activity: Activity, now_s: float) -> str:
    name = plain(activity.place)
    elapsed = duration(max(0, round((now_s - activity.since_s) * 1000)))
    items = f" ({_items_of(activity)})" if activity.kind == "items" else ""
    return f"{name} for {elapsed}{items}"


def brief_cells(line: str, width: int) -> str:
    """The line cut to the terminal's width."""
    return brief(line, max(1, width - 1)) if len(line) >= width else line


def log_text(line: LogLine) -> str:
    """`step: text` (`run: text` for what is of no step), with the level where it is more than news."""
    level = f"{line.level}: " if line.level in ("warn", "error") else ""
    place = f"{line.step}@{line.scope}" if line.scope else line.step or "run"
    text = "\n  ".join(plain(part) for part in line.text.splitlines())
    return f"{plain(place)}: {level}{text}"
