"""A stand-in for the manager of Kubeflow Trainer (Go, v2.3): the objects that it leaves, as recordings of it show.

It applies all of them by server-side apply with the field manager `trainer`, and patches the status of the TrainJob.
"""

from __future__ import annotations

import base64
import copy
from typing import Any, Final, TypeAlias

import yaml

Object: TypeAlias = dict[str, Any]

API_VERSION: Final = "trainer.kubeflow.org/v1alpha1"
FIELD_MANAGER: Final = "trainer"
FINALIZER: Final = "trainer.kubeflow.org/resource-in-use"
"""What releases before v2.3 put on runtimes that TrainJobs use."""
TIME: Final = "2026-01-01T00:00:00Z"

_ANCESTOR: Final = "trainer.kubeflow.org/trainjob-ancestor-step"
_RANK: Final = {"fieldRef": {"fieldPath": "metadata.annotations['batch.kubernetes.io/job-completion-index']"}}
_GROUP_LABEL: Final = "scheduling.x-k8s.io/pod-group"


def runtime(name: str, *jobs: Object, kind: str = "ClusterTrainingRuntime", **spec: Any) -> Object:
    """A training runtime."""
    return {
        "apiVersion": API_VERSION,
        "kind": kind,
        "metadata": {"name": name, "labels": {"trainer.kubeflow.org/framework": "torch"}},
        "spec": {"template": {"spec": {"replicatedJobs": list(jobs)}}} | spec,
    }


def replicated_job(name: str, *, ancestor: str = "", depends_on: str = "", **pod_spec: Any) -> Object:
    """A replicated Job whose container is called `node`."""
    container = {"name": "node", "image": "runtime-image", "command": ["sleep", "600"]}
    template: Object = {"spec": {"template": {"spec": {"containers": [container]} | pod_spec}}}
    if ancestor:
        template["metadata"] = {"labels": {_ANCESTOR: ancestor}}
    dependencies = {"dependsOn": [{"name": depends_on, "status": "Ready"}]} if depends_on else {}
    return {"name": name, "replicas": 1, "groupName": "default", "template": template} | dependencies


def train_job(name: str, runtime_name: str, **spec: Any) -> Object:
    """A TrainJob with the defaults of the CRD."""
    ref = {"apiGroup": "trainer.kubeflow.org", "kind": "ClusterTrainingRuntime", "name": runtime_name}
    defaults: Object = {"managedBy": "trainer.kubeflow.org/trainjob-controller", "suspend": False}
    return {
        "apiVersion": API_VERSION,
        "kind": "TrainJob",
        "metadata": {"name": name},
        "spec": {"runtimeRef": ref} | defaults | spec,
    }


def condition(condition_type: str, status: str, reason: str, message: str) -> Object:
    """A condition of a TrainJob."""
    return {"type": condition_type, "status": status, "reason": reason, "message": message, "lastTransitionTime": TIME}


SUSPENDED: Final = condition("Suspended", "True", "Suspended", "TrainJob is suspended")
RESUMED: Final = condition("Suspended", "False", "Resumed", "TrainJob is resumed")
COMPLETE: Final = condition("Complete", "True", "AllJobsCompleted", "jobset completed successfully")
FAILED: Final = condition("Failed", "True", "FailedJobs", "jobset failed due to one or more job failures")


def jobs_status(name: str = "node", **counts: int) -> Object:
    """The counts of a replicated Job."""
    return {"name": name} | dict.fromkeys(("ready", "succeeded", "failed", "active", "suspended"), 0) | counts


def children(owner: Object, blueprint: Object) -> list[Object]:
    """All objects that a TrainJob becomes, in the order in which they are applied.

    Args:
        owner: the TrainJob as it is stored.
        blueprint: its runtime as it is stored.
    """
    spec = blueprint["spec"]
    made = [snapshot(owner, blueprint)]
    if "mpi" in (spec.get("mlPolicy") or {}):
        made += [_ssh_keys(owner), _hostfile(owner, spec)]
    if "coscheduling" in (spec.get("podGroupPolicy") or {}):
        made.append(_pod_group(owner, spec))
    return [*made, jobset(owner, blueprint)]


def snapshot(owner: Object, blueprint: Object) -> Object:
    """The ConfigMap with the runtime as it was."""
    content = yaml.safe_dump(blueprint)
    return _child(owner, "v1", "ConfigMap", "-runtime-snapshot") | {"data": {"runtime": content}}


def jobset(owner: Object, blueprint: Object) -> Object:
    """The JobSet; it is never changed while it runs."""
    spec, trainer = blueprint["spec"], owner["spec"].get("trainer")
    policy = spec.get("mlPolicy") or {}
    jobs = copy.deepcopy(spec["template"]["spec"]["replicatedJobs"])
    for job in jobs:
        pod_template, size = job["template"]["spec"]["template"], _size(job, owner, policy)
        job["template"]["spec"] |= {"parallelism": size, "completions": size}
        if "podGroupPolicy" in spec:
            pod_template.setdefault("metadata", {})["labels"] = {_GROUP_LABEL: _name(owner)}
        for container in pod_template["spec"]["containers"]:
            if trainer is not None and _trains(job):
                container |= {name: trainer[name] for name in ("command", "args", "image") if name in trainer}
                if "torch" in policy:
                    container |= {
                        "env": _torch_env(owner, size),
                        "ports": [{"containerPort": 29500, "protocol": "TCP"}],
                    }
            if "mpi" in policy:
                _connect(job["name"], pod_template["spec"], container, policy["mpi"], owner)
    template = {"replicatedJobs": jobs, "suspend": owner["spec"]["suspend"]}
    return _child(owner, "jobset.x-k8s.io/v1alpha2", "JobSet") | {"spec": template}


def _name(owner: Object) -> str:
    name: str = owner["metadata"]["name"]
    return name


def _child(owner: Object, api_version: str, kind: str, suffix: str = "") -> Object:
    reference = {name: owner[name] for name in ("apiVersion", "kind")} | {
        name: owner["metadata"][name] for name in ("name", "uid")
    }
    metadata = {
        "name": f"{_name(owner)}{suffix}",
        "namespace": owner["metadata"]["namespace"],
        "ownerReferences": [reference | {"controller": True, "blockOwnerDeletion": True}],
    }
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}


def _trains(job: Object) -> bool:
    labels = (job["template"].get("metadata") or {}).get("labels") or {}
    return labels.get(_ANCESTOR) == "trainer"


def _size(job: Object, owner: Object, policy: Object) -> int:
    nodes = (owner["spec"].get("trainer") or {}).get("numNodes")
    is_counted = job["name"] == "node" if "mpi" in policy else _trains(job)
    size: int = nodes or policy.get("numNodes") or 1 if is_counted else 1
    return max(size - 1, 1) if "mpi" in policy and is_counted and policy["mpi"].get("runLauncherAsNode") else size


def _torch_env(owner: Object, size: int) -> list[Object]:
    values = {
        "PET_NNODES": str(size),
        "PET_NPROC_PER_NODE": "1",
        "PET_NODE_RANK": _RANK,
        "PET_MASTER_ADDR": f"{_name(owner)}-node-0-0.{_name(owner)}",
        "PET_MASTER_PORT": "29500",
    }
    return [{"name": name, "valueFrom" if value is _RANK else "value": value} for name, value in values.items()]


def _connect(job: str, pod_spec: Object, container: Object, policy: Object, owner: Object) -> None:
    """The keys in all pods, the hostfile and `mpirun`'s variables in the launcher."""
    keys = [("ssh-privatekey", "id_rsa", 0o640), ("ssh-publickey", "id_rsa.pub", 0o644)]
    items = [{"key": key, "path": path, "mode": mode} for key, path, mode in keys]
    items.append({"key": "ssh-publickey", "path": "authorized_keys", "mode": 0o644})
    secret = {"secretName": f"{_name(owner)}-mpi-ssh-auth", "defaultMode": 0o400, "items": items}
    pod_spec["volumes"] = [{"name": "mpi-ssh-auth", "secret": secret}]
    container["volumeMounts"] = [{"name": "mpi-ssh-auth", "mountPath": policy["sshAuthMountPath"]}]
    if job != "launcher":
        return
    items = [{"key": "hostfile", "path": "hostfile", "mode": 0o444}]
    config_map = {"name": f"{_name(owner)}-mpi-hostfile", "items": items}
    pod_spec["volumes"].append({"name": "mpi-hostfile", "configMap": config_map})
    container["volumeMounts"].append({"name": "mpi-hostfile", "mountPath": "/etc/mpi"})
    values = {
        "OMPI_MCA_orte_default_hostfile": "/etc/mpi/hostfile",
        "OMPI_MCA_orte_keep_fqdn_hostnames": "true",
        "OMPI_MCA_orte_set_default_slots": "1",
        "OMPI_MCA_plm_rsh_args": "-o ConnectionAttempts=10",
    }
    container["env"] = [{"name": name, "value": value} for name, value in values.items()]


def _ssh_keys(owner: Object) -> Object:
    pair = {name: base64.b64encode(b"a key").decode() for name in ("ssh-privatekey", "ssh-publickey")}
    secret = _child(owner, "v1", "Secret", "-mpi-ssh-auth")
    return secret | {"type": "kubernetes.io/ssh-auth", "immutable": True, "data": pair}


def _hostfile(owner: Object, spec: Object) -> Object:
    """Jobs in the order of the runtime, nodes before the launcher."""
    policy, name = spec["mlPolicy"], _name(owner)
    jobs = {job["name"]: _size(job, owner, policy) for job in spec["template"]["spec"]["replicatedJobs"]}
    hosts = [f"{name}-{job}-0-{index}.{name}" for job, size in jobs.items() for index in range(size)]
    content = "".join(f"{host} slots=1\n" for host in hosts)
    return _child(owner, "v1", "ConfigMap", "-mpi-hostfile") | {"data": {"hostfile": content}}


def _pod_group(owner: Object, spec: Object) -> Object:
    """All pods are members."""
    jobs = spec["template"]["spec"]["replicatedJobs"]
    members = sum(_size(job, owner, spec.get("mlPolicy") or {}) for job in jobs)
    timeout = spec["podGroupPolicy"]["coscheduling"].get("scheduleTimeoutSeconds", 60)
    group = _child(owner, "scheduling.x-k8s.io/v1alpha1", "PodGroup")
    return group | {"spec": {"minMember": members, "minResources": {}, "scheduleTimeoutSeconds": timeout}}
