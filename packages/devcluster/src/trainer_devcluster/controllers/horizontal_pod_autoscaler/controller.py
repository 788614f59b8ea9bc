"""The autoscaler: keeps the number of replicas of a target where its metrics want it."""

from __future__ import annotations

from typing import NamedTuple

import structlog

from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.client import Client, RawClient
from trainer.kube.clock import timestamp
from trainer.kube.controller.controller import Controller
from trainer.kube.controller.reconcile import Result
from trainer.kube.errors import KubeError, NotFoundError
from trainer.kube.events.recorder import EventRecorder
from trainer.kube.manager.manager import Manager
from trainer.kube.objects import (
    Object,
    ObjectKey,
    annotations_of,
    is_being_deleted,
    key_of,
    namespace_of,
    set_condition,
    uid_of,
)
from trainer.kube.resource import HORIZONTAL_POD_AUTOSCALERS, PODS, Resource
from trainer.kube.selectors import LabelSelector
from trainer_devcluster.controllers.horizontal_pod_autoscaler.metrics import MetricFailure, Proposal, Situation, propose

_SCALE = "scale"
_PERIOD = 15.0
"""Seconds between two evaluations of the metrics, as in Kubernetes."""
_DOWN_WINDOW = 300.0
"""Seconds in which no recommendation may have been higher before an autoscaler scales down."""
_MOST_PODS = 4
"""It adds so many pods at a look, or as many as there were, whichever is more; it removes any number."""


class ScaleTargets:
    """Reads and writes Scales, by the kind that `scaleTargetRef` names."""

    def __init__(self, client: Client, raw_client: RawClient) -> None:
        self._client = client
        self._raw_client = raw_client
        self._resources: dict[tuple[str, str], Resource] = {}

    async def get(self, reference: Object, namespace: str) -> Object:
        """The Scale of the target.

        Raises:
            KubeError: there is no such kind with a scale subresource, no such object, or the server does not answer.
        """
        resource = await self._resource(reference)
        return await self._client.get(resource, reference["name"], namespace, subresource=_SCALE)

    async def set(self, reference: Object, namespace: str, replicas: int) -> None:
        """Change the number of replicas. Raises `KubeError`."""
        resource = await self._resource(reference)
        body = {"spec": {"replicas": replicas}}
        await self._client.patch(resource, reference["name"], body, namespace, subresource=_SCALE)

    async def _resource(self, reference: Object) -> Resource:
        api_version, kind = str(reference.get("apiVersion") or ""), str(reference.get("kind") or "")
        if (api_version, kind) not in self._resources:
            self._resources[api_version, kind] = await self._discover(api_version, kind)
        return self._resources[api_version, kind]

    async def _discover(self, api_version: str, kind: str) -> Resource:
        group, _, version = api_version.rpartition("/")
        prefix = "/apis" if group else "/api"
        served = (await self._raw_client.request("GET", f"{prefix}/{api_version}")).get("resources") or []
        names = {entry["name"] for entry in served}
        for entry in served:
            if entry["kind"] == kind and "/" not in entry["name"] and f"{entry['name']}/{_SCALE}" in names:
                return Resource(group, version, entry["name"], kind, entry["namespaced"])
        raise KubeError(f"no matches for kind {kind!r} with a scale subresource in {api_version!r}")


log = structlog.get_logger(__name__)

_IDLE = "scaling is disabled since the replica count of the target is zero"
ABLE_TO_SCALE, SCALING_ACTIVE = "AbleToScale", "ScalingActive"


class _NotScaledError(Exception):
    """Nothing more can be done this time; with the type and the reason of the condition that says so."""

    def __init__(self, condition: str, reason: str, message: str) -> None:
        super().__init__(message)
        self.condition = condition
        self.reason = reason


class _Decision(NamedTuple):
    replicas: int
    reason: str
    """Why the size changes, as the event tells it."""
    metrics: list[Proposal]


class HorizontalPodAutoscalerReconciler:
    """Looks at autoscalers when they change and every few seconds, at the default pace of Kubernetes.

    What it remembers of recommendations is lost with the process, as with Kubernetes.
    """

    def __init__(self, manager: Manager, targets: ScaleTargets) -> None:
        self._client = manager.client
        self._clock = manager.clock
        self._targets = targets
        self._autoscalers = manager.informer(HORIZONTAL_POD_AUTOSCALERS).lister
        self._pods = manager.informer(PODS).lister
        self._recorder = EventRecorder(manager.events, "horizontal-pod-autoscaler")
        self._recommended: dict[ObjectKey, list[tuple[float, int]]] = {}

    async def reconcile(self, key: ObjectKey) -> Result | None:
        """Scale, if it is time to. Raises `KubeError` for another try."""
        autoscaler = self._autoscalers.get(key)
        if autoscaler is None or is_being_deleted(autoscaler):
            self._recommended.pop(key, None)
            return None
        before, now = autoscaler.get("status") or {}, timestamp(self._clock.now())
        status: Object = {"desiredReplicas": 0} | before
        conditions: list[Object] = before.get("conditions") or []
        try:
            fields, news = await self._scale(autoscaler, now)
            status |= fields
        except _NotScaledError as error:
            log.debug("could not scale", error=str(error))
            self._recorder.record(autoscaler, type="Warning", reason=error.reason, message=str(error))
            news = [_condition(error.condition, error.reason, str(error), holds=False)]
        for condition in news:
            conditions = set_condition(conditions, condition, now)
        status["conditions"] = conditions
        if status != before:
            patch = {"metadata": {"uid": uid_of(autoscaler)}, "status": status}
            try:
                await self._client.patch(
                    HORIZONTAL_POD_AUTOSCALERS, key.name, patch, key.namespace, subresource="status"
                )
            except NotFoundError:
                return None
        return Result(requeue_after=_PERIOD)

    async def _scale(self, autoscaler: Object, now: str) -> tuple[Object, list[Object]]:
        """Give the target its size; returns fields and conditions of the status."""
        reference, namespace = autoscaler["spec"]["scaleTargetRef"], namespace_of(autoscaler)
        try:
            scale = await self._targets.get(reference, namespace)
        except KubeError as error:
            text = f"the HPA controller was unable to get the target's current scale: {error}"
            raise _NotScaledError(ABLE_TO_SCALE, "FailedGetScale", text) from error
        current = (scale.get("spec") or {}).get("replicas") or 0
        fields: Object = {"currentReplicas": current, "desiredReplicas": current}
        if current == 0 and autoscaler["spec"].get("minReplicas", 1):
            return fields, [_condition(SCALING_ACTIVE, "ScalingDisabled", _IDLE, holds=False)]
        decision = self._decide(autoscaler, scale, current)
        able = ("ReadyForNewScale", "recommended size matches current size")
        if decision.replicas != current:
            try:
                await self._targets.set(reference, namespace, decision.replicas)
            except KubeError as error:
                text = f"the HPA controller was unable to update the target scale: {error}"
                raise _NotScaledError(ABLE_TO_SCALE, "FailedUpdateScale", text) from error
            size = f"New size: {decision.replicas}; reason: {decision.reason}"
            self._recorder.record(autoscaler, type="Normal", reason="SuccessfulRescale", message=size)
            log.info("scaled", target=reference["name"], before=current, after=decision.replicas)
            fields |= {"desiredReplicas": decision.replicas, "lastScaleTime": now}
            able = ("SucceededRescale", f"the HPA controller has set the target scale to {decision.replicas}")
        conditions = [_condition(ABLE_TO_SCALE, *able, holds=True)]
        if decision.metrics:
            fields["currentMetrics"] = [proposal.status for proposal in decision.metrics]
            text = "the HPA was able to successfully calculate a replica count"
            conditions.append(_condition(SCALING_ACTIVE, "ValidMetricFound", text, holds=True))
        return fields, conditions

    def _decide(self, autoscaler: Object, scale: Object, current: int) -> _Decision:
        spec = autoscaler["spec"]
        most, least = spec["maxReplicas"], spec.get("minReplicas", 1)
        if current > most:
            return _Decision(most, "Current number of replicas above Spec.MaxReplicas", [])
        if current < least:
            return _Decision(least, "Current number of replicas below Spec.MinReplicas", [])
        proposals = self._propose(autoscaler, scale, current)
        best = max(proposals, key=lambda proposal: proposal.replicas)
        highest = self._highest(autoscaler, current, best.replicas)
        wanted = min(max(current, best.replicas), highest)
        replicas = max(least, min(wanted, most, max(current + _MOST_PODS, current * 2)))
        reason = f"{best.name} above target" if best.replicas > current else "All metrics below target"
        return _Decision(replicas, reason, proposals)

    def _highest(self, autoscaler: Object, current: int, wanted: int) -> int:
        """The highest of the recommendations that still count, this one included; the size at the first look is one."""
        now, key = self._clock.monotonic(), key_of(autoscaler)
        recent = [each for each in self._recommended.get(key, [(now, current)]) if each[0] > now - _DOWN_WINDOW]
        self._recommended[key] = [*recent, (now, wanted)]
        return max(replicas for _, replicas in self._recommended[key])

    def _propose(self, autoscaler: Object, scale: Object, current: int) -> list[Proposal]:
        selector = (scale.get("status") or {}).get("selector") or ""
        if not selector:
            text = "the HPA target's scale is missing a selector"
            raise _NotScaledError(SCALING_ACTIVE, "InvalidSelector", text)
        pods = self._pods.list(namespace_of(autoscaler), LabelSelector.parse(selector))
        proposals: list[Proposal] = []
        failures: list[MetricFailure] = []
        for metric in autoscaler["spec"]["metrics"]:
            try:
                proposals.append(propose(metric, Situation(autoscaler, pods, current)))
            except MetricFailure as failure:
                failures.append(failure)
        # A metric that is not known might ask for more: nothing is taken away then.
        if failures and all(proposal.replicas < current for proposal in proposals):
            text = f"the HPA was unable to compute the replica count: {failures[0]}"
            raise _NotScaledError(SCALING_ACTIVE, failures[0].reason, text)
        return proposals


def _condition(kind: str, reason: str, message: str, *, holds: bool) -> Object:
    return {"type": kind, "status": "True" if holds else "False", "reason": reason, "message": message}


def register(manager: Manager, raw_client: RawClient) -> None:
    """Register the autoscaler with the manager."""
    reconciler = HorizontalPodAutoscalerReconciler(manager, ScaleTargets(manager.client, raw_client))
    controller = Controller("horizontal-pod-autoscaler", manager, reconciler.reconcile)
    controller.reconciles(HORIZONTAL_POD_AUTOSCALERS, predicate=_is_spec_changed)


def _is_spec_changed(old: CachedObject | None, new: CachedObject | None) -> bool:
    """Whether more has changed than the status."""
    if old is None or new is None:
        return True
    return bool(old["spec"] != new["spec"] or annotations_of(old) != annotations_of(new))
