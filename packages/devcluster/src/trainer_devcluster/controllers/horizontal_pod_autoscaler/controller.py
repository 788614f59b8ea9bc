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
from trainer.kube.events.recorder import EventKind, EventRecorder
from trainer.kube.manager.manager import Manager
from trainer.kube.objects import (
    Object,
    ObjectKey,
    annotations_of,
    is_being_deleted,
    namespace_of,
    set_condition,
    uid_of,
)
from trainer.kube.resource import HORIZONTAL_POD_AUTOSCALERS, PODS, Resource
from trainer.kube.selectors import LabelSelector
from trainer_devcluster.controllers.horizontal_pod_autoscaler.behavior import Recommendations, settle
from trainer_devcluster.controllers.horizontal_pod_autoscaler.metrics import MetricFailure, Proposal, Situation, propose

_SCALE = "scale"
_PERIOD = 15.0
"""Seconds between two evaluations of the metrics, as in Kubernetes."""


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

_NO_SELECTOR = "the HPA target's scale is missing a selector"
_IDLE = "scaling is disabled since the replica count of the target is zero"
ABLE_TO_SCALE, SCALING_ACTIVE, SCALING_LIMITED = "AbleToScale", "ScalingActive", "ScalingLimited"


class _Decision(NamedTuple):
    replicas: int
    reason: str = ""
    """Why the size changes, as the event tells it."""


class _GivenUpError(Exception):
    """Nothing more can be done this time; the draft says why."""


class HorizontalPodAutoscalerReconciler:
    """Looks at autoscalers when they change and every few seconds.

    What it remembers of recommendations and changes is lost with the process, as with Kubernetes.
    """

    def __init__(self, manager: Manager, targets: ScaleTargets) -> None:
        self._client = manager.client
        self._clock = manager.clock
        self._targets = targets
        self._autoscalers = manager.informer(HORIZONTAL_POD_AUTOSCALERS).lister
        self._pods = manager.informer(PODS).lister
        self._recorder = EventRecorder(manager.events, "horizontal-pod-autoscaler")
        self._histories: dict[str, Recommendations] = {}

    async def reconcile(self, key: ObjectKey) -> Result | None:
        """Scale, if it is time to. Raises `KubeError` for another try."""
        autoscaler = self._autoscalers.get(key)
        if autoscaler is None or is_being_deleted(autoscaler):
            present = {uid_of(each) for each in self._autoscalers.list()}
            self._histories = {uid: each for uid, each in self._histories.items() if uid in present}
            return None
        draft = AutoscalerStatus(autoscaler, timestamp(self._clock.now()))
        try:
            await self._scale(autoscaler, draft)
        except _GivenUpError as error:
            log.debug("could not scale", error=str(error))
        if draft.is_news:
            patch = {"metadata": {"uid": uid_of(autoscaler)}, "status": draft.status}
            try:
                await self._client.patch(
                    HORIZONTAL_POD_AUTOSCALERS, key.name, patch, key.namespace, subresource="status"
                )
            except NotFoundError:
                return None
        return Result(requeue_after=_PERIOD)

    async def _scale(self, autoscaler: Object, draft: AutoscalerStatus) -> None:
        spec, namespace = autoscaler["spec"], namespace_of(autoscaler)
        scale = await self._get_scale(autoscaler, draft)
        current = (scale.get("spec") or {}).get("replicas") or 0
        history = self._histories.setdefault(uid_of(autoscaler), Recommendations())
        history.begin(current, self._clock.monotonic())
        try:
            decision = self._decide(autoscaler, scale, current, history, draft)
        except _GivenUpError:
            draft.set_sizes(current, (autoscaler.get("status") or {}).get("desiredReplicas") or 0, rescaled=False)
            raise
        if decision.replicas == current:
            draft.set_sizes(current, current, rescaled=False)
            return
        size = f"New size: {decision.replicas}; reason: {decision.reason}"
        try:
            await self._targets.set(spec["scaleTargetRef"], namespace, decision.replicas)
        except KubeError as error:
            text = f"the HPA controller was unable to update the target scale: {error}"
            draft.set_condition(ABLE_TO_SCALE, "FailedUpdateScale", text, holds=False)
            draft.set_sizes(current, current, rescaled=False)
            self._record_event(autoscaler, "Warning", "FailedRescale", f"{size}; error: {error}")
            raise _GivenUpError(str(error)) from error
        text = f"the HPA controller was able to update the target scale to {decision.replicas}"
        draft.set_condition(ABLE_TO_SCALE, "SucceededRescale", text, holds=True)
        draft.set_sizes(current, decision.replicas, rescaled=True)
        self._record_event(autoscaler, "Normal", "SuccessfulRescale", size)
        log.info("scaled", target=spec["scaleTargetRef"]["name"], before=current, after=decision.replicas)

    async def _get_scale(self, autoscaler: Object, draft: AutoscalerStatus) -> Object:
        try:
            scale = await self._targets.get(autoscaler["spec"]["scaleTargetRef"], namespace_of(autoscaler))
        except KubeError as error:
            text = f"the HPA controller was unable to get the target's current scale: {error}"
            draft.set_condition(ABLE_TO_SCALE, "FailedGetScale", text, holds=False)
            self._record_event(autoscaler, "Warning", "FailedGetScale", str(error))
            raise _GivenUpError(str(error)) from error
        text = "the HPA controller was able to get the target's current scale"
        draft.set_condition(ABLE_TO_SCALE, "SucceededGetScale", text, holds=True)
        return scale

    def _decide(
        self, autoscaler: Object, scale: Object, current: int, history: Recommendations, draft: AutoscalerStatus
    ) -> _Decision:
        spec = autoscaler["spec"]
        most, least = spec["maxReplicas"], spec.get("minReplicas", 1)
        if current == 0 and least:
            draft.set_condition(SCALING_ACTIVE, "ScalingDisabled", _IDLE, holds=False)
            return _Decision(0)
        if current > most:
            return _Decision(most, "Current number of replicas above Spec.MaxReplicas")
        if current < least:
            return _Decision(least, "Current number of replicas below Spec.MinReplicas")
        proposals = self._propose(autoscaler, scale, current, draft)
        draft.set_metrics(proposals)
        best = max(proposals, key=lambda proposal: proposal.replicas)
        verdict = settle(spec, history, current, best.replicas, self._clock.monotonic())
        draft.set_condition(ABLE_TO_SCALE, *verdict.able_to_scale, holds=True)
        draft.set_condition(SCALING_LIMITED, *verdict.limited, holds=verdict.is_limited)
        reason = f"{best.name} above target" if best.replicas > current else "All metrics below target"
        return _Decision(verdict.replicas, reason)

    def _propose(self, autoscaler: Object, scale: Object, current: int, draft: AutoscalerStatus) -> list[Proposal]:
        situation = Situation(autoscaler, self._select(autoscaler, scale, draft), current)
        proposals: list[Proposal] = []
        failures: list[MetricFailure] = []
        metrics = autoscaler["spec"]["metrics"]
        for metric in metrics:
            try:
                proposals.append(propose(metric, situation))
            except MetricFailure as failure:
                failures.append(failure)
                self._record_event(autoscaler, "Warning", failure.reason, str(failure))
        # A metric that is not known might ask for more: nothing is taken away then.
        if failures and all(proposal.replicas < current for proposal in proposals):
            first = failures[0]
            text = f"the HPA was unable to compute the replica count: {first}"
            draft.set_condition(SCALING_ACTIVE, first.reason, text, holds=False)
            count = f"{len(failures)} invalid out of {len(metrics)}"
            message = f"invalid metrics ({count}), first error is: {first}"
            self._record_event(autoscaler, "Warning", "FailedComputeMetricsReplicas", message)
            raise _GivenUpError(message)
        best = max(proposals, key=lambda proposal: proposal.replicas)
        text = f"the HPA was able to successfully calculate a replica count from {best.name}"
        draft.set_condition(SCALING_ACTIVE, "ValidMetricFound", text, holds=True)
        return proposals

    def _select(self, autoscaler: Object, scale: Object, draft: AutoscalerStatus) -> list[Object]:
        """The pods of the target."""
        text = (scale.get("status") or {}).get("selector") or ""
        if not text:
            draft.set_condition(SCALING_ACTIVE, "InvalidSelector", _NO_SELECTOR, holds=False)
            self._record_event(autoscaler, "Warning", "SelectorRequired", _NO_SELECTOR)
            raise _GivenUpError(_NO_SELECTOR)
        return self._pods.list(namespace_of(autoscaler), LabelSelector.parse(text))

    def _record_event(self, autoscaler: Object, kind: EventKind, reason: str, message: str) -> None:
        self._recorder.record(autoscaler, type=kind, reason=reason, message=message)


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


class AutoscalerStatus:
    """The new status of an autoscaler.

    Args:
        autoscaler: whose status it is.
        now: the time, for what changes.
    """

    def __init__(self, autoscaler: Object, now: str) -> None:
        self._before: Object = autoscaler.get("status") or {}
        self._now = now
        self._fields: Object = {}
        self._conditions: list[Object] = self._before.get("conditions") or []

    def set_condition(self, kind: str, reason: str, message: str, *, holds: bool) -> None:
        """Say whether something holds, and why."""
        condition = {"type": kind, "status": "True" if holds else "False", "reason": reason, "message": message}
        self._conditions = set_condition(self._conditions, condition, self._now)

    def set_sizes(self, current: int, desired: int, *, rescaled: bool) -> None:
        """Say how many replicas there are and shall be."""
        self._fields |= {"currentReplicas": current, "desiredReplicas": desired}
        if rescaled:
            self._fields["lastScaleTime"] = self._now

    def set_metrics(self, proposals: list[Proposal]) -> None:
        """Say what was measured."""
        self._fields["currentMetrics"] = [proposal.status for proposal in proposals] or None

    @property
    def status(self) -> Object:
        """The whole status."""
        merged = self._before | self._fields | {"conditions": self._conditions}
        # What Kubernetes requires even of an autoscaler that has never got to know its target.
        filled = {"desiredReplicas": 0} | merged
        return {name: value for name, value in filled.items() if value is not None}

    @property
    def is_news(self) -> bool:
        """Whether it differs from what is stored."""
        return self.status != self._before
