"""What pods get to post their progress."""

from __future__ import annotations

from typing import Any

import pytest

from tests.framework.samples import env_of, replicated_job, runtime, train_job
from tests.framework.static_reader import StaticReader
from tests.webhooks.nets import pipeline
from trainer.api.trainjob import TrainJob
from trainer.framework.building.extraction import extract
from trainer.framework.building.trainer_step import apply_trainer_env
from trainer.framework.pipeline import Pipeline
from trainer.framework.plugin_api.runtime_info import RuntimeInfo
from trainer.framework.startup.registry import Registry
from trainer.kube.objects import Object
from trainer.kube.resource import CONFIG_MAPS
from trainer.plugins.status_server import AUTHORITY_LABEL, StatusServerAccess
from trainer.v1alpha1.profile import V1ALPHA1_PROFILE
from trainer.workloads import JOBSETS

AUDIENCE = "trainer.kubeflow.org/v1alpha1/namespaces/default/trainjobs/demo/status"
ENV = {
    "KUBEFLOW_TRAINER_SERVER_URL": f"https://trainer:10443/apis/{AUDIENCE}",
    "KUBEFLOW_TRAINER_SERVER_CA_CERT": "/var/run/secrets/kubeflow/trainer/ca.crt",
    "KUBEFLOW_TRAINER_SERVER_TOKEN": "/var/run/secrets/kubeflow/trainer/token",
}
MOUNT = {"name": "kubeflow-trainer-token", "mountPath": "/var/run/secrets/kubeflow/trainer", "readOnly": True}
VOLUME = {
    "name": "kubeflow-trainer-token",
    "projected": {
        "sources": [
            {"serviceAccountToken": {"audience": AUDIENCE, "expirationSeconds": 3600, "path": "token"}},
            {"configMap": {"name": "demo-tls-config", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        ]
    },
}
TRAINER: Object = {"name": "trainer", "image": "i"}


def plugin(*objects: Object, authority: bytes = b"PEM") -> StatusServerAccess:
    return StatusServerAccess(StaticReader(*objects), "https://trainer:10443", lambda: authority)


def enforced(job: TrainJob, *jobs: Object, policy: Any = None) -> RuntimeInfo:
    """RuntimeInfo after the plugin."""
    info = extract(job, runtime(*jobs, policy=policy))
    plugin().enforce_ml_policy(info, job)
    apply_trainer_env(info, job)
    return info


def existing(pod: Object) -> Object:
    """The JobSet that was made of the TrainJob before."""
    metadata = {"name": "demo", "namespace": "default"}
    jobs = [replicated_job("node", TRAINER, pod=pod)]
    for job in jobs:
        job["template"]["spec"].setdefault("template", {})
    return {
        "apiVersion": JOBSETS.api_version,
        "kind": JOBSETS.kind,
        "metadata": metadata,
        "spec": {"replicatedJobs": jobs},
    }


def test_what_pods_get() -> None:
    """All containers of the nodes get the variables and the volume, with a token for this TrainJob."""
    sidecar: Object = {"name": "exporter", "image": "i"}
    initializer = replicated_job("dataset-initializer", {"name": "dataset-initializer", "image": "i"})
    nodes = replicated_job("node", TRAINER, sidecar, pod={"initContainers": [{"name": "fetch", "image": "i"}]})
    info = enforced(train_job(), initializer, nodes)

    other, trainer = info.pod_sets
    assert trainer.volumes == [VOLUME]
    for container in trainer.containers:
        assert {each["name"]: each["value"] for each in container.env} == ENV
        assert container.volume_mounts == [MOUNT]
    assert not any((each.env, each.volume_mounts) != ([], []) for each in (*trainer.init_containers, *other.containers))
    assert not other.volumes


def test_launcher() -> None:
    """With MPI it is the launcher, which runs the command."""
    jobs = replicated_job("launcher", {"name": "launcher", "image": "i"}), replicated_job("node", TRAINER)
    info = enforced(train_job(), *jobs, policy={"mpi": {"numProcPerNode": 1}})

    assert info.launcher is not None
    assert info.launcher.volumes == [VOLUME]
    assert info.trainer.volumes == []


def test_peers() -> None:
    """A chief, which reports, gets them, as do the others that train with it."""
    jobs = (replicated_job(name, {"name": "trainer", "image": "i"}) for name in ("node", "chief", "ps"))
    info = enforced(train_job(), *jobs, policy={"tensorflow": {}})

    assert [pods.volumes for pods in info.pod_sets] == [[VOLUME]] * 3
    for pods in info.pod_sets:
        assert {each["name"]: each["value"] for each in pods.main_container.env} == ENV


def test_variables_of_the_trainjob_win() -> None:
    """Somebody may post to a server of their own."""
    url = {"name": "KUBEFLOW_TRAINER_SERVER_URL", "value": "https://mine"}
    info = enforced(train_job(trainer={"env": [url]}))

    assert url in info.main_container.env


@pytest.mark.parametrize(
    ("pod", "gets"),
    [
        pytest.param({}, False, id="from-before"),
        pytest.param({"volumes": [{"name": "data", "emptyDir": {}}]}, False, id="with-another-volume"),
        pytest.param({"volumes": [VOLUME]}, True, id="with-the-volume"),
    ],
)
def test_existing_jobsets(pod: Object, gets: bool) -> None:
    """Pods of a JobSet that was made without the token do not get one: they could not be changed."""
    job = train_job()
    info = extract(job, runtime())
    access = plugin(existing(pod))
    access.enforce_ml_policy(info, job)

    assert bool(info.trainer.volumes) is gets
    assert bool(list(access.build(info, job))) is gets


@pytest.mark.parametrize("version", ["v1alpha1", "v2alpha1"])
def test_built(version: str) -> None:
    """The ConfigMap has the certificates of the moment; the protocol is the same in both versions."""
    job = TrainJob.from_object(train_job().to_object() | {"apiVersion": f"trainer.kubeflow.org/{version}"})
    certificates = [b"OLD", b"OLD\nNEW"]
    access = StatusServerAccess(StaticReader(), "https://trainer:10443", lambda: certificates[0])
    together = Pipeline(Registry([*pipeline().plugins, access]))
    nodes = replicated_job("node", TRAINER | {"name": "node"})
    nodes["template"]["metadata"] = {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}}
    for pem in tuple(certificates):
        built = together.build(job, runtime(nodes))
        (config_map,) = [each for each in built if each.resource == CONFIG_MAPS]
        (jobset,) = [each.object for each in built if each.resource == JOBSETS]
        assert config_map.object["metadata"] == {
            "name": "demo-tls-config",
            "namespace": "default",
            "labels": {AUTHORITY_LABEL: "demo"},
        }
        assert config_map.object["data"] == {"ca.crt": pem.decode()}
        (built_nodes,) = jobset["spec"]["replicatedJobs"]
        pod = built_nodes["template"]["spec"]["template"]["spec"]
        assert pod["volumes"] == [VOLUME]
        assert env_of(pod["containers"][0]) | ENV == env_of(pod["containers"][0])
        certificates.pop(0)


def test_nobody_trains() -> None:
    """With v1alpha1 a runtime need not have a trainer; then nothing is added."""
    job = TrainJob.from_object(train_job().to_object() | {"apiVersion": "trainer.kubeflow.org/v1alpha1"})
    access = StatusServerAccess(StaticReader(), "https://trainer:10443", lambda: b"PEM")
    together = Pipeline(Registry([*pipeline("v1alpha1").plugins, access]), profile=V1ALPHA1_PROFILE)
    built = together.build(job, runtime(replicated_job("node", TRAINER)))
    assert [each.resource for each in built] == [JOBSETS]
