"""A workspace: the objects of files, in place of a cluster."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from trainer.api.kubeflow_v1 import SERVED_JOBS
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, Runtime
from trainer.api.trainjob import TRAIN_JOBS, TrainJob
from trainer.cli.documents import Document, DocumentError, checked, version_of
from trainer.cli.kinds import Kind, installed_kinds
from trainer.cli.manifests import runtimes
from trainer.cli.offline.v1_jobs import installed_v1_jobs
from trainer.configuration.configuration import load_configuration
from trainer.framework.pipeline import Pipeline
from trainer.framework.plugin_api.errors import BuildError, Review
from trainer.framework.plugin_api.testing import StaticReader
from trainer.framework.runtimes.alternatives import alternatives
from trainer.framework.runtimes.runtimes import RuntimeNotFoundError, other_place, read_runtime, runtime_place
from trainer.framework.startup.discovery import make_registry
from trainer.kube.objects import Object, ObjectKey, metadata_of, name_of
from trainer.kube.resource import Resource
from trainer.manager import default_gang, enabled_plugins, profile_of
from trainer.v1alpha1 import admission as v1alpha1
from trainer.v1alpha1.client import decoded
from trainer.webhooks.defaults import default_runtime, default_train_job
from trainer.webhooks.runtime import review_runtime
from trainer.webhooks.train_job import review_train_job

Files = Annotated[
    list[str], typer.Option("--file", "-f", help="YAML file; - is standard input. May be given several times.")
]
OfflineNamespace = Annotated[
    str | None, typer.Option("--namespace", "-n", help="Namespace of objects that name none; default: default.")
]
PluginsConfig = Annotated[
    Path | None,
    typer.Option(
        "--config", help="Configuration file of the manager (YAML), for its plugins, devices and gangScheduling."
    ),
]

DEFAULT_NAMESPACE = "default"
"""Namespace of objects that name none, without a cluster."""

_SUFFIX = "xxxxx"
"""Length of the suffix that a server adds to `metadata.generateName`."""


class Workspace:
    """The objects of files with the defaults of admission, and the runtimes that we ship.

    It is the `RuntimeSource` of checks. A runtime in the files wins over a shipped one.
    """

    def __init__(self, documents: Iterable[Document], config: Path | None = None) -> None:
        self.documents = [_admitted(document) for document in documents]
        self._version = version_of(self.documents)
        self.reader = StaticReader(*(decoded(document.obj) for document in self.documents))
        """What plugins read: the objects of the files."""
        shipped = [_admitted(Document(CLUSTER_TRAINING_RUNTIMES, obj)) for obj in runtimes(self._version)]
        self._shipped = StaticReader(*(decoded(document.obj) for document in shipped))
        self.kinds = {kind.resource: kind for kind in installed_kinds()}
        """The further kinds, by their resources."""
        configuration = load_configuration(config)
        registry = make_registry(enabled_plugins(configuration.plugins, self._version), self.reader)
        self.pipeline = Pipeline(
            registry,
            profile=profile_of(self._version),
            cluster_domain=configuration.controller.cluster_domain or None,
            devices=configuration.device_table(self.reader),
            gang=default_gang(configuration, self.reader),
        )

    async def of(self, train_job: TrainJob) -> Runtime:
        """See `RuntimeSource.of`.

        A runtime that is neither in the files nor shipped may be in the cluster. Only a name that is probably a typing
        error is an error.
        """
        resource, key = runtime_place(train_job)
        found = self._runtime(resource, key)
        if found is not None:
            return read_runtime(resource, self.pipeline.gang.applied(found))
        other, other_key = other_place(train_job)
        known = [obj for reader in (self.reader, self._shipped) for obj in reader.list(resource, key.namespace, {})]
        names = list(dict.fromkeys(map(name_of, known)))
        present = alternatives(key.name, names, other.kind if self._runtime(other, other_key) else "")
        error = RuntimeNotFoundError(resource.kind, key, present)
        if present.is_mistake and self._version == "v2alpha1":
            raise BuildError(*error.errors)
        raise error

    def _runtime(self, resource: Resource, key: ObjectKey) -> Object | None:
        return self.reader.get(resource, key) or self._shipped.get(resource, key)

    def builds_on_shipped(self, train_job: TrainJob) -> bool:
        """Whether the runtime of the TrainJob is one that we ship."""
        place = runtime_place(train_job)
        return self.reader.get(*place) is None and self._shipped.get(*place) is not None

    async def review(self, document: Document) -> Review:
        """The admission review of the creation of a TrainJob, runtime, served v1 job or further kind, else empty."""
        kind = self.kinds.get(document.resource)
        if kind is not None:
            return await kind.review(document.obj, self.pipeline, self, self._version)
        if document.version == "v1alpha1":
            if document.is_runtime:
                return v1alpha1.review_runtime(document.obj, self.pipeline)
            return await v1alpha1.review_train_job(document.obj, None, self.pipeline, self, must_exist=False)
        if document.is_train_job:
            return await review_train_job(document.obj, None, self.pipeline, self)
        if document.is_runtime:
            return review_runtime(document.obj, None, self.pipeline)
        if document.resource in SERVED_JOBS.values():
            return installed_v1_jobs().review(document.obj, self.pipeline, self._version)
        return Review()


def made_document(document: Document, kind: Kind, number: int) -> Document:
    """A TrainJob that an object of a further kind has made, in its place.

    Raises:
        DocumentError: it is none; the fields are those of the TrainJob.
        CommandError: see `Kind.train_job`.
    """
    made = checked(kind.train_job(document.obj, number), document.place)
    if isinstance(made, DocumentError):
        raise made
    return _admitted(made)


def _admitted(document: Document) -> Document:
    if document.version == "v1alpha1":
        return document.with_object(_named(document.obj))
    if document.resource == TRAIN_JOBS:
        return document.with_object(default_train_job(_named(document.obj)))
    if document.is_runtime:
        return document.with_object(default_runtime(_named(document.obj)))
    is_further = document.version is not None or document.resource in SERVED_JOBS.values()
    return document.with_object(_named(document.obj)) if is_further else document


def _named(obj: Object) -> Object:
    """The object with a name such as a server generates."""
    if name_of(obj):
        return obj
    metadata = metadata_of(obj)
    return obj | {"metadata": metadata | {"name": f"{metadata['generateName']}{_SUFFIX}"}}
