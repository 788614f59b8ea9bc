"""A workspace: the objects of files, in place of a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES
from trainer.api.trainjob import TRAIN_JOBS
from trainer.api.v1alpha1.client import decoded
from trainer.cli.documents import Document, version_of
from trainer.cli.manifests import runtimes
from trainer.configuration.configuration import load_configuration
from trainer.framework.pipeline import Pipeline
from trainer.framework.plugin_api.errors import BuildError, Review
from trainer.framework.runtimes.runtimes import (
    RuntimeNotFoundError,
    alternatives,
    other_place,
    read_runtime,
    runtime_place,
)
from trainer.framework.startup.discovery import make_registry
from trainer.kube.objects import Object, ObjectKey, key_of, labels_of, metadata_of, name_of
from trainer.manager import enabled_plugins
from trainer.webhooks import v1alpha1
from trainer.webhooks.defaults import default_runtime, default_train_job
from trainer.webhooks.runtime import review_runtime
from trainer.webhooks.train_job import review_train_job

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from collections.abc import Set as AbstractSet

    from trainer.api.trainingruntime import Runtime
    from trainer.api.trainjob import TrainJob
    from trainer.kube.resource import Resource

Files = Annotated[
    list[str], typer.Option("--file", "-f", help="YAML file; - is standard input. May be given several times.")
]
OfflineNamespace = Annotated[
    str | None, typer.Option("--namespace", "-n", help="Namespace of objects that name none; default: default.")
]
PluginsConfig = Annotated[
    Path | None, typer.Option("--config", help="Configuration file of the manager (YAML), for its plugins.")
]

DEFAULT_NAMESPACE = "default"
"""Namespace of objects that name none, without a cluster."""

_SUFFIX = "xxxxx"
"""As long as the suffix that a server adds to `metadata.generateName`."""


class Workspace:
    """The objects of files with the defaults of admission, and the runtimes that we ship.

    It is the `Reader` of plugins and the `RuntimeSource` of checks. A runtime in the files wins over a shipped one.
    """

    def __init__(self, documents: Iterable[Document], config: Path | None = None) -> None:
        self.documents = [_admitted(document) for document in documents]
        self._version = version_of(self.documents)
        self._objects = {_identity(document): decoded(document.obj) for document in self.documents}
        shipped = [_admitted(Document(CLUSTER_TRAINING_RUNTIMES, obj)) for obj in runtimes(self._version)]
        self._shipped = {_identity(document): decoded(document.obj) for document in shipped}
        configuration = load_configuration(config)
        registry = make_registry(enabled_plugins(configuration.plugins), self)
        self.pipeline = Pipeline(registry, cluster_domain=configuration.controller.cluster_domain or None)

    def get(self, resource: Resource, key: ObjectKey) -> Object | None:
        """See `Reader.get`."""
        return self._objects.get((resource, key))

    def list(self, resource: Resource, namespace: str, labels: Mapping[str, str]) -> list[Object]:
        """See `Reader.list`."""
        return [
            obj
            for (of, key), obj in self._objects.items()
            if of == resource and key.namespace == namespace and labels.items() <= labels_of(obj).items()
        ]

    def keys(self, resource: Resource, index: str, value: str) -> AbstractSet[ObjectKey]:  # noqa: ARG002
        """See `Reader.keys`: files hold no objects of controllers."""
        return frozenset()

    def children(self, owner_uid: str) -> Iterable[tuple[Resource, Object]]:  # noqa: ARG002
        """See `Reader.children`: nothing has been created yet."""
        return ()

    def serves(self, resource: Resource) -> bool:  # noqa: ARG002
        """See `Reader.serves`: the unknown cluster is assumed to have what the files need."""
        return True

    def selects(self, resource: Resource, obj: Object) -> bool:  # noqa: ARG002
        """See `Reader.selects`: nothing is deployed from files."""
        return True

    def holds_all(self, resource: Resource) -> bool:  # noqa: ARG002
        """See `Reader.holds_all`: nothing is deployed from files."""
        return True

    async def of(self, train_job: TrainJob) -> Runtime:
        """See `RuntimeSource.of`.

        A runtime that is neither in the files nor shipped may be in the cluster. Only a name that is probably a typing
        error is an error.
        """
        resource, key = runtime_place(train_job)
        found = self._runtime(resource, key)
        if found is not None:
            return read_runtime(resource, found)
        other, other_key = other_place(train_job)
        known = {*self._objects, *self._shipped}
        names = [of.name for kind, of in known if kind == resource and of.namespace == key.namespace]
        present = alternatives(key.name, names, other.kind if self._runtime(other, other_key) else "")
        error = RuntimeNotFoundError(resource.kind, key, present)
        if present.is_mistake and self._version == "v2alpha1":
            raise BuildError(*error.errors)
        raise error

    def _runtime(self, resource: Resource, key: ObjectKey) -> Object | None:
        return self._objects.get((resource, key)) or self._shipped.get((resource, key))

    def builds_on_shipped(self, train_job: TrainJob) -> bool:
        """Whether the runtime of the TrainJob is one that we ship."""
        place = runtime_place(train_job)
        return place in self._shipped and place not in self._objects

    async def review(self, document: Document) -> Review:
        """The admission review of the creation of a TrainJob or runtime; empty for other kinds."""
        if document.version == "v1alpha1":
            return await self._v1alpha1_review(document)
        if document.is_train_job:
            return await review_train_job(document.obj, None, self.pipeline, self)
        if document.is_runtime:
            return review_runtime(document.obj, None, self.pipeline)
        return Review()

    async def _v1alpha1_review(self, document: Document) -> Review:
        if document.is_runtime:
            return v1alpha1.review_runtime(document.obj, self.pipeline)
        return await v1alpha1.review_train_job(document.obj, None, self.pipeline, self, must_exist=False)


def _admitted(document: Document) -> Document:
    if document.version == "v1alpha1":
        return document.with_object(_named(document.obj))
    if document.resource == TRAIN_JOBS:
        return document.with_object(default_train_job(_named(document.obj)))
    if document.is_runtime:
        return document.with_object(default_runtime(_named(document.obj)))
    return document


def _named(obj: Object) -> Object:
    """The object with a name such as a server generates."""
    if name_of(obj):
        return obj
    metadata = metadata_of(obj)
    return obj | {"metadata": metadata | {"name": f"{metadata['generateName']}{_SUFFIX}"}}


def _identity(document: Document) -> tuple[Resource, ObjectKey]:
    return document.resource, key_of(document.obj)
