"""The JobSet controller: Jobs for JobSets, and what follows from how they fare (jobset.x-k8s.io/v1alpha2)."""
