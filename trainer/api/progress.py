"""Annotations that say how the progress of a training is followed (KEP-2779, "Reading trainer status messages")."""

from __future__ import annotations

MONITORING = "trainer.kubeflow.org/enable-trainer-status-monitoring"
"""On a TrainJob or its JobSet: `"false"` keeps the log of its primary pod from being read."""

PRIMARY_POD = "trainer.kubeflow.org/trainer-status-primary-pod"
"""On a pod, such as by the template of a runtime: `"true"` makes it the one whose log tells of the progress."""

CONTAINER = "trainer.kubeflow.org/trainer-status-container"
"""On the primary pod, the JobSet or the TrainJob: name of the container whose log is read."""

STALL_SECONDS = "trainer.kubeflow.org/trainer-status-stall-seconds"
"""On a TrainJob or its JobSet: seconds without progress after which people are warned; `"0"`: never."""
