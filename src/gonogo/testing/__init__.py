"""Help for other people's tests. Everything named here is public."""

from gonogo.testing.context import ScriptedContext, call_for
from gonogo.testing.scripted import ScriptedType

__all__ = ["ScriptedContext", "ScriptedType", "call_for"]
