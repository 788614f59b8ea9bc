"""A small model of the Training Operator 1.9 and the MPI Operator 0.8: the pods that they make of a job.

It is written from a description of the operators, and shares nothing with the conversion. It knows what trainings can
see: images, commands, variables, when containers are started again, and which pods must succeed.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from trainer.kube.objects import Object

UNLIMITED = -1


@dataclass(frozen=True)
class Facts:
    """A kind, as the operator has it."""

    specs: str
    roles: tuple[str, ...]
    container: str
    port_name: str
    port: int
    restart: str


FACTS = {
    "PyTorchJob": Facts("pytorchReplicaSpecs", ("Master", "Worker"), "pytorch", "pytorchjob-port", 23456, "OnFailure"),
    "JAXJob": Facts("jaxReplicaSpecs", ("Worker",), "jax", "jaxjob-port", 6666, "Never"),
    "TFJob": Facts(
        "tfReplicaSpecs", ("Chief", "Master", "PS", "Worker", "Evaluator"), "tensorflow", "tfjob-port", 2222, "Never"
    ),
    "XGBoostJob": Facts("xgbReplicaSpecs", ("Master", "Worker"), "xgboost", "xgboostjob-port", 9999, "Never"),
    "PaddleJob": Facts("paddleReplicaSpecs", ("Master", "Worker"), "paddle", "master", 36543, "OnFailure"),
    "MPIJob": Facts("mpiReplicaSpecs", ("Launcher", "Worker"), "", "mpi-port", 9999, "Never"),
}


@dataclass(frozen=True)
class Restarts:
    """When the container of a pod is started again."""

    after_error: bool
    """After exit code 1."""
    after_signal: bool
    """After exit code 137."""
    limit: int
    """How often; UNLIMITED is for as often as it takes."""


@dataclass(frozen=True)
class OperatorPod:
    """A pod."""

    name: str
    containers: dict[str, Object]
    """By name, with the variables of the operator."""
    main: str
    """Name of the container that trains."""
    restarts: Restarts


@dataclass(frozen=True)
class OperatorJob:
    """What the operator makes of a job."""

    pods: list[OperatorPod]
    succeeds_with: frozenset[frozenset[str]]
    """The sets of pods each of which is enough: once all pods of one have succeeded, so has the job."""
    hostfile: str = ""
    port: int = 0
    """Where pods meet."""
    hosts: dict[str, str] = field(default_factory=dict)
    """Names by which pods call each other, by pod."""


def run(job: Object) -> OperatorJob:
    """The pods of a job."""
    return _Operator(job).run()


class _Operator:
    def __init__(self, job: Object) -> None:
        self.name: str = job["metadata"]["name"]
        self.kind: str = job["kind"]
        self.is_v2beta1 = job["apiVersion"] == "kubeflow.org/v2beta1"
        self.spec: Object = job["spec"]
        self.facts = FACTS[self.kind]
        self.policy: Object = self.spec.get("runPolicy", {})
        written = {name.lower(): value for name, value in self.spec[self.facts.specs].items()}
        self.roles: dict[str, Object] = {
            role: written[role.lower()] for role in self.facts.roles if role.lower() in written
        }

    def run(self) -> OperatorJob:
        pods = [self._pod(role, index, rank) for rank, (role, index) in enumerate(self._members())]
        first_role = next(iter(self.roles))
        hosts = {
            f"{self.name}-{role.lower()}-{index}": pod.name
            for (role, index), pod in zip(self._members(), pods, strict=True)
        }
        return OperatorJob(pods, self._succeeds_with(), self._hostfile(), self._port(first_role), hosts)

    def _members(self) -> list[tuple[str, int]]:
        return [(role, index) for role in self.roles for index in range(self._count(role))]

    def _count(self, role: str) -> int:
        count: int = self.roles[role].get("replicas", 1) if role in self.roles else 0
        return count

    @property
    def _total(self) -> int:
        return len(self._members())

    def _host(self, role: str, index: int) -> str:
        return f"{self.name}-{role.lower()}-{index}"

    def _main(self, role: str) -> Object:
        containers: list[Object] = self.roles[role]["template"]["spec"]["containers"]
        wanted = self.facts.container or self.spec.get("mainContainer") or containers[0]["name"]
        return next(container for container in containers if container["name"] == wanted)

    def _port(self, role: str) -> int:
        for port in self._main(role).get("ports", []):
            if port.get("name") == self.facts.port_name:
                number: int = port["containerPort"]
                return number
        return self.facts.port

    def _pod(self, role: str, index: int, rank: int) -> OperatorPod:
        main = self._main(role)["name"]
        containers: dict[str, Object] = {}
        for container in self.roles[role]["template"]["spec"]["containers"]:
            own = {variable["name"]: _value(variable) for variable in container.get("env", [])}
            if self.kind not in {"TFJob", "MPIJob"} or container["name"] == main:
                own |= self._environment(role, index, rank)
            containers[container["name"]] = container | {"env": own}
        if self.kind == "MPIJob" and role == "Worker" and not {"command", "args"} & containers[main].keys():
            containers[main]["command"] = ["/usr/sbin/sshd", "-De"] if self.is_v2beta1 else ["sleep", "365d"]
        return OperatorPod(self._host(role, index), containers, main, self._restarts(role))

    def _restarts(self, role: str) -> Restarts:
        default = "OnFailure" if self.is_v2beta1 and role == "Launcher" else self.facts.restart
        policy = self.roles[role].get("restartPolicy", default)
        limit = self.policy.get("backoffLimit", UNLIMITED)
        if self.is_v2beta1 and role == "Launcher":  # a Job of Kubernetes
            return Restarts(after_error=True, after_signal=True, limit=self.policy.get("backoffLimit", 6))
        if policy == "Never" or limit == 0:
            return Restarts(after_error=False, after_signal=False, limit=0)
        return Restarts(after_error=policy != "ExitCode", after_signal=True, limit=limit)

    def _succeeds_with(self) -> frozenset[frozenset[str]]:
        names = {role: [self._host(role, index) for index in range(self._count(role))] for role in self.roles}
        end = next((role for role in ("Launcher", "Chief", "Master") if role in names), None)
        workers = names.get("Worker", [])
        if end is not None:
            return frozenset({frozenset(names[end])})
        if self.kind == "PyTorchJob" and "elasticPolicy" in self.spec:
            return frozenset(frozenset({worker}) for worker in workers)
        if self.kind == "TFJob" and self.spec.get("successPolicy") != "AllWorkers":
            return frozenset({frozenset(workers[:1])})
        return frozenset({frozenset(workers)})

    def _hostfile(self) -> str:
        if self.kind != "MPIJob":
            return ""
        slots = self.spec.get("slotsPerWorker", 1)
        form = "{host}:{slots}" if self.spec.get("mpiImplementation") in {"Intel", "MPICH"} else "{host} slots={slots}"
        hosts = [self._host("Worker", index) for index in range(self._count("Worker"))]
        if self.spec.get("runLauncherAsWorker"):
            hosts.insert(0, self._host("Launcher", 0))
        return "".join(f"{form.format(host=host, slots=slots)}\n" for host in hosts)

    def _environment(self, role: str, index: int, rank: int) -> dict[str, str]:
        match self.kind:
            case "PyTorchJob":
                return {"PYTHONUNBUFFERED": "1"} | self._pytorch(rank)
            case "JAXJob":
                return {
                    "PYTHONUNBUFFERED": "1",
                    "COORDINATOR_ADDRESS": self._host("Worker", 0),
                    "COORDINATOR_PORT": str(self._port("Worker")),
                    "NUM_PROCESSES": str(self._total),
                    "PROCESS_ID": str(rank),
                }
            case "TFJob":
                return self._tensorflow(role, index)
            case "XGBoostJob":
                return {"PYTHONUNBUFFERED": "1"} | self._xgboost(rank)
            case "PaddleJob":
                return {"PYTHONUNBUFFERED": "1"} | self._paddle(role)
            case _:
                return self._mpi(role)

    def _pytorch(self, rank: int) -> dict[str, str]:
        elastic, processes = self.spec.get("elasticPolicy"), str(self.spec.get("nprocPerNode", "auto"))
        found: dict[str, str] = {}
        if "Master" in self.roles:
            host, port = self._host("Master", 0), str(self._port("Master"))
            each = int(processes) if processes.isdigit() else 1
            found |= {"MASTER_ADDR": host, "PET_MASTER_ADDR": host, "MASTER_PORT": port, "PET_MASTER_PORT": port}
            found |= {"WORLD_SIZE": str(self._total * each), "RANK": str(rank), "PET_NODE_RANK": str(rank)}
        found["PET_NPROC_PER_NODE"] = processes
        if elastic is None:
            return found | {"PET_NNODES": str(self._total)}
        workers = self._count("Worker")
        least = elastic.get("minReplicas", elastic.get("maxReplicas", workers))
        most = elastic.get("maxReplicas", elastic.get("minReplicas", workers))
        stated = {"minReplicas", "maxReplicas"} & elastic.keys()
        host = elastic.get("rdzvHost", self._host("Worker", 0))
        found["PET_NNODES"] = f"{least}:{most}" if stated else str(workers)
        found["PET_RDZV_ENDPOINT"] = f"{host}:{elastic.get('rdzvPort', self._port('Worker'))}"
        found["PET_RDZV_BACKEND"] = elastic.get("rdzvBackend", "c10d")
        names = {"maxRestarts": "PET_MAX_RESTARTS", "nProcPerNode": "PET_NPROC_PER_NODE", "rdzvId": "PET_RDZV_ID"}
        found |= {name: str(elastic[member]) for member, name in names.items() if member in elastic}
        if elastic.get("rdzvConf"):
            found["PET_RDZV_CONF"] = ",".join(f"{each['key']}={each['value']}" for each in elastic["rdzvConf"])
        return found | ({"PET_STANDALONE": ""} if elastic.get("standalone") else {})

    def _tensorflow(self, role: str, index: int) -> dict[str, str]:
        if self._total == 1:
            return {}
        cluster = {
            each.lower(): [f"{self._host(each, i)}.default.svc:{self._port(each)}" for i in range(self._count(each))]
            for each in self.roles
            if each != "Evaluator"
        }
        task = {"type": role.lower(), "index": index}
        return {"TF_CONFIG": json.dumps({"cluster": cluster, "task": task, "environment": "cloud"})}

    def _xgboost(self, rank: int) -> dict[str, str]:
        found = {
            "MASTER_ADDR": self._host("Master", 0),
            "MASTER_PORT": str(self._port("Master")),
            "WORLD_SIZE": str(self._total),
            "RANK": str(rank),
        }
        if self._total > 1:
            found["WORKER_PORT"] = str(self._port("Worker"))
            found["WORKER_ADDRS"] = ",".join(self._host("Worker", index) for index in range(self._count("Worker")))
        return found

    def _paddle(self, role: str) -> dict[str, str]:
        first = "Master" if "Master" in self.roles else "Worker"
        found = {
            "PADDLE_JOB_ID": self.name,
            "PADDLE_NNODES": str(self._total),
            # The first pod has its own address here, by $(POD_IP_DUMMY), which is that of its name.
            "PADDLE_MASTER": f"{self._host(first, 0)}:{self._port(first)}",
        }
        if "Master" in self.roles:
            found["PADDLE_SERVER_NUM" if role == "Master" else "PADDLE_TRAINER_NUM"] = "1"
        return found

    def _mpi(self, role: str) -> dict[str, str]:
        hidden = {"NVIDIA_VISIBLE_DEVICES": "", "NVIDIA_DRIVER_CAPABILITIES": ""}
        if self.is_v2beta1:
            # Also for a launcher without workers, which alone can train.
            hides = role == "Launcher" and self._count("Worker") and not self.spec.get("runLauncherAsWorker")
            return {"K_MPI_JOB_ROLE": role.lower()} | (hidden if hides else {})
        has_gpu = "nvidia.com/gpu" in self._main(role).get("resources", {}).get("limits", {})
        if role == "Launcher" and not has_gpu:
            return hidden
        return {}


def _value(variable: Object) -> Any:
    """The value of a variable; a source as JSON, since both sides have the same."""
    return variable.get("value", json.dumps(variable.get("valueFrom"), sort_keys=True))
