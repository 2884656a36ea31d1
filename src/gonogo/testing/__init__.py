"""Help for other people's tests. Everything named here is public."""

from gonogo.testing.context import ScriptedContext, call_for

__all__ = ["ScriptedContext", "call_for"]
