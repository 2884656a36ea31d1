"""The child process: compiles and runs expressions for one client, and does nothing else.

Run as `python -I -S worker.py ENGINE JS_DIR NOW_MS MEMORY_BYTES RESULT_CHARACTERS MARKER_FD`. Only the
engine's extension module and a few C modules are imported: json and signal alone would double the start-up
time. Frames come on stdin and go to stdout: four bytes of length, then UTF-8 parts separated by NUL
(`frames.py` describes them). What values mean, limits of batches and restarts are left to the client, which
may kill this process at any time.
"""

from __future__ import annotations

import resource
import sys
import time
from _signal import ITIMER_PROF, SIG_IGN, SIGINT, setitimer, signal  # type: ignore[import-not-found]
from mmap import mmap
from posix import read, write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

STACK_BYTES = 512 * 1024
ADDRESS_SPACE_BYTES = 2 << 30
COMPILE_S = 1.0
MEASURE_AFTER_BYTES = 1 << 20
HEAP_BYTES_PER_JSON_BYTE = 8
MEASURE_EVERY_RUNS = 4096
LOADING_S = 10.0
ALARM_S = 2.0
ALARM_EVERY_S = 1.0
BOOTSTRAP_LINE = 100_000
ENGINE_IS_WRONG = 3
SUSPICIOUS = ("!", '{"e":["InternalError"', '{"e":["thrown","null"')
"""Results after which something may have stayed behind: without memory, the engine throws null."""


def load_engine(path: str) -> Any:
    """Import the engine from its file alone, so that nothing installed beside it can be imported."""
    from _frozen_importlib import ModuleSpec
    from _frozen_importlib_external import ExtensionFileLoader

    loader = ExtensionFileLoader("_quickjs", path)
    spec = ModuleSpec("_quickjs", loader, origin=path)
    module = loader.create_module(spec)
    module.__spec__ = spec
    loader.exec_module(module)
    return module


def limit_process() -> None:
    """Take away what code that broke out of the engine could use: memory, files, processes."""
    limits = {"AS": ADDRESS_SPACE_BYTES, "FSIZE": 0, "CORE": 0, "NPROC": 0, "NOFILE": 16}
    for name, value in limits.items():
        limit = getattr(resource, "RLIMIT_" + name, None)
        if limit is None:
            continue
        try:
            resource.setrlimit(limit, (value, value))
        except (OSError, ValueError):
            continue  # a platform that can't set this one still has the engine's own limits


def head(parameters: str) -> str:
    """How a function starts: data names are constants, so that assigning to one is an error (case EXP-3)."""
    names = parameters.split(",") if parameters else []
    given = ["$c" + str(position) for position in range(len(names))]
    constants = [name + "=" + value for name, value in zip(names, given, strict=True)]
    return (
        "(function("
        + ",".join(given)
        + "){'use strict';"
        + ("const " + ",".join(constants) + ";" if names else "")
    )


class Engine:
    """One locked-down context with its table of compiled functions."""

    def __init__(
        self, path: str, scripts: list[str], now_ms: str, memory_bytes: int, characters: str
    ) -> None:
        quickjs = load_engine(path)
        self._errors = (quickjs.JSException, quickjs.StackOverflow, MemoryError)
        self._context = quickjs.Context()
        self._context.set_max_stack_size(STACK_BYTES)
        self._memory_bytes = memory_bytes
        self._functions: dict[str, Any] = {}
        # Lines of our own scripts are numbered from 100,000, so that a stack shows which places are the
        # user's.
        lockdown, helpers, mirror, evaluate = (
            self._context.eval("\n" * BOOTSTRAP_LINE + text) for text in scripts
        )
        table = evaluate(lockdown(now_ms), helpers, mirror, characters)
        self._run, self._drop = table("run"), table("drop")
        self._puts = {"p": table("put"), "e": table("putEvent")}
        self._loaded_bytes = 0
        self._limit_s = 0.0
        self._runs = 0
        self._baseline = self._measure()

    def put(self, how: str, slot: str, json: str) -> None:
        self._unlimited()
        self._puts[how](slot, json)
        self._loaded_bytes += len(json)

    def drop(self, slots: str) -> None:
        for slot in slots.split(","):
            self._drop(slot)

    def forget(self, functions: str) -> None:
        for number in functions.split(","):
            self._functions.pop(number, None)

    def compile(self, number: str, parameters: str, source: str, body: str) -> str:
        """Compile `source` as an expression, else `body` as a statement body; returns "" or both complaints.

        The array brackets can't be closed by text that also closes the wrapper's parenthesis, and what may
        follow a closed arrow function can't follow a closed method: text can't leave its wrapper
        (expressions.md, "Compile").
        """
        self._limit(COMPILE_S)
        self._loaded_bytes += len(source)
        try:
            self._context.eval("(()=>[\n" + source + "\n]);0")
            text = head(parameters) + "return(\n" + source + "\n)})"
            self._functions[number] = self._context.eval(text)
        except self._errors as error:
            return self._compile_body(number, parameters, source, body, str(error))
        return ""

    def _compile_body(self, number: str, parameters: str, source: str, body: str, complaint: str) -> str:
        for text, start, end in ((body, "let $c;", ";return $c})"), (source, "", "})")):
            if not text:
                continue
            try:
                self._context.eval("(()=>{\n" + text + "\n});0")
                self._context.eval("(class{m(){\n" + text + "\n}});0")
                self._functions[number] = self._context.eval(
                    head(parameters) + start + "\n" + text + "\n" + end
                )
            except self._errors as error:
                problem = str(error)
            else:
                return ""
        return complaint + "\x01" + problem

    def run(self, number: str, kind: str, limit_s: str, spec: str) -> str:
        """Run one function; returns what `evaluate.js` says, or `!` and what stopped the engine itself."""
        function = self._functions.get(number)
        if function is None:
            return ""  # it didn't compile, which this frame's reply already says
        self._runs += 1
        self._limit(float(limit_s))
        if self._loaded_bytes:
            self._load()
        try:
            result: str = self._run(function, kind, spec)
        except self._errors as error:
            return "!" + (str(error) or type(error).__name__).replace("\0", " ")[:2000]
        return result

    def due(self) -> bool:
        """Whether it is time to look what has piled up."""
        return self._runs >= MEASURE_EVERY_RUNS

    def worn_out(self) -> bool:
        """Whether something stays behind from evaluations, such as promise jobs: then a new process is due."""
        self._runs = 0
        self._context.gc()
        grown = self._context.memory()["malloc_size"] - self._baseline
        return bool(grown > self._memory_bytes // 4)

    def _limit(self, limit_s: float) -> None:
        if limit_s != self._limit_s:
            self._context.set_time_limit(limit_s)
            self._limit_s = limit_s

    def _unlimited(self) -> None:
        if not self._loaded_bytes:
            self._context.set_memory_limit(0)
            self._limit(COMPILE_S * 10)

    def _load(self) -> None:
        """Give evaluations `memory_bytes` on top of the data that is here."""
        if self._loaded_bytes > MEASURE_AFTER_BYTES:
            self._baseline = self._measure()
        else:
            self._baseline += self._loaded_bytes * HEAP_BYTES_PER_JSON_BYTE
        self._loaded_bytes = 0
        self._context.set_memory_limit(self._baseline + self._memory_bytes)

    def _measure(self) -> int:
        size: int = self._context.memory()["malloc_size"]
        self._context.set_memory_limit(size + self._memory_bytes)
        return size


class Marker:
    """Shared with the client: which run of the frame is under way and since when, for the client's kill.

    Should the client be gone, nobody kills a hang; then the timer does, always later than the client would. It counts
    CPU time, so an idle process has nothing to fear from it, and it is wound up again only now and then.
    """

    def __init__(self, descriptor: int) -> None:
        self._cells = memoryview(mmap(descriptor, 4096)).cast("d")
        self._limit_s = 0.0
        self._wound_up_at = 0.0

    def set(self, index: int, limit_s: float) -> None:
        """Something that may take `limit_s` begins; `index` is that of a run, -1 for anything else."""
        now = time.monotonic()
        if limit_s != self._limit_s or now > self._wound_up_at + ALARM_EVERY_S:
            setitimer(ITIMER_PROF, limit_s + ALARM_S + ALARM_EVERY_S)
            self._limit_s, self._wound_up_at = limit_s, now
        self._cells[1] = now
        self._cells[0] = index


ARGUMENTS = {"p": 2, "e": 2, "d": 1, "x": 1, "c": 4, "r": 4}


def answer(engine: Engine, marker: Marker, parts: list[str]) -> list[str]:
    """Carry out the commands of one frame; the first part back says whether this process should be replaced."""
    out = [""]
    ends = time.monotonic() + float(parts[0])
    position, runs, suspicious = 1, 0, False
    while position < len(parts):
        command = parts[position]
        end = position + 1 + ARGUMENTS[command]
        arguments = parts[position + 1 : end]
        position = end
        if command == "r":
            if runs and time.monotonic() > ends:
                out.append("")  # not run: the client sends it again in the next frame
                continue
            marker.set(runs, float(arguments[2]))
            result = engine.run(*arguments)
            suspicious = suspicious or (len(result) > 1 and result.startswith(SUSPICIOUS))
            out.append(result)
            runs += 1
            continue
        marker.set(-1, LOADING_S)
        if command == "c":
            complaint = engine.compile(*arguments)
            suspicious = suspicious or (complaint != "" and "Error" not in complaint)
            out.append(complaint)
        elif command == "d":
            engine.drop(*arguments)
        elif command == "x":
            engine.forget(*arguments)
        else:
            engine.put(command, *arguments)
    if suspicious or engine.due():
        marker.set(-1, LOADING_S)
        out[0] = "retire" if engine.worn_out() else ""
    return out


def receive_frame() -> str | None:
    """The text of the next frame; None when the client is gone."""
    data = bytearray(read(0, 1 << 16))
    while len(data) < 4 or len(data) < 4 + int.from_bytes(data[:4], "little"):
        more = read(0, 1 << 20) if data else b""
        if not more:
            return None
        data += more
    return data[4:].decode()


def send_frame(text: str) -> None:
    """Write one frame to stdout, which blocks until the client has read it."""
    data = text.encode()
    left = memoryview(len(data).to_bytes(4, "little") + data)
    while left:
        left = left[write(1, left) :]


def main(arguments: list[str]) -> int:
    """Serve frames until stdin ends. Ctrl-C is for the client, which decides what becomes of evaluations."""
    signal(SIGINT, SIG_IGN)
    path, directory, now_ms, memory_bytes, characters, marker = arguments
    scripts = []
    for name in ("lockdown", "helpers", "mirror", "evaluate"):
        with open(directory + "/" + name + ".js", encoding="utf-8") as file:
            scripts.append(file.read())
    try:
        engine = Engine(path, scripts, now_ms, int(memory_bytes), characters)
    except (ImportError, AttributeError, ValueError):
        return ENGINE_IS_WRONG
    cells = Marker(int(marker))
    limit_process()
    while (text := receive_frame()) is not None:
        send_frame("\0".join(answer(engine, cells, text.split("\0"))))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
