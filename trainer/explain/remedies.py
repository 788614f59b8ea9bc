"""What to do about the reasons of pods and Jobs, and about refusals of the API server, by their messages.

The messages are those of kubelet, scheduler and admission plugins of Kubernetes 1.36.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from trainer.api.progress import REPORTER_CONTAINER
from trainer.explain.cause import kubectl
from trainer.workloads.containers import TRAINER_CONTAINERS


@dataclass(frozen=True, slots=True)
class Advice:
    """A remedy, and the command that shows more."""

    remedy: str
    command: str = ""
    """Empty: that of the object."""


_NAME = r"([a-z0-9][a-z0-9.-]{0,252})"
"""The name of an object. Whoever writes an event writes what a message names, and commands are pasted into shells."""

_CONTAINER = "[a-z0-9-]{1,63}"
_UNSTATED = re.compile(rf"([\w./-]{{1,100}}) for: ({_CONTAINER}(?:,{_CONTAINER}){{0,99}})")
_INSECURE = re.compile(
    r"containers? ([a-z0-9\", -]{1,1000}) must (?:not )?(?:set|include) securityContext\.([\w.]{1,60})"
)
_OF_TRAINER = frozenset({*TRAINER_CONTAINERS, "flux-installer", REPORTER_CONTAINER})
"""Containers that take their resources from resourcesPerNode: those that train, and what is put beside them."""
_NAMED = 5
"""Containers that a remedy names."""


def _unstated(facts: str) -> str:
    """The resources that a quota misses, with the field of each container."""
    lacking: dict[str, list[str]] = {}
    for resource, names in _UNSTATED.findall(facts):
        for name in names.split(","):
            lacking.setdefault(name, []).append(resource)
    if not lacking:
        return "all resources in resourcesPerNode"
    return "; ".join(
        f"{', '.join(resources)} in resourcesPerNode, or in the runtime for pods that are no nodes (container {name})"
        if name in _OF_TRAINER
        else f"{', '.join(resources)} in resources of the container {name} in the runtime"
        for name, resources in [*lacking.items()][:_NAMED]
    )


def _insecure(facts: str) -> str:
    """The fields that Pod Security asks for, by container."""
    lacking: dict[str, list[str]] = {}
    for names, field in _INSECURE.findall(facts):
        for name in re.findall(f'"({_CONTAINER})"', names):
            lacking.setdefault(name, []).append(field)
    found = [f"container {name}: {', '.join(fields)}" for name, fields in [*lacking.items()][:_NAMED]]
    return f" ({'; '.join(found)})" if found else ""


_REFUSALS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], str], Advice]], ...] = (
    (
        re.compile(rf"exceeded quota: {_NAME}"),
        lambda found, namespace: Advice(
            f"wait until others have ended, ask for less, or have the ResourceQuota {found[1]} raised",
            kubectl("describe", "resourcequota", found[1], namespace=namespace),
        ),
    ),
    (
        re.compile(rf"failed quota: {_NAME}(?:: must specify ([^\n]{{1,4000}}))?"),
        lambda found, namespace: Advice(
            f"state {_unstated(found[2] or '')}, which the ResourceQuota {found[1]} counts",
            kubectl("describe", "resourcequota", found[1], namespace=namespace),
        ),
    ),
    (
        re.compile(rf'serviceaccount "{_NAME}" not found'),
        lambda found, namespace: Advice(
            f"create it ({kubectl('create', 'serviceaccount', found[1], namespace=namespace)}), or name another",
            kubectl("get", "serviceaccounts", namespace=namespace),
        ),
    ),
    (
        re.compile(r'violates PodSecurity "([\w:.-]{1,100})"([^\n]{0,4000})'),
        lambda found, namespace: Advice(
            f"set the securityContext that {found[1]} asks for{_insecure(found[2])}, in the runtime or by "
            "spec.podSpecOverrides, or have the namespace relabelled",
            kubectl("get", "namespace", namespace, "--show-labels"),
        ),
    ),
    (
        # JobSet takes a claim that exists only if it is, to the field, the one of its template.
        re.compile(rf"spec does not match existing PVC {_NAME} in namespace"),
        lambda found, namespace: Advice(
            f"take another name, since the claim {found[1]} of an earlier TrainJob of this name was kept with what it "
            f"holds, or delete the claim ({kubectl('delete', 'pvc', found[1], namespace=namespace)})",
            kubectl("describe", "pvc", found[1], namespace=namespace),
        ),
    ),
    (
        re.compile(r'admission webhook "([^"]+)" denied the request'),
        lambda found, _namespace: Advice(
            f"change what the policy behind {found[1]} refuses, or ask its owner",
            kubectl("get", "validatingwebhookconfigurations,mutatingwebhookconfigurations"),
        ),
    ),
    (
        re.compile(r'failed calling webhook "([^"]+)"'),
        lambda found, _namespace: Advice(
            f"have the server of the webhook {found[1]} repaired: until then the cluster refuses these objects",
            kubectl("get", "validatingwebhookconfigurations,mutatingwebhookconfigurations"),
        ),
    ),
    (
        re.compile(r"no PriorityClass with name (\S+) was found"),
        lambda _found, _namespace: Advice(
            "name a PriorityClass that exists, or have this one created", kubectl("get", "priorityclasses")
        ),
    ),
    (
        re.compile(r'(?:RuntimeClass|runtimeclass(?:es\.\S+)?) "?([^" ]+)"? not found'),
        lambda _found, _namespace: Advice(
            "name a RuntimeClass that exists, or have this one created", kubectl("get", "runtimeclasses")
        ),
    ),
    (
        re.compile(r"(?:maximum|minimum) \S+ (?:usage|limit to request ratio)? ?per (?:Container|Pod)"),
        lambda _found, namespace: Advice(
            "ask for what the LimitRange of the namespace allows",
            kubectl("describe", "limitrange", namespace=namespace),
        ),
    ),
)


def refusal_of(message: str, namespace: str) -> Advice | None:
    """What to do about a refusal of the API server; None for one that is unknown."""
    for pattern, advice in _REFUSALS:
        found = pattern.search(message)
        if found is not None:
            return advice(found, namespace)
    return None


_REMEDIES = {
    "ImagePullBackOff": "correct the name of the image, or give the nodes credentials for it (imagePullSecrets in the "
    "runtime or on the ServiceAccount)",
    "InvalidImageName": "correct the name of the image",
    "ErrImageNeverPull": "load the image onto the nodes, or let imagePullPolicy pull it",
    "CreateContainerConfigError": "create the Secret or ConfigMap, or its key, in the namespace of the TrainJob: the "
    "pod starts then",
    "CreateContainerError": "correct what the container runtime names; most often it is the command or a mount",
    "RunContainerError": "correct what the container runtime names; most often it is the command or a mount",
    "FailedMount": "create the volume's Secret, ConfigMap or claim in the namespace of the TrainJob: the pod "
    "starts then",
    "FailedAttachVolume": "wait until the node that has the volume lets it go, or take a volume for many nodes "
    "(ReadWriteMany)",
    "FailedCreatePodSandBox": "have the network plugin or the container runtime of the node checked",
    "ProvisioningFailed": "name a StorageClass that exists and has a provisioner",
    "FailedBinding": "create a volume that fits the claim, or name a StorageClass in it",
    "ExternalProvisioning": "wait for the provisioner, or have it checked if it does not run",
    "NoPodGroup": "see the events of the TrainJob: the manager makes the PodGroup, and makes it again",
    "GangNotScheduled": "wait for room for all of them at once, or ask for fewer nodes or less on each",
    "GangIncomplete": "see why the other pods are not there: their Job cannot make them, or is not done with it",
    "NoScheduler": "install the scheduler of this name, or name another one in schedulerName of the runtime, or in "
    "gangSchedulerName of the manager",
    "SchedulingGated": "whoever has set the scheduling gate removes it, such as a queue when it admits the pods",
    "Unschedulable": "wait for room, or ask for less",
    "StoppingPods": "wait until the pods have ended; one that stays is on a node that does not answer",
    "SuspendingPods": "wait until the pods have ended; one that stays is on a node that does not answer",
    "NodeNotReady": "wait until the node is back; once it is known to be shut down, have it taken out of service (by "
    "the taint node.kubernetes.io/out-of-service)",
    "RestartingJobSet": "see why the last attempt failed; it starts again by itself until maxRestarts",
    "RestartingPods": "see why the pods failed; they start again by themselves until backoffLimit",
}
_DEFAULT = "correct what the message names; it goes on by itself then"


def remedy_of(reason: str) -> str:
    """What to do about a reason of a pod or Job."""
    return _REMEDIES.get(reason, _DEFAULT)
