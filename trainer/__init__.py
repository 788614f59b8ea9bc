"""The Kubeflow Trainer V2 control plane in Python."""

__version__ = "0.1.0"
