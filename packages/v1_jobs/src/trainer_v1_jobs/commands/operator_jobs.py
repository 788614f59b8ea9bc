"""What the commands of trainer-operator ask about jobs of the operators."""

from __future__ import annotations

import functools

from trainer.api.invalid_object import InvalidObjectError
from trainer.api.kubeflow_v1 import EXPERIMENTS
from trainer.api.kueue import without_admission
from trainer.cli.documents import DocumentError
from trainer.cli.manifests import runtimes
from trainer.cli.offline.converted import Converted
from trainer.framework.pipeline import Pipeline
from trainer.framework.plugin_api.errors import Review
from trainer.kube.field_errors import FieldError
from trainer.kube.objects import Object, mapping_at, metadata_of, name_of
from trainer.v1alpha1.decode import decode
from trainer.v1alpha1.discovery import Version
from trainer_v1_jobs.admission import review_job
from trainer_v1_jobs.api.definitions import served_definitions
from trainer_v1_jobs.api.kinds import KINDS, JobKind
from trainer_v1_jobs.conversion import convert
from trainer_v1_jobs.conversion.encoding import encoded
from trainer_v1_jobs.katib import convert_experiment


class OperatorJobs:
    """Implements `trainer.cli.offline.v1_jobs.V1Jobs`."""

    def definitions(self) -> list[Object]:
        """See `V1Jobs`."""
        return served_definitions()

    def review(self, job: Object, pipeline: Pipeline, version: Version) -> Review:
        """See `V1Jobs`."""
        return review_job(job, None, _kind(job), pipeline, version)

    def converted(self, job: Object, place: str, version: Version) -> Converted:
        """See `V1Jobs`."""
        try:
            objects, losses = _converted(job, version)
        except InvalidObjectError as error:
            name = f" {name_of(job)}" if isinstance(metadata_of(job), dict) else ""
            raise DocumentError(place, *error.errors, subject=f"{job['kind']}{name}") from None
        return Converted(place, tuple(each for each in objects if each is not None), losses)


def _converted(obj: Object, version: Version) -> tuple[tuple[Object | None, Object], tuple[FieldError, ...]]:
    """The runtime and what refers to it, and what is lost."""
    runtimes = shipped_runtimes(version)
    if obj["kind"] == EXPERIMENTS.kind:
        found = convert_experiment(obj, version=version, runtimes=runtimes)
        return (found.runtime, found.optimization_job), found.findings
    kind = _kind(obj)
    result = encoded(convert(_without_admission(obj, kind), kind, version=version, runtimes=runtimes), version)
    return (result.runtime, result.train_job), result.findings


@functools.cache
def shipped_runtimes(version: Version) -> tuple[Object, ...]:
    """The runtimes that we ship for a version, in the shape of v2alpha1."""
    return tuple(decode(each).object if version == "v1alpha1" else each for each in runtimes(version))


def _kind(job: Object) -> JobKind:
    return KINDS[job["apiVersion"], job["kind"]]


def _without_admission(job: Object, kind: JobKind) -> Object:
    """A job without what Kueue has written into it at its admission, but for node selectors and tolerations."""
    spec = mapping_at(job, "spec")
    roles = mapping_at(spec, kind.replicas_field)
    cleaned = {
        name: role | {"template": without_admission(role["template"])}
        for name, role in roles.items()
        if isinstance(mapping_at(roles, name).get("template"), dict)
    }
    return job | {"spec": spec | {kind.replicas_field: roles | cleaned}} if cleaned else job
