"""ResourceQuotas (core/v1), and what the ResourceQuota admission plugin says about new pods.

Pods and what they request and limit are counted when a pod is created. Quotas for anything else are refused, and the
status does not follow the use, as the dev cluster has no quota controller. Kubernetes documentation, "Resource Quotas".
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from trainer.kube.field_errors import FieldError, forbidden, invalid
from trainer.kube.objects import Object, has_finished, name_of, namespace_of
from trainer.kube.quantity import Quantity
from trainer.kube.resource import PODS, RESOURCE_QUOTAS
from trainer.workloads.pod_requests import Amounts, pod_requests
from trainer_devcluster.apiserver.definitions.resource_definition import ResourceDefinition
from trainer_devcluster.apiserver.definitions.strategy import Strategy, WriteContext
from trainer_devcluster.apiserver.kinds.fields import all_containers, section, validate_quantity
from trainer_devcluster.apiserver.wire import answers

_COUNTS: Final = ("pods", "count/pods")
_SHORT: Final = ("cpu", "memory", "ephemeral-storage")
"""Resources whose requests may be limited by their plain names."""
_ONE: Final = Quantity.parse(1)


class ResourceQuotaStrategy(Strategy):
    """core/v1 ResourceQuota."""

    def prepare_for_create(self, obj: Object, context: WriteContext) -> None:
        """Start it with what is used now."""
        hard = section(obj, "spec").get("hard") or {}
        obj["status"] = {}
        if hard:
            used = _used(context, namespace_of(obj))
            obj["status"] = {"hard": dict(hard), "used": {name: str(used.get(name, Quantity())) for name in hard}}
        context.warn("v1 ResourceQuota is enforced when pods are created, but the dev cluster keeps no status.used")

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:  # noqa: ARG002 - the protocol's signature
        """Check the amounts, and that the dev cluster counts what they limit."""
        spec = obj.get("spec") or {}
        causes: list[FieldError] = []
        for name, amount in (spec.get("hard") or {}).items():
            path = f"spec.hard[{name}]"
            if not _is_counted(name):
                detail = (
                    "the dev cluster counts only pods, requests.*, limits.*, cpu, memory and ephemeral-storage: "
                    "leave it out, or use a real cluster"
                )
                causes.append(forbidden(path, detail))
            causes += validate_quantity(path, amount)
        causes += [
            forbidden(f"spec.{name}", "the dev cluster does not support it: leave it out, or use a real cluster")
            for name in ("scopes", "scopeSelector")
            if spec.get(name)
        ]
        return causes

    def validate_update(self, obj: Object, old: Object, context: WriteContext) -> list[FieldError]:
        """Check it; its scopes stay."""
        causes = self.validate(obj, context)
        if (obj.get("spec") or {}).get("scopes") != (old.get("spec") or {}).get("scopes"):
            causes.append(invalid("spec.scopes", (obj.get("spec") or {}).get("scopes"), "field is immutable"))
        return causes


def check_quota(pod: Object, context: WriteContext) -> None:
    """Refuse a new pod that its namespace has no room for.

    Raises:
        ApiError: 403, a quota would be exceeded, or the pod does not say what a quota limits.
    """
    quotas = [entry for entry in context.listed(RESOURCE_QUOTAS) if namespace_of(entry) == namespace_of(pod)]
    if not quotas:
        return
    used, wanted = _used(context, namespace_of(pod)), _of_pod(pod)
    for quota in quotas:
        hard = {name: Quantity.parse(amount) for name, amount in ((quota.get("spec") or {}).get("hard") or {}).items()}
        if unstated := _unstated(pod, hard):
            message = f"failed quota: {name_of(quota)}: must specify {unstated}"
            raise answers.forbidden(PODS, name_of(pod), message)
        exceeded = sorted(
            name
            for name, limit in hard.items()
            if name in wanted and (used.get(name, Quantity()) + wanted[name]).amount > limit.amount
        )
        if exceeded:
            message = (
                f"exceeded quota: {name_of(quota)}, requested: {_listed(wanted, exceeded)}, "
                f"used: {_listed(used, exceeded)}, limited: {_listed(hard, exceeded)}"
            )
            raise answers.forbidden(PODS, name_of(pod), message)


def _used(context: WriteContext, namespace: str) -> Amounts:
    total: Amounts = {}
    for pod in context.listed(PODS):
        if namespace_of(pod) == namespace and not has_finished(pod):
            for name, amount in _of_pod(pod).items():
                total[name] = total.get(name, Quantity()) + amount
    return total


def _of_pod(pod: Object) -> Amounts:
    """The usage of a pod, by the names that quotas have for it."""
    requests, limits = pod_requests(pod["spec"]), pod_requests(_with_limits_as_requests(pod["spec"]))
    amounts = dict.fromkeys(_COUNTS, _ONE)
    amounts |= {name: requests[name] for name in _SHORT if name in requests}
    amounts |= {f"requests.{name}": amount for name, amount in requests.items()}
    return amounts | {f"limits.{name}": amount for name, amount in limits.items()}


def _with_limits_as_requests(spec: Object) -> Object:
    def turned(containers: Iterable[Object]) -> list[Object]:
        return [
            {**entry, "resources": {"requests": (entry.get("resources") or {}).get("limits") or {}}}
            for entry in containers
        ]

    return {field: turned(spec.get(field) or ()) for field in ("containers", "initContainers")}


def _unstated(pod: Object, hard: Amounts) -> str:
    """The limited resources that containers do not state."""
    lacking: dict[str, list[str]] = {}
    for name in sorted(hard):
        field, dot, resource = name.partition(".")
        if name in _SHORT:
            field, resource = "requests", name
        elif not dot or resource not in _SHORT:
            continue
        for container in all_containers(pod["spec"]):
            if resource not in ((container.get("resources") or {}).get(field) or {}):
                lacking.setdefault(name, []).append(str(container.get("name")))
    return "; ".join(f"{name} for: {','.join(sorted(set(containers)))}" for name, containers in lacking.items())


def _is_counted(name: str) -> bool:
    return name in (*_COUNTS, *_SHORT) or (
        name.startswith(("requests.", "limits.")) and name != "requests.storage" and ".storageclass." not in name
    )


def _listed(amounts: Amounts, names: list[str]) -> str:
    return ",".join(f"{name}={amounts.get(name, Quantity())}" for name in names)


RESOURCE_QUOTA = ResourceDefinition(
    RESOURCE_QUOTAS,
    ResourceQuotaStrategy(),
    singular="resourcequota",
    short_names=("quota",),
    status_subresource=True,
    generation=False,
)
