"""A conversion in the shape of the version that a cluster serves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from trainer.kube.field_errors import FieldError
from trainer.v1alpha1.discovery import Version
from trainer.v1alpha1.encode import Encoded, encode
from trainer_v1_jobs.conversion.convert import Conversion

_FIELDS: Final[Mapping[str, str]] = {
    "spec.ttlSecondsAfterFinished": "spec.runPolicy.ttlSecondsAfterFinished",
    "spec.mlPolicy.torch.elasticPolicy": "spec.elasticPolicy",
    "spec.trainer.numProcPerNode": "spec.nprocPerNode",
}
"""Fields of jobs, by those of the runtime or TrainJob that they have become."""


def encoded(conversion: Conversion, version: Version) -> Conversion:
    """A conversion as the cluster stores it; its findings also name what that version cannot say."""
    if version == "v2alpha1":
        return conversion
    train_job = encode(conversion.train_job)
    runtime = encode(conversion.runtime) if conversion.runtime is not None else None
    losses = [loss for each in (runtime, train_job) if each is not None for loss in _losses(each)]
    return replace(
        conversion,
        train_job=train_job.object,
        runtime=runtime.object if runtime is not None else None,
        findings=(*conversion.findings, *losses),
    )


def _losses(each: Encoded) -> Iterator[FieldError]:
    """What is lost, by the field of the job; one without such a field by that of the result."""
    for loss in each.losses:
        field = _FIELDS.get(loss.field, f"{each.object['kind']} {loss.field}")
        yield FieldError(field, loss.message)
