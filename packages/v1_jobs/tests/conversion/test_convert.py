"""Jobs become TrainJobs; what is lost comes with what to do instead."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from packages.v1_jobs.tests.golden.manifests import manifests
from trainer.api.invalid_object import InvalidObjectError
from trainer.cli.manifests import runtimes
from trainer.framework import RuntimeInfo
from trainer.kube.objects import Object
from trainer.plugins import paddle as paddle_plugin
from trainer.plugins import tensorflow as tensorflow_plugin
from trainer.plugins import xgboost as xgboost_plugin
from trainer.plugins.jax import plugin as jax_plugin
from trainer.plugins.mpi.hostfile import IMPLEMENTATIONS
from trainer.plugins.torch import elastic as elastic_plugin
from trainer.plugins.torch import plugin as torch_plugin_module
from trainer.v1alpha1.discovery import Version
from trainer.v1alpha1.profile import V1Alpha1Info
from trainer_v1_jobs.api.reading import kind_of
from trainer_v1_jobs.conversion import Conversion, convert, jax, mpi, paddle, pytorch, tensorflow, xgboost
from trainer_v1_jobs.conversion.convert import RENDEZVOUS_PORTS

QUEUED = {"kueue.x-k8s.io/queue-name": "lab", "kueue.x-k8s.io/priority-class": "urgent"}
JOBS = {job["metadata"]["name"]: job for jobs in manifests().values() for job in jobs}


def converted(name: str, version: Version = "v2alpha1", metadata: Object | None = None, **spec: Any) -> Conversion:
    """One of the jobs with other members of its metadata and spec."""
    job = copy.deepcopy(JOBS[name])
    job["metadata"] |= metadata or {}
    job["spec"] |= spec
    kind = kind_of(job)
    assert kind is not None
    return convert(job, kind, version=version)


def fields(conversion: Conversion) -> list[str]:
    """The paths of what is lost."""
    return [finding.field for finding in conversion.findings]


@pytest.mark.parametrize("name", [pytest.param(name, id=name) for name in JOBS])
def test_the_job_is_not_changed(name: str) -> None:
    """Converting twice gives the same, from the same job."""
    before = copy.deepcopy(JOBS[name])

    assert converted(name) == converted(name)
    kind = kind_of(JOBS[name])
    assert kind is not None
    convert(JOBS[name], kind, version="v1alpha1", runtimes=runtimes())
    assert JOBS[name] == before


@pytest.mark.parametrize(
    ("name", "spec", "lost"),
    [
        pytest.param("torch-workers", {"runPolicy": {"cleanPodPolicy": "Running"}}, [], id="clean-running"),
        pytest.param(
            "torch-workers", {"runPolicy": {"cleanPodPolicy": "All"}}, ["spec.runPolicy.cleanPodPolicy"], id="clean-all"
        ),
        pytest.param(
            "torch-workers",
            {"runPolicy": {"cleanPodPolicy": "None"}},
            ["spec.runPolicy.cleanPodPolicy"],
            id="clean-none",
        ),
        pytest.param(
            "mpi-v1-main",
            {"cleanPodPolicy": "None"},
            ["spec.mpiReplicaSpecs[Worker]", "spec.cleanPodPolicy"],
            id="clean-mpi",
        ),
        pytest.param(
            "torch-workers",
            {"runPolicy": {"activeDeadlineSeconds": 0}},
            ["spec.runPolicy.activeDeadlineSeconds"],
            id="deadline-0",
        ),
        pytest.param(
            "torch-never", {"runPolicy": {"backoffLimit": 3}}, ["spec.runPolicy.backoffLimit"], id="limit-never"
        ),
        pytest.param(
            "torch-args", {"runPolicy": {"backoffLimit": 3}}, ["spec.runPolicy.backoffLimit"], id="limit-of-each"
        ),
        pytest.param("torch-backoff", {}, [], id="limit"),
        pytest.param("torch-always", {}, ["spec.pytorchReplicaSpecs[Worker].restartPolicy"], id="always"),
        pytest.param(
            "torch-port",
            {},
            ["spec.pytorchReplicaSpecs[Master].template.spec.containers[pytorch].ports[0]"],
            id="port",
        ),
        pytest.param("torch-further-port", {}, [], id="further-port"),
        pytest.param(
            "torch-variables",
            {},
            ["spec.pytorchReplicaSpecs[Master].template.spec.containers[pytorch].env[1]"],
            id="variable",
        ),
        pytest.param(
            "torch-elastic",
            {"elasticPolicy": {"minReplicas": 1, "maxReplicas": 3, "rdzvBackend": "etcd-v2"}},
            ["spec.elasticPolicy.rdzvBackend"],
            id="etcd-without-a-server",
        ),
        pytest.param("torch-elastic-etcd", {}, [], id="etcd"),
        pytest.param("torch-no-master", {}, ["spec.pytorchReplicaSpecs[Worker]"], id="no-master"),
        pytest.param("torch-elastic-unequal", {}, ["spec.elasticPolicy"], id="elastic-unequal"),
        pytest.param(
            "torch-elastic-unequal",
            {"elasticPolicy": {"minReplicas": 1, "maxReplicas": 4, "rdzvHost": "torch-elastic-unequal-worker-0"}},
            ["spec.elasticPolicy"],
            id="elastic-unequal-host",
        ),
        pytest.param("torch-elastic", {}, [], id="elastic"),
        pytest.param("torch-elastic-metrics", {}, [], id="elastic-metrics"),
        pytest.param("torch-elastic-conf", {}, [], id="elastic-conf"),
        pytest.param("torch-elastic-alone", {}, [], id="elastic-alone"),
        pytest.param(
            "torch-elastic",
            {"elasticPolicy": {"minReplicas": 1, "maxReplicas": 3, "standalone": True}},
            ["spec.elasticPolicy.standalone"],
            id="standalone",
        ),
        pytest.param(
            "torch-elastic-master",
            {"elasticPolicy": {"minReplicas": 1, "maxReplicas": 2}},
            ["spec.pytorchReplicaSpecs[Worker].replicas"],
            id="elastic-master-too-many",
        ),
        pytest.param(
            "torch-policies", {}, ["spec.runPolicy.cleanPodPolicy", "spec.runPolicy.managedBy"], id="policies"
        ),
        pytest.param("torch-gang", {}, ["spec.runPolicy.schedulingPolicy"], id="gang"),
        pytest.param(
            "torch-gang-plugin",
            {},
            ["spec.runPolicy.schedulingPolicy", "spec.runPolicy.schedulingPolicy.minResources"],
            id="gang-plugin",
        ),
        pytest.param(
            "torch-gang",
            {"runPolicy": {"schedulingPolicy": {"queue": "team", "minAvailable": 2, "scheduleTimeoutSeconds": 9}}},
            [
                "spec.runPolicy.schedulingPolicy",
                "spec.runPolicy.schedulingPolicy.minAvailable",
                "spec.runPolicy.schedulingPolicy.scheduleTimeoutSeconds",
            ],
            id="gang-lost",
        ),
        pytest.param(
            "torch-args",
            {"runPolicy": {"schedulingPolicy": {"queue": "team"}}},
            ["spec.runPolicy.schedulingPolicy"],
            id="gang-unequal",
        ),
        pytest.param("jax-three", {}, [], id="jax"),
        pytest.param(
            "jax-port", {}, ["spec.jaxReplicaSpecs[Worker].template.spec.containers[jax].ports[0]"], id="jax-port"
        ),
        pytest.param(
            "tf-port", {}, ["spec.tfReplicaSpecs[Worker].template.spec.containers[tensorflow].ports[0]"], id="tf-port"
        ),
        pytest.param("xgb-port", {}, [], id="xgb-port"),
        pytest.param("tf-ps-chief", {}, [], id="tf-ps"),
        pytest.param("tf-master", {}, ["spec.tfReplicaSpecs[Master]"], id="tf-master"),
        pytest.param("tf-dynamic", {}, ["spec.enableDynamicWorker"], id="tf-dynamic"),
        pytest.param("tf-chief", {"successPolicy": "AllWorkers"}, ["spec.successPolicy"], id="tf-success"),
        pytest.param("tf-all-workers", {}, [], id="tf-all-workers"),
        pytest.param("xgb-workers", {}, [], id="xgboost"),
        pytest.param("paddle-elastic", {}, ["spec.elasticPolicy"], id="paddle-elastic"),
        pytest.param("mpi-v1-workers", {}, ["spec.mpiReplicaSpecs[Worker]"], id="mpi-exec"),
        pytest.param(
            "mpi-v1-sleeping",
            {},
            [
                "spec.mpiReplicaSpecs[Worker]",
                "spec.mpiReplicaSpecs[Worker].template.spec.containers[mpi].command",
                "spec.mpiReplicaSpecs[Worker].template.spec.containers[mpi].env",
            ],
            id="mpi-worker",
        ),
        pytest.param("mpi-v2beta1-workers", {}, [], id="mpi-ssh"),
        pytest.param("mpi-v2beta1-at-startup", {}, ["spec.launcherCreationPolicy"], id="mpi-at-startup"),
        pytest.param("mpi-v2beta1-launcher-trains", {}, [], id="mpi-launcher-trains"),
    ],
)
def test_losses(name: str, spec: Object, lost: list[str]) -> None:
    """Each field without a counterpart is lost, and no other."""
    assert fields(converted(name, **spec)) == lost


def test_run_policy() -> None:
    """Members of the run policy become those of the TrainJob."""
    spec = converted("torch-policies", "v1alpha1").train_job["spec"]

    assert {name: value for name, value in spec.items() if name not in {"runtimeRef", "trainer"}} == {
        "suspend": True,
        "ttlSecondsAfterFinished": 60,
        "activeDeadlineSeconds": 3600,
        "managedBy": "kueue.x-k8s.io/multikueue",
    }
    own = converted("torch-workers", runPolicy={"managedBy": "kubeflow.org/training-operator", "suspend": False})
    assert own.train_job["spec"]["suspend"] is False
    assert "managedBy" not in own.train_job["spec"]


@pytest.mark.parametrize(
    ("version", "suspend", "expected"),
    [
        pytest.param("v2alpha1", None, ({"a": "b"}, QUEUED, None), id="as-jobset"),
        pytest.param("v2alpha1", True, ({"a": "b"}, QUEUED, None), id="suspended-by-kueue"),
        pytest.param("v1alpha1", True, ({"a": "b"} | QUEUED, None, True), id="as-train-job"),
    ],
)
def test_queues(version: Version, suspend: bool | None, expected: tuple[Object, Object | None, bool | None]) -> None:
    """Kueue's labels are where it reads them, and the training is left to it."""
    policy = {"runPolicy": {"suspend": suspend}} if suspend else {}
    result = converted("torch-workers", version, {"labels": {"a": "b"} | QUEUED}, **policy)

    spec = result.train_job["spec"]
    assert (result.train_job["metadata"]["labels"], spec.get("labels"), spec.get("suspend")) == expected
    assert result.runtime is not None
    assert "kueue" not in str(result.runtime)
    assert result.findings == ()


def test_elastic_policy() -> None:
    """Bounds, restarts and metrics are those of the runtime; the TrainJob has the workers at the start."""
    result = converted("torch-elastic-metrics")

    assert result.runtime is not None
    policy = result.runtime["spec"]["mlPolicy"]["torch"]["elasticPolicy"]
    assert {name: policy[name] for name in ("minNodes", "maxNodes", "maxRestarts")} == {
        "minNodes": 1,
        "maxNodes": 4,
        "maxRestarts": 3,
    }
    assert policy["metrics"] == JOBS["torch-elastic-metrics"]["spec"]["elasticPolicy"]["metrics"]
    assert result.train_job["spec"]["trainer"]["numNodes"] == 2


def test_gangs() -> None:
    """Volcano gets queue and priority, the coscheduling plugin its time limit."""
    volcano, plugin = converted("torch-gang").runtime, converted("torch-gang-plugin").runtime

    assert volcano is not None
    assert volcano["spec"]["podGroupPolicy"] == {"volcano": {}}
    assert volcano["spec"]["template"]["metadata"]["annotations"] == {"scheduling.volcano.sh/queue-name": "team"}
    (job,) = volcano["spec"]["template"]["spec"]["replicatedJobs"]
    pod = job["template"]["spec"]["template"]["spec"]
    assert (pod["schedulerName"], pod["priorityClassName"]) == ("volcano", "high")
    assert plugin is not None
    assert plugin["spec"]["podGroupPolicy"] == {"coscheduling": {"scheduleTimeoutSeconds": 120}}


def test_metadata() -> None:
    """Names, labels and annotations stay, a name that the server chooses too; owners and finalizers do not."""
    labels, annotations = {"team": "a"}, {"note": "b"}
    result = converted(
        "torch-master",
        metadata={
            "name": None,
            "generateName": "demo-",
            "namespace": "team",
            "labels": labels,
            "annotations": annotations,
            "finalizers": ["example.com/x"],
            "ownerReferences": [{"kind": "Experiment", "name": "e", "apiVersion": "kubeflow.org/v1beta1", "uid": "u"}],
        },
    )

    assert result.train_job["metadata"] == {
        "generateName": "demo-",
        "namespace": "team",
        "labels": labels,
        "annotations": annotations,
    }
    assert result.runtime is not None
    assert (result.runtime["metadata"]["name"], result.runtime["metadata"]["namespace"]) == ("demo", "team")
    assert fields(result) == ["metadata.finalizers", "metadata.ownerReferences"]


def test_pod_templates() -> None:
    """What JobSet sets, and what the operator ignored, is lost."""
    job = copy.deepcopy(JOBS["torch-master"])
    template = job["spec"]["pytorchReplicaSpecs"]["Master"]["template"]
    template["metadata"] = {"name": "x", "labels": {"a": "b"}}
    template["spec"] |= {"restartPolicy": "Always", "hostname": "h", "subdomain": "s"}
    kind = kind_of(job)
    assert kind is not None
    result = convert(job, kind)

    path = "spec.pytorchReplicaSpecs[Master].template"
    assert fields(result) == [
        f"{path}.metadata.name", f"{path}.spec.restartPolicy", f"{path}.spec.hostname", f"{path}.spec.subdomain",
    ]  # fmt: skip
    assert result.runtime is not None
    (made,) = result.runtime["spec"]["template"]["spec"]["replicatedJobs"]
    assert made["template"]["spec"]["template"]["metadata"] == {"labels": {"a": "b"}}


def test_names_of_containers() -> None:
    """Beside others the container that trains is called trainer, and what refers to it follows."""
    job = copy.deepcopy(JOBS["jax-sidecar"])
    template = job["spec"]["jaxReplicaSpecs"]["Worker"]["template"]
    template["metadata"] = {"annotations": {"kubectl.kubernetes.io/default-container": "jax"}}
    template["spec"]["containers"][1] |= {
        "name": "trainer",
        "env": [
            {"name": "CPUS", "valueFrom": {"resourceFieldRef": {"containerName": "jax", "resource": "limits.cpu"}}}
        ],
    }
    kind = kind_of(job)
    assert kind is not None
    result = convert(job, kind)

    assert result.runtime is not None
    (made,) = result.runtime["spec"]["template"]["spec"]["replicatedJobs"]
    pods = made["template"]["spec"]["template"]
    assert [container["name"] for container in pods["spec"]["containers"]] == ["trainer", "trainer-sidecar"]
    assert pods["metadata"]["annotations"] == {"kubectl.kubernetes.io/default-container": "trainer"}
    cpus = next(variable for variable in pods["spec"]["containers"][1]["env"] if variable["name"] == "CPUS")
    assert cpus["valueFrom"]["resourceFieldRef"]["containerName"] == "trainer"
    assert fields(result) == ["spec.jaxReplicaSpecs[Worker].template.spec.containers[trainer].name"]


@pytest.mark.parametrize(
    ("name", "variable"),
    [
        pytest.param("torch-sidecar", "RANK", id="nodes"),
        pytest.param("xgb-workers", "RANK", id="xgboost"),
        pytest.param("mpi-v1-main", "NVIDIA_VISIBLE_DEVICES", id="launcher"),
        pytest.param("mpi-v2beta1-workers", "K_MPI_JOB_ROLE", id="roles-of-mpi"),
    ],
)
def test_variables_that_had_no_effect(name: str, variable: str) -> None:
    """A variable that the operator overwrote is lost, in whichever container it is."""
    job = copy.deepcopy(JOBS[name])
    (field,) = (each for each in job["spec"] if each.endswith("ReplicaSpecs"))
    role, replicas = next(iter(job["spec"][field].items()))
    for each in job["spec"][field].values():
        for container in each["template"]["spec"]["containers"]:
            container["env"] = [{"name": variable, "value": "mine"}]
    kind = kind_of(job)
    assert kind is not None
    result = convert(job, kind)

    path = f"spec.{field}[{role}].template.spec.containers"
    names = [container["name"] for container in replicas["template"]["spec"]["containers"]]
    if job["kind"] == "MPIJob":  # where sidecars get no variables
        del names[1:]
    assert {f"{path}[{each}].env[0]" for each in names} <= set(fields(result))
    assert "mine" not in str(result.train_job)
    assert variable == "NVIDIA_VISIBLE_DEVICES" or "mine" not in str(result.runtime)


def test_commands() -> None:
    """A command of one word with spaces is the name of a file, which a TrainJob would split."""
    job = copy.deepcopy(JOBS["torch-master"])
    (container,) = job["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]["containers"]
    container["command"] = ["/my programs/train"]
    kind = kind_of(job)
    assert kind is not None

    assert convert(job, kind).train_job["spec"]["trainer"]["command"] == ["'/my programs/train'"]


@pytest.mark.parametrize(
    ("name", "runtime", "overrides"),
    [
        pytest.param("torch-shipped", "torch-distributed", 0, id="equal"),
        pytest.param("torch-shipped-changed", "torch-distributed", 1, id="overrides"),
        pytest.param("jax-shipped", "jax-distributed", 0, id="jax"),
        pytest.param("torch-workers", "", 0, id="restarts"),
        pytest.param("jax-three", "", 0, id="directory"),
        pytest.param("jax-sidecar", "", 0, id="sidecar"),
    ],
)
def test_shipped_runtimes(name: str, runtime: str, overrides: int) -> None:
    """A runtime that exists is used if it says the same, with what TrainJobs can change of it."""
    kind = kind_of(JOBS[name])
    assert kind is not None
    result = convert(JOBS[name], kind, runtimes=runtimes())

    spec = result.train_job["spec"]
    expected = {"kind": "ClusterTrainingRuntime", "name": runtime} if runtime else spec["runtimeRef"]
    assert spec["runtimeRef"] == expected
    assert (result.runtime is None) == bool(runtime)
    assert len(spec.get("podSpecOverrides", [])) == overrides


def test_a_job_without_pods() -> None:
    """A job of which no role has a pod is refused."""
    job = copy.deepcopy(JOBS["tf-workers"])
    job["spec"]["tfReplicaSpecs"]["Worker"]["replicas"] = 0
    kind = kind_of(job)
    assert kind is not None

    with pytest.raises(InvalidObjectError, match="no role has a pod"):
        convert(job, kind)


def test_what_plugins_set() -> None:
    """The variables that are left out are those that the plugins refuse; and nodes meet where the plugins say."""
    assert pytorch.RESERVED == torch_plugin_module.RESERVED
    assert pytorch.RESERVED_IN_ELASTIC == elastic_plugin.RESERVED
    assert jax.RESERVED == jax_plugin.RESERVED
    assert tensorflow.RESERVED == tensorflow_plugin.RESERVED
    assert xgboost.RESERVED == xgboost_plugin.RESERVED
    assert paddle.RESERVED == paddle_plugin.RESERVED
    assert {name: frozenset(each.reserved) for name, each in IMPLEMENTATIONS.items()} == mpi.RESERVED
    assert {"v2alpha1": RuntimeInfo.rendezvous_port, "v1alpha1": V1Alpha1Info.rendezvous_port} == RENDEZVOUS_PORTS
