"""What a user can write or meet is in docs/: YAML keys, step types, verbs, exit codes, names of expressions."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gonogo import errors
from gonogo.app import Summary
from gonogo.cli import listing
from gonogo.cli.verbs import workers
from gonogo.core.decisions import Wait
from gonogo.journal.postgres.workers import About, Present, Waiting
from tools import reference

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
SOURCE = ROOT / "src" / "gonogo"
PAGES = sorted([*DOCS.rglob("*.md"), *ROOT.glob("*.md")])


def in_code(page: str) -> set[str]:
    """Everything a reference page shows as code: in backticks, the words of it too."""
    text = (DOCS / "reference" / page).read_text()
    spans = re.findall(r"`([^`\n]+)`", text)
    return {*spans, *(word for span in spans for word in re.split(r"[^\w$-]+", span))}


@pytest.mark.parametrize("page", reference.PAGES)
def test_a_generated_page_says_what_the_code_says(page: str) -> None:
    """After a change of keys, types or options: `make reference`."""
    assert (DOCS / "reference" / page).read_text() == reference.PAGES[page]()


def test_every_yaml_key_is_explained() -> None:
    """Each key has a description in the code, from which its page is made."""
    models = reference.nouns()
    silent = [
        f"{model.__name__}.{field.name}"
        for model in models
        for field in reference.fields_of(model)
        if not field.description
    ]
    assert len(models) > 5
    assert silent == []


def test_every_yaml_key_is_in_the_reference() -> None:
    """The page names every spelling of every key."""
    keys = {key for model in reference.nouns() for key in reference.keys_of(model)}
    assert keys - in_code("yaml.md") == set()


def test_every_step_type_is_in_the_reference() -> None:
    """The page has every type with its other spellings and its keys, each with a description in the code."""
    headings = re.findall(
        r"^## (\S+)$", (DOCS / "reference" / "step-types.md").read_text(), flags=re.MULTILINE
    )
    providers = reference.providers()
    keys = {key for provider in providers for key in reference.keys_of(provider.config)}
    aliases = {alias for provider in providers for alias in provider.aliases}
    silent = [
        f"{provider.name}.{field.name}"
        for provider in providers
        for field in reference.fields_of(provider.config)
        if not field.description
    ]
    assert headings == [provider.name for provider in providers]
    assert silent == []
    assert (keys | aliases) - in_code("step-types.md") == set()


def test_every_verb_is_in_the_reference() -> None:
    """The page has a part for each verb, in the order of `--help`."""
    text = (DOCS / "reference" / "command-line.md").read_text()
    assert re.findall(r"^## gonogo (\S+)$", text, flags=re.MULTILINE) == list(reference.verbs())


def test_every_verb_that_a_page_shows_is_there() -> None:
    """Nothing is promised that `gonogo --help` doesn't list."""
    known = set(importlib.import_module("gonogo.cli.verbs").VERBS)
    shown = {
        (page.name, verb)
        for page in PAGES
        for code in re.findall(r"```sh\n.*?```|`[^`\n]+`", page.read_text(), flags=re.DOTALL)
        for verb in re.findall(r"(?:^|[`/])gonogo ([a-z]+)\b", code, flags=re.MULTILINE)
    }
    assert {(page, verb) for page, verb in shown if verb not in known} == set()


def error_types(base: type[errors.GonogoError] = errors.GonogoError) -> Iterator[type[errors.GonogoError]]:
    """Every error a person can meet."""
    for kind in base.__subclasses__():
        yield kind
        yield from error_types(kind)


def test_every_exit_code_is_in_the_reference() -> None:
    """The verdicts' codes and those of the errors, in the README's table and in the reference."""
    codes = {0, 1, 3} | {kind.exit_code for kind in error_types()}
    for page in (DOCS / "reference" / "exit-codes.md", ROOT / "README.md"):
        rows = {int(code) for code in re.findall(r"^\| (\d+) \|", page.read_text(), flags=re.MULTILINE)}
        assert rows == codes, page.name


def names_in(told: Any) -> Iterator[str]:
    """Every key of JSON data, those within, too."""
    if isinstance(told, dict):
        yield from told
        told = list(told.values())
    for each in told if isinstance(told, list) else ():
        yield from names_in(each)


@pytest.mark.parametrize(
    ("heading", "told"),
    [
        ("runs", listing.as_json(Summary("r", event="push", waits=(Wait("a"),)))),
        ("workers", workers.as_json([Present("w", About("dbos", "m", 1), 0, 0, 0)], Waiting(0, {"": 1}), [])),
    ],
)
def test_every_name_of_a_lists_json_is_in_the_reference(heading: str, told: Any) -> None:
    """Below the heading of its verb."""
    page = (DOCS / "reference" / "json.md").read_text()
    section = page.partition(f"## `gonogo {heading}`")[2].partition("\n## ")[0]
    shown = {word for span in re.findall(r"`([^`\n]+)`", section) for word in re.findall(r"\w+", span)}
    assert set(names_in(told)) - shown == set()


def test_every_name_of_the_expressions_is_in_the_reference() -> None:
    """Data names and helper functions."""
    names = importlib.import_module("gonogo.expressions.names")
    assert (names.KNOWN_NAMES | names.HELPERS) - in_code("expressions.md") == set()


def test_every_filter_is_in_the_reference() -> None:
    """Filters beyond those of Liquid itself."""
    filters = importlib.import_module("gonogo.expressions.filters")
    assert (filters.FILTERS.keys() | filters.CONTEXT_FILTERS.keys()) - in_code("templates.md") == set()


def test_every_outcome_and_fault_class_is_explained() -> None:
    """The words a report shows are in the glossary."""
    faults = importlib.import_module("gonogo.core.faults")
    glossary = (DOCS / "concepts" / "glossary.md").read_text()
    outcomes = {"passed", "failed", "tolerated", "skipped", "cancelled", "waiting", "in doubt"}
    words = {*outcomes, *faults.FaultClass.__args__}
    assert {word for word in words if word not in glossary} == set()


def anchors(page: Path) -> set[str]:
    """The anchors that a page's headings make."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(page: Path) -> Iterator[str]:
    """Links to files or headings that aren't there; other sites are not asked."""
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            yield link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    """Every relative link has its file and heading."""
    assert list(broken_links(page)) == []


def test_every_page_can_be_reached_from_the_index() -> None:
    """docs/README.md leads to each page, itself or by one that it names."""
    reached, todo = set(), [DOCS / "README.md"]
    while todo:
        page = todo.pop()
        reached.add(page)
        for link in re.findall(r"\]\(([^)#\s]+\.md)", page.read_text()):
            target = (page.parent / link).resolve()
            if target.is_relative_to(DOCS) and target not in reached:
                todo.append(target)
    assert [str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md") if page not in reached] == []


def test_every_module_that_the_architecture_names_is_there() -> None:
    """The walk through one step can be followed file by file."""
    text = (ROOT / "ARCHITECTURE.md").read_text()
    named = set(re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.py)`", text))
    assert len(named) > 15
    assert {name for name in named if not any((top / name).is_file() for top in (ROOT, SOURCE))} == set()


def yaml_examples() -> list[tuple[str, str]]:
    """Every workflow shown whole (a ```yaml block with `version:`) in a page, with where it is."""
    found = []
    for page in PAGES:
        for number, block in enumerate(
            re.findall(r"```yaml\n(.*?)```", page.read_text(), flags=re.DOTALL), 1
        ):
            # One that imports others needs their files: tests/test_pages.py runs it with them.
            if re.search(r"^version:", block, flags=re.MULTILINE) and "\nimports:" not in block:
                found.append((f"{page.relative_to(ROOT)}-{number}", block))
    return found


def problems_of(text: str) -> list[str]:
    """Errors and warnings that loading the text finds."""
    from gonogo.config import loads
    from gonogo.expressions.sandbox import Sandbox
    from gonogo.providers.table import built_in

    sandbox = Sandbox(now_ms=0.0)
    try:
        found = loads(text, providers=built_in(), compile_expressions=sandbox.prepare).problems
    except errors.ConfigError as error:
        found = error.problems
    finally:
        sandbox.close()
    return [f"{problem.path}: {problem.message}" for problem in found if problem.severity != "info"]


EXAMPLES = [*yaml_examples(), ("gonogo.yaml", (ROOT / "gonogo.yaml").read_text())]


@pytest.mark.parametrize(("place", "text"), EXAMPLES, ids=[place for place, _ in EXAMPLES])
def test_workflows_shown_are_valid(place: str, text: str) -> None:
    """What a page shows can be copied: loading finds nothing to warn of, unless its first line says `# refused`."""
    assert (problems_of(text) == []) is not text.startswith("# refused\n")


def test_every_key_of_a_policy_is_explained_on_its_page() -> None:
    """`reliability:` takes the gate's own structs; the page for people names every key."""
    from gonogo.gate.policy import Policy, Rule, Target

    page = (DOCS / "how-to" / "calls-that-fail.md").read_text()
    keys = {key for struct in (Policy, Rule, Target) for key in struct.__struct_fields__}
    assert {key for key in keys if f"`{key}`" not in page} == set()
