"""Jobs of all kinds, from tables: what differs from a plain one of its kind."""

from __future__ import annotations

import copy
from typing import Any

from packages.v1_jobs.tests.golden.operator_model import FACTS
from trainer.kube.objects import Object

_SPOT: dict[str, Any] = {"nodeSelector": {"pool": "spot"}, "tolerations": [{"key": "spot", "operator": "Exists"}]}
_DATA: dict[str, Any] = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}
_MOUNT: dict[str, Any] = {"volumeMounts": [{"name": "data", "mountPath": "/data"}]}
_GPU: dict[str, Any] = {"resources": {"limits": {"nvidia.com/gpu": 2}}}
_SIDECAR: dict[str, Any] = {"name": "logger", "image": "fluent-bit:3", "args": ["--tail"]}
_CPU_METRIC = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
}


def _role(kind: str, replicas: int | None = None, restart: str = "", **changes: Any) -> Object:
    """A role; `changes` are of its container, those in `pod` of its pods, and in `beside` further containers."""
    pod, beside = changes.pop("pod", {}), changes.pop("beside", [])
    name = FACTS[kind].container or "mpi"
    container = {"name": name, "image": f"{kind.lower()}:1", "command": ["python", "/train.py"]} | changes
    container = {member: value for member, value in container.items() if value is not None}
    role: Object = {"template": {"spec": {"containers": [container, *beside]} | pod}}
    if replicas is not None:
        role["replicas"] = replicas
    return role | ({"restartPolicy": restart} if restart else {})


def _job(name: str, kind: str, roles: dict[str, Object], version: str = "v1", **spec: Any) -> Object:
    metadata = spec.pop("metadata", {})
    return {
        "apiVersion": f"kubeflow.org/{version}",
        "kind": kind,
        "metadata": {"name": name} | metadata,
        "spec": {FACTS[kind].specs: copy.deepcopy(roles)} | spec,
    }


def _pytorch() -> list[Object]:
    kind = "PyTorchJob"

    def roles(workers: int = 2, restart: str = "", **changes: Any) -> dict[str, Object]:
        found = {"Master": _role(kind, 1, restart, **changes)}
        return found | ({"Worker": _role(kind, workers, restart, **changes)} if workers else {})

    def workers(count: int = 2, restart: str = "", **changes: Any) -> dict[str, Object]:
        return {"Worker": _role(kind, count, restart, **changes)}

    def job(name: str, found: dict[str, Object], **spec: Any) -> Object:
        return _job(f"torch-{name}", kind, found, **spec)

    etcd: dict[str, Any] = {"rdzvBackend": "etcd", "rdzvHost": "etcd", "rdzvPort": 2379, "rdzvId": "mine"}
    port: dict[str, Any] = {"rdzvHost": "torch-elastic-port-worker-0", "rdzvPort": 1234}
    conf: dict[str, Any] = {"rdzvConf": [{"key": "join_timeout", "value": "900"}]}
    return [
        job("master", roles(0)),
        job("workers", roles()),
        job("lower-case", {"master": _role(kind), "worker": _role(kind, 2)}),
        job("never", roles(restart="Never")),
        job("exit-code", roles(restart="ExitCode"), runPolicy={"backoffLimit": 3}),
        job("backoff", roles(restart="OnFailure"), runPolicy={"backoffLimit": 4}),
        job("backoff-none", roles(restart="OnFailure"), runPolicy={"backoffLimit": 0}),
        job("always", {"Master": _role(kind, 1), "Worker": _role(kind, 2, "Always")}),
        job("processes", roles(**_GPU), nprocPerNode="2"),
        job("processes-gpu", roles(**_GPU), nprocPerNode="gpu"),
        job("processes-cpu", roles(resources={"limits": {"cpu": 4}}), nprocPerNode="cpu"),
        job("no-master", workers(3)),
        job("args", {"Master": _role(kind, 1, args=["--save"]), "Worker": _role(kind, 2)}),
        job(
            "unequal-processes", {"Master": _role(kind, 1, args=["--save"]), "Worker": _role(kind, 2)}, nprocPerNode="4"
        ),
        job("resources", {"Master": _role(kind, 1), "Worker": _role(kind, 3, **_GPU)}),
        job("sidecar", roles(1, beside=[_SIDECAR])),
        job("init", roles(1, pod={"initContainers": [{"name": "fetch", "image": "curl:8"}], **_DATA}, **_MOUNT)),
        job("placed", roles(1, pod=_SPOT | {"serviceAccountName": "trainer", "priorityClassName": "high"})),
        job("port", roles(1, ports=[{"name": "pytorchjob-port", "containerPort": 4242}])),
        job("further-port", roles(1, ports=[{"name": "debug", "containerPort": 5678}])),
        job("variables", roles(1, env=[{"name": "LR", "value": "0.1"}, {"name": "WORLD_SIZE", "value": "9"}])),
        job("from-secret", roles(0, envFrom=[{"secretRef": {"name": "token"}}])),
        job("shipped", roles(0, "Never", workingDir="/workspace")),
        job(
            "shipped-changed",
            workers(2, "Never", workingDir="/workspace", pod=_DATA | _SPOT, **_MOUNT),
            metadata={"labels": {"kueue.x-k8s.io/queue-name": "team"}},
        ),
        job(
            "policies",
            roles(1),
            runPolicy={
                "cleanPodPolicy": "All",
                "ttlSecondsAfterFinished": 60,
                "activeDeadlineSeconds": 3600,
                "suspend": True,
                "managedBy": "kueue.x-k8s.io/multikueue",
            },
        ),
        job("kept", roles(1), runPolicy={"cleanPodPolicy": "None"}),
        job("elastic", workers(2, "OnFailure"), elasticPolicy={"minReplicas": 1, "maxReplicas": 3, "maxRestarts": 10}),
        job(
            "elastic-metrics",
            workers(2),
            elasticPolicy={"minReplicas": 1, "maxReplicas": 4, "maxRestarts": 3, "metrics": [_CPU_METRIC]},
        ),
        job("elastic-silent", workers(2), elasticPolicy={"maxRestarts": 1}),
        job("elastic-etcd", workers(2), elasticPolicy={"minReplicas": 1, "maxReplicas": 2, **etcd}),
        job("elastic-port", workers(2), elasticPolicy={"minReplicas": 1, "maxReplicas": 2, **port}),
        job("elastic-conf", workers(2), elasticPolicy={"minReplicas": 2, "maxRestarts": 3, **conf}),
        job("elastic-alone", workers(1), elasticPolicy={"standalone": True, "maxRestarts": 2, "nProcPerNode": 2}),
        job("elastic-master", roles(2), elasticPolicy={"minReplicas": 1, "maxReplicas": 4, "maxRestarts": 3}),
        job(
            "elastic-unequal",
            {"Master": _role(kind, 1, args=["--save"]), "Worker": _role(kind, 2)},
            elasticPolicy={"minReplicas": 1, "maxReplicas": 4, "maxRestarts": 3},
        ),
        job(
            "gang",
            roles(2),
            runPolicy={"schedulingPolicy": {"queue": "team", "priorityClass": "high", "minAvailable": 3}},
        ),
        job(
            "gang-plugin",
            roles(1, pod={"schedulerName": "scheduler-plugins"}),
            runPolicy={"schedulingPolicy": {"scheduleTimeoutSeconds": 120, "minResources": {"cpu": 4}}},
        ),
    ]


def _jax() -> list[Object]:
    kind = "JAXJob"

    def job(name: str, count: int | None, restart: str = "", policy: Object | None = None, **changes: Any) -> Object:
        spec: dict[str, Any] = {"runPolicy": policy} if policy else {}
        return _job(f"jax-{name}", kind, {"Worker": _role(kind, count, restart, **changes)}, **spec)

    return [
        job("one", None),
        job("three", 3),
        job("on-failure", 2, "OnFailure", {"backoffLimit": 2}),
        job("exit-code", 2, "ExitCode"),
        job("gpus", 2, **_GPU),
        job("port", 2, ports=[{"name": "jaxjob-port", "containerPort": 1234}]),
        job("variables", 2, env=[{"name": "JAX_PLATFORMS", "value": "cpu"}, {"name": "NUM_PROCESSES", "value": "7"}]),
        job("shipped", 2, workingDir="/workspace"),
        job("sidecar", 2, beside=[_SIDECAR]),
    ]


def _tensorflow() -> list[Object]:
    kind = "TFJob"

    def job(name: str, roles: dict[str, Object], **spec: Any) -> Object:
        return _job(f"tf-{name}", kind, roles, **spec)

    worker, ps, evaluator = _role(kind, 2), _role(kind, 2), _role(kind, 1, args=["--evaluate"])
    return [
        job("one", {"Worker": _role(kind)}),
        job("chief-alone", {"Chief": _role(kind)}),
        job("workers", {"Worker": worker}),
        job("all-workers", {"Worker": worker}, successPolicy="AllWorkers"),
        job("chief", {"Chief": _role(kind, 1), "Worker": worker}),
        job("master", {"Master": _role(kind, 1), "Worker": worker}),
        job("ps", {"PS": ps, "Worker": worker}),
        job("ps-all-workers", {"PS": ps, "Worker": worker}, successPolicy="AllWorkers"),
        job("ps-chief", {"Chief": _role(kind, 1), "PS": ps, "Worker": worker}),
        job("evaluator", {"Chief": _role(kind, 1), "Worker": worker, "Evaluator": evaluator}),
        job("no-worker", {"Chief": _role(kind, 1), "PS": ps}),
        job("unequal", {"PS": _role(kind, 1, "Always", image="ps:1"), "Worker": _role(kind, 2, "OnFailure", **_GPU)}),
        job("exit-code", {"Chief": _role(kind, 1, "ExitCode"), "Worker": _role(kind, 2, "ExitCode")}),
        job("port", {"Worker": _role(kind, 2, ports=[{"name": "tfjob-port", "containerPort": 3333}])}),
        job("dynamic", {"PS": ps, "Worker": worker}, enableDynamicWorker=True),
        job("sidecar", {"Worker": _role(kind, 2, beside=[_SIDECAR])}, runPolicy={"cleanPodPolicy": "Running"}),
    ]


def _xgboost() -> list[Object]:
    kind = "XGBoostJob"

    def job(name: str, workers: int | None, restart: str = "", master: Object | None = None, **changes: Any) -> Object:
        roles = {"Master": _role(kind, 1, restart, **(changes | (master or {})))}
        if workers:
            roles["Worker"] = _role(kind, workers, restart, **changes)
        return _job(f"xgb-{name}", kind, roles)

    return [
        job("master", None),
        job("workers", 2),
        job("gpus", 2, **_GPU),
        job("on-failure", 1, "OnFailure"),
        job("exit-code", 1, "ExitCode"),
        job("port", 2, ports=[{"name": "xgboostjob-port", "containerPort": 9000}]),
        job("unequal", 2, master={"args": ["--save"]}),
        job("variables", 1, env=[{"name": "RANK", "value": "5"}, {"name": "DEPTH", "value": "6"}]),
    ]


def _paddle() -> list[Object]:
    kind = "PaddleJob"

    def job(name: str, roles: dict[str, Object], **spec: Any) -> Object:
        return _job(f"paddle-{name}", kind, roles, **spec)

    launch: dict[str, Any] = {"command": ["python", "-m", "paddle.distributed.launch", "/train.py"]}
    return [
        job("workers", {"Worker": _role(kind, 2, **launch)}),
        job("never", {"Worker": _role(kind, 2, "Never", **launch)}),
        job("gpus", {"Worker": _role(kind, 2, **launch, **_GPU)}),
        job("servers", {"Master": _role(kind, 1, **launch), "Worker": _role(kind, 2, **launch)}),
        job("elastic", {"Worker": _role(kind, 2, **launch)}, elasticPolicy={"minReplicas": 1, "maxReplicas": 3}),
    ]


def _mpi() -> list[Object]:
    kind = "MPIJob"
    mpirun: dict[str, Any] = {"command": ["mpirun", "python", "/train.py"]}

    def job(
        name: str, version: str = "v1", launcher: Object | None = None, worker: Object | None = None, **spec: Any
    ) -> Object:
        roles = {"Launcher": launcher or _role(kind, 1, **mpirun), "Worker": worker or _role(kind, 2, command=None)}
        return _job(f"mpi-{version}-{name}", kind, roles, version, **spec)

    alone = _job("mpi-v2beta1-alone", kind, {"Launcher": _role(kind, 1, **mpirun)}, "v2beta1")
    two = _role(kind, 1, **mpirun, beside=[_SIDECAR])
    return [
        job("workers", slotsPerWorker=2, cleanPodPolicy="Running"),
        job("restarts", launcher=_role(kind, 1, "OnFailure", **mpirun), runPolicy={"backoffLimit": 2}),
        job("gpus", worker=_role(kind, 2, command=None, **_GPU), slotsPerWorker=2),
        job("sleeping", worker=_role(kind, 2, command=["sleep", "infinity"], env=[{"name": "A", "value": "b"}])),
        job("main", launcher=two, worker=_role(kind, 1, command=None), mainContainer="mpi"),
        job("workers", "v2beta1", slotsPerWorker=2),
        job("server", "v2beta1", worker=_role(kind, 2, command=["/usr/sbin/sshd", "-De", "-p", "2222"])),
        job("intel", "v2beta1", mpiImplementation="Intel", sshAuthMountPath="/home/mpiuser/.ssh"),
        job("mpich", "v2beta1", mpiImplementation="MPICH", slotsPerWorker=4),
        job("launcher-trains", "v2beta1", runLauncherAsWorker=True, launcherCreationPolicy="WaitForWorkersReady"),
        job("at-startup", "v2beta1", launcherCreationPolicy="AtStartup", runPolicy={"backoffLimit": 1}),
        job("never", "v2beta1", launcher=_role(kind, 1, "Never", **mpirun), runPolicy={"cleanPodPolicy": "Running"}),
        alone,
    ]


def manifests() -> dict[str, list[Object]]:
    """The jobs by kind."""
    return {
        "pytorch": _pytorch(),
        "jax": _jax(),
        "tensorflow": _tensorflow(),
        "xgboost": _xgboost(),
        "paddle": _paddle(),
        "mpi": _mpi(),
    }
