"""What a TrainJob of a file would meet on the cluster: dry runs, and reads of what it depends on."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

import anyio

from trainer.api.trainjob import TRAIN_JOBS, TrainJob
from trainer.api.v1alpha1.client import decoded
from trainer.cli.documents import Document
from trainer.cli.manifests import FIELD_MANAGER
from trainer.cli.offline.workspace import Workspace
from trainer.explain import Subject, Unread
from trainer.explain.references import references
from trainer.explain.submission import Inventory, PodPlan, Refusal, foresee
from trainer.framework.plugin_api.errors import BuildError
from trainer.framework.runtimes.runtimes import runtime_place
from trainer.kube.client import ObjectRequest, Verb
from trainer.kube.errors import AlreadyExistsError, ApiError, ForbiddenError, NotFoundError
from trainer.kube.objects import ObjectKey, metadata_of, name_of, namespace_of
from trainer.kube.resource import LIMIT_RANGES, NODES, PERSISTENT_VOLUME_CLAIMS, PODS, RESOURCE_QUOTAS, RUNTIME_CLASSES
from trainer.kube.selection import Selection
from trainer.workloads import JOBSETS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterator, Sequence

    from trainer.cli.current_cluster import ConnectedCluster
    from trainer.explain import Explanation
    from trainer.explain.references import Reference
    from trainer.framework.plugin_api.component import Component
    from trainer.kube.objects import Object
    from trainer.kube.resource import Resource

_T = TypeVar("_T")

_NOT_GRANTED = "cannot create resource"
"""In the answer to a creation that the user has no right to, whatever the object is like."""
_READ_BY_NAME = 20
"""Most objects that are read one by one."""


@dataclass
class Prospect:
    """One TrainJob among the documents of a file, and the cluster that it would be submitted to."""

    cluster: ConnectedCluster
    document: Document
    others: Sequence[Document]
    """What the file has besides, which counts as present."""
    _unread: dict[str, Unread] = field(default_factory=dict, init=False)
    _refusals: list[Refusal] = field(default_factory=list, init=False)

    @property
    def namespace(self) -> str:
        """That of the TrainJob."""
        return namespace_of(self.document.obj)

    @property
    def subject(self) -> Subject:
        """The TrainJob."""
        name = name_of(self.document.obj) or f"{metadata_of(self.document.obj).get('generateName', '')}..."
        return Subject(TRAIN_JOBS.kind, name, self.namespace)

    async def explanation(self) -> Explanation:
        """What would hold it."""
        await self._try(TRAIN_JOBS, self.document.obj, self.subject)
        components = () if self._refusals else await self._build()
        plans = [plan for each in components if each.resource == JOBSETS for plan in _plans(each.object)]
        if not plans:
            return foresee(self.namespace, (), Inventory(refusals=self._refusals, unread=self._left()))
        for plan in plans:
            await self._try(PODS, self._pod(plan), Subject("Pod", f"of {plan.replicated_job}", self.namespace))
        missing, classes = await self._references(plans, set(_made(components)))
        here = Selection(self.namespace)
        found = Inventory(
            nodes=await self._list(NODES, Selection()),
            quotas=await self._list(RESOURCE_QUOTAS, here) or (),
            limit_ranges=await self._list(LIMIT_RANGES, here) or (),
            runtime_classes=classes,
            refusals=self._refusals,
            missing=missing,
        )
        return replace(foresee(self.namespace, plans, found), unread=self._left())

    def _left(self) -> tuple[Unread, ...]:
        return tuple(self._unread.values())

    async def _try(self, resource: Resource, obj: Object, about: Subject) -> None:
        """Create an object by dry run, and keep the refusal."""
        request = ObjectRequest(
            Verb.CREATE, resource, name_of(obj), self.namespace, obj, field_manager=FIELD_MANAGER, dry_run=True
        )
        try:
            await self.cluster.client.send(request)
        except AlreadyExistsError:
            self._refusals.append(Refusal(about, "it exists already: delete it, or give this one another name"))
        except ForbiddenError as error:
            if _NOT_GRANTED in error.message and resource != TRAIN_JOBS:
                self._unread[resource.plural] = Unread(f"{resource.plural} by dry run", str(error))
            else:
                self._refusals.append(Refusal(about, str(error)))
        except ApiError as error:
            self._refusals.append(Refusal(about, str(error)))

    async def _build(self) -> Sequence[Component]:
        """The objects that a manager would make, by the runtime of the file or of the cluster."""
        train_job = TrainJob.from_object(decoded(self.document.obj))
        resource, key = runtime_place(train_job)
        documents = [self.document, *self.others]
        if not any((each.resource, name_of(each.obj)) == (resource, key.name) for each in self.others):
            stored = await self._get(self.cluster.served.resource(resource), key)
            if stored is None:
                if resource.plural not in self._unread:
                    message = f"there is no {resource.kind} {key.name} (spec.runtimeRef); trainer runtimes lists them"
                    self._refusals.append(Refusal(Subject(resource.kind, key.name, key.namespace), message))
                return ()
            documents.append(Document(resource, stored))
        workspace = await anyio.to_thread.run_sync(Workspace, documents)  # reads the shipped runtimes
        admitted = next(each for each in workspace.documents if each.place == self.document.place and each.is_train_job)
        model = TrainJob.from_object(decoded(admitted.obj))
        try:
            return workspace.pipeline.build(model, await workspace.of(model))
        except BuildError as error:
            self._refusals.append(Refusal(self.subject, "; ".join(map(str, error.errors))))
            return ()

    def _pod(self, plan: PodPlan) -> Object:
        prefix = f"{self.subject.name.removesuffix('...')}-{plan.replicated_job}-0-0-"
        metadata = {"generateName": prefix, "namespace": self.namespace}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": plan.spec}

    async def _references(
        self, plans: Sequence[PodPlan], made: set[tuple[Resource, str]]
    ) -> tuple[list[tuple[Subject, str]], dict[str, Object]]:
        """The objects that pods name and that are not there, and the RuntimeClasses that are."""
        given = made | {(each.resource, name_of(each.obj)) for each in self.others}
        wanted: dict[tuple[Resource, str], Reference] = {}
        for each in (found for plan in plans for found in references(plan.spec)):
            wanted.setdefault((each.resource, each.name), each)
        missing, classes = [], {}
        for each in list(wanted.values())[:_READ_BY_NAME]:
            if (each.resource, each.name) in given:
                continue
            namespace = self.namespace if each.resource.namespaced else ""
            found = await self._get(each.resource, ObjectKey(namespace, each.name))
            if found is not None and each.resource == RUNTIME_CLASSES:
                classes[each.name] = found
            if found is None and each.resource.plural not in self._unread:
                missing.append((Subject(each.resource.kind, each.name, namespace), each.field))
        return missing, classes

    async def _get(self, resource: Resource, key: ObjectKey) -> Object | None:
        return await self._attempt(resource, self.cluster.client.get(resource, key.name, key.namespace))

    async def _list(self, resource: Resource, selection: Selection) -> Sequence[Object] | None:
        found = await self._attempt(resource, self.cluster.client.list(resource, selection))
        return None if found is None else found.items

    async def _attempt(self, resource: Resource, answer: Awaitable[_T]) -> _T | None:
        """What is read; None if it is not there, or the user may not read it."""
        try:
            return await answer
        except NotFoundError:
            return None
        except ForbiddenError as error:
            self._unread[resource.plural] = Unread(resource.plural, str(error))
            return None


def _made(components: Sequence[Component]) -> Iterator[tuple[Resource, str]]:
    """What the manager makes, and the claims that JobSet makes."""
    for each in components:
        yield each.resource, name_of(each.object)
        if each.resource == JOBSETS:
            for policy in (each.object.get("spec") or {}).get("volumeClaimPolicies") or []:
                for template in policy.get("templates") or []:
                    yield PERSISTENT_VOLUME_CLAIMS, f"{name_of(template)}-{name_of(each.object)}"


def _plans(jobset: Object) -> Iterator[PodPlan]:
    for job in (jobset.get("spec") or {}).get("replicatedJobs") or []:
        spec = (job.get("template") or {}).get("spec") or {}
        pods = (spec.get("template") or {}).get("spec") or {}
        size = spec.get("parallelism", 1)
        count = min(size, spec.get("completions", size)) * job.get("replicas", 1)
        yield PodPlan(job.get("name") or "", count, pods)
