"""What the operators do to pods is done here, or named: a case for each row of the table in docs/migrate-from-v1.md."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from packages.v1_jobs.tests.conversion.jobs import converted, fields, job, pods
from packages.v1_jobs.tests.golden import jobset_model
from packages.v1_jobs.tests.golden.operator_model import OperatorJob
from trainer.cli.documents import Document, checked, place
from trainer.cli.offline.render import render_documents
from trainer.kube.objects import Object
from trainer_v1_jobs.conversion.encoding import encoded

PAGE = Path(__file__).parents[4] / "docs" / "migrate-from-v1.md"
BOTH = {"Master": 1, "Worker": 1}
MPI = {"Launcher": 1, "Worker": 2}
MPI_JOB = "MPIJob/v2beta1"
UNLIMITED = 2**31 - 1

CASES: dict[str, Callable[[], None]] = {}


def proves(row: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Has a function be the case of a row, which it names by its first cell."""

    def register(case: Callable[[], None]) -> Callable[[], None]:
        assert row not in CASES
        CASES[row] = case
        return case

    return register


def rendered(obj: Object) -> tuple[list[Object], OperatorJob]:
    """The objects that a job becomes in a cluster, and the pods that these become."""
    result = converted(obj)
    assert result.runtime is not None
    documents = [checked(each, "job") for each in (result.runtime, result.train_job)]
    (found,) = render_documents(
        place([each for each in documents if isinstance(each, Document)], namespace=None, default="default")
    )
    objects = [component.object for component in found.components]
    return objects, jobset_model.run(objects)


def environments(obj: Object) -> dict[str, Object]:
    """The variables of the container that trains in each pod, with references filled in."""
    return {pod.name: pod.containers[pod.main]["env"] for pod in rendered(obj)[1].pods}


def jobs_of(obj: Object) -> dict[str, Object]:
    """The specs of the Jobs of a runtime."""
    runtime = converted(obj).runtime
    assert runtime is not None
    return {each["name"]: each["template"]["spec"] for each in runtime["spec"]["template"]["spec"]["replicatedJobs"]}


def messages(obj: Object) -> str:
    """All that is lost, as text."""
    return "\n".join(map(str, converted(obj).findings))


@proves("variables of PyTorch: `MASTER_*`, `WORLD_SIZE`, `RANK`, `PET_*`")
def _() -> None:
    found = environments(job("PyTorchJob", BOTH))
    host = "demo-node-0-0.demo"
    for rank, own in enumerate(found.values()):
        assert (own["MASTER_ADDR"], own["PET_MASTER_ADDR"], own["WORLD_SIZE"]) == (host, host, "2")
        assert (own["RANK"], own["PET_NODE_RANK"], own["PET_NNODES"]) == (str(rank), str(rank), "2")
        assert own["MASTER_PORT"] == own["PET_MASTER_PORT"]


@proves("variables of JAX: `COORDINATOR_*`, `NUM_PROCESSES`, `PROCESS_ID`")
def _() -> None:
    first, second = environments(job("JAXJob", {"Worker": 2})).values()
    assert first["COORDINATOR_ADDRESS"] == second["COORDINATOR_ADDRESS"] == "demo-node-0-0.demo"
    assert f"{first['COORDINATOR_ADDRESS']}:{first['COORDINATOR_PORT']}" == first["JAX_COORDINATOR_ADDRESS"]
    assert (second["NUM_PROCESSES"], second["PROCESS_ID"]) == ("2", "1")


@proves("`TF_CONFIG`")
def _() -> None:
    found = environments(job("TFJob", {"PS": 1, "Worker": 2}))
    config = json.loads(found["demo-node-0-1"]["TF_CONFIG"])
    assert config["task"] == {"type": "worker", "index": 1}
    assert {task: len(hosts) for task, hosts in config["cluster"].items()} == {"ps": 1, "worker": 2}


@proves("variables of XGBoost: `MASTER_*`, `WORLD_SIZE`, `RANK`, `WORKER_*`")
def _() -> None:
    own = environments(job("XGBoostJob", {"Master": 1, "Worker": 2}))["demo-node-0-1"]
    assert (own["MASTER_ADDR"], own["MASTER_PORT"], own["WORLD_SIZE"], own["RANK"]) == (
        "demo-node-0-0.demo", "9999", "3", "1",
    )  # fmt: skip
    assert (own["WORKER_PORT"], own["WORKER_ADDRS"]) == ("9999", "demo-node-0-1.demo,demo-node-0-2.demo")


@proves("variables of Paddle: `PADDLE_*`")
def _() -> None:
    own = environments(job("PaddleJob", {"Worker": 2}))["demo-node-0-1"]
    assert (own["PADDLE_JOB_ID"], own["PADDLE_NNODES"]) == ("demo", "2")
    assert own["PADDLE_MASTER"].startswith("demo-node-0-0.demo:")
    found = environments(job("PaddleJob", BOTH))
    assert (found["demo-master-0-0"]["PADDLE_SERVER_NUM"], found["demo-worker-0-0"]["PADDLE_TRAINER_NUM"]) == ("1", "1")


@proves("`PYTHONUNBUFFERED`")
def _() -> None:
    for kind, roles in (("PyTorchJob", BOTH), ("JAXJob", {"Worker": 1}), ("XGBoostJob", BOTH), ("PaddleJob", BOTH)):
        assert {own["PYTHONUNBUFFERED"] for own in environments(job(kind, roles)).values()} == {"1"}


@proves("values of these variables that the job sets itself are overwritten")
def _() -> None:
    for kind, name in (("PyTorchJob", "RANK"), ("JAXJob", "NUM_PROCESSES"), ("XGBoostJob", "WORLD_SIZE")):
        roles = {"Worker": 1} if kind == "JAXJob" else BOTH
        obj = job(kind, roles, {"env": [{"name": name, "value": "mine"}]})
        assert "mine" not in str(environments(obj))
        assert fields(converted(obj))[0].endswith("env[0]")


@proves("labels `training.kubeflow.org/*`")
def _() -> None:
    for name, expected in (("job-name", "demo"), ("replica-index", "1"), ("replica-type", "worker")):
        path = f"metadata.labels['training.kubeflow.org/{name}']"
        env = [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": path}}}]
        assert environments(job("JAXJob", {"Worker": 2}, {"env": env}))["demo-node-0-1"]["A"] == expected
    assert "asks for labels" in messages(job("JAXJob", {"Worker": 2}, {"args": ["training.kubeflow.org/job-name"]}))


@proves("names of pods, which are hosts by a Service for each")
def _() -> None:
    env = [{"name": "A", "value": "demo-worker-1"}]
    obj = job("JAXJob", {"Worker": 2}, {"env": env})
    assert environments(obj)["demo-node-0-0"]["A"] in rendered(obj)[1].hosts
    assert "hosts are demo-node-0-INDEX.demo" in messages(job("JAXJob", {"Worker": 2}, {"args": ["$JOB-worker-1"]}))


@proves("the port of its name, with a default, at which pods meet")
def _() -> None:
    def declared(kind: str, name: str, number: int, **spec: Any) -> Object:
        roles = {"Worker": 2} if spec or kind == "JAXJob" else BOTH
        return job(kind, roles, {"ports": [{"name": name, "containerPort": number}]}, **spec)

    assert "pods meet at 29400" in messages(declared("JAXJob", "jaxjob-port", 6666))
    elastic = declared("PyTorchJob", "pytorchjob-port", 4242, elasticPolicy={"minReplicas": 1, "maxReplicas": 2})
    assert environments(elastic)["demo-node-0-0"]["PET_RDZV_ENDPOINT"] == "demo-node-0-0.demo:4242"
    assert environments(declared("XGBoostJob", "xgboostjob-port", 4242))["demo-node-0-0"]["MASTER_PORT"] == "4242"


@proves("an init container of PyTorch's workers waits for the name of the master")
def _() -> None:
    assert "initContainers" not in str(rendered(job("PyTorchJob", BOTH))[0])


@proves("`restartPolicy` of the replicas; `ExitCode` and unlimited restarts")
def _() -> None:
    expected: dict[str, tuple[int, str, bool]] = {
        "Never": (0, "Never", True), "OnFailure": (UNLIMITED, "OnFailure", False),
        "Always": (UNLIMITED, "OnFailure", False), "ExitCode": (UNLIMITED, "Never", True),
    }  # fmt: skip
    for policy, (limit, of_pods, has_rules) in expected.items():
        obj = job("JAXJob", {"Worker": 1})
        obj["spec"]["jaxReplicaSpecs"]["Worker"]["restartPolicy"] = policy
        (spec,) = jobs_of(obj).values()
        assert (spec["backoffLimit"], "podFailurePolicy" in spec) == (limit, has_rules)
        assert spec["template"]["spec"]["restartPolicy"] == of_pods
        assert ("becomes OnFailure" in messages(obj)) == (policy == "Always")


@proves("a pod that is drained or preempted is made again, whatever `restartPolicy`")
def _() -> None:
    ignored = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    for kind, roles in (("PyTorchJob", BOTH), ("JAXJob", {"Worker": 2}), ("XGBoostJob", BOTH)):
        obj = job(kind, roles)
        for role in next(each for name, each in obj["spec"].items() if name.endswith("ReplicaSpecs")).values():
            role["restartPolicy"] = "Never"
        for spec in jobs_of(obj).values():
            assert spec["podFailurePolicy"]["rules"] == [ignored]


@proves("the job ends with its Master, Chief, launcher, first worker or all workers")
def _() -> None:
    cases: list[tuple[str, dict[str, int], set[frozenset[str]]]] = [
        ("PyTorchJob", BOTH, {frozenset({"demo-node-0-0"})}),
        ("TFJob", {"Chief": 1, "Worker": 1}, {frozenset({"demo-chief-0-0"})}),
        ("TFJob", {"Worker": 2}, {frozenset({"demo-node-0-0"})}),
        ("JAXJob", {"Worker": 2}, {frozenset({"demo-node-0-0", "demo-node-0-1"})}),
        (MPI_JOB, MPI, {frozenset({"demo-launcher-0-0"})}),
    ]
    for kind, roles, expected in cases:
        assert rendered(job(kind, roles))[1].succeeds_with == expected


@proves("a HorizontalPodAutoscaler for `elasticPolicy.metrics`")
def _() -> None:
    target = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}
    policy = {"minReplicas": 1, "maxReplicas": 4, "metrics": [{"type": "Resource", "resource": target}]}
    objects, _pods = rendered(job("PyTorchJob", {"Worker": 2}, elasticPolicy=policy))
    (autoscaler,) = (each for each in objects if each["kind"] == "HorizontalPodAutoscaler")
    assert (autoscaler["spec"]["minReplicas"], autoscaler["spec"]["maxReplicas"]) == (1, 4)


@proves("a PodGroup, where it was started with a gang scheduler")
def _() -> None:
    gang = job("JAXJob", {"Worker": 2}, runPolicy={"schedulingPolicy": {"queue": "a"}})
    assert "PodGroup" in [each["kind"] for each in rendered(gang)[0]]
    assert fields(converted(gang)) == ["spec.runPolicy.schedulingPolicy"]
    silent = converted(job("JAXJob", {"Worker": 2}, pod={"schedulerName": "volcano"}))
    assert fields(silent) == ["spec.jaxReplicaSpecs[Worker].template.spec.schedulerName"]


@proves("Kueue reads queue, priority and `suspend` of the job")
def _() -> None:
    labels = {"kueue.x-k8s.io/queue-name": "a", "kueue.x-k8s.io/priority-class": "high"}
    obj = job("JAXJob", {"Worker": 2}, runPolicy={"suspend": True})
    obj["metadata"]["labels"] = labels
    (jobset,) = (each for each in rendered(obj)[0] if each["kind"] == "JobSet")
    assert jobset["metadata"]["labels"].items() >= labels.items()
    assert not jobset["spec"].get("suspend")
    train_job = encoded(converted(obj, "v1alpha1"), "v1alpha1").train_job
    assert (train_job["metadata"]["labels"], train_job["spec"]["suspend"]) == (labels, True)


@proves("MPI: the role in `K_MPI_JOB_ROLE`")
def _() -> None:
    roles = {name: own.get("K_MPI_JOB_ROLE") for name, own in environments(job(MPI_JOB, MPI)).items()}
    assert roles == {"demo-launcher-0-0": "launcher", "demo-node-0-0": "worker", "demo-node-0-1": "worker"}


@proves("MPI: blank NVIDIA variables on a launcher that does not train")
def _() -> None:
    assert environments(job(MPI_JOB, MPI))["demo-launcher-0-0"]["NVIDIA_VISIBLE_DEVICES"] == ""
    trains = environments(job(MPI_JOB, MPI, runLauncherAsWorker=True))["demo-launcher-0-0"]
    assert "NVIDIA_VISIBLE_DEVICES" not in trains


@proves("MPI: `dnsPolicy: ClusterFirstWithHostNet` with hostNetwork")
def _() -> None:
    obj = job(MPI_JOB, MPI, pod={"hostNetwork": True}, mpiImplementation="MPICH")
    assert {pod["dnsPolicy"] for pod in pods(converted(obj)).values()} == {"ClusterFirstWithHostNet"}
    assert "needs the variable HYDRA_IFACE" in messages(obj)


@proves("MPI: hostname and subdomain of pods, a search domain")
def _() -> None:
    found = rendered(job(MPI_JOB, MPI))[1]
    assert {line.split()[0] for line in found.hostfile.splitlines()} <= found.hosts.keys()
    lost = messages(job(MPI_JOB, MPI, pod={"hostname": "h", "subdomain": "s"}))
    assert all(f"[{role}].template.spec.{field}" in lost for role in MPI for field in ("hostname", "subdomain"))


@proves("MPI: workers without a command run sshd")
def _() -> None:
    worker = pods(converted(job(MPI_JOB, MPI, {"command": []})))["node"]
    assert worker["containers"][0]["command"] == ["/usr/sbin/sshd", "-De"]
    assert "their image needs sshd" in messages(job("MPIJob", MPI))


@proves("MPI: the SSH key is open to all users in another directory than root's")
def _() -> None:
    found = pods(converted(job(MPI_JOB, MPI, sshAuthMountPath="/home/mpiuser/.ssh")))
    assert {pod["securityContext"]["fsGroup"] for pod in found.values()} == {1000}


@proves("MPI: `/etc/mpi/hostfile`")
def _() -> None:
    objects, found = rendered(job(MPI_JOB, MPI, slotsPerWorker=3))
    assert found.hostfile == "demo-node-0-0.demo slots=3\ndemo-node-0-1.demo slots=3\n"
    assert "'mountPath': '/etc/mpi'" in str(objects)


@proves("MPI: `/etc/mpi/discover_hosts.sh`, `kubexec.sh`, kubectl and its rights")
def _() -> None:
    for file in ("/etc/mpi/discover_hosts.sh", "/etc/mpi/kubexec.sh", "/opt/kube/kubectl"):
        assert "which nobody writes here" in messages(job(MPI_JOB, MPI, {"command": ["sh", "-c", file]}))
    assert "is made by nobody here" in messages(job("MPIJob", MPI, pod={"serviceAccountName": "demo-launcher"}))


@proves("MPI: the launcher is a Job that is replaced once it has failed, six times")
def _() -> None:
    launcher = jobs_of(job(MPI_JOB, MPI))["launcher"]
    assert (launcher["backoffLimit"], launcher["podReplacementPolicy"]) == (6, "Failed")


@proves("MPI: the launcher starts with its workers")
def _() -> None:
    (jobset,) = (each for each in rendered(job(MPI_JOB, MPI))[0] if each["kind"] == "JobSet")
    (launcher,) = (each for each in jobset["spec"]["replicatedJobs"] if each["name"] == "launcher")
    assert launcher["dependsOn"] == [{"name": "node", "status": "Ready"}]
    assert fields(converted(job(MPI_JOB, MPI, launcherCreationPolicy="AtStartup"))) == ["spec.launcherCreationPolicy"]


def rows() -> list[str]:
    """The first cells of the table."""
    section = PAGE.read_text("utf-8").partition("\n## What the operators do to pods\n")[2].partition("\n## ")[0]
    table = [line for line in section.splitlines() if line.startswith("| ")]
    return [line.split(" | ")[0].removeprefix("| ") for line in table[1:]]


def test_the_table_and_the_cases_are_the_same() -> None:
    """Each row has a case, and each case a row."""
    assert rows() == [*CASES]


@pytest.mark.parametrize("row", [pytest.param(row, id=row) for row in CASES])
def test_row(row: str) -> None:
    """What the operator does is done here, or named."""
    CASES[row]()
