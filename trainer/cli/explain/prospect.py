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
from trainer.explain.submission import DryRunRefusal, Inventory, PodPlan, check_submission
from trainer.framework.plugin_api.errors import BuildError
from trainer.framework.runtimes.runtimes import runtime_place
from trainer.kube.client import ObjectRequest, Verb
from trainer.kube.errors import AlreadyExistsError, ApiError, ForbiddenError, NotFoundError, UnauthorizedError
from trainer.kube.objects import ObjectKey, key_of, mapping_at, metadata_of, name_of, namespace_of
from trainer.kube.resource import (
    LIMIT_RANGES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    RESOURCE_QUOTAS,
    RUNTIME_CLASSES,
    SERVICE_ACCOUNTS,
)
from trainer.kube.selection import Selection
from trainer.workloads import JOBSETS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence

    from trainer.cli.current_cluster import ConnectedCluster
    from trainer.explain import Explanation
    from trainer.explain.references import Reference
    from trainer.framework.plugin_api.component import Component
    from trainer.kube.objects import Object
    from trainer.kube.resource import Resource

_T = TypeVar("_T")

_NOT_GRANTED = "cannot create resource"
"""Text in the answer to a creation that the user has no right to."""
_NO_DRY_RUN = "does not support dry run"
"""Text in the answer to a dry run of an object for which a webhook with side effects is called."""
_READ_BY_NAME = 20
"""Most objects that are read one by one."""


@dataclass
class Prospect:
    """One TrainJob among the documents of a file, and the cluster that it would be submitted to."""

    cluster: ConnectedCluster
    document: Document
    others: Sequence[Document]
    """The other objects of the file, which count as present."""
    _unread: dict[str, Unread] = field(default_factory=dict, init=False)
    _refusals: list[DryRunRefusal] = field(default_factory=list, init=False)
    _missing: list[tuple[Subject, str]] = field(default_factory=list, init=False)

    @property
    def namespace(self) -> str:
        """The namespace of the TrainJob."""
        return namespace_of(self.document.obj)

    @property
    def subject(self) -> Subject:
        """The TrainJob."""
        name = name_of(self.document.obj) or f"{metadata_of(self.document.obj).get('generateName', '')}..."
        return Subject(TRAIN_JOBS.kind, name, self.namespace)

    async def explanation(self) -> Explanation:
        """Find the causes that would keep it from running."""
        await self._try(TRAIN_JOBS, self.document.obj, self.subject, self._is_missing_runtime)
        components = () if self._refusals else await self._build()
        plans = [plan for each in components if each.resource == JOBSETS for plan in _plans(each.object)]
        if not plans:
            known = Inventory(refusals=self._refusals, missing=self._missing, unread=self._left())
            return check_submission(self.namespace, (), known)
        of_file = (each for each in self.others if namespace_of(each.obj) == self.namespace)
        given = {*_made(components), *((each.resource, name_of(each.obj)) for each in of_file)}
        accounts = [f'serviceaccount "{name}" not found' for resource, name in given if resource == SERVICE_ACCOUNTS]
        admitted = [await self._admitted(plan, accounts) for plan in plans]
        missing, classes = await self._references(plans, given)
        here = Selection(self.namespace)
        found = Inventory(
            nodes=await self._list(NODES, Selection()),
            quotas=await self._list(RESOURCE_QUOTAS, here) or (),
            limit_ranges=await self._list(LIMIT_RANGES, here) or (),
            runtime_classes=classes,
            refusals=self._refusals,
            missing=missing,
        )
        return replace(check_submission(self.namespace, admitted, found), unread=self._left())

    def _left(self) -> tuple[Unread, ...]:
        return tuple(self._unread.values())

    async def _try(
        self, resource: Resource, obj: Object, about: Subject, is_of_file: Callable[[str], bool]
    ) -> Object | None:
        """Create an object by dry run: it as admission leaves it, or None after a refusal, which is kept.

        Args:
            resource: of the object.
            obj: to create.
            about: names it.
            is_of_file: whether a refusal says no more than that something is missing which comes with the TrainJob.
        """
        request = ObjectRequest(
            Verb.CREATE, resource, name_of(obj), self.namespace, obj, field_manager=FIELD_MANAGER, dry_run=True
        )
        try:
            return await self.cluster.client.send(request)
        except UnauthorizedError:
            raise
        except AlreadyExistsError:
            self._refusals.append(DryRunRefusal(about, "it exists already: delete it, or give this one another name"))
        except ApiError as error:
            no_right = isinstance(error, ForbiddenError) and _NOT_GRANTED in error.message and resource != TRAIN_JOBS
            if no_right or _NO_DRY_RUN in error.message or is_of_file(error.message):
                self._unread[resource.plural] = Unread(f"{resource.plural} by dry run", str(error))
            else:
                self._refusals.append(DryRunRefusal(about, str(error)))
        return None

    def _is_missing_runtime(self, refusal: str) -> bool:
        """Whether it does, of a runtime that the file has; v1alpha1 refuses a TrainJob whose runtime is not there."""
        resource, key = self._runtime_place
        return self._has(resource, key) and key.name in refusal and "not found" in refusal.lower()

    @property
    def _runtime_place(self) -> tuple[Resource, ObjectKey]:
        return runtime_place(TrainJob.from_object(decoded(self.document.obj)))

    def _has(self, resource: Resource, key: ObjectKey) -> bool:
        """Whether the file has an object."""
        return any(each.resource == resource and key_of(each.obj) == key for each in self.others)

    async def _build(self) -> Sequence[Component]:
        """The objects that a manager would make, by the runtime of the file or of the cluster."""
        resource, key = self._runtime_place
        documents = [self.document, *self.others]
        if not self._has(resource, key):
            stored = await self._get(self.cluster.served.resource(resource), key)
            if stored is None:
                if resource.plural not in self._unread:
                    self._missing.append((Subject(resource.kind, key.name, key.namespace), "spec.runtimeRef"))
                return ()
            documents.append(Document(resource, stored))
        workspace = await anyio.to_thread.run_sync(Workspace, documents)  # reads the shipped runtimes
        admitted = next(each for each in workspace.documents if each.place == self.document.place and each.is_train_job)
        model = TrainJob.from_object(decoded(admitted.obj))
        if TRAIN_JOBS.plural in self._unread:
            errors = (await workspace.review(admitted)).errors
            self._refusals += [DryRunRefusal(self.subject, str(error)) for error in errors]
            if errors:
                return ()
        try:
            return workspace.pipeline.build(model, await workspace.of(model))
        except BuildError as error:
            self._refusals.append(DryRunRefusal(self.subject, "; ".join(map(str, error.errors))))
            return ()

    def _pod(self, plan: PodPlan) -> Object:
        prefix = f"{self.subject.name.removesuffix('...')}-{plan.replicated_job}-0-0-"
        metadata = {"generateName": prefix, "namespace": self.namespace}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {**plan.metadata, **metadata}, "spec": plan.spec}

    async def _admitted(self, plan: PodPlan, accounts: Sequence[str]) -> PodPlan:
        """Pods with what admission adds, such as tolerations; as they were if it cannot be tried, or refuses them."""
        about = Subject("Pod", f"of {plan.replicated_job}", self.namespace)
        pod = await self._try(PODS, self._pod(plan), about, lambda refusal: any(each in refusal for each in accounts))
        return replace(plan, spec=mapping_at(pod, "spec") or plan.spec) if pod else plan

    async def _references(
        self, plans: Sequence[PodPlan], given: set[tuple[Resource, str]]
    ) -> tuple[list[tuple[Subject, str]], dict[str, Object]]:
        """The objects that pods name and that are not there, and the RuntimeClasses that are."""
        wanted: dict[tuple[Resource, str], Reference] = {}
        for each in (found for plan in plans for found in references(plan.spec)):
            if (each.resource, each.name) not in given:
                wanted.setdefault((each.resource, each.name), each)
        missing, classes = [], {}
        for position, each in enumerate(wanted.values()):
            if position == _READ_BY_NAME:
                why = f"pods name {len(wanted)}, and at most {_READ_BY_NAME} are read"
                self._unread["references"] = Unread("further objects that pods name", why)
                break
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
        """The object of a read; None if it does not exist, or cannot be read, which is noted."""
        try:
            return await answer
        except NotFoundError:
            return None
        except UnauthorizedError:
            raise
        except ApiError as error:
            self._unread[resource.plural] = Unread(resource.plural, str(error))
            return None


def _made(components: Sequence[Component]) -> Iterator[tuple[Resource, str]]:
    """The objects that the manager creates, and the claims that JobSet creates."""
    for each in components:
        yield each.resource, name_of(each.object)
        if each.resource == JOBSETS:
            for policy in (each.object.get("spec") or {}).get("volumeClaimPolicies") or []:
                for template in policy.get("templates") or []:
                    yield PERSISTENT_VOLUME_CLAIMS, f"{name_of(template)}-{name_of(each.object)}"


def _plans(jobset: Object) -> Iterator[PodPlan]:
    for job in (jobset.get("spec") or {}).get("replicatedJobs") or []:
        spec = (job.get("template") or {}).get("spec") or {}
        template = spec.get("template") or {}
        size = spec.get("parallelism", 1)
        count = min(size, spec.get("completions", size)) * job.get("replicas", 1)
        yield PodPlan(job.get("name") or "", count, template.get("spec") or {}, metadata_of(template))
