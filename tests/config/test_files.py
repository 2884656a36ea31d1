"""Finding, reading, extending and importing files, and staying inside of the project."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gonogo.config import Loaded, find_config, load
from gonogo.config.files import NAMES, OLDER_NAMES
from gonogo.errors import ConfigError, Problem, UsageError


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a git root, and the working directory in it."""
    root = tmp_path / "project"
    (root / ".git").mkdir(parents=True)
    monkeypatch.chdir(root)
    return root


def write(root: Path, **files: str) -> None:
    """Write files; `__` in a name is a slash, and each gets its ending."""
    for name, text in files.items():
        path = root / (name.replace("__", "/") + ".yaml")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.fixture
def load_file(providers: Any) -> Any:
    """Load a file that must be usable."""

    def loading(path: str | Path, **more: Any) -> Loaded:
        more.setdefault("compile_expressions", lambda sources: [None] * len(sources))
        return load(path, providers=providers, **more)

    return loading


@pytest.fixture
def refuse_file(load_file: Any) -> Any:
    """Load a file that must be refused; gives the errors."""

    def refusing(path: str | Path, **more: Any) -> tuple[Problem, ...]:
        with pytest.raises(ConfigError) as caught:
            load_file(path, **more)
        return tuple(problem for problem in caught.value.problems if problem.severity == "error")

    return refusing


@pytest.mark.parametrize("name", [*NAMES, *OLDER_NAMES])
def test_each_name_is_found_from_a_folder_below(project: Path, name: str) -> None:
    """cli.md: from the working directory up to the git root; the older names with a note."""
    (project / name).write_text("x")
    below = project / "a" / "b"
    below.mkdir(parents=True)
    found = find_config(below)
    assert found.path == project / name
    assert (found.note is not None) == ("visor" in name)


def test_our_name_wins_and_the_nearer_folder_wins_over_it(project: Path) -> None:
    """The order of cli.md, folder by folder."""
    for name in ("visor.yaml", ".gonogo.yml", "gonogo.yaml"):
        (project / name).write_text("x")
    (project / "a").mkdir()
    assert find_config(project / "a").path.name == "gonogo.yaml"
    (project / "a" / "visor.yml").write_text("x")
    assert find_config(project / "a").path == project / "a" / "visor.yml"


def test_nothing_above_the_git_root_is_found(project: Path) -> None:
    """Another project's file is not ours."""
    (project.parent / "gonogo.yaml").write_text("x")
    with pytest.raises(UsageError) as caught:
        find_config(project)
    assert "gonogo init" in (caught.value.advice or "")


def test_a_file_extends_others_from_left_to_right(project: Path, load_file: Any) -> None:
    """A.1 rule 3: the child last; a parent's own parents first."""
    write(
        project,
        base="env: {A: base, B: base, C: base, D: base}\nsteps: {s: {type: noop}}",
        sub__one="extends: ../base.yaml\nenv: {A: one, B: one, C: one}",
        two="env: {A: two, B: two}",
        gonogo="version: '1'\nextends: [sub/one.yaml, two.yaml]\nenv: {A: me}",
    )
    loaded = load_file("gonogo.yaml")
    assert loaded.plan.env == {"A": "me", "B": "two", "C": "one", "D": "base"}
    assert [path.name for path in loaded.files] == ["gonogo.yaml", "one.yaml", "base.yaml", "two.yaml"]


def test_include_is_extends(project: Path, load_file: Any) -> None:
    """A.1 rule 3: an alias."""
    write(project, base="steps: {s: {type: noop}}", gonogo="version: '1'\ninclude: base.yaml")
    assert list(load_file("gonogo.yaml").plan.steps) == ["s"]


def test_an_error_in_a_parent_names_the_parents_file_and_line(project: Path, refuse_file: Any) -> None:
    """Positions survive the merge."""
    write(
        project,
        base="steps:\n  s:\n    type: noop\n    if: outptus.x\n    fial_if: 'true'\n",
        gonogo="version: '1'\nextends: base.yaml\nsteps: {s: {group: g}}",
    )
    problems = refuse_file("gonogo.yaml")
    assert [(p.code, p.place.file, p.place.line) for p in problems] == [
        ("expression.name", "base.yaml", 4),
        ("key.unknown", "base.yaml", 5),
    ]
    assert problems[0].source == "    if: outptus.x"


def test_YML_2_a_duplicate_in_an_included_file_is_refused(project: Path, refuse_file: Any) -> None:
    """YML-2: nothing runs."""
    write(
        project,
        base="steps:\n  s: {type: noop}\n  s: {type: noop}\n",
        gonogo="version: '1'\nextends: base.yaml\n",
    )
    (problem,) = refuse_file("gonogo.yaml")
    assert (problem.code, problem.place.file) == ("yaml.duplicate", "base.yaml")


def test_YML_2_an_override_of_an_included_step_is_fine_and_noted(project: Path, load_file: Any) -> None:
    """YML-2: the note names both places."""
    write(
        project,
        base="steps:\n  s: {type: noop}\n",
        gonogo="version: '1'\nextends: base.yaml\nsteps:\n  s: {type: noop, group: g}\n",
    )
    (note,) = load_file("gonogo.yaml").problems
    assert (note.code, note.place.line) == ("step.overrides", 4)
    assert "base.yaml:2" in note.message


@pytest.mark.parametrize(
    ("named", "words"),
    [
        ("https://example.com/a.yaml", "remote files are not read"),
        ("http://example.com/a.yaml", "remote files are not read"),
        ("file:///etc/passwd", "remote files are not read"),
        ("../outside.yaml", "outside of the project"),
        ("/etc/passwd", "outside of the project"),
        ("link.yaml", "outside of the project"),
        ("folder/link.yaml", "outside of the project"),
        ("default", "no bundled configuration"),
        ("missing.yaml", "no file"),
        ("n" * 300, "no file"),
        ("n" * 5000, "can't be a path"),
        ("real", "no file"),
    ],
)
@pytest.mark.parametrize("key", ["extends", "include", "imports"])
def test_files_elsewhere_are_refused(
    project: Path, refuse_file: Any, key: str, named: str, words: str
) -> None:
    """A.1 rule 3, semantics.md 27: inside the project root, links followed; nothing remote."""
    (project.parent / "outside.yaml").write_text("steps: {s: {type: noop}}")
    (project / "real").mkdir()
    (project / "link.yaml").symlink_to(project.parent / "outside.yaml")
    (project / "folder").symlink_to(project.parent, target_is_directory=True)
    write(project, gonogo=f"version: '1'\n{key}: ['{named}']\nsteps: {{s: {{type: noop}}}}")
    (problem,) = refuse_file("gonogo.yaml")
    assert words in problem.message
    assert problem.place.line == 2


def test_a_link_inside_of_the_project_is_fine(project: Path, load_file: Any) -> None:
    """Only leaving is refused."""
    write(project, real__base="steps: {s: {type: noop}}", gonogo="version: '1'\nextends: base.yaml")
    (project / "base.yaml").symlink_to("real/base.yaml")
    assert list(load_file("gonogo.yaml").plan.steps) == ["s"]


def test_files_that_extend_each_other_are_refused_with_the_ring(project: Path, refuse_file: Any) -> None:
    """A.1 rule 3: a cycle is an error."""
    write(
        project,
        gonogo="version: '1'\nextends: a.yaml\nsteps: {s: {type: noop}}",
        a="extends: b.yaml",
        b="extends: gonogo.yaml",
    )
    (problem,) = refuse_file("gonogo.yaml")
    assert "gonogo.yaml -> " in problem.message
    assert problem.code == "extends.cycle"


def test_a_file_that_extends_itself_is_refused(project: Path, refuse_file: Any) -> None:
    """The shortest ring."""
    write(project, gonogo="version: '1'\nextends: gonogo.yaml\nsteps: {s: {type: noop}}")
    assert refuse_file("gonogo.yaml")[0].code == "extends.cycle"


def test_extending_goes_ten_files_deep(project: Path, load_file: Any, refuse_file: Any) -> None:
    """A.1 rule 3: the depth limit is 10."""
    for number in range(12):
        write(project, **{f"f{number}": f"extends: f{number + 1}.yaml"})
    write(project, f12="steps: {s: {type: noop}}")
    head = "version: '1'\nextends: f%d.yaml\n"
    write(project, ok=head % 3, deep=head % 2)
    load_file("ok.yaml")
    assert refuse_file("deep.yaml")[0].code == "extends.depth"


def test_many_files_are_limited(project: Path, refuse_file: Any) -> None:
    """Files that extend two others each would double at every level."""
    for number in range(9):
        write(project, **{f"f{number}": f"extends: [f{number + 1}.yaml, f{number + 1}.yaml]"})
    write(project, f9="steps: {s: {type: noop}}", gonogo="version: '1'\nextends: f0.yaml")
    assert "file.many" in {problem.code for problem in refuse_file("gonogo.yaml")}


def test_a_name_that_can_be_no_path_is_refused(project: Path, refuse_file: Any) -> None:
    """YAML can write a NUL, no system can open it."""
    write(project, gonogo="version: '1'\nextends: \"a\\0b\"\nsteps: {s: {type: noop}}")
    assert refuse_file("gonogo.yaml")[0].code == "extends.refused"


@pytest.mark.parametrize("size", [4, 5])
def test_large_files_are_limited_together(project: Path, refuse_file: Any, size: int) -> None:
    """Each may have 4 MiB, all together twice that."""
    text = "# " + "x" * (4 * 1024 * 1024 - 100) + "\nenv: {A: b}\n"
    for number in range(size):
        write(project, **{f"f{number}": text})
    names = ", ".join(f"f{number}.yaml" for number in range(size))
    write(project, gonogo=f"version: '1'\nextends: [{names}]\nsteps: {{s: {{type: noop}}}}")
    assert refuse_file("gonogo.yaml")[0].code == "file.many"


WORKFLOW = "version: '1'\nid: %s\ninputs: [{name: x}]\nsteps: {inner: {type: noop}}\n"


def test_an_import_is_registered_by_its_id(project: Path, load_file: Any) -> None:
    """A.1 rule 6."""
    write(
        project,
        lib__child=WORKFLOW % "child",
        gonogo="version: '1'\nimports: [lib/child.yaml]\nsteps: {s: {type: workflow, workflow: child, args: {x: 1}}}",
    )
    plan = load_file("gonogo.yaml").plan
    assert list(plan.workflows) == ["child"]
    assert list(plan.workflows["child"].steps) == ["inner"]
    assert plan.workflows["child"].digest.startswith("sha256:")


def test_a_step_may_name_a_workflow_by_its_path(project: Path, load_file: Any) -> None:
    """E.10: `config`."""
    write(
        project,
        lib__child=WORKFLOW % "child",
        gonogo="version: '1'\nsteps: {s: {type: workflow, config: lib/child.yaml, args: {x: 1}}}",
    )
    assert list(load_file("gonogo.yaml").plan.workflows) == ["lib/child.yaml"]


def test_a_run_item_of_a_workflow_becomes_a_hidden_routed_step(project: Path, load_file: Any) -> None:
    """C.10: `{workflow, with}`; its inputs are the arguments."""
    run = "[{workflow: child, with: {x: 1}}, {workflow: child, with: {y: '{{ output.z }}'}}]"
    write(
        project,
        child="version: '1'\nid: child\nsteps: {s: {type: noop}}",
        gonogo=f"version: '1'\nimports: child.yaml\nsteps: {{s: {{type: noop, on_success: {{run: {run}}}}}}}",
    )
    plan = load_file("gonogo.yaml").plan
    assert list(plan.steps) == ["s", "workflow:child", "workflow:child:2"]
    hidden = plan.steps["workflow:child"]
    assert (hidden.type, hidden.start) == ("workflow", "routed")
    assert hidden.config == {"workflow": "child", "args": {"x": {"expression": 'args["x"]'}}}
    block = plan.steps["s"].on_success
    assert [target.step for target in block.run] == ["workflow:child", "workflow:child:2"]


@pytest.mark.parametrize(
    ("child", "code"),
    [
        ("version: '1'\nsteps: {s: {type: noop}}", "imports.id"),
        ("version: '1'\nid: c\nimports: gonogo.yaml\nsteps: {s: {type: noop}}", "imports.cycle"),
        ("version: '1'\nid: c\nsteps: {s: {type: nope}}", "type.unknown"),
        ("a: [", "yaml.syntax"),
        ("", "yaml.empty"),
        ("[1]", "yaml.shape"),
    ],
)
def test_what_is_wrong_with_an_import_is_reported(
    project: Path, refuse_file: Any, child: str, code: str
) -> None:
    """With the import's own file and line."""
    write(project, child=child, gonogo="version: '1'\nimports: child.yaml\nsteps: {s: {type: noop}}")
    (problem,) = refuse_file("gonogo.yaml")
    assert (problem.code, problem.place.file) == (code, "child.yaml")


def test_two_imports_of_one_id_are_refused(project: Path, refuse_file: Any) -> None:
    """The second would hide the first."""
    write(
        project,
        a=WORKFLOW % "same",
        b=WORKFLOW % "same",
        gonogo="version: '1'\nimports: [a.yaml, b.yaml]\nsteps: {s: {type: noop}}",
    )
    assert [problem.code for problem in refuse_file("gonogo.yaml")] == ["imports.twice"]


def test_a_missing_file_is_refused(project: Path, refuse_file: Any) -> None:
    """With the system's reason."""
    (problem,) = refuse_file("nope.yaml")
    assert problem.code == "file.unreadable"
    assert "No such file" in problem.message


def test_a_text_can_not_name_files(refuse: Any) -> None:
    """`loads` has no folder."""
    assert refuse("extends: a.yaml\nsteps: {s: {type: noop}}")[0].code == "extends.refused"


def test_a_file_outside_of_git_may_use_its_own_folder(
    tmp_path: Path, load_file: Any, refuse_file: Any
) -> None:
    """The project root is then the file's folder."""
    folder = tmp_path / "plain"
    folder.mkdir()
    write(folder, base="steps: {s: {type: noop}}", gonogo="version: '1'\nextends: base.yaml")
    load_file(folder / "gonogo.yaml")
    write(tmp_path, base="steps: {s: {type: noop}}")
    write(folder, gonogo="version: '1'\nextends: ../base.yaml\nsteps: {s: {type: noop}}")
    assert "outside" in refuse_file(folder / "gonogo.yaml")[0].message


def test_problems_of_the_file_itself_come_first(project: Path, refuse_file: Any) -> None:
    """Then those of the files it takes in, each by line."""
    write(
        project,
        base="steps:\n  s:\n    type: noop\n    x: 1\n",
        gonogo="version: '1'\nextends: base.yaml\nsteps:\n  s: {group: g}\n  t: {type: noop, y: 1}\nzz: 1\n",
    )
    places = [(problem.place.file, problem.place.line) for problem in refuse_file("gonogo.yaml")]
    assert places == [("gonogo.yaml", 5), ("gonogo.yaml", 6), ("base.yaml", 4)]
