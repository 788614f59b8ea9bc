"""What would hold a TrainJob that is not submitted yet, by what it asks for and what the cluster has."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from trainer.explain.cause import Cause, Explanation, Subject, Unread, Verdict, describe, kubectl, one_line, trainer
from trainer.explain.node_room import capacity_of, misfits
from trainer.explain.remedies import refusal_of
from trainer.kube.objects import name_of
from trainer.kube.quantity import Quantity
from trainer.workloads.pod_requests import pod_requests, stated_requests

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from trainer.kube.objects import Object
    from trainer.workloads.pod_requests import Amounts

_NOTHING = Quantity()
_PLAIN_NAMES = ("cpu", "memory", "ephemeral-storage")
"""Resources whose requests a quota may also count by their plain name."""


@dataclass(frozen=True, slots=True)
class PodPlan:
    """Pods that would be made alike."""

    replicated_job: str
    count: int
    spec: Object
    """The spec of each pod."""
    metadata: Object = field(default_factory=dict)
    """Labels and annotations of each pod. Default: none."""


@dataclass(frozen=True, slots=True)
class DryRunRefusal:
    """What the API server answers to an object by dry run."""

    about: Subject
    message: str


@dataclass(frozen=True, slots=True)
class Inventory:
    """What the cluster has; a kind that is None could not be read."""

    nodes: Sequence[Object] | None = None
    quotas: Sequence[Object] = ()
    limit_ranges: Sequence[Object] = ()
    runtime_classes: Mapping[str, Object] | None = None
    """The RuntimeClasses that pods ask for, by name."""
    refusals: Sequence[DryRunRefusal] = ()
    """What the API server refused in dry runs."""
    missing: Sequence[tuple[Subject, str]] = ()
    """Objects that pods name and that are not there, each with the field that names it."""
    unread: tuple[Unread, ...] = ()


def check_submission(namespace: str, plans: Sequence[PodPlan], there: Inventory) -> Explanation:
    """What would hold it; pure. Refused is what the cluster would not even store."""
    refused = [_refused(namespace, each) for each in there.refusals]
    causes = [*refused, *_missing(there)]
    if there.nodes is not None:
        causes += _nodes(plans, there.nodes, there)
    causes += _quotas(namespace, plans, there)
    is_refused = any(each.about.kind == "TrainJob" for each in refused)
    verdict = Verdict.FAILED if is_refused else Verdict.WAITING if causes else Verdict.RUNNING
    return Explanation(verdict, tuple(causes), unread=there.unread)


def _refused(namespace: str, refusal: DryRunRefusal) -> Cause:
    advice = refusal_of(refusal.message, namespace)
    remedy = advice.remedy if advice else "change what the message names"
    command = advice.command if advice else ""
    return Cause(
        "Refused",
        refusal.about,
        one_line(f"the cluster refuses {refusal.about.kind} {refusal.about.name}: {refusal.message}"),
        remedy,
        command or kubectl("auth", "can-i", "--list", namespace=namespace),
    )


def _missing(there: Inventory) -> Iterator[Cause]:
    for about, path in there.missing:
        message = f"{about} does not exist, which {path} names"
        command = kubectl("get", about.kind.lower(), namespace=about.namespace)
        if about.kind in {TRAINING_RUNTIMES.kind, CLUSTER_TRAINING_RUNTIMES.kind}:
            command = trainer("runtimes", namespace=about.namespace)
        yield Cause("Missing", about, message, "create it, or name one that exists", command, fields=(path,))


def _nodes(plans: Sequence[PodPlan], nodes: Sequence[Object], there: Inventory) -> Iterator[Cause]:
    command = kubectl("describe", "nodes")
    if not nodes:
        yield Cause("NoNodes", Subject("Node", ""), "the cluster has no nodes", "have nodes added", command)
        return
    for plan in plans:
        about = Subject("ReplicatedJob", plan.replicated_job)
        runtime_class = (there.runtime_classes or {}).get(plan.spec.get("runtimeClassName") or "")
        found = list(misfits(plan.spec, nodes, limit_ranges=there.limit_ranges, runtime_class=runtime_class))
        for misfit in found:
            yield Cause("Unschedulable", about, one_line(misfit.text), one_line(misfit.remedy), command)
        if found:
            continue
        try:
            requests = pod_requests(plan.spec, limit_ranges=there.limit_ranges, runtime_class=runtime_class)
        except ValueError:
            continue
        yield from _room(plan, nodes, requests)


def _room(plan: PodPlan, nodes: Sequence[Object], requests: Amounts) -> Iterator[Cause]:
    """Fewer pods fit than there would be, even if all nodes were empty."""
    if not any(amount.amount > 0 for amount in requests.values()):
        return
    room = sum(capacity_of(plan.spec, node, requests) for node in nodes)
    if room < plan.count:
        message = f"{plan.count} pods of {plan.replicated_job} would be made, and the nodes, if empty, take {room}"
        remedy = f"ask for at most {room} nodes, or for less on each" if room else "ask for less on each node"
        about = Subject("ReplicatedJob", plan.replicated_job)
        yield Cause("Unschedulable", about, message, remedy, kubectl("describe", "nodes"))


def _quotas(namespace: str, plans: Sequence[PodPlan], there: Inventory) -> Iterator[Cause]:
    """Quotas that do not have what all pods together would take."""
    try:
        wanted = _totals(plans, there)
    except ValueError:
        return
    for quota in there.quotas:
        spec, status = quota.get("spec") or {}, quota.get("status") or {}
        if spec.get("scopes") or spec.get("scopeSelector"):
            continue
        hard, used = status.get("hard") or spec.get("hard") or {}, status.get("used") or {}
        lacking = [text for name, limit in hard.items() if (text := _lack(name, limit, used.get(name), wanted))]
        if lacking:
            about = Subject("ResourceQuota", name_of(quota), namespace)
            message = one_line(f"the quota {name_of(quota)} has too little left: {'; '.join(lacking)}")
            remedy = "wait until others have ended, ask for less, or have the quota raised"
            yield Cause("QuotaExceeded", about, message, remedy, describe(about))


def _lack(name: str, limit: object, used: object, wanted: Amounts) -> str:
    asked = wanted.get(name, _NOTHING)
    try:
        most, taken = Quantity.parse(limit), Quantity.parse(used or 0)
    except ValueError:
        return ""
    if not asked.amount or taken.amount + asked.amount <= most.amount:
        return ""
    return f"{name}: {asked} asked for, {taken} of {most} used"


def _totals(plans: Sequence[PodPlan], there: Inventory) -> Amounts:
    """What quotas count of all pods together, by their names."""
    total: Amounts = {}
    for plan in plans:
        each: Amounts = {"pods": Quantity.parse(1), "count/pods": Quantity.parse(1)}
        for name, amount in pod_requests(plan.spec, limit_ranges=there.limit_ranges).items():
            each[f"requests.{name}"] = amount
            if name in _PLAIN_NAMES:
                each[name] = amount
        for name, amount in stated_requests(_limits(plan.spec)).items():
            each[f"limits.{name}"] = amount
        total |= {name: total.get(name, _NOTHING) + amount * plan.count for name, amount in each.items()}
    return total


def _limits(spec: Object) -> Object:
    """The spec with the limits of its containers as requests."""

    def swapped(container: Object) -> Object:
        return container | {"resources": {"requests": (container.get("resources") or {}).get("limits")}}

    lists = {kind: [swapped(each) for each in spec.get(kind) or []] for kind in ("containers", "initContainers")}
    return spec | lists | {"resources": None}
