"""Annotations that say how the progress of a training is followed (KEP-2779, "Reading trainer status messages")."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from trainer.api import patterns
from trainer.api.metric_curve import CURVE_OF, LONGEST
from trainer.kube.field_errors import FieldError, invalid, not_supported

MONITORING = "trainer.kubeflow.org/enable-trainer-status-monitoring"
"""On a TrainJob or its JobSet: `"false"` keeps the log of its primary pod from being read."""

PRIMARY_POD = "trainer.kubeflow.org/trainer-status-primary-pod"
"""On a pod, such as by the template of a runtime: `"true"` makes it the one whose log reports the progress."""

CONTAINER = "trainer.kubeflow.org/trainer-status-container"
"""On the primary pod, the JobSet or the TrainJob: name of the container whose log is read."""

STALL_SECONDS = "trainer.kubeflow.org/trainer-status-stall-seconds"
"""On a TrainJob or its JobSet: seconds without progress after which people are warned; `"0"`: never."""

REPORTER = "trainer.kubeflow.org/trainer-status-reporter"
"""On a TrainJob, or on the JobSet by a runtime: `"true"` has a reporter put beside a training that does not report."""


PLAIN_LINES = "trainer.kubeflow.org/trainer-status-plain-lines"
"""On a TrainJob or its JobSet: `"false"` keeps ordinary lines of the log from being read as progress."""


REPORTER_CONTAINER = "trainer-reporter"
"""Name of the init container that puts the reporter beside a training."""


def status_path(namespace: str, name: str) -> str:
    """The path to which the pods of a TrainJob post their progress, in whichever version TrainJobs are served."""
    return f"/apis/{status_audience(namespace, name)}"


def status_audience(namespace: str, name: str) -> str:
    """The audience of the tokens with which the pods of a TrainJob post their progress."""
    return f"trainer.kubeflow.org/v1alpha1/namespaces/{namespace}/trainjobs/{name}/status"


_LONGEST_LABEL = 63
_SECONDS = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?", re.ASCII)
_SECONDS_RULE = "must be a number of seconds, such as 600, with at most 9 digits before the point; 0 stands for never"
_CONTAINER_RULE = f"{patterns.WORDS[patterns.DNS_LABEL]}, with at most {_LONGEST_LABEL} characters"
_METRIC_RULE = f"must be the name of a metric: 1 to {LONGEST} printable characters"


def check_progress_annotations(annotations: Mapping[str, str] | None, path: str) -> Iterator[FieldError]:
    """Refuse values that mean nothing; the fields are `path` with the key in brackets."""
    for key in (MONITORING, PRIMARY_POD, CONTAINER, STALL_SECONDS, REPORTER, PLAIN_LINES, CURVE_OF):
        value = (annotations or {}).get(key)
        if value is None:
            continue
        field = f"{path}[{key}]"
        if key in {MONITORING, PRIMARY_POD, REPORTER, PLAIN_LINES}:
            if value not in {"true", "false"}:
                yield not_supported(field, value, ("true", "false"))
        elif key == CONTAINER:
            if len(value) > _LONGEST_LABEL or not patterns.compiled(patterns.DNS_LABEL).search(value):
                yield invalid(field, value, _CONTAINER_RULE)
        elif key == CURVE_OF:
            if not 1 <= len(value) <= LONGEST or not value.isprintable():
                yield invalid(field, value, _METRIC_RULE)
        elif not _SECONDS.fullmatch(value):
            yield invalid(field, value, _SECONDS_RULE)


def monitoring_enabled(annotations: Mapping[str, str]) -> bool:
    """Whether a TrainJob or JobSet lets the log of its primary pod be read: unless it says false, however written."""
    return annotations.get(MONITORING, "").strip().lower() != "false"


def plain_lines_enabled(annotations: Mapping[str, str]) -> bool:
    """Whether ordinary lines of the log of a TrainJob or JobSet count: unless it says false, however written."""
    return annotations.get(PLAIN_LINES, "").strip().lower() != "false"


def stall_seconds(annotations: Mapping[str, str]) -> float | None:
    """Seconds without progress after which people are warned; 0 stands for never, None for nothing said.

    Raises:
        ValueError: the annotation is something else, since nobody has checked it; the text says what is expected.
    """
    value = annotations.get(STALL_SECONDS)
    if value is None:
        return None
    if not _SECONDS.fullmatch(value):
        raise ValueError(str(invalid(f"metadata.annotations[{STALL_SECONDS}]", value, _SECONDS_RULE)))
    return float(value)
