"""The workflows of GitHub: they run targets of make and nothing else, with no more rights than they need."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from hack.kind_cluster import KIND, NODES

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
USES = re.compile(r"^\s*(?:- )?uses: (\S+)(?: # (\S+))?$", re.MULTILINE)
WRITES = {
    "release-publish-images": {"attestations", "id-token", "packages"},
    "release-publish-packages": {"id-token"},
    "release-page": {"attestations", "contents", "id-token"},
}
"""What jobs may write; all others read the repository at most."""


class Job(NamedTuple):
    """A job of a workflow."""

    workflow: str
    name: str
    content: dict[str, Any]

    @property
    def steps(self) -> list[dict[str, Any]]:
        """Its steps; none where it calls another workflow."""
        return self.content.get("steps") or []


def load(path: Path) -> dict[str, Any]:
    # YAML 1.1 takes `on` for a boolean, the base loader for what it is.
    loaded: dict[str, Any] = yaml.load(path.read_text(encoding="utf-8"), yaml.BaseLoader)
    return loaded


JOBS = [Job(path.stem, name, content) for path in WORKFLOWS for name, content in load(path)["jobs"].items()]
each_workflow = pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
each_job = pytest.mark.parametrize("job", JOBS, ids=lambda job: f"{job.workflow}-{job.name}")


@pytest.fixture(scope="module")
def targets() -> set[str]:
    """What make can make."""
    if shutil.which("make") is None:
        pytest.skip("make is not installed")
    command = ["make", "--print-data-base", "--question", "--no-builtin-rules", "help"]
    database = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout
    return set(re.findall(r"^([a-z][\w.-]*):", database, re.MULTILINE))


def values(job: Job, value: str) -> list[str]:
    """What an environment variable of a job may be: itself, or each entry of the matrix that it names."""
    named = re.fullmatch(r"\$\{\{ matrix\.(\w+) \}\}", value)
    return job.content["strategy"]["matrix"][named[1]] if named else [value]


@each_job
def test_steps_run_targets_of_make(job: Job, targets: set[str]) -> None:
    """So whatever a workflow does can be done on any machine; expressions reach make by variables alone."""
    for step in job.steps:
        if "run" not in step:
            continue
        program, *words = shlex.split(step["run"])
        assert program == "make", step["run"]
        assert words, step["run"]
        for word in words:
            assert word in targets, f"make {word}"
    for named in values(job, job.content.get("env", {}).get("TARGETS", "help")):
        assert set(named.split()) <= targets, f"make {named}"


@each_workflow
def test_actions_are_pinned(path: Path) -> None:
    """By commit, with the version that people and Dependabot read beside it; ours are files of the same commit."""
    text = path.read_text(encoding="utf-8")
    used = USES.findall(text)
    assert len(used) == text.count("uses:")
    for action, version in used:
        if not action.startswith("./"):
            assert re.fullmatch(r"[\w.-]+/[\w./-]+@[0-9a-f]{40}", action), action
            assert re.fullmatch(r"v\d+\.\d+\.\d+", version), action


def test_an_action_has_one_version() -> None:
    """All workflows use the same one."""
    used = {each for path in WORKFLOWS for each in USES.findall(path.read_text(encoding="utf-8"))}
    names = [action.partition("@")[0] for action, _ in used]
    assert sorted(names) == sorted(set(names))


@each_workflow
def test_nothing_is_granted_to_all_jobs(path: Path) -> None:
    """A workflow grants nothing, and of two runs for one ref the second waits or takes the place of the first."""
    workflow = load(path)
    assert workflow["permissions"] == {}
    assert "github.ref" in workflow["concurrency"]["group"]


@each_job
def test_rights(job: Job) -> None:
    """Each job says what it needs; what may write is listed here."""
    allowed = WRITES.get(f"{job.workflow}-{job.name}", set())
    granted: dict[str, str] = job.content["permissions"]
    assert {name for name, access in granted.items() if access == "write"} == allowed
    assert set(granted) <= allowed | {"contents"}


@each_job
def test_an_end(job: Job) -> None:
    """A job that hangs ends; those of a workflow that is called have their own time."""
    assert "timeout-minutes" in job.content or "uses" in job.content


@each_job
def test_checkouts_keep_no_credentials(job: Job) -> None:
    """What the tests start cannot push."""
    checkouts = [step for step in job.steps if step.get("uses", "").startswith("actions/checkout@")]
    assert all(step["with"]["persist-credentials"] == "false" for step in checkouts)


def test_secrets_are_those_of_github() -> None:
    """No secret has to be stored: whatever is signed or published is so by the identity of the workflow."""
    named = {name for path in WORKFLOWS for name in re.findall(r"secrets\.(\w+)", path.read_text(encoding="utf-8"))}
    assert named <= {"GITHUB_TOKEN"}


def test_one_machine_for_all_tests() -> None:
    """Whatever runs as root does so in the same container, whose Python is the oldest that is supported."""
    containers = [job.content["container"] for job in JOBS if "container" in job.content]
    assert all(each == containers[0] for each in containers)
    assert re.fullmatch(r"docker\.io/library/python:3\.11-bookworm@sha256:[0-9a-f]{64}", containers[0]["image"])


def test_what_may_write_runs_no_build() -> None:
    """What is published is built and tested by jobs that can write nothing, and waits for somebody's approval."""
    release = {job.name: job for job in JOBS if job.workflow == "release"}
    writing = {name for name in release if f"release-{name}" in WRITES}
    ran = {step["run"].split()[1] for name in writing for step in release[name].steps if "run" in step}
    assert not ran & {"ci", "release", "images", "join-images", "pack-chart"}
    assert all("environment" in release[name].content for name in writing)


def test_all_is_tested_before_anything_is_published() -> None:
    """Each job that writes comes after the gate, the tests on Kubernetes, the load and the build."""
    needs: dict[str, set[str]] = {}
    for job in (job for job in JOBS if job.workflow == "release"):
        named = job.content.get("needs", [])
        needs[job.name] = {named} if isinstance(named, str) else set(named)

    def before(name: str) -> set[str]:
        return needs[name].union(*(before(other) for other in needs[name]))

    for name in WRITES:
        assert {"tag", "gate", "kind", "soak", "images", "build"} <= before(name.removeprefix("release-"))


def kind_jobs() -> Iterator[Job]:
    return (job for job in JOBS if job.workflow == "kind")


def test_kind() -> None:
    """The oldest and the newest of the versions that this release of kind has images of."""
    (job,) = kind_jobs()
    assert values(job, job.content["env"]["KUBERNETES"]) == [min(NODES), max(NODES)]
    (version,) = (step["with"]["version"] for step in job.steps if step.get("uses", "").startswith("helm/kind-action@"))
    assert version == KIND
