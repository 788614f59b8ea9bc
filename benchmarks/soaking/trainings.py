"""Trainings that come and go: each is created, changed, watched to its end and deleted, as its kind says."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import anyio

from trainer.api.jobset_labels import JOBSET_NAME
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES
from trainer.api.trainjob import TRAIN_JOBS
from trainer.kube.errors import AlreadyExistsError, InvalidError, KubeError, NotFoundError, TransportError
from trainer.kube.manager.manager import Manager
from trainer.kube.objects import Object, has_finished, is_being_deleted, labels_of, name_of, namespace_of, uid_of
from trainer.kube.resource import EVENTS, LEASES, NAMESPACES, PODS

NAMESPACE_NAMES: Final = ("soak-0", "soak-1", "soak-2", "soak-3")
CONTAINER: Final = "node"
_RUNS_FOR, _EXITS_WITH = "devcluster.trainer/runs-for", "devcluster.trainer/exits-with"
_BRIEF, _FAILING, _LONG, _ELASTIC = "soak-brief", "soak-failing", "soak-long", "soak-elastic"
_COMPLETE, _FAILED, _RUNNING, _SUSPENDED = "Complete", "Failed", "Running", "Suspended"
_ENDS: Final = frozenset({_COMPLETE, _FAILED})
_TTL: Final = 5
"""Seconds after the end at which the manager deletes half of those that end."""
_PATIENCE: Final = 90.0
"""Seconds that a training may take for a step; more are an error."""
_LIVES: Final = 90.0
"""Seconds that a training may be there, on the average; it takes a quarter of that where nothing else runs."""
_FEW: Final = 30
"""Trainings that may be there at once whatever the rate."""
_POLL: Final = 0.5
_SETTLING: Final = 30.0
"""Seconds after which the restart of the API server is over."""
_ATTEMPTS: Final = 60
"""Of each request: a server may close a connection just when it is used again, or be restarted."""
_KEPT: Final = 5.0
"""Seconds for which a training that has ended stays where nothing else deletes it."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What happens to a training."""

    name: str
    runtime: str
    steps: tuple[str, ...]
    """States to wait for, and what is done then, which are names of methods of `Trainings`."""
    spec: Object = field(default_factory=dict)
    is_left: bool = False
    """Whether the manager deletes it, as `ttlSecondsAfterFinished` says."""


KINDS: Final = (
    Kind("complete", _BRIEF, (_COMPLETE,)),
    Kind("expire", _BRIEF, (_COMPLETE,), {"ttlSecondsAfterFinished": _TTL}, is_left=True),
    Kind("fail", _FAILING, (_FAILED,)),
    Kind("suspend", _BRIEF, (_RUNNING, "suspend", _SUSPENDED, "resume", _COMPLETE)),
    Kind("pairs", _BRIEF, (_COMPLETE,), {"trainer": {"numNodes": 2}, "ttlSecondsAfterFinished": _TTL}, is_left=True),
    Kind("evict", _BRIEF, (_RUNNING, "evict", _COMPLETE)),
    Kind("delete", _LONG, (_RUNNING,)),
    Kind("scale", _BRIEF, (_SUSPENDED, "scale", "resume", _COMPLETE), {"suspend": True}),
    Kind("fail-expire", _FAILING, (_FAILED,), {"ttlSecondsAfterFinished": _TTL}, is_left=True),
    Kind("elastic", _ELASTIC, (_RUNNING, "scale", _COMPLETE)),
)


class Trainings:
    """Creates trainings at a steady rate, and knows what is there."""

    def __init__(self, manager: Manager, history: int) -> None:
        self._client = manager.client
        self._history = history
        self._jobs, self._pods, self._events = (
            manager.informer(resource).lister for resource in (TRAIN_JOBS, PODS, EVENTS)
        )
        self._states: dict[str, str] = {}
        self.running: dict[str, Object] = {}
        """Pods that run, by their uid."""
        self.created: Counter[str] = Counter()
        self.ended: Counter[str] = Counter()
        self.seconds = 0.0
        """In which trainings were created."""
        self.problems: list[str] = []
        """What did not come as it should."""

    @property
    def shown(self) -> list[tuple[str, str]]:
        """Namespace and name of trainings that run, the newest last."""
        found = {(namespace_of(pod), labels_of(pod)[JOBSET_NAME]): None for pod in list(self.running.values())}
        return list(found)

    async def prepare(self) -> None:
        """Create namespaces and runtimes."""
        for name in NAMESPACE_NAMES:
            await self._client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        one = {"numNodes": 1, "torch": {"numProcPerNode": "1"}}
        elastic = {"torch": {"elasticPolicy": {"minNodes": 1, "maxNodes": 3}}}
        for name, behaviour, policy in (
            (_BRIEF, {_RUNS_FOR: "6s"}, one),
            (_FAILING, {_RUNS_FOR: "3s", _EXITS_WITH: "1"}, one),
            (_LONG, {_RUNS_FOR: "24h"}, {"numNodes": 1}),
            (_ELASTIC, {_RUNS_FOR: "8s"}, elastic),
        ):
            await self._client.create(CLUSTER_TRAINING_RUNTIMES, _runtime(name, behaviour, policy))

    async def run(self, rate: float, spells: Iterable[float], rest: Callable[[], Awaitable[None]]) -> None:
        """Create so many a second in each spell of so many seconds, wait until all of them are gone, and rest.

        The next spell is asked for after the rest.
        """
        numbers = itertools.count()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._observe)
            tasks.start_soon(self._forget_events)
            tasks.start_soon(self._fill_history)
            for seconds in spells:
                if not await self._create(rate, seconds, numbers):
                    break
                await rest()
            tasks.cancel_scope.cancel()

    async def _create(self, rate: float, seconds: float, numbers: Iterator[int]) -> bool:
        """One spell; False where trainings heap up, which ends it."""
        start = time.monotonic()
        async with anyio.create_task_group() as lives:
            for position in range(round(rate * seconds)):
                await anyio.sleep(max(0.0, start + position / rate - time.monotonic()))
                if len(self._states) > max(rate * _LIVES, _FEW):
                    self.problems.append(
                        f"{len(self._states)} trainings are there at once: this machine is too slow for {rate:g} a "
                        "second, or something stands still"
                    )
                    lives.cancel_scope.cancel()
                    return False
                number = next(numbers)
                self.seconds += 1 / rate
                lives.start_soon(self._live, KINDS[number % len(KINDS)], number)
        return True

    async def _observe(self) -> None:
        """Know what is there, until cancelled."""
        while True:
            self._states = {name_of(job): (job.get("status") or {}).get("state") or "" for job in self._jobs.list()}
            self.running = {
                uid_of(pod): pod
                for pod in self._pods.list()
                if not has_finished(pod) and (pod.get("status") or {}).get("phase") == _RUNNING
            }
            await anyio.sleep(_POLL)

    async def _fill_history(self) -> None:
        """Change Leases as often as the API server remembers, which their renewals take long for."""
        await anyio.sleep(_SETTLING)
        metadata = {"name": "soak", "namespace": NAMESPACE_NAMES[0]}
        lease = {"apiVersion": LEASES.api_version, "kind": LEASES.kind, "metadata": metadata, "spec": {}}
        for _ in range(self._history // 2 + 1):
            await _insist(partial(self._client.create, LEASES, lease))
            await _insist(partial(self._client.delete, LEASES, "soak", NAMESPACE_NAMES[0]))

    async def _forget_events(self) -> None:
        """Delete events of trainings that are gone, as an API server does an hour after they were written."""
        while True:
            await anyio.sleep(_POLL)
            for event in self._events.list():
                about = event["involvedObject"].get("name") or ""
                words = about.split("-")
                if not any("-".join(words[:count]) in self._states for count in range(1, len(words) + 1)):
                    await _insist(partial(self._client.delete, EVENTS, name_of(event), namespace_of(event)))

    async def _live(self, kind: Kind, number: int) -> None:
        name, namespace = f"{kind.name}-{number:06}", NAMESPACE_NAMES[number // len(KINDS) % len(NAMESPACE_NAMES)]
        try:
            await _insist(partial(self._client.create, TRAIN_JOBS, _train_job(kind, name, namespace)))
            self.created[kind.name] += 1
            for step in kind.steps:
                act: Callable[[str, str], Awaitable[None]] | None = getattr(self, f"_{step}", None)
                await (act(name, namespace) if act is not None else self._wait_for(name, step))
            if not kind.is_left:
                await anyio.sleep(_KEPT)
                await _insist(partial(self._client.delete, TRAIN_JOBS, name, namespace))
            await self._wait_for(name, None)
        except (KubeError, TimeoutError) as error:
            problem = str(error) or f"not within {_PATIENCE:g} s"
            self.problems.append(f"{name}, which is {self._states.get(name, 'gone')}: {problem}")
        else:
            self.ended[kind.name] += 1

    async def _wait_for(self, name: str, state: str | None) -> None:
        """Wait until a training is in this state, or past it; None: until it is gone.

        One that expired has been in its state, and one that has ended was in all before, however shortly.
        """
        seen = False
        with anyio.fail_after(_PATIENCE):
            while (found := self._states.get(name)) != state:
                if found is None and seen and state in _ENDS:
                    return
                if found in _ENDS and state not in {None, *_ENDS}:
                    return
                seen = seen or found is not None
                await anyio.sleep(_POLL)

    async def _suspend(self, name: str, namespace: str) -> None:
        await self._change(name, namespace, {"suspend": True})

    async def _resume(self, name: str, namespace: str) -> None:
        await self._change(name, namespace, {"suspend": False})

    async def _scale(self, name: str, namespace: str) -> None:
        await self._change(name, namespace, {"trainer": {"numNodes": 2}})

    async def _change(self, name: str, namespace: str, spec: Object) -> None:
        try:
            await _insist(partial(self._client.patch, TRAIN_JOBS, name, {"spec": spec}, namespace))
        except InvalidError:
            await anyio.sleep(2 * _POLL)
            if self._states.get(name) not in _ENDS:  # what has ended cannot change
                raise

    async def _evict(self, name: str, namespace: str) -> None:
        for pod in self._pods.list(namespace):
            if has_finished(pod) or is_being_deleted(pod) or labels_of(pod).get(JOBSET_NAME) != name:
                continue
            metadata = {"name": name_of(pod), "namespace": namespace}
            eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}
            await _insist(partial(self._client.create, PODS, eviction, subresource="eviction"))


async def _insist(request: Callable[[], Awaitable[object]]) -> None:
    """Send a request, again where the connection breaks; what is there, or gone, already is no error."""
    for attempt in range(_ATTEMPTS):
        try:
            with suppress(NotFoundError, AlreadyExistsError):
                await request()
        except TransportError:
            if attempt == _ATTEMPTS - 1:
                raise
            await anyio.sleep(_POLL)
        else:
            return


def _runtime(name: str, annotations: dict[str, str], policy: Object) -> Object:
    spec = {"restartPolicy": "Never", "containers": [{"name": CONTAINER, "image": "none"}]}
    disruption: Object = {"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    job = {
        "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
        "spec": {
            "backoffLimit": 0,
            "podFailurePolicy": {"rules": [disruption]},
            "template": {"metadata": {"annotations": annotations}, "spec": spec},
        },
    }
    again: Object = {"name": "disruption", "action": "RestartJobSetAndIgnoreMaxRestarts"}
    again |= {"onJobFailureReasons": ["PodFailurePolicy"], "targetReplicatedJobs": ["node"]}
    template = {
        "spec": {
            "failurePolicy": {"maxRestarts": 0, "rules": [again]},
            "replicatedJobs": [{"name": "node", "template": job}],
        }
    }
    return {
        "apiVersion": CLUSTER_TRAINING_RUNTIMES.api_version,
        "kind": CLUSTER_TRAINING_RUNTIMES.kind,
        "metadata": {"name": name},
        "spec": {"mlPolicy": policy, "template": template},
    }


def _train_job(kind: Kind, name: str, namespace: str) -> Object:
    trainer = {"image": "none", "command": ["python", "train.py"], **kind.spec.get("trainer", {})}
    reference = {"kind": CLUSTER_TRAINING_RUNTIMES.kind, "name": kind.runtime}
    return {
        "apiVersion": TRAIN_JOBS.api_version,
        "kind": TRAIN_JOBS.kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"runtimeRef": reference, **kind.spec, "trainer": trainer},
    }
