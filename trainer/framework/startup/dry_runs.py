"""Dry runs by which the API server says what its feature gates refuse.

Neither discovery nor schemas nor a version number tell: a field whose gate is off is served and described like others.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import anyio

from trainer.api.trainjob import TRAIN_JOBS
from trainer.framework.plugin_api.extension_points import DryRun
from trainer.kube.backoff import Backoff
from trainer.kube.cache.informer import Informer
from trainer.kube.client import Client, ObjectRequest, Verb
from trainer.kube.clock import Clock, move_on_after
from trainer.kube.errors import InvalidError, KubeError
from trainer.kube.logger import get_logger
from trainer.kube.objects import Object, controller_reference, holders_at, metadata_of
from trainer.kube.resource import Resource

log = get_logger(__name__)

_REPETITION: Final = 300.0
"""Seconds after which the API server is asked again while it refuses something."""
_RETRIES: Final = Backoff(initial=1.0, maximum=_REPETITION, jitter=0.2)
_PATIENCE: Final = 10.0
"""Seconds for which the start of a manager waits for first answers."""

_INDEX: Final = re.compile(r"\[[^]]*\]")
_NAME: Final = "dry-run"


@dataclass(slots=True)
class _Kind:
    """The dry runs of one kind."""

    informer: Informer
    dry_runs: dict[str, DryRun]
    changed: anyio.Event = field(default_factory=anyio.Event)
    answered: anyio.Event = field(default_factory=anyio.Event)

    def notify(self) -> None:
        """Wake its task: the kind is served now, or no more."""
        self.changed.set()


class DryRuns:
    """Asks the API server when a kind begins to be served, and keeps the answers for `Reader.refusal`.

    It asks again while it has no answer, and every five minutes while something is refused: gates are switched on by
    people who wait for it. Listeners hear of each change.

    Args:
        client: sends the dry runs; those of a replica that does not lead, too, because its webhooks review TrainJobs.
        refusals: the answers by kind and name of the dry run; those that are no refusals are left out.
        namespace: where the objects would be; nothing is stored.
        clock: measures the pauses.
    """

    def __init__(
        self, client: Client, refusals: MutableMapping[tuple[Resource, str], str], namespace: str, clock: Clock
    ) -> None:
        self._client = client
        self._refusals = refusals
        self._namespace = namespace
        self._clock = clock
        self._kinds: dict[Informer, _Kind] = {}
        self._listeners: list[Callable[[], None]] = []

    def add(self, informer: Informer, dry_runs: Mapping[str, DryRun]) -> None:
        """Ask these of the kind of an informer, while it is served; before `run`."""
        if dry_runs:
            self._kinds.setdefault(informer, _Kind(informer, {})).dry_runs.update(dry_runs)

    def add_listener(self, listener: Callable[[], None]) -> None:
        """Call `listener` whenever an answer changes; it must not block."""
        self._listeners.append(listener)

    def remove_listener(self, listener: Callable[[], None]) -> None:
        """Call it no more; unknown listeners are ignored."""
        if listener in self._listeners:
            self._listeners.remove(listener)

    @property
    def problem(self) -> str:
        """Why `wait_for_sync` does not return yet."""
        missing = [kind.informer.resource.qualified_name for kind in self._kinds.values() if not kind.answered.is_set()]
        return f"the API server has not answered dry runs of {', '.join(missing)}" if missing else ""

    async def wait_for_sync(self) -> None:
        """Wait until the API server was asked about each kind, for ten seconds at most."""
        async with move_on_after(self._clock, _PATIENCE):
            for kind in self._kinds.values():
                await kind.answered.wait()

    async def run(self) -> None:
        """Ask until cancelled; the informers have synced."""
        async with anyio.create_task_group() as tasks:
            for kind in self._kinds.values():
                name = f"dry runs of {kind.informer.resource.qualified_name}"
                tasks.start_soon(partial(self._follow, kind), name=name)

    async def _follow(self, kind: _Kind) -> None:
        informer, failures = kind.informer, 0
        informer.add_listener(kind.notify)
        try:
            while True:
                kind.changed = anyio.Event()
                complete = not informer.is_served or await self._ask_all(kind, is_again=failures > 0)
                if not informer.is_served:
                    self._forget(kind)
                kind.answered.set()
                pause = self._pause(kind) if complete else _RETRIES.pause(failures)
                failures = 0 if complete else failures + 1
                async with move_on_after(self._clock, pause):
                    await kind.changed.wait()
        finally:
            informer.remove_listener(kind.notify)

    def _pause(self, kind: _Kind) -> float | None:
        resource = kind.informer.resource
        return _REPETITION if any((resource, name) in self._refusals for name in kind.dry_runs) else None

    def _forget(self, kind: _Kind) -> None:
        for name in kind.dry_runs:
            self._refusals.pop((kind.informer.resource, name), None)

    async def _ask_all(self, kind: _Kind, *, is_again: bool) -> bool:
        """Whether the API server has answered each of them."""
        resource, complete = kind.informer.resource, True
        for name, dry_run in kind.dry_runs.items():
            try:
                refusal = await refusal_of(self._client, resource, dry_run, self._namespace)
            except KubeError as error:
                note = log.debug if is_again else log.warning
                note("dry run failed", resource=resource.qualified_name, dry_run=name, error=str(error))
                complete = False
            else:
                self._note(resource, name, refusal)
        return complete

    def _note(self, resource: Resource, name: str, refusal: str) -> None:
        before = self._refusals.pop((resource, name), "")
        if refusal:
            self._refusals[resource, name] = refusal
        if refusal == before:
            return
        event = "API server refuses in a dry run" if refusal else "API server accepts in a dry run"
        log.info(event, resource=resource.qualified_name, dry_run=name, **({"reason": refusal} if refusal else {}))
        for listener in tuple(self._listeners):
            listener()


async def refusal_of(client: Client, resource: Resource, dry_run: DryRun, namespace: str) -> str:
    """Why the API server would not create the object of a dry run; empty if it would.

    Raises:
        KubeError: it has not said so: no answer, or no right to create such objects.
    """
    name = f"{_NAME}-{uuid.uuid4().hex[:12]}"
    obj = _tried(dry_run.object, resource, name, namespace)
    try:
        answer = await client.send(ObjectRequest(Verb.CREATE, resource, name, namespace, obj, dry_run=True))
    except InvalidError as error:
        causes = [cause for cause in error.causes if _is_about(str(cause.get("field") or ""), dry_run.field)]
        if not causes:  # a policy or webhook of the cluster, which has nothing to do with gates
            raise
        return "; ".join(f"{cause['field']}: {cause.get('message')}" for cause in causes)
    if dry_run.field and not any(holder[name] for holder, name in holders_at(answer, dry_run.field)):
        return f"{dry_run.field} is dropped"
    return ""


def _is_about(field: str, tried: str) -> bool:
    """Whether the field that an API server refuses is the tried one, or within it; each is where none is tried."""
    name = _INDEX.sub("", field)
    return bool(name) and (not tried or name == tried or name.startswith(f"{tried}."))


def _tried(obj: Object, resource: Resource, name: str, namespace: str) -> Object:
    """The object, with a TrainJob that does not exist as its controller: config/admissionpolicy wants one."""
    owner = {
        "apiVersion": TRAIN_JOBS.api_version,
        "kind": TRAIN_JOBS.kind,
        "metadata": {"name": name, "uid": str(uuid.uuid4())},
    }
    own = {"name": name, "namespace": namespace, "ownerReferences": [controller_reference(owner)]}
    metadata = metadata_of(obj) | own
    return obj | {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}
