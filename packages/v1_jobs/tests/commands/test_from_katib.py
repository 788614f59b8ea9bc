"""`trainer convert` of Experiments of Katib."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from packages.v1_jobs.tests.katib.samples import experiment
from trainer.api.kubeflow_v1 import EXPERIMENTS
from trainer.cli.app import app
from trainer.kube.objects import Object
from trainer.kubernetes_yaml import dump
from trainer_kube_testing import FakeClient

GOAL = (
    "spec.objective.goal: is left out: all trials run; suspend or delete the OptimizationJob when its result is good "
    "enough"
)
LOSSY = experiment(objective={"type": "minimize", "objectiveMetricName": "loss", "goal": 0.1})
REFUSED = experiment(algorithm={"algorithmName": "mine"})
UNFIT = experiment(
    {
        "apiVersion": "trainer.kubeflow.org/v2alpha1",
        "kind": "TrainJob",
        "spec": {
            "runtimeRef": {"name": "torch-distributed"},
            "trainer": {"args": ["${trialParameters.lr}"], "numProcPerNode": "gpu"},
        },
    }
)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files have short names."""
    monkeypatch.chdir(tmp_path)


def run(command: str, *objects: Object, options: tuple[str, ...] = ()) -> Result:
    """Run a command on one file with these documents."""
    Path("f.yaml").write_text("---\n".join(dump(each) for each in objects))
    return CliRunner().invoke(app, [command, "-f", "f.yaml", *options])


def test_an_experiment() -> None:
    """The runtime comes first, then the OptimizationJob; what is lost is a comment, and a line on standard error."""
    result = run("convert", LOSSY)

    assert (result.exit_code, result.stderr) == (0, f"warning: f.yaml, document 1: {GOAL}\n")
    assert result.stdout.startswith(f"# {GOAL}\n")
    runtime, optimization_job = yaml.safe_load_all(result.stdout)
    assert [runtime["kind"], optimization_job["kind"]] == ["TrainingRuntime", "OptimizationJob"]
    again = run("convert", runtime, optimization_job)
    assert (again.exit_code, again.stderr) == (0, "")
    assert [*yaml.safe_load_all(again.stdout)] == [runtime, optimization_job]


def test_the_released_trainer() -> None:
    """The result may be of v1alpha1."""
    result = run("convert", experiment(), options=("--api-version", "v1alpha1"))

    assert (result.exit_code, result.stderr) == (0, "")
    assert {each["apiVersion"] for each in yaml.safe_load_all(result.stdout)} == {"trainer.kubeflow.org/v1alpha1"}


@pytest.mark.parametrize(
    ("obj", "codes", "problem"),
    [
        pytest.param(experiment(), (0, 0), "", id="nothing"),
        pytest.param(LOSSY, (0, 1), GOAL, id="loss"),
        pytest.param(REFUSED, (2, 2), "(Experiment demo): spec.algorithm.algorithmName: Unsupp", id="refused"),
        pytest.param(UNFIT, (1, 2), "(TrainJob demo-trial-1): spec.trainer.numProcPerNode", id="no trial"),
    ],
)  # fmt: skip
def test_exit_codes(obj: Object, codes: tuple[int, int], problem: str) -> None:
    """They are those of jobs, with --check and without; a trial that admission would refuse is an error."""
    results = run("convert", obj), run("convert", obj, options=("--check",))

    assert (results[0].exit_code, results[1].exit_code) == codes
    assert all(problem in each.stderr for each in results)
    assert bool(results[0].stdout) == (codes[0] != 2)
    assert results[1].stdout == ""


@pytest.mark.usefixtures("cluster")
def test_a_cluster(served: FakeClient) -> None:
    """An Experiment of a cluster loses what Katib and the server have written; that it has begun is said."""
    obj = experiment()
    obj["metadata"] |= {"namespace": "default", "uid": "u", "finalizers": ["update-prometheus-metrics"]}
    served.serve(EXPERIMENTS)
    served.add(obj | {"status": {"trials": 2}})
    result = CliRunner().invoke(app, ["convert", "experiment/demo", "-o", "out"])

    assert result.exit_code == 0
    assert result.stderr.startswith("warning: experiment/demo: status: is left out, with all that has run")
    _, optimization_job = yaml.safe_load_all(Path("out/experiment-demo.yaml").read_text())
    assert optimization_job["metadata"] == {"name": "demo", "namespace": "default"}


@pytest.mark.parametrize(
    ("command", "code", "text"),
    [
        pytest.param("lint", 0, "is not checked: trainer convert -f FILE prints it as an OptimizationJob", id="lint"),
        pytest.param("run", 2, "trainer convert -f FILE prints it as an OptimizationJob", id="run"),
    ],
)
def test_other_commands_name_this_one(command: str, code: int, text: str) -> None:
    """Who hands an Experiment to another command learns what to do with it."""
    result = run(command, experiment())

    assert result.exit_code == code
    assert text in result.stdout + result.stderr
