"""A step type that answers as a test says, in place of one that asks a model, a server or a person.

    model = ScriptedType("ai", keys=("prompt",), answers=[{"text": "yes"}, Failed(fault)])
    result = gonogo.loads(text, step_types=[model.provider]).run(runs=gonogo.MemoryRuns())
    assert model.calls[0].config.prompt == "go on?"

What the test doesn't script is a fault of class bug, so that no call goes unseen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from gonogo.provider import Call, Context, Done, Effects, Failed, Outcome, Parked, Provider


class ScriptedType:
    """`keys` are those that its steps may have, all of them templates. `answers` are handed out in order, or made by a
    function of the call: an output, or a `Done`, `Failed` or `Parked`. `effects`: what its calls do outside.

    `provider` is the step type; `calls` holds each call that came.
    """

    def __init__(
        self,
        name: str,
        *,
        keys: Iterable[str] = (),
        answers: Iterable[Any] | Callable[[Call], Any] = (),
        effects: Effects = "reads",
    ) -> None:
        self.calls: list[Call] = []
        self._script: Iterator[Any] | Callable[[Call], Any] = answers if callable(answers) else iter(answers)
        fields = tuple(keys)
        self.provider = Provider(
            name=name,
            config=msgspec.defstruct(
                "Config",
                [(key, Any, None) for key in fields],
                frozen=True,
                kw_only=True,
                forbid_unknown_fields=True,
            ),
            run=self._run,
            effects=effects,
            templates=frozenset(fields),
            summary="answers as a test says",
        )

    async def _run(self, call: Call, context: Context) -> Outcome:
        self.calls.append(call)
        answer = self._script(call) if callable(self._script) else self._next()
        return answer if isinstance(answer, Done | Failed | Parked) else Done(answer)

    def _next(self) -> Any:
        assert not callable(self._script)
        for answer in self._script:
            return answer
        raise AssertionError(f"the test gives no answer for call {len(self.calls)} of {self.provider.name}")
