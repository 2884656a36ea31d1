"""Safe mode: a step type whose calls are prepared in full and then not made (spec G21)."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from gonogo.provider import Call, Context, Done, Provider


def withheld(provider: Provider) -> Provider:
    """The same type to all that look at it, but a call answers with what it would have been made with.

    The output is `{safe_mode: true, type, inputs}`; of secret outputs it says where they came from.
    """

    async def answer(call: Call, _: Context) -> Done:
        inputs = msgspec.to_builtins(call.config, str_keys=True, enc_hook=str)
        return Done({"safe_mode": True, "type": provider.name, "inputs": inputs}, effect="none")

    return replace(provider, run=answer, inline=True, needs_names=False, handles="shown")
