"""What the cluster says of a TrainJob of a file: dry runs, and reads of the objects that its pods name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import anyio

from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from trainer.api.trainjob import TRAIN_JOBS, TrainJob
from trainer.cli.current_cluster import ConnectedCluster
from trainer.cli.documents import Document
from trainer.cli.manifests import FIELD_MANAGER
from trainer.cli.offline.workspace import Workspace
from trainer.explain import Cause, Explanation, Subject, Unread, Verdict
from trainer.explain.cause import kubectl, one_line, trainer
from trainer.explain.references import Reference, references
from trainer.explain.remedies import refusal_of
from trainer.framework.plugin_api.component import Component
from trainer.framework.plugin_api.errors import BuildError
from trainer.framework.runtimes.runtimes import runtime_place
from trainer.kube.client import ObjectRequest, Verb
from trainer.kube.errors import AlreadyExistsError, ApiError, ForbiddenError, NotFoundError, UnauthorizedError
from trainer.kube.objects import Object, ObjectKey, key_of, mapping_at, metadata_of, name_of, namespace_of, objects_in
from trainer.kube.resource import PERSISTENT_VOLUME_CLAIMS, PODS, SERVICE_ACCOUNTS, Resource
from trainer.v1alpha1.client import decoded
from trainer.workloads import JOBSETS

_NOT_GRANTED = "cannot create resource"
"""Text in the answer to a creation that the user has no right to."""
_NO_DRY_RUN = "does not support dry run"
"""Text in the answer to a dry run of an object for which a webhook with side effects is called."""
_REFUSED = "Refused"
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
    _causes: list[Cause] = field(default_factory=list, init=False)

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
        components = () if self._causes else await self._build()
        templates = [each for made in components if made.resource == JOBSETS for each in _templates(made.object)]
        of_file = (each for each in self.others if namespace_of(each.obj) == self.namespace)
        given = {*_made(components), *((each.resource, name_of(each.obj)) for each in of_file)}
        accounts = [f'serviceaccount "{name}" not found' for resource, name in given if resource == SERVICE_ACCOUNTS]
        for replicated_job, template in templates:
            about = Subject(PODS.kind, f"of {replicated_job}", self.namespace)
            pod = self._pod(replicated_job, template)
            await self._try(PODS, pod, about, lambda refusal: any(each in refusal for each in accounts))
        await self._find_missing([mapping_at(template, "spec") for _, template in templates], given)
        is_refused = any(cause.reason == _REFUSED and cause.about == self.subject for cause in self._causes)
        verdict = Verdict.FAILED if is_refused else Verdict.WAITING if self._causes else Verdict.RUNNING
        return Explanation(verdict, tuple(self._causes), unread=tuple(self._unread.values()))

    async def _try(self, resource: Resource, obj: Object, about: Subject, is_of_file: Callable[[str], bool]) -> None:
        """Create an object by dry run, and note a refusal.

        Args:
            resource: of the object.
            obj: to create.
            about: names it.
            is_of_file: whether a refusal only says that something is missing which comes with the TrainJob.
        """
        request = ObjectRequest(
            Verb.CREATE, resource, name_of(obj), self.namespace, obj, field_manager=FIELD_MANAGER, dry_run=True
        )
        try:
            await self.cluster.client.send(request)
        except UnauthorizedError:
            raise
        except AlreadyExistsError:
            self._refuse_name(about)
        except ApiError as error:
            no_right = isinstance(error, ForbiddenError) and _NOT_GRANTED in error.message and resource != TRAIN_JOBS
            if no_right or _NO_DRY_RUN in error.message or is_of_file(error.message):
                self._unread[resource.plural] = Unread(f"{resource.plural} by dry run", str(error))
            else:
                self._refuse(about, str(error))

    def _refuse_name(self, about: Subject) -> None:
        """One of this name is there."""
        message = f"the cluster refuses {about.kind} {about.name}: it exists already"
        command = kubectl("get", about.kind.lower(), about.name, namespace=self.namespace)
        if about.kind == TRAIN_JOBS.kind:
            command = trainer("explain", about.name, namespace=self.namespace)
        self._causes.append(Cause(_REFUSED, about, message, "delete it, or give this one another name", command))

    def _refuse(self, about: Subject, message: str) -> None:
        advice = refusal_of(message, self.namespace)
        self._causes.append(
            Cause(
                _REFUSED,
                about,
                one_line(f"the cluster refuses {about.kind} {about.name}: {message}"),
                advice.remedy if advice else "change what the message names",
                (advice and advice.command) or kubectl("auth", "can-i", "--list", namespace=self.namespace),
            )
        )

    def _miss(self, about: Subject, path: str) -> None:
        command = kubectl("get", about.kind.lower(), namespace=about.namespace)
        if about.kind in {TRAINING_RUNTIMES.kind, CLUSTER_TRAINING_RUNTIMES.kind}:
            command = trainer("runtimes", namespace=about.namespace)
        message, remedy = f"{about} does not exist, which {path} names", "create it, or name one that exists"
        self._causes.append(Cause("Missing", about, message, remedy, command, fields=(path,)))

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
            about = Subject(resource.kind, key.name, key.namespace)
            stored = await self._get(self.cluster.served.resource(resource), about, "spec.runtimeRef")
            if stored is None:
                return ()
            documents.append(Document(resource, stored))
        workspace = await anyio.to_thread.run_sync(Workspace, documents)  # reads the shipped runtimes
        admitted = next(each for each in workspace.documents if each.place == self.document.place and each.is_train_job)
        model = TrainJob.from_object(decoded(admitted.obj))
        if TRAIN_JOBS.plural in self._unread:
            errors = (await workspace.review(admitted)).errors
            for error in errors:
                self._refuse(self.subject, str(error))
            if errors:
                return ()
        try:
            return workspace.pipeline.build(model, await workspace.of(model))
        except BuildError as error:
            self._refuse(self.subject, "; ".join(map(str, error.errors)))
            return ()

    def _pod(self, replicated_job: str, template: Object) -> Object:
        prefix = f"{self.subject.name.removesuffix('...')}-{replicated_job}-0-0-"
        metadata = {**metadata_of(template), "generateName": prefix, "namespace": self.namespace}
        return {"apiVersion": "v1", "kind": PODS.kind, "metadata": metadata, "spec": mapping_at(template, "spec")}

    async def _find_missing(self, specs: Sequence[Object], given: set[tuple[Resource, str]]) -> None:
        """Note the objects that pods name, and that are neither there nor made with the TrainJob."""
        named: dict[tuple[Resource, str], Reference] = {}
        for each in (found for spec in specs for found in references(spec)):
            named.setdefault((each.resource, each.name), each)
        left = [each for key, each in named.items() if key not in given]
        for each in left[:_READ_BY_NAME]:
            about = Subject(each.resource.kind, each.name, self.namespace if each.resource.namespaced else "")
            await self._get(each.resource, about, each.field)
        if len(left) > _READ_BY_NAME:
            why = f"pods name {len(left)}, and at most {_READ_BY_NAME} are read"
            self._unread["references"] = Unread("further objects that pods name", why)

    async def _get(self, resource: Resource, about: Subject, path: str) -> Object | None:
        """An object that a field names; that it does not exist, or cannot be read, is noted."""
        try:
            return await self.cluster.client.get(resource, about.name, about.namespace)
        except NotFoundError:
            self._miss(about, path)
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


def _templates(jobset: Object) -> Iterator[tuple[str, Object]]:
    """The replicated Jobs, each with the template of its pods."""
    for job in objects_in(mapping_at(jobset, "spec").get("replicatedJobs")):
        yield job.get("name") or "", mapping_at(job, "template", "spec", "template")
