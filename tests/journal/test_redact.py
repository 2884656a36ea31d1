"""Secrets stay out of everything that is written: SEC-2."""

from __future__ import annotations

import base64
import html
import json
import re
import urllib.parse

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gonogo.core.events import UNSET, CallDone, CallFailed
from gonogo.core.faults import Fault, Issue
from gonogo.journal.codec import decode_line, encode_line
from gonogo.journal.records import Record
from gonogo.journal.redact import LENGTH_MIN, MASK, Redactor, is_secret_name, secrets_in

KEY = "-----BEGIN TEST KEY-----\nMIIEabcdefghijk1234567890\n-----END TEST KEY-----"
ACCOUNT = json.dumps(
    {"type": "acct", "user": "robot-user", "deep": {"pw": 'p@ss"w0rd/é%', "list": ["abcdefg", "ab", 123456]}}
)
ODD = """q"u%o'te$ <x>&\\y"""
SECRETS = {"DEPLOY_KEY": KEY, "ACCOUNT_CREDENTIALS": ACCOUNT, "ONE_SECRET": "a", "ODD_TOKEN": ODD}
REDACTOR = Redactor(SECRETS)

# What of these secrets has six characters or more, and must never be seen.
TELLING = [KEY, "MIIEabcdefghijk1234567890", ACCOUNT, "robot-user", 'p@ss"w0rd/é%', "abcdefg", ODD]

WAYS = {
    "raw": lambda text: text,
    "in an error": lambda text: f"ValueError: {text}: not found",
    "as a Python literal": lambda text: repr(ValueError(text)),
    "in a dict that was printed": lambda text: str({"k": text}),
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64 for URLs": lambda text: base64.urlsafe_b64encode(text.encode()).decode(),
    "base64 of user and secret": lambda text: base64.b64encode(f"user:{text}".encode()).decode(),
    "base64 within one byte more": lambda text: base64.b64encode(f"x{text}yz".encode()).decode(),
    "base64 within two bytes more": lambda text: base64.b64encode(f"xx{text}y".encode()).decode(),
    "URL-encoded": lambda text: urllib.parse.quote(text, safe=""),
    "URL-encoded but for slashes": urllib.parse.quote,
    "as a form field": urllib.parse.quote_plus,
    "URL-encoded in small letters": lambda text: re.sub(
        "%..", lambda code: code[0].lower(), urllib.parse.quote(text)
    ),
    "as JSON": json.dumps,
    "as JSON with letters": lambda text: json.dumps(text, ensure_ascii=False),
    "as JSON in JSON": lambda text: json.dumps(json.dumps({"k": text})),
    "as HTML": html.escape,
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
@pytest.mark.parametrize("secret", TELLING, ids=range(len(TELLING)))
def test_SEC_2_a_secret_is_masked_however_it_is_written(secret: str, way) -> None:
    """SEC-2: nothing of 6 characters or more shows, raw, base64 or URL-encoded."""
    text = REDACTOR.text(f"before {way(secret)} after")
    assert MASK in text
    assert text.startswith("before ")
    for telling in TELLING:
        assert telling not in text
        assert way(telling) not in text


def test_SEC_2_base64_leaves_less_than_a_part_worth_masking() -> None:
    """What remains beside the mask depends on the neighbours: less than three letters on each side."""
    coded = base64.b64encode(f"xx{ODD}y".encode()).decode()
    left = REDACTOR.text(coded).split(MASK)
    assert len(left) == 2
    assert all(len(part) <= 4 for part in left)


def test_SEC_2_base64_for_urls_has_letters_of_its_own() -> None:
    """Both alphabets: these secrets have `+` and `/` in one and `-` and `_` in the other."""
    secret = "~~~???>>>~~~???"
    for coded in (base64.b64encode(secret.encode()), base64.urlsafe_b64encode(secret.encode())):
        assert len(Redactor({"T": secret}).text(coded.decode())) <= 6


def test_SEC_2_a_json_secret_printed_with_other_spaces_is_masked() -> None:
    """SEC-2: re-indented."""
    shown = REDACTOR.text(json.dumps(json.loads(ACCOUNT), indent=4))
    assert not any(telling in shown for telling in TELLING)
    assert '"type": "acct"' in shown


def test_SEC_2_each_line_of_a_key_is_masked() -> None:
    """SEC-2: printed line by line, indented, with other line ends."""
    shown = REDACTOR.text("\r\n".join(f"  | {line}" for line in KEY.splitlines()))
    assert shown == f"  | {MASK}\r\n  | {MASK}\r\n  | {MASK}"


@pytest.mark.parametrize("text", ["a", "{", "}", "banana {a}", "ab", "acct", '{"a": "ab"}', "123"])
def test_SEC_2_short_parts_are_never_masked(text: str) -> None:
    """SEC-2: a log in which every `a` or brace is hidden is ruined and tells the secret anyway."""
    assert REDACTOR.text(text) is text
    assert REDACTOR.value([text]) == [text]


URLS = {
    "https://user:hunter2@host/x": "https://user:***@host/x",
    "postgres://u:p%40ss@db:5432/x y://v:w@z": "postgres://u:***@db:5432/x y://v:***@z",
    "redis://:pw@host": "redis://:***@host",
    "https://x0123456789012345678901@host/x": "https://***@host/x",
    "http://localhost:8080/@me": "http://localhost:8080/@me",
    "https://host.example/a?b=c:d@e": "https://host.example/a?b=c:d@e",
    "git@host.example:a/b.git": "git@host.example:a/b.git",
    "see https://host: then write to me@host": "see https://host: then write to me@host",
}


@pytest.mark.parametrize(("text", "shown"), URLS.items())
def test_SEC_2_a_password_in_a_url_is_masked_whoever_it_belongs_to(text: str, shown: str) -> None:
    """SEC-2: `user:secret@` by structure alone."""
    assert Redactor().text(text) == shown
    assert Redactor().value({"error": [text]}) == {"error": [shown]}


ISSUED = ["ghp_" + "a1B2" * 9, "github_pat_" + "a1_B" * 10, "glpat-" + "a1-B" * 5, "sk-" + "a1B2" * 10]


@pytest.mark.parametrize("token", ISSUED)
def test_tokens_with_a_known_beginning_are_masked(token: str) -> None:
    """By structure: nobody had to name them."""
    assert Redactor().text(f"use {token}.") == f"use {MASK}."


def test_a_private_key_is_masked_even_when_it_is_cut() -> None:
    """By structure: from its first line to its last, or to the end of the text."""
    begin, end = "-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----"
    assert Redactor().text(f"x\n{begin}\nMIIE\n{end}\ny") == f"x\n{MASK}\ny"
    assert Redactor().text(f"x\n{begin}\nMIIE") == f"x\n{MASK}"


def test_values_are_masked_at_any_depth_and_in_keys() -> None:
    """JSON values: texts, keys, lists and numbers that are the secret itself."""
    redactor = Redactor({"PIN_TOKEN": "12345678", "T": "tokentoken"})
    value = {"a": [{"tokentoken": 1, "xtokentoken": 2}], "n": 12345678, "m": 123456789, "b": True}
    assert redactor.value(value) == {"a": [{"***": 1, "x***": 2}], "n": "***", "m": 123456789, "b": True}


def test_keys_that_become_equal_are_numbered() -> None:
    """Masking loses no entry."""
    redactor = Redactor({"A": "secret-one", "B": "secret-two"})
    assert redactor.value({"secret-one": 1, "secret-two": 2}) == {"***": 1, "*** (2)": 2}


def test_what_holds_no_secret_is_the_same_object() -> None:
    """The usual case copies nothing, and unchanged parts of a changed value stay what they are."""
    clean = {"files": ["a", "b"], "n": 1}
    assert REDACTOR.value(clean) is clean
    mixed = {"clean": clean, "told": "robot-user"}
    assert REDACTOR.value(mixed)["clean"] is clean


def test_a_value_that_is_no_json_is_masked_where_it_can_be() -> None:
    """Error details may hold anything; what can't be looked into is left to the caller's normalisation."""
    odd = object()
    assert REDACTOR.value({"x": odd, "y": ["robot-user", "\ud800"]}) == {"x": odd, "y": [MASK, "\ud800"]}


def test_an_event_is_masked_field_by_field_and_stays_readable() -> None:
    """A secret in a fault's message goes; one that is a word of the record's own stays, or nobody could read it."""
    redactor = Redactor({"A": "transient", "B": "robot-user"})
    fault = Fault("x", "transient", "r", "robot-user: transient")
    issue = Issue("r", "no robot-user", end_line=3)
    event = CallFailed(call=1, fault=fault, issues=(issue,), meta={"who": "robot-user"}, output=UNSET)
    masked = redactor.value(event)
    assert (masked.fault.message, masked.fault.fault_class) == ("***: ***", "transient")
    assert (masked.issues[0].message, masked.meta, masked.output) == ("no ***", {"who": MASK}, UNSET)
    assert decode_line(encode_line(Record(1, 0.0, masked))).event == masked
    clean = CallDone(call=1, output={"a": 1})
    assert redactor.value(clean) is clean


def test_absurd_nesting_is_masked_not_followed() -> None:
    """Law 2: depth has an end, and the safe side is to hide."""
    deep: list[object] = ["robot-user"]
    for _ in range(5000):
        deep = [deep]
    assert "robot-user" not in str(REDACTOR.value(deep))


def test_a_secret_can_be_added_later() -> None:
    """A step's `secret_outputs` are known from the moment they exist; both values of a name stay known."""
    redactor = Redactor()
    redactor.add("SESSION", "first-value")
    redactor.add("SESSION", "second-value")
    assert redactor.text("first-value second-value") == f"{MASK} {MASK}"


def test_a_secret_within_another_is_masked_with_it() -> None:
    """The longest match wins, so nothing of the longer one stays."""
    redactor = Redactor({"A": "abcdefgh", "B": "xx-abcdefgh-yy"})
    assert redactor.text("xx-abcdefgh-yy abcdefgh") == f"{MASK} {MASK}"


@given(
    st.text(min_size=LENGTH_MIN, max_size=30).filter(lambda text: text.strip() == text), st.text(max_size=9)
)
def test_no_secret_survives_in_text_or_json(secret: str, around: str) -> None:
    """Any text of 6 characters or more is masked, in any text and in any JSON value."""
    redactor = Redactor({"T": secret})
    assert secret not in redactor.text(around + secret + around).replace(MASK, "\0\n")
    assert redactor.value([secret]) == [MASK]
    assert redactor.text(MASK) == MASK or set(secret) <= set(MASK)


@pytest.mark.parametrize(
    "name", ["GITHUB_TOKEN", "db_password", "AWS_SECRET_ACCESS_KEY", "X_PRIVATE_KEY", "TOKEN"]
)
def test_names_that_hold_secrets(name: str) -> None:
    """Names of environment variables, in any case."""
    assert is_secret_name(name)


@pytest.mark.parametrize("name", ["PATH", "KEYBOARD", "HOME", "TOKENS_USED", "MONKEY"])
def test_names_that_hold_none(name: str) -> None:
    """Nothing is hidden without a reason."""
    assert not is_secret_name(name)


def test_names_can_be_allowed_and_denied() -> None:
    """B.11: GONOGO_ALLOW_ENV and GONOGO_DENY_ENV adjust what a name looks like."""
    environment = {
        "HOME": "/h",
        "API_TOKEN": "t",
        "PUBLIC_TOKEN": "p",
        "PLAIN": "x",
        "GONOGO_ALLOW_ENV": "PUBLIC_TOKEN",
        "GONOGO_DENY_ENV": "PLAIN, MISSING",
    }
    assert secrets_in(environment) == {"API_TOKEN": "t", "PLAIN": "x"}
