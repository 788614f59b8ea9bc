"""The configuration file of the manager: kind Configuration of config.trainer.kubeflow.org/v1alpha1.

One module for each section. The attribute docstrings are the reference that people read.
"""
