"""What a user hands to `trainer run`: YAML documents, checked before anything is sent."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from trainer.api.invalid_object import InvalidObjectError
from trainer.api.trainingruntime import (
    CLUSTER_TRAINING_RUNTIMES,
    TRAINING_RUNTIMES,
    ClusterTrainingRuntime,
    TrainingRuntime,
)
from trainer.api.trainjob import TRAIN_JOBS, TrainJob
from trainer.cli.errors import BadInputError
from trainer.kube.objects import metadata_of, name_of, namespace_of
from trainer.kube.resource import CONFIG_MAPS, PERSISTENT_VOLUME_CLAIMS, SECRETS, SERVICE_ACCOUNTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainer.api.model import ApiModel
    from trainer.kube.objects import Object
    from trainer.kube.resource import Resource

_MODELS: dict[Resource, type[ApiModel]] = {
    TRAIN_JOBS: TrainJob,
    TRAINING_RUNTIMES: TrainingRuntime,
    CLUSTER_TRAINING_RUNTIMES: ClusterTrainingRuntime,
}
_ACCEPTED = (*_MODELS, CONFIG_MAPS, SECRETS, PERSISTENT_VOLUME_CLAIMS, SERVICE_ACCOUNTS)
_BY_TYPE = {(resource.api_version, resource.kind): resource for resource in _ACCEPTED}
_STANDARD_INPUT = "-"


@dataclass(frozen=True, slots=True)
class Document:
    """One object to be sent to the cluster."""

    resource: Resource
    obj: Object

    @property
    def is_train_job(self) -> bool:
        """Whether this is what runs; everything else is what it needs."""
        return self.resource == TRAIN_JOBS

    @property
    def subject(self) -> str:
        """The object in words, such as `TrainJob jax-digits`."""
        return f"{self.resource.kind} {name_of(self.obj) or metadata_of(self.obj).get('generateName', '')}"


class _Loader(yaml.SafeLoader):
    """Reads YAML as Kubernetes does: a timestamp is a string; and refuses what JSON cannot say, and repeated keys."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - as its base class declares it
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    yaml_constructors = {  # noqa: RUF012 - as its base class declares it
        tag: constructor
        for tag, constructor in yaml.SafeLoader.yaml_constructors.items()
        if tag not in {f"tag:yaml.org,2002:{name}" for name in ("binary", "omap", "pairs", "set", "timestamp")}
    }

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:  # noqa: ARG002
        # Only at once does the loader notice an alias to something that contains it.
        return super().construct_object(node, deep=True)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(None, None, "a key must be a string", key.start_mark)
            if key.value in seen and key.tag != "tag:yaml.org,2002:merge":
                problem = f"the key {key.value!r} is there twice"
                raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def read_documents(source: str) -> list[Document]:
    """Read and check the objects in a file, or in standard input if `source` is `-`.

    Raises:
        BadInputError: not readable, not YAML, not an object, a kind that `trainer run` does not submit, a field that
            the kind does not have, or no TrainJob at all; names document, field and remedy.
    """
    origin = "standard input" if source == _STANDARD_INPUT else source
    documents: list[Document] = []
    for number, content in enumerate(_parse(_read(source), origin), start=1):
        if content is not None:
            documents.append(_check(content, f"{origin}, document {number}"))
    if not any(document.is_train_job for document in documents):
        raise BadInputError(f"{origin}: there is no TrainJob in it")
    _check_unique(documents, origin)
    return documents


def place(documents: list[Document], *, namespace: str | None, default: str) -> list[Document]:
    """Give every namespaced object its namespace: its own, which must be the one asked for if any, else the default.

    Raises:
        BadInputError: an object names another namespace than the one asked for.
    """
    return [Document(document.resource, _placed(document, namespace, default)) for document in documents]


def _placed(document: Document, namespace: str | None, default: str) -> Object:
    if not document.resource.namespaced:
        return document.obj
    own = namespace_of(document.obj)
    if own and namespace and own != namespace:
        message = (
            f"{document.subject}: metadata.namespace is {own}, but --namespace asks for {namespace}: drop one of them"
        )
        raise BadInputError(message)
    return {**document.obj, "metadata": {**metadata_of(document.obj), "namespace": own or namespace or default}}


def _read(source: str) -> str:
    try:
        return sys.stdin.read() if source == _STANDARD_INPUT else Path(source).read_text(encoding="utf-8")
    except IsADirectoryError:
        raise BadInputError(f"{source} is a directory: name the file in it") from None
    except UnicodeDecodeError as error:
        raise BadInputError(f"{source} is not UTF-8 text: {error.reason} at byte {error.start}") from None
    except OSError as error:
        raise BadInputError(f"cannot read {source}: {error.strerror}") from None


def _parse(text: str, origin: str) -> Iterator[object]:
    try:
        yield from yaml.load_all(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise BadInputError(f"{origin}{where}: not valid YAML: {error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise BadInputError(f"{origin}: not valid YAML: {error}") from None


def _check(content: object, origin: str) -> Document:
    if not isinstance(content, dict):
        raise BadInputError(f"{origin}: must be a Kubernetes object, got {type(content).__name__}")
    api_version, kind = content.get("apiVersion"), content.get("kind")
    for field, value in (("apiVersion", api_version), ("kind", kind)):
        if not isinstance(value, str) or not value:
            raise BadInputError(f"{origin}: {field}: is required")
    resource = _BY_TYPE.get((str(api_version), str(kind)))
    if resource is None:
        raise BadInputError(f"{origin}: {_refusal(str(api_version), str(kind))}")
    metadata = content.get("metadata")
    if not isinstance(metadata, dict) or not (metadata.get("name") or metadata.get("generateName")):
        raise BadInputError(f"{origin}: metadata.name: is required")
    document = Document(resource, content)
    if resource in _MODELS:
        try:
            _MODELS[resource].from_object(content, strict=True)
        except InvalidObjectError as error:
            problems = "; ".join(str(problem) for problem in error.errors)
            raise BadInputError(f"{origin} ({document.subject}): {problems}") from None
    return document


def _refusal(api_version: str, kind: str) -> str:
    versions = [resource.api_version for resource in _ACCEPTED if resource.kind == kind]
    if versions:
        return f"apiVersion {api_version} of {kind} is not supported: write {versions[0]}"
    kinds = ", ".join(resource.kind for resource in _ACCEPTED)
    return f"trainer run does not submit {kind}, only {kinds}: use kubectl apply for it"


def _check_unique(documents: list[Document], origin: str) -> None:
    seen: set[tuple[Resource, str, str]] = set()
    for document in documents:
        key = (document.resource, namespace_of(document.obj), name_of(document.obj))
        if name_of(document.obj) and key in seen:
            raise BadInputError(f"{origin}: {document.subject} is there twice")
        seen.add(key)
