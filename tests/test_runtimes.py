"""The runtimes that we ship."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
import yaml

import trainer
from trainer.api.trainingruntime import ClusterTrainingRuntime
from trainer.cli.documents import read_documents
from trainer.cli.offline.render import Rendered, render_documents
from trainer.kube.objects import Object
from trainer.plugins import BUILT_IN

FOLDER = Path(__file__).parents[1] / "config" / "runtimes"
FILES = sorted(path.stem for path in FOLDER.glob("*.yaml") if path.stem != "kustomization")
FRAMEWORK = "trainer.kubeflow.org/framework"

SHIPPED = {
    "deepspeed-distributed": ("deepspeed", "mpi"),
    "flux-distributed": ("flux", "flux"),
    "jax-distributed": ("jax", "jax"),
    "mlx-distributed": ("mlx", "mpi"),
    "mpi-intel": ("mpi", "mpi"),
    "mpi-mpich": ("mpi", "mpi"),
    "mpi-openmpi": ("mpi", "mpi"),
    "paddle-distributed": ("paddle", "paddle"),
    "plain": ("plain", None),
    "tensorflow-distributed": ("tensorflow", "tensorflow"),
    "tensorflow-parameter-server": ("tensorflow", "tensorflow"),
    "torch-distributed": ("torch", "torch"),
    "torch-distributed-elastic": ("torch", "torch"),
    "torch-single-node": ("torch", "torch"),
    "torch-tune-gemma-7b": ("torchtune", "torch"),
    "torch-tune-llama-7b": ("torchtune", "torch"),
    "torch-tune-llama-7b-export": ("torchtune", "torch"),
    "torchtune-gemma-2b": ("torchtune", "torch"),
    "torchtune-llama3.1-70b": ("torchtune", "torch"),
    "torchtune-llama3.1-8b": ("torchtune", "torch"),
    "torchtune-llama3.2-1b": ("torchtune", "torch"),
    "torchtune-llama3.2-3b": ("torchtune", "torch"),
    "torchtune-mistral-7b": ("torchtune", "torch"),
    "torchtune-qwen2.5-1.5b": ("torchtune", "torch"),
    "transformers-distributed": ("transformers", "torch"),
    "xgboost-distributed": ("xgboost", "xgboost"),
}
"""Each runtime with the framework that its label names, and the policy source that serves it."""


@cache
def manifest(stem: str) -> Object:
    """The runtime of a file."""
    (content,) = yaml.load_all((FOLDER / f"{stem}.yaml").read_text(), yaml.CSafeLoader)
    assert isinstance(content, dict)
    return content


def test_all_are_there() -> None:
    """There is a file for each runtime, no other file, and kustomize applies all of them, in alphabetical order."""
    listed = yaml.load((FOLDER / "kustomization.yaml").read_text(), yaml.CSafeLoader)["resources"]
    assert [stem.replace("_", "-") for stem in FILES] == sorted(SHIPPED)
    assert listed == [f"{stem}.yaml" for stem in FILES]


@pytest.mark.parametrize("stem", FILES)
def test_name_and_label(stem: str) -> None:
    """A runtime is named like its file, says what it is for, and is labelled with the framework that it serves."""
    content = manifest(stem)
    runtime = ClusterTrainingRuntime.from_object(content)
    framework, source = SHIPPED[stem.replace("_", "-")]
    policy = runtime.spec.ml_policy

    assert content["metadata"]["name"] == stem.replace("_", "-")
    assert content["metadata"]["labels"][FRAMEWORK] == framework
    assert (FOLDER / f"{stem}.yaml").read_text().startswith("# ")
    assert policy is not None
    assert policy.source == source
    assert source is None or source in BUILT_IN


RELEASED = FOLDER.parent / "v1alpha1" / "runtimes"


@pytest.mark.parametrize(
    "file",
    [
        pytest.param(file, id=f"{file.parts[-3]}-{file.stem}")
        for folder in (FOLDER, RELEASED)
        for file in sorted(folder.glob("*.yaml"))
        if file.stem != "kustomization"
    ],
)
def test_python_writes_at_once(file: Path) -> None:
    """What a training prints shows in the log at once, also that of a process which sshd starts for MPI."""
    runtimes = [
        each for each in yaml.load_all(file.read_text(), yaml.CSafeLoader) if each["kind"] == "ClusterTrainingRuntime"
    ]
    trainings = {
        job["name"]: container
        for runtime in runtimes
        for job in runtime["spec"]["template"]["spec"]["replicatedJobs"]
        for container in job["template"]["spec"]["template"]["spec"]["containers"]
        if container["name"] in {"trainer", "node"}
    }
    assert trainings
    for container in trainings.values():
        variables = {variable["name"]: variable.get("value") for variable in container.get("env", [])}
        (script,) = container.get("args", [""])[-1:]
        starts_processes = "sshd" in script
        assert ("PYTHONUNBUFFERED=1" in script) if starts_processes else variables.get("PYTHONUNBUFFERED") == "1"


def rendered(stem: str, directory: Path) -> Rendered:
    """What a TrainJob that only names the runtime becomes."""
    job = {
        "apiVersion": "trainer.kubeflow.org/v2alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "empty"},
        "spec": {"runtimeRef": {"name": manifest(stem)["metadata"]["name"]}},
    }
    file = directory / "documents.yaml"
    file.write_text(yaml.safe_dump_all([manifest(stem), job]))
    (result,) = render_documents(read_documents(str(file)))
    return result


@pytest.mark.parametrize("stem", FILES)
def test_an_empty_train_job_builds(stem: str, tmp_path: Path) -> None:
    """Admission accepts the runtime and a TrainJob that sets nothing; it becomes one JobSet with the runtime's Jobs."""
    result = rendered(stem, tmp_path)

    (jobset,) = (component.object for component in result.components if component.resource.kind == "JobSet")
    jobs = manifest(stem)["spec"]["template"]["spec"]["replicatedJobs"]
    assert [job["name"] for job in jobset["spec"]["replicatedJobs"]] == [job["name"] for job in jobs]
    assert jobset["metadata"]["name"] == "empty"


STEPS = {"dataset-initializer": "dataset", "model-initializer": "model", "model-exporter": "export"}


of_torchtune = pytest.mark.parametrize(
    "file",
    [
        pytest.param(file, id=f"{file.parts[-3]}-{file.stem}")
        for folder in (FOLDER, RELEASED)
        for file in sorted(folder.glob("torch*tune*.yaml"))
    ],
)


@of_torchtune
def test_initializers_and_exporter(file: Path) -> None:
    """Each step is ours, of this version, can write to its volume, and ends the training where nobody helps it."""
    runtime = yaml.safe_load(file.read_text())
    jobs = {job["name"]: job["template"]["spec"] for job in runtime["spec"]["template"]["spec"]["replicatedJobs"]}
    steps = {name: job for name, job in jobs.items() if name != "node"}
    assert steps.keys() >= {"dataset-initializer", "model-initializer"}
    for job in steps.values():
        pod = job["template"]["spec"]
        (container,) = pod["containers"]
        assert container["image"] == f"trainer-initializer:{trainer.__version__}"
        assert container["command"] == ["python", "-m", "trainer_initializers", STEPS[container["name"]]]
        assert pod["restartPolicy"] == "Never"
        (exit_codes,) = (rule["onExitCodes"] for rule in job["podFailurePolicy"]["rules"] if "onExitCodes" in rule)
        assert (exit_codes["containerName"], exit_codes["values"]) == (container["name"], [2])


@of_torchtune
def test_initializers_are_restricted(file: Path) -> None:
    """Pod Security admits each step at its level "restricted", and its volume becomes writable for its group."""
    for job in yaml.safe_load(file.read_text())["spec"]["template"]["spec"]["replicatedJobs"]:
        if job["name"] == "node":
            continue
        pod = job["template"]["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        # What the exporter reads, a training has written as another user.
        policy = {} if container["name"] == "model-exporter" else {"fsGroupChangePolicy": "OnRootMismatch"}
        assert pod["securityContext"] == {
            "runAsNonRoot": True,
            "fsGroup": 65532,
            "seccompProfile": {"type": "RuntimeDefault"},
            **policy,
        }
        assert container["securityContext"] == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


WITHOUT_REPORTER = {"flux", "jax", "mpi", "paddle", None}
"""Policy sources of runtimes that do not have it: docs/progress.md says why."""


@pytest.mark.parametrize(
    "file",
    [
        pytest.param(file, id=f"{file.parts[-3]}-{file.stem}")
        for folder in (FOLDER, RELEASED)
        for file in sorted(folder.glob("*.yaml"))
        if file.stem != "kustomization"
    ],
)
def test_reporter(file: Path) -> None:
    """Trainings show their progress without code, where that can do no harm."""
    (runtime,) = (each for each in yaml.safe_load_all(file.read_text()) if each["kind"] == "ClusterTrainingRuntime")
    policy = (runtime["spec"].get("mlPolicy") or {}).keys() - {"numNodes"}
    annotations = runtime["spec"]["template"].get("metadata", {}).get("annotations", {})
    is_on = not WITHOUT_REPORTER & (policy or {None})
    assert annotations == ({"trainer.kubeflow.org/trainer-status-reporter": "true"} if is_on else {})


ALONE = {"plain", "torch_distributed_elastic"}
"""Runtimes whose disrupted nodes start again without the others."""
DISRUPTED = {"onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}


@pytest.mark.parametrize("stem", FILES)
def test_a_disruption_is_no_failure(stem: str) -> None:
    """What trains starts again after a disruption, which does not count, and not after any other failure."""
    jobset = manifest(stem)["spec"]["template"]["spec"]
    jobs = {job["name"]: job["template"]["spec"] for job in jobset["replicatedJobs"]}
    training = [name for name, job in jobs.items() if job["template"]["spec"]["containers"][0]["name"] == "trainer"]
    action = "Ignore" if stem in ALONE else "FailJob"
    for name in training:
        first, second, *others = jobs[name]["podFailurePolicy"]["rules"]
        assert [rule["onExitCodes"]["operator"] for rule in others] == (["NotIn"] if name == "launcher" else [])
        assert first == {"action": action} | DISRUPTED
        assert second["action"] == action
        assert 75 in second["onExitCodes"]["values"]
        assert second["onExitCodes"]["containerName"] == "trainer"
    if stem in ALONE:
        assert "failurePolicy" not in jobset
        return
    assert all(jobs[name]["backoffLimit"] == (name == "launcher") for name in training)
    patterns = {"onJobFailureMessagePatterns": ["rule at index [01]$"]} if "launcher" in training else {}
    assert jobset["failurePolicy"] == {
        "maxRestarts": 0,
        "restartStrategy": "BlockingRecreate",
        "rules": [
            {
                "name": "disruption",
                "action": "RestartJobSetAndIgnoreMaxRestarts",
                "onJobFailureReasons": ["PodFailurePolicy"],
                "targetReplicatedJobs": training,
            }
            | patterns
        ],
    }
