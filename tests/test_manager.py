"""The composition root, and the manifests that install it."""

from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
import yaml

from tests.framework.samples import runtime_object, train_job_object
from tests.framework.static_reader import StaticReader
from trainer.api.crds import crds
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES, ClusterTrainingRuntime
from trainer.api.trainjob import TRAIN_JOBS, TrainJob
from trainer.framework.pipeline import Pipeline
from trainer.framework.registry import Registry
from trainer.kube.errors import ConfigurationError
from trainer.kube.objects import name_of
from trainer.kube.resource import JOBSETS
from trainer.kube.testing import FakeClient, ManualClock, settle
from trainer.manager import ManagerConfiguration, build_manager, built_in_plugins, run_manager

if TYPE_CHECKING:
    from trainer.kube.objects import Object

ROOT = Path(__file__).parents[1]
KUBECTL = Path(sys.executable).parent / "kubectl"
RESOURCES = (TRAIN_JOBS, TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES)


def kustomized(folder: str) -> list[Object]:
    """What `kubectl apply -k` would apply."""
    command: list[str | Path] = [KUBECTL, "kustomize", ROOT / "config" / folder]
    rendered = subprocess.run(command, capture_output=True, text=True, check=True)
    return list(yaml.safe_load_all(rendered.stdout))


def of_kind(objects: list[Object], kind: str) -> Object:
    """The only object of a kind."""
    (found,) = [obj for obj in objects if obj["kind"] == kind]
    return found


def test_configuration(tmp_path: Path) -> None:
    """Settings are read from YAML; what is absent has its default."""
    path = tmp_path / "manager.yaml"
    path.write_text("namespace: team\nhttpBindAddress: ':8081'\n")
    configuration = ManagerConfiguration.load(path)
    assert configuration == ManagerConfiguration(namespace="team", http_bind_address=":8081")
    assert configuration.max_concurrent_reconciles == 5
    assert configuration.options.http_bind == ("0.0.0.0", 8081)
    path.write_text("")
    assert ManagerConfiguration.load(path) == ManagerConfiguration()
    assert ManagerConfiguration().options.http_bind is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("nameSpace: x", "nameSpace: unknown field; did you mean namespace?", id="unknown"),
        pytest.param("namespace: ''", "namespace: must not be empty", id="empty"),
        pytest.param("maxConcurrentReconciles: 0", "maxConcurrentReconciles: must be at least 1, got 0", id="range"),
        pytest.param("maxConcurrentReconciles: '5'", "maxConcurrentReconciles: must be an integer, got '5'", id="type"),
        pytest.param("httpBindAddress: localhost", "httpBindAddress: must be host:port, got 'localhost'", id="address"),
        pytest.param(
            "cacheSyncTimeoutSeconds: 0", "cacheSyncTimeoutSeconds: must be greater than 0, got 0", id="timeout"
        ),
        pytest.param("- a", "must be a mapping of settings, not list", id="list"),
    ],
)
def test_wrong_configuration(tmp_path: Path, text: str, message: str) -> None:
    """One line names the file, the setting and the remedy."""
    path = tmp_path / "manager.yaml"
    path.write_text(text)
    with pytest.raises(ConfigurationError) as caught:
        ManagerConfiguration.load(path)
    assert str(caught.value) == f"{path}: {message}"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(None, "No such file or directory", id="absent"),
        pytest.param(b"a: [", "expected the node content", id="not-yaml"),
        pytest.param(b"\xff\xfe\x00", "cannot read", id="not-text"),
    ],
)
def test_unreadable_configuration(tmp_path: Path, content: bytes | None, message: str) -> None:
    """A file that is absent or no YAML gives one line as well."""
    path = tmp_path / "manager.yaml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigurationError, match=message) as caught:
        ManagerConfiguration.load(path)
    assert "\n" not in str(caught.value)


async def test_the_manager_trains() -> None:
    """The wired manager turns a TrainJob into a JobSet until it is cancelled."""
    client = FakeClient(runtime_object(), train_job_object(), resources=RESOURCES)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run_manager, client, ManagerConfiguration())
        with anyio.fail_after(5):
            while not client.objects(JOBSETS):
                await settle()
        tasks.cancel_scope.cancel()
    assert [name_of(jobset) for jobset in client.objects(JOBSETS)] == ["demo"]


@pytest.mark.parametrize("case", ["torch", "jax", "llm-fine-tuning"])
def test_the_order_of_plugins_does_not_matter(case: str) -> None:
    """The built-in plugins build the same objects however they are registered."""
    text = (ROOT / "tests" / "plugins" / "golden" / f"{case}.yaml").read_text()
    blueprint, job, jobset = yaml.safe_load_all(text)
    train_job, runtime = TrainJob.from_object(job), ClusterTrainingRuntime.from_object(blueprint)
    for plugins in itertools.permutations(built_in_plugins(StaticReader())):
        built = Pipeline(Registry(plugins)).build(train_job, runtime)
        assert [component.object for component in built] == [jobset]


def test_default_manifests() -> None:
    """`kubectl apply -k config/default` installs the CRDs and a manager with its account and settings."""
    objects = kustomized("default")
    assert [obj for obj in objects if obj["kind"] == "CustomResourceDefinition"] == sorted(crds(), key=name_of)
    deployment, account = of_kind(objects, "Deployment"), of_kind(objects, "ServiceAccount")
    namespaced = [obj for obj in objects if obj["kind"] in {"Deployment", "ServiceAccount", "ConfigMap"}]
    assert {obj["metadata"]["namespace"] for obj in namespaced} == {name_of(of_kind(objects, "Namespace"))}
    assert of_kind(objects, "ClusterRoleBinding")["subjects"] == [
        {"kind": "ServiceAccount", "name": name_of(account), "namespace": account["metadata"]["namespace"]}
    ]
    pod = deployment["spec"]["template"]["spec"]
    assert pod["serviceAccountName"] == name_of(account)
    assert pod["volumes"][0]["configMap"]["name"] == name_of(of_kind(objects, "ConfigMap"))


def test_shipped_configuration(tmp_path: Path) -> None:
    """The settings in the ConfigMap are accepted, and the probes ask where the manager listens."""
    objects = kustomized("default")
    path = tmp_path / "configuration.yaml"
    path.write_text(of_kind(objects, "ConfigMap")["data"]["configuration.yaml"])
    bind = ManagerConfiguration.load(path).options.http_bind
    ports = of_kind(objects, "Deployment")["spec"]["template"]["spec"]["containers"][0]["ports"]
    assert bind is not None
    assert bind[1] == ports[0]["containerPort"]


async def test_the_role_allows_what_the_manager_does() -> None:
    """Every request of a manager that submits, suspends and finishes a TrainJob is allowed, and no rule is idle."""
    clock = ManualClock()
    client = FakeClient(runtime_object(), resources=RESOURCES, clock=clock)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(build_manager(client, ManagerConfiguration(), clock=clock).run)
        for suspend in (True, False):
            client.add(train_job_object(suspend=suspend))
            await settle()
            client.add(client.objects(TRAIN_JOBS)[0] | {"spec": train_job_object(suspend=suspend)["spec"]})
            await settle()
        tasks.cancel_scope.cancel()
    used = {
        (request.resource.group, request.resource.plural + (request.subresource and f"/{request.subresource}"), verb)
        for request in client.requests
        for verb in _VERBS[request.verb]
    }
    rules = of_kind(kustomized("rbac"), "ClusterRole")["rules"]
    allowed = {
        (group, resource, verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    assert used <= allowed
    idle = {rule[:2] for rule in allowed} - {request[:2] for request in used}
    assert idle == {("trainer.kubeflow.org", "trainjobs/finalizers")}


_VERBS: dict[str, list[str]] = {
    "get": ["get"],
    "list": ["list"],
    "watch": ["watch"],
    "create": ["create"],
    "patch": ["patch"],
    "apply": ["patch"],
}


def test_shipped_runtimes_build() -> None:
    """Every blueprint is accepted as written, and a TrainJob of two nodes becomes a JobSet with it."""
    runtimes = [ClusterTrainingRuntime.from_object(obj, strict=True) for obj in kustomized("runtimes")]
    assert sorted(runtime.metadata.name for runtime in runtimes) == ["jax-distributed", "plain", "torch-distributed"]
    pipeline = Pipeline(built_in_plugins(StaticReader()))
    for runtime in runtimes:
        job = train_job_object(trainer={"numNodes": 2, "command": ["python train.py"]})
        (component,) = pipeline.build(TrainJob.from_object(job), runtime)
        (replicated_job,) = component.object["spec"]["replicatedJobs"]
        assert replicated_job["template"]["spec"]["completions"] == 2


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*/trainjob.yaml")), ids=lambda path: path.parent.name)
def test_examples_fit_the_shipped_runtimes(path: Path) -> None:
    """The TrainJobs in examples are accepted and build with the runtimes that they name."""
    runtimes = {name_of(obj): ClusterTrainingRuntime.from_object(obj) for obj in kustomized("runtimes")}
    documents: list[Any] = list(yaml.safe_load_all(path.read_text()))
    jobs = [TrainJob.from_object(obj, strict=True) for obj in documents if obj["kind"] == "TrainJob"]
    assert jobs
    for job in jobs:
        built = Pipeline(built_in_plugins(StaticReader())).build(job, runtimes[job.spec.runtime_ref.name])
        assert [component.object["metadata"]["name"] for component in built] == [job.metadata.name]
