"""Labels of the Jobs and pods of a JobSet (JobSet API reference, Kubernetes documentation)."""

from __future__ import annotations

JOBSET_NAME = "jobset.sigs.k8s.io/jobset-name"
"""On Jobs and pods: name of the JobSet, which is that of its TrainJob."""
JOBSET_UID = "jobset.sigs.k8s.io/jobset-uid"
"""On the same: uid of the JobSet; older versions of JobSet do not set it."""
REPLICATED_JOB = "jobset.sigs.k8s.io/replicatedjob-name"
"""On the same: name of the replicated Job."""
REPLICAS = "jobset.sigs.k8s.io/replicatedjob-replicas"
"""On the same: number of Jobs of the replicated Job."""
JOB_INDEX = "jobset.sigs.k8s.io/job-index"
"""On the same: index of the Job, from 0."""
RESTART_ATTEMPT = "jobset.sigs.k8s.io/restart-attempt"
"""On the same: restarts of the JobSet before its creation."""
COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"
"""On pods of indexed Jobs: completion index of the pod, from 0. Before Kubernetes 1.28 only an annotation."""
