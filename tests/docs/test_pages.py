"""The pages as readers find them: links lead somewhere, commands exist, manifests are accepted."""

from __future__ import annotations

import ast
import functools
import importlib.util
import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic.alias_generators import to_camel
from typer.testing import CliRunner

from hack.reference.command_line import commands as subcommands
from hack.reference.command_line import option_names
from hack.reference.markdown import LONGEST_CELL
from tests.docs.markdown import DOCS, ROOT, anchors, blocks, cells, commands, links, name_of, pages
from trainer.cli.app import app
from trainer.configuration.configuration import Configuration, load_configuration
from trainer.progress.report import report

each_page = pytest.mark.parametrize("page", [pytest.param(page, id=name_of(page)) for page in pages()])

KUBECTL = Path(sys.executable).parent / "kubectl"
SECTIONS = [to_camel(name) for name in Configuration.model_fields]
OURS = ("config/", "examples/", "docs/", "benchmarks/", "e2e/", "hack/", "packages/", "tests/", "trainer/")
"""Paths of files in commands that must exist; others are the reader's own."""


@each_page
def test_links(page: Path) -> None:
    """Each link within the sources leads to a file, and its fragment to a heading of that."""
    for link in links(page):
        path, _, fragment = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert not fragment or fragment in anchors(target), link


@pytest.mark.parametrize("page", [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))], ids=name_of)
def test_tables_can_be_read_at_a_glance(page: Path) -> None:
    """No cell is a paragraph: what is longer is text below the table."""
    assert [each for each in cells(page) if len(each) > LONGEST_CELL] == []


@each_page
def test_named_files(page: Path) -> None:
    """Each file or folder of the sources that a page names in backticks exists."""
    named = re.findall(rf"`((?:{'|'.join(OURS)}|trainer_\w+/)[\w./-]+)`", page.read_text(encoding="utf-8"))
    roots = (ROOT, page.parent, *ROOT.glob("packages/*/src"))
    assert [path for path in named if not any((root / path).exists() for root in roots)] == []


@each_page
def test_commands(page: Path) -> None:
    """Each command has a subcommand, options and files that exist."""
    for command in commands(page):
        problem = complaint_about(command)
        assert problem is None, f"{' '.join(command)}: {problem}"


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        pytest.param("trainer fly", "no subcommand fly", id="subcommand"),
        pytest.param("trainer get --wacht", "no option --wacht", id="option"),
        pytest.param("kubectl aply -f x.yaml", "no subcommand aply", id="kubectl"),
        pytest.param("kubectl apply --serverside -f x.yaml", "no option --serverside", id="kubectl-option"),
        pytest.param("kubectl apply -k config/nothing", "no file config/nothing", id="file"),
        pytest.param("make tea", "no target tea", id="target"),
        pytest.param("python -m hack.nothing", "no module hack.nothing", id="module"),
    ],
)
def test_mistakes_in_commands_are_found(command: str, problem: str) -> None:
    """The test of commands can fail."""
    assert complaint_about(command.split()) == problem


@each_page
def test_reports(page: Path) -> None:
    """Each call of `report` that a page shows has arguments that it knows."""
    known = inspect.signature(report).parameters
    trees = [ast.parse(block.text) for block in blocks(page) if block.language == "python" and "report(" in block.text]
    calls = [each for tree in trees for each in ast.walk(tree) if isinstance(each, ast.Call)]
    shown = [each for each in calls if isinstance(each.func, ast.Name) and each.func.id == "report"]
    assert [keyword.arg for each in shown for keyword in each.keywords if keyword.arg not in known] == []


@each_page
def test_yaml(page: Path) -> None:
    """Every YAML block can be read."""
    for block in blocks(page):
        if block.language == "yaml":
            list(yaml.load_all(block.text, yaml.CSafeLoader))


def manifests_of(version: str) -> list[Any]:
    """The YAML blocks of all pages with objects of an API version."""
    return [
        pytest.param(block.text, id=f"{name_of(page)}-{number}")
        for page in pages()
        for number, block in enumerate(blocks(page))
        if block.language == "yaml" and f"apiVersion: {version}" in block.text
        if "kind: OptimizationJob\n" not in block.text  # which packages/sweeps looks at
    ]


@pytest.mark.parametrize("text", manifests_of("config.trainer.kubeflow.org/v1alpha1"))
def test_configurations(text: str, tmp_path: Path) -> None:
    """The manager accepts each configuration that a page shows."""
    file = tmp_path / "configuration.yaml"
    file.write_text(text)
    load_configuration(file, {})


@pytest.mark.parametrize("text", manifests_of("trainer.kubeflow.org/v2alpha1"))
def test_admission(text: str, tmp_path: Path) -> None:
    """Admission accepts each TrainJob and runtime that a page shows, on the runtimes that ship."""
    file = tmp_path / "manifest.yaml"
    file.write_text(text)
    result = CliRunner().invoke(app, ["lint", "-f", str(file)])
    assert result.exit_code == 0
    assert all(line.endswith(": ok") for line in result.stdout.splitlines()), result.stdout


@pytest.mark.parametrize(
    ("path", "page"),
    [
        pytest.param(path, page, id=f"{page.name}-{path}")
        for page in sorted(DOCS.glob("*.md"))
        if page.name != "kube.md"  # where such words are modules
        for path in sorted(set(re.findall(rf"`((?:{'|'.join(SECTIONS)})\.[A-Za-z.]+)", page.read_text())))
    ],
)
def test_fields_of_the_configuration(path: str, page: Path) -> None:
    """What a page calls a setting of the manager is one."""
    place: Any = Configuration.model_json_schema()
    definitions = place["$defs"]
    for step in path.split("."):
        assert step in place["properties"], f"{page.name}: {path}"
        place = place["properties"][step]
        place = definitions[place["$ref"].rpartition("/")[2]] if "$ref" in place else place


def test_the_example_of_a_configuration_keeps_what_the_shipped_one_needs() -> None:
    """Who replaces the file by the one in operate.md still has a leader, and metrics that Prometheus trusts."""
    shipped = yaml.load((ROOT / "config" / "manager" / "configuration.yaml").read_text(), yaml.CSafeLoader)
    texts = [block.text for block in blocks(DOCS / "operate.md") if "kind: Configuration\n" in block.text]
    (example,) = map(yaml.safe_load, texts)
    assert example["webhook"]["hosts"] == shipped["webhook"]["hosts"]
    assert example["leaderElection"]["leaderElect"] == shipped["leaderElection"]["leaderElect"]


def test_index_leads_to_every_page() -> None:
    """No page is without a reader."""
    index = DOCS / "README.md"
    linked = {(index.parent / link.partition("#")[0]).resolve() for link in links(index)}
    assert {page for page in DOCS.rglob("*.md") if page != index} - linked == set()


def test_every_alert_is_explained() -> None:
    """The page about troubles has a heading for each alert that ships, and for no other; alerts link to it."""
    page = DOCS / "troubleshooting.md"
    rules = [
        rule
        for document in yaml.load_all((ROOT / "config" / "prometheus" / "alerts.yaml").read_text(), yaml.CSafeLoader)
        for group in document["spec"]["groups"]
        for rule in group["rules"]
    ]
    assert {rule["alert"] for rule in rules} == set(
        re.findall(r"^### (Trainer[A-Z]\w+)$", page.read_text(), re.MULTILINE)
    )
    for rule in rules:
        assert rule["annotations"]["runbook_url"].endswith(f"docs/troubleshooting.md#{rule['alert'].lower()}")
        assert rule["alert"].lower() in anchors(page)


def complaint_about(command: list[str]) -> str | None:
    """What is wrong with a command, of those programs that we know."""
    program, *arguments = [word for word in command if not re.fullmatch(r"[A-Z_]+=.*", word)] or [""]
    missing = [word for word in arguments if word.startswith(OURS) and "..." not in word and not (ROOT / word).exists()]
    if missing:
        return f"no file {missing[0]}"
    match program:
        case "trainer":
            return _wrong_with_trainer(arguments)
        case "kubectl" if arguments[:1] == ["trainer"]:  # the command as a plugin of kubectl
            return _wrong_with_trainer([word for word in arguments[1:] if word != "..."])
        case "kubectl":
            return _wrong_with_kubectl(arguments)
        case "make":
            targets = re.findall(r"^([a-z][\w-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE)
            return next((f"no target {word}" for word in arguments if "=" not in word and word not in targets), None)
        case "python" if arguments[:1] == ["-m"]:
            return None if importlib.util.find_spec(arguments[1]) else f"no module {arguments[1]}"
    return None


def _wrong_with_trainer(arguments: list[str]) -> str | None:
    if not arguments or arguments[0].startswith("-") or arguments[0] == "COMMAND":
        return None
    known = subcommands()
    command = known.get(" ".join(arguments[:2])) or known.get(arguments[0])
    if command is None:
        return f"no subcommand {arguments[0]}"
    return _unknown_option(arguments, option_names(command))


def _wrong_with_kubectl(arguments: list[str]) -> str | None:
    words = [word for word in arguments if not word.startswith("-")]
    if words[:1] not in [[name] for name in _help_of("").commands]:
        return f"no subcommand {words[0] if words else ''}"
    path, *rest = words
    while rest and rest[0] in _help_of(path).commands:
        path = f"{path} {rest.pop(0)}"
    return _unknown_option(arguments, _help_of(path).options | _help_of("options").options)


def _unknown_option(arguments: list[str], known: set[str]) -> str | None:
    own = arguments[: arguments.index("--")] if "--" in arguments else arguments
    for word in own:
        if re.fullmatch("-[a-z]{2,}", word) and all(f"-{letter}" in known for letter in word[1:]):  # such as -it
            continue
        if word.startswith("-") and len(word) > 1 and word.partition("=")[0] not in known:
            return f"no option {word}"
    return None


class _Help:
    def __init__(self, text: str) -> None:
        found = re.findall(r"^ +(?:(-\w), )?(--[\w-]+)=", text, re.MULTILINE)
        self.options = {name for names in found for name in names if name} | {"-h", "--help"}
        self.commands = set(re.findall(r"^  ([a-z][\w-]*) {2,}\S", text, re.MULTILINE))


@functools.cache
def _help_of(path: str) -> _Help:
    arguments = path.split() if path == "options" else [*path.split(), "--help"]
    return _Help(subprocess.run([KUBECTL, *arguments], capture_output=True, text=True, check=True).stdout)
