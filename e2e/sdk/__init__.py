"""The unmodified SDK of Kubeflow, in a process of its own: it needs an older client of Kubernetes."""
