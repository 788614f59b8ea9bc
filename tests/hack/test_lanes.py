"""Which tests a change needs."""

from __future__ import annotations

import subprocess
from itertools import combinations
from pathlib import Path

import pytest

from hack.lanes import CORE, LANES, NIGHTLY, ROOT, VERIFIED, arguments_of, chosen, main

FILES = {
    "pyproject.toml": '[tool.ruff]\nsrc = [".", "packages/*/src"]\n',
    "docs/page.md": "",
    "docs/migrate-from-v1.md": "",
    "packages/dashboard/web/page.ts": "",
    "config/crd/crd.yaml": "",
    "trainer/__init__.py": "",
    "trainer/quantity.py": "",
    "trainer/plugin.py": "",
    "packages/dashboard/src/trainer_dashboard/server.py": "def serve() -> None:\n    from trainer import quantity\n",
    "packages/initializers/src/fetching/__init__.py": "",
    "packages/initializers/src/fetching/hub.py": "from fetching import names\n",
    "packages/initializers/src/fetching/names.py": "",
    "packages/initializers/tests/test_hub.py": "from fetching.hub import fetch\n",
    "tests/conftest.py": "",
    "packages/conftest.py": "from tests import conftest\n",
    "tests/test_plugin.py": "import trainer.plugin\n",
    "packages/dashboard/tests/test_server.py": "from trainer_dashboard.server import serve\n",
    "packages/v1_jobs/tests/conversion/test_fields.py": "",
    "e2e/conftest.py": "",
    "e2e/test_clients.py": "",
    "e2e/test_history.py": "",
}
"""A checkout."""
ALL = set(LANES)


def git(root: Path, *arguments: str) -> str:
    """Run git as somebody."""
    identity = ["-c", "user.name=somebody", "-c", "user.email=somebody@example.com"]
    command = ["git", *identity, *arguments]
    return subprocess.run(command, cwd=root, capture_output=True, check=True, text=True).stdout.strip()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A checkout whose last commit is verified."""
    for path, text in FILES.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--message", "All tests pass")
    (tmp_path / ".ci").mkdir()
    (tmp_path / VERIFIED).write_text(git(tmp_path, "rev-parse", "HEAD") + "\n")
    return tmp_path


def lanes(root: Path) -> set[str]:
    """The lanes that run."""
    return {name for name, reason in chosen(root).items() if reason}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param("trainer/quantity.py", {"dashboard", "release"}, id="what is imported inside of a function"),
        pytest.param("trainer/plugin.py", {"release"}, id="what only images have"),
        pytest.param("tests/test_plugin.py", set(), id="tests of no lane"),
        pytest.param("packages/initializers/src/fetching/names.py", {"initializers", "release"}, id="package"),
        pytest.param("packages/initializers/tests/test_hub.py", {"initializers"}, id="tests of a lane"),
        pytest.param("packages/initializers/README.md", {"initializers", "release"}, id="file of a package"),
        pytest.param("trainer/__init__.py", {"dashboard", "release"}, id="package of what is imported"),
        pytest.param("tests/conftest.py", ALL - {"devcluster", "sweeps"}, id="what tests have in common"),
        pytest.param("e2e/conftest.py", {"dashboard", "devcluster"}, id="what end-to-end tests have in common"),
        pytest.param("packages/dashboard/web/page.ts", {"dashboard"}, id="what one lane reads"),
        pytest.param("docs/migrate-from-v1.md", {"v1_jobs"}, id="page that one lane reads"),
        pytest.param("docs/page.md", set(), id="page that none reads"),
        pytest.param("config/crd/crd.yaml", ALL, id="what any lane may read"),
        pytest.param("constraints.txt", ALL, id="new file"),
    ],
)
def test_a_change(root: Path, path: str, expected: set[str]) -> None:
    """The lanes run that import or read what has changed, committed or not."""
    (root / path).write_text("# changed\n")
    assert lanes(root) == expected
    git(root, "add", ".")
    git(root, "commit", "--quiet", "--message", "Change")
    assert lanes(root) == expected


def test_a_module_that_is_gone(root: Path) -> None:
    """Who imported it cannot be known any more, so all lanes run."""
    git(root, "rm", "--quiet", "trainer/plugin.py")
    assert lanes(root) == ALL


def test_no_verified_commit(root: Path) -> None:
    """Without one, and with one that HEAD does not build on, all lanes run and say why."""
    assert chosen(root) == dict.fromkeys(LANES, "")
    git(root, "commit", "--quiet", "--amend", "--allow-empty", "--message", "Another history")
    assert "HEAD builds on" in chosen(root)["dashboard"]
    (root / VERIFIED).unlink()
    assert chosen(root) == dict.fromkeys(LANES, f"there is no {VERIFIED}")


@pytest.mark.parametrize("kind", ["unit", "e2e"])
def test_every_test_has_one_place(kind: str) -> None:
    """Each lane has tests that exist, no test is in two lanes, and the core leaves out those of the lanes."""
    arguments = {name: arguments_of(ROOT, kind, name) for name in LANES}
    of_lanes = {name: {each for each in given if not each.startswith("--")} for name, given in arguments.items()}
    assert all(of_lanes.values())
    assert [pair for pair in combinations(of_lanes, 2) if of_lanes[pair[0]] & of_lanes[pair[1]]] == []
    core = arguments_of(ROOT, kind, CORE)
    assert {f"--ignore={path}" for paths in of_lanes.values() for path in paths} <= set(core)
    assert ("--ignore=e2e/sweeps/test_examples.py" in arguments["sweeps"]) is (kind == "e2e"), "it is for the night"


def test_end_to_end_tests_exist() -> None:
    """What the tables name is there: a file that is renamed would run in each gate."""
    named = [*NIGHTLY, *(path for lane in LANES.values() for path in lane.e2e)]
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_usage(capsys: pytest.CaptureFixture[str]) -> None:
    """What is no lane is refused with those that there are."""
    assert main(["unit", "dashbord"]) == 2
    assert "core|devcluster|sweeps|v1_jobs|dashboard|initializers" in capsys.readouterr().err
