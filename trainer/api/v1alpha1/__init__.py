"""`trainer.kubeflow.org/v1alpha1`, the API of released Kubeflow Trainer: read at the edge, into the one model."""
