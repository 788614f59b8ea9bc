"""Usual Experiments become OptimizationJobs that the API server takes, and whose trials train with their parameters.

After a change that is meant `python -m tests.golden` writes `expected` anew, and `git diff` is the review.
"""

from __future__ import annotations

import difflib
import re
from pathlib import Path

import pytest

from packages.v1_jobs.tests.katib.samples import ROOM, USUAL, containers, read, rendered
from trainer.cli.documents import DocumentError
from trainer.cli.offline.conversion import converted
from trainer.v1alpha1.discovery import Version
from trainer_sweeps.api.optimizationjob import OptimizationJob

REFUSED = {("tfjob", "v1alpha1")}
"""Experiments that the released version cannot run: its parameter servers get no variables of a TrainJob."""
each_file = pytest.mark.parametrize("file", [pytest.param(each, id=each.stem) for each in USUAL])
each_experiment = pytest.mark.parametrize(
    ("file", "version"),
    [
        pytest.param(file, version, id=f"{file.stem}-for-{version}")
        for file in USUAL
        for version in ("v2alpha1", "v1alpha1")
        if (file.stem, version) not in REFUSED
    ],
)


def expected(file: Path) -> Path:
    """Where it is kept what an Experiment becomes."""
    return ROOM / "expected" / file.name


def text_of(file: Path) -> str:
    """What an Experiment becomes, with its losses as comments."""
    return converted(read(file), file.name, "v2alpha1").to_yaml()


@each_file
def test_results(file: Path) -> None:
    """Every Experiment becomes what it became before."""
    actual, kept = text_of(file), expected(file)
    before = kept.read_text(encoding="utf-8") if kept.exists() else ""

    diff = difflib.unified_diff(before.splitlines(), actual.splitlines(), kept.name, "as converted now", lineterm="")
    assert actual == before, "\n".join(["run `python -m tests.golden` if this is meant:", *diff])


def test_nothing_is_left_over() -> None:
    """Every expected file belongs to an Experiment."""
    assert {each.name for each in (ROOM / "expected").iterdir()} == {each.name for each in USUAL}


@each_experiment
def test_fields(file: Path, version: Version) -> None:
    """OptimizationJobs of both versions are valid by their schema."""
    optimization_job = converted(read(file), file.name, version).objects[-1]

    assert optimization_job["apiVersion"] == f"trainer.kubeflow.org/{version}"
    assert OptimizationJob.from_object(optimization_job, strict=True).spec.parameters


@each_experiment
def test_trials(file: Path, version: Version) -> None:
    """Admission takes their trials, in which every reference to a parameter meets its variable, defined before it."""
    obj = read(file)
    values = {each["name"]: f"value-of-{each['name']}" for each in obj["spec"]["parameters"]}
    used = set()
    for container in containers(rendered(obj, version, values)):
        known: dict[str, str] = {}
        for variable in container.get("env", []):
            text = variable.get("value", "")
            names = re.findall(r"(?<!\$)\$\((KUBEFLOW_TRAINER_OPT_\w+|TRIAL_\w+)\)", text)
            assert set(names) <= known.keys(), variable
            used |= set(names)
            known[variable["name"]] = text
        names = re.findall(r"\$\((KUBEFLOW_TRAINER_OPT_\w+|TRIAL_\w+)\)", str(container))
        assert set(names) <= known.keys()
        used |= set(names)
        assert "trialParameters" not in str(container)
        assert "" not in {known[name] for name in names if name.startswith("KUBEFLOW_TRAINER_OPT_")}
    assert {name for name in used if name.startswith("KUBEFLOW")} == {
        "KUBEFLOW_TRAINER_OPT_" + name.upper().replace("-", "_") for name in values
    }


@pytest.mark.parametrize(("name", "version"), REFUSED)
def test_what_a_version_cannot_run(name: str, version: Version) -> None:
    """Pods that would get no parameters are named, with what to do."""
    file = ROOM / "experiments" / f"{name}.yaml"

    with pytest.raises(DocumentError, match="the pods of ps are a Job of their own"):
        converted(read(file), file.name, version)
