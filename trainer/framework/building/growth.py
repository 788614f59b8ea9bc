"""How much larger than TrainJob and runtime their JobSet becomes.

Labels, annotations and overrides of a TrainJob are written once and stand in every Job and pod template that they are
for, so that 256 KiB can become 50 MiB. No API server would take them, and they are refused before they are made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from trainer.framework.plugin_api.errors import BuildError
from trainer.kube.field_errors import FieldError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainer.api.trainjob import TrainJob

_MOST: Final = 3 * 1024 * 1024
"""Bytes of a request that an API server reads; what it stores is smaller still."""


def check_growth(train_job: TrainJob, replicated_jobs: int) -> None:
    """Refuse settings that become more than an API server reads.

    Args:
        train_job: its settings.
        replicated_jobs: how many the runtime has.

    Raises:
        BuildError: names the largest of the settings.
    """
    sizes = dict(_sizes(train_job, replicated_jobs))
    total = sum(sizes.values())
    if total > _MOST:
        largest = max(sizes, key=sizes.__getitem__)
        size, allowed = f"{sizes[largest] // 1024} of {total // 1024} KiB", f"{_MOST // 1024} KiB"
        rule = f"becomes {size} of settings in all Jobs and pods that they are for, which may have {allowed}"
        raise BuildError(FieldError(largest, f"Too long: {rule}", "FieldValueTooLong"))


def _sizes(train_job: TrainJob, replicated_jobs: int) -> Iterator[tuple[str, int]]:
    """Bytes that each setting has in the JobSet."""
    spec = train_job.spec
    # A replicated Job has them twice, for its Jobs and its pods, and the JobSet has them as well.
    yield "spec.labels", _size(spec.labels) * (2 * replicated_jobs + 1)
    yield "spec.annotations", _size(spec.annotations) * (2 * replicated_jobs + 1)
    for index, override in enumerate(spec.pod_spec_overrides or []):
        yield (
            f"spec.podSpecOverrides[{index}]",
            _size(override.to_object()) * min(len(override.target_jobs), replicated_jobs),
        )


def _size(value: Any) -> int:
    return len(msgspec.json.encode(value)) if value else 0
