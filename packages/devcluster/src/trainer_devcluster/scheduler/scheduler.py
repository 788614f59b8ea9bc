"""The scheduler: binds pods to the only node, and reports to the others why they wait."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Final

import anyio
import structlog

from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.client import DeleteOptions
from trainer.kube.controller.controller import Controller
from trainer.kube.controller.sources import Availability
from trainer.kube.errors import ConflictError, KubeError, NotFoundError
from trainer.kube.events.recorder import EventRecorder
from trainer.kube.manager.manager import Manager
from trainer.kube.objects import Object, ObjectKey
from trainer.kube.resource import NODES, PODS
from trainer.workloads import DEFAULT_SCHEDULER
from trainer_devcluster.feature_gates import DEFAULT_FEATURE_GATES, FeatureGates
from trainer_devcluster.scheduler import texts
from trainer_devcluster.scheduler.candidate import (
    COSCHEDULING,
    KNOWN_SCHEDULERS,
    KUBERNETES,
    VOLCANO,
    Candidate,
    is_waiting,
    takes_room,
)
from trainer_devcluster.scheduler.node_fit import Room
from trainer_devcluster.scheduler.placement import Placement
from trainer_devcluster.scheduler.pod_groups import PodGroupController
from trainer_devcluster.scheduler.texts import Verdicts

log = structlog.get_logger(__name__)

_ROUND: Final = ObjectKey("", "round")
"""What every change asks for: who gets a node depends on all who want it."""

_INDEX = "scheduling"
_WAITING, _PLACED = "waiting", "placed"
_CONCURRENT_WRITES = 16
_FEW_CANDIDATES = 100
_GATED = "Scheduling is blocked due to non-empty scheduling gates"


class Scheduler:
    """Looks at all pods that have no node whenever something changes that may help one of them.

    Constructing it registers it with the manager. It schedules pods of kube-scheduler and of the gang schedulers, as
    `spec.schedulerName` says; others wait, and their condition says so.
    """

    def __init__(self, manager: Manager, node_name: str, gates: FeatureGates = DEFAULT_FEATURE_GATES) -> None:
        schedulers = (COSCHEDULING, VOLCANO, *((KUBERNETES,) if gates.gang_scheduling else ()))
        self._preempts = gates.workload_aware_preemption
        self._forms_gangs = {scheduler.name for scheduler in schedulers}
        self._client = manager.client
        self._node = ObjectKey("", node_name)
        pods = manager.informer(PODS)
        pods.add_index(_INDEX, self._stage)
        self._pods = pods.lister
        self._nodes = manager.informer(NODES).lister
        self._assumed: dict[ObjectKey, Candidate] = {}
        self._groups = PodGroupController(manager, schedulers, self._candidate, self._assumed)
        self._recorders = {name: EventRecorder(manager.events, name) for name in KNOWN_SCHEDULERS}
        self._verdicts = Verdicts(self._client, manager.clock, self._pods)
        self._candidates: dict[ObjectKey, tuple[str, Candidate]] = {}
        self._most_candidates = _FEW_CANDIDATES
        controller = Controller("scheduler", manager, self.reconcile)
        controller.watches(PODS, _round, predicate=_matters).watches(NODES, _round)
        for scheduler in schedulers:
            controller.watches(scheduler.pod_groups, _round, optional=True)
            informer = manager.informer(scheduler.pod_groups, optional=True)
            controller.watches_source(Availability(informer, lambda: [_ROUND]))

    async def reconcile(self, _key: ObjectKey) -> None:
        """Place what can be placed. Raises `KubeError` for another try."""
        placed, waiting = self._placed(), self._waiting()
        gated = [candidate for candidate in waiting if candidate.is_gated]
        waiting = [candidate for candidate in waiting if not candidate.is_gated]
        strangers = [candidate for candidate in waiting if candidate.scheduler not in KNOWN_SCHEDULERS]
        held = {candidate: texts.unknown_scheduler(candidate, KNOWN_SCHEDULERS) for candidate in strangers}
        ours = [candidate for candidate in waiting if candidate.scheduler in KNOWN_SCHEDULERS]
        node = self._nodes.get(self._node)
        if node is None:
            await self._carry_out(held | dict.fromkeys(ours, texts.NO_NODES), gated)
            return
        placement = Placement(Room(node, placed), self._groups.state, self._preempts)
        placement.place(ours)
        await self._carry_out(held | placement.held, gated, placement)

    async def _carry_out(
        self, held: dict[Candidate, str], gated: list[Candidate], placement: Placement | None = None
    ) -> None:
        """Write everything, even if single writes fail; the first failure is raised in the end."""
        limit = anyio.CapacityLimiter(_CONCURRENT_WRITES)
        failures: list[KubeError] = []

        async def write(step: Callable[[], Awaitable[None]]) -> None:
            async with limit:
                try:
                    await step()
                except KubeError as error:
                    failures.append(error)

        verdicts = [(candidate, "Unschedulable", text) for candidate, text in held.items()]
        verdicts += [(candidate, "SchedulingGated", _GATED) for candidate in gated]
        async with anyio.create_task_group() as tasks:
            for candidate in placement.bound if placement is not None else ():
                tasks.start_soon(write, partial(self._bind, candidate))
            for unit in placement.victims if placement is not None else ():
                tasks.start_soon(write, partial(self._preempt, unit))
            for verdict in verdicts:
                if self._verdicts.is_news(*verdict):
                    tasks.start_soon(write, partial(self._hold, *verdict))
        if failures:
            raise failures[0]

    async def _bind(self, candidate: Candidate) -> None:
        target = {"apiVersion": "v1", "kind": "Node", "name": self._node.name}
        metadata = {"name": candidate.key.name, "namespace": candidate.key.namespace, "uid": candidate.uid}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}
        pod = self._pods.peek(candidate.key)
        # Until the watch shows it: other rounds may come before.
        self._assumed[candidate.key] = candidate
        try:
            await self._client.create(PODS, binding, subresource="binding")
        except (NotFoundError, ConflictError):
            del self._assumed[candidate.key]
            return
        except BaseException:
            del self._assumed[candidate.key]
            raise
        recorder = self._recorders[candidate.scheduler]
        if pod is not None:
            message = f"Successfully assigned {candidate.key} to {self._node.name}"
            recorder.record(pod, type="Normal", reason="Scheduled", message=message)
            if candidate.ignored:
                message = f"There is one node, so {' and '.join(candidate.ignored)} has no effect"
                recorder.record(pod, type="Warning", reason="Ignored", message=message)

    async def _preempt(self, unit: list[Candidate]) -> None:
        """Delete the pods of a unit that are not going yet, and say so to them and to their PodGroup if it is one."""
        gang = unit[0].gang
        if gang is not None and self._groups.state(gang).goes_as_one:
            await self._groups.disrupt(gang)
        for candidate in unit:
            pod = None if candidate.is_terminating else await self._verdicts.disrupt(candidate)
            if pod is not None:
                message = f"Preempted by a pod group of a higher priority on node {self._node.name}"
                self._recorders[DEFAULT_SCHEDULER].record(pod, type="Normal", reason="Preempted", message=message)
                options = DeleteOptions(uid=candidate.uid)
                await self._client.delete(PODS, candidate.key.name, candidate.key.namespace, options)

    async def _hold(self, candidate: Candidate, reason: str, text: str) -> None:
        pod = await self._verdicts.write(candidate, reason, text)
        if pod is not None and reason == "Unschedulable":
            recorder = self._recorders.get(candidate.scheduler, self._recorders[DEFAULT_SCHEDULER])
            recorder.record(pod, type="Warning", reason="FailedScheduling", message=text)

    def _waiting(self) -> list[Candidate]:
        """The pods without a node; those that are assumed to have one by now are left out."""
        found = list(self._candidates_at(_WAITING))
        self._forget_gone()
        return [candidate for candidate in found if candidate.key not in self._assumed]

    def _placed(self) -> list[Candidate]:
        for key, candidate in list(self._assumed.items()):
            pod = self._pods.peek(key)
            if pod is None or pod.uid != candidate.uid or pod["spec"].get("nodeName"):
                del self._assumed[key]
        return [*self._candidates_at(_PLACED), *self._assumed.values()]

    def _stage(self, pod: CachedObject) -> Iterable[str]:
        if is_waiting(pod):
            return (_WAITING,)
        return (_PLACED,) if takes_room(pod) and pod["spec"]["nodeName"] == self._node.name else ()

    def _candidates_at(self, stage: str) -> Iterator[Candidate]:
        for key in self._pods.keys_by_index(_INDEX, stage):
            candidate = self._candidate(key)
            if candidate is not None:
                yield candidate

    def _candidate(self, key: ObjectKey) -> Candidate | None:
        """The pod under this key, read when it has changed; None if it is gone, or cannot be read."""
        pod = self._pods.peek(key)
        if pod is None:
            return None
        version, known = self._candidates.get(key, ("", None))
        if known is None or version != pod.resource_version or known.uid != pod.uid:
            try:
                known = Candidate.of(pod)
            except ValueError as error:
                log.warning("cannot read pod, leaving it out", pod=str(key), error=str(error))
                return None
            if known.gang is not None and known.gang.scheduler not in self._forms_gangs:
                known = replace(known, gang=None)
            self._candidates[key] = (pod.resource_version, known)
        return known

    def _forget_gone(self) -> None:
        """Drop the candidates whose pods are gone, now and then: at the cost of one look per candidate read."""
        if len(self._candidates) > self._most_candidates:
            self._candidates = {key: entry for key, entry in self._candidates.items() if self._pods.peek(key)}
            self._most_candidates = 2 * len(self._candidates) + _FEW_CANDIDATES


def register(manager: Manager, node_name: str, gates: FeatureGates = DEFAULT_FEATURE_GATES) -> Scheduler:
    """Add the scheduler to a manager that does not run yet."""
    return Scheduler(manager, node_name, gates)


def _round(_obj: CachedObject) -> Iterable[ObjectKey]:
    return (_ROUND,)


def _matters(old: CachedObject | None, new: CachedObject | None) -> bool:
    """Whether a pod waits, or something it has taken has become free."""
    if new is not None and is_waiting(new):
        return old is None or not is_waiting(old) or _scheduling_fields(old) != _scheduling_fields(new)
    return old is not None and takes_room(old) and not (new is not None and takes_room(new))


def _scheduling_fields(pod: CachedObject) -> tuple[Object, Object]:
    """The fields of a pod on which its placement depends."""
    metadata = pod["metadata"]
    return pod["spec"], {name: metadata.get(name) for name in ("labels", "annotations")}
