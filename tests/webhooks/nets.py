"""The three nets below admission: the schema of the CRD, its CEL rules, and the build."""

from __future__ import annotations

import copy
import functools

from tests.definitions import root_schema
from tests.framework.static_reader import StaticReader
from tests.webhooks.bad_inputs import BadInput, Net
from tests.webhooks.blueprints import RUNTIMES, job
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES, Runtime
from trainer.api.trainjob import TRAIN_JOBS, TrainJob
from trainer.framework.pipeline import Pipeline
from trainer.framework.plugin_api.errors import BuildError
from trainer.framework.runtimes.runtimes import read_runtime
from trainer.kube.objects import Object
from trainer.kube.resource import Resource
from trainer.manager import built_in_plugins, profile_of
from trainer.v1alpha1.discovery import Version
from trainer_devcluster.apiserver.schema.structural import StructuralSchema

RESOURCES = {resource.kind: resource for resource in (TRAIN_JOBS, TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES)}


@functools.cache
def pipeline(version: Version = "v2alpha1") -> Pipeline:
    """The built-in plugins of a cluster that serves this version."""
    return Pipeline(built_in_plugins(StaticReader(), version), profile=profile_of(version))


def resource_of(obj: Object) -> Resource:
    """The kind of an object of the tables."""
    return RESOURCES[obj["kind"]]


@functools.cache
def _schema(kind: str) -> StructuralSchema:
    return StructuralSchema.from_crd(root_schema(kind))


def caught(row: BadInput) -> tuple[Net | None, str]:
    """What refuses an input without webhooks, and how it says so; None when it reaches a JobSet."""
    schema = _schema(row.object["kind"])
    obj, old = _stored(row.object, schema), _stored(row.old, schema)
    assert obj is not None
    unknown = schema.prune(obj)
    if unknown:
        return Net.SCHEMA, f"unknown fields: {', '.join(unknown)}"
    errors = schema.validate(obj, old)
    if errors:
        is_rule = not _without_rules(row.object["kind"]).validate(obj, old)
        return Net.RULE if is_rule else Net.SCHEMA, "; ".join(map(str, errors))
    try:
        pipeline().build(*_build_input(obj))
    except BuildError as error:
        return Net.BUILD, str(error)
    return None, "nothing"


def _build_input(obj: Object) -> tuple[TrainJob, Runtime]:
    if obj["kind"] == TRAIN_JOBS.kind:
        train_job = TrainJob.from_object(obj)
        runtime = RUNTIMES[train_job.spec.runtime_ref.name]
        return train_job, read_runtime(CLUSTER_TRAINING_RUNTIMES, runtime)
    return TrainJob.from_object(job()), read_runtime(resource_of(obj), obj)


def _stored(obj: Object | None, schema: StructuralSchema) -> Object | None:
    if obj is None:
        return None
    stored = copy.deepcopy(obj)
    schema.default(stored)
    return stored


@functools.cache
def _without_rules(kind: str) -> StructuralSchema:
    return StructuralSchema.from_crd(_stripped(root_schema(kind)))


def _stripped(schema: object) -> Object:
    if isinstance(schema, dict):
        return {name: _stripped(value) for name, value in schema.items() if name != "x-kubernetes-validations"}
    if isinstance(schema, list):
        return [_stripped(value) for value in schema]  # type: ignore[return-value]
    return schema  # type: ignore[return-value]
