"""What a step says to a model, checked while the file is read: secrets stand elsewhere, names and scripts are right."""

from __future__ import annotations

from gonogo.config.actions import Actions
from gonogo.config.collect import Collector
from gonogo.config.drafts import Draft
from gonogo.config.expressions import Expressions, Use
from gonogo.config.json_schemas import schema_problem
from gonogo.config.nodes import Mapping, Scalar, plain, texts

_WAY_OUT = "write the name of a variable instead: ${{ env.NAME }}"


def check_secrets(draft: Draft, notes: Collector) -> None:
    """A key that holds a secret has to name a variable: what stands in a file is in plans and records."""
    secrets = draft.provider.secrets
    if not secrets:
        return
    for key in draft.config:
        for below, scalar in texts(draft.node.entries[key].node, (key,)):
            if secrets & {below[-1], ".".join(map(str, below[-2:]))} and "$" not in scalar.text:
                message = f"{below[-1]} holds a text; a file is no place for a secret"
                notes.add_key("error", "key.secret", message, (*draft.path, *below), _WAY_OUT)


def check_tools(draft: Draft, actions: Actions, expressions: Expressions) -> None:
    """Tools run steps that there are, and scripts that can be read; a session is another step's."""
    if draft.provider.name != "ai":
        return
    session = draft.node.get("session")
    if isinstance(session, Scalar) and isinstance(session.value, str):
        actions.target_exists(session.value, (*draft.path, "session"))
    tools = draft.node.get("tools")
    for name, entry in tools.entries.items() if isinstance(tools, Mapping) else ():
        path = (*draft.path, "tools", name)
        tool = entry.node
        step = tool.get("step") if isinstance(tool, Mapping) else None
        script = tool.get("script") if isinstance(tool, Mapping) else None
        if isinstance(step, Scalar) and isinstance(step.value, str):
            actions.target_exists(step.value, (*path, "step"))
        parameters = tool.get("parameters") if isinstance(tool, Mapping) else None
        wrong = schema_problem(plain(parameters)) if parameters is not None else None
        if wrong is not None:
            actions.notes.error("schema.invalid", wrong, (*path, "parameters"))
        if isinstance(script, Scalar):
            expressions.check(script.text, "script", Use((*path, "script"), draft.name, "script"))
