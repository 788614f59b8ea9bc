"""Labels by which the Jobs and pods of a JobSet tell what they are (JobSet API reference, Kubernetes documentation)."""

from __future__ import annotations

JOBSET_NAME = "jobset.sigs.k8s.io/jobset-name"
"""On Jobs and pods: name of the JobSet, which is that of its TrainJob."""
JOBSET_UID = "jobset.sigs.k8s.io/jobset-uid"
"""On the same: uid of the JobSet, which JobSet has not always set."""
REPLICATED_JOB = "jobset.sigs.k8s.io/replicatedjob-name"
"""On the same: name of the replicated Job."""
REPLICAS = "jobset.sigs.k8s.io/replicatedjob-replicas"
"""On the same: how many Jobs the replicated Job has."""
JOB_INDEX = "jobset.sigs.k8s.io/job-index"
"""On the same: which of these Jobs it is, from 0."""
RESTART_ATTEMPT = "jobset.sigs.k8s.io/restart-attempt"
"""On the same: how often the JobSet had been restarted when it was made."""
COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"
"""On pods of indexed Jobs: which of its pods it is, from 0. Before Kubernetes 1.28 only an annotation of theirs."""
