"""Jobs of the Training and MPI Operator become trainings that see what they saw before.

`operator_model` says what the operators made of a job; what TrainJob and runtime become is rendered by the code of the
command line. After a change that is meant: `python -m tests.golden` writes `expected` anew, and `git diff` is the
review.
"""

from __future__ import annotations

import difflib
import functools
from pathlib import Path

import pytest

from packages.v1_jobs.tests.golden.comparison import EXPECTED, Comparison, comparisons, documents_of, expected, text_of
from packages.v1_jobs.tests.golden.manifests import manifests
from trainer.cli.offline.lint import Severity, lint_files
from trainer.kubernetes_yaml import dump, join
from trainer.v1alpha1.discovery import Version

KINDS = [*manifests()]
JOBS = [(kind, job["metadata"]["name"]) for kind, jobs in manifests().items() for job in jobs]

VERSIONS: tuple[Version, ...] = ("v2alpha1", "v1alpha1")
each_job = pytest.mark.parametrize(
    ("kind", "name", "version"),
    [pytest.param(*job, version, id=f"{job[1]}-for-{version}") for job in JOBS for version in VERSIONS],
)
each_kind = pytest.mark.parametrize("kind", KINDS)

COUNTED = {"PET_NPROC_PER_NODE"}
"""What auto and cpu stand for is counted in the container, and no more by torchrun on the machine."""
EXCEPTIONS = {
    "torch-elastic-conf": {"PET_RDZV_CONF"},
    "torch-elastic-silent": {"PET_NNODES"},
    "torch-elastic-alone": {"PET_RDZV_ENDPOINT", "PET_RDZV_BACKEND", "PET_STANDALONE"},
    "torch-elastic-master": {"PET_RDZV_ENDPOINT", "PET_MASTER_ADDR", "PET_MASTER_PORT", "PET_NODE_RANK"},
}
"""Variables that are lost, or come to the same, by job."""
ELASTIC = {"PET_NNODES"}
"""What differs in an elastic training on v1alpha1, where it has a fixed number of nodes."""
UNLIKE = {
    "mpi-v2beta1-intel": "only Open MPI is known",
    "mpi-v2beta1-mpich": "only Open MPI is known",
    "mpi-v2beta1-launcher-trains": "the launcher is the last host",
    "mpi-v2beta1-alone": "a node stays beside the launcher",
}
"""Jobs whose host file is another one on v1alpha1."""


@functools.cache
def compared(kind: str, version: Version) -> dict[str, Comparison]:
    """The jobs of a kind, by name; made once."""
    return {each.name: each for each in comparisons(kind, version)}


def test_there_are_enough() -> None:
    """There are at least sixty jobs, of all kinds and versions, each of another name."""
    assert len(JOBS) == len(set(JOBS)) >= 60
    found = {(job["apiVersion"], job["kind"]) for jobs in manifests().values() for job in jobs}
    assert len(found) == 7


@each_job
def test_pods(kind: str, name: str, version: Version) -> None:
    """There are as many pods as before, with the same images, commands, arguments, resources and mounts."""
    comparison = compared(kind, version)[name]

    extra = 1 if (version, name) == ("v1alpha1", "mpi-v2beta1-alone") else 0
    assert len(comparison.after.pods) == len(comparison.before.pods) + extra
    for before, after in comparison.pairs():
        assert len(after.containers) == len(before.containers)
        for container, was in before.containers.items():
            now = after.containers[after.main if container == before.main else container]
            is_server = "mpi-v1-" in name and "worker" in before.name and container == before.main
            for member in ("image", "resources", "workingDir", *(() if is_server else ("command", "args"))):
                assert now.get(member) == was.get(member), member
            assert [mount for mount in now.get("volumeMounts", []) if not mount["name"].startswith("mpi-")] == was.get(
                "volumeMounts", []
            )


@each_job
def test_variables(kind: str, name: str, version: Version) -> None:
    """Variables have the values that they had, with the names and ports that hosts have now."""
    changes = [each for pod in compared(kind, version)[name].differences().values() for each in pod]

    is_fixed = version == "v1alpha1" and "-elastic" in name
    allowed = COUNTED | EXCEPTIONS.get(name, set()) | (ELASTIC if is_fixed else set())
    assert {each.partition(".")[2] for each in changes} <= allowed


@each_job
def test_restarts(kind: str, name: str, version: Version) -> None:
    """Containers are started again after the same failures, as often, except that Always is OnFailure."""
    comparison = compared(kind, version)[name]

    for before, after in comparison.pairs():
        assert after.restarts == before.restarts, after.name


@each_job
def test_success(kind: str, name: str, version: Version) -> None:
    """The training has succeeded with the same pods as before."""
    comparison = compared(kind, version)[name]
    names = {before.name: after.name for before, after in comparison.pairs()}

    expected = {frozenset(names[pod] for pod in pods) for pods in comparison.before.succeeds_with}
    assert comparison.after.succeeds_with == expected


@each_job
def test_hostfile(kind: str, name: str, version: Version) -> None:
    """The hostfile of MPI names the same hosts with the same slots."""
    comparison = compared(kind, version)[name]
    before = comparison.translated(comparison.before.hostfile)

    if version == "v1alpha1" and name in UNLIKE:
        assert comparison.after.hostfile != before
    elif name == "mpi-v2beta1-alone":  # the launcher is the only host, which the operator did not say
        assert (before, comparison.after.hostfile) == ("", "mpi-v2beta1-alone-launcher-0-0.mpi-v2beta1-alone slots=1\n")
    else:
        assert comparison.after.hostfile == before


@each_kind
@pytest.mark.parametrize("version", VERSIONS)
def test_lint(kind: str, version: Version, tmp_path: Path) -> None:
    """`trainer lint` has no error for what is written."""
    file = tmp_path / "all.yaml"
    documents = [each for job in manifests()[kind] for each in documents_of(job, version)]
    file.write_text(join(dump(each.obj) for each in documents))

    assert [finding for finding in lint_files([str(file)]) if finding.severity is Severity.ERROR] == []


@each_kind
def test_summaries(kind: str) -> None:
    """Every job becomes what it became before."""
    actual, file = text_of([*compared(kind, "v2alpha1").values()]), expected(kind)
    before = file.read_text(encoding="utf-8") if file.exists() else ""

    diff = difflib.unified_diff(before.splitlines(), actual.splitlines(), file.name, "as converted now", lineterm="")
    assert actual == before, "\n".join(["run `python -m tests.golden` if this is meant:", *diff])


def test_nothing_is_left_over() -> None:
    """Every expected file belongs to a kind."""
    assert {file.stem for file in EXPECTED.glob("*.yaml")} == set(KINDS)
