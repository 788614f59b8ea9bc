"""The composition root, and the manifests that install it."""

from __future__ import annotations

import json
import socket
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
import yaml
from structlog.testing import capture_logs

from tests.config.kustomized import rendered
from tests.configurations import bare
from tests.framework.samples import runtime_object, train_job_object
from tests.framework.static_reader import StaticReader
from tests.kube.certificates import Authority
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES, ClusterTrainingRuntime
from trainer.api.trainjob import TRAIN_JOBS, TrainJob
from trainer.configuration.configuration import Configuration, load_configuration
from trainer.configuration.sections import StatusServerConfiguration
from trainer.configuration.values import host_and_port
from trainer.framework.pipeline import Pipeline
from trainer.kube.errors import ConfigurationError
from trainer.kube.metrics import Metrics
from trainer.kube.objects import Object, name_of
from trainer.kube.resource import CONFIG_MAPS, LEASES
from trainer.manager import build_manager, built_in_plugins, run_manager
from trainer.workloads import JOBSETS
from trainer_kube_testing import FakeClient, ManualClock, settle

ROOT = Path(__file__).parents[1]
RESOURCES = (TRAIN_JOBS, TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES, JOBSETS)


def of_kind(objects: list[Object], kind: str, name: str | None = None) -> Object:
    """The only object of a kind, or that of this name."""
    (found,) = [obj for obj in objects if obj["kind"] == kind and name in {None, name_of(obj)}]
    return found


async def test_the_manager_trains() -> None:
    """The wired manager turns a TrainJob into a JobSet until it is cancelled."""
    client = FakeClient(runtime_object(), train_job_object(), resources=RESOURCES)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run_manager, client, bare())
        with anyio.fail_after(5):
            while not client.objects(JOBSETS):
                await settle()
        tasks.cancel_scope.cancel()
    assert [name_of(jobset) for jobset in client.objects(JOBSETS)] == ["demo"]


@pytest.mark.parametrize("scheduler", ["workload", "coscheduling", "volcano"])
def test_a_gang_scheduler_without_plugin(scheduler: str) -> None:
    """The manager does not start, rather than refuse every TrainJob."""
    configuration = bare(gangScheduling=scheduler, plugins={"disabled": [scheduler]})
    problem = f"gangScheduling: no plugin serves podGroupPolicy.{scheduler}: enable the plugin {scheduler}"
    with pytest.raises(ConfigurationError, match=problem):
        build_manager(FakeClient(resources=RESOURCES), configuration)


@pytest.mark.parametrize("pid", [1, 7])
async def test_a_container_that_is_started_again(monkeypatch: pytest.MonkeyPatch, pid: int) -> None:
    """As the first process of its container, the manager goes on with a lease that its pod holds; others wait."""
    monkeypatch.setenv("POD_UID", "uid-of-the-pod")
    monkeypatch.setattr("os.getpid", lambda: pid)
    spec = {"holderIdentity": f"{socket.gethostname()}_uid-of-the-pod", "leaseDurationSeconds": 15}
    metadata = {"name": "trainer.kubeflow.org", "namespace": "default"}
    lease = {"apiVersion": LEASES.api_version, "kind": LEASES.kind, "metadata": metadata, "spec": spec}
    client = FakeClient(lease, resources=RESOURCES)
    with capture_logs() as logs:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run_manager, client, bare(leaderElection={"leaderElect": True}))
            expected = "became leader" if pid == 1 else "found leader"
            with anyio.fail_after(5):
                while not any(entry["event"] == expected for entry in logs):
                    await settle()
            tasks.cancel_scope.cancel()
    assert [entry["event"] for entry in logs if entry["event"].endswith(" leader")] == [expected]


async def test_concurrency() -> None:
    """As many TrainJobs are reconciled at a time as is configured; the log names settings without effect."""
    kinds = {"TrainJob.trainer.kubeflow.org": 3, "TrainingRuntime.trainer.kubeflow.org": 1}
    configuration = bare(controller={"groupKindConcurrency": kinds})
    metrics = Metrics()
    client = FakeClient(resources=RESOURCES)
    with capture_logs() as logs:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(run_manager, client, configuration, metrics=metrics))
            with anyio.fail_after(5):
                while not any(entry["event"] == "started manager" for entry in logs):
                    await settle()
            tasks.cancel_scope.cancel()
    workers = metrics.registry.get_sample_value(
        "controller_runtime_max_concurrent_reconciles", {"controller": "trainjob"}
    )
    assert workers == 3
    [ignored] = [entry["settings"] for entry in logs if entry["event"].startswith("ignored settings")]
    assert ignored == ["controller.groupKindConcurrency[TrainingRuntime.trainer.kubeflow.org]"]


async def test_posts_of_progress_are_behind_a_gate(tmp_path: Path) -> None:
    """Behind TrainJobStatus pods get what they need to post, and new certificates while they run."""
    authority = Authority()
    pair = authority.issue("status", "trainer-webhook.trainer-system.svc")
    for name, content in {"tls.crt": pair.chain, "tls.key": pair.key, "ca.crt": authority.pem}.items():
        await anyio.Path(tmp_path / name).write_bytes(content)
    configuration = bare(certManagement={"enable": False, "certificateDirectory": str(tmp_path)}).model_copy(
        update={
            "feature_gates": {"TrainJobStatus": True},
            "status_server": StatusServerConfiguration().model_copy(update={"host": "127.0.0.1", "port": 0}),
        }
    )
    clock = ManualClock()
    client = FakeClient(runtime_object(), train_job_object(), resources=RESOURCES)
    manager = build_manager(client, configuration, namespace="trainer-system", clock=clock)

    async def authority_of_pods(pem: bytes) -> None:
        with anyio.fail_after(5):
            while [each["data"] for each in client.objects(CONFIG_MAPS) if "ca.crt" in each["data"]] != [
                {"ca.crt": pem.decode()}
            ]:
                await settle()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(manager.run)
        await authority_of_pods(authority.pem)
        more = authority.pem + Authority("next").pem
        await anyio.Path(tmp_path / "ca.crt").write_bytes(more)
        await settle()
        await clock.advance(10)
        await authority_of_pods(more)
        tasks.cancel_scope.cancel()
    (jobset,) = client.objects(JOBSETS)
    assert "https://trainer-webhook.trainer-system.svc:0/apis/trainer.kubeflow.org/v1alpha1/" in json.dumps(jobset)


@pytest.mark.parametrize(
    ("gates", "follows"),
    [pytest.param({}, True, id="default"), pytest.param({"TrainJobProgress": False}, False, id="off")],
)
async def test_progress_is_behind_a_gate(gates: dict[str, bool], follows: bool) -> None:
    """Logs are followed as the feature gate says."""
    configuration = bare().model_copy(update={"feature_gates": gates})
    manager = build_manager(FakeClient(resources=RESOURCES), configuration)

    streams = manager.metrics.registry.get_sample_value("trainer_progress_active_streams")
    assert (streams is not None) == follows


@pytest.fixture
def shipped(tmp_path: Path) -> Configuration:
    """The settings in the ConfigMap of the default manifests."""
    path = tmp_path / "configuration.yaml"
    path.write_text(of_kind(rendered("default"), "ConfigMap")["data"]["configuration.yaml"])
    return load_configuration(path)


def test_shipped_configuration(shipped: Configuration) -> None:
    """The settings are accepted, all ask where the manager listens, and it has the time to stop that it may take."""
    template = of_kind(rendered("default"), "Deployment")["spec"]["template"]
    pod, labels = template["spec"], template["metadata"]["labels"]
    numbers = {port["name"]: port["containerPort"] for port in pod["containers"][0]["ports"]}
    addresses = {"health": shipped.health.health_probe_bind_address, "metrics": shipped.metrics.bind_address}
    listening = {name: host_and_port(address) for name, address in addresses.items()}
    assert listening == {name: ("", numbers[name]) for name in addresses}
    service = of_kind(rendered("default"), "Service", shipped.cert_management.webhook_service_name)
    assert service["spec"]["selector"].items() <= labels.items()
    assert shipped.webhook.port == numbers[service["spec"]["ports"][0]["targetPort"]]
    assert shipped.webhook.enabled
    grace = shipped.controller.graceful_shutdown_timeout.total_seconds()
    # API servers go on sending reviews for a moment after the pod was asked to stop.
    farewell = pod["containers"][0]["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert farewell >= 5
    assert pod["terminationGracePeriodSeconds"] >= farewell + grace + 15


def test_shipped_runtimes_build() -> None:
    """Every blueprint is accepted as written, and a TrainJob of two nodes becomes a JobSet with it."""
    runtimes = [ClusterTrainingRuntime.from_object(obj, strict=True) for obj in rendered("runtimes")]
    files = {path.stem.replace("_", "-") for path in (ROOT / "config" / "runtimes").glob("*.yaml")} - {"kustomization"}
    assert {runtime.metadata.name for runtime in runtimes} == files
    pipeline = Pipeline(built_in_plugins(StaticReader()))
    for runtime in runtimes:
        job = train_job_object(trainer={"numNodes": 2, "command": ["python train.py"]})
        components = pipeline.build(TrainJob.from_object(job), runtime)
        (jobset,) = [component.object for component in components if component.resource == JOBSETS]
        mpi = runtime.spec.ml_policy and runtime.spec.ml_policy.mpi
        trains = {"node", "launcher"} if mpi and mpi.run_launcher_as_node else {"node"}
        specs = [entry["template"]["spec"] for entry in jobset["spec"]["replicatedJobs"] if entry["name"] in trains]
        assert sum(spec["completions"] for spec in specs) == 2


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*/trainjob.yaml")), ids=lambda path: path.parent.name)
def test_examples_fit_the_shipped_runtimes(path: Path) -> None:
    """The TrainJobs in examples are accepted and build with the runtimes that they name, shipped or their own."""
    documents: list[Any] = list(yaml.load_all(path.read_text(), yaml.CSafeLoader))
    own = [obj | {"kind": "ClusterTrainingRuntime"} for obj in documents if obj["kind"] == "TrainingRuntime"]
    runtimes = {name_of(obj): ClusterTrainingRuntime.from_object(obj) for obj in [*rendered("runtimes"), *own]}
    jobs = [TrainJob.from_object(obj, strict=True) for obj in documents if obj["kind"] == "TrainJob"]
    assert jobs
    for job in jobs:
        built = Pipeline(built_in_plugins(StaticReader())).build(job, runtimes[job.spec.runtime_ref.name])
        assert job.metadata.name in [name_of(each.object) for each in built if each.resource == JOBSETS]
