"""YAML documents of a user, checked before they are used."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from trainer.api.kubeflow_v1 import becomes
from trainer.api.model import ApiModel
from trainer.api.submitted_object import identity_errors, object_errors, text_errors
from trainer.api.trainingruntime import (
    CLUSTER_TRAINING_RUNTIMES,
    TRAINING_RUNTIMES,
    ClusterTrainingRuntime,
    TrainingRuntime,
)
from trainer.api.trainjob import TRAIN_JOBS, TrainJob
from trainer.cli.console import printable
from trainer.cli.errors import BadInputError
from trainer.cli.similar import did_you_mean_file
from trainer.kube.field_errors import FieldError, required
from trainer.kube.objects import Object, metadata_of, name_of, namespace_of
from trainer.kube.resource import CONFIG_MAPS, PERSISTENT_VOLUME_CLAIMS, SECRETS, SERVICE_ACCOUNTS, Resource
from trainer.kubernetes_yaml import YamlError, parse
from trainer.v1alpha1 import trainingruntime as v1alpha1_runtimes
from trainer.v1alpha1.client import SERVED
from trainer.v1alpha1.discovery import Version
from trainer.v1alpha1.trainjob import TrainJob as V1Alpha1TrainJob

_MODELS: dict[Resource, type[ApiModel]] = {
    TRAIN_JOBS: TrainJob,
    TRAINING_RUNTIMES: TrainingRuntime,
    CLUSTER_TRAINING_RUNTIMES: ClusterTrainingRuntime,
}
_V1ALPHA1_MODELS: dict[Resource, type[ApiModel]] = {
    TRAIN_JOBS: V1Alpha1TrainJob,
    TRAINING_RUNTIMES: v1alpha1_runtimes.TrainingRuntime,
    CLUSTER_TRAINING_RUNTIMES: v1alpha1_runtimes.ClusterTrainingRuntime,
}
_ACCEPTED = (*_MODELS, CONFIG_MAPS, SECRETS, PERSISTENT_VOLUME_CLAIMS, SERVICE_ACCOUNTS)
_BY_TYPE = {(resource.api_version, resource.kind): resource for resource in _ACCEPTED} | {
    (served.api_version, served.kind): resource for resource, served in SERVED.items()
}
_Item = TypeVar("_Item")
_LIST = "List"
_STANDARD_INPUT = "-"


@dataclass(frozen=True, slots=True)
class Document:
    """One object."""

    resource: Resource
    """The resource of the model, also for an object of v1alpha1."""
    obj: Object
    """The object as its author wrote it."""
    place: str = ""
    """Where it was read, such as `job.yaml, document 2`."""

    @property
    def is_train_job(self) -> bool:
        """Whether it is a TrainJob; all others are what TrainJobs need."""
        return self.resource == TRAIN_JOBS

    @property
    def is_runtime(self) -> bool:
        """Whether it is a runtime of either kind."""
        return self.resource in {TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES}

    @property
    def version(self) -> Version | None:
        """The version of a TrainJob, a runtime or another kind of our group; None for other kinds."""
        if self.resource.group != TRAIN_JOBS.group:
            return None
        return "v1alpha1" if self.obj["apiVersion"] == SERVED[TRAIN_JOBS].api_version else "v2alpha1"

    @property
    def subject(self) -> str:
        """The object in words, such as `TrainJob jax-digits`."""
        return f"{self.resource.kind} {name_of(self.obj) or metadata_of(self.obj).get('generateName', '')}"

    def with_object(self, obj: Object) -> Document:
        """The same document with another object."""
        return replace(self, obj=obj)


class DocumentError(BadInputError):
    """A document that cannot be used; `place` is such as `job.yaml, document 2`, `subject` the object if known."""

    def __init__(self, place: str, *errors: FieldError, subject: str = "") -> None:
        where = f"{place} ({subject})" if subject else place
        super().__init__(f"{where}: {'; '.join(map(str, errors))}")
        self.place = place
        self.errors = errors
        self.subject = subject


class UnknownKindError(DocumentError):
    """A document of a kind that `trainer run` does not submit."""


class ConvertibleKindError(UnknownKindError):
    """A document of a kind that `trainer convert` makes objects of ours of."""

    remedy = ""
    """What prints it as which kind."""


def read_documents(source: str) -> list[Document]:
    """Read and check the objects in a file, or in standard input if `source` is `-`."""
    documents = list(valid(documents_in(source)))
    if not any(document.is_train_job for document in documents):
        raise BadInputError(f"{_display_name(source)}: there is no TrainJob in it")
    for repeated in repetitions(documents):
        raise repeated
    return documents


def valid(items: Iterable[_Item | DocumentError]) -> Iterator[_Item]:
    """The items; raises the first error among them."""
    for item in items:
        if isinstance(item, DocumentError):
            raise item
        yield item


def documents_in(source: str) -> Iterator[Document | DocumentError]:
    """The documents of a file, or of standard input if `source` is `-`: each as an object, or why it cannot be used."""
    for item in items_in(source):
        yield item if isinstance(item, DocumentError) else checked(*item)


def items_in(source: str) -> Iterator[tuple[Object, str] | DocumentError]:
    """The mappings in the documents of a file, each with its place, before they are checked."""
    origin = _display_name(source)
    try:
        for number, content in enumerate(parse(_read(source)), start=1):
            for item, place in _items(content, f"{origin}, document {number}"):
                if isinstance(item, dict):
                    yield item, place
                else:
                    problem = f"must be a Kubernetes object, got {type(item).__name__}"
                    yield DocumentError(place, FieldError("", problem))
    except YamlError as error:
        yield DocumentError(f"{origin}, {error.where}" if error.where else origin, FieldError("", str(error)))


def version_of(documents: Iterable[Document]) -> Version:
    """The version of all TrainJobs and runtimes, since a cluster serves one; v2alpha1 if there are none."""
    first: Document | None = None
    for document in documents:
        if document.version is None:
            continue
        first = first or document
        if document.version != first.version:
            raise _other_version(document, f"{first.subject} is of {first.version}, and a cluster serves one of them")
    return (first.version if first is not None else None) or "v2alpha1"


def check_version(documents: Iterable[Document], served: Version) -> None:
    """Check that a cluster serves the version of the documents."""
    for document in documents:
        if document.version not in {None, served}:
            raise _other_version(document, f"the cluster serves {served}")


def _other_version(document: Document, reason: str) -> DocumentError:
    other = "v2alpha1" if document.version == "v1alpha1" else "v1alpha1"
    remedy = f"trainer convert --api-version {other} -f FILE prints it as {other}"
    problem = f"is {document.obj['apiVersion']}, but {reason}: {remedy}"
    return DocumentError(document.place, FieldError("apiVersion", problem), subject=document.subject)


def repetitions(documents: Iterable[Document]) -> Iterator[DocumentError]:
    """An error for each repeated object."""
    seen: set[tuple[Resource, str, str]] = set()
    for document in documents:
        key = (document.resource, namespace_of(document.obj), name_of(document.obj))
        if name_of(document.obj) and key in seen:
            yield DocumentError(document.place, FieldError("", f"{document.subject} is defined twice"))
        seen.add(key)


def place(documents: list[Document], *, namespace: str | None, default: str) -> list[Document]:
    """Set the namespace of namespaced objects: their own, which must not contradict `namespace`, else the default."""
    return [document.with_object(_placed(document, namespace, default)) for document in documents]


def _placed(document: Document, namespace: str | None, default: str) -> Object:
    if not document.resource.namespaced:
        return document.obj
    own = namespace_of(document.obj)
    if own and namespace and own != namespace:
        message = (
            f"{document.subject}: metadata.namespace is {own}, but --namespace is {namespace}: leave one of them out"
        )
        raise BadInputError(message)
    return {**document.obj, "metadata": {**metadata_of(document.obj), "namespace": own or namespace or default}}


def _display_name(source: str) -> str:
    return "standard input" if source == _STANDARD_INPUT else source


def _read(source: str) -> str:
    try:
        return sys.stdin.read() if source == _STANDARD_INPUT else Path(source).read_text(encoding="utf-8")
    except IsADirectoryError:
        raise BadInputError(f"{source} is a directory: name the file in it") from None
    except UnicodeDecodeError as error:
        raise BadInputError(f"{source} is not UTF-8 text: {error.reason} at byte {error.start}") from None
    except OSError as error:
        meant = did_you_mean_file(Path(source)) if isinstance(error, FileNotFoundError) else ""
        raise BadInputError(f"cannot read {source}: {error.strerror}{meant}") from None


def _items(content: object, place: str) -> Iterator[tuple[object, str]]:
    """The objects of a document: none, one, or those of a List, as `kubectl get -o yaml` prints them."""
    if content is None:
        return
    items = content.get("items") if isinstance(content, dict) and content.get("kind") == _LIST else None
    if isinstance(items, list):
        yield from ((item, f"{place}, items[{index}]") for index, item in enumerate(items))
    else:
        yield content, place


def checked(
    content: Object, place: str, further: Mapping[tuple[str, str], Resource] | None = None
) -> Document | DocumentError:
    """The object in a document, or why it cannot be used; it may be of a `further` kind, by apiVersion and kind."""
    try:
        return _document(content, place, further or {})
    except DocumentError as error:
        return error


def _document(content: Object, place: str, further: Mapping[tuple[str, str], Resource]) -> Document:
    for error in text_errors(content):
        raise DocumentError(place, replace(error, field=printable(error.field)))
    api_version, kind = content.get("apiVersion"), content.get("kind")
    for field, value in (("apiVersion", api_version), ("kind", kind)):
        if not isinstance(value, str) or not value:
            raise DocumentError(place, required(field))
    type_ = str(api_version), str(kind)
    resource = _BY_TYPE.get(type_) or further.get(type_)
    if resource is None:
        raise _refusal(place, content)
    for error in identity_errors(content):
        raise DocumentError(place, error)
    document = Document(resource, content, place)
    models = _MODELS if document.version == "v2alpha1" else _V1ALPHA1_MODELS
    if type_ not in further and (errors := object_errors(content, models.get(resource))):
        raise DocumentError(place, *errors, subject=document.subject)
    return document


def _refusal(place: str, content: Object) -> DocumentError:
    api_version, kind = content["apiVersion"], content["kind"]
    versions = [version for version, known in _BY_TYPE if known == kind]
    if versions:
        which = f"write {' or '.join(versions)}" + (", as the cluster serves" if len(versions) > 1 else "")
        problem = f"apiVersion {api_version} of {kind} is not supported: {which}"
        return DocumentError(place, FieldError("", problem))
    kinds = ", ".join(resource.kind for resource in _ACCEPTED)
    other = becomes(content)
    article = "an" if other.startswith("O") else "a"
    remedy = f"trainer convert -f FILE prints it as {article} {other}" if other else "use kubectl apply for it"
    problem = f"trainer does not handle {kind}, only {kinds}: {remedy}"
    metadata = content.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    subject = f"{kind} {name}" if name else kind
    if not other:
        return UnknownKindError(place, FieldError("", problem), subject=subject)
    error = ConvertibleKindError(place, FieldError("", problem), subject=subject)
    error.remedy = remedy
    return error
