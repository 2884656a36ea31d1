"""From a step to a call: its config rendered and checked, its environment filled in, its key made.

Whatever can't be prepared is a failure of the step before anything was started (effect none).
"""

from __future__ import annotations

import hashlib
from collections import ChainMap
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, cast

import msgspec

from gonogo.core.commands import StartCall
from gonogo.core.faults import Fault
from gonogo.core.plan import Step
from gonogo.core.state import State
from gonogo.core.values import names_for
from gonogo.expressions.results import Failure, TemplateProblem
from gonogo.hosts.environment import as_text, as_texts, refers
from gonogo.hosts.filling import Filling, has_references, reads_data, secrets_among
from gonogo.hosts.templates import Templates, has_tags
from gonogo.hosts.vault import Seen, Vault
from gonogo.hosts.withheld import withheld
from gonogo.journal.handles import shortened
from gonogo.journal.redact import Redactor
from gonogo.provider import Call, Provider
from gonogo.providers.table import Table, UnknownType

_NOTHING: Mapping[str, Any] = MappingProxyType({})
_NO_FIELDS: frozenset[str] = frozenset()


class Unprepared(Exception):  # noqa: N818 - the name says what happened
    """The call can't be made; `fault` says why."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


class Card(NamedTuple):
    """What is the same for all calls of a step. `config` and `env` are None when they must be rendered each time.

    Steps of one type and effects that say nothing share theirs.
    """

    provider: Provider
    templated: frozenset[str]
    filled: frozenset[str]
    config: Any
    env: Mapping[str, str] | None
    raw_env: Mapping[str, str]
    raw_config: Mapping[str, Any]


class Prepared(NamedTuple):
    """A call, the inputs rendered for it, variables its texts name that aren't set, the key that a template gave.

    `passes`: handles in what it gives are the run's own (`Provider.handles`).
    """

    call: Call
    inputs: dict[str, Any]
    unset: tuple[str, ...] = ()
    key: str | None = None
    passes: bool = False


class Preparation:
    """Makes the calls of one run."""

    def __init__(
        self,
        state: State,
        table: Table,
        templates: Templates,
        environment: Mapping[str, str],
        overlay: Mapping[str, str],
        redactor: Redactor,
        vault: Vault,
    ) -> None:
        """`redactor` is told of the secrets that are filled in, whatever their variables are called."""
        self._state = state
        self._table = table
        self._templates = templates
        self._environment = environment
        self._overlay = overlay
        self._redactor = redactor
        self._vault = vault
        self._cards: dict[str, tuple[Step, Card]] = {}
        self._plain_cards: dict[tuple[str, str], Card] = {}

    def card(self, step: Step) -> Card:
        """The card of a step. Raises Unprepared when its type can't be used or what it gives not be kept, Unopened."""
        known = self._cards.get(step.name)
        if known is not None and known[0] is step:
            return known[1]
        unkept = self._vault.check(step)
        if unkept is not None:
            raise Unprepared(_fault(step, "secret.unkept", "secret/unkept", unkept))
        card = self._new_card(step)
        self._cards[step.name] = (step, card)  # of this step: a run may go on under another plan
        return card

    def prepare(
        self, card: Card, step: Step, command: StartCall, arguments: Mapping[str, Any] | None = None
    ) -> Prepared:
        """One call of a step; `arguments` are its `args` when it is called as a tool. Raises Unprepared, Unopened."""
        provider = card.provider
        rendered = card.config is None or card.env is None or step.idempotency_key is not None
        needed = provider.needs_names or rendered
        names: Mapping[str, Any] = names_for(self._state, command.step, command.scope) if needed else _NOTHING
        if arguments is not None:
            given = {"args": shortened(arguments)}  # a model may have read a handle somewhere
            names = ChainMap(given, cast("dict[str, Any]", names))  # never written
        names, opened = self._views(provider, names) if self._vault.in_use and needed else (names, None)
        inputs: dict[str, Any] = {}
        unset: tuple[str, ...] = ()
        config, env, key = card.config, card.env, None
        try:
            if config is None or env is None:
                filling = Filling(
                    self._templates, self._environment, *((opened, names) if opened else (names,))
                )
                config = self._config(card, step, filling, inputs) if config is None else config
                env = self._env(card, step, filling) if env is None else env
                unset = tuple(filling.unset)
                self._refuse_unset(step, unset)
            if step.idempotency_key is not None:
                key = self._key(step.idempotency_key, names)
        except TemplateProblem as problem:
            raise Unprepared(_fault(step, "template", "template_error", problem.message)) from problem
        finally:
            if opened is not None:
                opened.check()
        call = Call(
            command.step,
            command.scope,
            command.execution,
            command.attempt,
            command.intent,
            key or key_of(command.intent),
            config,
            env,
            names if provider.needs_names else _NOTHING,
            step.timeout_s if step.timeout_s is not None else provider.default_timeout_s,
            step.for_each,
            card.templated,
            step.schema,
            tuple(edge.step for need in step.depends_on for edge in need.any_of),
            step.effects,
        )
        given_key = None if self._is_withheld(step) else key or None
        return Prepared(call, inputs, unset, given_key, provider.handles == "passed")

    def _views(self, provider: Provider, names: Mapping[str, Any]) -> tuple[Mapping[str, Any], Seen | None]:
        """The names of a call and its record, and those that its templates see where they are given secrets.

        The call's own expressions run in the sandbox, which has no secrets: what they give would be written down.
        """
        if provider.handles == "opened":
            return names, Seen(names, self._vault.opened)
        return (Seen(names, shortened) if provider.handles == "shown" else names), None

    def _new_card(self, step: Step) -> Card:
        if not (step.config or step.env or self._overlay or self._state.graph.plan.env):
            return self._plain_card(step)
        provider = self._provider(step)
        # What the workflow file itself gives away stands in the plan as a handle (`literals.py`).
        opened = self._vault.opened if self._vault.in_use else _as_it_is
        raw_config = opened(step.config)
        rendered = {
            name for name, value in raw_config.items() if name in provider.templates and has_tags(value)
        }
        templated = frozenset(
            name for name in rendered if name not in provider.references or reads_data(raw_config[name])
        )
        referring = {name for name in provider.references if has_references(raw_config.get(name))}
        raw_env = {**opened(self._state.graph.plan.env), **self._overlay, **opened(step.env)}
        texts = as_texts(raw_env)
        plain = not any(refers(text) or has_tags(text) for text in texts.values())
        config = None if rendered or referring else _checked(step, provider, raw_config)
        filled = frozenset(rendered | referring)
        return Card(provider, templated, filled, config, texts if plain else None, texts, raw_config)

    def _provider(self, step: Step) -> Provider:
        try:
            provider = self._table.get(step.type)
        except UnknownType as problem:
            raise Unprepared(_fault(step, "provider.unknown", "provider/unknown", str(problem))) from problem
        return withheld(provider) if self._is_withheld(step) else provider

    def _is_withheld(self, step: Step) -> bool:
        """Safe mode makes no mutating call, so nothing is known under its key."""
        return self._state.safe_mode and step.effects == "mutates"

    def _plain_card(self, step: Step) -> Card:
        """The card of a step that says nothing; its config is frozen, so one does for all of its type and effects."""
        card = self._plain_cards.get((step.type, step.effects))
        if card is None:
            provider = self._provider(step)
            config = _checked(step, provider, _NOTHING)
            card = Card(provider, _NO_FIELDS, _NO_FIELDS, config, _NOTHING, _NOTHING, _NOTHING)
            self._plain_cards[step.type, step.effects] = card
        return card

    def _config(self, card: Card, step: Step, filling: Filling, inputs: dict[str, Any]) -> Any:
        """The config filled in, and checked again: what a template gave may not fit. `inputs` is for the record."""
        made = dict(card.raw_config)
        for name in sorted(card.filled):
            of_type = card.provider
            made[name], inputs[name] = filling.value(
                made[name], references=name in of_type.references, templates=name in of_type.templates
            )
        for path, secret in secrets_among(made, card.provider.secrets):
            self._redactor.add(f"{step.name}.{path}", secret)
        return _checked(step, card.provider, made)

    def _env(self, card: Card, step: Step, filling: Filling) -> dict[str, str]:
        """Variables given for this run stay as they are; those of the workflow and the step are filled in."""
        return {
            name: text if name in self._overlay and name not in step.env else filling.text(text)
            for name, text in card.raw_env.items()
        }

    def _refuse_unset(self, step: Step, unset: Iterable[str]) -> None:
        """Under strict safety a reference to nothing fails the step (spec E.1 D); else it is a warning."""
        listed = ", ".join(unset)
        if listed and self._state.graph.plan.safety == "strict":
            message = f"these variables are named, but aren't set: {listed}"
            raise Unprepared(_fault(step, "env.unset", "env/unset", message))

    def _key(self, expression: int, names: Mapping[str, Any]) -> str:
        source = self._state.graph.plan.expressions[expression].source
        result = self._templates.result(source, names) if has_tags(source) else None
        if isinstance(result, Failure):
            raise TemplateProblem(result.message)
        return source if result is None else as_text(result.value)


def _as_it_is(value: Any) -> Any:
    return value


def key_of(intent: str) -> str:
    """The default idempotency key: constant over retries, crashes and take-overs (semantics.md 17)."""
    return hashlib.sha256(intent.encode()).hexdigest()[:32]


def _checked(step: Step, provider: Provider, config: Mapping[str, Any]) -> Any:
    try:
        return provider.checked(config)
    except msgspec.ValidationError as problem:
        told = str(problem)
        raise Unprepared(
            _fault(step, "config.invalid", "config/invalid", f"{told[:1].lower()}{told[1:]}")
        ) from problem


def _fault(step: Step, kind: str, rule: str, message: str) -> Fault:
    return Fault(kind, "logical", f"{step.name}/{rule}", message)
