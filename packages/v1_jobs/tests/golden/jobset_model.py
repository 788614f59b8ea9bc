"""The pods that JobSet, Jobs and the kubelet make of rendered objects, in what a training can see of them."""

from __future__ import annotations

import json
import re
from itertools import product

from packages.v1_jobs.tests.golden.operator_model import UNLIMITED, OperatorJob, OperatorPod, Restarts
from trainer.kube.objects import Object

_UNLIMITED = 2**31 - 1
_LABEL = re.compile(r"metadata\.(?:labels|annotations)\['(.+)'\]")


def run(objects: list[Object]) -> OperatorJob:
    """The pods of the JobSet among the objects, in the order of their numbers, and which of them must succeed."""
    (jobset,) = (obj for obj in objects if obj["kind"] == "JobSet")
    hostfile = next((obj["data"]["hostfile"] for obj in objects if "hostfile" in obj.get("data", {})), "")
    return _JobSet(jobset).run(hostfile)


class _JobSet:
    def __init__(self, jobset: Object) -> None:
        self.name: str = jobset["metadata"]["name"]
        self.spec: Object = jobset["spec"]
        self.jobs: list[Object] = [job for job in self.spec["replicatedJobs"] if job.get("replicas", 1)]

    def run(self, hostfile: str) -> OperatorJob:
        pods, number = [], 0
        for job in self.jobs:
            for index in range(job.get("replicas", 1)):
                pods += [self._pod(job, index, number, position) for position in range(_size(job))]
                number += 1
        hosts = {f"{pod.name}.{self.name}": pod.name for pod in pods}
        return OperatorJob(pods, self._succeeds_with(), hostfile, hosts=hosts)

    def _pod(self, job: Object, index: int, number: int, position: int) -> OperatorPod:
        spec = job["template"]["spec"]["template"]["spec"]
        facts = {
            "jobset.sigs.k8s.io/jobset-name": self.name,
            "jobset.sigs.k8s.io/job-index": str(index),
            "jobset.sigs.k8s.io/job-global-index": str(number),
            "batch.kubernetes.io/job-completion-index": str(position),
        }
        containers = {each["name"]: each | {"env": _environment(each, facts)} for each in spec["containers"]}
        main = next((name for name in ("trainer", "node") if name in containers), spec["containers"][0]["name"])
        return OperatorPod(self._pod_name(job, index, position), containers, main, _restarts(job))

    def _pod_name(self, job: Object, index: int, position: int) -> str:
        return f"{self.name}-{job['name']}-{index}-{position}"

    def _succeeds_with(self) -> frozenset[frozenset[str]]:
        policy = self.spec.get("successPolicy") or {"operator": "All"}
        targets = policy.get("targetReplicatedJobs") or [job["name"] for job in self.jobs]
        assert policy["operator"] == "All"
        choices = [self._ends_of(job) for job in self.jobs if job["name"] in targets]
        return frozenset(frozenset().union(*choice) for choice in product(*choices))

    def _ends_of(self, job: Object) -> list[frozenset[str]]:
        """The sets of pods of a replicated Job each of which is enough."""
        spec = job["template"]["spec"]
        names = [
            [self._pod_name(job, index, position) for position in range(_size(job))]
            for index in range(job.get("replicas", 1))
        ]
        if "successPolicy" not in spec:
            return [frozenset(name for each in names for name in each)]
        (rule,), (pods,) = spec["successPolicy"]["rules"], names
        if "succeededIndexes" in rule:
            return [frozenset({pods[int(rule["succeededIndexes"])]})]
        assert rule == {"succeededCount": 1}
        return [frozenset({pod}) for pod in pods]


def _size(job: Object) -> int:
    size: int = job["template"]["spec"]["parallelism"]
    return size


def _restarts(job: Object) -> Restarts:
    spec = job["template"]["spec"]
    limit = UNLIMITED if spec["backoffLimit"] == _UNLIMITED else spec["backoffLimit"]
    rules = spec.get("podFailurePolicy", {}).get("rules", [])
    if limit == 0:
        return Restarts(after_error=False, after_signal=False, limit=0)
    return Restarts(after_error=not _fails(1, rules), after_signal=not _fails(137, rules), limit=limit)


def _fails(code: int, rules: list[Object]) -> bool:
    return any(rule["action"] == "FailJob" and code in rule["onExitCodes"]["values"] for rule in rules)


def _environment(container: Object, facts: dict[str, str]) -> dict[str, str]:
    """The variables with references to those before filled in."""
    found: dict[str, str] = {}
    for variable in container.get("env", []):
        path = variable.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath", "")
        label = _LABEL.fullmatch(path)
        if label is not None and label[1] in facts:
            value = facts[label[1]]
        elif "valueFrom" in variable:
            value = json.dumps(variable["valueFrom"], sort_keys=True)
        else:
            value = re.sub(r"\$\((\w+)\)", lambda match: found.get(match[1], match[0]), variable.get("value", ""))
        found[variable["name"]] = value
    return found
