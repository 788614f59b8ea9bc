"""`trainer.kubeflow.org/v1alpha1`, the API of Kubeflow Trainer (Go): read at the edge, into the one model."""
